"""Explains a format as a picture, the parsing of an answer, and the events of recorded chunks.

In: a `ChatTemplate` and a model's output. Out: an `Explanation`: each character's role, where reading stopped, and hints. Open
`explanation` first. It reads the output as the library does, then again with one thing changed: a tolerance less, another call
syntax (`nearest`), markers missing, no list of tools. `hints` is the table of what usually goes wrong, `picture` shows a format as
an answer, and a parser's program as a list; `recording` feeds recorded chunks.

Rules: everything is found with the public parser, on evidence in the output. Nothing is guessed from a model's name.
"""

from unrender.explain.explanation import Explanation, explain
from unrender.explain.recording import Replay, replay

__all__ = ["Explanation", "Replay", "explain", "replay"]
