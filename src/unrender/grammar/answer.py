"""Defines the two halves of an answer's grammar: the reading half, of typed parts, and the writing half, of nodes.

A parser reads more than a model is allowed to write: parts in any order, other spellings, other call syntaxes. The halves are
made from the same Format (`unrender.grammar.assemble`), and what binds them is a test, not their types: whatever is written is read
as it was meant, `tests/conformance/test_one_grammar.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.format import CallSyntax
from unrender.nodes import Calls, Grammar


@dataclass(frozen=True, slots=True)
class EndOfTurn:
    """A text that ends a turn; white space after it is taken as well."""

    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A marker between parts that has no meaning."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """Markers around content, "" where there is none.

    Each has all its spellings, the format's own first.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Reasoning between markers; `("",)` when no marker opens it.

    Each marker has all its spellings, the format's own first.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...]
    joint: str
    """The most layout after the closing marker; white space beyond it is text."""
    holds_calls: bool = False
    """Calls are written inside; elsewhere they are only tolerated there."""
    declared: bool = True
    """The format has this reasoning; other well-known reasoning is read only at the start of an answer."""


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """Content that is JSON, possibly in a Markdown fence."""


@dataclass(frozen=True, slots=True)
class NoCalls:
    """A call syntax in a turn without calls: a block of special tokens that is empty says nothing; all else is text."""

    syntax: CallSyntax


Part = EndOfTurn | Dropped | Wrapper | Block | JsonAnswer | Calls | NoCalls


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The reading half: free text with any number of parts in it, in any order."""

    parts: tuple[Part, ...]
    """Where two begin with the same marker, the first counts."""
    lead: str = ""
    """Layout that may be before everything."""
    trail: str = ""
    """Layout that may be after everything."""
    cleans: bool = False
    """Text that begins a call and breaks off is kept apart from the free text."""


@dataclass(frozen=True, slots=True)
class AnswerGrammar:
    """Both halves of the grammar of one answer."""

    reads: Answer
    writes: Grammar
