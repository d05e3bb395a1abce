"""Arguments and options as values, and what is said of bad ones."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import click
import pytest

from unrender.cli.inputs import BadInput, expanded, load, read_json, read_settings, read_text, write_text

NOTHING = (None, None)
SOURCE = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("a=false", {"a": False}),
        ("a=7", {"a": 7}),
        ("a=high", {"a": "high"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ('a={"b": [1]}', {"a": {"b": [1]}}),
        ("documents=[]", {"documents": []}),
    ],
)
def test_settings(setting, value):
    """A value is JSON where it can be, else text."""
    assert read_settings(*NOTHING, (setting,)) == value


def test_the_last_setting_wins():
    """A name that is given twice has its last value."""
    assert read_settings(*NOTHING, ("a=1", "b=2", "a=3")) == {"a": 3, "b": 2}


@pytest.mark.parametrize("setting", ["a", "=1", "a-b=1", "1a=1", "messages=[]", "tools=[]", "tool_choice=auto"])
def test_bad_settings(setting):
    """A name is needed, and one that no other option has."""
    with pytest.raises(click.BadParameter, match="expected NAME=VALUE, found"):
        read_settings(*NOTHING, (setting,))


def test_a_number_that_python_refuses():
    """A number of five thousand digits is said to be the setting's fault."""
    with pytest.raises(click.BadParameter, match="^a: Exceeds the limit"):
        read_settings(*NOTHING, ("a=" + "9" * 5000,))


def test_json_files(folder):
    """A file holds JSON; no file holds nothing."""
    (folder / "a.json").write_text('{"é": 1}', encoding="utf-8")

    assert read_json(*NOTHING, "a.json") == {"é": 1}
    assert read_json(*NOTHING, None) is None


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("none.json", None, "none.json: No such file or directory"),
        ("a.json", b"{", "a.json: expected JSON: Expecting property name"),
        ("a.json", b'"\xff"', "a.json: expected JSON: 'utf-8' codec"),
    ],
)
def test_bad_json_files(folder, name, data, message):
    """The file is named, and what is wrong with it."""
    if data is not None:
        (folder / name).write_bytes(data)

    with pytest.raises(click.BadParameter, match=message):
        read_json(*NOTHING, name)


def test_text(folder, monkeypatch):
    """Text comes from a file or from a pipe; bytes that are not text do no harm."""
    (folder / "a.txt").write_bytes(b"a\r\n\xff")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"piped")))

    assert read_text("a.txt") == "a\r\n\ufffd"
    assert read_text("-") == "piped"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: read_text("none.txt"), "^none.txt: No such file or directory$"),
        (lambda: write_text("none/a.txt", "x"), "^none/a.txt: No such file or directory$"),
        (lambda: write_text(".", "x"), "^.: Is a directory$"),
    ],
)
def test_files_that_are_not_there(ask, message):
    """The path is named; the command ends with code 2."""
    with pytest.raises(BadInput, match=message) as raised:
        ask()
    assert raised.value.exit_code == 2


def test_written_text_is_utf8(folder):
    """Whatever the system's own encoding is."""
    write_text("a.txt", "é")

    assert (folder / "a.txt").read_bytes() == b"\xc3\xa9"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["b.jinja", "a.jinja", "c.txt"], ["m/a.jinja", "m/b.jinja"]),
        (["a.jinja", "tokenizer_config.json"], ["m"]),
        (["chat_template.jinja", "a.jinja"], ["m"]),
        (["c.txt"], ["m"]),
    ],
)
def test_a_directory_of_templates(folder, files, found):
    """A directory that holds no model stands for its templates, in order."""
    (folder / "m").mkdir()
    for name in files:
        (folder / "m" / name).touch()

    assert list(expanded("m")) == found


def test_other_sources_are_themselves():
    """A file or an id on the hub is one template."""
    assert list(expanded("someone/something")) == ["someone/something"]


def test_a_template_is_loaded_by_its_name(folder):
    """A name that is not there is said with those that are."""
    (folder / "a.jinja").write_text(SOURCE, encoding="utf-8")

    assert load("a.jinja").template.source == SOURCE
    with pytest.raises(BadInput, match=r"^a\.jinja: expected one of the templates \['default'\], found 'other'$"):
        load("a.jinja", name="other")
    assert load("a.jinja", name="default").template.source == SOURCE


def test_a_broken_template_is_named(folder):
    """The source is in the message, whoever wrote it."""
    (folder / "a.jinja").write_text("{% if", encoding="utf-8")

    with pytest.raises(BadInput, match="a.jinja"):
        load("a.jinja")
