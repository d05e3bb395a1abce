"""Errors about a missing extra show a command for the kind of installation."""

from __future__ import annotations

import importlib.metadata
import json
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

from cases import cases

from unrender.version import install_command


@cases
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
