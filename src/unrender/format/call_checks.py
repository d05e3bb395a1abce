"""One call syntax in, what is wrong with it out: skeletons, codecs and envelopes that cannot be written and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from unrender.format.entities import unescape
from unrender.format.parts import (
    Arguments,
    Codec,
    Containers,
    Part,
    Skeleton,
    Slot,
    Strings,
    ToolMode,
    Tools,
    Typing,
)
from unrender.format.problems import Problem

MAX_PARTS = 32
"""Most parts of a skeleton."""
MAX_INDENT = 16
"""Most spaces per level of pretty-printed JSON."""
MAX_INDEX = 1_000_000
"""Largest number of the first call."""
MAX_DEPTH = 8
"""Most keys of an envelope's path."""

_FUNCTION_SLOTS = (Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.INDEX, Slot.ANY)
_ENTRY_SLOTS = (Slot.KEY, Slot.VALUE, Slot.TYPE)
_JSON_TYPES = ("string", "number", "boolean", "null", "object", "array")
_WORD_ENDS = frozenset(" \t\r\n\"'{}[]()<>,=")
"""Characters at which the parser ends a word, see `parsing.slots`."""


def check_tools(tools: Tools, where: str) -> Iterator[Problem]:
    """Yield what is wrong with a call syntax by itself."""
    if tools.mode is ToolMode.NONE:
        if tools != Tools():
            yield f"{where}.mode", "calls are described, and their mode is `none`"
        return
    if not 0 <= tools.index_start <= MAX_INDEX:
        yield f"{where}.index_start", f"expected a number from 0 to {MAX_INDEX}"
    yield from _function(tools, f"{where}.function")
    if not tools.envelope:
        yield from _unmarked(tools, where)
    yield from _id_parts(tools, f"{where}.id_parts")
    yield from _arguments(tools, f"{where}.arguments")
    yield from _envelope(tools, f"{where}.envelope")


# The skeletons.


def _function(tools: Tools, where: str) -> Iterator[Problem]:
    parts = tools.function
    yield from _skeleton(parts, _FUNCTION_SLOTS, where)
    yield from _once(parts, Slot.ARGUMENTS, where)
    if Slot.NAME not in parts:
        yield where, "expected the slot `name`"
    elif Slot.ARGUMENTS in parts and parts.index(Slot.NAME) > parts.index(Slot.ARGUMENTS) and not tools.envelope:
        yield where, "expected the slot `name` before `arguments`"
    if parts.count(Slot.ID) > 1:
        yield where, "expected the slot `id` once at most"
    yield from _touching(parts, where, free=(Slot.ARGUMENTS, Slot.ANY))
    yield from _after_words(parts, tools.arguments, where)


def is_marked(tools: Tools) -> bool:
    """Return whether a marker, or the bracket of JSON, stands before the name of a call."""
    first = _literal(tools.function[0]) if tools.function else ""
    return tools.envelope is not None or bool((tools.section_start + tools.call_start + first).strip())


def _unmarked(tools: Tools, where: str) -> Iterator[Problem]:
    """Yield what keeps a call from being seen where no marker shows it: neither first, nor after another call."""
    parts, empty = tools.function, tools.arguments.when_empty
    first, last = _literal(parts[0]) if parts else "", _literal(parts[-1]) if parts else ""
    opened = is_marked(tools)
    if not opened and parts[:1] != (Slot.NAME,):
        yield f"{where}.function", "expected the slot `name` first, as no marker stands before it"
    following = (tools.separator + tools.call_start + first).strip()
    if tools.parallel and not following and parts[:1] != (Slot.NAME,):
        yield (
            f"{where}.function",
            "expected the slot `name` first, as no marker stands before a call that follows another",
        )
    if not opened and not tools.arguments.entry and empty is not None and empty[:1] not in ("{", '"'):
        yield f"{where}.arguments.when_empty", f"expected an object, as nothing else shows a call, found {empty!r}"
    brackets = tools.arguments.entry and (tools.arguments.start + tools.arguments.end).strip()
    written = empty.strip() if empty is not None else brackets or not tools.arguments.entry
    between = (last + tools.call_end + tools.separator + tools.call_start + first).strip()
    if tools.parallel and not between and not written:
        yield f"{where}.separator", "expected a text between a call without arguments and the next one"


