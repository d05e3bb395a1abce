"""Download files for tests into `.cache`. Each file comes from a pinned package, and its digest is checked.

python3 scripts/fetch.py templates       the vendors' templates of `tests/vendor_templates.toml`
python3 scripts/fetch.py schema-suite    the official JSON Schema Test Suite, from the sources of `jsonschema`
python scripts/fetch.py vocabulary       the vocabulary that openai_harmony would download
python scripts/fetch.py vllm-tests       vLLM's own tests, and a record of the answers in them
python scripts/fetch.py browser          Chromium, playwright-core and axe-core, if they can be installed

Strategy: pip downloads a pinned source distribution (so mirrors and proxies work as configured), and its digest is
checked before any of its code runs. Only the listed files are extracted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from environment import ROOT, Environment, npm, read_toml

MANIFEST = ROOT / "tests" / "vendor_templates.toml"
TEMPLATES = ROOT / ".cache" / "templates"
SUITE = ROOT / ".cache" / "schema-suite"
SUITE_SOURCE = {
    "package": "jsonschema",
    "version": "4.26.0",
    "sha256": "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326",
}
SUITE_FOLDER = "json/tests/draft2020-12"
REMOTES = "json/remotes"
VOCABULARY = ROOT / ".cache" / "vocabulary" / "o200k_base.tiktoken"
CARRIER = "litellm==1.80.0"
"""The wheel with the vocabulary, under the SHA-1 of its address. It isn't installed."""
CARRIED = "litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"
RECORDED = Path(sys.prefix) / "vllm-tests"
"""vLLM's tests, with the texts that they parse in `records.jsonl`."""


class FetchError(Exception):
    """A file can't be downloaded, or has the wrong digest."""


def main() -> None:
    """Download missing files and print their paths. If this fails, print the error and exit with 1."""
    name = " ".join(sys.argv[1:])
    if name not in SOURCES:
        sys.exit(f"fetch: expected one of {', '.join(SOURCES)}, found {name!r}")
    try:
        print(SOURCES[name]())
    except FetchError as error:
        sys.exit(f"fetch {name}: {error}")


def available_templates() -> Path:
    """Return the folder of the vendors' templates: `$UNRENDER_TEMPLATES`, `../shared/templates`, or the download."""
    named, shared = os.environ.get("UNRENDER_TEMPLATES"), ROOT.parent / "shared" / "templates"
    if named:
        return Path(named)
    return shared if shared.is_dir() else templates()


def templates() -> Path:
    """Return the folder with every template of the manifest.

    Raises `FetchError` if the download fails or a digest is wrong.
    """
    manifest = read_toml(MANIFEST)
    wanted: dict[str, str] = manifest["templates"]
    if not all(_is_right(TEMPLATES / name, digest) for name, digest in wanted.items()):
        with tempfile.TemporaryDirectory() as folder:
            extract_templates(
                _source(manifest["source"], Path(folder)), manifest["source"]["folder"], wanted, TEMPLATES
            )
    return TEMPLATES


def extract_templates(archive: Path, folder: str, wanted: Mapping[str, str], target: Path) -> None:
    """Extract the files with these names and SHA-256 digests. Raises `FetchError` for a wrong or missing file."""
    target.mkdir(parents=True, exist_ok=True)
    missing = dict(wanted)
    for path, data in _files(archive, lambda path: path.name in missing and str(path.parent).endswith(folder)):
        found = hashlib.sha256(data).hexdigest()
        if found != missing.pop(path.name):
            raise FetchError(f"{path.name}: expected sha256 {wanted[path.name]}, found {found}")
        (target / path.name).write_bytes(data)
    if missing:
        raise FetchError(f"{archive.name} has no {min(missing)} in {folder}")


def schema_suite() -> Path:
    """Return the folder of the suite's files. Raises `FetchError` if the download fails or contains no tests."""
    if not list(SUITE.glob("*.json")) or not list(SUITE.glob("remotes/*.json")):
        with tempfile.TemporaryDirectory() as folder:
            extract_suite(_source(SUITE_SOURCE, Path(folder)), SUITE)
    return SUITE


def extract_suite(archive: Path, target: Path) -> None:
    """Extract the required tests of one draft, and all documents that they refer to, into `target`.

    Raises `FetchError` if there are no tests.
    """
    found = False
    for path, data in _files(archive, lambda path: path.suffix == ".json"):
        if path.is_relative_to(REMOTES):
            place = "remotes" / path.relative_to(REMOTES)
        elif path.parent == PurePosixPath(SUITE_FOLDER):
            place, found = PurePosixPath(path.name), True
        else:
            continue
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        (target / place).write_bytes(data)
    if not found:
        raise FetchError(f"{archive.name} has no tests in {SUITE_FOLDER}")


