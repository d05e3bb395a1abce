"""The setup scripts download only what the manifest lists."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import marshal
import re
import subprocess
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import environment
import fetch
import mutants
import mutating
import pytest
import reference
import release
import run
from cases import cases
from importing import module_at
from vendor import vendor_templates

SCRIPTS = environment.ROOT / "scripts"
FOLDER = "vendor/models/templates"
GALLERY = reference.kept()
MANIFEST = tomllib.loads(fetch.MANIFEST.read_text(encoding="utf-8"))


def known_templates() -> list[Path]:
    """Return the available vendors' templates that the manifest lists."""
    return [path for path in vendor_templates().values() if path.name in MANIFEST["templates"]]


def archive(folder: Path, files: dict[str, bytes]) -> Path:
    """Return a source distribution with these files."""
    path = folder / "package-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package-1.0/{name}")
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    return path


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_takes_what_the_manifest_names(tmp_path: Path) -> None:
    """The listed files of the listed folder are extracted from an archive, and no others."""
    files = {f"{FOLDER}/a.jinja": b"A", f"{FOLDER}/b.jinja": b"B", "elsewhere/a.jinja": b"not A", "setup.py": b"no"}

    fetch.extract_templates(archive(tmp_path, files), FOLDER, {"a.jinja": digest(b"A")}, tmp_path / "cache")

    assert {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == {"a.jinja": b"A"}


@pytest.mark.parametrize(
    ("files", "said"), [({f"{FOLDER}/a.jinja": b"changed"}, "a.jinja: expected sha256"), ({}, "a.jinja")]
)
def test_refuses_other_content(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    """A file that is missing or has another digest is rejected with its name, and not kept."""
    with pytest.raises(fetch.FetchError, match=said):
        fetch.extract_templates(archive(tmp_path, files), FOLDER, {"a.jinja": digest(b"A")}, tmp_path / "cache")

    assert not list(tmp_path.glob("cache/*"))


@pytest.mark.parametrize("path", known_templates(), ids=lambda path: path.stem)
def test_template_is_the_one_of_the_manifest(path: Path) -> None:
    """A vendor's template has the manifest's digest, wherever it was found."""
    assert digest(path.read_bytes()) == MANIFEST["templates"][path.name]


@pytest.mark.few(10)
@pytest.mark.parametrize("path", known_templates(), ids=lambda path: path.stem)
def test_gallery_shows_what_is_derived_now(path: Path) -> None:
    """A model's picture in the gallery shows the format that analysis derives now."""
    kept = GALLERY[path.stem]

    shown = reference.picture(path)

    assert {name: kept[name] for name in shown} == shown, (
        "run `python scripts/reference.py docs/reference/gallery.json`"
    )


@pytest.mark.few(10)
@pytest.mark.parametrize("name", [name for name, kept in GALLERY.items() if kept["sketch"]])
def test_a_sketch_has_the_picture_of_its_model(name: str) -> None:
    """The gallery's sketch of a model has the model's picture. A model without a sketch gets it if the picture is the same."""
    kept = GALLERY[name]

    assert reference.sketch(kept["rows"], ["", "{{ messages }}", kept["sketch"]]) == kept["sketch"]


@pytest.mark.parametrize("path", sorted(reference.SKETCHES.glob("*.jinja")), ids=lambda path: path.stem)
def test_a_sketch_by_hand_has_the_picture_of_its_model(path: Path) -> None:
    """A handwritten sketch has the same parts in the same order as the model's own template."""
    kept = GALLERY[path.stem]

    drawn = [[part[:2] for part in row] for row in reference.picture(path)["rows"]]

    assert drawn == [[part[:2] for part in row] for row in kept["rows"]]
    assert kept["sketch"] == path.read_text(encoding="utf-8").rstrip()


def test_table_replaces_the_one_before() -> None:
    """A table replaces the previous text between the marks of the page."""
    page = "before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter\n"

    assert environment.between(page, "a", "new") == "before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter\n"


def test_every_task_names_what_is_there() -> None:
    """Each task names a known environment and existing scripts and tests, and there are at most four environments."""
    words = {word for task in run.TASKS.values() for command in task.commands for word in command}
    files = {word for word in words if word.startswith(("scripts/", "tests/", "benchmarks/", "deploy/", ".ci/"))}

    assert [file for file in sorted(files) if not (environment.ROOT / file).exists()] == []
    assert {task.environment for task in run.TASKS.values()} == {"", *environment.TABLE["environments"]}
    assert len(environment.TABLE["environments"]) <= 4


def test_there_are_few_scripts() -> None:
    """There are at most fifteen scripts, each run by a task or part of a script that is."""
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.py")}
    named = " ".join(word for task in run.TASKS.values() for command in task.commands for word in command)
    imported = " ".join(scripts.values())

    assert len([path for path in SCRIPTS.iterdir() if path.suffix in {".py", ".sh", ".mjs"}]) <= 15
    assert [
        name
        for name in scripts
        if f"scripts/{name}.py" not in named and not re.search(rf"(?:import|from) {name}\b", imported) and name != "run"
    ] == []


def test_a_task_runs_its_commands_up_to_the_first_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    """A task stops at the first failure. Its last command gets the remaining arguments; variables are expanded."""
    say = ["python3", "-c", "import os, sys; print(os.environ['PLACE'], *sys.argv[1:]); sys.exit('fail' in sys.argv)"]
    task = run.Task(what="", takes="", commands=[[*say, "one"], [*say, "{root}"]], variables={"PLACE": "in {root}"})
    broken = run.Task(what="", takes="", commands=[[*say, "fail"], say], variables={"PLACE": ""})

    assert [task.run(["more"], None), broken.run([], None)] == [0, 1]
    root = environment.ROOT
    assert capfd.readouterr().out.splitlines() == [f"in {root} one", f"in {root} {root} more", " fail"]


def test_an_environment_is_set_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip runs only for new requirements: once for the environment, and once for a task's additions."""
    called: list[list[str]] = []
    monkeypatch.setattr(environment.Environment, "pip", lambda _self, arguments, _variables: called.append(arguments))
    monkeypatch.setattr(venv, "create", lambda folder, **_: folder.mkdir(exist_ok=True))
    made = environment.Environment(folder=tmp_path / "made", install=[["a"], ["b"]])

    for more in ((), [["c"]], [["c"]], ()):
        made.ready(more)

    pip = ["--upgrade", "pip>=25.1"]
    assert called == [pip, ["a"], ["b"], pip, ["c"]]


def test_the_test_suite_of_one_draft_is_taken(tmp_path: Path) -> None:
    """From the source distribution, only the draft's required tests and the remotes are kept."""
    files = {f"{fetch.SUITE_FOLDER}/{name}": b"[]" for name in ("not.json", "README.md", "optional/format.json")}
    others = {"json/tests/draft7/not.json": b"{}", "json/remotes/folder/integer.json": b"{}"}

    fetch.extract_suite(archive(tmp_path, files | others), tmp_path / "suite")

    kept = {str(path.relative_to(tmp_path / "suite")): path.read_bytes() for path in tmp_path.glob("suite/**/*.json")}
    assert kept == {"not.json": b"[]", "remotes/folder/integer.json": b"{}"}


def test_an_archive_without_tests_is_an_error(tmp_path: Path) -> None:
    """A source distribution without the tests is an error."""
    with pytest.raises(fetch.FetchError, match=r"package-1.0.tar.gz has no tests in json/tests/draft2020-12"):
        fetch.extract_suite(archive(tmp_path, {"README.md": b""}), tmp_path / "suite")


def test_a_mutant_changes_one_place() -> None:
    """Every mutant compiles to different code than the original, and the tree is restored after each."""
    source = (
        "LIMIT = 3\n\ndef cut(texts, size=1):\n    '''Say nothing of this.'''\n    found = [text[size:].strip() for text in texts if text]\n"
        "    return found if len(found) < LIMIT and not size else max(found)\n"
    )
    tree = ast.parse(source)
    before = ast.dump(tree)
    found = mutating.places(tree)

    codes = {marshal.dumps(mutating.mutated(tree, place, "m")) for place in found}

    assert len(codes) == len(found) > 10
    assert marshal.dumps(compile(tree, "m", "exec")) not in codes
    assert ast.dump(tree) == before
    assert not any("nothing" in ast.unparse(place[3]) for place in found)


def test_mutants_are_taken_from_modules_that_exist() -> None:
    """Each entry of the table names an existing folder."""
    assert [
        name for name in mutants.TARGETS if not all(path.exists() for path in mutants.files([name]) or [Path("/none")])
    ] == []


def test_the_release_has_one_version() -> None:
    """The package, the citation and the newest section of the changelog have the same version."""
    citation = (environment.ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (environment.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## (\S+) \(", changelog, re.MULTILINE)[0]

    assert f"\nversion: {release.version()}\n" in citation
    assert newest == release.version()
    assert release.section(newest).count("\n- ") > 10


def test_the_changelog_is_short() -> None:
    """The changelog has at most 120 lines, and a table of old and new names."""
    changelog = (environment.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert len(changelog.splitlines()) <= 120
    assert "| 0.2.0 | 0.3.0 |" in changelog
    assert len(re.findall(r"^- \*\*", changelog.partition("### Old and new names")[0], re.MULTILINE)) == 8


def test_workflows_use_actions_by_their_digests() -> None:
    """Actions are pinned by commit, since a tag of another repository may move. The comment names the release."""
    lines = [
        line
        for path in (environment.ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses: " in line
    ]

    assert lines
    assert [line for line in lines if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


def test_a_section_ends_before_the_next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release notes cover one release. A release that is missing from the changelog is an error with its name."""
    (tmp_path / "CHANGELOG.md").write_text("# C\n\n## 2.0.0 (now)\n\nNew.\n\n## 1.0.0 (then)\n\nOld.\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)

    assert [release.section(name) for name in ("2.0.0", "1.0.0")] == ["New.", "Old."]
    with pytest.raises(SystemExit, match=r"expected a section of 3.0.0"):
        release.section("3.0.0")


def test_examples_are_modules(tmp_path: Path) -> None:
    """The Python of each documentation page becomes a module, without the prompts of sessions."""
    release.examples(tmp_path / "examples")

    modules = {path.stem: ast.parse(path.read_text("utf-8")) for path in (tmp_path / "examples").glob("*.py")}

    assert {"README", "docs_tutorial", "docs_howto_stream"} <= modules.keys()
    assert ">>>" not in (tmp_path / "examples" / "docs_howto_stream.py").read_text("utf-8")


def wheel_and_source(folder: Path, *, more: str = "", needs: str = "jinja2>=3") -> None:
    """Write archives with the required files and one more file."""
    package = environment.ROOT / "src" / "unrender"
    files = {f"unrender/{path.relative_to(package).as_posix()}" for path in package.rglob("*") if path.is_file()}
    with zipfile.ZipFile(folder / "unrender-1-py3-none-any.whl", "w") as wheel:
        for name in sorted(file for file in files if "__pycache__" not in file) + ([more] if more else []):
            wheel.writestr(name, "")
        wheel.writestr(
            "unrender-1.dist-info/METADATA", f"Requires-Dist: {needs}\nRequires-Dist: click; extra == 'cli'\n"
        )
    with tarfile.open(folder / "unrender-1.tar.gz", "w:gz") as source:
        for name in release.SOURCES:
            source.addfile(tarfile.TarInfo(f"unrender-1/{name}"))


def test_what_was_built_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Archives with the required files pass."""
    wheel_and_source(tmp_path)

    release.contents(str(tmp_path))

    assert "the core needs jinja2>=3" in capsys.readouterr().out


@cases
def test_what_must_not_be_published_is_named(tmp_path: Path, wrong: dict[str, str], said: str) -> None:
    """Foreign files, compiled files, and a second dependency of the core stop a release."""
    wheel_and_source(tmp_path, **wrong)

    with pytest.raises(SystemExit, match=said):
        release.contents(str(tmp_path))


SETTINGS = {
    "UNRENDER_REPOSITORY": "https://example.org/o/unrender/",
    "UNRENDER_SITE": "https://docs.example.org",
    "UNRENDER_MAINTAINER": "Ada Lovelace <ada@example.org>",
    "UNRENDER_SECURITY": "security@example.org",
}


def test_a_release_says_where_the_project_is(tmp_path: Path) -> None:
    """The settings go into the metadata, SECURITY.md, and each link of the README. No relative link is left."""
    for file in ("pyproject.toml", "README.md", "SECURITY.md"):
        (tmp_path / file).write_text((environment.ROOT / file).read_text(encoding="utf-8"), encoding="utf-8")

    release.settle(tmp_path, SETTINGS)

    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert project["maintainers"] == [{"name": "Ada Lovelace", "email": "ada@example.org"}]
    assert project["urls"]["Homepage"] == "https://example.org/o/unrender"
    assert "pip install 'unrender[cli]'" in readme
    assert f"](https://example.org/o/unrender/raw/v{release.version()}/docs/images/models.svg)" in readme
    assert release._RELATIVE.search(readme) is None
    assert "security@example.org" in (tmp_path / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_none_stops_a_release(tmp_path: Path, name: str) -> None:
    """A setting that isn't an address is rejected, and the error gives the expected form."""
    with pytest.raises(SystemExit, match=f"release: expected .*{name}: "):
        release.settle(tmp_path, {**SETTINGS, name: "me"})


@cases
def test_a_tag_insists_on_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: str, said: str) -> None:
    """A build without settings isn't published."""
    monkeypatch.setattr(release, "DIST", tmp_path)
    with zipfile.ZipFile(tmp_path / "unrender-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("unrender-1.dist-info/METADATA", metadata)

    if said:
        with pytest.raises(SystemExit, match=said):
            release.tag(f"v{release.version()}")
    else:
        release.tag(f"v{release.version()}")


def test_licences_that_bind_users_are_named(tmp_path: Path) -> None:
    """A table is written. A licence that is missing or not permissive stops a release."""
    part = {"name": "a", "version": "1", "licenses": [{"license": {"id": "MIT"}}]}
    bill, out = tmp_path / "sbom.json", tmp_path / "licences.md"

    bill.write_text(json.dumps({"components": [part]}))
    release.licences(str(bill), str(out))

    assert "| a | 1 | MIT |" in out.read_text(encoding="utf-8")
    bill.write_text(
        json.dumps({"components": [part, {"name": "b", "version": "2", "licenses": [{"expression": "GPL-3.0-only"}]}]})
    )
    with pytest.raises(SystemExit, match="'b', '2', 'GPL-3.0-only'"):
        release.licences(str(bill), str(out))


RUN_TESTS = module_at(SCRIPTS / "test.py")
"""scripts/test.py, whose name is also a package of the standard library."""


def test_all_tests_are_run_when_asked_for() -> None:
    """`--all` and `--nightly` run everything. Named tests are passed on. Otherwise, the short run has unit tests."""
    everything, named, short = (RUN_TESTS.pytest_arguments(words) for words in (["--all", "-x"], ["a.py", "-x"], []))

    assert everything == ["--numprocesses", "logical", "--dist", "worksteal", "--quiet", "-x"]
    assert RUN_TESTS.pytest_arguments(["--nightly"])[:7] == [*everything[:-1], "-m", ""]
    assert named == ["a.py", "-x"]
    assert any(word.startswith("tests/unit") for word in short)
    assert short[short.index("-m") + 1] == "not full and not slow"


@cases
def test_unit_tests_that_a_change_may_affect(files: list[str], units: list[str]) -> None:
    """A change of a package above `ChatTemplate` selects its unit tests and those of the layers above it; any other change selects all."""
    assert RUN_TESTS._units(files) == units


def test_changed_tests_are_in_the_short_run(tmp_path: Path) -> None:
    """A test outside the unit tests is run if it's new or differs from main; a deleted test isn't."""

    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    assert RUN_TESTS.changed_files(tmp_path) == []  # A file that git doesn't know.
    (tmp_path / "tests").mkdir()
    for name in ("same", "changed", "removed"):
        (tmp_path / "tests" / f"test_{name}.py").write_text(name)
    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "all")
    git("checkout", "-b", "other")
    (tmp_path / "tests" / "test_changed.py").write_text("now")
    (tmp_path / "tests" / "test_removed.py").unlink()
    git("commit", "-am", "some")
    (tmp_path / "tests" / "test_new.py").write_text("new")
    (tmp_path / "tests" / "new.toml").write_text("new")

    assert RUN_TESTS.changed_files(tmp_path) == ["tests/new.toml", "tests/test_changed.py", "tests/test_new.py"]
    assert RUN_TESTS._beside_unit(RUN_TESTS.changed_files(tmp_path)) == ["tests/test_changed.py", "tests/test_new.py"]
    assert RUN_TESTS._beside_unit(["tests/unit/test_a.py", "tests/test_structure.py", "src/test_b.py"]) == []
