"""What a rule saw: a sentence, the conversation, and the place in the rendering."""

from __future__ import annotations

from dataclasses import dataclass

from unrender.lint.conversations import Conversation

_AROUND = 60
"""Characters of a rendering that are shown on each side of a place."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing that is wrong."""

    text: str
    messages: Conversation
    excerpt: str = ""
    """The place in the rendering that shows it."""


def excerpt(text: str, word: str) -> str:
    """Return the surroundings of a word's last place in a rendering."""
    at = text.rfind(word)
    return around(text, max(at, 0), at + len(word))


def around(text: str, start: int, end: int) -> str:
    """Return a stretch of a rendering with what is beside it."""
    left, right = max(start - _AROUND, 0), min(end + _AROUND, len(text))
    return ("…" if left else "") + text[left:right] + ("…" if right < len(text) else "")
