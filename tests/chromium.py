"""Checks of a page in a real Chromium: a script for Node.js that prints one line of JSON for each check.

`python3 scripts/run.py browser` installs what this needs; without it `NEEDED` skips the tests, and says so.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from environment import ROOT

FOLDER = ROOT / ".cache" / "browser"
"""Holds node_modules, and takes the pictures."""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
NEEDED = pytest.mark.skipif(
    not (CHROMIUM and shutil.which("node") and (FOLDER / "node_modules" / "playwright-core").is_dir()),
    reason="PAGES NOT CHECKED: no browser: run `python3 scripts/run.py browser`",
)
_CHECK = re.compile(r'^  async "(.+)"\(|^checks\["(.+)"\] = ', re.MULTILINE)


class Silent(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing of requests."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def checks_of(script: Path) -> list[str]:
    """Return the names of a script's checks, but of those that it makes in a loop."""
    return [found[1] or found[2] for found in _CHECK.finditer(script.read_text(encoding="utf-8"))]


def held(script: Path, address: str, *more: str) -> Mapping[str, Any]:
    """Run all checks of a script in one browser, and return what each found; True is good."""
    command = ["node", str(script), address, CHROMIUM, str(FOLDER), *more]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)
    assert run.returncode == 0, run.stderr
    return {found["name"]: found["found"] for found in map(json.loads, run.stdout.splitlines())}
