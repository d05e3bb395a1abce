"""Runs a GGUF file in this process: llama.cpp's own server code (`xllamacpp`), on a loopback port."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from unrender.gateway.failure import invalid

SLOTS = 4
"""Answers that are generated at a time; more wait."""
_ERRORS = 1
"""How much llama.cpp logs."""


def start(path: str, *, context: int = 0, slots: int = SLOTS, threads: int = 0) -> tuple[str, Any]:
    """Load a model and serve it; return its loopback address, and an object that must be kept while the model is used.

    `context` counts tokens for all slots together; 0 means the length that the model was trained with. `threads` 0 lets
    llama.cpp choose. Raises `Failure` when the wheel or the file is missing, or the file is not a model.
    """
    try:
        xllamacpp = importlib.import_module("xllamacpp")
    except ImportError:
        raise invalid("gguf: needs llama.cpp in this process: pip install 'unrender[gguf]'", param="gguf") from None
    if not Path(path).is_file():
        raise invalid(f"gguf: {path}: no such file", param="gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = context
    parameters.n_parallel = slots
    if threads:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.warmup = False
    parameters.verbosity = _ERRORS
    try:
        server = xllamacpp.Server(parameters)
    except Exception as error:
        raise invalid(f"gguf: {path}: {error}", param="gguf") from error
    return server.listening_address, server
