"""Builds the Answer tree of one turn from a Format and a Request: all that the fields of a call syntax mean is said here.

Strategy: the calls depend on the format alone, but for the tools that may be called. They, reasoning and content are the
parts, which are read wherever they are; `written` puts the same parts into the order in which a model writes them.
Rule: whatever is written is read as it was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from unrender.answer.literals import json_tokens, keyed_tokens, tokens
from unrender.answer.markers import (
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
from unrender.answer.nodes import Answer, ArgumentsPart, Calls, ContentPart, Elements, Marker, ReasoningPart
from unrender.answer.signs import call_signs
from unrender.answer.written import Order
from unrender.cache import kept
from unrender.format import CallSyntax, Format, Reasoning, Skeleton, Slot, TurnTexts
from unrender.format.parts import text_of
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.nodes import Literal, Tag, children

_BLANK_LINE = "\n\n"
"""The layout after reasoning whose format nobody knows: what most models write."""


def answer_of(format: Format, request: Request, known: Collection[Reasoning] = ()) -> Answer:
    """Return what one answer may be, from the end of the assistant's header to the end of the turn.

    `known` are markers of reasoning that are also read at the start of an answer, when the format does not have them.
    """
    calls = calls_of(format, request)
    unasked, silent = format.turn.unasked, list(dropped(format))
    joints, before_calls = list(joints_in_words(format)), joints_before_calls(format.turn)
    # A special token is dropped wherever it is.
    header = "" if layout(unasked) or unasked.strip() in map(str.strip, silent) else unasked
    own = next((found for found in calls if found.own), None)
    answer = Answer(
        written=Order(format, request, own, _stops(format, calls)).whole_answer(),
        parts=tuple(_parts(format, calls if request.calls_allowed else _empty_calls(format), known)),
        ends=tuple(map(Marker, ends(format))),
        dropped=tuple(map(Marker, silent)),
        headers=tuple(map(Marker, headers_in_words(format))),
        joints=tuple(map(Marker, joints)),
        call_joints=tuple(Marker(joint) for joint in joints if joint in before_calls),
        header=Marker(header),
        lead=layout(unasked) + format.turn.start_to_content,
        trail=trail(format),
        json=request.response_schema is not None,
        cleans=format.cleans_content,
    )
    assert not (unread := list(_unread(format, answer))), f"written, and not read: {unread}"
    return answer


def _unread(format: Format, answer: Answer) -> Iterator[str]:
    """Yield what is written between parts, and is not made of markers that are read; there should be none."""
    markers = [*answer.ends, *answer.dropped, *answer.headers, *answer.joints, answer.header]
    for part in answer.parts:
        markers += [] if isinstance(part, Calls) else [*part.open.spelled, *part.close.spelled]
    # A prompt has words of its own where it opens reasoning, and behind what it writes for none.
    empty, end = (format.reasoning.empty, format.turn.prefill_no_thinking), format.reasoning.end.strip()
    behind = (text.partition(end)[2].strip() for text in empty if end)
    known = {format.opening.strip(), *behind, *(marker.core for marker in markers)}
    waiting = [answer.written]
    for node in waiting:
        text = node.text if isinstance(node, Literal) else ""
        for marker in sorted(known - {""}, key=len, reverse=True):
            text = text.replace(marker, "")
        yield from [text] if text.strip() else []
        # What stands in a role is reasoning or content.
        waiting += () if isinstance(node, Tag) else children(node)


def _parts(
    format: Format, calls: Iterable[Calls], known: Iterable[Reasoning]
) -> Iterator[ReasoningPart | ContentPart | Calls]:
    """Yield what is in the free text of an answer."""
    if format.reasoning.end:
        yield _thought(format, format.reasoning)
    for wrapper in format.wrappers:
        if (wrapper.start + wrapper.end).strip():
            yield ContentPart(open=_marker(format, wrapper.start), close=_marker(format, wrapper.end))
    yield from calls
    yield from (_thought(format, other) for other in _undeclared(format, known))


def _thought(format: Format, markers: Reasoning) -> ReasoningPart:
    """Return reasoning between these markers, and the layout after it."""
    declared = markers is format.reasoning
    return ReasoningPart(
        open=_marker(format, markers.start) if markers.start.strip() else Marker(),
        close=_marker(format, markers.end),
        joint=after_reasoning(format.turn) if declared else _BLANK_LINE,
        holds_calls=markers.holds_calls,
        declared=declared,
    )


def _undeclared(format: Format, known: Iterable[Reasoning]) -> list[Reasoning]:
    """Return the reasoning that may begin an answer though the format does not have it: other openers of its own block."""
    own = format.reasoning
    begun = set(_openers(format))
    # Where `<think>` is the format's own, `<thought>` is read as well only if `</think>` ends it too.
    others = [other for other in known if other.start.strip() not in begun]
    return [other for other in others if not own.end or other.end.strip() == own.end.strip()]


def _openers(format: Format) -> Iterator[str]:
    """Yield every marker that is already taken: openers of the format's parts, and markers that are dropped."""
    between = (*ends(format), *dropped(format), *headers_in_words(format), *joints_in_words(format))
    yield from map(str.strip, (format.reasoning.start, *between))
    texts = [wrapper.start for wrapper in format.wrappers]
    texts += [text for syntax in format.syntaxes for text in syntax.openers]
    yield from (text.split()[0] for text in texts if text.strip())


