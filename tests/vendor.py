"""Folders of the vendors' own templates and of recorded cases, which aren't in this repository and may be missing.

Rules: tests parametrise over the results of these functions, so without the data they are skipped. The summary of the
test run then reports that the conformance tests didn't run.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import fetch

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def vendor_templates() -> dict[str, Path]:
    """Return the vendors' templates by name without `.jinja`; empty if there are none.

    They are searched for in `$UNRENDER_TEMPLATES`, `../shared/templates` and `.cache/templates` (scripts/fetch.py
    templates).
    """
    folder = _first_folder(os.environ.get("UNRENDER_TEMPLATES"), SHARED / "templates", ROOT / ".cache" / "templates")
    return _by_name(folder)


def all_vendor_templates() -> dict[str, Path]:
    """Return the vendors' templates, including those that no package contains.

    Those are read from `$UNRENDER_MORE_TEMPLATES` or `../shared/more-templates`.
    """
    more = _first_folder(os.environ.get("UNRENDER_MORE_TEMPLATES"), SHARED / "more-templates")
    return {**vendor_templates(), **_by_name(more)}


def vendor_cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of `NAME.jsonl` in `$UNRENDER_CASES` or `../shared/cases`; empty if missing."""
    folder = _first_folder(os.environ.get("UNRENDER_CASES"), SHARED / "cases")
    path = folder / f"{name}.jsonl" if folder else None
    if path is None or not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def missing_data() -> list[str]:
    """Return a sentence for each kind of missing external data."""
    manifest = tomllib.loads((ROOT / "tests" / "vendor_templates.toml").read_text(encoding="utf-8"))
    found = {path.name for path in all_vendor_templates().values()}
    sentences = []
    if missing := manifest["templates"].keys() - found:
        expected = len(manifest["templates"])
        sentences.append(
            f"{expected - len(missing)} of {expected} vendors' templates found: run `python3 scripts/fetch.py templates`"
        )
    if missing := manifest["more_templates"].keys() - found:
        sentences.append(f"{len(missing)} more templates not found: set UNRENDER_MORE_TEMPLATES to a folder with them")
    if not vendor_cases("outputs"):
        sentences.append("no recorded cases found: set UNRENDER_CASES to a folder with outputs.jsonl")
    if not any(fetch.SUITE.glob("*.json")):
        sentences.append("no JSON Schema Test Suite found: run `python3 scripts/fetch.py schema-suite`")
    return sentences


def _by_name(folder: Path | None) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.jinja"))} if folder else {}


def _first_folder(*candidates: str | Path | None) -> Path | None:
    folders = (Path(candidate) for candidate in candidates if candidate)
    return next((folder for folder in folders if folder.is_dir()), None)
