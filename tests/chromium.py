"""Checks of a page in a real Chromium: a Node.js script prints one line of JSON per check.

`python3 scripts/run.py browser` installs the requirements; without them `NEEDED` skips the tests with a message.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from environment import ROOT

FOLDER = ROOT / ".cache" / "browser"
"""The folder for node_modules and screenshots."""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
NEEDED = pytest.mark.skipif(
    not (CHROMIUM and shutil.which("node") and (FOLDER / "node_modules" / "playwright-core").is_dir()),
    reason="PAGES NOT CHECKED: no browser: run `python3 scripts/run.py browser`",
)
_CHECK = re.compile(r'^  async "(.+)"\(|^checks\["(.+)"\] = ', re.MULTILINE)


class Silent(SimpleHTTPRequestHandler):
    """Serves a folder without logging requests."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder like any web server, on a free port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def checks_of(script: Path) -> list[str]:
    """Return the names of a script's checks, except those made in a loop."""
    return [found[1] or found[2] for found in _CHECK.finditer(script.read_text(encoding="utf-8"))]


def held(script: Path, address: str, *more: str) -> Mapping[str, Any]:
    """Run all checks of a script in one browser, and return the result of each. True means passed."""
    command = ["node", str(script), address, CHROMIUM, str(FOLDER), *more]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=580)
    assert run.returncode == 0, run.stderr
    return {found["name"]: found["found"] for found in map(json.loads, run.stdout.splitlines())}
