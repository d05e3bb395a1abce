"""Checks one call syntax: skeletons, entries and codecs that could not be written and read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from unrender.format.parts import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Part,
    Skeleton,
    Slot,
    Strings,
    Typing,
    text_of,
)
from unrender.limits import MAX_ID, MAX_INDEX, MAX_PARTS, MAX_SMALL

# Skeletons.

Problem = tuple[str, str]
"""What a check finds: a path, e.g. `format.tools.function[0]`, and what was expected and found there."""


def check_skeleton(parts: Skeleton, known: Sequence[Slot], where: str) -> Iterator[Problem]:
    """Yield the problems that any skeleton can have.

    Its slots must be among `known`, and between two slots there may be only one text.
    """
    if len(parts) > MAX_PARTS:
        yield where, f"expected at most {MAX_PARTS} parts, found {len(parts)}"
    for at, part in enumerate(parts):
        if isinstance(part, Slot) and part not in known:
            yield f"{where}[{at}]", f"expected one of the slots {[slot.value for slot in known]}, found {part.value!r}"
        elif part == "":
            yield f"{where}[{at}]", "expected a text or a slot, found nothing"
        elif at and not isinstance(part, Slot) and not isinstance(parts[at - 1], Slot):
            yield f"{where}[{at}]", "expected a slot, as a text comes before it"


def check_once(parts: Skeleton, slot: Slot, where: str) -> Iterator[Problem]:
    """Yield a problem unless `slot` occurs exactly once."""
    if parts.count(slot) != 1:
        yield where, f"expected the slot `{slot.value}` once, found it {parts.count(slot)} times"


def check_touching(parts: Skeleton, where: str, free: tuple[Slot, ...] = ()) -> Iterator[Problem]:
    """Yield the slots that only white space, or nothing, separates from the slot before.

    Slots in `free` may follow directly, since the parser knows where they begin.
    """
    before: Part = ""
    for at, part in enumerate(parts):
        if not isinstance(part, Slot):
            # `KEY " " VALUE`: white space ends a name, and nothing else. `VALUE " " KEY` could be one value with a blank.
            before = part if part.strip() or before is Slot.KEY else before
            continue
        # `NAME " " INDEX`: the counter is a number, so the two are told apart.
        spaced = part is Slot.INDEX and before is Slot.NAME and not isinstance(parts[at - 1], Slot)
        if isinstance(before, Slot) and not spaced and (part not in free or before is Slot.ANY):
            yield f"{where}[{at}]", f"expected a text between the slots `{before.value}` and `{part.value}`"
        before = part


_WORDS = (Slot.NAME, Slot.ID, Slot.INDEX, Slot.KEY, Slot.TYPE)


def check_after_words(parts: Skeleton, arguments: Arguments, where: str) -> Iterator[Problem]:
    """Yield the texts after a name or an id that begin with a letter or digit.

    The parser would take them for a part of that name or id.
    """
    first = arguments.entry[:1]
    # An entry that begins with its key begins with a letter: after the name `f`, `city=Rome` would give `fcity`.
    begins = arguments.start or ("name" if first and isinstance(first[0], Slot) else text_of(*first)) or "{"
    for at, part in enumerate(parts[1:], start=1):
        texts = (begins, arguments.when_empty or "") if part is Slot.ARGUMENTS else (text_of(part),)
        if parts[at - 1] in _WORDS and any(text[:1].isalnum() or text[:1] == "_" for text in texts):
            yield f"{where}[{at}]", f"expected no letter or digit right after `{parts[at - 1]}`, found {texts[0]!r}"


def literals(parts: Skeleton) -> list[str]:
    """Return the texts of a skeleton, in order."""
    return [part for part in parts if not isinstance(part, Slot)]


# Calls.

_FUNCTION_SLOTS = (Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.INDEX, Slot.ANY)


def check_tools(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the problems of one call syntax by itself."""
    if tools == CallSyntax():
        return
    if not 0 <= tools.id_length <= MAX_ID:
        yield f"{where}.id_length", f"expected a number from 0 to {MAX_ID}"
    if not 0 <= tools.index_start <= MAX_INDEX:
        yield f"{where}.index_start", f"expected a number from 0 to {MAX_INDEX}"
    yield from _function(tools, f"{where}.function")
    if not tools.envelope:
        yield from _unmarked(tools, where)
    yield from _id_parts(tools, f"{where}.id_parts")
    yield from check_arguments(tools, f"{where}.arguments")


def _function(tools: CallSyntax, where: str) -> Iterator[Problem]:
    parts = tools.function
    yield from check_skeleton(parts, _FUNCTION_SLOTS, where)
    yield from check_once(parts, Slot.ARGUMENTS, where)
    if Slot.NAME not in parts:
        yield where, "expected the slot `name`"
    elif Slot.ARGUMENTS in parts and parts.index(Slot.NAME) > parts.index(Slot.ARGUMENTS) and not tools.envelope:
        yield where, "expected the slot `name` before `arguments`"
    if parts.count(Slot.ID) > 1:
        yield where, "expected the slot `id` once at most"
    yield from check_touching(parts, where, free=(Slot.ARGUMENTS, Slot.ANY))
    yield from check_after_words(parts, tools.arguments, where)


def is_marked(tools: CallSyntax) -> bool:
    """Return whether a marker, or a bracket of JSON, comes before the name of a call."""
    return tools.envelope is not None or bool(tools.openers)


