"""Our response templates compared with TRL's handwritten ones, on the chat templates that TRL includes."""

from __future__ import annotations

import json
from pathlib import Path

import exports
import pytest
from engines import installed

from unrender import ChatTemplate

OWN = Path(__file__).resolve().parents[1] / "templates" / "json-tags.jinja"


@pytest.mark.full
@pytest.mark.skipif(
    not (installed("transformers") and exports.installed()),
    reason="TRL's files are not installed beside transformers: use `python3 scripts/run.py exports`",
)
def test_ours_are_right_at_least_as_often() -> None:
    """For every exported chat template, ours read at least as many answers correctly as TRL's.

    docs/howto/training-masks.md has the current figures.
    """
    page = exports.TRL_PAGE.read_text(encoding="utf-8")
    comparisons = [exports.compare(pair) for pair in exports.pairs()]

    both = [
        (one.pair.name, exports.right(one.readings, exports.ours), exports.right(one.readings, exports.theirs))
        for one in comparisons
        if not one.refusal
    ]

    assert [name for name, by_us, by_them in both if any(a < b for a, b in zip(by_us, by_them, strict=True))] == []
    assert exports.trl_text(page, comparisons) == page, "what is read has changed: use `python3 scripts/run.py exports`"


@pytest.mark.skipif(not installed("transformers"), reason="transformers is not installed")
def test_right_is_what_was_rendered() -> None:
    """A response template that trims text loses only texts with whitespace at their ends."""
    ours = ChatTemplate.from_file(OWN).response_template().template
    trims = {
        name: {**field, "content_args": {}} for name, field in ours["fields"].items() if field["content"] == "text"
    }
    trimming = {**ours, "fields": {**ours["fields"], **trims}}

    readings = exports.compare(exports.Pair(path=OWN, name="trimming", response_template=trimming)).readings

    lost = [json.loads(it.meant) for it in readings if it.theirs.whole != it.meant]
    assert lost
    assert [said for said in lost if all(said[part] == said[part].strip() for part in ("content", "reasoning"))] == []
    assert exports.right(readings, exports.ours) == (len(readings), len(readings))
