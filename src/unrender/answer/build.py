"""Builds the Answer tree of one turn from a Format and a Request, and interprets the fields of a call syntax.

Strategy: only the tools that may be called depend on the request; everything else in a call's node depends only on the format. An answer's
`parts` are its calls, reasoning and content, which are parsed in any order. `written` contains the parts in the order in which a model
generates them.

Rule: every generated answer is parsed into the message that it represents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from unrender.answer import (
    TOKEN,
    Answer,
    ArgumentsPart,
    Calls,
    ContentPart,
    Marker,
    ReasoningPart,
    holds_token,
    json_tokens,
    keyed_tokens,
    tokens,
)
from unrender.answer.follow import call_signs
from unrender.cache import kept
from unrender.format import (
    CallSyntax,
    Content,
    ContentMode,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    TurnTexts,
    literal_texts,
)
from unrender.format.parts import text_of
from unrender.messages import Request, Tool
from unrender.nodes import EMPTY, Choice, JsonValue, Literal, Node, Optional, Role, Tag, Until, children, in_sequence

_BLANK_LINE = "\n\n"
"""Default whitespace after reasoning, used if the format doesn't define the reasoning markers. Most models generate a blank line."""
_SPECIAL = re.compile(r"<[^<>\s]+>$")
"""Matches a special token at the end of a string."""
_JOINTS = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")


def answer_of(
    format: Format,
    request: Request,
    known: Collection[Reasoning] = (),
    siblings: Iterable[CallSyntax] = (),
    *,
    alone: bool = False,
) -> Answer:
    """Return the tree of one answer, from the end of the assistant's header to the end of the turn.

    `known` contains reasoning markers that are also parsed at the start of an answer if the format doesn't define them. `siblings` contains
    call syntaxes of other formats that are also parsed. If `alone` is True, such calls count only if they are the whole answer.
    """
    calls = calls_of(format, request)
    # Text between content markers is always content, so the model has to close the content before it calls a tool.
    free = calls and format.content.mode is ContentMode.PLAIN and request.response_schema is None
    foreign = siblings if free else ()
    others = [(syntax, alone) for syntax in foreign if syntax not in format.syntaxes]
    # Models may put each of several calls in a fence of its own. Calls in one fence need no other syntax.
    fenced = own_calls(format) is None or any("```" in text for text in literal_texts(format.tools))
    others += [(_fenced(format.tools), True)] if others and not fenced else []
    calls += [
        replace(calls_in_syntax(format, syntax), tools=offered(request), sibling=True, whole=True, alone=alone)
        for syntax, alone in others
    ]
    own = next((found for found in calls if found.own), None)
    answer = replace(
        _frame(format),
        written=_Order(format, request, own, _stops(format, calls), _stops(format, calls, thought=True)).whole_answer(),
        parts=tuple(_parts(format, calls if request._calls_allowed else _empty_calls(format), known)),
        json=request.response_schema is not None,
    )
    assert not (unread := list(_unread(format, answer))), f"generated, but not parsed: {unread}"
    return answer


def _fenced(calls: CallSyntax) -> CallSyntax:
    """Return the call syntax with a Markdown fence around each call."""
    start, end = calls.section_start + calls.call_start, calls.call_end + calls.section_end
    return replace(
        calls,
        section_start="",
        section_end="",
        call_start=f"```\n{start}",
        call_end=f"{end.rstrip()}\n```",
        separator="\n",
    )


def _unread(format: Format, answer: Answer) -> Iterator[str]:
    """Yield each string between parts that the tree generates, but that the parser doesn't recognize as a marker. A correct tree has none."""
    markers = [*answer.between, answer.header]
    for part in answer.parts:
        markers += [] if isinstance(part, Calls) else [*part.open.spelled, *part.close.spelled]
    # A prefill that opens reasoning, or that contains empty reasoning, may also contain ordinary words. These words aren't reported either.
    empty, end = (format.reasoning.empty, format.turn.prefill_no_thinking), format.reasoning.end.strip()
    behind = (text.partition(end)[2].strip() for text in empty if end)
    texts = {format._opening.strip(), *behind, *(marker.core for marker in markers)} - {""}
    known = sorted(texts, key=len, reverse=True)
    waiting = [answer.written]
    for node in waiting:
        text = node.text if isinstance(node, Literal) else ""
        for marker in known if text else ():
            text = text.replace(marker, "")
        yield from [text] if text.strip() else []
        # Skip the text inside a Tag, which is reasoning or content.
        waiting += () if isinstance(node, Tag) else children(node)


