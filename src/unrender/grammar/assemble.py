"""Builds the grammar of one turn from a Format and a Request, in two halves.

The writing half, of nodes, is what a model may generate, exactly as the template writes it. The reading half, of typed
parts, is wider: parts in any order, other spellings, other call syntaxes. Both are made from the same Format. No type
guarantees that whatever is written is read as it was meant; a test does, `tests/conformance/test_one_grammar.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from unrender.format import (
    CallSyntax,
    Content,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    TurnTexts,
)
from unrender.format.parts import text_of
from unrender.grammar.markers import (
    TOKEN,
    after_reasoning,
    dropped,
    ends,
    headers_in_words,
    joints_before_calls,
    joints_in_words,
    layout,
    spellings,
    trail,
)
from unrender.limits import MAX_SMALL
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.nodes import Calls, Choice, Grammar, JsonValue, Literal, Node, Optional, Role, Tag, Until, in_sequence


@dataclass(frozen=True, slots=True)
class EndOfTurn:
    """A text that ends a turn. One that is words counts only where nothing but another end, or a header, follows."""

    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A special token between parts that has no meaning."""

    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """A header that is words: dropped right after an end of turn, and text elsewhere."""

    text: str


@dataclass(frozen=True, slots=True)
class Joint:
    """Words between parts that have no meaning: dropped where content begins, and text elsewhere."""

    text: str
    before_calls: bool = False
    """They are also dropped right before a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """Markers around content; "" for one that the format lacks.

    Each has all its spellings, the format's own first.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Reasoning between markers; `("",)` when no marker opens it.

    Each marker has all its spellings, the format's own first.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...]
    joint: str
    """The most layout after the closing marker; white space beyond it is text."""
    holds_calls: bool = False
    """Calls are written inside; elsewhere they are only tolerated there."""
    declared: bool = True
    """The format has this reasoning; other well-known reasoning is read only at the start of an answer."""


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """Content that is JSON, possibly in a Markdown fence."""


@dataclass(frozen=True, slots=True)
class NoCalls:
    """A call syntax in a turn without calls: a block of special tokens that is empty says nothing; all else is text."""

    syntax: CallSyntax


