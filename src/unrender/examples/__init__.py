"""Generates example answers that a sensible model might write, without a model.

In: a turn and its conversation. Out: an answer in the turn's format. `making` chooses the answer, and `values` generates arguments that
match the schemas. Open `making` first. Rule: the same turn and seed give the same answer.
"""

from __future__ import annotations

from unrender.examples.making import example_answer

__all__ = ["example_answer"]
