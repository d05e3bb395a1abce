"""Describes all possible answers of one turn as frozen data, from which the parser and the grammars are built.

This module defines the nodes of an `Answer`: its parts, each with its markers. Generated answers have a fixed order, but the parser accepts
any order and number of parts. An `Answer` therefore contains its parts twice: `written` is a node that defines their order, and `parts`
lists the parts to find in free text.

`build` creates an `Answer` from a Format and a Request. `views` computes what the parser and the grammar look for. `follow` finds the text
that can start a call or follow a part of a call. `encode` encodes messages.

Rules: other packages use the nodes. Only `build` uses the fields of a Format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from unrender import nodes
from unrender.format import Codec, Envelope, Slot
from unrender.messages import Tool

TOKEN = re.compile(r"<[^<>\s=\"']+>|\[/?[A-Z][A-Z_]+\]|\[\|[^\[\]\s]+\|\]")
"""Matches a special token in one of the common spellings."""
_PROSE_WORD = re.compile(r"\w+[.:,;]?|```\w*[\s\[{]*")
"""Matches a word of prose with punctuation, or the start of a code block, such as ` ```json ` or ` ```tool_code `."""
_FENCED = re.compile(r"```\w*")
_EDGE = re.compile(r"(```\w*)|(?<=>)(?=<)|(?<=\|>)(?=\[)|(?<=\])(?=<[|/])")
"""Matches the positions at which a word is split into pieces: at a code fence, between two tags, and between a special token and a list."""
_JSON_TAIL = re.compile(r'\s*[\[{](?:\s*(?:[\[{:,]|"[^"]*"))*\s*$')
_JSON_HEAD = re.compile(r"^\s*(?:[\]}]\s*)+")
_JSON_TOKEN = re.compile(r'"[^"]*"|\S')
_KEYED_EDGE = re.compile(r'(?<=>)(?=\{)|(?<=\{)(?=")|(?<=":)(?=.)|(?<=",)(?=")|(?<=\})(?=<)')
"""Matches the positions at which whitespace may be inserted: between the JSON tokens around a name, and between JSON and its markers."""
_DISTINCTIVE = re.compile(r"\w.*\W|\W.*\w", re.DOTALL)


def tokens(text: str) -> list[str]:
    """Split a literal into pieces that may be separated by any whitespace."""
    return [piece for word in text.split() for piece in _EDGE.split(word) if piece]


def json_tokens(text: str) -> list[str]:
    """Split a literal that contains JSON. Each bracket and key of the JSON becomes a separate piece."""
    head = _JSON_HEAD.match(text)
    start = head.end() if head else 0
    # Whitespace may be inserted between the pieces. For example, `<call>{"name": ` is split into `<call>`, `{`, `"name"` and `:`.
    tail = _JSON_TAIL.search(text, start)
    end = tail.start() if tail else len(text)
    return [*_JSON_TOKEN.findall(text[:start]), *tokens(text[start:end]), *_JSON_TOKEN.findall(text[end:])]


def keyed_tokens(text: str) -> list[str]:
    """Split a literal of a call whose name occurs before the JSON and inside it, as in `f<args>{"name":"f","args":{…}}`."""
    return [piece for token in tokens(text) for piece in _KEYED_EDGE.split(token)]


def without_fences(pieces: Iterable[str]) -> list[str]:
    """Return the pieces except Markdown fences, because a fence may be missing."""
    return [piece for piece in pieces if not _FENCED.fullmatch(piece)]


def holds_token(text: str) -> bool:
    r"""Return whether a marker contains a special token and is therefore recognizable anywhere.

    >>> [holds_token(text) for text in ("<|im_start|>assistant\\n", "[INST]", "### Response:", "[Bot]")]
    [True, True, False, False]
    """
    return TOKEN.search(text) is not None


def is_distinctive(opener: str) -> bool:
    """Return whether `opener` is unlikely to occur in prose."""
    return len(opener) > 2 and bool(_DISTINCTIVE.search(opener))


def is_sign(piece: str) -> bool:
    """Return whether a piece is distinctive, but neither a word of prose nor the start of a code block."""
    return is_distinctive(piece) and not _PROSE_WORD.fullmatch(piece)


def is_phrase(marker: str) -> bool:
    """Return whether a marker is a sign (see `is_sign`) and not just the start of some JSON."""
    return is_sign(marker) and marker[0] not in "{[("


@dataclass(frozen=True, slots=True)
class Marker:
    """A literal that is generated as `text`. When a marker is parsed, whitespace is allowed between its pieces."""

    text: str = ""
    pieces: tuple[str, ...] = ()
    """The pieces into which `text` is split for parsing. An end-of-turn marker is a separate piece, since engines strip it."""
    others: tuple[Marker, ...] = ()
    """Other spellings of the marker that the parser accepts. The spellings of a value's end marker are also generated."""

    def __bool__(self) -> bool:
        """Return whether the marker contains more than whitespace."""
        return bool(self.core)

    @property
    def core(self) -> str:
        """The marker without leading and trailing whitespace."""
        return self.text.strip()

    @property
    def lead(self) -> str:
        """The leading whitespace."""
        return self.text[: len(self.text) - len(self.text.lstrip())]

    @property
    def after(self) -> str:
        """The trailing whitespace."""
        return self.text[len(self.lead) + len(self.core) :]

    def before(self, piece: str) -> str:
        """Return the whitespace before `piece`, which is one of the pieces."""
        text = self.text[: self.text.find(piece)]
        return text[len(text.rstrip()) :]

    @property
    def spelled(self) -> tuple[Marker, ...]:
        """All spellings of the marker, starting with the format's own. Empty if there is no marker."""
        return tuple(filter(None, (self, *self.others)))

    @property
    def guarded(self) -> bool:
        """True if the marker ends with a letter and whitespace, so that it must not match inside a longer word."""
        return bool(self.after) and self.core[-1:].isalnum()

    def variants(self) -> Iterator[str]:
        """Yield the marker with all, some or none of its leading whitespace."""
        # Models may generate less whitespace than the template: `\n\n<call>`, `\n<call>` or `<call>`.
        yield from (self.lead[at:] + self.core for at in range(len(self.lead) + 1))


