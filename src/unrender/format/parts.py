"""Defines the parts of a Format as frozen dataclasses, and the enums they use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, assert_never

from unrender.cache import kept

# Enums.


class ReasoningMode(StrEnum):
    """The way in which the template handles reasoning."""

    NONE = "none"
    """The template doesn't write reasoning."""
    TAG_BASED = "tag_based"
    """The model writes both markers."""
    DELIMITER = "delimiter"
    """Reasoning has no start marker, only an end marker."""
    FORCED_OPEN = "forced_open"
    """The prompt opens reasoning, and the model closes it."""
    FORCED_CLOSED = "forced_closed"
    """The prompt opens reasoning. If thinking is off, the prompt also closes it."""
    TOOLS_ONLY = "tools_only"
    """The template writes reasoning only before calls."""


class ContentMode(StrEnum):
    """The wrapping of content."""

    PLAIN = "plain"
    """Content has no markers."""
    ALWAYS_WRAPPED = "always_wrapped"
    """Content always has markers."""
    WRAPPED_WITH_REASONING = "wrapped_with_reasoning"
    """Content has markers if reasoning comes before it."""


class ToolMode(StrEnum):
    """The kinds of tool calls."""

    NONE = "none"
    """The template writes no calls."""
    JSON_NATIVE = "json_native"
    """One JSON object with the name and the arguments."""
    TAG_WITH_JSON = "tag_with_json"
    """The name is between markers, and the arguments are one JSON object."""
    TAG_WITH_TAGGED = "tag_with_tagged"
    """The name is between markers, and each argument has its own markers."""


class CallIdPosition(StrEnum):
    """The position of a call's id."""

    NONE = "none"
    """Calls have no id."""
    PRE_FUNC_NAME = "pre_func_name"
    """Before the function's name."""
    BETWEEN_FUNC_AND_ARGS = "between_func_and_args"
    """After the name, before the arguments."""
    POST_ARGS = "post_args"
    """After the arguments."""


class Slot(StrEnum):
    """A gap between the literals of a skeleton, which the model fills with a name, an id, a key or a value."""

    NAME = "name"
    """The function's name."""
    ARGUMENTS = "arguments"
    """All arguments: one JSON object, or entries."""
    ID = "id"
    """The call's id."""
    INDEX = "index"
    """A counter written by the template, e.g. the 0 of `functions.f:0`."""
    KEY = "key"
    """The name of one argument."""
    VALUE = "value"
    """The value of one argument."""
    ANY = "any"
    """Ignored text up to the next literal; never generated."""
    TYPE = "type"
    """A word for the value's JSON type, e.g. the `true` of `string="true"`."""

    # A slot isn't equal to its string value: the literal text "key" and the slot KEY must not make two formats equal.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = str.__hash__


# The notation of one kind of value.


class Strings(StrEnum):
    """The notation of a string value."""

    JSON = "json"
    """As in JSON: `"a\\"b"`."""
    PYTHON = "python"
    """As in Python's `repr()`: `'a"b'`."""
    RAW = "raw"
    """Unescaped text, up to the value's end marker."""
    QUOTED = "quoted"
    """Between `string_open` and `string_close`, without escapes: `<|"|>a"b<|"|>`."""
    SINGLE = "single"
    """Like JSON strings, but in single quotes: `'it\\'s'`."""

    @property
    def unquoted(self) -> bool:
        """True if strings have no quotes, so a marker must end each string."""
        match self:
            case Strings.RAW:
                return True
            case Strings.JSON | Strings.PYTHON | Strings.QUOTED | Strings.SINGLE:
                return False
            case _:
                assert_never(self)


class Words(StrEnum):
    """The notation of true, false and null."""

    JSON = "json"
    """`true`, `false`, `null`."""
    PYTHON = "python"
    """`True`, `False`, `None`."""
    PYTHON_NULL = "python_null"
    """`true`, `false`, `None`."""


class Containers(StrEnum):
    """The notation of lists and objects."""

    JSON = "json"
    """`{"n": [1, true]}`."""
    PYTHON = "python"
    """As in Python's `repr()`."""
    BARE = "bare"
    """Like JSON, but keys are unquoted and scalars follow the codec: `{n:[1,true]}`."""
    XML = "xml"
    """Nested tags in the same style as the arguments. List items are in tags named `item_tag`."""


