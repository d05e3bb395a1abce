"""Each check of `playground.mjs` on the playground, in a real Chromium, with mouse and keyboard."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import chromium
import pytest
from environment import ROOT

from unrender.playground import write_site

SCRIPT = Path(__file__).parent / "playground.mjs"
CHECKS = [*chromium.checks_of(SCRIPT), *(f"axe finds nothing serious: {scheme}" for scheme in ("light", "dark"))]

pytestmark = [chromium.NEEDED, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the playground as its command does, on a free port."""
    command = [sys.executable, "-m", "unrender", "playground", "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "UNRENDER_CACHE": "off"}
    ) as run:
        assert run.stderr is not None
        said = run.stderr.readline()
        yield re.findall(r"http://\S+", said)[0]
        run.terminate()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the page in a frame, as the site does. Loading Python fails after three seconds."""
    folder = tmp_path_factory.mktemp("site")
    write_site(folder / "playground", pyodide="./pyodide")
    (folder / "playground" / "pyodide").mkdir()
    (folder / "playground" / "pyodide" / "pyodide.mjs").write_text(
        "export const loadPyodide = () => new Promise((_, fail) => setTimeout(() => fail(new Error('gone')), 3000));"
    )
    (folder / "site").mkdir()
    shutil.copy(ROOT / "docs" / "site" / "playground.js", folder / "site")
    written = (ROOT / "docs" / "playground.md").read_text(encoding="utf-8")
    frame = written[written.index("<iframe") :]
    (folder / "playground.html").write_text(
        f'<!doctype html><link rel="icon" href="data:,"><body data-md-color-scheme="slate">{frame}'
    )
    with chromium.served(folder) as server:
        yield f"{server}/playground.html"
        server.shutdown()


@pytest.fixture(scope="module")
def held(address: str, alone: str) -> Mapping[str, Any]:
    """Run all checks in one browser, and return the result of each. True means passed."""
    return chromium.held(SCRIPT, address, alone)


@pytest.mark.parametrize("check", CHECKS)
def test_page(held: Mapping[str, Any], check: str) -> None:
    """The check passes on the page."""
    assert held[check] is True


def test_no_check_is_forgotten(held: Mapping[str, Any]) -> None:
    """Every check in the script is a test here."""
    assert set(held) == set(CHECKS)
