"""Defines the nodes of an Answer: the parts of a model's answer, each between its markers, as frozen data.

What is written has an order, and what is read has none: parts come there in any order and number. So an `Answer` holds
both, made of the same parts: `written` is a node that says how they follow each other, `parts` are islands in free text.
Every walker knows an answer by these nodes alone; only `answer.build` knows the fields of a Format that they come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from unrender import nodes
from unrender.answer.literals import TOKEN, is_distinctive, is_sign, without_fences
from unrender.format import Codec, Envelope, Slot
from unrender.messages.wire import Tool


@dataclass(frozen=True, slots=True)
class Marker:
    """A literal: written as `text`, and read in pieces with any white space between them."""

    text: str = ""
    pieces: tuple[str, ...] = ()
    """An end of turn at the end is a piece of its own: engines strip that token."""
    others: tuple[Marker, ...] = ()
    """Other spellings that are read; after a value, they are written as well."""

    def __bool__(self) -> bool:
        """Return whether it is more than layout."""
        return bool(self.core)

    @property
    def core(self) -> str:
        """The marker without the layout around it."""
        return self.text.strip()

    @property
    def lead(self) -> str:
        """The layout before it."""
        return self.text[: len(self.text) - len(self.text.lstrip())]

    @property
    def after(self) -> str:
        """The layout after it."""
        return self.text[len(self.lead) + len(self.core) :]

    def before(self, piece: str) -> str:
        """Return the layout before one of its pieces."""
        text = self.text[: self.text.find(piece)]
        return text[len(text.rstrip()) :]

    @property
    def spelled(self) -> tuple[Marker, ...]:
        """All its spellings, the format's own first; empty without a marker."""
        return tuple(filter(None, (self, *self.others)))

    @property
    def guarded(self) -> bool:
        """True if it ends in a letter and wants white space after it: it must not be found inside a longer word."""
        return bool(self.after) and self.core[-1:].isalnum()

    def variants(self) -> Iterator[str]:
        """Yield the marker with ever less of its leading layout."""
        # `\n\n<call>`, `\n<call>` and `<call>`: models write less layout than the template does.
        yield from (self.lead[at:] + self.core for at in range(len(self.lead) + 1))


Element = Marker | Slot
Elements = tuple[Element, ...]
"""A marker and the parts between markers, in the order in which they are written."""


