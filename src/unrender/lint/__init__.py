"""The template doctor: a chat template into findings, each with the conversation that shows it and how to fix it.

Rules: a finding rests on a rendering of this template, never on its source or its name; conversations are ordinary ones in
OpenAI's form. What a template refuses is a finding of its own and hides no other.
"""

from unrender.lint.conversations import OpenAIMessage
from unrender.lint.lint import RULES, Finding, Rule, Severity, lint

__all__ = ["RULES", "Finding", "OpenAIMessage", "Rule", "Severity", "lint"]
