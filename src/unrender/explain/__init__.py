"""Explains how an output is parsed, shows a format as a picture, and replays recorded chunks.

`explain` returns an `Explanation` with each character's role, the positions where parsing stopped, and hints. The output is parsed
normally, and then again with one change at a time. Examples of changes are another call syntax (`nearest`), missing markers, or no list of
tools. `hints` is a table of common problems. `picture` shows a format as a sample answer, and `replay` replays recorded chunks. A replay
parses the output once for each other chunking. Long outputs are split in two at evenly spaced positions instead of at every position.

Rules: explanations use the public parser and evidence in the output. Model names are never used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from os import PathLike
from typing import Any

from unrender.chat_template import ChatTemplate, as_template
from unrender.explain.hints import HINTS, Hint, HintCase
from unrender.explain.nearest import AnswerReading, Nearest, find_nearest
from unrender.format import Format
from unrender.limits import MAX_COUNTED
from unrender.machine import ArgumentsText, ContentText, Event, Malformed, MessageFinished, ReasoningText, numbered_id
from unrender.messages import Message, ToolCall
from unrender.nodes import Role
from unrender.parser.prompt_tail import read_prefill
from unrender.parser.streaming import Parser, Span
from unrender.printable import Line, Page, excerpt_at
from unrender.signatures import checked

__all__ = ["Explanation", "Replay", "explain", "replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A call or another part that couldn't be parsed, and the position at which parsing failed."""

    begun: int
    """Start of the part, in characters of the output."""
    position: int
    """Position of the first unexpected character."""
    expected: str
    """Description of the text that was expected there, e.g. `the name of one of the tools`."""
    found: str
    """The unexpected text, up to the end of the line, or "" at the end of the output."""

    def __str__(self) -> str:
        found = repr(self.found) if self.found else "the end of the output"
        return f"at character {self.position}: expected {self.expected}, found {found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Page):
    """The result of parsing an output, with the role of each character and the reasons for failures."""

    output: str
    format: Format
    """The format of the answer in this turn."""
    message: Message
    spans: tuple[Span, ...]
    """The roles of all characters, in order and without gaps."""
    events: tuple[Event, ...]
    stops: tuple[Stop, ...] = ()
    tolerances: tuple[str, ...] = ()
    """Tolerated deviations from the template's syntax."""
    nearest: Nearest | None = None
    hints: tuple[Hint, ...] = ()
    expected: tuple[str, ...] = ()
    """The strings that the format allows after the output, as in `Parser.expected`."""
    offered: bool = True
    """True if tools were offered."""

    @property
    def clean(self) -> bool:
        """True if everything was parsed, every call is complete, and no text looks like a missed call."""
        return not (self.message.failed_calls or self.stops or self.hints)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The parsed calls, followed by the failed ones, whose text is content."""
        return (*self.message.tool_calls, *self.message.failed_calls)

    def _page(self) -> Iterator[Line]:
        return page_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain JSON data."""
        spans = [
            {"role": str(it.role), "start": it.start, "end": it.end, "text": self.output[it.start : it.end]}
            for it in self.spans
        ]
        calls = [
            {"name": it.name, "status": str(it.status), "arguments": it.arguments_json, "id": it.id}
            for it in self.calls
        ]
        return {
            "clean": self.clean,
            "message": self.message.to_openai(),
            "spans": spans,
            "calls": calls,
            "stops": list(map(asdict, self.stops)),
            "tolerances": list(self.tolerances),
            "nearest": self.nearest and {**asdict(self.nearest), "calls": list(self.nearest.calls)},
            "hints": list(map(asdict, self.hints)),
            "expected": list(self.expected),
        }


# Analysis.


_QUESTION = ({"role": "user", "content": "Hello"},)
_FOUND = 40
"""Maximum number of characters of unexpected text to show."""


@checked
def explain(
    template: ChatTemplate | str | PathLike[str],
    output: str,
    *,
    tools: Sequence[Any] | None = None,
    messages: Sequence[Mapping[str, Any]] | None = None,
    prompt: str | None = None,
    **template_kwargs: Any,
) -> Explanation:
    """Explain how `output` is parsed, where parsing stopped, and how to fix it.

    `prompt` is the model's actual prompt, or the end of that prompt. Without it, the output is parsed as an answer to `messages`, or to a
    single question by default. `tools` are in OpenAI's format, and further keyword arguments are variables of the template. Invalid
    arguments may raise the errors of `ChatTemplate.prepare`. Model output never raises an error.

    >>> template = ChatTemplate.from_string("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}")
    >>> [str(span.role) for span in explain(template, "Hi!<|end|>").spans]
    ['content', 'marker']
    """
    template = as_template(template)
    turn = template.prepare(_QUESTION if messages is None else messages, tools=tools, **template_kwargs)
    turn = turn if prompt is None else replace(turn, prompt=prompt, prefill=read_prefill(turn.format, prompt))
    reading = AnswerReading.of(turn, output)
    nearest, best = find_nearest(reading)
    case = HintCase(reading=reading, nearest=nearest, best=best)
    hints = (Hint(name=name, text=text, fix=fix) for name, find in HINTS.items() for text, fix in find(case))
    # Use an unfinished parser, because a finished one expects no more text.
    waiting = turn.parser()
    waiting.feed(output)
    return Explanation(
        output=output,
        format=turn.format,
        message=reading.message,
        spans=tuple(_own(reading.spans)),
        events=reading.events,
        stops=tuple(_stop(malformed, output) for malformed in reading.malformed),
        tolerances=_tolerances(reading),
        nearest=nearest,
        hints=tuple(hints),
        expected=waiting.expected(),
        offered=turn.request.tools != (),
    )


