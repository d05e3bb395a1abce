"""Tests of all commands on a pseudo-terminal, with hostile ids, names, markers, paths and errors."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

import click
import command_line
import pytest
from cases import beside

import unrender
from unrender import ChatTemplate

SOURCES = str(Path(unrender.__file__).parents[1])
HOSTILE = "\x1b]0;pwned\x07\x9b35m\u202eevil\u2066\u200b\u2028[bold red]x[/red]\rFAKE\x1b[95m\ud800"
"""A window title, 7-bit and 8-bit colours, bidi controls, a line separator, markup, and a lone surrogate."""
ARRIVED = re.compile(r"\\(x1b|u001b)\\*\]0;pwned", re.IGNORECASE)
"""The escaped text of `HOSTILE`."""
NOWHERE = HOSTILE[:-1]
"""`HOSTILE` without the lone surrogate, which can't be passed on a command line."""
FILE_NAME = os.fsdecode(b"\xff" + NOWHERE.replace("/", "").encode())
"""`NOWHERE` as a file name with an invalid byte."""
OWN_STYLES = re.compile(r"\x1b\[((0|1|2|3[12356]|1;36)m|2K|1A|\?25[lh])")
"""Codes that the command line and its progress bar write. `HOSTILE` contains another code."""
ALIVE = {"Cc", "Cf", "Cs", "Zl", "Zp"}

IN_JINJA = "".join(char if char.isalnum() else f"\\u{ord(char):04x}" for char in HOSTILE.replace("\ud800", ""))
MARKED = beside(__file__, "marked.jinja").replace("EVIL", IN_JINJA)
# Content of an answer with a call looks like reasoning, so the template is ambiguous.
AMBIGUOUS = MARKED.replace(
    "{{- message.content }}\n",
    "{{- message.content }}\n{%- if message.tool_calls and message.content %}{{ 'EVIL' ~ message.content }}{% endif %}\n"
    "".replace("EVIL", IN_JINJA),
)
REFUSING = f"{{{{ raise_exception('{IN_JINJA}') }}}}"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
CALL = f'<call {NOWHERE} name="get_weather" id="{NOWHERE}">{{"city": {NOWHERE}}}</call><call {NOWHERE} name="{NOWHERE}" id="1">{{}}</call>'


# All commands run in one interpreter, because starting one for each would take minutes.
DRIVER = """
import io, json, sys
from unrender.cli.commands import app
for arguments, text in json.load(sys.stdin):
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass")))
    try:
        app(arguments, prog_name="unrender")
    except SystemExit:
        print("<<over>>", flush=True)
"""


def on_terminal(*program: str, text: str = "", **environment: str) -> str:
    """Run Python on a pseudo-terminal, and return the text that the terminal received."""
    ours, theirs = os.openpty()
    env = {**os.environ, "PYTHONPATH": SOURCES, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    process = subprocess.Popen([sys.executable, *program], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    assert process.stdin
    process.stdin.write(text.encode())
    process.stdin.close()
    seen = b""
    try:
        while data := os.read(ours, 65536):
            seen += data
    except OSError:  # Linux raises this when the other side has closed.
        pass
    os.close(ours)
    process.wait()
    return seen.decode("utf-8", "surrogateescape")


DEEP = "[" * 100_000 + "]" * 100_000
SAID = {
    "M": "marked.jinja",
    "R": "refusing.jinja",
    "NOWHERE": NOWHERE,
    "HOSTILE": HOSTILE,
    "CALL": CALL,
    "CHUNK": json.dumps([[HOSTILE]]),
    "LONG": "x" * 5000,
    "DEEP": DEEP[:100_000],
    "DIGITS": "9" * 5000,
}
ROWS: Any = tomllib.loads(Path(__file__).with_name("hostile.toml").read_text(encoding="utf-8"))
M = "marked.jinja"


def meant(words: str) -> str:
    """Return an argument with each name of `SAID` replaced by its text."""
    return re.sub(rf"\b({'|'.join(SAID)})\b", lambda found: SAID[found[1]], words)


COMMANDS = [([meant(word) for word in words.split(" ")], meant(text)) for words, text in ROWS["attacked"]]


def alive(seen: str) -> set[str]:
    """Return the control and format characters that the command line didn't write itself."""
    own = OWN_STYLES.sub("", seen)
    return {repr(char) for char in own if unicodedata.category(char) in ALIVE and char not in "\r\n"}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """Create a folder with hostile templates, tools, outputs and chunks."""
    folder = tmp_path_factory.mktemp("attacked")
    hostile = [{"type": "function", "function": {"name": NOWHERE, "parameters": {"type": "object"}}}]
    unenforced = {"name": "f", "parameters": {"properties": {NOWHERE: {"not": {}}}}}
    files = {
        "marked.jinja": MARKED,
        "refusing.jinja": REFUSING,
        "ambiguous.jinja": AMBIGUOUS,
        "tools.json": json.dumps(TOOLS),
        "output.txt": CALL,
        "chunks.json": json.dumps([CALL[:9], CALL[9:], HOSTILE]),
        "hostile.json": json.dumps(hostile),
        "schema.json": json.dumps([{"type": "function", "function": unenforced}]),
        "question.json": json.dumps([{"role": "user", "content": HOSTILE}]),
        "many/one.jinja": "{{ messages[-1].content }}",
        f"many/{FILE_NAME}.jinja": "{{ messages[-1].content }}",
    }
    (folder / "many").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def folder(attacked, monkeypatch):
    """Change to the folder with the hostile files."""
    monkeypatch.chdir(attacked)
    return attacked


@pytest.fixture(scope="module")
def seen(attacked, request):
    """Return the text that the terminal received from each selected command, by its number."""
    cases = [item.callspec.params for item in request.session.items if "seen" in getattr(item, "fixturenames", ())]
    asked = sorted(case["index"] for case in cases)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(attacked)
        given = json.dumps([COMMANDS[index] for index in asked])
        sent = on_terminal("-c", DRIVER, text=given, NO_COLOR="1").split("<<over>>\r\n")
    assert len(sent) == len(asked) + 1, sent[-1]
    return dict(zip(asked, sent, strict=False))


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(COMMANDS)), ids=lambda index: ROWS["attacked"][index][0])
def test_nothing_from_outside_is_obeyed(seen, index):
    """Hostile input is escaped on a terminal."""
    assert alive(seen[index]) == set()
    assert "\rFAKE" not in seen[index]  # The command line's own carriage returns end lines and begin the progress.
    assert ARRIVED.search(seen[index])
    assert "Traceback" not in seen[index]


