"""What a terminal sees: every command on a real pseudo-terminal, with ids, names, markers, paths and errors that attack it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

import unrender

SOURCES = str(Path(unrender.__file__).parents[1])
HOSTILE = "\x1b]0;pwned\x07\x9b35m\u202eevil\u2066\u200b\u2028[bold red]x[/red]\rFAKE\x1b[35m\ud800"
"""A window's title, colours in 7 and 8 bits, text that runs backwards, a line separator, markup, and half a character."""
ARRIVED = re.compile(r"\\(x1b|u001b)\\*\]0;pwned", re.IGNORECASE)
"""What is left of `HOSTILE` when it is shown instead of obeyed."""
OWN_STYLES = re.compile(r"\x1b\[(0|1|2|3[1236]|1;36)m")
"""The codes that the command line itself writes; `HOSTILE` asks for another."""
ALIVE = {"Cc", "Cf", "Cs", "Zl", "Zp"}

IN_JINJA = "".join(char if char.isalnum() else f"\\u{ord(char):04x}" for char in HOSTILE.replace("\ud800", ""))
MARKED = f"""\
{{%- if tools %}}{{{{ '<|system|>' ~ tools | tojson }}}}{{% endif %}}
{{%- for message in messages %}}
{{{{- '<|' ~ message.role ~ '|>' }}}}
{{%- if message.reasoning_content %}}{{{{ '<think {IN_JINJA}>' ~ message.reasoning_content ~ '</think>' }}}}{{% endif %}}
{{{{- message.content }}}}
{{%- if message.tool_calls and message.content %}}{{{{ '<think {IN_JINJA}>x</think>' }}}}{{% endif %}}
{{%- for call in message.tool_calls or [] %}}
{{{{- '<call {IN_JINJA} name="' ~ call.function.name ~ '" id="' ~ call.id ~ '">' ~ call.function.arguments | tojson ~ '</call>' }}}}
{{%- endfor %}}
{{{{- '<|end|>' }}}}
{{%- endfor %}}
{{%- if add_generation_prompt %}}{{{{ '<|assistant|>' }}}}{{% endif %}}
"""
REFUSING = f"{{{{ raise_exception('{IN_JINJA}') }}}}"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
CALL = f'<call {HOSTILE[:-1]} name="get_weather" id="{HOSTILE[:-1]}">{{"city": {HOSTILE[:-1]}}}</call><call {HOSTILE[:-1]} name="{HOSTILE[:-1]}" id="1">{{}}</call>'


