"""Tests of inputs and outputs: template variables, `-` for every file, and closed streams."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from cases import cases

from unrender.cli.inputs import InputPath

T = "chat_template.jinja"


@cases
def test_settings(run, settings, value):
    """A value is parsed as JSON if possible. The last value of a name is used."""
    Path("t.jinja").write_text("{{ messages[-1].content }}{{ a | tojson }}", encoding="utf-8")
    Path("hi.json").write_text('[{"role": "user", "content": "Hi"}]', encoding="utf-8")

    result = run("preview", "t.jinja", "hi.json", "--prompt", *(word for one in settings for word in ("--set", one)))

    assert json.loads(result.stdout.removeprefix("Hi")) == value


def test_bytes_that_are_no_text(run):
    """A model's output may contain invalid UTF-8, but a template may not."""
    Path("output.txt").write_bytes(b"a\r\n\xff")
    Path("broken.jinja").write_bytes(b"a\xff")

    shown = json.loads(run("explain", T, "output.txt", "--json").stdout)
    refused = run("format", "show", "-", text=b"a\xff")

    assert shown["message"]["content"] == "a\r\n\ufffd"
    assert (refused.exit_code, "-: expected UTF-8 text, found byte 0xff" in refused.stderr) == (2, True)


@cases
def test_a_directory_of_templates(run, files, found):
    """A directory without a model is replaced by its templates, in order."""
    Path("many").mkdir()
    for name in files:
        Path("many", name).write_text("{{ messages[-1].content }}", encoding="utf-8")

    assert list(json.loads(run("lint", "many", "--json", "--jobs", "1").stdout)) == found


SOURCE = Path(__file__).resolve().parents[3] / "src"
T = "chat_template.jinja"
ELSEWHERE = {
    ("serve", "path"),
    ("serve", "config"),
    ("serve", "check"),
    ("serve", "format"),
    ("playground", "static"),
    ("example", "folder"),
}
"""Parameters for models, settings and folders, which aren't read as one file."""


@pytest.fixture(autouse=True)
def files(run):
    """Create more input files."""
    shutil.copytree(Path(__file__).with_name("streamed"), ".", dirs_exist_ok=True)


def test_every_file_that_is_read_may_be_standard_input(commands):
    """Every path parameter is an `InputPath`, except those in the table above."""
    plain = {
        (command, param.name)
        for command, found in commands.items()
        for param in found.params
        if isinstance(param.type, click.Path) and not isinstance(param.type, InputPath)
    }

    assert plain == ELSEWHERE


ROWS: Any = tomllib.loads(Path(__file__).with_name("streams.toml").read_text(encoding="utf-8"))


def words_of(text: str) -> list[str]:
    return [T if word == "T" else word for word in text.split()]


@pytest.mark.parametrize("row", ROWS["reading"])
def test_a_minus_reads_standard_input(run, row):
    """`-` reads standard input, with the same result as a file."""
    words, source = words_of(row), ROWS["reading"][row]
    if source == "messages.json" and "replay" in words:
        Path(source).write_text('["Yes."]', encoding="utf-8")
    text = Path(source).read_text(encoding="utf-8")
    named = [source if word == "-" and at and words[at - 1] != "-o" else word for at, word in enumerate(words)]

    piped = run(*words, text=text)
    if "export" in words:
        assert json.loads(piped.stdout) == {
            "kept": 1,
            "response_template": json.loads(run("format", "export", T).stdout),
        }
        return
    from_file = run(*named)
    assert piped.exit_code == from_file.exit_code
    assert piped.stdout.split() == [word.replace(source, "-") for word in from_file.stdout.split()]


BROKEN = {
    "latin": b'["\xe9"]',
    "deep": b"[" * 100_000,
    "digits": b"1" * 10_000,
    "cut": b'{"a": ',
    "empty": b"",
}


@pytest.mark.parametrize("row", ROWS["words"]["taking"])
@pytest.mark.parametrize("kind", [*BROKEN, "missing", "folder", "secret"])
def test_every_error_names_the_file(run, row, kind):
    """The error for an unusable JSON file names the file, and doesn't report a bug."""
    path = Path("broken.json")
    if kind in BROKEN:
        path.write_bytes(BROKEN[kind])
    elif kind == "folder":
        path.mkdir()
    elif kind == "secret":
        path.write_bytes(b"[]")
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")

    result = run(*words_of(row), "broken.json")

    if "replay" in row and kind in ("latin", "empty"):
        assert result.exit_code == 0  # A model's text may be anything, even empty.
        return
    assert result.exit_code in (1, 2)
    assert "broken.json" in result.output
    assert "defect" not in result.output


def started(*words: str, more: str = "", **given) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a shell that redirects its streams with `more`."""
    command = f"{sys.executable} -m unrender {' '.join(words)} {more}"
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(["bash", "-c", command], env=env, capture_output=True, check=False, timeout=60, **given)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS["words"]["saying"])
def test_a_reader_that_has_enough_ends_a_command_well(row):
    """A command whose reader stops early prints no error. The exit code is click's."""
    words = words_of(row)
    run = started(*words, more="2>errors | (exec 0<&-; sleep 0.1); echo ${PIPESTATUS[0]}")
    wrong = words[-1] == "none.jinja"

    assert run.stdout == (b"2\n" if wrong else b"1\n")
    errors = Path("errors").read_text(encoding="utf-8")
    assert "Traceback" not in errors
    assert "Broken pipe" not in errors
    if wrong:
        run = started(*words, more="2>&1 >/dev/null | (exec 0<&-; sleep 0.1); echo ${PIPESTATUS[0]}")
        assert (run.stdout, run.stderr) == (b"2\n", b"")


@pytest.mark.slow
def test_streams_that_are_closed_or_full():
    """A closed output is ignored, and a full output or a closed input is an error."""
    assert started("format", "show", T, more=">&-").returncode == 0
    assert started("format", "show", "none.jinja", more="2>&-").returncode == 2
    full = started("format", "show", T, more=">/dev/full")
    assert full.returncode != 0
    assert full.stderr.startswith(b"Error: output: No space left on device\n")
    for words in (("parse", T), ("format", "show", "-")):
        closed = started(*words, more="<&-")
        assert closed.returncode == 2
        assert b"standard input is closed" in closed.stderr


def test_every_json_option_prints_json(run, commands):
    """`--json` prints one JSON value, or one per line for streams. `probe` needs an engine, and has its own test."""
    Path("chunks.json").write_text('["Yes."]', encoding="utf-8")
    Path("answer.json").write_text('{"role": "assistant", "content": "Yes."}', encoding="utf-8")
    able = {name for name, found in commands.items() if any("--json" in param.opts for param in found.params)}

    assert able - {"probe"} == set(ROWS["json"])
    for command, words in ROWS["json"].items():
        printed = run(*command.split(), *words_of(words), "--json", text="Yes.<|end|>").stdout
        for value in printed.splitlines() if command == "parse" else [printed]:
            json.loads(value)
