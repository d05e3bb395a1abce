"""Finds the codec that writes rendered values, by a round trip.

Strategy: each axis of a codec is guessed from the values that show it, and the guess holds only when the encoder writes
every probed value exactly as the template did. What does not fit is reported, never hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, assert_never

from unrender.format import Arguments, Codec, Containers, Strings, Typing, Words
from unrender.format.entities import ENTITIES
from unrender.values.encode import encode_arguments, encode_value

VALUES: Mapping[str, Any] = {
    "pkeyaa": "valdrixo",
    "pkeyab": "",
    "pkeyac": 'say "hi"',
    "pkeyad": "it's",
    "pkeyae": "back\\slash",
    "pkeyaf": "two\nlines",
    "pkeyag": "<b> & </b>",
    "pkeyah": "naïve 漢",
    "pkeyai": "0731",
    "pkeyaj": "true",
    "pkeyak": 7,
    "pkeyal": -7,
    "pkeyam": 2.5,
    "pkeyan": True,
    "pkeyao": False,
    "pkeyap": None,
    "pkeyaq": ["valdrixo", 2, False],
    "pkeyar": {"ma": "valdrixo", "mb": [1, True, None]},
    "pkeyas": [{"ma": 1}, {"ma": 2}],
    "pkeyat": ["<b> & </b> 漢"],
}
"""Values that tell codecs apart, under keys in alphabetical order, since some templates sort them."""
PLAIN = "valdrixo"
_SEPARATORS = ((", ", ": "), (",", ":"), (",", ": "), (", ", ":"))
_INDENTS = (2, 4, 1, 3, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecFinding:
    """The codec, and a sentence for each value that it does not reproduce."""

    codec: Codec
    unexplained: tuple[str, ...] = ()
    repeats: bool = False
    """Lists are written as arguments of one name."""


def find_json_codec(text: str, values: Mapping[str, Any], margin: str) -> CodecFinding:
    """Find the layout in which `text` writes `values` as one JSON object or Python dictionary."""
    for codec in _object_layouts():
        if encode_arguments(values, Arguments(codec=codec), margin=margin) == text:
            return CodecFinding(codec=codec)
    return CodecFinding(codec=Codec(), unexplained=(f"the arguments {text!r:.200} are written in no known layout",))


def find_value_codec(written: Mapping[str, str], arguments: Arguments, values: Mapping[str, Any]) -> CodecFinding:
    """Find the codec that writes each of `values` as in `written`.

    `arguments` holds what is known of the syntax so far.
    """
    seen = {key: value for key, value in values.items() if key in written}
    codec = arguments.codec
    codec = replace(codec, **_strings(written, seen, codec))
    codec = replace(codec, words=_words(written, seen), omits_null="pkeyap" in values and "pkeyap" not in written)
    trials = (replace(arguments, codec=option) for option in _container_codecs(written, codec))
    ways = (way for trial in trials for way in (trial, *_repeated(trial)))
    best = min(ways, key=lambda way: len(_misfits(written, seen, way)))
    misfits = _misfits(written, seen, best)
    unexplained = (
        f"the value {seen[key]!r} is written as {written[key]!r:.200}, the codec says {text!r:.200}"
        for key, text in misfits
    )
    return CodecFinding(codec=best.codec, unexplained=tuple(unexplained), repeats=best.repeats)


def _repeated(arguments: Arguments) -> Iterator[Arguments]:
    """Yield the same arguments with lists written item by item, where the codec has no way of its own for items."""
    match arguments.codec.containers:
        case Containers.JSON | Containers.PYTHON | Containers.SINGLE | Containers.BARE:
            yield replace(arguments, repeats=True)
        case Containers.JOINED | Containers.XML:
            return
        case _:
            assert_never(arguments.codec.containers)


def _misfits(written: Mapping[str, str], values: Mapping[str, Any], arguments: Arguments) -> list[tuple[str, str]]:
    """Return the keys whose values the codec writes otherwise, and how."""
    encoded = ((key, _between_ends(key, value, arguments)) for key, value in values.items())
    return [(key, text) for key, text in encoded if text != written[key]]


def _between_ends(key: str, value: Any, arguments: Arguments) -> str:
    """Return an argument's text without what is before and after its value; of a repeated argument, all items and what is between."""
    if not (arguments.repeats and isinstance(value, list) and value):
        return encode_value(value, arguments)
    head, _, tail = encode_arguments({key: value[:1]}, arguments).partition(encode_value(value[0], arguments))
    return encode_arguments({key: value}, arguments).removeprefix(head).removesuffix(tail)


def _object_layouts() -> Iterator[Codec]:
    for containers in Containers:
        yield from _layouts_of(containers)


