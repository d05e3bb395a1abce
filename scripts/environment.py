"""An untouched checkout into `.venv`: a virtual environment with the project, the CLI and a dependency group in it.

Rules: the standard library alone, since this runs before anything is installed; pip's own settings (`PIP_*`, pip.conf)
are left as they are, so that mirrors and offline indexes work.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
OLDEST = (3, 11)


def ready(group: str = "") -> Path:
    """Return the Python of `.venv`, with the project, its CLI, its gateway and the dependency `group` installed.

    Work is done only when `pyproject.toml` has changed since the last time. Ends the process with a sentence when
    Python is too old or the installation fails.
    """
    if sys.version_info < OLDEST:
        sys.exit(f"unrender needs Python {'.'.join(map(str, OLDEST))} or newer; this is {sys.version.split()[0]}")
    stamp = VENV / f"installed-{group or 'project'}"
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        _install(group)
        stamp.write_text(digest)
    return program("python")


def program(name: str) -> Path:
    """Return where a program of `.venv` lies."""
    return VENV / "Scripts" / f"{name}.exe" if os.name == "nt" else VENV / "bin" / name


def _install(group: str) -> None:
    print(f"Setting up {VENV} (once) ...", file=sys.stderr, flush=True)
    if not program("python").exists():
        venv.create(VENV, with_pip=True)
    # Dependency groups need pip 25.1; what comes with Python is often older.
    _pip("install", "--upgrade", "pip>=25.1")
    _pip("install", "--editable", ".[cli,gateway]", *(["--group", group] if group else []))


def _pip(*arguments: str) -> None:
    command = [str(program("python")), "-m", "pip", "--quiet", *arguments]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"could not set up {VENV}: {' '.join(command)} failed; is the package index reachable?")
