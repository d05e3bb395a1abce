"""The rest of an answer in each dialect, with warnings, and drawn at random."""

from __future__ import annotations

from typing import Any

from unrender.dialects.remainder import Remainder, constraint


def gbnf(answer: Remainder) -> str:
    return str(constraint(answer, "gbnf"))


def lark(answer: Remainder) -> str:
    return str(constraint(answer, "lark"))


def structural_tag(answer: Remainder) -> Any:
    return constraint(answer, "structural_tag")


def sample(answer: Remainder, seed: int) -> str:
    return answer.drawer()(seed).text