def _skeleton(parts: Skeleton, known: Sequence[Slot], where: str) -> Iterator[Problem]:
    """Yield what holds for every skeleton: slots of its own, and between two of them one text at most."""
    if len(parts) > MAX_PARTS:
        yield where, f"expected at most {MAX_PARTS} parts, found {len(parts)}"
    for at, part in enumerate(parts):
        if isinstance(part, Slot) and part not in known:
            yield f"{where}[{at}]", f"expected one of the slots {[slot.value for slot in known]}, found {part.value!r}"
        elif part == "":
            yield f"{where}[{at}]", "expected a text or a slot, found nothing"
        elif at and isinstance(part, Slot) == isinstance(parts[at - 1], Slot) is False:
            yield f"{where}[{at}]", "expected a slot, as a text comes before it"


def _once(parts: Skeleton, slot: Slot, where: str) -> Iterator[Problem]:
    if parts.count(slot) != 1:
        yield where, f"expected the slot `{slot.value}` once, found it {parts.count(slot)} times"


def _touching(parts: Skeleton, where: str, free: tuple[Slot, ...] = ()) -> Iterator[Problem]:
    """Yield the slots that nothing but white space tells from the slot before, unless the parser knows where they begin."""
    before: Part = ""
    for at, part in enumerate(parts):
        if not isinstance(part, Slot):
            before = part if part.strip() else before
            continue
        if isinstance(before, Slot) and (part not in free or before is Slot.ANY):
            yield f"{where}[{at}]", f"expected a text between the slots `{before.value}` and `{part.value}`"
        before = part


_WORDS = (Slot.NAME, Slot.ID, Slot.INDEX, Slot.KEY, Slot.TYPE)


def _after_words(parts: Skeleton, arguments: Arguments, where: str) -> Iterator[Problem]:
    """Yield the texts that go on a name or an id before them, as they begin with a letter or digit themselves."""
    begins = arguments.start or "".join(map(_literal, arguments.entry[:1])) or "{"
    for at, part in enumerate(parts[1:], start=1):
        text = begins if part is Slot.ARGUMENTS else _literal(part)
        instead = (arguments.when_empty or "") if part is Slot.ARGUMENTS else ""
        if parts[at - 1] in _WORDS and any(first.isalnum() or first == "_" for first in (text[:1], instead[:1])):
            yield f"{where}[{at}]", f"expected no letter or digit right after `{parts[at - 1]}`, found {text!r}"


def _literal(part: Part) -> str:
    return "" if isinstance(part, Slot) else part


def _id_parts(tools: Tools, where: str) -> Iterator[Problem]:
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


def _arguments(tools: Tools, where: str) -> Iterator[Problem]:
    arguments = tools.arguments
    tagged = tools.mode is ToolMode.TAG_WITH_TAGGED
    if tagged != bool(arguments.entry):
        yield f"{where}.entry", f"expected {'a skeleton' if tagged else 'none'} in mode `{tools.mode.value}`"
    elif tagged:
        yield from _entry(tools, f"{where}.entry")
    else:
        yield from _one_object(arguments, where)
    yield from _codec(arguments.codec, f"{where}.codec")


def _one_object(arguments: Arguments, where: str) -> Iterator[Problem]:
    for name in ("start", "end", "separator"):
        if getattr(arguments, name):
            yield f"{where}.{name}", "expected nothing, as the arguments are one object"
    if arguments.repeats:
        yield f"{where}.repeats", "the arguments are one object, in which a list is one value"
    codec = arguments.codec
    if codec.strings is not _strings_of_object(codec.containers):
        yield f"{where}.codec.strings", "expected strings and containers of one notation, `json`, `python` or `single`"
    if arguments.as_string and codec.containers is not Containers.JSON:
        yield f"{where}.as_string", "only JSON is written as a JSON string"


