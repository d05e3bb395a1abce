"""Documentation as tests: every code block of README.md and docs/ does what the page says.

Rules for authors of pages:
- A `python` block is executed; one with `>>>` is a doctest. A page's blocks share their names, in order.
- A `console` block is a session: `$ unrender …` or `$ pytest …` is run and its output compared; `...` matches anything.
  `< FILE`, `> FILE`, `$ export NAME=VALUE` and `$ echo $?` work as in a shell.
- A block after `<!-- file: NAME -->` is first written to that file. Files that few readers need are in `<details
  markdown="1">`. Readers can see every file that an example needs. Every page has its own folder.
- A `python` block that imports a library of `HEAVY` is skipped if it isn't installed (`scripts/run.py tables` has
  them).
- `sh`, `text` and other blocks are only shown.
"""

from __future__ import annotations

import doctest
import logging
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import command_line
import pytest
from importing import imported

import unrender

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(unrender.__path__, "unrender."))
FENCED = r"(?:^<!-- file: (?P<file>\S+) -->\n+)?^```(?P<language>\w*)\n(?P<code>.*?)^```$"
BLOCK = re.compile(FENCED, re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#]*)(?:#(?P<anchor>[^)]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
HEAVY = re.compile(r"^import (datasets|polars|ray)$", re.MULTILINE)
OPTIONS = doctest.ELLIPSIS | doctest.REPORT_NDIFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page; `line` is the first line of its code."""

    language: str
    code: str
    file: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        yield Block(language=match["language"], code=match["code"], file=match["file"] or "", line=line)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Restore the environment and unrender's loggers after a page."""
    with patch.dict(os.environ):
        yield
    logging.getLogger("unrender").setLevel(logging.NOTSET)
    logging.getLogger("unrender").handlers.clear()


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of the page does what the page says it does."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}

    for block in blocks(page):
        check_block(block, page, tmp_path, names)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of the page points to a file of the repository."""
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_to_headings(page: Path) -> None:
    """Every anchor in the page's links belongs to a heading, under the name that GitHub and the site use."""
    links = [match.groups() for match in LINK.finditer(page.read_text(encoding="utf-8")) if match["anchor"]]

    assert [link for link in links if link[1] not in anchors((page.parent / link[0]) if link[0] else page)] == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_code_fits_the_page(page: Path) -> None:
    """No line of code is longer than 88 characters, so that readers on GitHub and on the site don't scroll sideways."""
    fenced = re.findall(r"^( *)```.*\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix(indent) for indent, code in fenced for line in code.splitlines()]

    assert [line for line in lines if len(line) > 88] == []


def test_errors_are_worded_as_the_page_says() -> None:
    """Each text on the page of errors is in the source, apart from its variable parts."""
    page = (ROOT / "docs" / "howto" / "debug.md").read_text(encoding="utf-8").partition("## Error messages")[2]
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)
    texts = re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE)
    parts = [part for text in texts for part in re.split(r" ?… ?", text) if len(part) > 5]

    assert len(texts) > 25
    assert [part for part in parts if part not in source] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    found = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    """Every example in a docstring does what it says."""
    assert doctest.testmod(imported(name), optionflags=OPTIONS).failed == 0


def check_block(block: Block, page: Path, folder: Path, names: dict[str, Any]) -> None:
    where = f"{relative(page)}:{block.line}"
    if block.file:
        (folder / block.file).parent.mkdir(exist_ok=True)
        (folder / block.file).write_text(block.code, encoding="utf-8")
    elif block.language == "python" and ">>>" in block.code:
        check_doctest(block, names, where)
    elif block.language == "python" and all(map(find_spec, HEAVY.findall(block.code))):
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
    elif block.language == "console":
        check_session(block, where)


def check_doctest(block: Block, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, names, where, where, block.line - 1)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    names.update(test.globs)

    assert not report, "".join(report)


def check_session(block: Block, where: str) -> None:
    code = 0
    for step in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        printed, code = (f"{code}\n", 0) if command == "echo $?" else run(command)

        assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), (
            f"{where}: {command}\n{printed}"
        )


def run(command: str) -> tuple[str, int]:
    program, *words = shlex.split(command)
    if program == "pytest":
        return run_pytest(words)
    if program == "export":
        os.environ.update({name: value for name, _, value in (word.partition("=") for word in words)})
        return "", 0
    assert program == "unrender", f"only unrender and pytest are run in console blocks, not {program}"
    redirects = {sign: words[words.index(sign) + 1] for sign in "<>" if sign in words}
    arguments = words[: min((words.index(sign) for sign in redirects), default=len(words))]
    typed = Path(redirects["<"]).read_bytes() if "<" in redirects else b""
    result = command_line.run(*arguments, text=typed)
    if ">" in redirects:
        Path(redirects[">"]).write_text(result.stdout, encoding="utf-8")
        return "", result.exit_code
    return result.output, result.exit_code


def run_pytest(words: list[str]) -> tuple[str, int]:
    # Other installed plug-ins take seconds to load.
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "unrender.testing.plugin", *words]
    environment = os.environ | {"COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return result.stdout, result.returncode