def literal_of(piece: Element = Marker()) -> str:
    """Return the text of a marker; nothing for a slot."""
    return piece.text if isinstance(piece, Marker) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart(nodes.AnswerPart):
    """Reasoning between markers; without a start marker, it starts in the prompt."""

    open: Marker
    close: Marker
    joint: str
    """The most layout after the closing marker; white space beyond it is text."""
    holds_calls: bool = False
    """Calls are written inside; elsewhere they are only tolerated there."""
    declared: bool = True
    """The format has this reasoning; other well-known reasoning is read only at the start of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPart(nodes.AnswerPart):
    """Content between markers."""

    open: Marker
    close: Marker


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsPart:
    """The arguments of a call: one object, or each between markers of its own."""

    open: Marker
    close: Marker
    entry: Elements
    """One argument; empty for one object."""
    separator: Marker
    codec: Codec
    empty: str | None
    """The text in place of no arguments, if that is not both markers, or `{}`."""
    open_ended: bool
    """Values have neither quotes nor an end marker of their own: `a=Paris, b=3`."""

    @property
    def closer(self) -> Marker:
        """The marker after a value, with all spellings that are written."""
        after = self.entry[self.entry.index(Slot.VALUE) + 1 :] if self.entry else ()
        return next((piece for piece in after[:1] if isinstance(piece, Marker)), Marker())

    @property
    def between(self) -> str:
        """The text between a value and the next argument's name, e.g. `, ` or a line break."""
        value, key = self.entry.index(Slot.VALUE), self.entry.index(Slot.KEY)
        return "".join(map(literal_of, (*self.entry[value + 1 :], self.separator, *self.entry[:key])))

    @property
    def in_code(self) -> bool:
        """True if arguments are between brackets and separators, as in code: `f(a=1, b=2)`."""
        return bool(self.separator and self.close)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls(nodes.AnswerPart):
    """A run of calls, each between its markers. It is read with tolerance, and written once for each of `tools`."""

    open: Marker
    close: Marker
    call_open: Marker
    call_close: Marker
    separator: Marker
    function: Elements
    """One call, up to the markers that all calls have."""
    arguments: ArgumentsPart
    envelope: Envelope | None
    """The places of the name and the arguments, if the call is a JSON object; else None."""
    id_parts: tuple[int, int] | None
    """The id of a call is what is said in `function[a:b]`."""
    index_start: int
    id_length: int
    whole: bool
    """A call counts only when it is complete; until then its text is held."""
    commas: bool
    """It is read with commas where the format writes nothing between calls and arguments."""
    own: bool
    """The format writes this syntax; another is only read."""
    cleans: bool
    """Text that begins a call and breaks off is not content."""
    ends_turn: bool
    """The last closing marker is the token that ends the turn: engines stop at it, and strip it."""
    leads: tuple[str, ...]
    """Layout before the run, where content or reasoning precede it, the longest first; none is the end of another."""
    on_lines: bool
    """No marker shows a call; after content, a line that begins with the name of a tool does."""
    sibling: bool = False
    """It is the syntax of another well-known format: such calls begin a line, end the answer, and fit their schemas."""
    forbidden: bool = False
    """No call may be made: a block of special tokens that is empty says nothing, all else is text."""
    tools: tuple[Tool, ...] | None = None
    """None when any name counts as a tool; the emitters cannot write that."""
    maximum: int | None = None
    """The largest number of calls that may be written."""

    @property
    def head(self) -> Marker:
        """The literal with which each call begins; a bracket for one that is an object."""
        first = self.function[0]
        return _BRACE if self.envelope else first if isinstance(first, Marker) else Marker()

    @property
    def openers(self) -> list[Marker]:
        """The literals that begin calls, the outermost first."""
        chain = (self.open, self.call_open, *self.function[:1])
        return [piece for piece in chain if isinstance(piece, Marker) and piece]

    @property
    def last_slot(self) -> int:
        """The index of the last slot of a call."""
        return max(at for at, piece in enumerate(self.function) if isinstance(piece, Slot))

    @property
    def closing(self) -> list[Marker]:
        """The markers that close one call, in order."""
        inside = () if self.envelope else self.function[self.last_slot + 1 :]
        return [piece for piece in (*inside, self.call_close) if isinstance(piece, Marker)]

    @property
    def closers(self) -> list[str]:
        """The pieces that close one call, in order."""
        return [piece for marker in self.closing for piece in without_fences(marker.pieces)]

    @property
    def all_closers(self) -> list[str]:
        """The pieces that close a call and a run of calls, in order."""
        return [*self.closers, *without_fences(self.close.pieces)]

    @property
    def with_commas(self) -> Calls:
        """The calls as they are read: where the format writes nothing between calls or arguments, with commas."""
        if not self.commas:
            return self
        arguments = replace(self.arguments, separator=self.arguments.separator or _COMMA)
        return replace(self, separator=self.separator or _COMMA, arguments=arguments)

    def shows(self, piece: str, *, outermost: bool) -> bool:
        """Return whether the first piece of an opener shows a call whatever comes after it.

        Others do so only with the name of a tool: prose mentions them.
        """
        if not is_distinctive(piece) or self.cleans:
            return is_distinctive(piece)
        # Shown alone: `<tool_call>`, a token, and the `<function=` around all. Not `Action:`, nor what other formats write.
        return self.own and (TOKEN.match(piece) is not None or (outermost and is_sign(piece)))


_BRACE, _COMMA = Marker("{", ("{",)), Marker(", ", (",",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Anything that one answer may be, from the end of the assistant's header to the end of the turn."""

    written: nodes.Node
    """The order of the parts where a model writes them."""
    parts: tuple[ReasoningPart | ContentPart | Calls, ...]
    """The parts that are read in free text, in any order. Where two begin with the same marker, the first counts."""
    ends: tuple[Marker, ...]
    """Markers that end a turn. One that is words counts only where nothing but another end, or a header, follows."""
    dropped: tuple[Marker, ...]
    """Special tokens between parts that have no meaning."""
    headers: tuple[Marker, ...]
    """Headers that are words: they are dropped right after an end of turn, and text elsewhere."""
    joints: tuple[Marker, ...]
    """Words between parts that have no meaning: they are dropped where content begins, and text elsewhere."""
    call_joints: tuple[Marker, ...]
    """Those of them that are also dropped right before a call."""
    header: Marker
    """The header, or the rest of it, that no prompt writes: it may be before everything."""
    lead: str
    """Layout that may be before everything."""
    trail: str
    """Layout that may be after everything."""
    json: bool
    """Content is JSON, possibly in a Markdown fence."""
    cleans: bool
    """Text that begins a call and breaks off is kept apart from the free text."""

    @property
    def between(self) -> tuple[Marker, ...]:
        """The markers that are no part."""
        return (*self.ends, *self.dropped, *self.headers, *self.joints)
