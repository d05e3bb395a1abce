"""Analyses are cached on disk. Damaged or outdated entries are replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from cases import cases
from rendering_rows import template_of

from unrender import ChatTemplate, Limits, analysis
from unrender.analysis import Analysis, Capabilities, stored
from unrender.cache import SHARED
from unrender.errors import FormatError
from unrender.format import Format
from unrender.format.declared import FORMATS_VARIABLE as OWN_FORMATS
from unrender.limits import MAX_DOCUMENT

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "templates").rglob("*.jinja"))
SOURCE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(stored.CACHE_VARIABLE, str(tmp_path / "kept"))
    SHARED.clear()
    yield tmp_path / "kept"
    SHARED.clear()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The folder of a user's declared formats, which ignore a marker."""
    monkeypatch.setenv(OWN_FORMATS, str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    declare(tmp_path / "own", "first", why="So it is.", ignored="<|one|>")
    return tmp_path / "own"


def declare(own, name, *, ignored, **fields):
    data = {"name": name, "evidence": {}, "format": {"version": 1, "ignored": [ignored]}, **fields}
    (own / f"{name}.json").write_text(json.dumps(data))


def files(folder):
    return sorted(folder.iterdir()) if folder.is_dir() else []


def forget(monkeypatch, *, refuse=False):
    """Clear the cache of this process. With `refuse`, another analysis is an error."""
    SHARED.clear()
    if refuse:

        def analyzed(template):
            raise AssertionError(f"analysed again: {template}")

        monkeypatch.setattr(analysis, "analyze", analyzed)


def test_a_later_process_reads_what_was_found(folder, monkeypatch):
    """A later process loads the analysis from disk instead of repeating it."""
    found = ChatTemplate.from_string(SOURCE).analysis
    forget(monkeypatch, refuse=True)

    assert ChatTemplate.from_string(SOURCE).analysis == found
    assert len(files(folder)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", TEMPLATES[::6], ids=lambda path: path.stem)
def test_every_analysis_comes_back_equal(folder, path):
    """Formats, capabilities, evidence, diagnostics and the number of renderings survive a round trip."""
    template = template_of(path.read_text(encoding="utf-8"))
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
    "too large": lambda text: text + " " * MAX_DOCUMENT,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_ignored_and_written_anew(folder, monkeypatch, damage):
    """If the file is damaged in any way, the analysis is still correct, and the file is rewritten."""
    found = ChatTemplate.from_string(SOURCE).analysis
    (path,) = files(folder)
    text = path.read_text()
    path.write_text(damage(text))
    forget(monkeypatch)

    assert ChatTemplate.from_string(SOURCE).analysis == found
    assert path.read_text() == text


def test_the_cache_can_be_switched_off(folder, monkeypatch):
    """If a parameter or the environment disables the cache, it isn't read or written."""
    assert ChatTemplate.from_string(SOURCE, cache=False).prepare([{"role": "user", "content": "a"}]).prompt
    monkeypatch.setenv(stored.CACHE_VARIABLE, "off")
    forget(monkeypatch)
    assert ChatTemplate.from_string(SOURCE).format.version

    assert files(folder) == []
    assert stored.cache_folder() is None


@cases
def test_the_folder_is_the_users(monkeypatch, variables, expected):
    """Without our variable, the folder follows the XDG specification, which ignores relative paths. `~` is the user's home."""
    for name in (stored.CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)

    assert stored.cache_folder() == Path(expected)


def test_what_decides_an_analysis_decides_its_file(folder, monkeypatch, request):
    """The entry depends on the source, tokens, limits, release and declared formats."""
    found = Analysis(format=analysis.analyze(template_of(SOURCE)).format, capabilities=Capabilities())
    stored.store(template_of(SOURCE), found)

    assert stored.load(template_of(SOURCE)) == found
    assert stored.load(template_of(SOURCE + " ")) is None
    assert stored.load(template_of(SOURCE, eos_token="</s>")) is None
    assert stored.load(template_of(SOURCE, limits=Limits(rendering_steps=10))) is None
    request.getfixturevalue("own")
    assert stored.load(template_of(SOURCE)) is None
    monkeypatch.delenv(OWN_FORMATS)
    monkeypatch.setattr(stored, "_release", lambda: "another")
    assert stored.load(template_of(SOURCE)) is None


def test_an_analysis_that_stopped_early_is_not_kept(folder):
    """An analysis that stopped early isn't stored, because a busy machine may be the cause."""
    template = template_of(SOURCE)

    stored.store(
        template,
        Analysis(format=analysis.analyze(template).format, capabilities=Capabilities(), stopped_early=True),
    )

    assert files(folder) == []


def test_the_number_of_files_is_bounded(folder, monkeypatch):
    """The oldest files are removed."""
    monkeypatch.setattr(stored, "MAX_STORED", 3)
    found = analysis.analyze(template_of(SOURCE))
    for number in range(6):
        stored.store(template_of(SOURCE + str(number)), found)
        for age, path in enumerate(sorted(files(folder), key=os.path.getmtime)):
            os.utime(path, (age, age))

    assert len(files(folder)) == 3
    assert stored.load(template_of(SOURCE + "5")) == found
    assert stored.load(template_of(SOURCE + "0")) is None


OURS = "unrender-" + "0" * 40
FOREIGN = {
    "notes.txt": "{}",
    "settings.json": "{}",
    "left.tmp": "",
    f"{OURS}.json": '{"name": "of another program with names like ours"}',
    f"{OURS}-abc.tmp": "the same",
}
LEFT = {
    f"{OURS}-a_b1.tmp": "",
    f"{OURS}-c2.tmp": '{"unrender": "ana',
    f"{OURS[:-1]}1.json": '{"unrender": "analysis", "x',
}
"""Files left by stopped processes, and an old analysis."""


def test_only_its_own_files_are_removed(folder, monkeypatch):
    """Surplus files with our names and first words are removed. Files of others stay."""
    monkeypatch.setattr(stored, "MAX_STORED", 1)
    folder.mkdir()
    for name, text in {**FOREIGN, **LEFT}.items():
        (folder / name).write_text(text)
        os.utime(folder / name, (0, 0))

    stored.store(template_of(SOURCE), Analysis(format=Format(), capabilities=Capabilities()))

    assert {path.name for path in files(folder)} == {*FOREIGN, stored._path(template_of(SOURCE)).name}


def sparse(path):
    """Create a sparse file of a terabyte, which takes no disk space."""
    path.touch()
    os.truncate(path, 10**12)


IN_THE_WAY = {
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to others' data": lambda path: path.symlink_to(path.parent / "precious.json"),
    "a huge file": sparse,
    "what nobody may read": lambda path: path.touch(0o000),
}


@pytest.mark.parametrize("put", IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_whatever_has_an_entrys_name_does_no_harm(folder, monkeypatch, put):
    """The result is the same as without a cache. Nothing blocks, no huge file is read, and files of others stay."""
    monkeypatch.setattr(stored, "MAX_STORED", 0)
    folder.mkdir()
    (folder / "precious.json").write_text("{}")
    path = stored._path(template_of(SOURCE))
    put(path)
    before = path.lstat().st_mode

    assert ChatTemplate.from_string(SOURCE).analysis == ChatTemplate.from_string(SOURCE, cache=False).analysis
    assert (folder / "precious.json").read_text() == "{}"
    assert not os.path.lexists(path) or path.lstat().st_mode == before or path.is_file()


def test_the_cache_cannot_be_where_a_pipe_is(tmp_path, monkeypatch):
    """A cache path that isn't a writable folder is ignored."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0o500)
    for name in ("pipe", "file/below", "closed", "closed/below", "x" * 5000, "~nobody-has-this-name/kept"):
        monkeypatch.setenv(stored.CACHE_VARIABLE, name if "~" in name else str(tmp_path / name))
        SHARED.clear()
        assert ChatTemplate.from_string(SOURCE).format.version


def test_files_that_change_while_a_process_runs_are_not_mixed_up(folder, own):
    """An analysis is stored under the version of the declared format that it used, even if the file has changed since."""
    assert ChatTemplate.from_string("{# another #}" + SOURCE).format.ignored == ("<|one|>",)

    declare(own, "first", why="So it is.", ignored="<|two|>")
    ChatTemplate.from_string(SOURCE).analysis  # noqa: B018 -- it is kept

    code = f"from unrender import ChatTemplate; print(ChatTemplate.from_string({SOURCE!r}).format.ignored)"
    later = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert later.stdout == "('<|two|>',)\n"


@pytest.mark.parametrize("cache", [True, False])
def test_a_malformed_declared_file_is_said(folder, own, cache):
    """The error names the file and the field, and the format isn't derived without the malformed file."""
    declare(own, "second", ignored="<|two|>")
    template = ChatTemplate.from_string(SOURCE, cache=cache)

    for asked in (lambda: template.prepare([{"role": "user", "content": "Hi"}]), lambda: template.format) * 2:
        with pytest.raises(FormatError, match=r"second\.json: the field 'why' is missing"):
            asked()


LOADED = """
import sys
before = set(sys.modules)
from pathlib import Path
from unrender import ChatTemplate
for path in sys.argv[1:]:
    ChatTemplate.from_string(Path(path).read_text(encoding="utf-8")).analysis
print(*(getattr(sys.modules[name], "__file__", None) or "" for name in set(sys.modules) - before), sep="\\n")
"""


def test_all_code_that_analyses_names_the_release():
    """The digest covers every module that an analysis loads, except the standard library, and all data files."""
    run = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, TEMPLATES[::10])], capture_output=True, text=True, check=True
    )
    own = Path(sysconfig.get_paths()["stdlib"])
    loaded = [Path(line) for line in run.stdout.split("\n") if line]
    others = {path for path in loaded if own not in path.parents or "site-packages" in path.parts}
    named = {Path(path) for path, _ in stored.code_files()}

    assert {path.parts[-3] for path in others} >= {"unrender"}
    assert others - named == set()
    assert {path.suffix for path in named} >= {".py", ".json"}
    assert all(f"{path} " in stored._release() for path in named)