AnswerPart = EndOfTurn | Dropped | Header | Joint | Wrapper | Block | JsonAnswer | Calls | NoCalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The reading half: free text with any number of parts in it, in any order."""

    parts: tuple[AnswerPart, ...]
    """Where two begin with the same marker, the first counts."""
    header: str = ""
    """The header, or the rest of it, that no prompt writes: it may be before everything."""
    lead: str = ""
    """Layout that may be before everything."""
    trail: str = ""
    """Layout that may be after everything."""
    cleans: bool = False
    """Text that begins a call and breaks off is kept apart from the free text."""


@dataclass(frozen=True, slots=True)
class AnswerGrammar:
    """Both halves of the grammar of one answer."""

    reads: Answer
    writes: Grammar


_BLANK_LINE = "\n\n"
"""The layout after reasoning whose format nobody knows: what most models write."""
PROSE_WORD = re.compile(r"\w+[.:,;]?|```\w*[\s\[{]*")
"""A word of prose, with what may follow it there, or what begins a block of code: ` ```json ` and ` ```tool_code ` alike."""
_NAME_KEY = re.compile(r'(\{?"[^"]*")\s*:\s*"$')
_EDGE = re.compile(r"(```\w*)|(?<=>)(?=<)|(?<=\|>)(?=\[)")
"""Where a piece ends without white space: at a fence, between two tags, and between a token and a list."""
_JSON_TAIL = re.compile(r'\s*[\[{](?:\s*(?:[\[{:,]|"[^"]*"))*\s*$')
_JSON_HEAD = re.compile(r"^\s*(?:[\]}]\s*)+")
_JSON_TOKEN = re.compile(r'"[^"]*"|\S')
_JSON_KEY = '":'
_KEYED_EDGE = re.compile(r'(?<=>)(?=\{)|(?<=\{)(?=")|(?<=":)(?=.)|(?<=",)(?=")|(?<=\})(?=<)')
"""Where white space may be in JSON that is written around a name, and beside the markers around it."""
_DISTINCTIVE = re.compile(r"\w.*\W|\W.*\w", re.DOTALL)


def answer_grammar(format: Format, request: Request, known: Collection[Reasoning] = ()) -> AnswerGrammar:
    """Return the grammar of one answer, from the end of the assistant's header to the end of the turn.

    `known` are markers of reasoning that are also read at the start of an answer, when the format does not have them.
    """
    calls = calls_of(format, request)
    unasked = format.turn.unasked
    lead = layout(unasked) + format.turn.start_to_content
    reads = Answer(
        parts=tuple(_parts(format, request, calls, known)),
        # A special token is dropped wherever it is.
        header="" if layout(unasked) or unasked.strip() in map(str.strip, dropped(format)) else unasked,
        lead=lead,
        trail=trail(format),
        cleans=format.cleans_content,
    )
    own = next((found for found in calls if found.own), None)
    return AnswerGrammar(reads, Grammar(_Generation(format, request, own).whole_answer()))


# What is read.


def _parts(format: Format, request: Request, calls: list[Calls], known: Collection[Reasoning]) -> Iterator[AnswerPart]:
    """Yield what is in the free text of an answer."""
    if format.reasoning.end:
        yield _thought(format, format.reasoning)
    for wrapper in format.wrappers:
        if (wrapper.start + wrapper.end).strip():
            yield Wrapper(opens=_ways(format, wrapper.start), closes=_ways(format, wrapper.end))
    yield from calls if request.calls_allowed else _no_calls(format)
    yield from map(EndOfTurn, ends(format))
    yield from map(Dropped, dropped(format))
    yield from map(Header, headers_in_words(format))
    before_calls = joints_before_calls(format.turn)
    yield from (Joint(text, text in before_calls) for text in joints_in_words(format))
    yield from (_thought(format, other) for other in _undeclared(format, known))
    if request.response_schema is not None:
        yield JsonAnswer()


def _no_calls(format: Format) -> Iterator[NoCalls]:
    """Yield the syntaxes whose blocks are made of special tokens, with no more than brackets between them."""
    special = {"", *format.preserved_tokens}
    for syntax in format.syntaxes:
        # `<calls>[]</calls>`: models write an empty block where they make no call.
        markers = (syntax.section_start, syntax.section_end, syntax.call_start, syntax.call_end)
        if all(text.strip().strip("[]").strip() in special for text in markers):
            yield NoCalls(syntax)


def _thought(format: Format, markers: Reasoning) -> Block:
    """Return reasoning between these markers, and the layout after it."""
    declared = markers is format.reasoning
    return Block(
        opens=_ways(format, markers.start) if markers.start.strip() else ("",),
        closes=_ways(format, markers.end),
        joint=after_reasoning(format.turn) if declared else _BLANK_LINE,
        holds_calls=markers.holds_calls,
        declared=declared,
    )


def _ways(format: Format, marker: str) -> tuple[str, ...]:
    """Return a marker in all its spellings; `("",)` for an empty one."""
    return tuple(spellings(format, marker)) or ("",)


def _undeclared(format: Format, known: Iterable[Reasoning]) -> list[Reasoning]:
    """Return the reasoning that may begin an answer though the format does not have it: other openers of its own block."""
    own = format.reasoning
    begun = set(_openers(format))
    # Where `<think>` is the format's own, `<thought>` is read as well only if `</think>` ends it too.
    others = [other for other in known if other.start.strip() not in begun]
    return [other for other in others if not own.end or other.end.strip() == own.end.strip()]


def _openers(format: Format) -> Iterator[str]:
    """Yield every marker that is already taken: openers of the format's parts, and markers that are dropped."""
    yield format.reasoning.start.strip()
    yield from (text.strip() for text in (*ends(format), *dropped(format)))
    yield from (text.strip() for text in (*headers_in_words(format), *joints_in_words(format)))
    texts = [wrapper.start for wrapper in format.wrappers]
    texts += [text for syntax in format.syntaxes for text in syntax.openers]
    yield from (text.split()[0] for text in texts if text.strip())


