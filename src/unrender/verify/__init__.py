"""Proves a format: parses back what the template writes, and compares.

Rules: nothing is assumed of a template. A capability that the template renders is proved or refuted; one that it does not
render is not observable, and the report says so.
"""

from unrender.verify.check import verify, verify_format
from unrender.verify.difference import diff
from unrender.verify.document import markdown
from unrender.verify.report import CapabilityFinding, Counterexample, Report, Verdict

__all__ = ["CapabilityFinding", "Counterexample", "Report", "Verdict", "diff", "markdown", "verify", "verify_format"]
