"""Explains how an output is parsed, shows a format as a picture, and replays recorded chunks.

`explanation` returns an `Explanation` with each character's role, the positions where parsing stopped, and hints. The output is parsed
normally, and then again with one change at a time. Examples of changes are another call syntax (`nearest`), missing markers, or no list of
tools. `hints` is a table of common problems. `picture` shows a format as a sample answer, and `recording` replays recorded chunks.

Rules: explanations use the public parser and evidence in the output. Model names are never used.
"""

from unrender.explain.explanation import Explanation, explain
from unrender.explain.recording import Replay, replay

__all__ = ["Explanation", "Replay", "explain", "replay"]
