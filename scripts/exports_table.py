"""The vendors' templates into a page: which can be written as response templates, what is left out, and what transformers read.

Needs transformers: run it with the Python of `.venv-exports`, which `scripts/exports.sh` sets up.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import environment
import fetch_templates

from unrender import ChatTemplate, ExportError
from unrender.verify import Verdict
from unrender.verify.export import check_export

PAGE = environment.ROOT / "docs" / "reference" / "response-template.md"

OPENING = """# Response templates of known chat templates

Written by `scripts/exports_table.py`; do not edit.

For each chat template: of how many capabilities transformers' own parser reads every rendering as unrender does, and what
the response template leaves out, or why there is none.
Call syntaxes that are only tolerated are left out everywhere.
Reasoning is read where an answer begins, or a message inside of one: what looks like it further on is content.
What no response template can say is told in [the how-to](../howto/export.md).
Beside [those that TRL brings](trl.md), ours are compared answer by answer.

| template | read alike | left out, or why refused |
|---|--:|---|"""


def main() -> None:
    """Write the page to where it is published."""
    folder = environment.ROOT.parent / "shared" / "templates"
    if not folder.is_dir():
        folder = fetch_templates.fetch(Path(sys.executable))
    PAGE.write_text(text(sorted(folder.glob("*.jinja"), key=lambda path: path.stem.lower())), encoding="utf-8")


def text(paths: list[Path]) -> str:
    """Return the page as it is published."""
    return "\n".join([OPENING, *(f"| {path.stem} | {' | '.join(_row(path))} |" for path in paths), ""])


def _row(path: Path) -> Iterator[str]:
    """Yield how much is read alike, and what is left out."""
    template = ChatTemplate.from_file(path)
    try:
        exported = template.response_template()
    except ExportError as error:
        yield from ("refused", str(error))
        return
    findings = check_export(template.template, exported, analysis=template.analysis, samples=2).findings
    observed = [finding for finding in findings if finding.total or "not exported" in finding.reason]
    yield f"{sum(finding.verdict is Verdict.PROVED for finding in observed)} of {len(observed)}"
    yield "; ".join(omission.what for omission in exported.omissions if "tolerated" not in omission.what)


if __name__ == "__main__":
    main()
