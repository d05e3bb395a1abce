"""Replays recorded chunks, to show the events of each chunk, and to check that other chunkings give the same result.

Strategy: the output is parsed once for each other chunking. Long outputs are split in two at evenly spaced positions instead of at every
position. `tried` is the number of chunkings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from unrender.machine.events import ArgumentsText, ContentText, Event, Malformed, MessageFinished, ReasoningText
from unrender.machine.ids import numbered_id
from unrender.messages import Message
from unrender.parser.streaming import Parser
from unrender.signatures import checked

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
    """Description, e.g. Description of the chunking, e.g. `single characters` or `cut at character 17`."""
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
    steps, recorded = _record(new.copy(ids=numbered_id), chunks)
    tried, differences = 0, []
    for chunking, message, events in _others(lambda: new.copy(ids=numbered_id), "".join(chunks)):
        tried += 1
        if (message, _comparable(events)) != (recorded.message, _comparable(events_of(steps))):
            differences.append(Difference(chunking=chunking, message=message, events=joined_events(events)))
    return Replay(
        steps=steps,
        message=recorded.message,
        events=joined_events(events_of(steps)),
        tried=tried,
        differences=tuple(differences),
    )


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


def events_of(steps: Sequence[Step]) -> list[Event]:
    """Return the events of all steps, in order."""
    return [event for step in steps for event in step.events]


def _record(parser: Parser, chunks: Sequence[str]) -> tuple[tuple[Step, ...], Parser]:
    steps, fed = [], 0
    for chunk in chunks:
        events = tuple(parser.feed(chunk))
        fed += len(chunk)
        steps.append(Step(chunk=chunk, events=events, held=fed - parser._settled))
    steps.append(Step(chunk=None, events=tuple(parser.finish()), held=0))
    return tuple(steps), parser


def _others(parser: Callable[[], Parser], text: str) -> Iterator[tuple[str, Message, list[Event]]]:
    yield "all at once", *_fed(parser(), [text])
    yield "single characters", *_fed(parser(), text)
    for cut in _cuts(len(text)):
        yield f"cut at character {cut}", *_fed(parser(), [text[:cut], text[cut:]])


def _fed(parser: Parser, chunks: Sequence[str]) -> tuple[Message, list[Event]]:
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events += parser.finish()
    return parser.message, events


def _cuts(length: int) -> range:
    # Parsing all splits of n characters takes time proportional to n². So an output of 1,400 characters is split everywhere, but one of
    # 14,000 only at every hundredth position.
    every = max(1, -(-length * length // _CHARACTERS))
    return range(1, length, every)


def _comparable(events: Sequence[Event]) -> list[Event]:
    """Return the events without quoted malformed text, and with adjacent text merged. By design, the quoted text and the splitting of text
    events depend on chunk boundaries.
    """
    quiet = [replace(event, text="") if isinstance(event, Malformed) else event for event in events]
    return [event for event in joined_events(quiet) if not isinstance(event, MessageFinished)]
