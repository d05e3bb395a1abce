"""Verifies a format: renders answers with the template, parses them, and compares the results.

The input is a `ChatTemplate`, a format, or a response template. The result is a `Report` with a verdict on each capability, and the
smallest counterexample of each failed one. `check` runs the checks. `axes` generates random answers, `renditions` extracts the model's text
from a rendering, and `judge` parses and compares it. `grammars` tests grammars with engines, and `liberties` checks that generated text
follows the template. `response_templates` checks transformers' own parser.

Rules: nothing is assumed about a template. A capability that the template renders passes or fails. A capability that the template doesn't
render is skipped, and listed in the report as skipped. A parser only has to recover text that the rendering contains.
"""

from unrender.verify.check import verify
from unrender.verify.verdicts import Report, Verdict

__all__ = ["Report", "Verdict", "verify"]
