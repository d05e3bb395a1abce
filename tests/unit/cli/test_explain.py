"""`unrender explain`: why an output was read as it was, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

CALL = '<call name="get_weather">{"city": "Rome"}</call>'


def explained(run, output, *arguments):
    Path("output.txt").write_text(output, encoding="utf-8")
    return run("explain", "chat_template.jinja", "output.txt", "--tools", "tools.json", *arguments)


def test_good_output_exits_with_0(run):
    """An output that was read as it was meant says so."""
    result = explained(run, f"Hello\n{CALL}<|end|>")

    assert result.exit_code == 0
    assert result.stdout.startswith("1 complete call read; nothing is wrong\n")
    assert 'argument    \'{"city": "Rome"}\'' in result.stdout


def test_stop_stands_where_reading_stopped(run):
    """The place where a call was given up is between the stretches of the output."""
    result = explained(run, "Hello\n" + CALL.replace("get_weather", "get_wether"))

    lines = [line.strip() for line in result.stdout.splitlines()]
    at = lines.index("^ stopped   expected the name of one of the tools")
    assert lines[at + 1].startswith("content     'get_wether")
    assert "Did the model mean" in result.stdout
    assert result.exit_code == 1


def test_fits_into_80_columns(run):
    """No line is wider than the terminal, however long the output's are."""
    result = explained(run, "word " * 300 + CALL.replace("name", "nome"))

    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stdout.count("word") < 60
    assert " … " in result.stdout


def test_standard_input_and_prompt(run):
    """The output may come in by a pipe, and the prompt decides whether reasoning is open."""
    Path("prompt.txt").write_text("<|assistant|>\n<think>", encoding="utf-8")

    result = run("explain", "chat_template.jinja", "-", "--prompt", "prompt.txt", "--json", text="Rain?</think>\nHello")

    assert json.loads(result.stdout)["message"]["reasoning_content"] == "Rain?"
    assert result.exit_code == 0


def test_missing_file_is_the_callers_mistake(run):
    """An output that is not there is named, with exit code 2."""
    result = run("explain", "chat_template.jinja", "nowhere.txt")

    assert result.exit_code == 2
    assert "nowhere.txt" in result.stderr


def test_program_prints_the_instructions(run):
    """`--program` prints what the parser runs: a line, or an object, for each instruction."""
    lines = explained(run, "Hello", "--program").stdout.splitlines()
    objects = json.loads(explained(run, "Hello", "--program", "--json").stdout)

    assert lines[0].split()[:2] == ["0", "Jump"]
    assert len(lines) == len(objects)
    assert [item["address"] for item in objects] == list(range(len(objects)))
    assert "Lit" in {item["name"] for item in objects}


def test_what_could_come_next(run):
    """Of an output that is cut off inside a call, the way it could have gone on is shown."""
    result = explained(run, 'Hello\n<call name="get_weather">{"city": "Rome"}')

    assert "Could come next" in result.stdout
    assert "'</call>'" in result.stdout
