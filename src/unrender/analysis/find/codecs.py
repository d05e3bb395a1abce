"""Finds the codec of rendered values by encoding the original values again.

Strategy: each property of a codec is guessed from the values that show it. The best guess is the codec that reproduces most of the
template's text exactly. Values that aren't reproduced are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, assert_never

from unrender.analysis.ask.probes import PLAIN_NEEDLE
from unrender.format import Arguments, Codec, Containers, Strings, Typing, Words
from unrender.values.notations import encode_value

_SEPARATORS: tuple[dict[str, Any], ...] = tuple(
    {"item_separator": item, "key_separator": key} for item, key in ((", ", ": "), (",", ":"), (",", ": "), (", ", ":"))
)
_INDENTS = (2, 4, 1, 3, 8)
_IN_STRING = (('"', '\\"'), ("\\", "\\\\"), ("\n", "\\n"))
"""Characters that are escaped if a JSON object is written inside a JSON string, each with its escape."""
_MARKS = "\"'\\<>&\n\r\t\f\b\v\a/"
"""Characters that templates may escape in raw text: those with an escape of their own in Python, JSON or HTML."""


FoundCodec = tuple[Codec, tuple[str, ...]]
"""A codec, and a message for each value that the codec doesn't reproduce."""


def find_json_codec(text: str, values: Mapping[str, Any], margin: str) -> FoundCodec:
    """Find the codec with which `text` encodes `values` as one JSON object or Python dictionary."""
    python = {"strings": Strings.PYTHON, "words": Words.PYTHON, "containers": Containers.PYTHON}
    quoted = (layout | {"escapes": _IN_STRING} for layout in _json_layouts())
    # Try every layout, e.g. `{"a":1}` and `{"a": 1}`. Use the first one that reproduces the text exactly.
    for sorted_keys, layout in product((False, True), [*_json_layouts(), *quoted, python]):
        codec = Codec(sorted_keys=sorted_keys, **layout)
        if encode_value(values, codec, margin=margin) == text:
            return codec, ()
    return Codec(), (f"the arguments {text!r:.200} are written in no known layout",)


def find_value_codec(written: Mapping[str, str], arguments: Arguments, values: Mapping[str, Any]) -> FoundCodec:
    """Find the codec that encodes each of `values` as the text in `written`.

    `arguments` is the syntax of arguments that has been found so far.
    """
    seen = {key: value for key, value in values.items() if key in written}
    codec = arguments.codec
    # Derive each property from the values that show it: strings don't show `None` or `null`, and lists don't show quotes. Containers come
    # last and are compared with all values, because `["a", 2]` also depends on the notation of strings and words.
    codec = replace(codec, **_strings(written, seen, codec))
    words = min(Words, key=lambda option: len(_misfits(written, seen, Arguments(codec=Codec(words=option)))))
    # If the null value isn't rendered, the codec omits nulls, as in `f(a=1)` for `{"a": 1, "b": null}`.
    codec = replace(codec, words=words, omits_null="pkeyap" in values and "pkeyap" not in written)
    trials = (
        replace(arguments, codec=replace(codec, containers=containers, sorted_keys=sorted_keys, **option))
        for sorted_keys, containers in product((False, True), Containers)
        for option in _container_options(containers, written)
    )
    best = min(trials, key=lambda trial: len(_misfits(written, seen, trial)))
    unexplained = (
        f"the value {seen[key]!r} is written as {written[key]!r:.200}, the codec says {text!r:.200}"
        for key, text in _misfits(written, seen, best)
    )
    return best.codec, tuple(unexplained)


def _misfits(written: Mapping[str, str], values: Mapping[str, Any], arguments: Arguments) -> list[tuple[str, str]]:
    """Return the keys whose values the codec encodes differently from the template, each with the codec's text."""
    encoded = ((key, encode_value(value, arguments.codec, arguments.entry)) for key, value in values.items())
    return [(key, text) for key, text in encoded if text != written[key]]


