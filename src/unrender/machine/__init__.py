"""Runs a program over text that arrives in chunks.

The input is a program, and text in chunks of any size. The output is a sequence of events for text, calls, and violations of the format.

This module defines the types that callers use: events, the ids of calls, and the policy for output that deviates from its format.

Read `interpreter` first: it defines the machine and the interface of instructions. `frames` defines backtracking points and the state of a
call, and stores the text that was parsed. `call_events` starts and ends calls. `instructions` contains instructions for text and
markers, and `thoughts` those for reasoning. `calls` contains the reader of calls, and `grammar_reader` the reader of handwritten grammars.
Both are coroutines, and a `Restart` lets a copy begin them anew. `program` compiles an answer tree into a tuple of instructions, each with
its address, and `combinators` compiles a handwritten grammar.

Rules:
- Events are final, and results don't depend on the chunk boundaries.
- An instruction that can't decide yet leaves the machine unchanged.
- Decisions depend only on the text, never on how much of it has arrived.
- Text events contain at least one character. Each call has one `ToolCallStarted` before its arguments and one `ToolCallFinished` after
  them. Indices of calls start at 0.
- An id that the model wrote is kept if it's unique. Otherwise, a new id is generated. Generated ids are random, so that requests, samples
  and turns never share an id. In formats with numbered ids, such as `functions.now:3`, the numbers increase throughout the conversation.
- Programs depend on the format and the request, and on the tools only if only a tool's name identifies a call. Therefore, programs are
  compiled once and shared. Whitespace inside and between markers is flexible, but it must match exactly next to raw values.
"""

from __future__ import annotations

import secrets
import string
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Literal

from unrender.errors import ParseError
from unrender.format import CallSyntax, Part, Slot
from unrender.limits import MAX_LISTED
from unrender.messages import CallStatus, Request, ToolCall
from unrender.signatures import checked
from unrender.values import Resumable


@dataclass(frozen=True, slots=True)
class ReasoningText:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ContentText:
    """A piece of the answer's content."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The start of a call, with its final name and id. `offered` is False if the tool wasn't offered."""

    index: int
    id: str
    name: str
    offered: bool = True
    position: int = field(default=0, compare=False, repr=False)
    """Index of the call's first character in the output. Negative if the call starts in the prompt."""


@dataclass(frozen=True, slots=True)
class ArgumentsText:
    """A fragment of a call's arguments, as JSON text. The fragments of a complete call form one JSON object."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """The end of a call, which is complete, truncated by the end of the output, or invalid."""

    index: int
    status: CallStatus
    text: str = field(default="", repr=False)
    """The text of a failed call, if the text was sent as the call's arguments."""
    position: int = field(default=0, compare=False, repr=False)
    """Index of the end of the call in the output."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Text that the format doesn't allow, with its position and the expected text.

    If `ends_reasoning` is True, `text` is the end marker of reasoning without a start marker. It's the end of the preceding `ContentText`.
    All content before it is reasoning, and the message contains it as such.
    """

    text: str
    position: int
    expected: str
    call: ToolCall | None = field(default=None, repr=False)
    """The failed call at this position, as far as it was parsed. None if the call is part of the message."""
    ends_reasoning: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class MessageFinished:
    """The end of the output, which is always the last event."""


Event = ReasoningText | ContentText | ToolCallStarted | ArgumentsText | ToolCallFinished | Malformed | MessageFinished


@dataclass(frozen=True, slots=True)
class BrokenText:
    """Text that looks like a call but couldn't be parsed as one. The parser returns such text as content, or drops it."""

    text: str


IdMaker = Callable[[int, str], str]
"""Type of functions that return an id, given the index of a call in the conversation and the tool's name."""
_ALPHABET = string.ascii_letters + string.digits
_PAIRS = tuple(first + second for second in _ALPHABET for first in _ALPHABET)
_TELLING = 6
"""Minimum length of an id that encodes the position of its call."""
_LENGTH = 9
"""Length of the most common kind of id."""


def random_id(position: int, _name: str, length: int = _LENGTH) -> str:
    """Return a random id of the given length.

    If the id is long enough, its last character encodes `position` (see `is_made_for`).
    """
    # Call the system's random generator only once: nine calls would cost more than parsing a short call.
    number, found = secrets.randbelow(len(_ALPHABET) ** length), ""
    while len(found) < length:
        number, at = divmod(number, len(_PAIRS))
        found += _PAIRS[at]
    # A short id can't encode the position, because all of its characters have to be random.
    return found[: length - 1] + _told(found[: length - 1], position) if length >= _TELLING else found[:length]


def is_made_for(id: str, position: int) -> bool:
    """Return whether `random_id` may have generated `id` for this position.

    Used to match tool results to their calls after an answer was parsed again with new ids. An unrelated id matches one position in 62 by
    chance.

    >>> is_made_for(random_id(3, "now"), 3), is_made_for(random_id(3, "now"), 4)
    (True, False)
    """
    return len(id) >= _TELLING and id[-1] == _told(id[:-1], position)


def _told(id: str, position: int) -> str:
    return _ALPHABET[(zlib.crc32(id.encode(errors="surrogatepass")) + position) % len(_ALPHABET)]


def numbered_id(position: int, _name: str) -> str:
    """Return an id that is the same in every run. It's meant for tests, snapshots and comparisons.

    >>> numbered_id(3, "now")
    'call00003'
    """
    return f"call{position:05}"


def id_maker(tools: CallSyntax) -> IdMaker:
    """Return the function that generates ids for calls in this syntax."""
    if tools.id_parts is None:
        return partial(random_id, length=tools.id_length or _LENGTH)
    first, last = tools.id_parts
    return partial(_counted_id, tools.function[first:last], tools.index_start)


