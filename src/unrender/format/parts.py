"""Defines the parts of a Format, as frozen dataclasses, and the words that describe them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, assert_never

from unrender.cache import kept

# Words.


class ReasoningMode(StrEnum):
    """The way in which the template handles reasoning."""

    NONE = "none"
    """The template writes no reasoning."""
    TAG_BASED = "tag_based"
    """The model writes both markers."""
    DELIMITER = "delimiter"
    """Only the closing marker is written."""
    FORCED_OPEN = "forced_open"
    """The prompt opens reasoning, the model closes it."""
    FORCED_CLOSED = "forced_closed"
    """The prompt opens reasoning, and closes it again where thinking is off."""
    TOOLS_ONLY = "tools_only"
    """Reasoning is written only beside calls."""


class ContentMode(StrEnum):
    """The wrapping of content."""

    PLAIN = "plain"
    """No markers are around it."""
    ALWAYS_WRAPPED = "always_wrapped"
    """Markers are around it in every answer."""
    WRAPPED_WITH_REASONING = "wrapped_with_reasoning"
    """Markers are around it after reasoning."""


class ToolMode(StrEnum):
    """The kinds of tool calls."""

    NONE = "none"
    """The template writes no calls."""
    JSON_NATIVE = "json_native"
    """One JSON object that holds the name and the arguments."""
    TAG_WITH_JSON = "tag_with_json"
    """The name is between markers, and the arguments are one JSON object."""
    TAG_WITH_TAGGED = "tag_with_tagged"
    """The name is between markers, and each argument has its own markers."""


class CallIdPosition(StrEnum):
    """The place of a call's id."""

    NONE = "none"
    """Calls have no id."""
    PRE_FUNC_NAME = "pre_func_name"
    """Before the function's name."""
    BETWEEN_FUNC_AND_ARGS = "between_func_and_args"
    """After the name, before the arguments."""
    POST_ARGS = "post_args"
    """After the arguments."""


class Slot(StrEnum):
    """A hole between the literals of a skeleton, which the model fills: a name, an id, a key, a value."""

    NAME = "name"
    """The function's name."""
    ARGUMENTS = "arguments"
    """All arguments: one JSON object, or entries."""
    ID = "id"
    """The call's id."""
    INDEX = "index"
    """A counter that the template writes itself, e.g. the 0 of `functions.f:0`."""
    KEY = "key"
    """The name of one argument."""
    VALUE = "value"
    """The value of one argument."""
    ANY = "any"
    """Words that say nothing to the parser, up to the next literal; never generated."""
    TYPE = "type"
    """A word that says the value's JSON type, e.g. the `true` of `string="true"`."""

    # A skeleton holds texts as well: the text "key" is not a hole, and a format with the one never equals one with the other.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = str.__hash__


# How one value is written.


class Strings(StrEnum):
    """The notation of a string value."""

    JSON = "json"
    """`"a\\"b"`"""
    PYTHON = "python"
    """`repr()`: `'a"b'`"""
    RAW = "raw"
    """As it is, up to the value's end marker."""
    QUOTED = "quoted"
    """Between `string_open` and `string_close`, nothing escaped: `<|"|>a"b<|"|>`."""
    SINGLE = "single"
    """As in JSON, but in single quotes: `'it\\'s'`."""

    @property
    def unquoted(self) -> bool:
        """True when a string has no quotes around it, so that a marker must end it."""
        match self:
            case Strings.RAW:
                return True
            case Strings.JSON | Strings.PYTHON | Strings.QUOTED | Strings.SINGLE:
                return False
            case _:
                assert_never(self)


class Words(StrEnum):
    """The spelling of true, false and null."""

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
    """`repr()`."""
    BARE = "bare"
    """JSON-like, keys unquoted, scalars as the codec says: `{n:[1,true]}`."""
    XML = "xml"
    """Nested tags in the style of the arguments' own entry, list items named `item_tag`."""


class Typing(StrEnum):
    """The means that tell a string from a number."""

    SYNTAX = "syntax"
    """The value's own syntax: quotes."""
    SCHEMA = "schema"
    """The tool's schema; the text alone is ambiguous."""
    ATTRIBUTE = "attribute"
    """The entry's TYPE slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """The notation of one argument value: JSON, raw text, a Python literal, or text between special quotes."""

    strings: Strings = Strings.JSON
    words: Words = Words.JSON
    containers: Containers = Containers.JSON
    typed_by: Typing = Typing.SYNTAX
    string_open: str = ""
    """e.g. `<|"|>`; only for QUOTED."""
    string_close: str = ""
    types: tuple[tuple[str, str], ...] = ()
    """For ATTRIBUTE: JSON type → word, e.g. `("string", "true"), ("number", "false")`."""
    omits_null: bool = False
    """A null argument is not written at all."""
    cdata: bool = False
    """Strings with special characters may be in `<![CDATA[…]]>`."""
    escapes: tuple[tuple[str, str], ...] = ()
    """Characters that raw values write otherwise, e.g. `<` as `&lt;`. Arguments that are one object are in a JSON string then."""
    item_separator: str = ", "
    key_separator: str = ": "
    indent: int = 0
    """Spaces per level of pretty-printed JSON; 0 for one line."""
    ascii_only: bool = False
    """Non-ASCII characters are written as `\\uXXXX`."""
    sorted_keys: bool = False
    """The keys of objects are in alphabetical order, whatever the order in which the caller has them."""
    item_tag: str = ""
    """For XML containers: the tag of a list's items, e.g. `item`."""


