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
import turn_rows
from explanation_rows import EXPLANATIONS, SAID, said
from recipes import ANALYSIS, derived, rows_of
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
        write(ANSWERS / f"{name}.jsonl", map(read_anew, of_format))
    anew(schema_rows.SCHEMAS, schema_rows.read, schema_rows.READ)
    write(VALUES, ({**row, "gives": given(row)} for row in value_rows()))
    anew(CHECKS, problem_of, ("problem",))
    for name, reading in (("expressions", rendered), ("facts", facts), ("shapes", shaped)):
        anew(RENDERING / f"{name}.jsonl", reading, ("text", "error", "exhausted", "needs", "shaped"))
    anew(EXPLANATIONS, said, SAID)
    anew(message_rows.MESSAGES, message_rows.read, ("gives", "error"))
    anew(turn_rows.TURNS, turn_rows.outcome, turn_rows.SAYS)
    write(ANALYSIS, ({**row, **derived(row)} for row in rows_of(ANALYSIS)))


def anew(path: Path, reading: Callable[[Mapping[str, Any]], Mapping[str, Any]], says: Iterable[str]) -> None:
    """Write a file's rows with regenerated results."""

    def read_again(row: Mapping[str, Any]) -> dict[str, Any]:
        found = reading(row)
        return {key: row[key] for key in row if key not in says} | {key: found[key] for key in says if key in found}

    write(path, map(read_again, rows_of(path)))


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


def write(path: Path, data: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of a file."""
    path.write_text("".join(map(_line, data)), encoding="utf-8")


def _line(data: Mapping[str, Any]) -> str:
    # Half of a surrogate pair, which a token may contain, can only be written as an escape.
    return json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace").decode() + "\n"


if __name__ == "__main__":
    main()
