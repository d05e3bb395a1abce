"""Tests of the commands in `commands.toml`, with their arguments, exit codes and output."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from engines import installed

from unrender.cli.answers import chunks
from unrender.format import Format

HERE = Path(__file__).parent
CASES: Any = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))["case"]
T = "chat_template.jinja"


@pytest.fixture
def asked(run):
    """Return a function that runs a command in a folder with the contents of `files/`."""
    shutil.copytree(HERE / "files", ".", dirs_exist_ok=True)
    return lambda words, text="": run(*(T if word == "T" else word for word in shlex.split(words)), text=text)


def check(said, expected):
    """Check each expected text: `^` at the start, `~` as a pattern, `!` nowhere. `==` means no output."""
    for part in expected:
        if part == "==":
            assert said == ""
        elif part[0] == "^":
            assert said.startswith(part[1:])
        elif part[0] == "~":
            assert re.search(part[1:], said, re.MULTILINE)
        elif part[0] == "!":
            assert part[1:] not in said
        else:
            assert part in said


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            marks=[pytest.mark.slow] * case["words"].startswith(("inspect", "verify", "lint T other")),
            id=case["words"],
        )
        for case in CASES
    ],
)
def test_a_command(asked, monkeypatch, case):
    """Each command returns its exit code and prints its output. Human-readable output has at most 80 columns."""
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    result = asked(case["words"], case.get("in", ""))

    assert result.exit_code == case.get("code", 0), result.output
    check(result.stdout, case.get("out", ()))
    check(result.stderr, case.get("err", ()))
    for name, texts in case.get("files", {}).items():
        check(Path(name).read_text(encoding="utf-8"), texts)
    if re.match(r"(inspect|explain)(?!.*--json)", case["words"]):
        assert max(map(len, result.stdout.splitlines()), default=0) <= 80


def test_an_answer_is_reproducible(asked):
    """The same seed gives the same answer, and --prompt prints the exact prompt."""
    one, again, other = (asked(f"preview T talk.json --json --seed {seed}").stdout for seed in (1, 1, 2))

    assert one == again != other
    prompt = "<|user|>\nWill it rain in Paris?<|end|>\n<|assistant|>\n\n"
    assert asked("preview T talk.json --prompt").stdout == prompt


def test_chunks_keep_characters_whole():
    """A character is decoded if its bytes arrive in two reads."""

    class Slow(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(1)

    assert "".join(chunks(Slow("a é 中 🙂".encode()))) == "a é 中 🙂"


def test_a_format_is_kept(run):
    """A printed format can be loaded again, and compared with its template."""
    Path("kept.json").write_text(run("format", "show", T).stdout, encoding="utf-8")

    assert Format.from_json(Path("kept.json").read_text(encoding="utf-8")).reasoning.end == "</think>"
    assert run("format", "diff", T, "kept.json").exit_code == 0


@pytest.mark.skipif(installed("transformers"), reason="transformers is installed")
def test_a_check_without_transformers_says_what_is_missing(run):
    """The error names the missing library."""
    result = run("format", "export", T, "--check")

    assert (result.exit_code, "needs transformers" in result.stderr) == (2, True)


@pytest.mark.skipif(not installed("transformers"), reason="transformers is not installed")
def test_response_templates_are_checked(asked):
    """--check and --declared compare the parsed messages, and set the exit code."""
    declared = {"start_anchor": "<|assistant|>\n", "fields": {"content": {"close": "<|end|>"}}}
    Path("own.json").write_text(json.dumps({"response_template": declared}), encoding="utf-8")
    checked, failed = asked("format export T --check"), asked("format export T --declared own.json")
    data = json.loads(asked("format export T --declared own.json --json").stdout)

    assert (checked.exit_code, "   PASSED   " in checked.stdout) == (0, True)
    assert (failed.exit_code, "+ tool_calls" in failed.stdout) == (1, True)
    assert data["passed"] is False