def _parts(
    format: Format, calls: Iterable[Calls], known: Iterable[Reasoning]
) -> Iterator[ReasoningPart | ContentPart | Calls]:
    """Yield the parts that the parser looks for in an answer."""
    if format.reasoning.end:
        yield _thought(format, format.reasoning)
    for wrapper in format._wrappers:
        if (wrapper.start + wrapper.end).strip():
            yield ContentPart(open=_marker(format, wrapper.start), close=_marker(format, wrapper.end))
    yield from calls
    yield from (_thought(format, other) for other in _undeclared(format, known))


def _thought(format: Format, markers: Reasoning) -> ReasoningPart:
    """Return reasoning between the given markers, and the whitespace after it."""
    declared = markers is format.reasoning
    turn = format.turn
    elsewhere = (turn.end, *turn.ends, *turn.headers, *(getattr(turn, joint) for joint in _JOINTS), *format.ignored)
    return ReasoningPart(
        open=_marker(format, markers.start) if markers.start.strip() else Marker(),
        close=_marker(format, markers.end),
        joint=_after_reasoning(turn) if declared else _BLANK_LINE,
        holds_calls=markers.holds_calls,
        # If a header follows the end marker, the marker ends any message, such as `<|end|>` in a format with channels.
        shared=markers.end.strip() in map(str.strip, elsewhere) or turn.reasoning_to_content.strip() in turn.headers,
        declared=declared,
    )


def _undeclared(format: Format, known: Iterable[Reasoning]) -> list[Reasoning]:
    """Return the known reasoning markers that may start an answer although the format doesn't define them."""
    own = format.reasoning
    # Skip markers that the format itself uses.
    openers = [wrapper.start for wrapper in format._wrappers]
    openers += [marker.text for calls in calls_in(format) for marker in calls.openers]
    taken = {own.start.strip(), *(text.split()[0] for text in openers if text.strip())}
    taken |= {marker.core for marker in _frame(format).between}
    # If the format defines `<think>`, `<thought>` is also parsed, provided that both end with `</think>`.
    others = [other for other in known if other.start.strip() not in taken]
    return [other for other in others if not own.end or other.end.strip() == own.end.strip()]


def _stops(format: Format, calls: Iterable[Calls], *, thought: bool = False) -> tuple[str, ...]:
    """Return the strings that content, or a `thought`, can't contain, because the parser would treat them as markers."""
    # For example, the parser would treat `<tool_call>` in free text as the start of a call.
    parts = [text for wrapper in format._wrappers for text in (wrapper.start, wrapper.end)]
    # In content, an end marker of reasoning that consists of words or a sign, such as `|`, is text.
    reasoning = format.reasoning
    ends = thought or not reasoning.start.strip() or holds_token(reasoning.end)
    parts += [format._opening, reasoning.end if ends else ""]
    frame = _frame(format)
    # An answer may start with the header if prompts don't contain the header.
    headers = (header for header in frame.headers if header.core in format.turn.unasked)
    texts = [marker.text for marker in (*frame.ends, *frame.dropped, *headers, *frame.joints)]
    texts += [text for part in parts for text in _spellings(format, part)]
    texts += [sign for found in calls for sign in call_signs(found)]
    stops = dict.fromkeys(text.strip() for text in texts if text.strip())
    # A stop that contains another stop is redundant, because text ends at the first stop.
    return tuple(stop for stop in stops if not any(other in stop[:-1] for other in stops if other != stop))


# Calls.