Element = Marker | Slot
Elements = tuple[Element, ...]
"""A sequence of markers with slots between them."""


def literal_of(piece: Element = Marker()) -> str:
    """Return the text of a marker. Returns "" for a slot."""
    return piece.text if isinstance(piece, Marker) else ""


def pieces_of(parts: Iterable[Element]) -> tuple[str | Slot, ...]:
    """Return the elements with each marker split into its pieces, and slots unchanged."""
    return tuple(piece for part in parts for piece in (part.pieces if isinstance(part, Marker) else (part,)))


@dataclass(frozen=True, slots=True)
class Opening:
    """A marker at which a run of calls may start."""

    opener: str
    lead: str
    markers: tuple[Marker, ...] = ()
    """The markers to read before the call."""
    inside: bool = False
    """True if the call's own start marker is one of `markers`, or is missing."""
    loose: bool = False
    """True if the run starts without its outermost marker."""
    empty: bool = False
    """True if `markers` form an empty call or section, which is dropped."""
    strong: bool = False
    """True if the marker doesn't occur in prose. Such a marker is reported if no call follows."""
    alone: bool = True
    """True if the marker identifies a call without a tool name."""
    weak: bool = False
    """True if the marker is a bracket, which also occurs in prose and code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart(nodes.AnswerPart):
    """Reasoning between markers. If there is no start marker, reasoning starts in the prompt."""

    open: Marker
    close: Marker
    joint: str
    """The longest whitespace after the closing marker. Any further whitespace is text."""
    holds_calls: bool = False
    """True if calls are generated inside reasoning. If False, calls inside reasoning are parsed, but never generated."""
    shared: bool = False
    """True if the closing marker also occurs outside of reasoning. It then doesn't show that reasoning precedes it."""
    declared: bool = True
    """True if the format defines this reasoning. Undeclared reasoning is parsed only at the start of an answer."""


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
    """Markers and slots of one argument. Empty if the arguments are one object."""
    separator: Marker
    codec: Codec
    empty: str | None
    """The text for empty arguments. None if empty arguments are `{}` or consist of just `open` and `close`."""
    open_ended: bool
    """True if values have neither quotes nor an end marker, as in `a=Paris, b=3`."""

    @property
    def closer(self) -> Marker:
        """The marker after a value, with all spellings that may be generated."""
        after = self.entry[self.entry.index(Slot.VALUE) + 1 :] if self.entry else ()
        return next((piece for piece in after[:1] if isinstance(piece, Marker)), Marker())

    @property
    def between(self) -> str:
        """The text between a value and the name of the next argument, e.g. `, ` or a line break."""
        value, key = self.entry.index(Slot.VALUE), self.entry.index(Slot.KEY)
        return "".join(map(literal_of, (*self.entry[value + 1 :], self.separator, *self.entry[:key])))

    @property
    def in_code(self) -> bool:
        """True if arguments are written with brackets and separators, as in `f(a=1, b=2)`."""
        return bool(self.separator and self.close)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls(nodes.AnswerPart):
    """A sequence of calls, each between its markers. The parser accepts deviations from this syntax. Grammars generate calls of each of the
    `tools`.
    """

    open: Marker
    close: Marker
    call_open: Marker
    call_close: Marker
    separator: Marker
    function: Elements
    """Markers and slots of one call, without `call_open` and `call_close`."""
    arguments: ArgumentsPart
    envelope: Envelope | None
    """The positions of the name and the arguments in a call that is a JSON object. None for other calls."""
    id_parts: tuple[int, int] | None
    """The range (a, b) for which `function[a:b]` is the id of the call."""
    index_start: int
    id_length: int
    whole: bool
    """True if the parser returns a call only after its end."""
    commas: bool
    """True if commas are parsed although the format doesn't put any text between calls or arguments."""
    own: bool
    """True if the format generates this syntax. If False, calls in this syntax are parsed, but never generated."""
    cleans: bool
    """True if the text of an incomplete call isn't returned as content."""
    ends_turn: bool
    """True if the last closing marker also ends the turn. Engines stop at the marker and remove it."""
    leads: tuple[str, ...]
    """Whitespace before the calls, after content or reasoning, longest first. No entry is a suffix of another."""
    on_lines: bool
    """True if calls have no marker. After content, a line that starts with a tool's name is a call."""
    checked: bool = False
    """True if a call counts only if its arguments match the tool's schema."""
    sibling: bool = False
    """True for the syntax of another common format. Calls in this syntax must start a line, end the answer, and match their schemas."""
    alone: bool = False
    """True if calls in this syntax must also be the whole answer, without damage."""
    forbidden: bool = False
    """True if calls are forbidden. Empty blocks of calls between special tokens are ignored, and all other calls are text."""
    tools: tuple[Tool, ...] | None = None
    """The tools that may be called. None if any tool name is allowed, which grammars can't express."""
    maximum: int | None = None
    """The maximum number of calls in a generated answer."""

    @property
    def head(self) -> Marker:
        """The literal at the start of each call, which is a bracket if calls are objects."""
        first = self.function[0]
        return _BRACE if self.envelope else first if isinstance(first, Marker) else Marker()

    @property
    def openers(self) -> list[Marker]:
        """The literals at the start of calls, outermost first."""
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
        """The pieces that close a call and a sequence of calls, in order."""
        return [*self.closers, *without_fences(self.close.pieces)]

    @property
    def with_commas(self) -> Calls:
        """A copy of this node with all separators that the parser accepts, including commas that the format doesn't generate."""
        if not self.commas:
            return self
        arguments = replace(self.arguments, separator=self.arguments.separator or _COMMA)
        return replace(self, separator=self.separator or _COMMA, arguments=arguments)

    def shows(self, piece: str, *, outermost: bool) -> bool:
        """Return whether the first piece of an opener identifies a call, regardless of the text after it.

        Openers that occur in prose identify a call only together with a tool's name.
        """
        if not is_distinctive(piece) or self.cleans:
            return is_distinctive(piece)
        # Special tokens such as `<tool_call>` and an outermost `<function=` identify a call. `Action:` and the openers of other formats
        # don't identify one.
        return self.own and (TOKEN.match(piece) is not None or (outermost and is_sign(piece)))


