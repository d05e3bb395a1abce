"""The two halves of an answer's grammar: what is read, as typed parts, and what is written, as nodes.

A parser reads more than a model is allowed to write: parts in any order, other spellings, other call syntaxes. The halves are
made from the same Format (`unrender.assemble`), and what binds them is a test, not their types: whatever is written is read
as it was meant, `tests/conformance/test_one_grammar.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.grammar.nodes import Calls, Grammar


@dataclass(frozen=True, slots=True)
class EndOfTurn:
    """A text that ends a turn, taken with all white space after it."""

    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A marker between parts that carries nothing."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """Markers around content, each in all its spellings, the format's own first; "" where there is none."""

    opens: tuple[str, ...]
    closes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Reasoning between markers, each in all its spellings, the format's own first; `("",)` where nothing opens it."""

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
    """Content is JSON, which may be in a Markdown fence."""


Part = EndOfTurn | Dropped | Wrapper | Block | JsonAnswer | Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is read: free text with parts in it, in any order and any number."""

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