def _json_layouts() -> Iterator[dict[str, Any]]:
    for ascii_only in (False, True):
        for layout in (*_SEPARATORS, *({"indent": indent} for indent in _INDENTS)):
            yield layout | {"ascii_only": ascii_only}


def _strings(written: Mapping[str, str], values: Mapping[str, Any], codec: Codec) -> dict[str, Any]:
    """Return the codec options that reproduce the most strings. Of equally good options, the first is used."""
    strings = {key: value for key, value in values.items() if isinstance(value, str)}
    escapes = _escapes(written, strings, codec)
    opened = bool(codec.string_open)
    options = [
        {"strings": kind} | option for kind in Strings for option in _string_options(kind, escapes, opened=opened)
    ]
    if codec.typed_by is Typing.ATTRIBUTE:
        options = [option | {"typed_by": Typing.ATTRIBUTE} for option in options if option["strings"].unquoted]

    best = min(options, key=lambda option: len(_misfits(written, strings, Arguments(codec=replace(codec, **option)))))
    # If strings have another notation, such as JSON's `"`, text before strings but not before numbers isn't a quotation mark.
    if best["strings"] is not Strings.QUOTED:
        best = best | {"string_open": "", "string_close": ""}
    return best


def _escapes(written: Mapping[str, str], strings: Mapping[str, str], codec: Codec) -> tuple[tuple[str, str], ...]:
    """Return pairs of a character and its escape, or an empty tuple if the rendered strings also differ from their values in other ways."""
    # If `a < b` is written as `a &lt; b`, the text between the words, `&lt;`, is the escape. A character has one escape everywhere, which
    # also splits `&lt;/`, the text of `</`.
    forms: dict[str, str] = {}
    for key, value in strings.items():
        marks = {character: f"m{ord(character)}" for character in value if character in _MARKS}
        places = {character: f"(?P<{name}>.{{1,8}}?)" for character, name in marks.items() if character not in forms}
        pattern = ""
        for character in value:
            known = f"(?P={marks[character]})" if character in marks and character not in forms else ""
            pattern += places.pop(character, known) or re.escape(forms.get(character, character))
        inside = written[key].removeprefix(codec.string_open).removesuffix(codec.string_close)
        found = re.fullmatch(pattern, inside, re.DOTALL)
        if found is None:
            return ()
        forms |= {character: found[name] for character, name in marks.items() if character not in forms}
    return tuple((character, form) for character, form in forms.items() if form != character)


def _string_options(
    strings: Strings, escapes: tuple[tuple[str, str], ...], *, opened: bool
) -> Iterator[dict[str, Any]]:
    """Yield codec options for a notation of strings. `opened` is true if a marker precedes strings but not numbers."""
    match strings:
        case Strings.JSON:
            yield from ({"ascii_only": ascii_only} for ascii_only in (False, True))
        case Strings.PYTHON | Strings.SINGLE:
            yield {}
        case Strings.RAW:
            unopened: tuple[dict[str, Any], ...] = ({}, {"cdata": True}, {"escapes": escapes})
            yield from ({"typed_by": Typing.SCHEMA} | option for option in (unopened[1:2] if opened else unopened))
        case Strings.QUOTED:
            yield from ({}, {"escapes": escapes}) if opened else ()
        case _:
            assert_never(strings)


def _container_options(containers: Containers, written: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    match containers:
        case Containers.JSON:
            yield from _json_layouts()
        case Containers.PYTHON:
            yield {}
        case Containers.BARE:
            yield from _SEPARATORS
        case Containers.XML:
            yield from ({"item_tag": tag} for tag in _item_tags(written.get("pkeyaq", "")))
        case _:
            assert_never(containers)


def _item_tags(text: str) -> list[str]:
    """Return candidates for the tag of a list's items: the words before the first item, nearest first."""
    # In `<list><item>valdrixo`, the nearest word, `item`, is the most likely candidate.
    head = text.partition(PLAIN_NEEDLE)[0]
    words = "".join(character if character.isalnum() or character in "_-" else " " for character in head).split()
    return list(dict.fromkeys(reversed(words)))
