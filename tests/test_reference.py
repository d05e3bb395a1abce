"""The generated pages of docs/reference say what the code says."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re

import cli_reference
import environment
import format_schema
import glossary
import jsonschema
import limits_table
import lint_rules
import public_api
import pytest

from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Envelope,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Strings,
    ToolMode,
    Typing,
)

FORMATS = [
    Format(),
    Format(
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            function=("<f=", Slot.NAME, ">", Slot.ARGUMENTS, "</f>"),
            arguments=Arguments(
                entry=("<p=", Slot.KEY, ">", Slot.VALUE, "</p>"),
                codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA),
            ),
        ),
        tolerated=(
            CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, ":", Slot.ARGUMENTS), id_parts=(0, 2)),
            CallSyntax(
                mode=ToolMode.JSON_NATIVE, function=('{"', Slot.NAME, '": ', Slot.ARGUMENTS, "}"), envelope=Envelope()
            ),
        ),
    ),
]


def test_published_schema_is_current() -> None:
    """docs/reference/format.schema.json is what scripts/format_schema.py writes."""
    current = format_schema.PAGE.read_text(encoding="utf-8") == format_schema.text()

    assert current, "the Format has changed: run `python scripts/format_schema.py`"


def test_command_line_reference_is_current() -> None:
    """docs/reference/cli.md is what scripts/cli_reference.py writes."""
    current = cli_reference.PAGE.read_text(encoding="utf-8") == cli_reference.text()

    assert current, "the command line has changed: run `python scripts/cli_reference.py`"


def test_lint_reference_is_current() -> None:
    """docs/reference/lint.md is what scripts/lint_rules.py writes."""
    current = lint_rules.PAGE.read_text(encoding="utf-8") == lint_rules.text()

    assert current, "the rules have changed: run `python scripts/lint_rules.py`"


def test_limits_reference_is_current() -> None:
    """docs/reference/limits.md is what scripts/limits_table.py writes."""
    current = limits_table.PAGE.read_text(encoding="utf-8") == limits_table.text()

    assert current, "a limit has changed: run `python scripts/limits_table.py`"


def test_glossary_is_current() -> None:
    """docs/glossary.md is what scripts/glossary.py writes."""
    current = glossary.PAGE.read_text(encoding="utf-8") == glossary.text()

    assert current, "what a word means has changed: run `python scripts/glossary.py`"


def test_words_are_defined_once() -> None:
    """No two entries of the glossary are of one word, or say the same of two, and each says something."""
    words = [word for section in glossary.SECTIONS.values() for word in section]
    entries = [line for line in glossary.text().splitlines() if line.startswith("**")]
    meanings = [entry.partition(": ")[2] for entry in entries]

    assert len(entries) == len({word.word for word in words}) == len({word.meaning for word in words})
    assert all(meanings)
    assert len(set(meanings)) == len(meanings)


def test_public_names_are_listed() -> None:
    """docs/reference/api.txt is what scripts/public_api.py writes: no public name comes or goes unseen."""
    current = public_api.PAGE.read_text(encoding="utf-8") == public_api.text()

    assert current, (
        "public names have changed: run `python scripts/public_api.py`, and see docs/reference/versioning.md"
    )


BOUND = re.compile(r"^\| [^|]+ \| `(?P<module>[\w.]+):(?P<name>[\w.]+)` \| (?P<value>[\d,.]+) \|", re.MULTILINE)
SECURITY = (environment.ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
BOUNDS = [found.groups() for found in BOUND.finditer(SECURITY)]


@pytest.mark.parametrize(("module", "name", "value"), BOUNDS, ids=[f"{module}:{name}" for module, name, _ in BOUNDS])
def test_bounds_are_as_documented(module: str, name: str, value: str) -> None:
    """Each bound that docs/explanation/security.md states is that of the code."""
    owner, _, field = name.rpartition(".")
    found = importlib.import_module(module)
    if owner:
        defaults = {item.name: item.default for item in dataclasses.fields(getattr(found, owner))}
        assert defaults[field] == float(value.replace(",", ""))
    else:
        assert getattr(found, field) == float(value.replace(",", ""))


def test_every_bound_is_compared() -> None:
    """No line of the page that names a constant escapes the test above."""
    named = re.findall(r"^\|.*`unrender[\w.]*:", SECURITY, re.MULTILINE)

    assert len(named) == len(BOUNDS) > 20


@pytest.mark.parametrize("format_", FORMATS)
def test_schema_accepts_formats(format_: Format) -> None:
    """The JSON of a Format obeys the published schema."""
    found = jsonschema.Draft202012Validator(format_schema.schema()).iter_errors(json.loads(format_.to_json()))

    assert list(found) == []


@pytest.mark.parametrize(
    "broken",
    [{"turn": {"end": 1}}, {"tools": {"mode": "other"}}, {"tools": {"function": [{"slot": "what"}]}}, {"unknown": ""}],
    ids=str,
)
def test_schema_rejects_what_is_no_format(broken: dict[str, object]) -> None:
    """Wrong types, words, slots and fields do not obey the published schema."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 2} | broken, format_schema.schema())
