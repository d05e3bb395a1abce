"""What commands make of settings, of files that hold no text, and of folders of templates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

T = "chat_template.jinja"


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        (["a=false"], False),
        (["a=7"], 7),
        (["a=high"], "high"),
        (["a="], ""),
        (["a=b=c"], "b=c"),
        (['a={"b": [1]}'], {"b": [1]}),
        (["a=1", "a=3"], 3),
    ],
)
def test_settings(run, settings, value):
    """A value is JSON where it can be, else text; of two for one name, the last holds."""
    Path("t.jinja").write_text("{{ messages[-1].content }}{{ a | tojson }}", encoding="utf-8")
    Path("hi.json").write_text('[{"role": "user", "content": "Hi"}]', encoding="utf-8")

    result = run("chat", "t.jinja", "hi.json", "--prompt", *(word for one in settings for word in ("--set", one)))

    assert json.loads(result.stdout.removeprefix("Hi")) == value


@pytest.mark.parametrize("setting", ["a", "=1", "a-b=1", "1a=1", "tools=[]", "tool_choice=auto"])
def test_bad_settings(run, setting):
    """A name is needed, and one that no other option has."""
    result = run("parse", T, "--set", setting)

    assert (result.exit_code, "expected NAME=VALUE, found" in result.stderr) == (2, True)


def test_bytes_that_are_no_text(run):
    """A model's output may hold them; a template may not."""
    Path("output.txt").write_bytes(b"a\r\n\xff")
    Path("broken.jinja").write_bytes(b"a\xff")

    shown = json.loads(run("explain", T, "output.txt", "--json").stdout)
    refused = run("format", "show", "-", text=b"a\xff")

    assert shown["message"]["content"] == "a\r\n\ufffd"
    assert (refused.exit_code, "-: expected UTF-8 text, found byte 0xff" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["b.jinja", "a.jinja", "c.txt"], ["many/a.jinja", "many/b.jinja"]),
        (["chat_template.jinja", "a.jinja"], ["many"]),
    ],
)
def test_a_directory_of_templates(run, files, found):
    """A directory that holds no model stands for its templates, in order."""
    Path("many").mkdir()
    for name in files:
        Path("many", name).write_text("{{ messages[-1].content }}", encoding="utf-8")

    assert list(json.loads(run("lint", "many", "--json", "--jobs", "1").stdout)) == found