def _stops(format: Format, calls: Iterable[Calls]) -> tuple[str, ...]:
    """Return what free text does not hold, since the parser would take it for a marker."""
    # Free text that held "<tool_call>" would be read as a call, which the model did not mean.
    parts = [text for wrapper in format.wrappers for text in (wrapper.start, wrapper.end)]
    parts += [format.opening, format.reasoning.end]
    texts = [*ends(format), *dropped(format)]
    # Where no prompt writes the header, an answer that begins with it is one after its header.
    texts += [header for header in headers_in_words(format) if header.strip() in format.turn.unasked]
    texts += [*joints_in_words(format), *(text for part in parts for text in spellings(format, part))]
    texts += [sign for found in calls for sign in call_signs(found)]
    stops = dict.fromkeys(text.strip() for text in texts if text.strip())
    # Text ends at the first stop: one that begins before another's end hides it.
    return tuple(stop for stop in stops if not any(other in stop[:-1] for other in stops if other != stop))


# Calls.


def calls_of(format: Format, request: Request) -> list[Calls]:
    """Return the calls that may be made in this turn, those in the primary syntax first."""
    if not request.calls_allowed:
        return []
    tools, most = offered(request), 1 if request.one_call else None
    return [replace(calls, tools=tools, maximum=most or calls.maximum) for calls in calls_in(format)]


def offered(request: Request) -> tuple[Tool, ...] | None:
    """Return the tools that may be called in this turn; None when any name may be."""
    if request.tool_choice is ToolChoice.NAMED and request.tools is not None:
        return tuple(tool for tool in request.tools if tool.name == request.named_tool)
    return request.tools


@kept(10_000)
def calls_in(format: Format) -> tuple[Calls, ...]:
    """Return the calls that are read, to any tool, those in the format's own syntax first."""
    closing = {text.strip() for text in (*ends(format), *dropped(format))}
    return tuple(calls_in_syntax(format, syntax, closing) for syntax in format.syntaxes)


def own_calls(format: Format) -> Calls | None:
    """Return the calls in the format's own syntax; None where it has none."""
    return next((calls for calls in calls_in(format) if calls.own), None)


def _empty_calls(format: Format) -> Iterator[Calls]:
    """Yield the calls whose empty blocks are read though none may be made: those of special tokens, with brackets."""
    special = {"", *format.preserved_tokens}
    for calls in calls_in(format):
        # `<calls>[]</calls>`: models write an empty block where they make no call.
        markers = (calls.open, calls.close, calls.call_open, calls.call_close)
        if all(marker.core.strip("[]").strip() in special for marker in markers):
            yield replace(calls, forbidden=True)


