"""Defines the pieces of a prompt, and encodes them as token ids.

Input: the text of a prompt in pieces, each with its owner. Output: token ids in which no text of a message is a special token.

Start with `Piece`. `encoder` encodes pieces with any tokenizer.

Rules: this folder knows no template. `conversation.pieces` finds the owner of each piece.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

AUTHORS = ("system", "developer")
"""Roles of messages from the author of the application. Markers in these messages are special tokens."""
PieceKind = Literal[
    "template",
    "content",
    "reasoning",
    "result",
    "argument",
    "argument_name",
    "name",
    "description",
    "document",
    "answer",
    "unknown",
]
"""Kinds of text in a prompt. "name" is the name of a tool or speaker, or the id of a call. "description" is any other text of a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a prompt, with its owner."""

    text: str
    kind: PieceKind = "template"
    """The kind of text. "answer" is text that the model wrote in this prompt. "unknown" means that the owner isn't certain."""
    message: int | None = None
    """Index of the message that contains this part, or to whose header and end it belongs. None for the end of the answer, the generation
    prompt, and tools.

    In a user message in Anthropic's form, each tool result counts as a separate message.
    """
    role: str = ""
    """Role of the message, for parts that aren't the template's text."""
    where: str = ""
    """Path of the text in the request, e.g. `messages[2].content` or `tools[0]`. Empty for the template's text."""

    @property
    def body(self) -> bool:
        """True for text that comes from a message, a tool or a document, and for text whose owner isn't certain."""
        return self.kind not in ("template", "answer")


class PromptText(NamedTuple):
    """A text of a message, a tool or a document, before the template writes it."""

    text: str
    role: str
    """Role of the message. Empty for tools and documents."""
    where: str
    """Path of the text in the request."""
    rewritten: bool
    """True if the template might remove a part of the text, and so join the parts around it."""


def flagged(pieces: Iterable[Piece], special_roles: Collection[str] = AUTHORS) -> list[tuple[str, bool]]:
    """Return the text of each piece, with a flag that is True if the text must not contain special tokens."""
    return [(piece.text, piece.body and piece.role not in special_roles) for piece in pieces]
