"""The playground: one page, and one function that answers it, with JSON in and out.

The page asks by name (`answer`). Who answers is a local server (`unrender.playground.server`), or the same code on Pyodide
in the browser (`unrender.playground.static`); the page cannot tell them apart.
"""

from unrender.playground.questions import QUESTIONS, answer

__all__ = ["QUESTIONS", "answer"]