def _own(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of the output, without those of the prefill, whose positions are negative."""
    for span in spans:
        if span.end > 0:
            yield Span(span.role, max(span.start, 0), span.end)


def _stop(malformed: Malformed, output: str) -> Stop:
    # Within a call, `position` is that of the unexpected character, or is after a repeated key. For other parts, `position` is the start of
    # the part, and `text` is the text parsed so far.
    begun = len(malformed.text) > 1 and output.startswith(malformed.text, max(malformed.position, 0))
    taken = len(malformed.text) if begun else 0
    position = malformed.position + taken
    found = output[position : position + _FOUND].split("\n", maxsplit=1)[0] or output[position : position + 1]
    return Stop(begun=malformed.position, position=position, expected=malformed.expected, found=found)


def _tolerances(reading: AnswerReading) -> tuple[str, ...]:
    """Return a sentence for each tolerance that was needed to parse the output.

    A tolerance is a deviation from the template's syntax that the format accepts.
    """
    others = (
        (sentence, AnswerReading.of(replace(reading.turn, format=format), reading.output))
        for sentence, format in _without_one(reading.turn.format)
    )
    # Without a tolerance, the message may be the same, but reported: e.g. calls in another well-known syntax that are the whole answer.
    return tuple(
        sentence
        for sentence, other in others
        if (other.message, other.malformed) != (reading.message, reading.malformed)
    )


def _without_one(format: Format) -> Iterator[tuple[str, Format]]:
    for syntax in format.tolerated:
        others = tuple(other for other in format.tolerated if other != syntax)
        why = syntax.why.rstrip(".") or "a variant of the template’s own"
        yield f"a call in another syntax: {why}", replace(format, tolerated=others)
    for spelling in format.spellings:
        for other in spelling.others:
            kept = replace(spelling, others=tuple(text for text in spelling.others if text != other))
            spellings = tuple(kept if it is spelling else it for it in format.spellings)
            yield f"{other!r} instead of {spelling.marker!r}", replace(format, spellings=spellings)
    for marker in format.ignored:
        rest = tuple(text for text in format.ignored if text != marker)
        yield f"{marker!r} ignored, because it has no meaning", replace(format, ignored=rest)


# Printing.


_SHOWN_AS = {Role.LAYOUT: "marker", Role.MARKER: "marker"}
"""Display names of some roles. Whitespace between markers is displayed like a marker."""
_PARTS, _MARGIN, _NARROWEST = 8, 13, 20
"""Maximum number of an answer's parts, width of the column before their text, and minimum width of their text."""
_COLUMNS = 100
"""Width of a page that isn't printed in a terminal."""


def page_of(explanation: Explanation, *, columns: int = _COLUMNS, everything: bool = False) -> Iterator[Line]:
    """Yield the result, the parts of the answer with a caret where parsing stopped, and the fix.

    Without `everything`, only the first parts and the main problem are shown.
    """
    reason, fix = _reason(explanation)
    yield [(reason[0].upper() + reason[1:], "bold")]
    yield from _parts(explanation, max(columns - _MARGIN, _NARROWEST), everything=everything)
    for tolerance in explanation.tolerances:
        yield [(f"Tolerated: {tolerance}.", "")]
    if fix:
        yield [("Fix: ", "bold"), (fix + ".", "")]


def _reason(explanation: Explanation) -> tuple[str, str]:
    """Return the main problem and its fix, or the result of parsing if there's no problem."""
    number, no_tools = len(explanation.message.tool_calls), "nothing can be a tool call: no tools were given"
    calls = f"{number or 'no'} tool call{'s' * (number != 1)}"
    if explanation.hints:
        hint = explanation.hints[0]
        return hint.text + "." * (not hint.text.endswith("?")), hint.fix
    if explanation.stops:
        read = f"parsed {calls}, with a mistake" if number else "parsing stopped"
        return f"{read}: expected {explanation.stops[0].expected}.", "`--all` shows what the model should write"
    if failed := explanation.message.failed_calls:
        return f"the call of {failed[0].name!r} is {failed[0].status}.", ""
    if not explanation.offered:
        return f"parsed, no problems. {no_tools.capitalize()}.", "Pass `--tools FILE`, or in Python `tools=[…]`"
    return f"parsed, no problems: {calls}.", ""


def _parts(explanation: Explanation, room: int, *, everything: bool) -> Iterator[Line]:
    """Yield a line for each part of the answer, and a line with a caret for each position where parsing stopped."""
    output = explanation.output
    stops, most = explanation.stops[:MAX_COUNTED], MAX_COUNTED if everything else _PARTS
    shown = 0
    for label, run in groupby(explanation.spans, key=lambda span: _SHOWN_AS.get(span.role, str(span.role))):
        spans = list(run)
        start, end = spans[0].start, spans[-1].end
        inside = [it for it in stops if start <= it.position < end or it.position == end == len(output)]
        if not inside and (shown >= most or (label == "marker" and not everything)):
            continue
        shown += 1
        for stop in inside or (None,):
            text, column = excerpt_at(output[start:end], stop.position - start if stop else 0, room)
            yield [("  ", ""), (label.ljust(_MARGIN - 2), "dim"), (text, label)]
            if stop:
                told = f"character {stop.position}: expected {stop.expected}"
                forms = (" " * column + f"^ {told}", f"{told} ^".rjust(column + 1), " " * column + "^")
                yield [(" " * _MARGIN, ""), (min(forms, key=lambda form: len(form) > room), "red")]


_CHARACTERS = 2_000_000
"""Maximum total number of characters that are parsed to test splits into two chunks. Parsing two million characters takes one or two
seconds.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Events returned for one chunk."""

    chunk: str | None
    """The chunk, or None for the end of the output."""
    events: tuple[Event, ...]
    held: int
    """Number of characters that are buffered after this chunk, because later text may change their meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Another chunking with a different result."""

    chunking: str
    """Description of the chunking, e.g. `single characters` or `cut at character 17`."""
    message: Message
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One recorded stream, and the results of other chunkings of it."""

    steps: tuple[Step, ...]
    message: Message
    events: tuple[Event, ...]
    """All events, with adjacent text events merged."""
    tried: int
    """Number of other chunkings tried."""
    differences: tuple[Difference, ...]


@checked
def replay(parser: Callable[[], Parser], chunks: Sequence[str]) -> Replay:
    """Feed recorded chunks to a new `parser()`, then the same text in other chunkings, and compare the results.

    The other chunkings are a single chunk, single characters, and every split in two. If there are too many such splits, only evenly spaced
    ones are tried.

    >>> from unrender import ChatTemplate
    >>> template = ChatTemplate.from_string("{{ messages[-1].content }}")
    >>> replay(template.prepare_rendered().parser, ["Hel", "lo"]).differences
    ()
    """
    new = parser()
    steps, events, message = _fed(new.copy(ids=numbered_id), chunks)
    chunkings, differences = [*_chunkings("".join(chunks))], []
    for chunking, others in chunkings:
        _, found, other = _fed(new.copy(ids=numbered_id), others)
        if (other, _comparable(found)) != (message, _comparable(events)):
            differences.append(Difference(chunking=chunking, message=other, events=found))
    return Replay(steps=steps, message=message, events=events, tried=len(chunkings), differences=tuple(differences))


def joined_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events with adjacent text events merged."""
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        match last, event:
            case ContentText(a), ContentText(b):
                found[-1] = ContentText(a + b)
            case ReasoningText(a), ReasoningText(b):
                found[-1] = ReasoningText(a + b)
            case ArgumentsText(i, a), ArgumentsText(j, b) if i == j:
                found[-1] = ArgumentsText(i, a + b)
            case _:
                found.append(event)
    return tuple(found)


def _fed(parser: Parser, chunks: Iterable[str]) -> tuple[tuple[Step, ...], tuple[Event, ...], Message]:
    """Feed chunks to a parser. Return the events of each chunk, all events with adjacent text events merged, and the message."""
    steps, fed = [], 0
    for chunk in chunks:
        events = tuple(parser.feed(chunk))
        fed += len(chunk)
        steps.append(Step(chunk=chunk, events=events, held=fed - parser._settled))
    steps.append(Step(chunk=None, events=tuple(parser.finish()), held=0))
    return tuple(steps), joined_events([event for step in steps for event in step.events]), parser.message


def _chunkings(text: str) -> Iterator[tuple[str, Iterable[str]]]:
    yield "all at once", [text]
    yield "single characters", text
    for cut in _cuts(len(text)):
        yield f"cut at character {cut}", [text[:cut], text[cut:]]


def _cuts(length: int) -> range:
    # Parsing all splits of n characters takes time proportional to n². So an output of 1,400 characters is split everywhere, but one of
    # 14,000 only at every hundredth position.
    every = max(1, -(-length * length // _CHARACTERS))
    return range(1, length, every)


def _comparable(events: Sequence[Event]) -> list[Event]:
    """Return the events without quoted malformed text, which by design depends on chunk boundaries, and without the last event."""
    said = (event for event in events if not isinstance(event, MessageFinished))
    return [replace(event, text="") if isinstance(event, Malformed) else event for event in said]
