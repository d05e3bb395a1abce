"""Writes the grammar for the rest of an answer in each dialect, from the format, the request and the prefill.

Strategy: the grammar of the complete answer is expanded and matched against the prefill. The unmatched part is the grammar of the rest.
Grammars and triggers are cached. Turns with equal formats, requests and prefills share these grammars and triggers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from unrender import nodes
from unrender.answer import Calls, Marker
from unrender.answer.build import answer_of, calls_of, ending, own_calls
from unrender.cache import SHARED, bytes_of
from unrender.dialects import DIALECT_OF, Dialect, Trigger, triggers_of
from unrender.dialects.context_free import bounded_nesting
from unrender.dialects.gbnf import write_gbnf
from unrender.dialects.lark import write_lark
from unrender.dialects.sample import Sample, drawer
from unrender.dialects.stops import Openness, Rest, flat, linked, unfoldings
from unrender.dialects.structural_tag import is_long, write_ebnf, write_structural_tag
from unrender.errors import GrammarError, RequestError, SchemaWarning
from unrender.format import Format
from unrender.grammar.expansion import Expansion, Values, expand
from unrender.grammar.handmade import Identity, ends_of, stopped_at, written_for
from unrender.json_values import thawed
from unrender.limits import MAX_DOCUMENT, STANDARD, Limits
from unrender.messages import Request
from unrender.nodes import Chars, Choice, Grammar, Literal, Node, Ref, Sequence, Until
from unrender.nodes.patterns import holds
from unrender.schema.reader import Unsupported
from unrender.signatures import expected_one_of


@dataclass(frozen=True, slots=True)
class Written:
    """The grammar for the rest of an answer in one dialect, with the schema keywords that the grammar doesn't enforce."""

    said: str
    """Text of the grammar, or JSON for a structural tag."""
    unsupported: tuple[Unsupported, ...]
    """The schema keywords that the grammar doesn't enforce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """The rest of the answer in one turn, after the `prefill`, which the prompt already contains.

    Every method raises `GrammarError` if the answer can't be written as a grammar:

    - The names of the tools are unknown.
    - The prefill doesn't match the handmade grammar.
    - The handmade grammar is nested too deeply.
    - All tools together exceed the limits.

    A `SchemaWarning` reports parts of the request that the grammar doesn't enforce:

    - a keyword of a tool's schema, with the tool and the path
    - a prefill with which no answer of the format starts
    - a tool that exceeds the limits by itself, so that its arguments may violate its schema
    - a Lark grammar whose lexer may reject valid answers
    """

    format: Format
    request: Request
    prefill: str = ""
    handmade: Grammar | None = None
    """A handmade grammar, used instead of the format's grammar."""
    limits: Limits = STANDARD
    in_call: bool = False
    """True if `prefill` starts with the first marker of a call or a sequence of calls. The grammar then covers the rest of the calls and
    the end of the turn.
    """
    following: str = ""
    """Text of calls that follow the call in `prefill`, if `in_call` is True."""
    further: Request | None = None
    """Request for calls after `following`. None if no more calls may follow."""

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """Triggers that show an engine the start of a call. Empty if the grammar applies from the start."""
        return () if self.handmade or self.in_call else triggers_of(self.format, self.request, self.prefill)

    @property
    @bounded_nesting
    def unsupported(self) -> tuple[Unsupported, ...]:
        """Schema keywords that at least one dialect doesn't enforce."""
        return tuple(dict.fromkeys(item for values in Values for item in self._expansion(values).unsupported))

    @bounded_nesting
    def written(self, dialect: Dialect) -> Written:
        """Return the grammar in a dialect, with the schema keywords that this grammar doesn't enforce. Emits no warnings.

        If there are `triggers`, GBNF also accepts text that starts at a trigger. So the grammar can be applied both from the start of the
        answer and lazily.
        """
        if dialect is Dialect.LARK:
            native = self._expansion(Values.SPELLED if self.in_call or self._calls_like_json else Values.NATIVE)
            text, uncompared = write_lark(native)
            return Written(text, (*native.unsupported, *uncompared))
        if dialect is Dialect.GBNF:
            run = calls_of(self.format, self.request)[0] if self.triggers else None
            spelled = self._expansion(Values.SPELLED, run)
            return Written(write_gbnf(spelled), spelled.unsupported)
        spelled = self._expansion(Values.SPELLED)
        # An engine's own JSON support can't continue JSON that has already started.
        if self.in_call or is_long(spelled):
            return Written(json.dumps(write_ebnf(spelled)), spelled.unsupported if self.in_call else ())
        native = self._expansion(Values.NATIVE)
        # Report the unenforced keywords of both expansions, because values that the engine doesn't support are spelled out.
        lost = dict.fromkeys((*native.unsupported, *spelled.unsupported))
        return Written(json.dumps(thawed(write_structural_tag(native, spelled))), tuple(lost))

    @bounded_nesting
    def drawer(self) -> Callable[[int], Sample]:
        """Return a function that maps a seed to a random answer. The grammar is built only once."""
        return drawer(self.grammar())

    @bounded_nesting
    def grammar(self, values: Values = Values.SPELLED) -> Grammar:
        """Return the grammar for the rest of the answer in plain nodes. `values` selects whether JSON is spelled out."""
        return self._expansion(values, roles=True).grammar

    def _expansion(self, values: Values, run: Calls | None = None, *, roles: bool = False) -> Expansion:
        """Return the grammar for the rest of the answer. If `run` is given, its calls are an alternative to the answer, starting at their
        first marker.
        """
        if self.handmade:
            return self._handmade(self.handmade, values, roles=roles)
        if self.in_call:
            expansion = self._calls(values, roles=roles)
            # Try strict matching first, because loose matching is ambiguous. For example, the space in `hour = ` may also start the line
            # that ends a value.
            whole, prefill = expansion.grammar, (self.prefill,)
            rest = resume_any(whole, prefill) or resume_any(whole, prefill, loose=True)
            if rest is None:
                raise GrammarError(f"no call starts with {self.prefill!r:.80}")
            return replace(expansion, grammar=rest)
        if self.request._call_required and own_calls(self.format) is None:
            raise GrammarError(
                "tool_choice: a call is required, but this template doesn't support tool calls; pass tool_format"
            )
        # The prefill may contain content, reasoning or the start of a call. The grammar covers the rest of the answer.
        whole = Grammar(answer_of(self.format, self.request).written)
        if run is None:
            return self._resumed(expand(whole, values, self.limits, roles=roles))
        # If an engine waits for a trigger, it applies the grammar from the trigger on. So the calls alone are an alternative to the answer.
        calls_alone = Sequence((run, ending(self.format)))
        expansion = expand(Grammar(Sequence((whole.root, calls_alone)), whole.rules), values, self.limits, roles=roles)
        both = expansion.grammar
        assert isinstance(both.root, Sequence)
        answer, calls = (Grammar(part, both.rules) for part in both.root.parts)
        # A trigger is a marker without the whitespace before it. So with `\n<call>`, the grammar starts at `<call>`.
        opener = run.openers[0]
        starts = [opener.lead, *([opener.lead + opener.core] if self.prefill.endswith(opener.core) else [])]
        resumed = self._resumed(replace(expansion, grammar=answer))
        options = (resumed.grammar.root, *(resume_after(calls, start).root for start in starts))
        return replace(resumed, grammar=Grammar(Choice(options), both.rules))

    def _calls(self, values: Values, *, roles: bool = False) -> Expansion:
        """Return a sequence of calls and the end of the turn, from the first marker on."""
        calls = calls_of(self.format, self.request)[0]
        parts: list[Node] = [calls]
        if self.following or self.further:
            parts = [replace(calls, close=Marker(), ends_turn=False), Literal(self.following)]
            ends: list[Node] = [Literal(calls.close.text)]
            if self.further:
                run = replace(calls_of(self.format, self.further)[0], open=Marker())
                ends.append(Sequence((Literal(calls.separator.text), run)))
            parts.append(Choice(tuple(ends)))
        whole = Grammar(Sequence((*parts, ending(self.format))))
        return expand(whole, values, self.limits, roles=roles)

    @bounded_nesting
    def called(self) -> Grammar:
        """Return the grammar for a sequence of calls in plain nodes, from the first marker on. The prefill is ignored."""
        return self._calls(Values.SPELLED).grammar

    def _handmade(self, grammar: Grammar, values: Values, *, roles: bool) -> Expansion:
        """Return the grammar for the rest of an answer that follows a handmade grammar."""
        whole, unsaid = written_for(stopped_at(grammar, ends_of(self.format.turn)), self.request)
        expansion = expand(whole, values, self.limits, roles=roles)
        rest = resume_after(expansion.grammar, self.prefill)
        return replace(expansion, grammar=rest, unsupported=(*unsaid, *expansion.unsupported))

    @property
    @bounded_nesting
    def begins(self) -> bool:
        """True if some answer of the format starts with the prefill."""
        whole = Grammar(answer_of(self.format, self.request).written)
        return any(
            self._after_begun(expand(whole, values, self.limits).grammar) is not None for values in reversed(Values)
        )

    @bounded_nesting
    def refused(self, texts: Iterable[str]) -> list[str]:
        """Return the strings that are not complete answers of the grammar.

        Strings that take too many steps to parse are omitted.
        """
        answer = self.grammar()
        openness = Openness(linked(answer.rules))
        found = []
        for text in texts:
            with suppress(GrammarError):
                rests = _after((answer.root,), text, answer.rules)
                ended = (
                    all(isinstance(part, Until) or openness.nullable(part) for part in flat(rest)) for rest in rests
                )
                found += [] if any(ended) else [text]
        return found

    def _resumed(self, answer: Expansion) -> Expansion:
        """Return the grammar for the text after the prefill.

        If no answer starts with the prefill, the grammar continues a different start that leaves the parser in the same state.
        """
        rest = self._after_begun(answer.grammar)
        if rest is not None:
            return replace(answer, grammar=rest)
        found = (resume_any(answer.grammar, (text,)) for text in self._read_alike())
        lost = Unsupported(
            path="prompt",
            keyword=f"the prefill {self.prefill!r:.80}",
            reason="no answer of the format starts with it; the grammar only covers the text after it",
        )
        rest = next(rest for rest in found if rest is not None)
        return replace(answer, grammar=rest, unsupported=(*answer.unsupported, lost))

    def _after_begun(self, answer: Grammar) -> Grammar | None:
        """Return the grammar for the text after the prefill, or None if no answer starts with the prefill.

        The prompt may open a reasoning block in a different way than the format.
        """
        try:
            return resume_any(answer, (self.prefill,)) or resume_any(answer, self._block())
        except GrammarError:  # The prefill takes too many steps to parse.
            return None

    def _read_alike(self) -> Iterator[str]:
        """Yield starts of answers that leave a parser in the same state as the prefill: in reasoning or in content."""
        markers, turn = self.format.reasoning, self.format.turn
        # For example, no answer starts with `Well: <think>hm`. But reasoning follows, as after `<think>`, so yield the start of reasoning.
        opener = markers.start.strip()
        if opener and opener in self.prefill and not markers.closed_in(self.prefill):
            yield markers.start
        yield turn.start_to_content + self.format.content.start
        yield ""

    def _block(self) -> Iterator[str]:
        """Yield the format's own text for a reasoning block that the prompt has opened.

        The prompt's whitespace may differ from the format's, and the prompt may already have closed the block. If the block is closed, one
        string is yielded for each text that may follow a block.
        """
        markers, turn = self.format.reasoning, self.format.turn
        # Allow other whitespace: the format's marker may be `<think>\n` although the prompt ends with `<think>`.
        if markers.start.strip() and self.prefill.strip() == markers.start.strip():
            yield markers.start
        words = self.prefill.replace(markers.start.strip(), "", 1).strip()
        if words and words == markers.end.strip():
            # For example, the format's block is `<think>\n\n</think>\n\n`, and the prompt contains `<think></think>` or only `</think>`.
            joints = dict.fromkeys(("", turn.reasoning_to_content, turn.reasoning_to_tools))
            yield from (markers.start + markers.end + joint for joint in joints)

    @property
    def _calls_like_json(self) -> bool:
        """True if JSON content and a call may start with the same characters.

        A lexer can distinguish `{` from `{"name": "` only if JSON is spelled out.
        """
        calls, beside = own_calls(self.format), self.request._calls_allowed and self.request.response_schema is not None
        return bool(beside and calls and calls.openers and calls.openers[0].core[0] in "{[")


