"""The rest of an answer in each dialect, with warnings, and drawn at random."""

from __future__ import annotations

from typing import Any

from unrender.dialects.remainder import Remainder, constraint


def gbnf(answer: Remainder) -> str:
    return str(_written(answer, "gbnf"))


def lark(answer: Remainder) -> str:
    return str(_written(answer, "lark"))


def structural_tag(answer: Remainder) -> Any:
    return _written(answer, "structural_tag")


def sample(answer: Remainder, seed: int) -> str:
    return answer.drawer()(seed).text


def _written(answer: Remainder, dialect: str) -> Any:
    made, limits = answer.handmade, answer.limits
    return constraint(answer.format, answer.request, answer.begun, dialect, grammar=made, limits=limits)