def vocabulary() -> Path:
    """Return the vocabulary file of openai_harmony, which checks the file's hash."""
    if not VOCABULARY.exists():
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel(CARRIER, Path(folder))) as archive:
            VOCABULARY.parent.mkdir(parents=True, exist_ok=True)
            VOCABULARY.write_bytes(archive.read(CARRIED))
    return VOCABULARY


def wheel(package: str, folder: Path) -> Path:
    """Return the wheel of a package, such as `a==1.0`, downloaded into a folder. Exits with an error message if that fails."""
    if not _pip_download(folder, "--only-binary", ":all:", package):
        raise FetchError(f"pip could not download {package}; is the package index reachable?")
    return max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)


def vllm_tests() -> Path:
    """Return the recorded answers of vLLM's own tests, which only its source distribution contains."""
    records = RECORDED / "records.jsonl"
    if not (RECORDED / "tests").is_dir():
        RECORDED.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=RECORDED) as folder:
            # pip can't build these here, so it only unpacks them.
            unpacked = {**os.environ, "TMPDIR": folder}
            only_unpacked = ("--no-binary", "vllm", "--no-build-isolation", "--no-clean")
            _pip_download(folder, *only_unpacked, f"vllm=={version('vllm')}", env=unpacked)
            for found in Path(folder).glob("pip-download-*/vllm_*/tests"):
                shutil.move(found, RECORDED)
        # These tests start servers and need GPUs.
        for name in ("conftest.py", "tool_use/conftest.py"):
            (RECORDED / "tests" / name).unlink(missing_ok=True)
        (RECORDED / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    if not records.exists():
        path = os.pathsep.join([str(ROOT / "tests"), str(RECORDED)])
        own = {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "UNRENDER_RECORD": str(records)}
        plugins = ["-p", "vllm_recorder", "-p", "no:cacheprovider"]
        options = ["--quiet", f"--rootdir={RECORDED}", *plugins, "--continue-on-collection-errors"]
        folders = [str(RECORDED / "tests" / name) for name in ("tool_parsers", "reasoning", "parser", "tool_use")]
        with (RECORDED / "log.txt").open("w", encoding="utf-8") as log:
            # Failing tests need the Hub. The readings of the others are recorded.
            command = [sys.executable, "-m", "pytest", *options, *folders]
            subprocess.run(command, env={**os.environ, **own}, stdout=log, stderr=log, check=False)
    return records


def browser() -> str:
    """Return the folder of the browser's packages, or a message that names the missing one for skipped tests."""
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        apt = shutil.which("apt-get")
        for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", "chromium"]):
            if not apt or subprocess.run([apt, *command], stdout=subprocess.DEVNULL, check=False).returncode:
                return "PAGES NOT CHECKED IN A BROWSER: chromium is missing, and cannot be installed"
    found = npm("browser", "playwright-core@1.64.1", "axe-core@4")
    return str(found) if found else "PAGES NOT CHECKED IN A BROWSER: playwright-core cannot be installed"


def _is_right(path: Path, digest: str) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _source(source: Mapping[str, Any], folder: Path) -> Path:
    """Download the source distribution `source` (package, version, sha256) into `folder`, and return its path.

    Raises `FetchError` if pip can't download it, or the digest is wrong.
    """
    package = source["package"]
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{package}=={source['version']} --hash=sha256:{source['sha256']}\n", encoding="utf-8")
    print(f"Fetching {package} {source['version']} (once) ...", file=sys.stderr, flush=True)
    # Without --no-binary, pip might choose a wheel, which lacks these files.
    done = _pip_download(folder, "--no-binary", package, "--requirement", str(pinned))
    archives = sorted(folder.glob("*.tar.gz"))
    if not done or not archives:
        raise FetchError(f"pip could not download {package} {source['version']}; is the package index reachable?")
    return archives[0]


def _pip_download(folder: Path | str, *arguments: str, env: Mapping[str, str] | None = None) -> bool:
    python = Environment.named("tests").program("python")
    own = python if python.exists() else Path(sys.executable)
    command = [str(own), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), *arguments]
    return subprocess.run(command, env=env, check=False).returncode == 0


def _files(archive: Path, wanted: Callable[[PurePosixPath], bool]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the requested files of a source distribution, by path inside its top folder."""
    with tarfile.open(archive) as opened:
        for member in opened:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            content = opened.extractfile(member) if wanted(path) else None
            if content is not None:
                yield path, content.read()


SOURCES: Mapping[str, Callable[[], Path | str]] = {
    "templates": templates,
    "schema-suite": schema_suite,
    "vocabulary": vocabulary,
    "vllm-tests": vllm_tests,
    "browser": browser,
}

if __name__ == "__main__":
    main()
