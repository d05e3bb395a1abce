"""The playground in a real Chromium, used with mouse and keyboard: `playground.mjs` does what a person does, and each of its checks is a test here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import chromium
import pytest

SCRIPT = Path(__file__).parent / "playground.mjs"
CHECKS = [*chromium.checks_of(SCRIPT), *(f"axe finds nothing serious: {scheme}" for scheme in ("light", "dark"))]

pytestmark = [chromium.NEEDED, pytest.mark.timeout(300)]


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
    return chromium.held(SCRIPT, address)


@pytest.mark.parametrize("check", CHECKS)
def test_page(held: Mapping[str, Any], check: str) -> None:
    """What the check's name says is true of the page."""
    assert held[check] is True


def test_no_check_is_forgotten(held: Mapping[str, Any]) -> None:
    """Every check that the script makes is a test here."""
    assert set(held) == set(CHECKS)
