"""A template that breaks no rule of lint and, for each rule, what to change in it so that it breaks that rule."""

from __future__ import annotations

from tables import CORPUS, case_rows

# Breaks no rule: all that is said is written, the same wherever it is, and no text can end a turn.
SOUND = (CORPUS / "sound.jinja").read_text(encoding="utf-8")

# Rule → what to change in the sound template so that it breaks the rule.
BROKEN: dict[str, tuple[str, str]] = {
    row["rule"]: (row["sound"], row["broken"]) for row in case_rows(CORPUS / "lint.jsonl")
}