def calls_of(format: Format, request: Request) -> list[Calls]:
    """Return the calls that are allowed in this turn, with the primary syntax first."""
    if not request._calls_allowed:
        return []
    tools, most = offered(request), 1 if request._one_call else None
    return [replace(calls, tools=tools, maximum=most or calls.maximum) for calls in calls_in(format)]


def offered(request: Request) -> tuple[Tool, ...] | None:
    """Return the tools that may be called in this turn. Returns None if the request doesn't restrict tool names."""
    if request.tool_choice == "named" and request.tools is not None:
        return tuple(tool for tool in request.tools if tool.name == request.named_tool)
    return request.tools


@kept(10_000)
def calls_in(format: Format) -> tuple[Calls, ...]:
    """Return the calls that the parser recognizes, with any tool name. The format's own syntax comes first."""
    closing = {marker.core for marker in (*_frame(format).ends, *_frame(format).dropped)}
    syntaxes = (*format.syntaxes, *(other for syntax in format.syntaxes for other in _named_once(syntax)))
    return tuple(calls_in_syntax(format, syntax, closing) for syntax in syntaxes)


def _named_once(syntax: CallSyntax) -> Iterator[CallSyntax]:
    """Yield the syntaxes of a call with two names whose first name is wrong, or missing together with the markers around it.

    For example, `to=f<|message|><invoke name="f">` is also read as `to=g<|message|><invoke name="f">` and `<invoke name="f">`.
    """
    function, name = syntax.function, Slot.NAME
    if syntax.envelope or function[: function.index(Slot.ARGUMENTS)].count(name) < 2:
        return
    first, second = (at for at, part in enumerate(function) if part is name)
    before, between, rest = function[:first], text_of(function[second - 1]), function[second:]
    markers = [found.start() for found in TOKEN.finditer(between)]
    if second != first + 2 or not markers:
        return
    heads = [(*before, Slot.ANY, between), *((between[at:],) for at in markers)]
    yield from (replace(syntax, function=(*head, *rest), checked=True) for head in heads if head[0] is not Slot.ANY)


def own_calls(format: Format) -> Calls | None:
    """Return the calls in the format's own syntax, or None if the format has no calls."""
    return next((calls for calls in calls_in(format) if calls.own), None)


def _empty_calls(format: Format) -> Iterator[Calls]:
    """Yield the calls whose markers consist of special tokens and brackets.

    Empty blocks of these calls are parsed even if calls are forbidden.
    """
    special = {"", *format.preserved_tokens}
    for calls in calls_in(format):
        # Models generate an empty block, such as `<calls>[]</calls>`, if they don't call a tool.
        markers = (calls.open, calls.close, calls.call_open, calls.call_close)
        if all(marker.core.strip("[]").strip() in special for marker in markers):
            yield replace(calls, forbidden=True)


def calls_in_syntax(format: Format, syntax: CallSyntax, closing: Collection[str] = ()) -> Calls:
    """Return the node for calls in the given syntax. `closing` contains markers that end a turn or are dropped."""
    turn, own, split = format.turn, syntax is format.tools, _splitter(syntax)
    # The whitespace before a call may be missing, e.g. in `Hi <call>` and `</think>\n\n<call>`.
    joints = _before_calls(turn)
    leads = sorted(dict.fromkeys(map(_layout, joints)), key=len, reverse=True)
    # If calls have no start marker, the words between content and a call mark its start, e.g. ` to=` in `to=f {…}`.
    unmarked = not syntax.openers
    shown = dict.fromkeys(joint for joint in joints[:2] if unmarked and joint.strip())
    opened = _marker(format, syntax.section_start, split)
    return Calls(
        open=replace(opened, others=(*opened.others, *(Marker(joint, tuple(split(joint))) for joint in shown))),
        close=_closer(syntax.section_end, split, closing),
        call_open=_marker(format, syntax.call_start, split),
        call_close=_closer(syntax.call_end, split, closing),
        separator=Marker(syntax.separator, tuple(tokens(syntax.separator))),
        function=tuple(it if isinstance(it, Slot) else _marker(format, it, split) for it in syntax.function),
        arguments=_arguments(syntax, split),
        envelope=syntax.envelope,
        id_parts=syntax.id_parts,
        index_start=syntax.index_start,
        id_length=syntax.id_length,
        whole=syntax.whole,
        checked=syntax.checked,
        commas=_takes_commas(syntax),
        own=own,
        cleans=format.cleans_content,
        ends_turn=(syntax.section_end.strip() or syntax.call_end.strip()) in turn.ends,
        leads=tuple(lead for at, lead in enumerate(leads) if not any(longer.endswith(lead) for longer in leads[:at])),
        # If calls look like `weather\n{"city": "Paris"}`, only a line with a tool's name marks the start of a call.
        on_lines=unmarked and not syntax.arguments.entry and "\n" in _layout(turn.content_to_tools),
        maximum=None if syntax.parallel else 1,
    )


