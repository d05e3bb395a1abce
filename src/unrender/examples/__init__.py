"""Makes up example answers: what a sensible model might write in a turn, without any model.

In comes a turn and its conversation; out comes an answer in the format of the turn. `making` decides what to answer, and
`values` makes up arguments that fit the schemas. Open `making` first. The rule: the same turn and seed give the same answer.
"""

from __future__ import annotations

from unrender.examples.making import example_answer

__all__ = ["example_answer"]