def calls_of(format: Format, request: Request) -> list[Calls]:
    """Return the calls that may be made in this turn, those in the primary syntax first."""
    if not request.calls_allowed:
        return []
    tools = offered(request)
    turn = format.turn
    # `Hi <call>` and `</think>\n\n<call>`: less layout than either is read as well.
    joints = (turn.content_to_tools, turn.reasoning_to_tools, turn.start_to_tools)
    leads = sorted(dict.fromkeys(map(layout, joints)), key=len, reverse=True)
    return [
        Calls(
            syntax=syntax,
            tools=tools,
            leads=tuple(
                lead for at, lead in enumerate(leads) if not any(longer.endswith(lead) for longer in leads[:at])
            ),
            ends_turn=(syntax.section_end.strip() or syntax.call_end.strip()) in turn.ends,
            spellings=(*spellings(format, syntax.section_start)[1:], *_joints(turn, syntax)),
            on_lines=_on_lines(turn, syntax),
            own=syntax is format.tools,
            cleans=format.cleans_content,
        )
        for syntax in format.syntaxes
    ]


def _joints(turn: TurnTexts, syntax: CallSyntax) -> tuple[str, ...]:
    """Return the joints that show a call where it has no marker of its own before the tool's name."""
    # `to=f {…}`: nothing begins a call but the ` to=` that the template writes between content and calls.
    joints = dict.fromkeys((turn.content_to_tools, turn.reasoning_to_tools))
    return () if syntax.openers else tuple(joint for joint in joints if joint.strip())


def names_matter(format: Format) -> bool:
    """Return whether the tools' names decide where a call begins.

    They do where a call has no marker and begins with a name on a line of its own.
    """
    return any(_on_lines(format.turn, syntax) for syntax in format.syntaxes)


def _on_lines(turn: TurnTexts, syntax: CallSyntax) -> bool:
    # `weather\n{"city": "Paris"}`: nothing but a line with the name of a tool shows that a call begins.
    unmarked = not syntax.openers and not syntax.arguments.entry
    return unmarked and "\n" in layout(turn.content_to_tools)


def generated_calls(calls: Calls, request: Request) -> Calls:
    """Return the same calls, limited to as many as the request allows."""
    return replace(calls, maximum=1 if request.one_call or not calls.syntax.parallel else None)


def offered(request: Request) -> tuple[Tool, ...] | None:
    """Return the tools that may be called in this turn; None when any name may be."""
    if request.tool_choice is ToolChoice.NAMED and request.tools is not None:
        return tuple(tool for tool in request.tools if tool.name == request.named_tool)
    return request.tools


def ending(format: Format) -> Node:
    """Return the layout that a model writes between a closing marker and the token that ends the turn, or its end."""
    # Before the end "\n<end>" the model writes "\n", or nothing where the engine strips both.
    before = trail(format)
    ways = tuple(Literal(before[at:]) for at in range(len(before) + 1))
    return Choice(ways) if len(ways) > 2 else Optional(ways[0]) if before else Literal("")


# What is generated.