def grammar_for(answer: Remainder, engine: str) -> str:
    """Return the grammar for the rest of an answer in the engine's dialect.

    Raises `RequestError` for an unknown engine, and `GrammarError` as `Remainder` does. Emits a `SchemaWarning` for each keyword that the
    grammar doesn't enforce. The warning points to the caller of the calling function.
    """
    if engine not in [*DIALECT_OF]:
        raise RequestError(expected_one_of("engine", DIALECT_OF, engine))
    dialect = DIALECT_OF[engine]
    found: Written = _cached(answer, dialect, lambda: answer.written(dialect))
    for item in found.unsupported:
        warnings.warn(str(item), SchemaWarning, stacklevel=3)
    return found.said


def triggers(answer: Remainder) -> tuple[Trigger, ...]:
    """Return the triggers that show an engine the start of a call."""
    found: tuple[Trigger, ...] = _cached(answer, "triggers", lambda: answer.triggers)
    return found


def _cached(answer: Remainder, what: str, make: Callable[[], Any]) -> Any:
    request = answer.request._key
    if request is None:
        return make()
    grammar = Identity(answer.handmade) if answer.handmade else None
    further = answer.further and answer.further._key
    if answer.further and further is None:
        return make()
    called = (answer.in_call, answer.following, further)
    key = "constraint", what, answer.format, grammar, request, answer.prefill, answer.limits, called
    return SHARED.made(key, make, lambda value: bytes_of(value, request) + _KEY_BYTES)


