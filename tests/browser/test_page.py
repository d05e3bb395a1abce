"""The playground in a real Chromium, used with mouse and keyboard: `playground.mjs` does what a person does, and each of its checks is a test here.

`scripts/browser.sh` installs what this needs; without it the tests say so and skip.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / ".cache" / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = HERE / "playground.mjs"
CHECKS = [
    found[1] or found[2]
    for found in re.finditer(r'^  async "(.+)"\(|^checks\["(.+)"\] = ', SCRIPT.read_text(), re.MULTILINE)
]
CHECKS += [f"axe finds nothing serious: {scheme}" for scheme in ("light", "dark")]

pytestmark = [
    pytest.mark.skipif(
        not (CHROMIUM and shutil.which("node") and (FOLDER / "node_modules" / "playwright-core").is_dir()),
        reason="PLAYGROUND NOT CHECKED: no browser: run `scripts/browser.sh`",
    ),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the playground as its command does, at a port that is free."""
    command = [sys.executable, "-m", "unrender", "playground", "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "UNRENDER_CACHE": "off"}
    ) as run:
        assert run.stderr is not None
        said = run.stderr.readline()
        yield re.findall(r"http://\S+", said)[0]
        run.terminate()


@pytest.fixture(scope="module")
def held(address: str) -> Mapping[str, Any]:
    """Run all checks in one browser, and return what each found; True is good."""
    assert CHROMIUM
    command = ["node", str(SCRIPT), address, CHROMIUM, str(FOLDER)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert run.returncode == 0, run.stderr
    return {found["name"]: found["found"] for found in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("check", CHECKS)
def test_page(held: Mapping[str, Any], check: str) -> None:
    """What the check's name says is true of the page."""
    assert held[check] is True


def test_no_check_is_forgotten(held: Mapping[str, Any]) -> None:
    """Every check that the script makes is a test here."""
    assert set(held) == set(CHECKS)
