"""Regenerate the golden formats and the results in `tests/corpus`, or add a row.

Usage: `python3 scripts/corpus.py` regenerates the result of each row, and keeps texts and reasons. Review the diff before you commit it:
each changed line is visible to users. `python3 scripts/corpus.py --add tagged '{"why": "No closer", "text": "<tool_call>"}'` adds a
row for a format. `tests/rows.py` documents the other fields of a row.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import environment

sys.path.append(str(environment.ROOT / "tests"))

import message_rows
import schema_rows
from explanation_rows import EXPLANATIONS, SAID, said
from recipes import ANALYSIS, DERIVED, derived, rows_of
from rendering_rows import RENDERING, facts, rendered, shaped
from rows import ANSWERS, FORMATS, READ, Row, rows
from value_rows import VALUES, given, value_rows

from unrender.analysis import analyze
from unrender.errors import FormatError
from unrender.format import FORMAT_VERSION, Format
from unrender.rendering import Template

TEMPLATES = environment.ROOT / "tests" / "templates"
CHECKS = environment.ROOT / "tests" / "corpus" / "format_checks.jsonl"
GOLDEN = environment.ROOT / "tests" / "formats"

ORDER = (
    *(
        "why",
        "with",
        "tools",
        "more_tools",
        "tool_choice",
        "named_tool",
        "parallel_tool_calls",
        "response_schema",
        "reasoning_format",
    ),
    *("prompt", "prefill", "is_continuation", "known_ids", "policy", "strict", "text", "finish", *READ),
)
"""The fields of a row in reading order."""


def main() -> None:
    """Regenerate all rows, and add the new row, if any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", nargs=2, metavar=("FORMAT", "ROW"), help="a format, and a new row as JSON")
    write_formats()
    found = {name: rows(ANSWERS / f"{name}.jsonl") for name in FORMATS if (ANSWERS / f"{name}.jsonl").exists()}
    if added := parser.parse_args().add:
        name, data = added
        found.setdefault(name, []).append(Row(name=name, data=json.loads(data)))
    for name, of_format in found.items():
        write(name, map(read_anew, of_format))
    kept = [
        {key: value for key, value in row.items() if key not in schema_rows.READ} for row in schema_rows.schema_rows()
    ]
    lines = [_line({**row, **schema_rows.read(row)}, ("why", "schema", "longest", *schema_rows.READ)) for row in kept]
    schema_rows.SCHEMAS.write_text("".join(lines), encoding="utf-8")
    values = [{**row, "gives": given(row)} for row in value_rows()]
    VALUES.write_text("".join(_line(row, ("why",)) for row in values), encoding="utf-8")
    anew(CHECKS, problem_of, ("problem",))
    for name, reading in (("expressions", rendered), ("facts", facts), ("shapes", shaped)):
        anew(RENDERING / f"{name}.jsonl", reading, ("text", "error", "exhausted", "needs", "shaped"))
    anew(EXPLANATIONS, said, SAID)
    anew(message_rows.MESSAGES, message_rows.read, ("gives", "error"))
    recipes = [{**row, **derived(row)} for row in rows_of(ANALYSIS)]
    order = ("why", "frame", "thoughts", "calls", "oddity", "template", "answer", "prompt", *DERIVED)
    ANALYSIS.write_text("".join(_line(row, order) for row in recipes), encoding="utf-8")


def anew(path: Path, reading: Callable[[Mapping[str, Any]], Mapping[str, Any]], says: Iterable[str]) -> None:
    """Return the rows of a file with regenerated results."""
    kept = [{key: row[key] for key in row if key not in says} for row in rows_of(path)]
    path.write_text("".join(_line({**row, **reading(row)}, ("why",)) for row in kept), encoding="utf-8")


def problem_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the error of an invalid format, as in its row."""
    try:
        Format.from_dict({"version": FORMAT_VERSION, **row["format"]})
    except FormatError as error:
        return {"problem": str(error)}
    return {}


def write_formats() -> None:
    """Write the derived format of each test template, and remove formats without a template."""
    texts = {f"{path.stem}.json": derived_format(path).to_json() + "\n" for path in sorted(TEMPLATES.glob("*.jinja"))}
    for name, text in texts.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
    for path in GOLDEN.glob("*.json"):
        if path.name not in texts:
            path.unlink()


def derived_format(path: Path) -> Format:
    """Return the format that is derived from the template itself, without additions from declared formats."""
    format = analyze(Template(path.read_text(encoding="utf-8"))).format
    return replace(format, tolerated=(), spellings=(), ignored=(), declared=(), preserved_tokens=())


def read_anew(row: Row) -> dict[str, Any]:
    """Return a row's data with regenerated results."""
    kept = {key: value for key, value in row.data.items() if key not in READ}
    allowed = row.allowed()
    return {**kept, **row.read([row.text]), **({} if allowed is None else {"written": allowed})}


def write(name: str, data: Iterable[Mapping[str, Any]]) -> None:
    """Write the file of a format."""
    (ANSWERS / f"{name}.jsonl").write_text("".join(_line(item, ORDER) for item in data), encoding="utf-8")


def _line(data: Mapping[str, Any], order: Iterable[str]) -> str:
    """Return a row as a line, with the most important fields first."""
    ordered = {key: data[key] for key in dict.fromkeys((*order, *data)) if key in data}
    text = json.dumps(ordered, ensure_ascii=False)
    # Half of a surrogate pair, which a token may contain, can only be written as an escape.
    return f"{text if _is_whole(text) else json.dumps(ordered)}\n"


def _is_whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


if __name__ == "__main__":
    main()
