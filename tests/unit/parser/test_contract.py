"""The contract in docs/reference/leniency.md: each of its rows is the row of that name in `tests/corpus/answers`."""

from __future__ import annotations

import re
from pathlib import Path

from rows import ANSWERS, rows

CONTRACT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "leniency.md"


def test_the_contract_lists_what_is_tested() -> None:
    """The page lists every such row, and no others."""
    listed = re.findall(r"^\| \*\*(.+?)\*\* ", CONTRACT.read_text(encoding="utf-8"), re.MULTILINE)
    reasons = [row.data["why"] for path in ANSWERS.glob("*.jsonl") for row in rows(path)]

    assert set(listed) == {why.removeprefix("Contract: ") for why in reasons if why.startswith("Contract: ")}
    assert len(listed) == len(set(listed))