@dataclass(frozen=True, slots=True)
class _Generation:
    """Writes the generated half of a grammar."""

    format: Format
    request: Request
    calls: Calls | None

    def whole_answer(self) -> Node:
        """Return the whole answer, after the header where no prompt writes it."""
        unasked = self.format.turn.unasked
        return in_sequence(Optional(Literal(unasked)), self.answer()) if unasked else self.answer()

    def answer(self) -> Node:
        """Return the answer after its header: reasoning or none, and what follows it."""
        turn, markers = self.format.turn, self.format.reasoning
        if markers.holds_calls and turn.tools_first and self.calls is not None:
            return self.calls_or_answer(self.calls)
        direct = self.direct()
        if not markers.end:
            return direct
        answer = self.content_and_calls(turn.reasoning_to_content, turn.reasoning_to_tools, self.format.content)
        thought = Tag(Role.REASONING, self.free_text())
        start, end = self.format.opening, markers.end
        # What is written for no reasoning, `<think></think>` for example, alone or with the joint after it; the prompt
        # may have written it already.
        empty = dict.fromkeys(text for text in (markers.empty, turn.prefill_no_thinking) if markers.closed_in(text))
        # After an end like a word only white space shows that it is one.
        joints = [
            text.removeprefix(start + end) for text in empty if text.startswith(start + end) and _ends_apart(text)
        ]
        unseen = [self.content_and_calls("", "", self.format.content)] if markers.unseen else []
        after = Choice((answer, *unseen, *(in_sequence(Literal(joint), direct) for joint in joints)))
        inside = [in_sequence(thought, Literal(end), after)]
        if markers.holds_calls and self.calls is not None:
            inside.append(
                in_sequence(thought, Literal(turn.reasoning_to_tools), generated_calls(self.calls, self.request))
            )
        # Reasoning that nothing opens begins at once: what is before its end cannot be anything else.
        shown = markers.mode is not ReasoningMode.DELIMITER or bool(turn.prefill)
        others: list[Node] = [direct] if shown else []
        if markers.unseen and shown:  # Every answer may be one after reasoning that history has dropped.
            others.append(
                self.content_and_calls(turn.reasoning_to_content, turn.reasoning_to_tools, self.format.wrapper_alone)
            )
        for text in empty:
            if not text.startswith(start + end):
                following = Choice((answer, direct)) if _ends_apart(text) else answer
                closed = in_sequence(_write_words_for_none(text.removeprefix(start), start, end), following)
                (inside if text.startswith(start) else others).append(closed)
        # The prompt may have opened reasoning: the grammar of the rest drops `start`.
        opened = Literal(start) if markers.start else Optional(Literal(start))  # Words of the prompt are not a marker.
        return Choice((in_sequence(opened, Choice(tuple(inside))), *others))

    def direct(self) -> Node:
        """Return an answer without reasoning."""
        turn, wrapper, beside = self.format.turn, self.format.wrapper_alone, self.format.content_with_calls
        answer = self.content_and_calls(turn.start_to_content, turn.start_to_tools, wrapper)
        # A wrapper that only tells content from calls may be missing where no call can be made.
        missing = wrapper.start and not self.request.tools and beside is not None and not beside.start
        return Choice((answer, self.content(turn.start_to_content, Content()))) if missing else answer

    def calls_or_answer(self, calls: Calls) -> Node:
        """Return calls, inside reasoning or alone, or an answer without any: what ends reasoning begins content, so no call follows it."""
        # `Thought: …\nAction: f` or `Thought: …\nFinal Answer: Hi`, and never `Final Answer:\nAction: f`.
        turn = self.format.turn
        start, thought = Literal(self.format.opening), Tag(Role.REASONING, self.free_text())
        thinking = in_sequence(start, thought, Literal(turn.reasoning_to_tools))
        run = in_sequence(generated_calls(calls, self.request), ending(self.format))
        called = in_sequence(Choice((thinking, Literal(turn.start_to_tools))), run)
        wanted = self.request.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED)
        return called if wanted else Choice((replace(self, calls=None).answer(), called))

    def content_and_calls(self, to_content: str, to_tools: str, wrapper: Content) -> Node:
        """Return content and calls, each after its joint."""
        turn = self.format.turn
        content = self.content(to_content, wrapper)
        ended = self.ending_of_content(wrapper)
        if self.calls is None:
            return in_sequence(content, ended)
        run = generated_calls(self.calls, self.request)
        last = in_sequence(run, ending(self.format))
        beside = wrapper if self.format.content_with_calls is None else self.format.content_with_calls
        followed = in_sequence(Literal(turn.content_to_tools), last)
        wanted = self.request.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED)
        only_calls = in_sequence(Literal(to_tools), run if turn.tools_first and not wanted else last)
        if beside is not wrapper and beside.wraps_empty:
            only_calls = in_sequence(Literal(to_content + beside.start + beside.end), followed)
        shown = self.calls.syntax.openers or turn.content_to_tools.strip()
        # What may come is now: calls alone, content alone, or one before the other. The request and the joints decide.
        if wanted:
            # The prompt may have opened the content's wrapper, which then has to be closed before the calls.
            opened = in_sequence(self.content(to_content, beside), followed)
            return Choice((only_calls, opened)) if beside.start and shown else only_calls
        if self.request.response_schema is not None:
            return Choice(
                (in_sequence(content, ended), only_calls)
            )  # JSON is the whole answer, or a call in its place.
        if not turn.tools_first and not (shown or (self.calls.on_lines and self.calls.tools)):
            return Choice((content, only_calls))  # After content, nothing would show that a call begins.
        if not turn.tools_first and beside is wrapper:
            return Choice((in_sequence(content, Choice((followed, ended))), only_calls))
        if not turn.tools_first:
            spoken = in_sequence(self.content(to_content, beside), followed)
            return Choice((in_sequence(content, ended), spoken, only_calls))
        if turn.tools_to_content.strip():
            return Choice((content, only_calls))  # What follows the calls is a turn of its own.
        calls_first = in_sequence(only_calls, self.content(turn.tools_to_content, wrapper))
        if not turn.tools_to_content + wrapper.start + wrapper.end:
            return Choice((content, calls_first))  # Content may be empty.
        return Choice((content, only_calls, calls_first))

    def ending_of_content(self, wrapper: Content) -> Node:
        """Return the layout that may end an answer of content: free text has it in itself, what is closed and JSON have not."""
        closed = wrapper.end.strip() or self.request.response_schema is not None
        return ending(self.format) if closed else Literal("")

    def content(self, joint: str, wrapper: Content) -> Node:
        return in_sequence(Literal(joint + wrapper.start), self.text(), Literal(wrapper.end))

    def text(self) -> Node:
        if self.request.response_schema is not None:
            return Tag(Role.CONTENT, JsonValue(self.request.response_schema))
        return Tag(Role.CONTENT, self.free_text())

    def free_text(self) -> Until:
        """Return text that holds nothing that the parser would take for a marker."""
        # Free text that held "<tool_call>" would be read as a call, which the model did not mean.
        parts = [text for wrapper in self.format.wrappers for text in (wrapper.start, wrapper.end)]
        parts += [self.format.opening, self.format.reasoning.end]
        texts = [*ends(self.format), *dropped(self.format)]
        # Where no prompt writes the header, an answer that begins with it is one after its header.
        texts += [header for header in headers_in_words(self.format) if header.strip() in self.format.turn.unasked]
        texts += [*joints_in_words(self.format), *(text for part in parts for text in spellings(self.format, part))]
        for calls in calls_of(self.format, self.request):
            texts += _signs(self.format, calls)
        stops = dict.fromkeys(text.strip() for text in texts if text.strip())
        # Text ends at the first stop: one that begins before another's end hides it.
        return Until(tuple(stop for stop in stops if not any(other in stop[:-1] for other in stops if other != stop)))


