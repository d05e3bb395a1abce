"""Create the virtual environments of `tasks.toml`, and write Markdown: what scripts and benchmarks share.

Rules: this module uses only the standard library, because it runs before anything is installed. pip's own settings (`PIP_*`, pip.conf)
aren't changed, so mirrors and offline indexes work.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit(f"{sys.argv[0]}: needs Python 3.11 or newer, found {sys.version.split()[0]}")

ROOT = Path(__file__).resolve().parent.parent


def read_toml(path: Path) -> dict[str, Any]:
    """Return the table in a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def import_layers() -> list[list[str]]:
    """Return the packages in each layer of the import contract, the highest layer first."""
    contract = read_toml(ROOT / "pyproject.toml")["tool"]["importlinter"]["contracts"][0]
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


TABLE: Mapping[str, Any] = read_toml(ROOT / "scripts" / "tasks.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment of the table."""

    folder: Path
    install: Sequence[Sequence[str]] = field(default_factory=tuple)
    """Pip arguments, one list for each call."""

    @staticmethod
    def named(name: str, suffix: str = "") -> Environment:
        """Return an environment of the table. A suffix is added to its folder."""
        entry = TABLE["environments"][name]
        return Environment(folder=ROOT / (entry["folder"] + suffix), install=entry["install"])

    def program(self, name: str) -> Path:
        """Return the path of a program in the environment."""
        return self.folder / "Scripts" / f"{name}.exe" if os.name == "nt" else self.folder / "bin" / name

    def ready(self, more: Sequence[Sequence[str]] = (), own: Mapping[str, str] | None = None) -> Path:
        """Return the environment's Python, with its packages and those of `more` installed.

        Packages are installed only if `pyproject.toml` or the table has changed. Exits with an error message if the installation fails.
        """
        for install in (self.install, more):
            if install:
                self._install_once(install, variables(own))
        return self.program("python")

    def _install_once(self, install: Sequence[Sequence[str]], used: Mapping[str, str]) -> None:
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        digest = hashlib.sha256(json.dumps([project, install]).encode()).hexdigest()
        stamp = self.folder / f"installed-{digest[:16]}"
        if stamp.exists():
            return
        print(f"Setting up {self.folder} (once) ...", file=sys.stderr, flush=True)
        if not self.program("python").exists():
            venv.create(self.folder, with_pip=True)
        # Dependency groups need pip 25.1, and Python often includes an older version.
        for arguments in (["--upgrade", "pip>=25.1"], *install):
            self.pip(arguments, used)
        stamp.touch()

    def pip(self, arguments: Sequence[str], used: Mapping[str, str] | None = None) -> None:
        """Install packages. Exits with an error message if the installation fails."""
        command = [str(self.program("python")), "-m", "pip", "install", "--quiet", *arguments]
        if subprocess.run(command, cwd=ROOT, env=used, check=False).returncode:
            sys.exit(f"could not set up {self.folder}: {' '.join(command)} failed; is the package index reachable?")


def variables(own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment variables for our programs. Bytecode is written to `.cache`, even if it's turned off.

    Without bytecode, each process compiles all modules again, which costs a minute in each complete test run.
    """
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "bytecode")}
    return {**os.environ, **kept, **(own or {})}


def npm(folder: str, *packages: str) -> Path | None:
    """Install npm packages into a folder of `.cache`, and return the folder. Return None if npm is missing or fails."""
    target = ROOT / ".cache" / folder
    target.mkdir(parents=True, exist_ok=True)
    manifest = target / "package.json"
    if not manifest.exists():
        manifest.write_text('{"private": true}\n', encoding="utf-8")
    command = ["npm", "install", "--prefix", str(target), "--no-audit", "--no-fund", "--silent", *packages]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else target


# Markdown of generated pages.


def table(heads: Sequence[object], rows: Iterable[Iterable[object]], align: str = "l") -> str:
    r"""Return a Markdown table. `align` has a letter for each column, `l` or `r`; the last one counts for the rest.

    >>> print(table(("name", "size"), [("a|b", 1)], "lr"))
    | name | size |
    |---|--:|
    | a\|b | 1 |
    """
    letters = align.ljust(len(heads), align[-1])
    marks = "|".join({"l": "---", "r": "--:"}[letter] for letter in letters[: len(heads)])
    head, *lines = (f"|{'|'.join(map(_cell, row))}|" for row in (heads, *rows))
    return "\n".join([head, f"|{marks}|", *lines])


def _cell(value: object) -> str:
    text = str(value).replace("|", "\\|")
    return f" {text} " if text else " "


def between(page: str, name: str, text: str) -> str:
    """Return a page with the text between two marks replaced."""
    begin, end = (f"<!-- {name}:{mark} -->" for mark in ("begin", "end"))
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)