def _unmarked(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the problems of a call that no marker announces, as the first call or as one after another."""
    parts, empty = tools.function, tools.arguments.when_empty
    first, last = text_of(*parts[:1]), text_of(*parts[-1:])
    opened = is_marked(tools)
    if not opened and parts[:1] != (Slot.NAME,):
        yield f"{where}.function", "expected the slot `name` first, since no marker comes before it"
    following = (tools.separator + tools.call_start + first).strip()
    if tools.parallel and not following and parts[:1] != (Slot.NAME,):
        yield (
            f"{where}.function",
            "expected the slot `name` first, since no marker comes before a call that follows another",
        )
    if not opened and not tools.arguments.entry and empty is not None and empty[:1] not in ("{", '"'):
        yield f"{where}.arguments.when_empty", f"expected an object, as nothing else shows a call, found {empty!r}"
    # `f()f()`: brackets show where a call without arguments ends; `ff` would be one name.
    brackets = tools.arguments.entry and (tools.arguments.start + tools.arguments.end).strip()
    written = empty.strip() if empty is not None else brackets or not tools.arguments.entry
    between = (last + tools.call_end + tools.separator + tools.call_start + first).strip()
    if tools.parallel and not between and not written:
        yield f"{where}.separator", "expected a text between a call without arguments and the next one"


def _id_parts(tools: CallSyntax, where: str) -> Iterator[Problem]:
    if tools.id_parts is None:
        return
    first, last = tools.id_parts
    parts = tools.function
    if not 0 <= first < last <= len(parts):
        yield where, f"expected two ascending positions from 0 to {len(parts)}, found {[first, last]}"
    elif Slot.ARGUMENTS in parts[:last]:
        yield where, "expected parts before the arguments"
    elif tools.envelope or Slot.ID in parts:
        yield where, "the id has a place of its own"


# Arguments.

_ENTRY_SLOTS = (Slot.KEY, Slot.VALUE, Slot.TYPE)
_JSON_TYPES = ("string", "number", "boolean", "null", "object", "array")
_WORD_ENDS = frozenset(" \t\r\n\"'{}[]()<>,=")
"""Characters at which the parser ends a word, see `machine.arguments`."""


def check_arguments(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the problems in the way a call's arguments are written."""
    arguments = tools.arguments
    tagged = bool(arguments.entry)
    if tagged:
        yield from _entry(tools, f"{where}.entry")
    else:
        for name in ("separator",) if arguments.when_empty is not None else ("start", "end", "separator"):
            if getattr(arguments, name):
                yield f"{where}.{name}", "expected nothing, as the arguments are one object"
        if arguments.codec.strings is not _strings_of_object(arguments.codec.containers):
            yield f"{where}.codec.strings", "expected strings and containers of one notation, `json` or `python`"
        if tools.envelope and arguments.start + arguments.end:
            yield f"{where}.start", "expected nothing, since the arguments are in a JSON object"
    if arguments.codec.escapes and tagged != (arguments.codec.strings in (Strings.RAW, Strings.QUOTED)):
        yield f"{where}.codec.escapes", "expected nothing, since values end by themselves"
    if not all(map(str.strip, arguments.closers)) or (arguments.closers and not tagged):
        yield f"{where}.closers", "expected markers, and only where each argument is written for itself"
    yield from _codec(arguments.codec, f"{where}.codec")


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
    # `<city>Rome</city>`: only a value that is quoted, or raw and typed by the schema, may be closed by its own name.
    elif named_twice and not (in_tags or raw or quoted):
        only = "containers are `xml`, or strings have quotes or are `raw` and typed by `schema`"
        yield where, f"expected the key after the value only where {only}"


def _ends_of_arguments(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield what leaves open where the arguments end, or a raw value does."""
    arguments, parts = tools.arguments, tools.arguments.entry
    after = tools.function.index(Slot.ARGUMENTS) + 1 if Slot.ARGUMENTS in tools.function else len(tools.function)
    closers = (arguments.end, *literals(tools.function[after:]), tools.call_end, tools.section_end)
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
    if not arguments.open_ended or Slot.KEY not in parts:
        return
    # A raw value ends where the next argument begins: of `a=Rome, b=3` at `, b=`, of `a=Rome\nb=3` at the line's end.
    beside_key = "".join(literals(parts[parts.index(Slot.KEY) : parts.index(Slot.VALUE)])).strip()
    if not arguments.between:
        yield where, "expected a marker after the value, as raw strings have no quotes"
    elif not arguments.between.strip() and not beside_key:
        yield where, "expected a marker before or after the key, as nothing else ends a raw value before it"
    if not closed and tools.parallel and not "".join(ends).strip():
        yield where, "expected a marker before a call that follows another, as nothing else ends a raw value"


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
    if not 0 <= codec.indent <= MAX_SMALL:
        yield f"{where}.indent", f"expected a number from 0 to {MAX_SMALL}"
    for name, core in (("item_separator", ","), ("key_separator", ":")):
        if getattr(codec, name).strip() != core:
            yield f"{where}.{name}", f"expected {core!r} with white space, found {getattr(codec, name)!r}"
    if bool(codec.item_tag.strip()) != (codec.containers is Containers.XML):
        yield f"{where}.item_tag", "expected a tag's name where, and only where, containers are `xml`"
    if codec.containers is Containers.BARE and codec.strings.unquoted:
        yield f"{where}.containers", "keys without quotes stand only where strings have quotes"
    if codec.cdata and codec.strings is not Strings.RAW:
        yield f"{where}.cdata", "only raw strings stand in CDATA"
    forms = [form for _, form in codec.escapes]
    if any(len(character) != 1 for character, _ in codec.escapes) or len({*forms, ""}) <= len(forms):
        yield f"{where}.escapes", "expected single characters, each with a form of its own"
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
