"""The vendors' templates into the table of docs/reference/formats.md: what is derived of each, and how much of it is proved."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import environment
import fetch_templates

from unrender import ChatTemplate
from unrender.verify import Verdict, verify

PAGE = environment.ROOT / "docs" / "reference" / "formats.md"
BEGIN, END = "<!-- formats:begin -->", "<!-- formats:end -->"
HEAD = "| template | reasoning | content | calls | proved | refuted |\n|---|---|---|---|--:|---|"


def main() -> None:
    """Write the table into the page."""
    shared = environment.ROOT.parent / "shared"
    folder = shared / "templates"
    if not folder.is_dir():
        folder = fetch_templates.fetch(Path(sys.executable))
    paths = [*folder.glob("*.jinja"), *(shared / "more-templates").glob("*.jinja")]
    table = "\n".join([HEAD, *map(row, sorted(paths, key=lambda path: path.stem.lower()))])
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")


def row(path: Path) -> str:
    """Return a template's line of the table."""
    return f"{' | '.join(derived(path))} | {' | '.join(proof(path))} |"


def derived(path: Path) -> Iterator[str]:
    """Yield the template's name and the modes of its format."""
    format_ = ChatTemplate.from_file(path).format
    yield f"| {path.stem}"
    for mode in (format_.reasoning.mode, format_.content.mode, format_.tools.mode):
        yield mode.replace("_", " ")


def proof(path: Path) -> Iterator[str]:
    """Yield how many of the observable capabilities are proved, and which are refuted."""
    template = ChatTemplate.from_file(path)
    findings = verify(template.template, analysis=template.analysis).findings
    observable = [finding for finding in findings if finding.verdict is not Verdict.NOT_OBSERVABLE]
    yield f"{sum(finding.verdict is Verdict.PROVED for finding in observable)} of {len(observable)}"
    yield ", ".join(finding.capability for finding in observable if finding.verdict is Verdict.REFUTED)


def with_table(page: str, table: str) -> str:
    """Return the page with the table between its marks."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{table}\n{END}", page, flags=re.DOTALL)


if __name__ == "__main__":
    main()
