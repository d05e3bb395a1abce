"""The template doctor: finds mistakes in a chat template, each with a conversation that shows it and a fix.

In: a `ChatTemplate`. Out: a `Finding` for each rule that it breaks. Open `rules` first: each rule is a check, with
what it looks for, what goes wrong and how to fix it. `conversations` holds the messages that they render.

Rules: a finding rests on a rendering of this template, never on its source or its name; conversations are ordinary ones in
OpenAI's form. What a template refuses is a finding of its own and hides no other.
"""

from unrender.lint.rules import Finding, Severity, lint

__all__ = ["Finding", "Severity", "lint"]
