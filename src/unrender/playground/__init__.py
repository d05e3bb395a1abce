"""The playground: an interactive page, and a function that answers its requests.

`questions` maps a request's name and JSON data to a JSON response. It runs on a local server (`unrender.playground.server`), or on Pyodide
in the browser (`unrender.playground.static`). The page works the same way on the server and on Pyodide.

Rules: all data from the page is untrusted. No request raises an error, accesses files or the network, or exceeds its limits.
"""

from unrender.playground.questions import QUESTIONS, answer

__all__ = ["QUESTIONS", "answer"]
