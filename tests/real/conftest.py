"""Tests with a real model, run only by `python3 scripts/run.py real`, which sets `UNRENDER_REAL` to the engines."""

from __future__ import annotations

import os

NAMED = os.environ.get("UNRENDER_REAL", "").split()

collect_ignore_glob = [] if NAMED else ["test_*.py"]