def names_matter(format: Format) -> bool:
    """Return whether calls are recognized by the names of tools.

    Returns True if a call has no marker and starts with a name on its own line.
    """
    return any(calls.on_lines for calls in calls_in(format))


def _takes_commas(syntax: CallSyntax) -> bool:
    """Return whether calls are a Python-style list. In such lists, commas are accepted even if the template doesn't use them.

    Some templates omit commas (`[f(a="x"b=3)]`) or show only one call. Models nevertheless generate valid code, such as `[f(a="x", b=3),
    g()]`.
    """
    arguments = syntax.arguments
    listed = syntax.section_start.strip()[-1:] == "[" and not syntax.call_start.strip()
    named = syntax.function == (Slot.NAME, Slot.ARGUMENTS) and bool(arguments.entry)
    return listed and named and (arguments.start.strip(), arguments.end.strip()) == ("(", ")")


def _arguments(syntax: CallSyntax, split: _Splitter) -> ArgumentsPart:
    arguments, value = syntax.arguments, Slot.VALUE
    closers, at = tuple(map(Marker, arguments.closers)), (*arguments.entry, value).index(value) + 1
    return ArgumentsPart(
        open=Marker(arguments.start, tuple(split(arguments.start))),
        close=Marker(arguments.end, tuple(split(arguments.end))),
        entry=tuple(
            part if isinstance(part, Slot) else Marker(part, tuple(tokens(part)), closers if i == at else ())
            for i, part in enumerate(arguments.entry)
        ),
        separator=Marker(arguments.separator, tuple(tokens(arguments.separator))),
        codec=arguments.codec,
        empty=arguments.when_empty,
        open_ended=arguments.open_ended,
    )


# Markers.


_Splitter = Callable[[str], list[str]]


def _splitter(syntax: CallSyntax) -> _Splitter:
    """Return the function that splits the literals of a call into pieces."""
    if syntax.envelope:
        return json_tokens
    return keyed_tokens if any('":' in text_of(part) for part in syntax.function) else tokens


def _marker(format: Format, text: str, split: _Splitter = tokens) -> Marker:
    """Return a marker for `text` with all its spellings."""
    first, *others = (Marker(spelling, tuple(split(spelling))) for spelling in _spellings(format, text) or [""])
    return replace(first, others=tuple(others))


def _closer(text: str, split: _Splitter, ends: Collection[str]) -> Marker:
    """Return the closing marker of calls. An end-of-turn marker at its end becomes a separate piece."""
    # If the closer is `</call><|end|>` and `<|end|>` ends the turn, engines strip `<|end|>` and return only `</call>`.
    core = text.rstrip()
    end = max((end for end in ends if core.endswith(end) and core != end), key=len, default="")
    apart = f"{text.removesuffix(end)} {end}" if end and text == core else text
    return Marker(text, tuple(split(apart)))


# Text between parts.


def repeated(turn: TurnTexts) -> list[str]:
    """Return the last token of each header, which models and templates may repeat."""
    return [last.group() for header in turn.headers if (last := _SPECIAL.search(header.strip()))]


