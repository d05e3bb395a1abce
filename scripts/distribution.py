"""What was built → is it what should be published: contents of the archives, share of known types, licences. For `scripts/release.sh`.

python scripts/distribution.py contents DIST | types REPORT | licences SBOM OUT | notes OUT | tag NAME

Rules: the standard library alone. What is wrong ends the process with a sentence.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import environment

TYPED = 0.99
NEEDED = (
    "py.typed",
    "formats/qwen3.json",
    "formats/markers/reasoning.json",
    "gateway/sampler.jinja",
    "playground/page/index.html",
)
"""Files in the wheel that are not Python; each is read when its part is used."""
ROOTS = ("unrender/", "unrender-")
"""What a wheel may hold: the package, and what describes it."""
SOURCES = (
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "pyproject.toml",
    "tests/test_docs.py",
    "docs/tutorial.md",
    "scripts/test.py",
)
UNWANTED = (".cache/", ".venv", ".ci/", "__pycache__", ".pyc", ".hypothesis", "node_modules")
PERMISSIVE = (
    "MIT",
    "BSD",
    "APACHE",
    "PSF",
    "ISC",
    "PYTHON-2.0",
    "PYTHON SOFTWARE",
    "MPL",
    "MOZILLA",
    "UNLICENSE",
    "ZLIB",
    "0BSD",
)
"""Words of licences that allow what ours allows; MPL binds the files of that library alone."""
WITHOUT = "Without the extra `transformers`: its torch brings what the machine's accelerator needs."
UNSAID: Mapping[str, str] = {"protobuf": "BSD-3-Clause"}
"""Licences of packages whose metadata name none, as the LICENSE file in their archive says."""


def contents(folder: str) -> None:
    """End with a sentence unless the wheel and the source distribution hold what they must, and nothing else."""
    (wheel,), (source,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    _demand(wheel, names, [f"unrender/{name}" for name in NEEDED])
    package = environment.ROOT / "src" / "unrender"
    _demand(wheel, names, [f"unrender/{path.relative_to(package).as_posix()}" for path in package.rglob("*.py")])
    _refuse(wheel, [name for name in names if not name.startswith(ROOTS)])
    with tarfile.open(source) as archive:
        inner = [name.partition("/")[2] for name in archive.getnames()]
    _demand(source, inner, list(SOURCES))
    for path, found in ((wheel, names), (source, inner)):
        _refuse(path, [name for name in found if any(word in name for word in UNWANTED)])
    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    if len(needs) != 1:
        sys.exit(f"{wheel}: expected jinja2 as the only dependency, found {needs}")
    print(
        f"{wheel.name}: {len(names)} files; {source.name}: {len(inner)} files; the core needs {needs[0].partition(': ')[2]}"
    )


def types(report: str) -> None:
    """End with a sentence unless pyright knows enough of the public types; say which it does not know."""
    found = json.loads(Path(report).read_text(encoding="utf-8"))["typeCompleteness"]
    for symbol in found["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"] and symbol["diagnostics"]:
            print(f"{symbol['name']}: {symbol['diagnostics'][0]['message'].splitlines()[0]}")
    score = found["completenessScore"]
    if score < TYPED:
        sys.exit(f"types: expected {TYPED:.0%} to be known, found {score:.1%}")
    print(f"{score:.1%} of the types are known")


def licences(bill: str, out: str) -> None:
    """Write the licences of all dependencies as a table; end with a sentence where one is missing or binds users further."""
    parts = json.loads(Path(bill).read_text(encoding="utf-8"))["components"]
    rows = sorted((part["name"], part["version"], _licence(part)) for part in parts if part["name"] != "unrender")
    table = "".join(f"| {' | '.join(row)} |\n" for row in [("package", "version", "licence"), ("---",) * 3, *rows])
    Path(out).write_text(f"# Licences of what unrender's extras install\n\n{WITHOUT}\n\n{table}", encoding="utf-8")
    odd = [row for row in rows if not any(word in row[2].upper() for word in PERMISSIVE)]
    if odd:
        sys.exit(f"{out}: expected permissive licences, found {odd}")
    print(f"{len(rows)} dependencies, all permissive: {out}")


def notes(out: str) -> None:
    """Write what the changelog says of this version; end with a sentence when it says nothing."""
    Path(out).write_text(section(version()) + "\n", encoding="utf-8")
    print(f"notes of {version()}: {out}")


def tag(name: str) -> None:
    """End with a sentence unless a tag names this version."""
    if name != f"v{version()}":
        sys.exit(f"tag: expected v{version()}, found {name}")


def version() -> str:
    """Return the version that the package has."""
    text = (environment.ROOT / "src" / "unrender" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else sys.exit("src/unrender/version.py: expected a version")


def section(release: str) -> str:
    """Return the changelog's section of a release, without its heading."""
    text = (environment.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(release)} .*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else sys.exit(f"CHANGELOG.md: expected a section of {release}")


def _licence(part: dict[str, Any]) -> str:
    said = [
        item.get("expression") or item["license"].get("id") or item["license"].get("name", "")
        for item in part.get("licenses", [])
    ]
    said = said or [UNSAID.get(part["name"], "")]
    return ", ".join(dict.fromkeys(text.partition("\n")[0][:60] for text in said if text))


def _demand(path: Path, names: list[str], wanted: list[str]) -> None:
    if missing := sorted(set(wanted) - set(names)):
        sys.exit(f"{path}: expected {missing[:5]}, which it does not hold")


def _refuse(path: Path, names: list[str]) -> None:
    if names:
        sys.exit(f"{path}: holds {names[:5]}, which it must not")


COMMANDS: Mapping[str, Callable[..., None]] = {
    "contents": contents,
    "types": types,
    "licences": licences,
    "notes": notes,
    "tag": tag,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