# The parts.

Part = str | Slot
Skeleton = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The notation of a call's arguments: one JSON object, or each argument between its own markers."""

    start: str = ""
    """Before the first argument, e.g. `(`. Where the arguments are one JSON value: what is left out with it, see `when_empty`."""
    end: str = ""
    entry: Skeleton = ()
    """One argument, e.g. `("<parameter=", KEY, ">\\n", VALUE, "\\n</parameter>\\n")`; empty: one JSON object."""
    separator: str = ""
    """Between two arguments, e.g. `, `."""
    closers: tuple[str, ...] = ()
    """Other spellings of the marker after a value, e.g. `&lt;/a&gt;` where a template escapes its own `</a>`."""
    codec: Codec = Codec()
    when_empty: str | None = None
    """Text in place of the arguments where there are none, if that is not start + end (or `{}`)."""

    @property
    def between(self) -> str:
        """The text between a value and the next argument's name, e.g. `, ` or a line break."""
        value, key = self.entry.index(Slot.VALUE), self.entry.index(Slot.KEY)
        around = (*self.entry[value + 1 :], self.separator, *self.entry[:key])
        return "".join(part for part in around if not isinstance(part, Slot))

    @property
    def open_ended(self) -> bool:
        """True when values have neither quotes nor an end marker of their own: `a=Paris, b=3`."""
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
    """Empty when the function's name is itself the key of its arguments (`{"f": {…}}`)."""
    args_field: tuple[str, ...] = ()
    id_field: tuple[str, ...] = ()
    gen_id_field: tuple[str, ...] = ()
    """Path of a counter that the template writes as the id."""
    array_wrapped: bool = False
    """Calls are in a JSON array."""

    @property
    def name_is_key(self) -> bool:
        """True when the name is a key of the object: `{"f": {…}}`."""
        return not self.name_field


MARKERS = ("section_start", "call_start", "call_end", "section_end")
"""The fields of the markers around a run of calls, and around each call, in the order of the text."""


class CallMarkers(NamedTuple):
    """The markers around a run of calls and around each of them, in the order of the text."""

    run_opener: str
    opener: str
    closer: str
    run_closer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSyntax:
    """The notation of calls.

    It holds the markers around all calls and around each, and the skeletons of a call and of its arguments.
    """

    section_start: str = ""
    """Before the first call, once, e.g. `<tool_calls>[`."""
    section_end: str = ""
    call_start: str = ""
    """Before each call, e.g. `<tool_call>\\n`."""
    call_end: str = ""
    separator: str = ""
    """Between two calls, e.g. `, ` or a line break."""
    function: Skeleton = ()
    """One call, e.g. `('{"name": "', NAME, '", "arguments": ', ARGUMENTS, "}")`."""
    arguments: Arguments = Arguments()
    id_parts: tuple[int, int] | None = None
    """The call's id is the text of `function[a:b]`, e.g. `functions.f:0`."""
    index_start: int = 0
    id_length: int = 0
    """Number of letters and digits of an id where the template takes no others, e.g. 9; 0 where it takes any."""
    parallel: bool = True
    """More than one call may be written."""
    whole: bool = False
    """A call counts only when it is complete and well-formed; until then its text is held, then it is content."""
    why: str = ""
    """For declared syntaxes: the reason no template shows it."""

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
        """The JSON object that holds name and arguments; None where they are in none."""
        listed = any(text.rstrip().endswith("[") for text in (self.section_start, self.call_start))
        return None if self.arguments.entry else _envelope(self.function, listed)

    @property
    def openers(self) -> list[str]:
        """The literals that begin calls, the outermost first."""
        chain = (self.section_start, self.call_start, text_of(*self.function[:1]))
        return [text for text in chain if text.strip()]

    @property
    def markers(self) -> CallMarkers:
        """The markers around the run and around each call; `MARKERS` are their fields."""
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
    def name_prefix(self) -> str:
        """The literal before the name, e.g. `<function=`."""
        return _literal_beside(self.function, Slot.NAME, -1)

    @property
    def name_suffix(self) -> str:
        """The literal after the name, e.g. `>`."""
        return _literal_beside(self.function, Slot.NAME, +1)

    @property
    def function_close(self) -> str:
        """The literal after the arguments, e.g. `</function>`."""
        return _literal_beside(self.function, Slot.ARGUMENTS, +1)

    @property
    def arg_name_prefix(self) -> str:
        """The literal before an argument's name, e.g. `<parameter=`."""
        return _literal_beside(self.arguments.entry, Slot.KEY, -1)

    @property
    def arg_name_suffix(self) -> str:
        """The literal after an argument's name. It reaches up to the value when nothing else is between."""
        return _literal_beside(self.arguments.entry, Slot.KEY, +1)

    @property
    def value_prefix(self) -> str:
        """The literal before a value, e.g. `<arg_value>`."""
        return _literal_beside(self.arguments.entry, Slot.VALUE, -1)

    @property
    def value_suffix(self) -> str:
        """The literal after a value, e.g. `</arg_value>`."""
        return _literal_beside(self.arguments.entry, Slot.VALUE, +1)


