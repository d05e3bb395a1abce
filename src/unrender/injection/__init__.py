"""Adds tools to prompts for templates that ignore them.

In: a template's format and capabilities, the tools of a request, and a conversation. Out: a system message that describes
the tools, and earlier calls and results as text.

Open `plan` first: it decides what a template has to be helped with, and which call syntax is used. `instructions` says
tools and syntax in words. `history` writes the calls and results of earlier turns, and says otherwise what a template
refuses.

Never break this rule: a template is helped only with what it does not do itself.
"""

from unrender.injection.history import DEFAULT_FORMAT
from unrender.injection.plan import Injection, Plan, plan_tools
from unrender.injection.wording import call_form

__all__ = ["DEFAULT_FORMAT", "Injection", "Plan", "call_form", "plan_tools"]