_BRACE, _COMMA = Marker("{", ("{",)), Marker(", ", (",",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All possible answers of one turn, from the end of the assistant's header to the end of the turn."""

    written: nodes.Node
    """The parts in the order in which a model generates them."""
    parts: tuple[ReasoningPart | ContentPart | Calls, ...]
    """The parts to find in free text, in any order. If several parts start with the same marker, the first one in this list is used."""
    ends: tuple[Marker, ...]
    """Markers that end a turn. A marker that consists of words ends the turn only if another end marker, a header, or the end of the text
    follows.
    """
    dropped: tuple[Marker, ...]
    """Meaningless special tokens between parts."""
    headers: tuple[Marker, ...]
    """Headers that consist of words. Headers are dropped immediately after the end of a turn, and are text elsewhere."""
    joints: tuple[Marker, ...]
    """Meaningless words between parts. Joints are dropped at the start of content, and are text elsewhere."""
    call_joints: tuple[Marker, ...]
    """The `joints` that are also dropped immediately before a call."""
    header: Marker
    """The header at the start of the answer, or the part of the header that prompts don't contain."""
    lead: str
    """Whitespace that may precede the answer."""
    trail: str
    """Whitespace that may follow the answer."""
    json: bool
    """True if content is JSON, possibly in a Markdown fence."""
    cleans: bool
    """True if the text of an incomplete call is returned separately from content."""

    @property
    def between(self) -> tuple[Marker, ...]:
        """The markers between parts."""
        return (*self.ends, *self.dropped, *self.headers, *self.joints)
