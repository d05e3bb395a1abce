"""Analyses are kept on disk, and what cannot be trusted there is made again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from unrender import ChatTemplate, analysis, preparation
from unrender.analysis import stored
from unrender.analysis.result import Analysis, Evidence, Shown
from unrender.format import Format
from unrender.formats.locations import VARIABLE as OWN_FORMATS
from unrender.template.budget import Limits
from unrender.template.rendering import Template

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "templates").rglob("*.jinja"))
SOURCE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"

SHOWN = Shown(what="content", text="Hi")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(stored.VARIABLE, str(tmp_path / "kept"))
    preparation.analysis_of.cache_clear()
    yield tmp_path / "kept"
    preparation.analysis_of.cache_clear()


def files(folder):
    return sorted(folder.iterdir()) if folder.is_dir() else []


def forget(monkeypatch, *, refuse=False):
    """Forget what this process knows; `refuse` makes analysing anything an error."""
    preparation.analysis_of.cache_clear()
    preparation._planned.cache_clear()
    if refuse:

        def analyzed(template):
            raise AssertionError(f"analysed again: {template}")

        monkeypatch.setattr(analysis, "analyze", analyzed)


def test_a_later_process_reads_what_was_found(folder, monkeypatch):
    """The analysis that is read is the one that was made, and none is made again."""
    found = ChatTemplate.from_string(SOURCE).analysis
    forget(monkeypatch, refuse=True)

    assert ChatTemplate.from_string(SOURCE).analysis == found
    assert len(files(folder)) == 1


def test_all_that_an_analysis_says_comes_back(folder):
    """Evidence, diagnostics, what was given up, and what it cost."""
    template = Template(SOURCE)
    found = Analysis(
        format=Format(),
        capabilities=analysis.Capabilities(supports_tools=True),
        evidence=(Evidence(part="turn", comparison="R1", finding="?", left=SHOWN, right=SHOWN, rule="so"),),
        diagnostics=("one", "two"),
        given_up=("two",),
        renderings=7,
    )

    stored.store(template, found)

    assert stored.load(template) == found


@pytest.mark.slow
@pytest.mark.parametrize("path", TEMPLATES[::6], ids=lambda path: path.stem)
def test_every_analysis_comes_back_equal(folder, path):
    """Formats, capabilities and evidence of all kinds survive the way to disk and back."""
    template = Template(path.read_text(encoding="utf-8"))
    found = analysis.analyze(template)

    stored.store(template, found)

    assert stored.load(template) == found


DAMAGE = {
    "empty": lambda text: "",
    "cut off": lambda text: text[: len(text) // 2],
    "no JSON": lambda text: "\0" * 40,
    "no object": lambda text: "[]",
    "deep": lambda text: "[" * 100_000,
    "no format": lambda text: json.dumps({**json.loads(text), "format": None}),
    "another version": lambda text: json.dumps({**json.loads(text), "format": {"version": 99}}),
    "an unknown field": lambda text: json.dumps({**json.loads(text), "extra": 1}),
    "a wrong type": lambda text: json.dumps({**json.loads(text), "capabilities": {"supports_tools": "yes"}}),
    "a broken invariant": lambda text: json.dumps(
        {**json.loads(text), "format": {"version": 1, "tools": {"mode": "json_native"}}}
    ),
    "too large": lambda text: text + " " * stored.LARGEST_FILE,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_ignored_and_written_anew(folder, monkeypatch, damage):
    """Whatever is in the file, the analysis is right, and the next process finds it."""
    found = ChatTemplate.from_string(SOURCE).analysis
    (path,) = files(folder)
    text = path.read_text()
    path.write_text(damage(text))
    forget(monkeypatch)

    assert ChatTemplate.from_string(SOURCE).analysis == found
    assert path.read_text() == text


def test_the_cache_can_be_switched_off(folder, monkeypatch):
    """By a parameter, or by the environment: nothing is written, nothing is read."""
    assert ChatTemplate.from_string(SOURCE, cache=False).prepare([{"role": "user", "content": "a"}]).prompt
    monkeypatch.setenv(stored.VARIABLE, "off")
    forget(monkeypatch)
    assert ChatTemplate.from_string(SOURCE).format.version

    assert files(folder) == []
    assert stored.cache_folder() is None


def test_the_folder_is_the_users(tmp_path, monkeypatch):
    """Without a word of the user's, it is where XDG says."""
    monkeypatch.delenv(stored.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert stored.cache_folder() == tmp_path / "unrender"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert stored.cache_folder() == tmp_path / ".cache" / "unrender"


def test_a_folder_that_cannot_be_written_is_no_error(folder, monkeypatch):
    """Nothing depends on the cache: where there can be none, analysis is made each time."""
    folder.parent.joinpath("file").write_text("")
    monkeypatch.setenv(stored.VARIABLE, str(folder.parent / "file" / "below"))

    assert ChatTemplate.from_string(SOURCE).format.version


def test_what_decides_an_analysis_decides_its_file(folder, monkeypatch, tmp_path):
    """Another source, another token, another release or other declared formats are looked up elsewhere."""
    found = Analysis(format=analysis.analyze(Template(SOURCE)).format, capabilities=analysis.Capabilities())
    stored.store(Template(SOURCE), found)

    assert stored.load(Template(SOURCE)) == found
    assert stored.load(Template(SOURCE + " ")) is None
    assert stored.load(Template(SOURCE, eos_token="</s>")) is None
    assert stored.load(Template(SOURCE, limits=Limits(steps=10))) is None
    (tmp_path / "own.json").write_text("{}")
    monkeypatch.setenv(OWN_FORMATS, str(tmp_path))
    assert stored.load(Template(SOURCE)) is None
    monkeypatch.delenv(OWN_FORMATS)
    monkeypatch.setattr(stored, "_release", lambda: "another")
    assert stored.load(Template(SOURCE)) is None


def test_an_analysis_that_stopped_early_is_not_kept(folder):
    """A machine under load must not decide for ever what a template can do."""
    template = Template(SOURCE)

    stored.store(
        template,
        Analysis(format=analysis.analyze(template).format, capabilities=analysis.Capabilities(), stopped_early=True),
    )

    assert files(folder) == []


def test_the_number_of_files_is_bounded(folder, monkeypatch):
    """Those that were written first go."""
    monkeypatch.setattr(stored, "MOST_FILES", 3)
    found = analysis.analyze(Template(SOURCE))
    for number in range(6):
        stored.store(Template(SOURCE + str(number)), found)
        for age, path in enumerate(sorted(files(folder), key=os.path.getmtime)):
            os.utime(path, (age, age))

    assert len(files(folder)) == 3
    assert stored.load(Template(SOURCE + "5")) == found
    assert stored.load(Template(SOURCE + "0")) is None


def test_only_its_own_files_are_removed(folder, monkeypatch):
    """What a stopped process left goes with the oldest; a file that is not the cache's own stays."""
    monkeypatch.setattr(stored, "MOST_FILES", 1)
    folder.mkdir()
    for name in ("notes.txt", "left.tmp"):
        (folder / name).write_text("")
        os.utime(folder / name, (0, 0))

    stored.store(Template(SOURCE), Analysis(format=Format(), capabilities=analysis.Capabilities()))

    assert sorted(path.suffix for path in files(folder)) == [".json", ".txt"]


@pytest.mark.parametrize("package", ["analysis", "format", "formats", "grammar", "parsing", "template"])
def test_code_that_decides_names_the_release(package):
    """Each package whose code decides what is found is in what names the release."""
    assert f"/unrender/{package}/__init__.py " in stored._release()
