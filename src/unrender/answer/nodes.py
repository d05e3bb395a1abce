"""Nodes of an Answer: the parts of a model's answer, each between its markers, as frozen data.

Generated answers have a fixed order, but the parser accepts parts in any order and number. So an `Answer` has the same parts twice:
`written` is a node that defines their order, and `parts` are those to find in free text. All other packages use only these nodes. Only
`answer.build` uses the fields of a Format.
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
    """A literal. It is generated as `text`, and parsed as pieces with any white space between them."""

    text: str = ""
    pieces: tuple[str, ...] = ()
    """`text`, split into parts. An end of turn is a separate piece, since engines strip that token."""
    others: tuple[Marker, ...] = ()
    """Other spellings that are parsed. After a value, they are also generated."""

    def __bool__(self) -> bool:
        """Return whether the marker is more than white space."""
        return bool(self.core)

    @property
    def core(self) -> str:
        """The marker without leading and trailing white space."""
        return self.text.strip()

    @property
    def lead(self) -> str:
        """The leading white space."""
        return self.text[: len(self.text) - len(self.text.lstrip())]

    @property
    def after(self) -> str:
        """The trailing white space."""
        return self.text[len(self.lead) + len(self.core) :]

    def before(self, piece: str) -> str:
        """Return the white space before one of the pieces."""
        text = self.text[: self.text.find(piece)]
        return text[len(text.rstrip()) :]

    @property
    def spelled(self) -> tuple[Marker, ...]:
        """All spellings of the marker, the format's own first; empty if there is no marker."""
        return tuple(filter(None, (self, *self.others)))

    @property
    def guarded(self) -> bool:
        """True if the marker ends with a letter and white space, so that it can't match inside a longer word."""
        return bool(self.after) and self.core[-1:].isalnum()

    def variants(self) -> Iterator[str]:
        """Yield the marker with all, some or none of its leading white space."""
        # Models write less white space than the template: `\n\n<call>`, `\n<call>`, `<call>`.
        yield from (self.lead[at:] + self.core for at in range(len(self.lead) + 1))


Element = Marker | Slot
Elements = tuple[Element, ...]
"""Markers and the slots between them, in order."""


