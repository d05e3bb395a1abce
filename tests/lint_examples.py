"""A template that breaks no lint rule, and for each rule a change that breaks it."""

from __future__ import annotations

from tables import CORPUS, case_rows

# Breaks no rule: every message is rendered, in the same form everywhere, and no text can end a turn.
SOUND = (CORPUS / "sound.jinja").read_text(encoding="utf-8")

# Each rule and the change to the sound template that breaks it.
BROKEN: dict[str, tuple[str, str]] = {
    row["rule"]: (row["sound"], row["broken"]) for row in case_rows(CORPUS / "lint.jsonl")
}
