"""Writes a folder with the page and its Python code for any static host. In the browser, unrender runs on Pyodide.

Rules: the installed Python files are packed into two archives, one for unrender and one for Jinja2 and MarkupSafe. Pyodide isn't included.
The caller provides the URL of Pyodide.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from importlib import metadata
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from unrender.playground import answer
from unrender.verify import CHECKS

_NEEDED = ("jinja2", "markupsafe")
_PAGE = files("unrender.playground").joinpath("page")
_ASKED: Mapping[str, Any] = {"thinking": "", "tool_choice": None, "parallel_tool_calls": True}
"""The initial state of the page's switches."""
_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{origin}; style-src 'self'; connect-src 'self'{origin}; worker-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def write(folder: Path, *, pyodide: str) -> tuple[Path, ...]:
    """Write the page and its Python code into `folder`, and return the paths of the files. The folder is created if necessary.

    `pyodide` is the URL of Pyodide. It may be relative to the page. Raises `OSError` if a file can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = _contents(pyodide.rstrip("/") + "/")
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return tuple(folder / name for name in contents)


def _contents(where: str) -> dict[str, bytes]:
    """Return the contents of the folder's files by name. `where` is the URL of Pyodide."""
    contents = {file.name: file.read_bytes() for file in _PAGE.iterdir()}
    contents["index.html"] = _alone(contents["index.html"].decode(), where).encode()
    contents["stored.json"] = _stored()
    contents["unrender.zip"] = _archive(_modules("unrender", Path(str(files("unrender")))))
    contents["needed.zip"] = _archive(pair for name in _NEEDED for pair in _distribution(name))
    return contents


@cache
def _stored() -> bytes:
    """Return the responses for the page's examples: for each request name, pairs of a request's fields and the response.

    Python takes a while to load in the browser. Until Python is ready, the page shows these responses.
    """
    stored: dict[str, list[Any]] = {}
    page = json.loads(_PAGE.joinpath("examples.json").read_bytes())
    for example in page["examples"]:
        template = {"source": example["source"], "bos_token": "", "eos_token": "", "format": example["format"]}
        asked = {**template, **_ASKED, "messages": page["messages"], "tools": page["tools"]}
        sample = asked | {"legible": True}
        output = {"output": answer("sample", sample)["output"]}
        each = [
            ("format", template),
            ("prompt", asked),
            ("sample", sample),
            ("read", asked | output | {"chunk": 4}),
            ("explanation", asked | output),
            ("grammar", asked | {"dialect": "gbnf"}),
        ]
        # Checks take seconds, so include them only for the first example.
        each += [("checks", template | {"check": check}) for check in CHECKS if not stored]
        for question, fields in each:
            stored.setdefault(question, []).append([fields, answer(question, fields)])
    return json.dumps(stored).encode()


def _alone(html: str, where: str) -> str:
    """Return the HTML of the page that runs on Pyodide. It includes the content security policy that a server would send in a header."""
    origin = f" {'/'.join(where.split('/')[:3])}" if "://" in where else ""
    said = f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY.format(origin=origin))}">'
    runtime = f'<meta name="pyodide" content="{escape(where)}">'
    return html.replace('<meta name="pyodide" content="">', f"{said}\n{runtime}", 1)


def _modules(name: str, root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a pure-Python package, with their paths in the archive."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts:
            yield str(PurePosixPath(name, *path.relative_to(root).parts)), path.read_bytes()


def _distribution(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the installed files of a distribution, including licences but excluding compiled files."""
    for found in metadata.files(name) or ():
        path = Path(str(found.locate()))
        if path.suffix not in {".pyc", ".so", ".pyd"} and ".." not in found.parts and path.is_file():
            yield str(found), path.read_bytes()


def _archive(contents: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a reproducible zip archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents:
            # Use a fixed timestamp, so that the same files always produce the same archive.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return data.getvalue()