_KEY_BYTES = 500
"""Estimated size of a cache key in bytes, without the request."""


def resume_after(grammar: Grammar, prefill: str) -> Grammar:
    """Return the grammar for the text after `prefill`. Raises `GrammarError` if no answer starts with `prefill`.

    >>> resume_after(Grammar(Literal("<think>")), "<th").root
    Literal(text='ink>')
    """
    found = resume_any(grammar, (prefill,))
    if found is None:
        raise GrammarError(f"the prompt begins the answer with {prefill!r:.80}, which the format doesn't allow")
    return found


def resume_any(grammar: Grammar, prefill: Iterable[str], *, loose: bool = False) -> Grammar | None:
    """Return the grammar for the text after one of the strings in `prefill`, or None if no answer starts with any of them.

    If `loose` is True, whitespace around brackets, colons and commas of markers may differ from the grammar.

    >>> resume_any(Grammar(Literal("<think>")), ("a", "b")) is None
    True
    """
    rests = list(
        dict.fromkeys(rest for text in prefill for rest in _after((grammar.root,), text, grammar.rules, loose=loose))
    )
    options = tuple(rest[0] if len(rest) == 1 else Sequence(rest) for rest in rests)
    return Grammar(options[0] if len(options) == 1 else Choice(options), grammar.rules) if options else None


