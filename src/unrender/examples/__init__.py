"""Generates example answers that a sensible model might write, without a model.

`making` generates an answer from a turn and its conversation. `values` generates arguments that match the schemas. The same turn and seed
always give the same answer.
"""

from __future__ import annotations

from unrender.examples.making import example_answer

__all__ = ["example_answer"]
