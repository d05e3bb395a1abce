"""The playground: one page, and one function that answers it, with JSON in and out.

In: a question's name and its JSON. Out: JSON (`answer`). Open `questions` first. Who answers is a local
server (`unrender.playground.server`), or the same code on Pyodide in the browser (`unrender.playground.static`); the page cannot tell them apart.

Rules: everything that the page sends comes from outside. No question raises, touches disk or net, or goes beyond its bounds.
"""

from unrender.playground.questions import QUESTIONS, answer

__all__ = ["QUESTIONS", "answer"]
