"""The official JSON Schema Test Suite into `.cache/schema-suite`: it comes with the sources of `jsonschema`.

Strategy: pip downloads the pinned source distribution and checks its digest; of it only the tests of one draft are
kept, and in `remotes` the documents that they refer to.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

import environment
from fetch_templates import FetchError, download

CACHE = environment.ROOT / ".cache" / "schema-suite"
SOURCE = {
    "package": "jsonschema",
    "version": "4.26.0",
    "sha256": "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326",
}
FOLDER = "json/tests/draft2020-12"
REMOTES = "json/remotes"


def main() -> None:
    """Fetch what is missing and say where it lies; exit 1 with a sentence when that fails."""
    try:
        folder = fetch(environment.ready())
    except FetchError as error:
        sys.exit(f"fetch_schema_suite: {error}")
    print(folder)


def fetch(python: Path) -> Path:
    """Return the folder of the suite's files, downloading with the pip of `python` if need be.

    Raises `FetchError` when the download fails or holds no tests.
    """
    if not list(CACHE.glob("*.json")) or not list(CACHE.glob("remotes/*.json")):
        with tempfile.TemporaryDirectory() as folder:
            extract(download(python, SOURCE, Path(folder)), CACHE)
    return CACHE


def extract(archive: Path, target: Path) -> None:
    """Put the tests of the draft, without its optional ones, and all remote documents into `target`.

    Raises `FetchError` when there are no tests.
    """
    found = 0
    with tarfile.open(archive) as opened:
        for member in opened:
            place = _place(PurePosixPath(member.name))
            content = opened.extractfile(member) if place else None
            if place and content is not None:
                (target / place).parent.mkdir(parents=True, exist_ok=True)
                (target / place).write_bytes(content.read())
                found += place.parent == PurePosixPath()
    if not found:
        raise FetchError(f"{archive.name} has no tests in {FOLDER}")


def _place(path: PurePosixPath) -> PurePosixPath | None:
    """Return where a file of the archive is put; None for one that is not kept."""
    if path.suffix != ".json" or len(path.parts) < 2:
        return None
    inside = PurePosixPath(*path.parts[1:])
    if inside.is_relative_to(REMOTES):
        return "remotes" / inside.relative_to(REMOTES)
    return PurePosixPath(inside.name) if inside.parent == PurePosixPath(FOLDER) else None


if __name__ == "__main__":
    main()
