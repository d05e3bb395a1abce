"""Each check of `site.mjs` on the built documentation site, in a real Chromium, over HTTP and from the disk.

`python3 scripts/run.py site --offline` builds the site; without it the tests are skipped with a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import chromium
import pytest
from environment import ROOT

SITE = ROOT / ".cache" / "site"
SCRIPT = Path(__file__).parent / "site.mjs"
LOOKED_AT = (
    "index.html light",
    "index.html dark",
    "gallery.html dark",
    "reference/api/unrender.html light",
    "howto/debug.html dark",
)
CHECKS = [*chromium.checks_of(SCRIPT), *(f"axe finds nothing: {page}" for page in LOOKED_AT)]

pytestmark = [
    chromium.NEEDED,
    pytest.mark.skipif(
        not (SITE / "playground" / "pyodide").is_dir(),
        reason="SITE NOT CHECKED: it is not built: run `python3 scripts/run.py site --offline`",
    ),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the site like any web server, on a free port."""
    with chromium.served(SITE) as server:
        yield f"{server}/"


@pytest.fixture(scope="module")
def held(address: str) -> Mapping[str, Any]:
    """Run all checks in one browser, and return the result of each. True means passed."""
    return chromium.held(SCRIPT, address, f"{SITE.as_uri()}/")


@pytest.mark.parametrize("check", CHECKS)
def test_site(held: Mapping[str, Any], check: str) -> None:
    """The check passes on the site."""
    assert held[check] is True


def test_no_check_is_forgotten(held: Mapping[str, Any]) -> None:
    """Every check in the script is a test here."""
    assert set(held) == set(CHECKS)
