"""Tests a format: parses back what the template writes, and compares.

In: a `ChatTemplate`, or a format by itself, or a response template. Out: a `Report` with a verdict on each capability, and the
smallest counterexample of each that failed. Open `check` first; `axes` makes random answers, `renditions` finds in a rendering
what the model would have written, `judge` parses that and compares, `grammars` asks engines what they accept, and `liberties`
whether the template writes what a grammar generates. `verdicts` holds what was found, and writes it for people.
`response_templates` does the same with transformers' own parser.

Rules: nothing is assumed of a template. A capability that the template renders passes or fails; one that it does not
render is skipped, and the report says so. Only what a rendering shows is expected back.
"""

from unrender.verify.check import CHECKS, GRAMMARS, QUICK_CHECKS, verify, verify_format, verify_quickly
from unrender.verify.grammars import refusals
from unrender.verify.response_templates import verify_export
from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report, Verdict, diff, markdown

__all__ = [
    "CHECKS",
    "GRAMMARS",
    "QUICK_CHECKS",
    "CapabilityFinding",
    "Counterexample",
    "Report",
    "Verdict",
    "diff",
    "markdown",
    "refusals",
    "verify",
    "verify_export",
    "verify_format",
    "verify_quickly",
]
