"""Tests of Format as plain data: saving, loading, and access by field names."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from properties.families import FAMILIES, TAG_AND_JSON, Family

from unrender.errors import FormatError, FormatVersionError
from unrender.format import (
    FORMAT_VERSION,
    Arguments,
    CallSyntax,
    Codec,
    Content,
    Format,
    Reasoning,
    Spelling,
    TurnTexts,
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_format_survives_json(family: Family) -> None:
    """A format survives a round trip through JSON, indented or not."""
    format = family.format

    assert Format.from_json(format.to_json()) == format
    assert Format.from_json(format.to_json(indent=None)) == format


@pytest.mark.parametrize("version", ["0", "3", '"1"', "null", "true", "1.5"])
def test_another_version_is_a_clear_error(version: str) -> None:
    """A version that this release doesn't support is an error."""
    with pytest.raises(FormatVersionError, match="expected 1 or"):
        Format.from_json(f'{{"version": {version}}}')


@cases
def test_a_broken_format_names_the_place(text: str, message: str) -> None:
    """An error in a format's JSON names the place and the expected value."""
    with pytest.raises(FormatError, match=message):
        Format.from_json(text)


@cases
def test_the_position_of_the_id_follows_from_the_skeleton(family: str, position: str) -> None:
    """The id is before the name, between name and arguments, or after the arguments."""
    [format] = [found.format for found in FAMILIES if found.name == family]

    assert format.tools.call_id == position


SAVED = json.loads((Path(__file__).parent / "version_1.json").read_text(encoding="utf-8"))
"""Formats as saved by releases with version 1. Together they have every field except new ones."""
NEW = ("checked", "sorted_keys")
"""Fields that are newer than version 1. Rows of `tests/corpus` cover them."""


@pytest.mark.parametrize("data", SAVED)
def test_formats_of_version_1_are_read(data: dict[str, Any]) -> None:
    """Every value keeps its meaning. The format is saved with the current version, without derived fields."""
    data = copy.deepcopy(data)
    format = Format.from_dict(data)

    for saved, syntax in zip(
        (data.get("tools", {}), *data.get("tolerated", ())), (format.tools, *format.tolerated), strict=True
    ):
        said = {name: path for name, path in saved.pop("envelope", {}).items() if name != "list_field"}
        assert saved.pop("mode", "none") == syntax.mode
        envelope = json.loads(json.dumps(asdict(syntax.envelope))) if syntax.envelope else {}
        assert said == {name: value for name, value in envelope.items() if value}
    assert Format.from_dict(data) == format
    assert format.to_dict() == data | {"version": FORMAT_VERSION}


def test_the_saved_formats_have_every_field() -> None:
    """The saved formats contain every field, so that a renamed field is detected. Newer fields are listed."""
    text = json.dumps([SAVED, {"escapes": (), "closers": ()}])
    kinds = (Format, TurnTexts, Reasoning, Content, CallSyntax, Arguments, Codec, Spelling)

    assert [item.name for kind in kinds for item in fields(kind) if f'"{item.name}": ' not in text] == list(NEW)


GONE: list[tuple[str, Any, Any]] = [
    ("repeats", True, False),
    ("as_string", True, False),
    ("codec.entities", [["&", "&amp;"]], []),
    ("codec.escaped_containers", True, False),
]


@pytest.mark.parametrize("place", ["tools", "tolerated[0]"])
@pytest.mark.parametrize(("name", "said", "default"), GONE)
def test_what_is_gone_since_version_1_is_named(place: str, name: str, said: Any, default: Any) -> None:
    """A removed field with an effect is an error, and one with its default is ignored."""

    def saved(value: Any) -> dict[str, Any]:
        field = name.rpartition(".")[2]
        inner = {"codec": {field: value}} if "." in name else {field: value}
        syntax = TAG_AND_JSON.format.to_dict()["tools"] | {"arguments": inner}
        return {"version": 1, "tools": syntax} | (
            {} if place == "tools" else {"tolerated": [syntax], "tools": {"mode": "none"}}
        )

    with pytest.raises(
        FormatError, match=re.escape(f"format.{place}.arguments.{name}: this field of version 1 was removed")
    ):
        Format.from_dict(saved(said))
    assert Format.from_dict(saved(default)).to_dict()["version"] == FORMAT_VERSION


@cases
def test_words_that_are_gone_since_version_1_are_named(arguments: dict[str, Any], place: str) -> None:
    """The error lists the allowed words."""
    with pytest.raises(FormatError, match=f"format.tools.{place}: expected one of"):
        Format.from_dict({"version": 1, "tools": {"arguments": arguments}})


@pytest.mark.parametrize("data", [{"tools": 1}, {"tools": {"arguments": 1}}, {"tolerated": 1}, {"tolerated": [1]}])
def test_version_1_is_checked_as_version_2_is(data: dict[str, Any]) -> None:
    """Data that isn't a format is an error that names the place."""
    with pytest.raises(FormatError, match="expected"):
        Format.from_dict({"version": 1} | data)