@kept(10_000)
def _frame(format: Format) -> Answer:
    """Return an answer with all markers between parts, but without the parts. These markers depend only on the format.

    A marker that contains a special token is recognized everywhere, because text doesn't contain special tokens. A marker that consists of
    words is recognized only in its usual place, and is text elsewhere.
    """
    turn, reasoning, trail = format.turn, format.reasoning, Marker(format.turn.end).lead
    # If the model generates `<end><stop>`, engines strip the stop token, so `<end>` alone has to end the turn.
    ends = (turn.end, *(trail + end.lstrip() for end in turn.ends))
    others = [getattr(turn, joint) for joint in _JOINTS]
    # An unmatched `</think>` is ignored if reasoning has a start marker, and ends reasoning otherwise.
    if reasoning.mode is not ReasoningMode.DELIMITER and not reasoning.ends_within_start:
        others = [*(end + _after_reasoning(turn) for end in _spellings(format, reasoning.end)), *others]
    dropped = [
        it for it in _markers((*turn.headers, *format.ignored, *repeated(turn), *others)) if holds_token(it.text)
    ]
    joints = [it for it in _markers((*format.ignored, *others)) if not holds_token(it.text)]
    return Answer(
        written=EMPTY,
        parts=(),
        ends=tuple(_markers((*ends, *(_SPECIAL.sub("", end.strip()) for end in ends)))),
        dropped=tuple(dropped),
        headers=tuple(it for it in _markers(turn.headers) if not holds_token(it.text)),
        joints=tuple(joints),
        call_joints=tuple(joint for joint in joints if joint.text in _before_calls(turn)),
        # Special tokens are dropped everywhere, so a header that is a special token isn't needed here.
        header=Marker(turn.unasked if turn.unasked.strip() not in ("", *(it.core for it in dropped)) else ""),
        lead=_layout(turn.unasked) + turn.start_to_content,
        trail=trail,
        json=False,
        cleans=format.cleans_content,
    )


def _before_calls(turn: TurnTexts) -> tuple[str, ...]:
    """Return the joints that may immediately precede calls."""
    return turn.content_to_tools, turn.reasoning_to_tools, turn.start_to_tools


def _markers(texts: Iterable[str]) -> Iterator[Marker]:
    """Yield a marker for each string that is distinctive enough to be recognized. `∎` is distinctive, but `$` also occurs in prose."""
    for text in dict.fromkeys(texts):
        marker = text.strip()
        if len(marker) > 1 or (not marker.isascii() and unicodedata.category(marker)[0] in "SC"):
            yield Marker(text)


def names_in_openers(format: Format, blocks: Iterable[Reasoning]) -> Iterator[tuple[str, Reasoning]]:
    """Yield each tool name whose calls would start like a reasoning block, together with that block.

    If calls are `<NAME>…</NAME>`, `<think>` starts a call of the tool `think`.
    """
    for block in blocks:
        opener = block.start.strip()
        for syntax in format.syntaxes:
            at = syntax.function.index(Slot.NAME)
            before = "".join((syntax.section_start, syntax.call_start, *map(str, syntax.function[:at]))).strip()
            after = syntax.name_suffix.strip()
            name = opener.removeprefix(before).removesuffix(after)
            if at and after and opener == before + name + after:
                yield name, block


def _spellings(format: Format, marker: str) -> list[str]:
    """Return all spellings of a marker, starting with the format's own."""
    # For example, a format may define `<tool-call>` as another spelling of `<tool_call>`.
    others = [other for spelling in format.spellings if spelling.marker == marker.strip() for other in spelling.others]
    return [marker, *others] if marker else others


def _after_reasoning(turn: TurnTexts) -> str:
    """Return the longest whitespace between reasoning and content. Whitespace before calls is part of the calls."""
    # Return the whitespace before calls, which may be longer, only if it starts with the whitespace before content.
    to_content, to_tools = map(_layout, (turn.reasoning_to_content, turn.reasoning_to_tools))
    return to_tools if to_tools.startswith(to_content) else to_content


def _layout(joint: str) -> str:
    """Return the joint if it consists of whitespace, else ""."""
    return "" if joint.strip() else joint


# Order of the generated parts.


