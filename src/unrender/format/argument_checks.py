"""Checks how a call's arguments are written: entries and codecs that could not be read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from unrender.format.codec import Codec, Containers, Strings, Typing
from unrender.format.parts import Arguments, CallSyntax, Skeleton, Slot, ToolMode
from unrender.format.skeleton_checks import (
    Problem,
    check_after_words,
    check_once,
    check_skeleton,
    check_touching,
    literals,
)
from unrender.limits import MAX_INDENT

_ENTRY_SLOTS = (Slot.KEY, Slot.VALUE, Slot.TYPE)
_JSON_TYPES = ("string", "number", "boolean", "null", "object", "array")
_WORD_ENDS = frozenset(" \t\r\n\"'{}[]()<>,=")
"""Characters at which the parser ends a word, see `machine.slots`."""


def check_arguments(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the problems in the way a call's arguments are written."""
    arguments = tools.arguments
    tagged = tools.mode is ToolMode.TAG_WITH_TAGGED
    if tagged != bool(arguments.entry):
        yield f"{where}.entry", f"expected {'a skeleton' if tagged else 'none'} in mode `{tools.mode.value}`"
    elif tagged:
        yield from _entry(tools, f"{where}.entry")
    else:
        yield from _one_object(arguments, where)
        if tools.envelope and arguments.start + arguments.end:
            yield f"{where}.start", "expected nothing, since the arguments are in a JSON object"
    yield from _codec(arguments.codec, f"{where}.codec")


def _one_object(arguments: Arguments, where: str) -> Iterator[Problem]:
    for name in ("separator",) if arguments.when_empty is not None else ("start", "end", "separator"):
        if getattr(arguments, name):
            yield f"{where}.{name}", "expected nothing, as the arguments are one object"
    codec = arguments.codec
    if codec.strings is not _strings_of_object(codec.containers):
        yield f"{where}.codec.strings", "expected strings and containers of one notation, `json` or `python`"


def _strings_of_object(containers: Containers) -> Strings | None:
    """Return how strings are written in arguments that are one object; None where arguments cannot be that."""
    match containers:
        case Containers.JSON:
            return Strings.JSON
        case Containers.PYTHON:
            return Strings.PYTHON
        case Containers.BARE | Containers.XML:
            return None
        case _:
            assert_never(containers)


def _entry(tools: CallSyntax, where: str) -> Iterator[Problem]:
    arguments, parts = tools.arguments, tools.arguments.entry
    yield from check_skeleton(parts, _ENTRY_SLOTS, where)
    yield from check_once(parts, Slot.VALUE, where)
    if not 1 <= parts.count(Slot.KEY) <= 2:
        yield where, f"expected the slot `key` once or twice, found it {parts.count(Slot.KEY)} times"
    elif Slot.VALUE in parts and parts.index(Slot.KEY) > parts.index(Slot.VALUE):
        yield where, "expected the slot `key` before `value`"
    if parts.count(Slot.TYPE) != (arguments.codec.typed_by is Typing.ATTRIBUTE):
        yield where, "expected the slot `type` where, and only where, the codec is typed by `attribute`"
    elif Slot.TYPE in parts and Slot.VALUE in parts and parts.index(Slot.TYPE) > parts.index(Slot.VALUE):
        yield where, "expected the slot `type` before `value`"
    yield from check_touching(parts, where)
    yield from check_after_words(parts, arguments, where)
    yield from _ends_of_arguments(tools, where)
    named_twice = Slot.VALUE in parts and Slot.KEY in parts[parts.index(Slot.VALUE) :]
    codec = arguments.codec
    in_tags = codec.containers is Containers.XML
    raw = codec.strings is Strings.RAW and codec.typed_by is Typing.SCHEMA and not codec.cdata
    quoted = not codec.strings.unquoted
    if in_tags and not named_twice:
        yield where, "expected the key after the value as well, since containers are `xml`"
    elif named_twice and not (in_tags or raw or quoted):
        yield (
            where,
            "expected the key after the value only where containers are `xml`, or strings have quotes or are `raw` and typed by `schema`",
        )