def _strings_of_object(containers: Containers) -> Strings | None:
    """Return how strings are written in arguments that are one object; None where arguments cannot be that."""
    match containers:
        case Containers.JSON:
            return Strings.JSON
        case Containers.PYTHON:
            return Strings.PYTHON
        case Containers.SINGLE:
            return Strings.SINGLE
        case Containers.BARE | Containers.JOINED | Containers.XML:
            return None
        case _:
            assert_never(containers)


def _entry(tools: Tools, where: str) -> Iterator[Problem]:
    arguments, parts = tools.arguments, tools.arguments.entry
    yield from _skeleton(parts, _ENTRY_SLOTS, where)
    yield from _once(parts, Slot.VALUE, where)
    if not 1 <= parts.count(Slot.KEY) <= 2:
        yield where, f"expected the slot `key` once or twice, found it {parts.count(Slot.KEY)} times"
    elif Slot.VALUE in parts and parts.index(Slot.KEY) > parts.index(Slot.VALUE):
        yield where, "expected the slot `key` before `value`"
    if parts.count(Slot.TYPE) != (arguments.codec.typed_by is Typing.ATTRIBUTE):
        yield where, "expected the slot `type` where, and only where, the codec is typed by `attribute`"
    elif Slot.TYPE in parts and Slot.VALUE in parts and parts.index(Slot.TYPE) > parts.index(Slot.VALUE):
        yield where, "expected the slot `type` before `value`"
    yield from _touching(parts, where)
    yield from _after_words(parts, arguments, where)
    if arguments.as_string:
        yield f"{where.removesuffix('.entry')}.as_string", "the arguments are no JSON object"
    if arguments.repeats and arguments.codec.containers in (Containers.JOINED, Containers.XML):
        yield f"{where.removesuffix('.entry')}.repeats", "the codec has another way to write the items of a list"
    yield from _ends_of_arguments(tools, where)
    named_twice = Slot.VALUE in parts and Slot.KEY in parts[parts.index(Slot.VALUE) :]
    codec = arguments.codec
    in_tags = codec.containers is Containers.XML
    raw = codec.strings is Strings.RAW and codec.typed_by is Typing.SCHEMA and not codec.cdata
    if in_tags and not named_twice:
        yield where, "expected the key after the value as well, since containers are `xml`"
    elif named_twice and not (in_tags or raw):
        yield (
            where,
            "expected the key after the value only where containers are `xml`, or strings `raw` and typed by `schema`",
        )


def _ends_of_arguments(tools: Tools, where: str) -> Iterator[Problem]:
    """Yield what has no marker after it: the arguments, or a raw value."""
    arguments, parts = tools.arguments, tools.arguments.entry
    behind = tools.function[tools.function.index(Slot.ARGUMENTS) + 1 :] if Slot.ARGUMENTS in tools.function else ()
    closers = (arguments.end, *_literals(behind), tools.call_end, tools.section_end)
    if not any(text.strip() for text in closers):
        yield f"{where.removesuffix('.entry')}.end", "expected a marker that ends the arguments, here or after them"
    opener = _first_words(parts[:1])
    if opener and opener[0] in [word for text in closers for word in _first_words((text,))]:
        yield f"{where}[0]", f"expected another beginning than {opener[0]!r}, which ends the arguments"
    between, nearest = arguments.separator.strip(), next((text.strip() for text in closers if text.strip()), "")
    if between and nearest.startswith(between):
        yield f"{where.removesuffix('.entry')}.separator", f"expected another text than {nearest!r} begins with"
    suffix = parts[parts.index(Slot.VALUE) + 1 :][:1] if Slot.VALUE in parts else ("",)
    separated = bool(between and arguments.end.strip())
    if arguments.codec.strings.unquoted and not any(map(str.strip, suffix)) and not separated:
        yield where, "expected a marker after the value, as raw strings have no quotes"


def _first_words(parts: Skeleton) -> list[str]:
    """Return the first word of each text."""
    return [text.split(maxsplit=1)[0] for text in _literals(parts) if text.strip()]