def _signs(format: Format, calls: Calls) -> Iterator[str]:
    """Yield the texts with which the parser begins a call: markers that show one, and what is before a tool's name with it."""
    syntax = calls.syntax
    chain = syntax.openers
    if not chain:
        after_name = text_of(syntax.function[1]) + _begins_arguments(syntax)
        yield from (tool.name + after_name for tool in calls.tools or () if syntax.function[0] is Slot.NAME)
        return
    shown = [shows_call(calls, at, literal) for at, literal in enumerate(chain)]
    for literal in (literal for literal, alone in zip(chain, shown, strict=True) if alone):
        yield from (splitter(syntax)(spelling)[0].rstrip("[{") for spelling in spellings(format, literal))
    if all(alone or (at and not is_distinctive(_head(syntax, chain[at]))) for at, alone in enumerate(shown)):
        return  # No other marker begins one.
    heads = dict.fromkeys(_head(syntax, text) for text, alone in zip(chain, shown, strict=True) if not alone)
    said = [head for head in heads if is_distinctive(head) and not head.startswith("```")]
    # `Action:\n[` as a whole is the format's own; of `{"name": "` and `Action:`, prose writes all but the name of a tool.
    if calls.own and not shown[0] and is_phrase(chain[0].strip()):
        yield chain[0].strip()
    elif not said or not syntax.envelope:
        yield from _named(syntax, [tool.name for tool in calls.tools or ()])
    # Any white space may be before the JSON in `[TOOL_CALLS][{...}`: what models write is a sign.
    if syntax.envelope:
        yield from (head + space + bracket for head in said for space in ("", " ", "\n") for bracket in "[{")