def _ends_of_arguments(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield what leaves open where the arguments end, or a raw value does."""
    arguments, parts = tools.arguments, tools.arguments.entry
    after_arguments = (
        tools.function[tools.function.index(Slot.ARGUMENTS) + 1 :] if Slot.ARGUMENTS in tools.function else ()
    )
    closers = (arguments.end, *literals(after_arguments), tools.call_end, tools.section_end)
    closed = any(text.strip() for text in closers)
    opener = _first_words(parts[:1])
    named = "".join(literals(parts[: parts.index(Slot.VALUE)])) if Slot.VALUE in parts else ""
    lined = arguments.separator.isspace() or (not arguments.separator and bool(literals(parts[:1])))
    if not closed and not opener and not (named.strip() and lined):
        yield f"{where.removesuffix('.entry')}.end", "expected a marker that ends the arguments, here or after them"
    ends = closers if closed else (tools.separator, tools.call_start, *literals(tools.function[:1]))
    if opener and opener[0] in [word for text in ends for word in _first_words((text,))]:
        yield f"{where}[0]", f"expected another beginning than {opener[0]!r}, which ends the arguments"
    between, nearest = arguments.separator.strip(), next((text.strip() for text in closers if text.strip()), "")
    if between and nearest.startswith(between):
        yield f"{where.removesuffix('.entry')}.separator", f"expected another text than {nearest!r} begins with"
    if arguments.open_ended and Slot.KEY in parts:
        yield from _ends_of_raw(arguments, where)
        if not closed and tools.parallel and not "".join(ends).strip():
            yield where, "expected a marker before a call that follows another, as nothing else ends a raw value"


def _ends_of_raw(arguments: Arguments, where: str) -> Iterator[Problem]:
    """Yield what keeps the next argument from being seen, which ends a raw value that no marker does."""
    parts = arguments.entry
    named = "".join(literals(parts[parts.index(Slot.KEY) : parts.index(Slot.VALUE)]))
    if not arguments.between:
        yield where, "expected a marker after the value, as raw strings have no quotes"
    elif not arguments.between.strip() and not named.strip():
        yield where, "expected a marker before or after the key, as nothing else ends a raw value before it"


def _first_words(parts: Skeleton) -> list[str]:
    """Return the first word of each text."""
    return [text.split(maxsplit=1)[0] for text in literals(parts) if text.strip()]


def _codec(codec: Codec, where: str) -> Iterator[Problem]:
    quoted = codec.strings is Strings.QUOTED
    for name in ("string_open", "string_close"):
        quote = getattr(codec, name)
        if bool(quote.strip()) != quoted or (quote and not quoted):
            yield f"{where}.{name}", f"expected {'a marker' if quoted else 'nothing'}, found {quote!r}"
    if codec.strings.unquoted != (codec.typed_by is not Typing.SYNTAX):
        yield (
            f"{where}.typed_by",
            "expected `syntax` where strings have quotes, and something else where they have none",
        )
    if not 0 <= codec.indent <= MAX_INDENT:
        yield f"{where}.indent", f"expected a number from 0 to {MAX_INDENT}"
    for name, core in (("item_separator", ","), ("key_separator", ":")):
        if getattr(codec, name).strip() != core:
            yield f"{where}.{name}", f"expected {core!r} with white space, found {getattr(codec, name)!r}"
    if bool(codec.item_tag.strip()) != (codec.containers is Containers.XML):
        yield f"{where}.item_tag", "expected a tag's name where, and only where, containers are `xml`"
    if codec.containers is Containers.BARE and codec.strings.unquoted:
        yield f"{where}.containers", "keys without quotes stand only where strings have quotes"
    if codec.cdata and codec.strings is not Strings.RAW:
        yield f"{where}.cdata", "only raw strings stand in CDATA"
    yield from _types(codec, f"{where}.types")


def _types(codec: Codec, where: str) -> Iterator[Problem]:
    if (codec.typed_by is Typing.ATTRIBUTE) != bool(codec.types):
        yield where, "expected a word for each type where, and only where, the codec is typed by `attribute`"
        return
    if codec.types and sorted(kind for kind, _ in codec.types) != sorted(_JSON_TYPES):
        yield where, f"expected each of {list(_JSON_TYPES)} once"
    for at, (kind, word) in enumerate(codec.types):
        if not word or _WORD_ENDS & set(word):
            yield f"{where}[{at}]", f"expected a word without spaces, quotes and brackets, found {word!r}"
        if kind != "string" and word == dict(codec.types).get("string"):
            yield f"{where}[{at}]", f"expected another word than the one for strings, found {word!r}"