def _layouts_of(containers: Containers) -> Iterator[Codec]:
    """Yield the ways to write all arguments as one object of such containers; none where they cannot be that."""
    match containers:
        case Containers.JSON:
            for ascii_only in (False, True):
                for item, key in _SEPARATORS:
                    yield Codec(item_separator=item, key_separator=key, ascii_only=ascii_only)
                for indent in _INDENTS:
                    yield Codec(indent=indent, ascii_only=ascii_only)
        case Containers.PYTHON:
            yield Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=containers)
        case Containers.SINGLE:
            for item, key in _SEPARATORS:
                yield Codec(strings=Strings.SINGLE, containers=containers, item_separator=item, key_separator=key)
        case Containers.BARE | Containers.JOINED | Containers.XML:
            return
        case _:
            assert_never(containers)


def _strings(written: Mapping[str, str], values: Mapping[str, Any], codec: Codec) -> dict[str, Any]:
    """Choose how strings are written: the first way that explains most of them."""
    strings = {key: value for key, value in values.items() if isinstance(value, str)}
    opened = bool(codec.string_open)
    options = [option for kind in Strings for option in _string_options(kind, written, strings, opened=opened)]
    if codec.typed_by is Typing.ATTRIBUTE:
        options = [option | {"typed_by": Typing.ATTRIBUTE} for option in options if option["strings"].unquoted]

    def misses(option: dict[str, Any]) -> int:
        trial = Arguments(codec=replace(codec, **option))
        return sum(encode_value(value, trial) != written[key] for key, value in strings.items())

    best = min(options, key=misses)
    if best["strings"] is not Strings.QUOTED:
        best = best | {"string_open": "", "string_close": ""}
    return best


def _string_options(
    strings: Strings, written: Mapping[str, str], values: Mapping[str, str], *, opened: bool
) -> Iterator[dict[str, Any]]:
    """Yield the ways of writing strings so; `opened` says that something is before strings and before no number."""
    match strings:
        case Strings.JSON:
            yield {"strings": strings}
            yield {"strings": strings, "ascii_only": True}
        case Strings.PYTHON | Strings.SINGLE:
            yield {"strings": strings}
        case Strings.RAW:
            if not opened:
                yield {"strings": strings, "typed_by": Typing.SCHEMA}
            yield {"strings": strings, "typed_by": Typing.SCHEMA, "cdata": True}
        case Strings.QUOTED:
            if opened:
                yield {"strings": strings}
        case Strings.ESCAPED:
            if entities := _entities(written, values):
                yield {"strings": strings, "typed_by": Typing.SCHEMA, "entities": entities}
        case _:
            assert_never(strings)


def _entities(written: Mapping[str, str], values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the characters that are written as entities; none where `&` is not, as no such text could be read."""
    shown = [
        (character, entity)
        for character, entities in ENTITIES.items()
        for entity in entities
        if any(entity in written[key] for key in values)
    ]
    found = dict(reversed(shown))
    return tuple((character, found[character]) for character in ENTITIES if character in found) if "&" in found else ()


def _words(written: Mapping[str, str], values: Mapping[str, Any]) -> Words:
    def misses(option: Words) -> int:
        trial = Arguments(codec=Codec(words=option))
        return sum(encode_value(value, trial) != written[key] for key, value in values.items())

    return min(Words, key=misses)


def _container_codecs(written: Mapping[str, str], codec: Codec) -> Iterator[Codec]:
    for containers in Containers:
        for option in _container_options(containers, written, codec):
            yield replace(codec, containers=containers, **option)


def _container_options(containers: Containers, written: Mapping[str, str], codec: Codec) -> Iterator[dict[str, Any]]:
    match containers:
        case Containers.JSON:
            yield from _json_options(codec)
        case Containers.PYTHON:
            yield {}
            if codec.entities:
                yield {"escaped_containers": True}
        case Containers.BARE | Containers.SINGLE:
            for item, key in _SEPARATORS:
                yield {"item_separator": item, "key_separator": key}
        case Containers.JOINED:
            for item, key in _SEPARATORS if codec.strings.unquoted else ():
                yield {"item_separator": item, "key_separator": key}
        case Containers.XML:
            for tag in _item_tags(written["pkeyaq"]) if "pkeyaq" in written else ():
                yield {"item_tag": tag}
        case _:
            assert_never(containers)


def _json_options(codec: Codec) -> Iterator[dict[str, Any]]:
    """Yield the layouts of JSON: on one line, indented and, where strings are escaped, escaped like these."""
    for ascii_only, (item, key) in product((codec.ascii_only, not codec.ascii_only), _SEPARATORS):
        yield {"item_separator": item, "key_separator": key, "ascii_only": ascii_only}
    for indent in _INDENTS:
        yield {"indent": indent}
    if codec.entities:
        for item, key in _SEPARATORS:
            yield {"item_separator": item, "key_separator": key, "escaped_containers": True}


def _item_tags(text: str) -> list[str]:
    """Return the words before the first item of a list, which may name the items' tag."""
    head = text.partition(PLAIN)[0]
    words = "".join(character if character.isalnum() or character in "_-" else " " for character in head).split()
    return list(dict.fromkeys(reversed(words)))