def _counted_id(parts: Sequence[Part], start: int, position: int, name: str) -> str:
    values = {Slot.NAME: name, Slot.INDEX: str(start + position)}
    return "".join(values.get(part, "") if isinstance(part, Slot) else part for part in parts)


class CallIds(Resumable):
    """Assigns ids to the calls of one answer. `known` contains the ids of earlier calls.

    >>> ids = CallIds(numbered_id, ["a"])
    >>> ids.give(0, "now", ""), ids.give(1, "now", "a"), ids.give(2, "now", "b")
    ('call00001', 'call00002', 'b')
    """

    __slots__ = ("made", "make", "offset", "taken", "written")

    def __init__(self, make: IdMaker, known: Sequence[str] = ()) -> None:
        self.make: IdMaker = make
        self.offset: int = len(known)
        """Number of calls in the conversation before this answer."""
        self.taken: dict[str, int] = dict.fromkeys(known, -1)
        """Maps each id to the index of its call, or to -1 for calls before this answer."""
        self.made: list[str] = []
        """Generated ids, oldest first."""
        self.written: dict[str, str] = {}
        """Maps the id of each call to the id that the model wrote, if any."""

    def give(self, index: int, name: str, written: str) -> str:
        """Return the id of the call at `index` in the answer. `written` is the id that the model wrote, if any.

        After backtracking, the ids of calls at `index` or later can be used again.
        """
        offered = self._offered(index, name, written)
        # After backtracking, a call can reuse its own id.
        found = next(id for id in offered if id and self.taken.get(id, index) >= index)
        self.taken[found], self.written[found] = index, written
        if found != written:
            self.made.append(found)
        return found

    def _offered(self, index: int, name: str, written: str) -> Iterable[str]:
        yield written
        first = self.offset + index
        yield from (self.make(first + more, name) for more in range(MAX_LISTED))
        # A custom `make` may return the same id forever, so fall back to random ids.
        yield from (random_id(first, name) for _ in count())


UnknownTools = Literal["content", "call"]
CallRelease = Literal["complete", "streamed"]
UndeclaredReasoning = Literal["read", "content"]
FailedCalls = Literal["auto", "apart", "content", "call"]
Repairs = Literal["format", "offered", "none"]


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules for parsing ambiguous text. The defaults are for agents that execute calls.

    By default, a call of a tool that wasn't offered is content: it can't be executed, and is usually a quoted example. Models sometimes
    forget the end marker of reasoning, so a call at the end of unclosed reasoning counts. If the reasoning continues after a call, the call
    is part of the reasoning. Reasoning markers at the start of an answer count even if the template has no reasoning, because some models
    reason anyway. Calls are sent when they are complete, so that nobody executes a partial call. Use "streamed" if a grammar guarantees
    valid calls, or to display calls while they are generated.

    Raises `RequestError` for an invalid value. The error names the field.
    """

    unknown_tools: UnknownTools = "content"
    """Treatment of calls of tools that weren't offered. With "content", the text of the call is content, and a `Malformed` event is
    emitted. With "call", the call is returned with `offered=False`, unless it's in another format's syntax, where the text may be HTML or
    JSON.
    """
    tool_calls: CallRelease = "complete"
    """The time at which calls are sent. With "complete", a call is sent once it's complete. With "streamed", a call is sent while it's
    generated. If a streamed call fails, the call stays in the message with its status, and its text isn't repeated.
    """
    failed_calls: FailedCalls = "auto"
    """The place of a failed call's text in the result, unless the call was streamed. With "apart", the text is only in
    `Message.failed_calls` and the `Malformed` event. With "content", the text is also in the content. With "call", the text is returned
    as the arguments of a call with a failed status. Agents can then treat the text like invalid JSON. If such a call is cut off before
    its name, "call" means "apart". With "auto", a call that the token limit cut off is "apart", and any other failed call is "content".
    """
    undeclared_reasoning: UndeclaredReasoning = "read"
    """Treatment of a common reasoning marker at the start of an answer, if the format has no such marker. With "read", the text up to the
    end marker is reasoning, and a `Malformed` event is emitted. With "content", the text and the markers are content.
    """
    repair: Repairs = "format"
    """The damaged calls that are repaired. Each repair emits a `Malformed` event. With "format", calls with missing, repeated, broken or
    misspelled markers are repaired if the result is unambiguous and matches the schema. Calls in other well-known syntaxes count if they
    are the whole answer, undamaged, and match the schemas of offered tools. "offered" also accepts them after other text, if they start a
    line and end the answer, and repairs them. Use "offered" only if calls are confirmed before they run. With "none", calls aren't repaired.
    """


USUAL = Policy()
"""The default policy."""


def instead_of_call(request: Request, name: str) -> str:
    """Return a description of the call that the request requires, if a call of the tool `name` isn't allowed. Otherwise, return "".

    >>> instead_of_call(Request(tool_choice="named", named_tool="now"), "then")
    "a call of 'now'"
    """
    if request.tool_choice == "named" and name != request.named_tool:
        return _wanted(request)
    return ""


def instead_of_silence(request: Request, calls: int) -> str:
    """Return a description of the missing call if an answer with `calls` calls needs one, otherwise ""."""
    return _wanted(request) if not calls and request._call_required else ""


def refuse(events: Iterable[object]) -> None:
    """Raise `ParseError` for the first event that strict parsing doesn't allow."""
    refused = next((event for event in events if isinstance(event, Malformed)), None)
    if refused is not None:
        raise ParseError(refused.position, refused.expected, refused.text)


def _wanted(request: Request) -> str:
    return f"a call of {request.named_tool!r}" if request.named_tool else "a call of one of the tools"