def _named(syntax: CallSyntax, names: list[str]) -> Iterator[str]:
    """Yield what is right before the name of a tool, with the name: `<function=now`, `{"name": "now"`."""
    # All the names together are cut to a bounded length, since an automaton has a state for each character.
    cut = MAX_SMALL // max(1, len(names))
    at = syntax.function.index(Slot.NAME) if Slot.NAME in syntax.function else 0
    literal = syntax.function[at - 1] if at else ""
    if syntax.envelope and (key := _NAME_KEY.search(text_of(literal))):
        yield from (key[1] + space + '"' + f'{name}"'[:cut] for space in (": ", ":") for name in names or [""])
    elif at > 1:
        yield "".join(syntax.openers)
    else:
        before = text_of(literal).lstrip() or syntax.openers[-1].lstrip()
        yield from (before + name[: max(cut, 1)] for name in names or [""])


def shows_call(calls: Calls, at: int, literal: str) -> bool:
    """Return whether a marker, the `at`-th from outside, shows a call whatever comes after it.

    Others do so only with the name of a tool: prose mentions them.
    """
    piece = _head(calls.syntax, literal)
    if not is_distinctive(piece) or calls.cleans:
        return is_distinctive(piece)
    # Shown alone: `<tool_call>`, a token, and the `<function=` around all. Not `Action:`, nor what other formats write.
    return calls.own and (TOKEN.match(piece) is not None or (at == 0 and not PROSE_WORD.fullmatch(piece)))


def _head(syntax: CallSyntax, literal: str) -> str:
    """Return the piece with which a marker begins."""
    return "{" if syntax.envelope and literal == syntax.function[0] else splitter(syntax)(literal)[0]


def _begins_arguments(syntax: CallSyntax) -> str:
    """Return the text that begins the arguments; "" if a call has more than two parts before them."""
    arguments = syntax.arguments
    # `f({` and `f(a=`: with a parenthesis alone, any prose about f would be a call.
    if Slot.ARGUMENTS not in syntax.function[:3]:
        return ""
    return arguments.start if arguments.entry or arguments.start else "{"


def _write_words_for_none(text: str, start: str, end: str) -> Node:
    """Return what is written for no reasoning, after the opener: some formats have words for it."""
    # `<think>I need not think.</think>`: the words are the reasoning, so they come back when the answer is read.
    words, closer, rest = text.partition(end.strip())
    if words.strip() in ("", start.strip()):
        return Literal(text)
    return in_sequence(Tag(Role.REASONING, Literal(words)), Literal(closer + rest))


def _ends_apart(text: str) -> bool:
    """Return whether a word after `text` cannot be taken for a part of it."""
    return not text[-1].isalnum()


# How markers are cut into pieces, between which any white space is read.


def tokens(text: str) -> list[str]:
    """Split a literal into pieces; any white space may be between them."""
    return [piece for word in text.split() for piece in _EDGE.split(word) if piece]


def json_tokens(text: str) -> list[str]:
    """Split a literal around JSON: like `tokens`, but each bracket and key of the JSON is a piece of its own."""
    head = _JSON_HEAD.match(text)
    start = head.end() if head else 0
    # `<call>{"name": ` is `<call>`, `{`, `"name"`, `:`, so that white space may be between any two.
    tail = _JSON_TAIL.search(text, start)
    end = tail.start() if tail else len(text)
    return [*_JSON_TOKEN.findall(text[:start]), *tokens(text[start:end]), *_JSON_TOKEN.findall(text[end:])]


def splitter(syntax: CallSyntax) -> Callable[[str], list[str]]:
    """Return the function that splits the literals of `syntax` into pieces."""
    if syntax.envelope:
        return json_tokens
    return _keyed_tokens if any(_JSON_KEY in text_of(part) for part in syntax.function) else tokens


def _keyed_tokens(text: str) -> list[str]:
    """Split a literal of a call that has its name in JSON and before it: `f<args>{"name":"f","args":{…}}`."""
    return [piece for token in tokens(text) for piece in _KEYED_EDGE.split(token)]


def is_phrase(marker: str) -> bool:
    """Return whether a marker is more than a word of prose, or the beginning of a block of code or of just any JSON."""
    return is_distinctive(marker) and marker[0] not in "{[(" and not PROSE_WORD.fullmatch(marker)


def is_distinctive(opener: str) -> bool:
    """Return whether `opener` does not occur in prose."""
    return len(opener) > 2 and bool(_DISTINCTIVE.search(opener))