def _after(rest: Rest, text: str, rules: Mapping[str, Node], *, loose: bool = False) -> Iterator[Rest]:
    """Yield the nodes that remain after `text`, once for each way to parse it.

    Raises `GrammarError` after `MAX_DOCUMENT` steps.
    """
    # Use a stack instead of recursion. Each step may consume much text, e.g. a megabyte of free text.
    waiting: list[tuple[Rest, int]] = [(rest, 0)]
    for _ in range(MAX_DOCUMENT):
        if not waiting:
            return
        rest, at = waiting.pop()
        if at == len(text):
            yield rest
        elif rest:
            waiting.extend(reversed(list(_ways(rest[0], rest[1:], text, at, rules, loose=loose))))
    raise GrammarError(
        f"the prompt begins the answer with {text!r:.80}, which takes more than {MAX_DOCUMENT} steps to read"
    )


def reach(grammar: Grammar, text: str, steps: int) -> int | None:
    """Return the length of the longest prefix of `text` that may start an answer. Differences in whitespace around brackets are ignored.

    Returns None after `steps` steps without a result.

    >>> reach(Grammar(Literal("<think>")), "<thing>", 100)
    5
    """
    waiting: list[tuple[Rest, int]] = [((grammar.root,), 0)]
    furthest = 0
    known: dict[tuple[int, ...], Rest] = {}
    for _ in range(steps):
        if not waiting or furthest == len(text):
            return furthest
        rest, at = waiting.pop()
        furthest = max(furthest, at)
        # Loose matching reaches the same state in many ways. Nodes are compared by identity, so the table keeps them alive.
        state = (at, *map(id, rest))
        if state in known:
            continue
        known[state] = rest
        if not rest:
            continue
        if isinstance(rest[0], Literal | nodes.Layout):
            furthest = max(furthest, _along(rest[0].text, text, at)[1])
        waiting.extend(reversed(list(_ways(rest[0], rest[1:], text, at, grammar.rules, loose=True))))
    return None


