"""Verifies a format: parses answers that the template renders, and compares.

In: a `ChatTemplate`, or a format by itself, or a response template. Out: a `Report` with a verdict on each capability, and the
smallest counterexample of each that failed. Open `check` first; `axes` makes random answers, `renditions` finds in a rendering
what the model would have written, `judge` parses that and compares, `grammars` asks engines what they accept, and `liberties`
whether the template writes what a grammar generates. `verdicts` holds what was found, and writes it for people.
`response_templates` does the same with transformers' own parser.

Rules: nothing is assumed about a template. A capability that the template renders passes or fails; one that it doesn't render is skipped,
and listed in the report. Only text in a rendering is expected back.
"""

from unrender.verify.check import verify
from unrender.verify.verdicts import Report, Verdict

__all__ = ["Report", "Verdict", "verify"]