def ending(format: Format) -> Node:
    """Return a node for the whitespace between a closing marker and the end-of-turn token. The start of the whitespace may be missing."""
    # An answer before `\n<end>` ends with `\n`, unless the engine strips this line break together with `<end>`.
    before = _frame(format).trail
    ways = tuple(Literal(before[at:]) for at in range(len(before) + 1))
    return Choice(ways) if len(ways) > 2 else Optional(ways[0]) if before else EMPTY


@dataclass(frozen=True, slots=True)
class _Order:
    """Arranges the parts of an answer in the order in which a model generates them."""

    format: Format
    request: Request
    calls: Calls | None
    """Calls in the format's own syntax, if calls are allowed."""
    stops: tuple[str, ...]
    """Strings that can't occur in content."""
    thought_stops: tuple[str, ...]
    """Strings that can't occur in reasoning."""

    def whole_answer(self) -> Node:
        """Return the complete answer. The answer starts with the header if prompts don't contain the header."""
        unasked = self.format.turn.unasked
        return in_sequence(Optional(Literal(unasked)), self.answer()) if unasked else self.answer()

    def answer(self) -> Node:
        """Return the answer without its header: optional reasoning, followed by the other parts."""
        turn, markers = self.format.turn, self.format.reasoning
        if markers.holds_calls and turn.tools_first and self.calls is not None:
            return self.calls_or_answer(self.calls)
        direct = self.direct()
        if not markers.end:
            return direct
        answer = self.content_and_calls(turn.reasoning_to_content, turn.reasoning_to_tools, self.format.content)
        thought = Tag(Role.REASONING, Until(self.thought_stops))
        start, end = self.format._opening, markers.end
        # Empty reasoning, e.g. `<think></think>`, may be part of the prompt. The whitespace or words after it are optional.
        empty = dict.fromkeys(text for text in (markers.empty, turn.prefill_no_thinking) if markers.closed_in(text))
        # Skip empty reasoning that ends with a word, because the answer's first word would be glued to it.
        joints = [
            text.removeprefix(start + end) for text in empty if text.startswith(start + end) and _ends_apart(text)
        ]
        unseen = [self.content_and_calls("", "", self.format.content)] if markers.unseen else []
        after = Choice((answer, *unseen, *(in_sequence(Literal(joint), direct) for joint in joints)))
        inside = [in_sequence(thought, Literal(end), after)]
        if markers.holds_calls and self.calls is not None:
            inside.append(in_sequence(thought, Literal(turn.reasoning_to_tools), self.calls))
        # If reasoning has no start marker, all text before the end marker is reasoning, so the end marker is required.
        shown = markers.mode is not ReasoningMode.DELIMITER or bool(turn.prefill)
        others: list[Node] = [direct] if shown else []
        # Reasoning is optional here, because the template may have dropped it before the answer.
        if markers.unseen and shown:
            others.append(
                self.content_and_calls(turn.reasoning_to_content, turn.reasoning_to_tools, self.format._wrapper_alone)
            )
        for text in empty:
            if not text.startswith(start + end):
                following = Choice((answer, direct)) if _ends_apart(text) else answer
                closed = in_sequence(_write_words_for_none(text.removeprefix(start), start, end), following)
                (inside if text.startswith(start) else others).append(closed)
        # If the prompt already contains the start of reasoning, the grammar for the rest of the answer drops `start`. Reasoning without a
        # start marker starts with the prefill, which is optional.
        opened = Literal(start) if markers.start else Optional(Literal(start))
        return Choice((in_sequence(opened, Choice(tuple(inside))), *others))

    def direct(self) -> Node:
        """Return the answer without reasoning."""
        turn, wrapper, beside = self.format.turn, self.format._wrapper_alone, self.format.content_with_calls
        answer = self.content_and_calls(turn.start_to_content, turn.start_to_tools, wrapper)
        # A wrapper that only separates content from calls is optional if no calls are possible.
        missing = wrapper.start and not self.request.tools and beside is not None and not beside.start
        return Choice((answer, self.content(turn.start_to_content, Content()))) if missing else answer

    def calls_or_answer(self, calls: Calls) -> Node:
        """Return an answer that consists of calls or of content. Calls may follow reasoning only if it has no end marker."""
        # `Thought: …\nAction: f` and `Thought: …\nFinal Answer: Hi` are allowed, but `Final Answer:\nAction: f` isn't.
        turn = self.format.turn
        start, thought = Literal(self.format._opening), Tag(Role.REASONING, Until(self.thought_stops))
        thinking = in_sequence(start, thought, Literal(turn.reasoning_to_tools))
        run = in_sequence(calls, ending(self.format))
        called = in_sequence(Choice((thinking, Literal(turn.start_to_tools))), run)
        return called if self.request._call_required else Choice((replace(self, calls=None).answer(), called))

    def content_and_calls(self, to_content: str, to_tools: str, wrapper: Content) -> Node:
        """Return the node for content, calls, or both, in the orders that the format allows.

        `to_content` and `to_tools` are the joints before content and calls. `wrapper` contains the markers around content.
        """
        turn = self.format.turn
        content = self.content(to_content, wrapper)
        # Free text includes the whitespace before the end of the turn, but JSON and content with a closing marker don't.
        closed = wrapper.end.strip() or self.request.response_schema is not None
        ended = ending(self.format) if closed else EMPTY
        if self.calls is None:
            return in_sequence(content, ended)
        last = in_sequence(self.calls, ending(self.format))
        beside = wrapper if self.format.content_with_calls is None else self.format.content_with_calls
        followed = in_sequence(Literal(turn.content_to_tools), last)
        only_calls = in_sequence(
            Literal(to_tools), self.calls if turn.tools_first and not self.request._call_required else last
        )
        if beside is not wrapper and beside.wraps_empty:
            only_calls = in_sequence(Literal(to_content + beside.start + beside.end), followed)
        shown = self.calls.openers or turn.content_to_tools.strip()
        # If the prompt has opened the content, the content has to be closed before the calls.
        if self.request._call_required:
            opened = in_sequence(self.content(to_content, beside), followed)
            return Choice((only_calls, opened)) if beside.start and shown else only_calls
        if self.request.response_schema is not None:
            return Choice((in_sequence(content, ended), only_calls))  # The answer is either JSON or a call.
        if not turn.tools_first and not (shown or (self.calls.on_lines and self.calls.tools)):
            # Allow no calls after content, because the start of a call can't be recognized there.
            return Choice((content, only_calls))
        if not turn.tools_first and beside is wrapper:
            return Choice((in_sequence(content, Choice((followed, ended))), only_calls))
        if not turn.tools_first:
            spoken = in_sequence(self.content(to_content, beside), followed)
            return Choice((in_sequence(content, ended), spoken, only_calls))
        if turn.tools_to_content.strip():
            return Choice((content, only_calls))  # Text after the calls belongs to a separate turn.
        calls_first = in_sequence(only_calls, self.content(turn.tools_to_content, wrapper))
        if not turn.tools_to_content + wrapper.start + wrapper.end:
            return Choice((content, calls_first))  # Content after the calls may be empty.
        return Choice((content, only_calls, calls_first))

    def content(self, joint: str, wrapper: Content) -> Node:
        schema = self.request.response_schema
        text = Until(self.stops) if schema is None else JsonValue(schema)
        return in_sequence(Literal(joint + wrapper.start), Tag(Role.CONTENT, text), Literal(wrapper.end))


def _write_words_for_none(text: str, start: str, end: str) -> Node:
    """Return the text for empty reasoning, without the start marker. Some formats put words between the markers."""
    # The words in `<think>I need not think.</think>` are reasoning, so the parser returns them.
    words, closer, rest = text.partition(end.strip())
    if words.strip() in ("", start.strip()):
        return Literal(text)
    return in_sequence(Tag(Role.REASONING, Literal(words)), Literal(closer + rest))


def _ends_apart(text: str) -> bool:
    """Return whether a word may immediately follow `text`, because `text` doesn't end in a letter or digit."""
    return not text[-1].isalnum()
