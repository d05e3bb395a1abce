"""The generated pages of docs/reference match the code."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import replace

import jsonschema
import pytest
import reference
from environment import ROOT
from properties.families import COUNTED, FAMILIES, TAGGED

from unrender.format import Format

OF_VENDORS = "docs/reference/gallery.json"
"""The page about templates that may be unavailable. Its lines are compared one by one."""
FORMATS = [Format(), replace(TAGGED.format, tolerated=(COUNTED.format.tools,)), *(family.format for family in FAMILIES)]


@pytest.mark.parametrize("name", [name for name in reference.PAGES if name != OF_VENDORS])
def test_page_is_current(name: str) -> None:
    """A generated page equals the output of scripts/reference.py, so every added or removed public name shows."""
    page = (ROOT / name).read_text(encoding="utf-8")

    current = reference.PAGES[name](page) == page

    assert current, f"run `python scripts/reference.py {name}`; for public names see docs/dev/contributing.md"


def test_words_are_defined_once() -> None:
    """No two glossary entries have the same word or the same definition, and none is empty."""
    words = [word for section in reference.GLOSSARY.values() for word in section]
    meanings = [line.partition(": ")[2] for line in reference.glossary().splitlines() if line.startswith("**")]

    assert len(words) == len(set(words)) == len(meanings) == len(set(meanings))
    assert all(meanings)


BOUND = re.compile(r"^\| [^|]+ \| `(?P<module>[\w.]+):(?P<name>[\w.]+)` \| (?P<value>[\d,.]+) \|", re.MULTILINE)
SECURITY = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
BOUNDS = [found.groups() for found in BOUND.finditer(SECURITY)]


@pytest.mark.parametrize(("module", "name", "value"), BOUNDS, ids=[f"{module}:{name}" for module, name, _ in BOUNDS])
def test_bounds_are_as_documented(module: str, name: str, value: str) -> None:
    """Each limit in docs/explanation/security.md equals the one in the code."""
    owner, _, field = name.rpartition(".")
    found: object = importlib.import_module(module)
    if owner:
        found = getattr(found, owner)()
    assert getattr(found, field) == float(value.replace(",", ""))


def test_every_bound_is_compared() -> None:
    """The test above compares every line of the page that names a constant."""
    named = re.findall(r"^\|.*`unrender[\w.]*:", SECURITY, re.MULTILINE)

    assert len(named) == len(BOUNDS) > 20


@pytest.mark.parametrize("format_", FORMATS)
def test_schema_accepts_formats(format_: Format) -> None:
    """The JSON of a Format conforms to the published schema."""
    found = jsonschema.Draft202012Validator(reference.schema()).iter_errors(json.loads(format_.to_json()))

    assert list(found) == []


@pytest.mark.parametrize(
    "broken",
    [{"turn": {"end": 1}}, {"tools": {"mode": "other"}}, {"tools": {"function": [{"slot": "what"}]}}, {"unknown": ""}],
    ids=str,
)
def test_schema_rejects_what_is_no_format(broken: dict[str, object]) -> None:
    """Wrong types, words, slots and fields don't conform to the published schema."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 2} | broken, reference.schema())
