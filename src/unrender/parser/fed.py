"""Records the text fed to the parser of a grammar made by hand, so that it can be saved and fed again.

Strategy: such a grammar's state is whatever nesting somebody has written, so what is saved is the text. A reading
depends on the text alone, not on its chunks, so that reading it again leads to the same place, in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unrender.machine.saved import Saved

_SPECIAL: Mapping[str, bool | None] = {"special": True, "ordinary": False, "unknown": None}
_WORDS = {special: word for word, special in _SPECIAL.items()}


class Fed:
    """The text that a parser was fed, and how the parser was made.

    The text is kept in stretches, by what the caller knew about special tokens in it.
    """

    __slots__ = ("begun", "continued", "known_ids", "stretches")

    def __init__(self, *, begun: str, continued: bool, known_ids: tuple[str, ...]) -> None:
        self.begun: str = begun
        """What the prompt has begun of the answer."""
        self.continued: bool = continued
        self.known_ids: tuple[str, ...] = known_ids
        self.stretches: list[tuple[bool | None, list[str]]] = []

    def copy(self) -> Fed:
        """Return an independent record of the same text."""
        other = Fed(begun=self.begun, continued=self.continued, known_ids=self.known_ids)
        other.stretches = [(special, list(pieces)) for special, pieces in self.stretches]
        return other

    def add(self, text: str, special: bool | None) -> None:
        """Record more text."""
        if not self.stretches or self.stretches[-1][0] is not special:
            self.stretches.append((special, []))
        self.stretches[-1][1].append(text)

    def state(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        texts = [{"kind": _WORDS[special], "text": "".join(pieces)} for special, pieces in self.stretches]
        known = list(self.known_ids)
        return {"begun": self.begun, "continued": self.continued, "known_ids": known, "fed": texts}

    @classmethod
    def restore(cls, saved: Saved) -> Fed:
        """Return the record that was saved."""
        fed = cls(
            begun=saved.text("begun"), continued=saved.flag("continued"), known_ids=tuple(saved.texts("known_ids"))
        )
        for item in saved.objects("fed"):
            fed.add(item.text("text"), item.choice("kind", _SPECIAL))
        return fed

    def __iter__(self) -> Iterator[tuple[bool | None, str]]:
        """Yield the stretches of text."""
        return ((special, "".join(pieces)) for special, pieces in self.stretches)