_STRUCTURE = frozenset("{}[]():,=<>|")
"""Characters around which whitespace is ignored."""


def _along(literal: str, text: str, at: int) -> tuple[int, int]:
    """Match `literal` with `text` from position `at` on. Returns the end positions of the match in `literal` and in `text`.

    Whitespace around brackets, colons and commas may differ.
    """
    read = 0
    while read < len(literal) and at < len(text):
        wanted, met = literal[read], text[at]
        beside = text[at - 1 : at] in _STRUCTURE
        if wanted == met:
            read, at = read + 1, at + 1
        elif wanted.isspace() and (beside or met in _STRUCTURE):
            read += 1
        elif met.isspace() and (beside or wanted in _STRUCTURE or text[at - 1 : at].isspace()):
            at += 1
        else:
            break
    return read, at


def _ways(
    head: Node, tail: Rest, text: str, at: int, rules: Mapping[str, Node], *, loose: bool = False
) -> Iterator[tuple[Rest, int]]:
    """Yield the ways to parse `text` from position `at` on with `head`, each as the remaining nodes and the new position."""
    match head:
        case Literal(literal) | nodes.Layout(literal) if loose:
            read, end = _along(literal, text, at)
            # If the rest of the literal is only whitespace, that whitespace may be missing.
            if end == len(text) and read < len(literal):
                yield (Literal(literal[read:]), *tail), end
            elif not literal[read:].strip():
                yield tail, end
        case Literal(literal) | nodes.Layout(literal):
            if text.startswith(literal, at):
                yield tail, at + len(literal)
                # The prefill ends within the literal. After `<th` of `<think>`, `ink>` remains.
            elif literal.startswith(text[at : at + len(literal)]):
                yield (Literal(literal[len(text) - at :]), *tail), len(text)
        case Until(stops) | nodes.Tag(_, Until(stops)):
            yield from _through_text(stops, head, tail, text, at)
        case Chars():
            yield from _through_chars(head, tail, text, at)
        case Ref(name):
            yield (rules[name], *tail), at
        case _:
            yield from ((way, at) for way in unfoldings(head, tail) or ())


def _through_text(stops: tuple[str, ...], head: Node, tail: Rest, text: str, at: int) -> Iterator[tuple[Rest, int]]:
    ends = [found + len(stop) for stop in stops if (found := text.find(stop, at)) >= 0]
    yield from ((tail, cut) for cut in _cuts(tail, text, at, min((*ends, len(text)))))
    # If no stop follows, the free text may continue after the prompt.
    if not ends:
        yield (head, *tail), len(text)


def _cuts(tail: Rest, text: str, start: int, end: int) -> Iterator[int]:
    """Yield the positions where free text may end. If a literal follows the free text, these are only the positions where the literal may
    start.
    """
    literal = tail[0].text if tail and isinstance(tail[0], Literal) else ""
    if not literal:
        yield from range(start, end)
        return
    # If `<tool_call>` must follow the free text, `I think <to` can end only before `<to`. Trying every position would take one step per
    # character, which is too slow for a long prefill.
    found = text.find(literal, start)
    while 0 <= found < end:
        yield found
        found = text.find(literal, found + 1)
    last = range(max(start, len(text) - len(literal) + 1), end)
    yield from (cut for cut in last if literal.startswith(text[cut:]))


def _through_chars(head: Chars, tail: Rest, text: str, at: int) -> Iterator[tuple[Rest, int]]:
    # If the text ends here, more characters may follow: after `7`, `[0-9]{1,3}` allows up to two more digits.
    end = len(text) if head.maximum is None else min(at + head.maximum, len(text))
    fitting = next((place for place in range(at, end) if holds(head.ranges, text[place]) == head.negated), end)
    yield from ((tail, cut) for cut in range(at + head.minimum, min(fitting + 1, len(text))))
    if fitting == len(text):
        read = fitting - at
        left = None if head.maximum is None else head.maximum - read
        yield (replace(head, minimum=max(head.minimum - read, 0), maximum=left), *tail), fitting
