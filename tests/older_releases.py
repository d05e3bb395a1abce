"""Runs tests with older releases of a package.

python tests/older_releases.py TESTS PACKAGE==VERSION ...      exits with 1 if a test fails in one of them

A release is unpacked once into `.cache/releases` and used in place of the installed one. Compiled files of more than 50
MB are left out: they are for GPUs, and parsers don't import them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LARGE = 50_000_000
ROOT = Path(__file__).resolve().parents[1]
UNPACKED = ROOT / ".cache" / "releases"


def main() -> None:
    """Run the tests with each release in turn."""
    tests, *releases = sys.argv[1:]
    failed = [release for release in releases if not passes(tests, unpacked(release))]
    tell(f"{tests}: " + (f"BROKEN with {', '.join(failed)}" if failed else f"passed with {', '.join(releases)}"))
    sys.exit(bool(failed))


def tell(line: str) -> None:
    """Write a line immediately."""
    sys.stderr.write(f"{line}\n")


def unpacked(release: str) -> Path:
    """Return the folder with a release's modules."""
    folder = UNPACKED / release
    if not folder.is_dir():
        tell(f"Fetching {release} (once) ...")
        with tempfile.TemporaryDirectory() as downloads:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", downloads, release]
            subprocess.run([*command, "--only-binary", ":all:"], check=True)
            (wheel,) = Path(downloads).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                small = [it for it in archive.infolist() if it.file_size < LARGE or not it.filename.endswith(".so")]
                archive.extractall(folder, small)
    return folder


def passes(tests: str, folder: Path) -> bool:
    """Return whether the tests pass with the modules in a folder."""
    tell(f"{folder.name}:")
    command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses", "logical", tests]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)])}
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0


if __name__ == "__main__":
    main()
