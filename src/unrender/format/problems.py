"""What a check of a Format finds: the path of a field, and what is wrong there."""

from __future__ import annotations

Problem = tuple[str, str]
"""A path, e.g. `format.tools.function[0]`, and what was expected and found."""