class Typing(StrEnum):
    """The way in which strings are distinguished from other types."""

    SYNTAX = "syntax"
    """By syntax: strings have quotes."""
    SCHEMA = "schema"
    """By the tool's schema, because the text is ambiguous."""
    ATTRIBUTE = "attribute"
    """By the entry's TYPE slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """The notation of one argument value: JSON, raw text, a Python literal, or text between special quotes."""

    strings: Strings = Strings.JSON
    words: Words = Words.JSON
    containers: Containers = Containers.JSON
    typed_by: Typing = Typing.SYNTAX
    string_open: str = ""
    """Text before a string in the notation QUOTED, e.g. `<|"|>`."""
    string_close: str = ""
    types: tuple[tuple[str, str], ...] = ()
    """Words for the TYPE slot by JSON type, e.g. `("string", "true"), ("number", "false")`."""
    omits_null: bool = False
    """True if null arguments are left out."""
    cdata: bool = False
    """True if strings with special characters may be in `<![CDATA[…]]>`."""
    escapes: tuple[tuple[str, str], ...] = ()
    """Characters that are escaped in raw values, e.g. `<` as `&lt;`. If there are any and the arguments are one object, the object is
    written as a JSON string.
    """
    item_separator: str = ", "
    key_separator: str = ": "
    indent: int = 0
    """Spaces per level of pretty-printed JSON; 0 for one line."""
    ascii_only: bool = False
    """True if non-ASCII characters are written as `\\uXXXX`."""
    sorted_keys: bool = False
    """True if object keys are sorted alphabetically."""
    item_tag: str = ""
    """The tag of list items in XML containers, e.g. `item`."""


# Parts.

Part = str | Slot
Skeleton = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The notation of a call's arguments: one JSON object, or each argument between its own markers."""

    start: str = ""
    """Text before the first argument, e.g. `(`. If the arguments are one JSON value that is omitted when empty, `start` is omitted too (see
    `when_empty`).
    """
    end: str = ""
    entry: Skeleton = ()
    """Skeleton of one argument, e.g. `("<parameter=", KEY, ">\\n", VALUE, "\\n</parameter>\\n")`; empty if the arguments are one JSON
    object.
    """
    separator: str = ""
    """Text between two arguments, e.g. `, `."""
    closers: tuple[str, ...] = ()
    """Alternative forms of the marker after a value, e.g. `&lt;/a&gt;` if a template escapes its own `</a>`."""
    codec: Codec = Codec()
    when_empty: str | None = None
    """Text for a call without arguments, if it differs from `start` followed by `end` (or from `{}`)."""

    @property
    def between(self) -> str:
        """Text between a value and the next argument's name, e.g. `, ` or a line break."""
        value, key = self.entry.index(Slot.VALUE), self.entry.index(Slot.KEY)
        around = (*self.entry[value + 1 :], self.separator, *self.entry[:key])
        return "".join(part for part in around if not isinstance(part, Slot))

    @property
    def open_ended(self) -> bool:
        """True if values have neither quotes nor an end marker of their own: `a=Paris, b=3`."""
        if not self.codec.strings.unquoted or Slot.VALUE not in self.entry:
            return False
        after_value = self.entry[self.entry.index(Slot.VALUE) + 1 :]
        return not any(isinstance(part, Slot) or part.strip() not in ("", '"', "'") for part in after_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The JSON object around one call, derived from `CallSyntax.function`. The parser reads its keys in any order.

    Paths are keys from the outside in, e.g. `("function", "name")`.
    """

    name_field: tuple[str, ...] = ()
    """Path of the function's name; empty if the arguments' key is the name (`{"f": {…}}`)."""
    args_field: tuple[str, ...] = ()
    id_field: tuple[str, ...] = ()
    gen_id_field: tuple[str, ...] = ()
    """Path of a counter that the template writes as the id."""
    array_wrapped: bool = False
    """True if the calls are items of a JSON array."""

    @property
    def name_is_key(self) -> bool:
        """True if the name is a key of the object: `{"f": {…}}`."""
        return not self.name_field


MARKERS = ("section_start", "call_start", "call_end", "section_end")
"""Names of the fields for the markers around all calls and around each call, in output order."""


class CallMarkers(NamedTuple):
    """The markers around all calls and around each call, in output order."""

    run_opener: str
    opener: str
    closer: str
    run_closer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSyntax:
    """The notation of calls.

    It consists of the markers around all calls and around each call, and of the skeletons of a call and its arguments.
    """

    section_start: str = ""
    """Text before the first call, e.g. `<tool_calls>[`."""
    section_end: str = ""
    call_start: str = ""
    """Text before each call, e.g. `<tool_call>\\n`."""
    call_end: str = ""
    separator: str = ""
    """Text between two calls, e.g. `, ` or a line break."""
    function: Skeleton = ()
    """Skeleton of one call, e.g. `('{"name": "', NAME, '", "arguments": ', ARGUMENTS, "}")`."""
    arguments: Arguments = Arguments()
    id_parts: tuple[int, int] | None = None
    """Positions `a, b` if the text of `function[a:b]`, e.g. `functions.f:0`, is the call's id. None if the call has an ID slot or no id."""
    index_start: int = 0
    id_length: int = 0
    """Required number of letters and digits in an id, e.g. 9; 0 if the template accepts any id."""
    parallel: bool = True
    """True if an answer may contain several calls."""
    whole: bool = False
    """True if only complete, well-formed calls count. Other text is content."""
    checked: bool = False
    """True if a call counts only if its arguments match the tool's schema. Other text is content."""
    why: str = ""
    """The reason why no template shows this syntax; only in declared syntaxes."""

    @property
    def mode(self) -> ToolMode:
        """The kind of call, derived from its skeleton."""
        if self.arguments.entry:
            return ToolMode.TAG_WITH_TAGGED
        if self.envelope is not None:
            return ToolMode.JSON_NATIVE
        return ToolMode.TAG_WITH_JSON if self.function else ToolMode.NONE

    @property
    def envelope(self) -> Envelope | None:
        """The JSON object with the name and the arguments; None if there's no such object."""
        listed = any(text.rstrip().endswith("[") for text in (self.section_start, self.call_start))
        return None if self.arguments.entry else _envelope(self.function, listed)

    @property
    def openers(self) -> list[str]:
        """The literals that start calls, outermost first."""
        chain = (self.section_start, self.call_start, text_of(*self.function[:1]))
        return [text for text in chain if text.strip()]

    @property
    def markers(self) -> CallMarkers:
        """The markers around all calls and around each call. The names of their fields are in `MARKERS`."""
        return CallMarkers(self.section_start, self.call_start, self.call_end, self.section_end)

    @property
    def call_id(self) -> CallIdPosition:
        """The position of the id in a tag format, derived from the skeleton."""
        if Slot.ID not in self.function:
            return CallIdPosition.NONE
        order = [part for part in self.function if part in (Slot.NAME, Slot.ID, Slot.ARGUMENTS)]
        if order.index(Slot.ID) < order.index(Slot.NAME):
            return CallIdPosition.PRE_FUNC_NAME
        if order.index(Slot.ID) < order.index(Slot.ARGUMENTS):
            return CallIdPosition.BETWEEN_FUNC_AND_ARGS
        return CallIdPosition.POST_ARGS

    @property
    def name_suffix(self) -> str:
        """The literal after the name, e.g. `>`."""
        return _literal_beside(self.function, Slot.NAME, +1)

    @property
    def value_suffix(self) -> str:
        """The literal after a value, e.g. `</arg_value>`."""
        return _literal_beside(self.arguments.entry, Slot.VALUE, +1)


_NAME, _ID, _NUMBER = "unrender name", "unrender id", 730501
_FILLED = {Slot.NAME: _NAME, Slot.ID: _ID, Slot.INDEX: str(_NUMBER), Slot.ARGUMENTS: "{}", Slot.ANY: "any"}
"""Sample values for the slots of a call. With these values, the call is valid JSON, and each slot can be found in it."""


@kept(1_000)
def _envelope(function: Skeleton, listed: bool) -> Envelope | None:
    text = "".join(_FILLED.get(part, "") if isinstance(part, Slot) else part for part in function)
    try:
        written = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    if not isinstance(written, dict):
        return None
    paths: dict[str, tuple[str, ...]] = {}
    for path, leaf in _leaves(written, ()):
        if leaf == _NAME:
            paths["name_field"] = path
        elif leaf == _ID:
            paths["id_field"] = path
        elif leaf in (_NUMBER, str(_NUMBER)):
            paths["gen_id_field"] = path
        # In `{"f": {…}}`, the name is the key of the arguments, so `args_field` isn't set.
        elif leaf == {} and _NAME not in path:
            paths["args_field"] = path
    return Envelope(array_wrapped=listed, **paths)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or "" in found:
        raise ValueError("a key is empty or duplicated")
    return found


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def text_of(part: Part = "") -> str:
    """Return the text of a part; "" for a slot."""
    return "" if isinstance(part, Slot) else part


def _literal_beside(skeleton: Skeleton, slot: Slot, step: int) -> str:
    if slot not in skeleton:
        return ""
    at = skeleton.index(slot) + step
    return text_of(*skeleton[at : at + 1]) if at >= 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """The notation of reasoning."""

    mode: ReasoningMode = ReasoningMode.NONE
    start: str = ""
    """Start marker, e.g. `<think>\\n`; empty in mode DELIMITER."""
    end: str = ""
    """End marker, e.g. `\\n</think>`, without the joint after it."""
    empty: str = ""
    """Text that an answer without reasoning contains instead, e.g. `<think></think>` or only `</think>`."""
    unseen: bool = False
    """True if the markers are known but no rendering shows reasoning. In that case, the text after the end marker is only a convention."""
    holds_calls: bool = False
    """True if calls after reasoning are written inside the reasoning markers, without an end marker before them."""

    @property
    def ends_within_start(self) -> bool:
        """True if the end marker is part of the start marker, e.g. if both are `~~`.

        If so, only an end marker after the start marker closes reasoning.
        """
        end = self.end.strip()
        return bool(end) and end in self.start

    def opened_in(self, text: str) -> bool:
        """Return True if `text` contains the start marker. Otherwise, only the prompt can have started reasoning."""
        return bool(self.start.strip()) and self.start.strip() in text

    def closed_in(self, text: str) -> bool:
        """Return True if `text` contains the end marker, other than as part of the start marker."""
        end = self.end.strip()
        return bool(end) and end in text.replace(self.start.strip(), "", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The notation of content."""

    mode: ContentMode = ContentMode.PLAIN
    start: str = ""
    """Start marker, e.g. `<|START_RESPONSE|>`."""
    end: str = ""
    wraps_empty: bool = False
    """True if even empty content has markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTexts:
    """The texts around an answer, and the whitespace between its parts."""

    headers: tuple[str, ...] = ()
    """Texts between the last input message and the answer, one per kind of input, e.g. `<|im_start|>assistant\\n`. The shortest is first.
    """
    end: str = ""
    """Text that ends a turn, e.g. `<|im_end|>\\n`."""
    ends: tuple[str, ...] = ()
    """Other texts that end a turn, e.g. `<|eom_id|>`."""
    prefill: str = ""
    """Text that the generation prompt adds after the header if thinking is on, e.g. `<think>\\n`."""
    prefill_no_thinking: str = ""
    """Text that the generation prompt adds after the header if thinking is off, e.g. `<think>\\n\\n</think>\\n\\n`."""
    unasked: str = ""
    """A header, or the end of a header, that the model may generate although no generation prompt contains it, e.g. `<|assistant|>\\n`."""
    start_to_content: str = ""
    """Whitespace that precedes an answer in the history, but isn't part of the generation prompt."""
    reasoning_to_content: str = ""
    """Text between reasoning and content, e.g. two line breaks."""
    reasoning_to_tools: str = ""
    content_to_tools: str = ""
    start_to_tools: str = ""
    """Text between the header and the first call, if the answer starts with the call."""
    tools_to_content: str = ""
    tools_first: bool = False
    """True if calls are written before content."""

    @property
    def all_ends(self) -> tuple[str, ...]:
        """The distinct texts that end a turn, without surrounding whitespace."""
        return tuple(dict.fromkeys(text.strip() for text in (self.end, *self.ends) if text.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """Alternative forms of a marker, which are parsed but never generated.

    End markers of calls need no alternatives. Any closing tag is accepted as an end marker, and reported.
    """

    marker: str
    others: tuple[str, ...]
    why: str = ""
