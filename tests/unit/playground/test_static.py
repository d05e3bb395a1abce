"""The static page and its Python code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile

import command_line
import pytest

from unrender.playground import answer, write_site
from unrender.verify import CHECKS

ADDRESS = "https://pyodide.example/v1/full"


def test_folder_holds_the_page_and_its_python(tmp_path):
    """The folder contains all files of the page, and the policy allows Pyodide's URL."""
    names = {path.name for path in write_site(tmp_path / "site", pyodide=ADDRESS)}
    page = (tmp_path / "site" / "index.html").read_text()

    assert set(re.findall(r'(?:href|src)="([\w.]+)"', page)) <= names
    assert {"worker.js", "editor.js", "unrender.zip", "needed.zip", "stored.json"} <= names
    assert f'<meta name="pyodide" content="{ADDRESS}/">' in page
    assert "script-src &#x27;self&#x27; &#x27;wasm-unsafe-eval&#x27; https://pyodide.example;" in page


def test_command_writes_the_page(tmp_path):
    """`playground --static` writes the page and exits."""
    result = command_line.run("playground", "--static", str(tmp_path / "site"))

    assert (result.exit_code, (tmp_path / "site" / "index.html").is_file()) == (0, True)


def test_first_answers_are_stored(tmp_path):
    """The stored responses answer all requests for each example."""
    write_site(tmp_path, pyodide=ADDRESS)
    stored = json.loads((tmp_path / "stored.json").read_text())

    counts = {question: len(pairs) for question, pairs in stored.items()}
    asked = ("format", "prompt", "sample", "read", "explanation", "grammar")
    assert counts == dict.fromkeys(asked, 11) | {"checks": len(CHECKS)}
    for question, pairs in stored.items():
        for asked, found in pairs:
            assert "error" not in found
            if question == "prompt":
                assert json.loads(json.dumps(answer(question, asked))) == found


@pytest.mark.slow
def test_archives_hold_all_that_python_needs(tmp_path):
    """The two archives contain everything to answer a request."""
    write_site(tmp_path, pyodide=ADDRESS)
    for name in ("unrender.zip", "needed.zip"):
        zipfile.ZipFile(tmp_path / name).extractall(tmp_path / "lib")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'lib')!r})\n"
        "from unrender.playground import answer\n"
        "print(answer('prompt', {'source': '{{ messages[0].content }}'})['prompt'])"
    )
    run = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, check=False)

    assert (run.stdout, run.stderr) == ("Hello\n", "")


def test_archives_hold_licences_and_nothing_compiled(tmp_path):
    """The archive contains licences, and no compiled files."""
    write_site(tmp_path, pyodide=ADDRESS)
    names = zipfile.ZipFile(tmp_path / "needed.zip").namelist()

    assert sum("LICENSE" in name for name in names) == 2
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc"))]


@pytest.mark.slow
def test_the_same_files_make_the_same_archive(tmp_path):
    """The same files always give the same archive."""
    for name in ("one", "two"):
        write_site(tmp_path / name, pyodide=ADDRESS)

    assert (tmp_path / "one" / "unrender.zip").read_bytes() == (tmp_path / "two" / "unrender.zip").read_bytes()


def test_pyodide_may_lie_beside_the_page(tmp_path):
    """If the URL is relative, the policy names no other site."""
    write_site(tmp_path, pyodide="./pyodide")
    page = (tmp_path / "index.html").read_text()

    assert 'content="./pyodide/"' in page
    assert "script-src &#x27;self&#x27; &#x27;wasm-unsafe-eval&#x27;;" in page


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    """The error names the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        write_site(tmp_path / "file" / "site", pyodide=ADDRESS)
