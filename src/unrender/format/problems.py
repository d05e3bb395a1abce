"""Defines what a check of a Format finds: the path of a field, and the problem there."""

from __future__ import annotations

Problem = tuple[str, str]
"""A path, e.g. `format.tools.function[0]`, and what was expected and found."""
