"""Our response templates beside those that TRL's authors wrote by hand, on the chat templates that TRL brings."""

from __future__ import annotations

from pathlib import Path

import pytest
import trl_pairs
import trl_table
from trl_readings import compare

from unrender import ChatTemplate
from unrender.verify.engines import installed

OWN = Path(__file__).resolve().parents[1] / "templates" / "json-tags.jinja"


@pytest.mark.full
@pytest.mark.skipif(
    not (installed("transformers") and trl_pairs.installed()),
    reason="TRL's files are not installed beside transformers: run `scripts/exports.sh`",
)
def test_the_page_is_current() -> None:
    """docs/reference/trl.md is what scripts/trl_table.py writes."""
    page = trl_table.text([compare(pair) for pair in trl_pairs.pairs()])

    current = trl_table.PAGE.read_text(encoding="utf-8") == page

    assert current, "what is read has changed: run `.venv-exports/bin/python scripts/trl_table.py`"


def test_ours_are_right_at_least_as_often() -> None:
    """By the page, which the other test keeps true, TRL's read more answers right of no chat template that is exported."""
    figures = list(trl_table.figures(trl_table.PAGE.read_text(encoding="utf-8")))

    worse = [name for name, by_us, by_them in figures if any(a < b for a, b in zip(by_us, by_them, strict=True))]

    assert figures
    assert worse == []


@pytest.mark.skipif(not installed("transformers"), reason="transformers is not installed")
def test_right_is_what_was_rendered() -> None:
    """A response template that trims texts loses those with white space at their ends, and nothing else."""
    ours = ChatTemplate.from_file(OWN).response_template().template
    trims = {
        name: {**field, "content_args": {}} for name, field in ours["fields"].items() if field["content"] == "text"
    }
    trimming = {**ours, "fields": {**ours["fields"], **trims}}

    readings = compare(trl_pairs.Pair(path=OWN, name="trimming", response_template=trimming)).readings

    lost = {it.kind for it in readings if it.ours.whole == it.meant != it.theirs.whole}
    assert lost == {"white space around content", "white space around reasoning"}
    assert trl_table.right(readings, trl_table.ours) == (len(readings), len(readings))
