"""Defines the evidence of a mistake: a sentence, the conversation, and the place in the rendering."""

from __future__ import annotations

from dataclasses import dataclass

from unrender.lint.conversations import Conversation

_AROUND = 60
"""Characters of a rendering that are shown on each side of a place."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The evidence of one mistake."""

    text: str
    messages: Conversation
    excerpt: str = ""
    """The place in the rendering that shows it."""


def excerpt(text: str, word: str) -> str:
    """Return the last place of a word in a rendering, with the text around it."""
    at = text.rfind(word)
    return around(text, max(at, 0), at + len(word))


def around(text: str, start: int, end: int) -> str:
    """Return `text[start:end]` with some of the text around it."""
    left, right = max(start - _AROUND, 0), min(end + _AROUND, len(text))
    return ("…" if left else "") + text[left:right] + ("…" if right < len(text) else "")
