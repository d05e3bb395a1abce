"""Assigns a unique id to each call of a conversation, in a form that templates accept.

Strategy: an id that the model wrote is kept if it's unique. Otherwise, a new id is generated. Generated ids are random, so that requests,
samples and turns never share an id. In formats with numbered ids, such as `functions.now:3`, the numbers increase throughout the
conversation.
"""

from __future__ import annotations

import secrets
import string
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count

from unrender.format import CallSyntax, Part, Slot
from unrender.limits import MAX_LISTED
from unrender.values.resumable import Resumable

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
        found = written or self.make(self.offset + index, name)
        # After backtracking, a call can reuse its own id.
        if not found or self.taken.get(found, index) < index:
            offered = self._offered(index, name, written)
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
