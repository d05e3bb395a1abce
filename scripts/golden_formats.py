"""Test templates into golden formats: what the analysis derives, written to `tests/formats` for review.

Usage: `python3 scripts/golden_formats.py`. Read the diff before committing it: each line is a change that users see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unrender.analysis import analyze
from unrender.format import Format
from unrender.rendering.template import Template

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "tests" / "templates"
FORMATS = ROOT / "tests" / "formats"


def main() -> None:
    """Write all golden formats, and remove those whose template is gone."""
    texts = {path.stem: derived(path).to_json() + "\n" for path in sorted(TEMPLATES.glob("*.jinja"))}
    for name, text in texts.items():
        (FORMATS / f"{name}.json").write_text(text, encoding="utf-8")
    for path in FORMATS.glob("*.json"):
        if path.stem not in texts:
            path.unlink()
    print(f"{len(texts)} formats written to {FORMATS.relative_to(ROOT)}")


def derived(path: Path) -> Format:
    """Return what is derived from the template itself, without what declared formats add to what is read."""
    format = analyze(Template(path.read_text(encoding="utf-8"))).format
    return replace(format, tolerated=(), spellings=(), ignored=(), declared=(), preserved_tokens=())


if __name__ == "__main__":
    main()
