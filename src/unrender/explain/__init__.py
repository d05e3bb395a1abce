"""Explains why an answer was read as it was (`Explanation`), and what recorded chunks gave (`Replay`).

Rules: everything here is found with the public parser, by reading the same output again with one thing changed: another
call syntax, a tolerance less, markers taken away, no list of tools, other chunks. Nothing is guessed from a model's name.
"""

from unrender.explain.disassembly import Line, listing
from unrender.explain.explanation import explain
from unrender.explain.recording import Difference, Replay, Step, replay
from unrender.explain.report import Explanation, Hint, Nearest, Stop

__all__ = [
    "Difference",
    "Explanation",
    "Hint",
    "Line",
    "Nearest",
    "Replay",
    "Step",
    "Stop",
    "explain",
    "listing",
    "replay",
]
