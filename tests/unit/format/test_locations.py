"""Tests of users' declared formats: they're found in folders, a variable and packages, and checked like the library's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import cases

import unrender
from unrender import ChatTemplate, Format
from unrender.errors import FormatError
from unrender.format.declared import declared_formats

SOURCE = "{{ messages[-1].content }}{# <|mine|> #}"
MINE = {
    "name": "mine",
    "why": "Our models say this before anything else.",
    "evidence": {"all": ["<|mine|>"]},
    "format": {"version": 1, "ignored": ["<|mine|>"]},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder that the environment variable names."""
    monkeypatch.setenv("UNRENDER_FORMATS", str(tmp_path))
    return tmp_path


def write(folder, without=(), **changes):
    data = {key: value for key, value in {**MINE, **changes}.items() if key not in without}
    (folder / "mine.json").write_text(json.dumps(data), encoding="utf-8")


def test_folder_of_the_variable_completes_formats(folder):
    """A declared format in the variable's folder applies by evidence and by name."""
    write(folder)

    assert Format.named("mine").ignored == ("<|mine|>",)
    assert "mine" in ChatTemplate.from_string(SOURCE).format.declared
    assert "mine" not in ChatTemplate.from_string("{{ messages[-1].content }}").format.declared


def test_folder_in_the_configuration_counts(tmp_path, monkeypatch):
    """The folder `unrender/formats` of the user's configuration needs no variable."""
    folder = tmp_path / "unrender" / "formats"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(folder)

    assert [declared.origin for declared in declared_formats() if declared.name == "mine"] == [
        str(folder / "mine.json")
    ]


@pytest.mark.slow
def test_installed_packages_bring_formats(tmp_path):
    """An installed package with an entry point provides its files."""
    package, metadata = tmp_path / "ours", tmp_path / "ours-1.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    write(package)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[unrender.formats]\nours = ours\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(unrender.__file__).parents[1])])

    found = subprocess.run(
        [sys.executable, "-c", "import unrender; print(unrender.Format.named('mine').ignored)"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.stdout == "('<|mine|>',)\n", found.stderr


@cases
def test_malformed_file_is_named(folder, said, changes, without):
    """An error in a user's file names the file and the field."""
    write(folder, without, **changes)

    with pytest.raises(FormatError) as refused:
        declared_formats()

    assert str(refused.value).startswith(f"{folder / 'mine.json'}: {said}")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "9" * 5000, "\xff"])
def test_file_that_is_no_json_is_named(folder, text):
    """A file that can't be parsed at all is named, too."""
    (folder / "mine.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(FormatError, match="mine.json: expected "):
        declared_formats()


def test_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    """A missing folder in the variable is an error."""
    monkeypatch.setenv("UNRENDER_FORMATS", f"{tmp_path}{os.pathsep}/no/where")

    with pytest.raises(FormatError, match="UNRENDER_FORMATS: expected folders, found '/no/where'"):
        declared_formats()