def calls_in_syntax(format: Format, syntax: CallSyntax, closing: Collection[str] = ()) -> Calls:
    """Return the calls in one syntax; `closing` are the markers that end a turn, or are dropped."""
    turn, own, split = format.turn, syntax is format.tools, _splitter(syntax)
    # `Hi <call>` and `</think>\n\n<call>`: less layout than either is read as well.
    joints = joints_before_calls(turn)
    leads = sorted(dict.fromkeys(map(layout, joints)), key=len, reverse=True)
    # `to=f {…}`: nothing begins a call but the ` to=` that the template writes between content and calls.
    unmarked = not syntax.openers
    shown = dict.fromkeys(joint for joint in joints[:2] if unmarked and joint.strip())
    opened = _marker(format, syntax.section_start, split)
    return Calls(
        open=replace(opened, others=(*opened.others, *(Marker(joint, tuple(split(joint))) for joint in shown))),
        close=_closer(syntax.section_end, split, closing),
        call_open=_marker(format, syntax.call_start, split),
        call_close=_closer(syntax.call_end, split, closing),
        separator=Marker(syntax.separator, tuple(tokens(syntax.separator))),
        function=_pieces(format, syntax.function, split),
        arguments=_arguments(syntax, split),
        envelope=syntax.envelope,
        id_parts=syntax.id_parts,
        index_start=syntax.index_start,
        id_length=syntax.id_length,
        whole=syntax.whole,
        commas=_takes_commas(syntax),
        own=own,
        cleans=format.cleans_content,
        ends_turn=(syntax.section_end.strip() or syntax.call_end.strip()) in turn.ends,
        leads=tuple(lead for at, lead in enumerate(leads) if not any(longer.endswith(lead) for longer in leads[:at])),
        on_lines=_on_lines(turn, syntax),
        maximum=None if syntax.parallel else 1,
    )


def names_matter(format: Format) -> bool:
    """Return whether the tools' names decide where a call begins.

    They do where a call has no marker and begins with a name on a line of its own.
    """
    return any(_on_lines(format.turn, syntax) for syntax in format.syntaxes)


def _on_lines(turn: TurnTexts, syntax: CallSyntax) -> bool:
    # `weather\n{"city": "Paris"}`: nothing but a line with the name of a tool shows that a call begins.
    unmarked = not syntax.openers and not syntax.arguments.entry
    return unmarked and "\n" in layout(turn.content_to_tools)


def _takes_commas(syntax: CallSyntax) -> bool:
    """Return whether calls are a list in code, in which some templates drop commas (`[f(a="x"b=3)]`), or show one call alone.

    Models write what the language wants: `[f(a="x", b=3), g()]`.
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
    )


# Markers.


_Splitter = Callable[[str], list[str]]


def _splitter(syntax: CallSyntax) -> _Splitter:
    """Return the function that splits the literals of a call into pieces."""
    if syntax.envelope:
        return json_tokens
    return keyed_tokens if any('":' in text_of(part) for part in syntax.function) else tokens


def _marker(format: Format, text: str, split: _Splitter = tokens) -> Marker:
    """Return a marker with all its spellings."""
    first, *others = (Marker(spelling, tuple(split(spelling))) for spelling in spellings(format, text) or [""])
    return replace(first, others=tuple(others))


def _pieces(format: Format, parts: Skeleton, split: _Splitter) -> Elements:
    return tuple(part if isinstance(part, Slot) else _marker(format, part, split) for part in parts)


def _closer(text: str, split: _Splitter, ends: Collection[str]) -> Marker:
    """Return a marker that closes calls, with an end of turn in it as a piece of its own."""
    # `</call><|end|>` where `<|end|>` ends the turn: engines strip its token, and deliver `</call>`.
    core = text.rstrip()
    end = max((end for end in ends if core.endswith(end) and core != end), key=len, default="")
    apart = f"{text.removesuffix(end)} {end}" if end and text == core else text
    return Marker(text, tuple(split(apart)))
