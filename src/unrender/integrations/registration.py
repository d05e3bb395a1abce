"""Entry points for engines. Each entry point registers a plug-in, or logs one line with the reason if it can't.

Rules: engines call their entry point in every process, even for users who don't use unrender. So engines are imported only inside a guarded
step, which never raises, and an incompatible plug-in isn't registered. Supported releases are listed only in the package's metadata, in the
extra with the engine's name.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import types
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

_log = logging.getLogger("unrender.integrations")
_CALLED = (types.FunctionType, classmethod, staticmethod)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def vllm() -> None:
    """Register the plug-in with vLLM. Never raises."""
    _register("vllm")


def sglang() -> None:
    """Register the plug-in with SGLang. Never raises."""
    _register("sglang")


def _register(engine: str) -> None:
    try:
        importlib.import_module(f"unrender.integrations.{engine}").register()
    except Exception as error:  # noqa: BLE001 - the engine must start anyway
        _log.warning(
            "unrender does not plug into %s %s: %s is supported (%s). The engine runs without it; "
            "the gateway, `unrender serve`, works with any release.",
            engine,
            _installed(engine),
            supported(engine),
            " ".join(f"{type(error).__name__}: {error}".split())[:300],
        )


def supported(engine: str) -> str:
    """Return the supported releases of an engine, as listed in the package's metadata, e.g. `vllm<0.34,>=0.33`."""
    try:
        needs = metadata.requires("unrender") or []
    except metadata.PackageNotFoundError:
        needs = []
    found = (need.partition(";") for need in needs)
    extra = (f"extra == '{engine}'", f'extra == "{engine}"')
    return next((text.strip() for text, _, marker in found if marker.strip() in extra), "another release")


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except Exception:  # noqa: BLE001 - the metadata may be broken or missing
        return "of an unknown version"


def require(names: Mapping[str, Sequence[str]]) -> None:
    """Import an engine's modules, and check that they define the given names.

    Raises `ImportError` or `AttributeError` for a missing name now, instead of in the middle of a request.
    """
    for module, needed in names.items():
        found = importlib.import_module(module)
        for name in needed:
            getattr(found, name)


def above(ours: type, theirs: type, name: str, *, new: Sequence[str] = ()) -> type:
    """Return a subclass of an engine's class with our methods mixed in. Methods listed in `new` may be missing from the engine.

    Raises `TypeError` if the engine lacks another method, or if the parameters differ.
    """
    where = f"{theirs.__module__}.{theirs.__qualname__}"
    for method, own in vars(ours).items():
        if method.startswith("_") or not isinstance(own, (*_CALLED, property)):
            continue
        if not hasattr(theirs, method):
            if method in new:
                continue
            raise TypeError(f"{where} has no {method!r}")
        # Properties have no parameters to compare.
        for found in _differing(getattr(ours, method), getattr(theirs, method)) if isinstance(own, _CALLED) else ():
            raise TypeError(f"{where}.{method}: {found}")
    return type(name, (ours, theirs), {})


def _differing(ours: Any, theirs: Any) -> Iterator[str]:
    """Yield a description of each difference between the parameters of our method and the engine's."""
    own, other = inspect.signature(ours).parameters, inspect.signature(theirs).parameters
    placed = [[name for name, found in side.items() if found.kind in _POSITIONAL] for side in (own, other)]
    # Engines pass arguments by position. A different order, e.g. `(request, text)` for our `(text, request)`, would go unnoticed at run
    # time.
    if placed[0][: len(placed[1])] != placed[1]:
        yield f"expected the parameters {placed[0]}, found {placed[1]}"
    # Reject keyword-only parameters of a later release, which our method wouldn't accept.
    for name, found in other.items():
        if name not in own and found.kind is inspect.Parameter.KEYWORD_ONLY:
            yield f"expected no parameter {name!r}"
    for name, found in own.items():
        if name not in other and found.default is inspect.Parameter.empty and found.kind is not found.VAR_KEYWORD:
            yield f"expected a parameter {name!r}"
