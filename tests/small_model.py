"""The small model that `unrender serve --example-model` runs, for tests, which are skipped if it isn't available."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from environment import ROOT

from unrender.gateway.answers.model import Model
from unrender.gateway.config import example_model, read
from unrender.gateway.failure import Failure


def path() -> Path:
    """Return the model's file."""
    try:
        return example_model(Path(os.environ.get("UNRENDER_EXAMPLE_MODEL") or ROOT / ".cache" / "example-model"))
    except Failure as failure:
        pytest.skip(failure.message)


def served() -> Model:
    """Return the model in the form that a gateway uses."""
    (model,) = read({"models": [{"backend": "gguf", "path": str(path()), "aliases": "*"}]}).models
    return model