def on_terminal(*arguments: str, text: str = "", **environment: str) -> str:
    """Run the command line with a pseudo-terminal as both its outputs, and return what the terminal was sent."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "unrender", *arguments]
    env = {**os.environ, "PYTHONPATH": SOURCES, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    assert process.stdin
    process.stdin.write(text.encode("utf-8", "surrogatepass"))
    process.stdin.close()
    seen = b""
    try:
        while data := os.read(ours, 65536):
            seen += data
    except OSError:  # What Linux says when the other side has closed.
        pass
    os.close(ours)
    process.wait()
    return seen.decode("utf-8", "surrogateescape")


def alive(seen: str) -> set[str]:
    """Return the characters that a terminal obeys or that deceive its reader, beyond the command line's own."""
    own = OWN_STYLES.sub("", seen)
    return {repr(char) for char in own if unicodedata.category(char) in ALIVE and char not in "\r\n"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Fill a folder with templates, tools, outputs and chunks that attack whoever prints them."""
    monkeypatch.chdir(tmp_path)
    Path("marked.jinja").write_text(MARKED, encoding="utf-8")
    Path("refusing.jinja").write_text(REFUSING, encoding="utf-8")
    Path("tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    Path("output.txt").write_text(CALL, encoding="utf-8")
    Path("chunks.json").write_text(json.dumps([CALL[:9], CALL[9:], HOSTILE]), encoding="utf-8")
    hostile = [{"type": "function", "function": {"name": HOSTILE[:-1], "parameters": {"type": "object"}}}]
    Path("hostile.json").write_text(json.dumps(hostile), encoding="utf-8")
    hostile[0]["function"] = {"name": "f", "parameters": {"properties": {HOSTILE[:-1]: {"not": {}}}}}
    Path("schema.json").write_text(json.dumps(hostile), encoding="utf-8")
    Path("many").mkdir()
    for name in ("one", os.fsdecode(b"\xff" + HOSTILE[:-1].replace("/", "").encode())):
        Path(f"many/{name}.jinja").write_text("{{ messages[-1].content }}", encoding="utf-8")
    return tmp_path


M, R, T, H = "marked.jinja", "refusing.jinja", ("--tools", "tools.json"), ("--tools", "hostile.json")
NOWHERE = HOSTILE[:-1]
COMMANDS = [
    (("inspect", M), ""),
    (("inspect", M, "--json"), ""),
    (("inspect", M, "--compare", "R1"), ""),
    (("inspect", M, "--compare", NOWHERE), ""),
    (("parse", M, *T), CALL),
    (("parse", M, *T, "--stream"), CALL),
    (("parse", M, *T, "--stream", "--json"), CALL),
    (("parse", R), ""),
    (("explain", M, "output.txt", *T), ""),
    (("explain", M, "output.txt", *T, "--json"), ""),
    (("explain", M, "-"), HOSTILE),
    (("replay", M, "chunks.json", *T), ""),
    (("replay", M, "chunks.json", *T, "--json"), ""),
    (("replay", M, "-"), json.dumps([[HOSTILE]])),
    (("lint", R), ""),
    (("lint", R, "--json"), ""),
    (("lint", "many"), ""),
    (("verify", M, "--samples", "1"), ""),
    (("verify", M, "--samples", "1", "--json"), ""),
    (("verify", "many", "--samples", "1"), ""),
    (("grammar", M, "--dialect", "gbnf", *H), ""),
    (("grammar", M, "--dialect", "lark", *H), ""),
    (("grammar", M, "--dialect", "structural-tag", *H), ""),
    (("grammar", M, "--dialect", "gbnf", "--tools", "schema.json"), ""),
    (("grammar", M, "--dialect", "gbnf", *T, "--tool-choice", NOWHERE), ""),
    (("format", M), ""),
    (("export", M), ""),
    (("diff", M, R), ""),
    (("diff", M, R, "--json"), ""),
    ((NOWHERE,), ""),
    (("parse", M, "--set", NOWHERE), ""),
    (("format", M, NOWHERE), ""),
    (("format", f"--{NOWHERE}"), ""),
    *(((command, NOWHERE), "") for command in ("inspect", "parse", "lint", "verify", "format", "export")),
    (("grammar", NOWHERE, "--dialect", "gbnf"), ""),
    (("explain", M, NOWHERE), ""),
    (("replay", M, NOWHERE), ""),
    (("diff", M, NOWHERE), ""),
    (("verify", M, "--report", NOWHERE + "/x"), ""),
    (("parse", M, "--tools", NOWHERE), ""),
]


@pytest.mark.parametrize(("arguments", "text"), COMMANDS, ids=lambda it: " ".join(it)[:40] if type(it) is tuple else "")
def test_nothing_from_outside_is_obeyed(folder, arguments, text):
    """No command sends a terminal anything but text, whatever its inputs hold; what attacked is shown."""
    seen = on_terminal(*arguments, text=text, NO_COLOR="1")

    assert alive(seen) == set()
    assert "\rFAKE" not in seen  # The command line's own carriage returns end lines and begin the progress.
    assert ARRIVED.search(seen)
    assert "Traceback" not in seen


def test_styles_are_the_command_lines_own(folder):
    """With colours, the terminal is sent the command line's own codes and no others."""
    seen = on_terminal("inspect", M, NO_COLOR="")

    assert OWN_STYLES.search(seen)
    assert alive(seen) == set()


def test_plain_means_no_codes_and_no_progress(folder):
    """With --plain, before or behind the command, a terminal is sent what a file would be."""
    before = on_terminal("--plain", "verify", M, "--samples", "1", NO_COLOR="")
    behind = on_terminal("verify", M, "--samples", "1", "--plain", NO_COLOR="")

    assert "\x1b" not in before
    assert "\r" not in before.replace("\r\n", "")
    assert before == behind


DEEP = "[" * 100_000 + "]" * 100_000
LONG = "x" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        *((command, LONG) for command in ("inspect", "parse", "lint", "verify", "format", "export")),
        ("grammar", LONG, "--dialect", "gbnf"),
        ("diff", LONG, M),
        ("diff", M, LONG),
        ("explain", M, LONG),
        ("replay", M, LONG),
        ("replay", M, "deep.json"),
        ("replay", M, "digits.json"),
        ("parse", M, "--tools", LONG),
        ("parse", M, "--tools", "deep.json"),
        ("parse", M, "--tools", "digits.json"),
        ("parse", M, "--messages", "deep.json"),
        ("parse", M, "--set", f"x={DEEP[:100_000]}"),
        ("parse", M, "--set", f"x={'9' * 5000}"),
        ("parse", M, "--tools", "binary.json"),
        ("parse", M, "--tools", "many"),
        ("export", M, "--declared", "deep.json"),
        ("diff", "deep.json", M),
        ("diff", "digits.json", M),
        ("inspect", "deep.json"),
        ("verify", M, "--report", LONG),
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_unusable_input_is_one_line(run, arguments):
    """A path, a number or a nesting beyond all measure ends in one line on standard error and exit code 2."""
    Path(M).write_text("{{ messages[-1].content }}", encoding="utf-8")
    Path("deep.json").write_text(DEEP, encoding="utf-8")
    Path("digits.json").write_text(f"[{'9' * 5000}]", encoding="utf-8")
    Path("binary.json").write_bytes(b"\xff\xfe\x00")
    Path("many").mkdir()

    result = run(*arguments)

    *usage, line = result.stderr.splitlines()
    assert result.exit_code == 2
    assert line.startswith("Error: ")
    assert len(line) < 2200
    assert all(said.startswith(("Usage: ", "Try ")) or not said for said in usage)


def test_defect_is_one_line(run, monkeypatch):
    """An exception that nobody expected is a line with its name and exit code 3, not a traceback."""
    monkeypatch.setattr("unrender.cli.formats.load", lambda _: {}["\x1b[31m"])

    result = run("format", "chat_template.jinja")

    assert result.exit_code == 3
    assert result.stderr.startswith("Error: KeyError: '\\x1b[31m'; this is a defect of unrender")
    assert result.stderr.count("\n") == 1


def test_reader_that_leaves_early_is_no_error(folder):
    """Output into a pipe that closes ends quietly."""
    command = [sys.executable, "-m", "unrender", "inspect", M]
    done = subprocess.run(
        f"{' '.join(command)} | true",
        shell=True,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCES},
    )

    assert done.stderr == b""


@pytest.mark.parametrize("arguments", [("inspect", M), ("format", M), ("parse", M, "--stream", "--json")])
def test_encoding_that_lacks_characters_is_no_error(folder, arguments):
    """Where the output's encoding lacks characters, they are written as their numbers, and JSON stays JSON."""
    env = {**os.environ, "PYTHONPATH": SOURCES, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "unrender", *arguments], input="«é»😀".encode(), capture_output=True, check=True, env=env
    )

    assert done.stdout
    if arguments[0] == "format":
        json.loads(done.stdout)
    elif arguments[0] == "parse":
        texts = [json.loads(line).get("text", "") for line in done.stdout.splitlines()]
        assert "".join(texts) == "«é»😀"
