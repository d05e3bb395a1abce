"""Tests with a real model are collected by `python3 scripts/run.py real` alone, which says in `UNRENDER_REAL` behind which engines."""

from __future__ import annotations

import os

NAMED = os.environ.get("UNRENDER_REAL", "").split()

collect_ignore_glob = [] if NAMED else ["test_*.py"]
