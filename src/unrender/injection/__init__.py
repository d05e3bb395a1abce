"""Adds tools to prompts for templates that ignore them: in the system message, with calls and results as text.

`plan` decides what a template has to be helped with and which call syntax is used; `instructions` says tools and syntax in
words; `history` writes the calls and results of earlier turns.
"""

from unrender.injection.instructions import call_form
from unrender.injection.plan import DEFAULT_FORMAT, Injection, Plan, plan_tools

__all__ = ["DEFAULT_FORMAT", "Injection", "Plan", "call_form", "plan_tools"]
