"""Tests of converting formats to response templates, with rows of `tests/corpus/exports.jsonl`.

A row has `why`, a `format` (of `rows.FORMATS` or `tests/formats`), and optional changes to it (`with`). It also has either the expected
`error`, or a `field` with its expected properties:

- `has`: the field's keys and values, with null for missing keys; `value_parser`: the parser of arguments between markers;
- `opens`: texts, and the rest after the opener, or null if nothing opens; `captures`: the opener's groups;
- `closes`, `rests`: texts, and the part before or after the closer, or null if nothing closes;
- `dropped`: texts, and the rest without everything that closes the field; `entries`: texts, with key and value;
- `omits`: the reported omission, or null; `concerns`: the capabilities that may be lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from rows import FORMATS, patched

from unrender import ChatTemplate
from unrender.errors import ExportError
from unrender.export import Exported, read_response_template
from unrender.format import Format, TurnTexts

TESTS = Path(__file__).resolve().parents[2]
GOLDEN = {path.stem: path for path in sorted((TESTS / "formats").glob("*.json"))}
LINES = (TESTS / "corpus" / "exports.jsonl").read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = list(map(json.loads, LINES))
Texts = Mapping[str, Any]


def golden(name: str) -> Format:
    return Format.from_json(GOLDEN[name].read_text(encoding="utf-8"))


def exported_as(format: Format, target: str = "transformers") -> Exported:
    """Return the response template of a Format."""
    return ChatTemplate.from_string("", format=format).response_template(target=target)


def format_of(row: Texts) -> Format:
    base = FORMATS[row["format"]][0] if row["format"] in FORMATS else golden(row["format"])
    return Format.from_dict(patched(base.to_dict(), row.get("with", {})))


def found(pattern: str, texts: Texts, tell: Callable[[re.Match[str]], Any]) -> dict[str, Any]:
    """Return the result of `tell` for the first match in each text, or None without a match."""
    matches = {text: re.search(pattern, text, re.DOTALL) for text in texts}
    return {text: tell(match) if match else None for text, match in matches.items()}


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "field" in row], ids=lambda row: f"{row['why']}: {row['format']}"
)
def test_a_field_reads_what_the_row_says(row: dict[str, Any]) -> None:
    """Openers and closers match the written whitespace, and capture names and ids."""
    exported = exported_as(format_of(row), row.get("target", "transformers"))
    field = exported.template["fields"][row["field"]]
    opener, closer = field.get("open_pattern", "(?!)"), field.get("close_pattern", "(?!)")
    entry = field.get("content_args", {}).get("tag_pattern", "(?!)")
    omitted = [omission.what for omission in exported.omissions]
    told: dict[str, Callable[[Any], Any]] = {
        "has": lambda wanted: {key: field.get(key) for key in wanted},
        "value_parser": lambda _: field["content_args"]["value_parser"],
        "opens": lambda texts: found(opener, texts, lambda match: match.string[match.end() :]),
        "captures": lambda texts: found(opener, texts, lambda match: match.groupdict()),
        "closes": lambda texts: found(closer, texts, lambda match: match.string[: match.start()]),
        "rests": lambda texts: found(closer, texts, lambda match: match.string[match.end() :]),
        "dropped": lambda texts: {text: re.sub(closer, "", text) for text in texts},
        "entries": lambda texts: found(entry, texts, lambda match: [match["key"], match["value"]]),
        "omits": lambda what: what if any(what and what in text for text in omitted) else omitted or None,
        "concerns": lambda _: [name for omission in exported.omissions for name in omission.concerns],
    }

    assert {key: told[key](row[key]) for key in told if key in row} == {key: row[key] for key in told if key in row}


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "error" in row], ids=lambda row: f"{row['why']}: {row['format']}"
)
def test_what_no_field_can_read_is_refused(row: dict[str, Any]) -> None:
    """The error states why the format can't be exported."""
    with pytest.raises(ExportError, match=re.escape(row["error"])):
        exported_as(format_of(row))


def test_the_answer_begins_after_any_header() -> None:
    """All headers are anchors, and a single one is plain text. Without a header, the end of the prompt is the anchor."""
    headers = (("<a>",), ("<a>", "<b>"), ())
    one, two, none = (exported_as(Format(turn=TurnTexts(headers=each))).template for each in headers)

    assert (one["start_anchor"], two["start_anchor"], none["start_anchor_pattern"]) == ("<a>", ["<a>", "<b>"], r"\Z")


def test_an_unknown_target_is_an_error() -> None:
    """An unknown target is an error that lists the known targets."""
    with pytest.raises(ExportError, match=r"target: expected one of \['transformers', 'vllm'\], found 'other'"):
        exported_as(Format(), "other")


@pytest.mark.parametrize("name", GOLDEN)
def test_servers_find_what_they_ask_for(name: str) -> None:
    """Templates for vLLM and SGLang have only fields that these servers read, text stays verbatim, and calls have an opener."""
    try:
        exported = exported_as(golden(name), "vllm")
    except ExportError:
        pytest.skip("refused, as another test shows")
    regions = exported.template["fields"]
    texts = [regions[name] for name in ("thinking", "content") if name in regions]

    assert set(regions) <= {"thinking", "content", "tool_calls"}
    assert set(exported.template["defaults"]) == {"role"}
    assert [set(field) & {"transform", "join"} for field in texts] == [set()] * len(texts)
    assert "open_pattern" in regions.get("tool_calls", {"open_pattern": ""})
    assert read_response_template(exported.template).template == exported.template


@cases
def test_what_is_no_response_template_is_refused(broken: Any, message: str) -> None:
    """The error names the place of the mistake."""
    with pytest.raises(ExportError, match=re.escape(message)):
        read_response_template(broken)