_NAME, _ID, _NUMBER = "unrender name", "unrender id", 730501
_FILLED = {Slot.NAME: _NAME, Slot.ID: _ID, Slot.INDEX: str(_NUMBER), Slot.ARGUMENTS: "{}", Slot.ANY: "any"}
"""Values for the slots of a call: with them its JSON can be read, and the slots be found in it."""


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
        # `{"f": {…}}`: where the name is the key, the arguments have no key of their own.
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
    """Return the text of a part; nothing for a slot."""
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
    """e.g. `<think>\\n`; empty in mode DELIMITER."""
    end: str = ""
    """e.g. `\\n</think>`, up to but without the joint to what follows."""
    empty: str = ""
    """Text in place of reasoning where there is none, e.g. `<think></think>` or a bare `</think>`."""
    unseen: bool = False
    """No rendering shows reasoning, only its markers are known: what models write after the end is a convention."""
    holds_calls: bool = False
    """Calls after reasoning are written inside its markers; the end is not written before them."""

    @property
    def ends_within_start(self) -> bool:
        """True when the end marker is part of the start marker, e.g. `~~` for both.

        After the start, the next occurrence of the end closes reasoning.
        """
        end = self.end.strip()
        return bool(end) and end in self.start

    def opened_in(self, text: str) -> bool:
        """Return whether a marker in `text` begins reasoning; where none does, only the prompt has begun it."""
        return bool(self.start.strip()) and self.start.strip() in text

    def closed_in(self, text: str) -> bool:
        """Return whether `text` ends reasoning: it has the end marker, not only as part of the start marker."""
        end = self.end.strip()
        return bool(end) and end in text.replace(self.start.strip(), "", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The notation of content."""

    mode: ContentMode = ContentMode.PLAIN
    start: str = ""
    """e.g. `<|START_RESPONSE|>`."""
    end: str = ""
    wraps_empty: bool = False
    """The wrapper is written even around no content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTexts:
    """The texts around an answer, and the white space that joins its parts."""

    headers: tuple[str, ...] = ()
    """Texts between the last input and the answer, one per kind of input, shortest common form first,
    e.g. `<|im_start|>assistant\\n`."""
    end: str = ""
    """End of turn, e.g. `<|im_end|>\\n`."""
    ends: tuple[str, ...] = ()
    """Other ends of turn, e.g. `<|eom_id|>`."""
    prefill: str = ""
    """Text that the generation prompt writes after the header when thinking is on, e.g. `<think>\\n`."""
    prefill_no_thinking: str = ""
    """The same when thinking is off, e.g. `<think>\\n\\n</think>\\n\\n`."""
    unasked: str = ""
    """The header, or the rest of it, that no generation prompt writes, e.g. `<|assistant|>\\n`: the model may."""
    start_to_content: str = ""
    """Layout that the history writes before an answer but the generation prompt does not."""
    reasoning_to_content: str = ""
    """Joint between reasoning and content, e.g. two line breaks."""
    reasoning_to_tools: str = ""
    content_to_tools: str = ""
    start_to_tools: str = ""
    """Joint between the header and the first call when nothing is between."""
    tools_to_content: str = ""
    tools_first: bool = False
    """Calls are written before content."""

    @property
    def all_ends(self) -> tuple[str, ...]:
        """All texts that end a turn, each once, without the white space around it."""
        return tuple(dict.fromkeys(text.strip() for text in (self.end, *self.ends) if text.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """Other ways in which a model writes a marker: read, never generated.

    What closes calls needs none: any closing tag in its place is read, and reported.
    """

    marker: str
    others: tuple[str, ...]
    why: str = ""
