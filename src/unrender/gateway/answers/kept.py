"""Stores finished answers as generated, so that the next prompt continues from the exact text.

Templates rarely render an answer exactly as it was generated: whitespace, key order and dropped reasoning differ. The store keeps the turn
and the raw text, indexed by the digest of the conversation up to that answer. Rules: an answer is found only by the same sender, with the
same model, tools and variables. Each answer has a size in bytes, and the least recently used ones are evicted. If no answer is found, the
prompt is rendered, so processes don't need to share a store. Answers with equal digests are all kept, and distinguished by call ids and by
reasoning that clients send back.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from sys import getsizeof
from threading import Lock
from typing import Any, NamedTuple

from unrender import Turn
from unrender.cache import bytes_of
from unrender.gateway.answers.history import History, Place
from unrender.limits import MAX_FEW

_OWN = 2000
"""Estimated size of an answer's own objects, in bytes: its turn, its place, and its entries in the tables."""


class Part(NamedTuple):
    """A value that several turns may reference."""

    value: Any
    weight: int
    """Size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptAnswer:
    """A finished answer."""

    place: Place
    turn: Turn
    """The turn that produced the answer."""
    text: str
    """The answer as generated."""
    calls: tuple[str, ...] = ()
    """Ids of the answer's calls, as sent to the client."""
    parts: tuple[Part, ...] = ()
    """Values that the turn references, from `Conversations.weighed`."""

    @property
    def own(self) -> int:
        """Size in bytes, without the shared parts."""
        texts = (self.text, *self.turn.known_ids, *self.turn.warnings, *self.place.thoughts)
        return _OWN + sum(map(getsizeof, texts)) + 8 * (len(texts) + len(self.parts))


@dataclass(slots=True, kw_only=True)
class Conversations:
    """The stored answers of all models and senders. If they exceed `most` bytes, the least recently used ones are evicted."""

    most: int
    weight: int = 0
    """Total size in bytes."""
    _answers: OrderedDict[KeptAnswer, None] = field(default_factory=OrderedDict)
    """Ordered by last use, with the most recent at the end."""
    _alike: dict[bytes, list[KeptAnswer]] = field(default_factory=dict)
    """Answers by digest, latest first."""
    _parts: dict[int, Part] = field(default_factory=dict)
    """Parts by the `id` of their value. A part that several answers share counts once."""
    _holders: Counter[int] = field(default_factory=Counter)
    """Number of answers that share each part, by the `id` of its value."""
    _lock: Lock = field(default_factory=Lock)

    def __len__(self) -> int:
        return len(self._answers)

    def weighed(self, turn: Turn) -> tuple[Part, ...]:
        """Return the values that a turn references, with their sizes. Stored values are not measured again."""
        # Measuring a new conversation takes a while, so this runs in the threads that render prompts.
        request, held = turn.request, turn._held()
        parts = (turn.prompt, request.tools, request.response_schema, turn.tool_prompt, *turn.media, *held)
        return tuple(self._parts.get(id(part)) or Part(part, bytes_of(part)) for part in parts)

    def find(self, history: History) -> KeptAnswer | None:
        """Return the answer that these messages continue, or None.

        If several answers match, the one with the same ids is preferred, then the latest. Answers with different reasoning never match.
        """
        sent = history.answer
        if sent is None:
            return None
        with self._lock:
            fitting = [one for one in self._alike.get(sent.digest, ()) if one.place.admits(sent)]
            found = next((one for one in fitting if one.place.ids == sent.ids), next(iter(fitting), None))
            if found is not None:
                self._answers.move_to_end(found)
            return found

    def keep(self, answer: KeptAnswer) -> None:
        """Store an answer, replacing an equal one, and evict the least recently used. An answer larger than `most` is not stored."""
        with self._lock:
            known = self._alike.setdefault(answer.place.digest, [])
            same = [one for one in known if (one.text, one.turn.prompt, one.place) == _said(answer)]
            for one in [*same, *known[MAX_FEW - 1 :]]:
                if one in self._answers:
                    self._drop(one)
            self._alike.setdefault(answer.place.digest, []).insert(0, answer)
            self._answers[answer] = None
            added = answer.own + sum(map(self._hold, answer.parts))
            self.weight += added
            if added > self.most:  # drop only this one, not all older answers
                self._drop(answer)
            self._make_room()

    def _make_room(self) -> None:
        while self.weight > self.most and self._answers:
            self._drop(next(iter(self._answers)))

    def _drop(self, answer: KeptAnswer) -> None:
        del self._answers[answer]
        alike = self._alike[answer.place.digest]
        alike.remove(answer)
        if not alike:
            del self._alike[answer.place.digest]
        self.weight -= answer.own + sum(map(self._release, answer.parts))

    def _hold(self, part: Part) -> int:
        """Add a holder of a part and return the added bytes."""
        key = id(part.value)
        self._holders[key] += 1
        self._parts.setdefault(key, part)
        return self._parts[key].weight if self._holders[key] == 1 else 0

    def _release(self, part: Part) -> int:
        """Remove a holder of a part and return the freed bytes."""
        key = id(part.value)
        self._holders[key] -= 1
        if self._holders[key]:
            return 0
        del self._holders[key]
        return self._parts.pop(key).weight


def _said(answer: KeptAnswer) -> tuple[str, str, Place]:
    return answer.text, answer.turn.prompt, answer.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The stored answers that one sender may continue."""

    all: Conversations
    sender: bytes
    """Digest of the sender's credential."""