def _literals(parts: Skeleton) -> list[str]:
    return [part for part in parts if not isinstance(part, Slot)]


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
    if codec.containers is Containers.JOINED and not codec.strings.unquoted:
        yield f"{where}.containers", "lists are joined only where strings have no quotes"
    if codec.containers is Containers.BARE and codec.strings.unquoted:
        yield f"{where}.containers", "keys without quotes stand only where strings have quotes"
    if codec.cdata and codec.strings is not Strings.RAW:
        yield f"{where}.cdata", "only raw strings stand in CDATA"
    yield from _entities(codec, f"{where}.entities")
    yield from _types(codec, f"{where}.types")


def _entities(codec: Codec, where: str) -> Iterator[Problem]:
    if bool(codec.entities) != (codec.strings is Strings.ESCAPED):
        yield where, "expected entities where, and only where, strings are `escaped`"
        return
    characters = [character for character, _ in codec.entities]
    if codec.entities and "&" not in characters:
        yield where, "expected an entity for `&`: without one, no text with `&` can be read back"
    if len(set(characters)) < len(characters):
        yield where, "expected one entity for each character"
    for at, (character, entity) in enumerate(codec.entities):
        if len(character) != 1 or unescape(entity) != character or entity == character:
            yield f"{where}[{at}]", f"expected a character and its entity, found {character!r} and {entity!r}"
    if codec.escaped_containers and (
        not codec.entities or codec.containers not in (Containers.JSON, Containers.PYTHON)
    ):
        yield (
            where.replace("entities", "escaped_containers"),
            "only escaped lists and objects of JSON or Python are read",
        )


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


# The envelope.


def _envelope(tools: Tools, where: str) -> Iterator[Problem]:
    native = tools.mode is ToolMode.JSON_NATIVE
    if native != (tools.envelope is not None):
        yield where, f"expected {'one' if native else 'none'} in mode `{tools.mode.value}`"
    if tools.envelope is None or not native:
        return
    envelope = tools.envelope
    paths = {name: getattr(envelope, name) for name in _PATHS}
    for name, path in paths.items():
        if len(path) > MAX_DEPTH:
            yield f"{where}.{name}", f"expected at most {MAX_DEPTH} keys, found {len(path)}"
    written = _filled(tools)
    if written is None:
        yield where.replace(".envelope", ".function"), "expected the parts to make up one JSON object"
        return
    found = _found(written)
    for name in _PATHS:
        if paths[name] != found.get(name, ()):
            yield f"{where}.{name}", f"expected {list(found.get(name, ()))} as in `function`, found {list(paths[name])}"
    opened = any(text.rstrip().endswith("[") for text in (tools.section_start, tools.call_start))
    if opened != envelope.array_wrapped:
        yield f"{where}.array_wrapped", "expected true where, and only where, `[` opens the section or the call"


_PATHS = ("name_field", "args_field", "id_field", "gen_id_field")
_NAME, _ID, _NUMBER = "unrender name", "unrender id", 730501


def _filled(tools: Tools) -> dict[str, Any] | None:
    """Return the object that the skeleton writes for one call; None when it writes none, or a key twice."""
    arguments = '"{}"' if tools.arguments.as_string else "{}"
    values = {Slot.NAME: _NAME, Slot.ID: _ID, Slot.INDEX: str(_NUMBER), Slot.ARGUMENTS: arguments, Slot.ANY: "any"}
    text = "".join(values.get(part, "") if isinstance(part, Slot) else part for part in tools.function)
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or "" in found:
        raise ValueError("a key is empty or stands twice")
    return found


def _found(value: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return where in the written object the slots stand, by the envelope's field for each."""
    paths: dict[str, tuple[str, ...]] = {}
    for path, leaf in _leaves(value, ()):
        if leaf == _NAME:
            paths["name_field"] = path
        elif leaf == _ID:
            paths["id_field"] = path
        elif leaf in (_NUMBER, str(_NUMBER)):
            paths["gen_id_field"] = path
        elif leaf in ({}, "{}") and _NAME not in path:
            paths["args_field"] = path
    return paths


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value