def literal_of(piece: Element = Marker()) -> str:
    """Return the text of a marker, or "" for a slot."""
    return piece.text if isinstance(piece, Marker) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart(nodes.AnswerPart):
    """Reasoning between markers. Without a start marker, it starts in the prompt."""

    open: Marker
    close: Marker
    joint: str
    """The longest white space after the closing marker. Additional white space is text."""
    holds_calls: bool = False
    """True if calls are generated inside reasoning. If False, they are only parsed there."""
    declared: bool = True
    """True if the format defines this reasoning. Other common markers are parsed only at the start of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPart(nodes.AnswerPart):
    """Content between markers."""

    open: Marker
    close: Marker


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsPart:
    """The arguments of a call: one object, or separate arguments with markers."""

    open: Marker
    close: Marker
    entry: Elements
    """Markers and slots of one argument; empty if the arguments are one object."""
    separator: Marker
    codec: Codec
    empty: str | None
    """The text for empty arguments, if it isn't the two markers or `{}`; else None."""
    open_ended: bool
    """True if values have neither quotes nor an end marker, as in `a=Paris, b=3`."""

    @property
    def closer(self) -> Marker:
        """The marker after a value, with all spellings that are generated."""
        after = self.entry[self.entry.index(Slot.VALUE) + 1 :] if self.entry else ()
        return next((piece for piece in after[:1] if isinstance(piece, Marker)), Marker())

    @property
    def between(self) -> str:
        """The text between a value and the name of the next argument, e.g. `, ` or a line break."""
        value, key = self.entry.index(Slot.VALUE), self.entry.index(Slot.KEY)
        return "".join(map(literal_of, (*self.entry[value + 1 :], self.separator, *self.entry[:key])))

    @property
    def in_code(self) -> bool:
        """True if arguments are between brackets and separators, as in code: `f(a=1, b=2)`."""
        return bool(self.separator and self.close)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls(nodes.AnswerPart):
    """A run of calls, each between its markers. It is parsed leniently, and generated for each of `tools`."""

    open: Marker
    close: Marker
    call_open: Marker
    call_close: Marker
    separator: Marker
    function: Elements
    """Markers and slots of one call, without `call_open` and `call_close`."""
    arguments: ArgumentsPart
    envelope: Envelope | None
    """The positions of name and arguments if the call is a JSON object, else None."""
    id_parts: tuple[int, int] | None
    """The slice `function[a:b]` that is the id of the call."""
    index_start: int
    id_length: int
    whole: bool
    """True if the parser releases a call only when it is complete."""
    commas: bool
    """True if commas are parsed although the format writes nothing between calls or arguments."""
    own: bool
    """True if the format generates this syntax, False if it is only parsed."""
    cleans: bool
    """True if the text of an incomplete call isn't content."""
    ends_turn: bool
    """True if the last closing marker also ends the turn. Engines stop at this token and strip it."""
    leads: tuple[str, ...]
    """White space before the run, after content or reasoning, the longest first. None of them ends with another."""
    on_lines: bool
    """True if calls have no marker. After content, a line that starts with a tool's name is a call."""
    sibling: bool = False
    """True for a syntax of another common format. Such calls start a line, end the answer, and match their schemas."""
    forbidden: bool = False
    """True if calls are forbidden. Empty blocks of special tokens are ignored, and everything else is text."""
    tools: tuple[Tool, ...] | None = None
    """The tools that may be called. None if any name counts as a tool, which grammars can't express."""
    maximum: int | None = None
    """The maximum number of calls in a generated answer."""

    @property
    def head(self) -> Marker:
        """The literal at the start of each call; a bracket if calls are objects."""
        first = self.function[0]
        return _BRACE if self.envelope else first if isinstance(first, Marker) else Marker()

    @property
    def openers(self) -> list[Marker]:
        """The literals at the start of calls, the outermost first."""
        chain = (self.open, self.call_open, *self.function[:1])
        return [piece for piece in chain if isinstance(piece, Marker) and piece]

    @property
    def last_slot(self) -> int:
        """Index of the last slot of a call."""
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
        """The calls as they are parsed, with commas if the format writes nothing between calls or arguments."""
        if not self.commas:
            return self
        arguments = replace(self.arguments, separator=self.arguments.separator or _COMMA)
        return replace(self, separator=self.separator or _COMMA, arguments=arguments)

    def shows(self, piece: str, *, outermost: bool) -> bool:
        """Return whether the first piece of an opener identifies a call, no matter which text follows.

        Other openers also occur in prose. They identify a call only together with a tool's name.
        """
        if not is_distinctive(piece) or self.cleans:
            return is_distinctive(piece)
        # Sufficient: `<tool_call>`, a token, and the outermost `<function=`. Not sufficient: `Action:` and syntaxes of other formats.
        return self.own and (TOKEN.match(piece) is not None or (outermost and is_sign(piece)))


_BRACE, _COMMA = Marker("{", ("{",)), Marker(", ", (",",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All possible answers of one turn, from the end of the assistant's header to the end of the turn."""

    written: nodes.Node
    """The parts in the order in which a model writes them."""
    parts: tuple[ReasoningPart | ContentPart | Calls, ...]
    """The parts to find in free text, in any order. If two start with the same marker, the first one is used."""
    ends: tuple[Marker, ...]
    """Markers that end a turn. An end made of words counts only before another end, a header, or the end of the text."""
    dropped: tuple[Marker, ...]
    """Special tokens between parts that have no meaning."""
    headers: tuple[Marker, ...]
    """Headers made of words. They are dropped immediately after an end of turn, and are text elsewhere."""
    joints: tuple[Marker, ...]
    """Words between parts that have no meaning. They are dropped at the start of content, and are text elsewhere."""
    call_joints: tuple[Marker, ...]
    """Those `joints` that are also dropped immediately before a call."""
    header: Marker
    """The header, or the part of it that prompts don't contain. The answer may start with it."""
    lead: str
    """White space that may precede the answer."""
    trail: str
    """White space that may follow the answer."""
    json: bool
    """True if content is JSON, possibly in a Markdown fence."""
    cleans: bool
    """True if the text of an incomplete call is kept separate from content."""

    @property
    def between(self) -> tuple[Marker, ...]:
        """The markers between parts."""
        return (*self.ends, *self.dropped, *self.headers, *self.joints)
