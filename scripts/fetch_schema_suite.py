"""The official JSON Schema Test Suite into `.cache/schema-suite`: it comes with the sources of `jsonschema`.

Strategy: pip downloads the pinned source distribution and checks its digest; of it only the tests of one draft are kept.
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
    if not list(CACHE.glob("*.json")):
        with tempfile.TemporaryDirectory() as folder:
            extract(download(python, SOURCE, Path(folder)), CACHE)
    return CACHE


def extract(archive: Path, target: Path) -> None:
    """Put the tests of the draft, without its optional ones, into `target`; raise `FetchError` when there are none."""
    target.mkdir(parents=True, exist_ok=True)
    found = 0
    with tarfile.open(archive) as opened:
        for member in opened:
            path = PurePosixPath(member.name)
            content = opened.extractfile(member) if str(path.parent).endswith(FOLDER) else None
            if content is not None and path.suffix == ".json":
                (target / path.name).write_bytes(content.read())
                found += 1
    if not found:
        raise FetchError(f"{archive.name} has no tests in {FOLDER}")


if __name__ == "__main__":
    main()
