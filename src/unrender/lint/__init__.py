"""Finds mistakes in a chat template, each with a conversation that shows it, and a fix.

`rules` defines the rules, each with a check, a description, the harm and a fix. `conversations` contains the messages for the checks.

Rules: a finding is based on a rendering of this template, never on its source or its name. Conversations are ordinary ones in OpenAI's
format. If a template rejects a conversation, the rejection is a finding of its own and doesn't hide others.
"""

from unrender.lint.rules import Finding, Severity, lint

__all__ = ["Finding", "Severity", "lint"]
