"""The set-up scripts: what is fetched is what the manifest names, and nothing else."""

from __future__ import annotations

import ast
import hashlib
import io
import marshal
import tarfile
import tomllib
from pathlib import Path

import fetch_schema_suite
import fetch_templates
import formats_table
import mutants
import pytest
from vendor import vendor_templates

FOLDER = "vendor/models/templates"
MANIFEST = tomllib.loads(fetch_templates.MANIFEST.read_text(encoding="utf-8"))


def known_templates() -> list[Path]:
    """Return the vendors' templates at hand that the manifest names."""
    return [path for path in vendor_templates().values() if path.name in MANIFEST["templates"]]


def archive(folder: Path, files: dict[str, bytes]) -> Path:
    """Return a source distribution that holds these files."""
    path = folder / "package-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package-1.0/{name}")
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    return path


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache that the script writes to."""
    monkeypatch.setattr(fetch_templates, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_takes_what_the_manifest_names(tmp_path: Path, cache: Path) -> None:
    """Of an archive, the named files of the named folder are taken, and no others."""
    files = {f"{FOLDER}/a.jinja": b"A", f"{FOLDER}/b.jinja": b"B", "elsewhere/a.jinja": b"not A", "setup.py": b"no"}

    fetch_templates._extract(archive(tmp_path, files), FOLDER, {"a.jinja": digest(b"A")})

    assert {path.name: path.read_bytes() for path in cache.iterdir()} == {"a.jinja": b"A"}


def test_refuses_other_content(tmp_path: Path, cache: Path) -> None:
    """A file whose digest is another one is refused, by name, and not kept."""
    path = archive(tmp_path, {f"{FOLDER}/a.jinja": b"changed"})

    with pytest.raises(fetch_templates.FetchError, match="a.jinja: expected sha256"):
        fetch_templates._extract(path, FOLDER, {"a.jinja": digest(b"A")})

    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_says_what_is_missing(tmp_path: Path) -> None:
    """A file that the archive lacks is named."""
    with pytest.raises(fetch_templates.FetchError, match="a.jinja"):
        fetch_templates._extract(archive(tmp_path, {}), FOLDER, {"a.jinja": digest(b"A")})


@pytest.mark.parametrize("path", known_templates(), ids=lambda path: path.stem)
def test_template_is_the_one_of_the_manifest(path: Path) -> None:
    """A vendor's template has the digest of the manifest, wherever it was found."""
    assert digest(path.read_bytes()) == MANIFEST["templates"][path.name]


@pytest.mark.parametrize("path", known_templates(), ids=lambda path: path.stem)
def test_page_says_what_is_derived_now(path: Path) -> None:
    """The page's table has the modes that analysis finds in a vendor's template."""
    row = " | ".join(formats_table.derived(path))

    assert row in formats_table.PAGE.read_text(encoding="utf-8"), "run `python scripts/formats_table.py`"


def test_table_replaces_the_one_before() -> None:
    """A table goes between the marks of the page, and what stood there goes."""
    page = f"before\n{formats_table.BEGIN}\nold\n{formats_table.END}\nafter\n"

    assert formats_table.with_table(page, "new") == (
        f"before\n{formats_table.BEGIN}\nnew\n{formats_table.END}\nafter\n"
    )


def test_the_test_suite_of_one_draft_is_taken(tmp_path: Path) -> None:
    """Of the source distribution only the tests of the draft are kept, without its optional ones, and the remotes."""
    files = {f"{fetch_schema_suite.FOLDER}/{name}": b"[]" for name in ("not.json", "README.md", "optional/format.json")}
    others = {"json/tests/draft7/not.json": b"{}", "json/remotes/folder/integer.json": b"{}"}

    fetch_schema_suite.extract(archive(tmp_path, files | others), tmp_path / "suite")

    kept = {str(path.relative_to(tmp_path / "suite")): path.read_bytes() for path in tmp_path.glob("suite/**/*.json")}
    assert kept == {"not.json": b"[]", "remotes/folder/integer.json": b"{}"}


def test_an_archive_without_tests_is_an_error(tmp_path: Path) -> None:
    """A source distribution that no longer holds the tests is said to."""
    with pytest.raises(fetch_templates.FetchError, match=r"package-1.0.tar.gz has no tests in json/tests/draft2020-12"):
        fetch_schema_suite.extract(archive(tmp_path, {"README.md": b""}), tmp_path / "suite")


def test_a_mutant_changes_one_place() -> None:
    """Every mutant compiles to other code than the module's own, and the tree is whole again after each."""
    source = (
        "LIMIT = 3\n\ndef cut(texts, size=1):\n    '''Say nothing of this.'''\n    found = [text[size:].strip() for text in texts if text]\n"
        "    return found if len(found) < LIMIT and not size else max(found)\n"
    )
    tree = ast.parse(source)
    before = ast.dump(tree)
    found = mutants.places(tree)

    codes = {marshal.dumps(mutants.mutated(tree, place, "m")) for place in found}

    assert len(codes) == len(found) > 10
    assert marshal.dumps(compile(tree, "m", "exec")) not in codes
    assert ast.dump(tree) == before
    assert not any("nothing" in ast.unparse(place[3]) for place in found)


def test_argued_mutants_exist() -> None:
    """What is argued is a change that can still be made, and has a reason."""
    known = {mutant.key for path in mutants.TARGETS for mutant in mutants.mutants(path)}

    assert set(mutants.argued()) <= known
    assert all(mutants.argued().values())
