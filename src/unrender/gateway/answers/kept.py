"""Stores finished answers as generated, so that the next prompt continues from the exact text.

Templates rarely render an answer exactly as it was generated: whitespace, key order and dropped reasoning differ. The store keeps the turn
and the raw text, indexed by the digest of the conversation up to that answer. Rules: an answer is found only by the same sender, with the
same model, tools and variables. Each answer has a size in bytes, and the least recently used ones are evicted when the store is full. If no
answer is found, the prompt is rendered, so processes don't need to share a store. Answers with equal digests are all kept, and
distinguished by call ids, by reasoning that clients send back, and by the id of the last completion. An ambiguous answer isn't used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock

from unrender import Turn
from unrender.cache import bytes_of
from unrender.gateway.answers.history import History, Place
from unrender.limits import MAX_FEW

_OWN = 2000
"""Estimated size of an answer's own objects, in bytes: its turn, its place, and its entries in the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """A finished answer."""

    place: Place
    turn: Turn
    """The turn that produced the answer."""
    text: str
    """The answer's text as generated."""
    calls: tuple[str, ...] = ()
    """Ids of the answer's calls, as sent to the client."""
    id: str = ""
    """Id of the completion that contains the answer."""
    weight: int = 0
    """Size of the turn in bytes, from `weight_of`."""

    @property
    def size(self) -> int:
        """Size of the answer and its turn, in bytes."""
        return self.weight + bytes_of(self.text, self.place.thoughts)


def weight_of(turn: Turn) -> int:
    """Return the size of the values that belong to a turn's request and conversation, in bytes."""
    request = turn.request
    parts = (turn.prompt, request.tools, request.response_schema, turn.tool_prompt, turn.known_ids, turn.warnings)
    return _OWN + bytes_of(*parts, *turn.media, *turn._held())


@dataclass(slots=True, kw_only=True)
class Conversations:
    """The stored answers of all models and senders. Above `most` bytes in total, the least recently used ones are evicted."""

    most: int
    weight: int = 0
    """Total size in bytes."""
    _answers: OrderedDict[bytes, tuple[KeptAnswer, ...]] = field(default_factory=OrderedDict)
    """Answers by digest, latest first. Digests are ordered by last use, with the most recent at the end."""
    _lock: Lock = field(default_factory=Lock)

    def __len__(self) -> int:
        return len(self._answers)

    def find(self, history: History, id: str = "") -> KeptAnswer | None:
        """Return the stored answer that these messages continue, or None if there is none.

        If `id` isn't empty, only the answers of the completion with this id match. If several answers match, one with the same call ids is
        preferred. Answers with different reasoning never match. Raises `LookupError` if several different answers match.
        """
        sent = history.answer
        if sent is None:
            return None
        with self._lock:
            known = [one for one in self._answers.get(sent.digest, ()) if not id or one.id == id]
            fitting = [one for one in known if one.place.admits(sent)]
            if fitting:
                self._answers.move_to_end(sent.digest)
        fitting = [one for one in fitting if one.place.ids == sent.ids] or fitting
        # Samples of one prompt may differ only in their reasoning, which the client dropped.
        if len({(one.text, one.turn.prompt) for one in fitting}) > 1:
            raise LookupError("several kept answers match")
        return next(iter(fitting), None)

    def keep(self, answer: KeptAnswer) -> None:
        """Store an answer, replacing an equal one, and evict the least recently used answers if the store is full.

        An answer larger than `most` is not stored.
        """
        if answer.size > self.most:
            return
        with self._lock:
            known = self._answers.pop(answer.place.digest, ())
            alike = (answer, *(one for one in known if _said(one) != _said(answer)))[:MAX_FEW]
            self._answers[answer.place.digest] = alike
            self.weight += _size(alike) - _size(known)
            while self.weight > self.most:
                _, oldest = self._answers.popitem(last=False)
                self.weight -= _size(oldest)


def _size(answers: Iterable[KeptAnswer]) -> int:
    return sum(answer.size for answer in answers)


def _said(answer: KeptAnswer) -> tuple[str, str, Place]:
    return answer.text, answer.turn.prompt, answer.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The stored answers that one sender may continue."""

    all: Conversations
    sender: bytes
    """Digest of the sender's credential."""
