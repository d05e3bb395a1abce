"""Errors about a missing extra show a command for the kind of installation."""

from __future__ import annotations

import importlib.metadata
import json
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from unrender.version import install_command

ORIGINS = {
    "index": (None, "pip install 'unrender[cli]'"),
    "wheel": (
        {"url": "file:///tmp/unrender-1-py3-none-any.whl", "archive_info": {}},
        "pip install 'unrender[cli] @ file:///tmp/unrender-1-py3-none-any.whl'",
    ),
    "checkout": ({"url": "file:///my%20code/unrender", "dir_info": {}}, "pip install '/my code/unrender[cli]'"),
    "editable": ({"url": "file:///code", "dir_info": {"editable": True}}, "pip install -e '/code[cli]'"),
}


@pytest.mark.parametrize(("origin", "command"), ORIGINS.values(), ids=ORIGINS)
def test_the_command_fits_the_installation(monkeypatch, origin, command):
    """The command differs for a checkout, a wheel and an index."""
    read = SimpleNamespace(read_text=lambda _name: origin and json.dumps(origin))
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _name: read)

    assert install_command("cli") == command


def test_a_checkout_need_not_be_installed(monkeypatch):
    """Without an installation, the command uses the checkout's folder."""

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)

    assert install_command("cli") == "pip install '.[cli]'"