@pytest.mark.slow
def test_styles_are_the_command_lines_own(folder):
    """With colours, the terminal receives only the command line's own codes."""
    seen = on_terminal("-m", "unrender", "inspect", M, NO_COLOR="")

    assert OWN_STYLES.search(seen)
    assert alive(seen) == set()


@pytest.mark.parametrize("words", ROWS["unusable"])
def test_unusable_input_is_one_line(run, words):
    """Extremely long or deep input ends with one line on standard error, and exit code 2."""
    Path(M).write_text("{{ messages[-1].content }}", encoding="utf-8")
    Path("deep.json").write_text(DEEP, encoding="utf-8")
    Path("digits.json").write_text(f"[{'9' * 5000}]", encoding="utf-8")
    Path("binary.json").write_bytes(b"\xff\xfe\x00")
    Path("many").mkdir()

    result = run(*map(meant, words.split()))

    *usage, line = result.stderr.splitlines()
    assert result.exit_code == 2
    assert line.startswith("Error: ")
    assert len(line) < 2200
    assert all(said.startswith(("Usage: ", "Try ")) or not said for said in usage)


def test_defect_is_one_line(run, monkeypatch):
    """An unexpected exception is reported in one line without a traceback, with exit code 3."""
    monkeypatch.setattr("unrender.cli.format.load_template", lambda _, name: {}["\x1b[31m"])

    result = run("format", "show", "chat_template.jinja")

    assert result.exit_code == 3
    assert result.stderr.startswith("Error: KeyError: '\\x1b[31m'; this is a bug in unrender")
    assert result.stderr.count("\n") == 1


@pytest.mark.slow
def test_encoding_that_lacks_characters_is_no_error(folder):
    """Characters that the encoding lacks are escaped, and JSON stays valid."""
    commands = [("inspect", M), ("format", "show", M), ("parse", M, "--stream", "--json")]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([(words, "«é»😀") for words in commands]).encode(),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": SOURCES, "PYTHONIOENCODING": "latin-1"},
    )
    inspected, shown, parsed, _ = done.stdout.decode("latin-1").split("<<over>>\n")

    assert inspected
    assert json.loads(shown)
    assert "".join(json.loads(line).get("text", "") for line in parsed.splitlines()) == "«é»😀"


def test_version_and_help_are_at_hand(run):
    """--version prints the package's version, every command accepts -h, and the help lists at most thirteen commands."""
    assert run("--version").stdout == f"unrender, version {unrender.__version__}\n"
    assert run("-h").stdout == run("--help").stdout == run().stdout
    assert run("parse", "-h").exit_code == 0

    text = run("--help").stdout
    names = command_line.COMMANDS.list_commands(click.Context(command_line.COMMANDS))
    assert len(names) <= 13
    assert re.findall(r"^(\w+):$", text, re.MULTILINE)[-3:] == ["Templates", "Answers", "Serving"]
    assert all(f"\n  {name} " in text for name in names)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell):
    """The completion script is printed, and commands and files are completed."""

    def completed(what: str, words: str = "", at: str = "") -> str:
        env = {"_UNRENDER_COMPLETE": f"{shell}_{what}", "COMP_WORDS": words, "COMP_CWORD": at}
        result = command_line.run(env=env)
        return result.stdout + result.stderr

    script = completed("source")
    assert "_UNRENDER_COMPLETE" in script or "bash" in script.lower()
    assert "export" in completed("complete", "unrender format ex", "ex" if shell == "fish" else "2")
    assert completed("complete", "unrender inspect ", "" if shell == "fish" else "2").startswith("file")


def test_what_others_log_is_escaped(run, monkeypatch):
    """Log records of other libraries are printed as one escaped line without a traceback."""

    def load(source, **_):
        try:
            int(source)
        except ValueError:
            logging.getLogger("others").exception("odd: %s", "\x1b[31m\nred")
        return ChatTemplate.from_string("")

    monkeypatch.setattr("unrender.cli.format.load_template", load)

    assert run("format", "show", "x").stderr == "error others: odd: \\x1b[31m\\nred\n"


def test_error_of_a_hub_is_one_line(run, monkeypatch):
    """A multi-line error of the hub is printed on one line."""

    class Hub:
        @staticmethod
        def snapshot_download(*_, **__):
            raise OSError("404 Client Error.\n\nRepository Not Found for url: https://x.\nPlease log in.")

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    result = run("inspect", "some/model")

    assert result.exit_code == 2
    assert result.stderr == (
        "Error: some/model: no such file or directory, and not readable from the hub: "
        "404 Client Error. Repository Not Found for url: https://x. Please log in.\n"
    )
