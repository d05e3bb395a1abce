"""The generated pages of docs/reference say what the code says."""

from __future__ import annotations

import json

import cli_reference
import format_schema
import jsonschema
import lint_rules
import pytest

from unrender.format import Arguments, Codec, Envelope, Format, Reasoning, ReasoningMode, Slot, Strings, ToolMode, Tools

FORMATS = [
    Format(),
    Format(
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
        tools=Tools(
            mode=ToolMode.TAG_WITH_TAGGED,
            function=("<f=", Slot.NAME, ">", Slot.ARGUMENTS, "</f>"),
            arguments=Arguments(entry=("<p=", Slot.KEY, ">", Slot.VALUE, "</p>"), codec=Codec(strings=Strings.RAW)),
        ),
        tolerated=(Tools(mode=ToolMode.JSON_NATIVE, envelope=Envelope(name_field=("name",)), id_parts=(0, 2)),),
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
        jsonschema.validate({"version": 1} | broken, format_schema.schema())
