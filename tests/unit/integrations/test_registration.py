"""The entry points as engines of any release call them: found in the metadata, in a separate process."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from unrender.integrations import sglang, vllm
from unrender.integrations.registration import above

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

SHAPES: Any = tomllib.loads(Path(__file__).with_name("engine_shapes.toml").read_text(encoding="utf-8"))
ENGINES = {name: SHAPES[name] for name in ("vllm", "sglang")}


@pytest.fixture
def site(tmp_path):
    """Return a folder of packages with unrender's metadata, as in its wheel."""
    groups = PROJECT["entry-points"].items()
    points = "".join(f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in named.items()) for group, named in groups)
    needs = [
        f"Requires-Dist: {need}; extra == '{extra}'"
        for extra, all_needs in PROJECT["optional-dependencies"].items()
        for need in all_needs
    ]
    install(tmp_path, "unrender", "1.0", needs, {"entry_points.txt": points})
    return tmp_path


def install(site: Path, name: str, version: str, more: list[str], files: Mapping[str, str]) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    head = ["Metadata-Version: 2.3", f"Name: {name}", f"Version: {version}", *more]
    for file, text in {"METADATA": "\n".join(head) + "\n", **files}.items():
        (folder / file).write_text(text, encoding="utf-8")


def engine(site: Path, name: str, version: str, modules: Mapping[str, str]) -> None:
    """Install a package with these modules, which contain only names and signatures."""
    install(site, name, version, [], {})
    for path, text in modules.items():
        file = site / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for folder in [site / name, *(path for path in (site / name).rglob("*") if path.is_dir())]:
        (folder / "__init__.py").touch()


def python(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with our package and those of `site`."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT / "src")))}
    command = [sys.executable, *words]
    return subprocess.run(command, env=env, cwd=site, capture_output=True, text=True, timeout=120, check=False)


def started(site: Path, group: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run an engine's start-up, then `code`."""
    lines = (
        "import importlib.metadata, logging, sys",
        "logging.basicConfig(format='%(levelname)s %(name)s: %(message)s', level='INFO')",
        f"(point,) = [p for p in importlib.metadata.entry_points(group={group!r}) if p.name == 'unrender']",
        "for _ in range(2): point.load()()",
        code,
        "print('the engine runs')",
    )
    return python(site, "-c", "\n".join(lines))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ENGINES)
def test_registers_in_a_supported_release(site, name):
    """In a supported release, both parsers are registered, and nothing is logged."""
    known = ENGINES[name]
    engine(site, name, known["version"], known["files"])

    run = started(site, known["group"], known["known"])

    assert run.stdout.splitlines() == ["known: unrender", "the engine runs"]
    assert run.stderr == ""


def modules_of(shape: Mapping[str, Any]) -> dict[str, str]:
    """Return the modules of another release by path."""
    files, file = ({} if shape.get("alone") else dict(ENGINES[shape["engine"]]["files"])), shape["file"]
    before = files.pop(file, "")
    if "old" in shape:
        assert shape["old"] in before
        files[file] = before.replace(shape["old"], shape["new"])
    elif "new" in shape:
        files[file] = shape["new"]
    return files


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", SHAPES["shape"], ids=lambda shape: f"{shape['engine']}-{shape['version']}")
def test_another_release_starts_as_without_unrender(site, shape):
    """An unsupported release starts without our parsers, and one line has both versions and the reason."""
    name, version = shape["engine"], shape["version"]
    engine(site, name, version, modules_of(shape))
    known = ENGINES[name]["known"].replace("\n", "\n    ")
    (site / "both.py").write_text(f"try:\n    {known}\nexcept ImportError: pass\n")

    run = started(site, ENGINES[name]["group"], "import both")

    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "the engine runs")
    assert set(run.stdout.splitlines()[:-1]) <= {"known:"}
    (line,) = set(run.stderr.splitlines())
    need = PROJECT["optional-dependencies"][name][0]
    assert f"unrender does not plug into {name} {version}: {need} is supported" in line
    assert shape["why"] in line
    assert "the gateway, `unrender serve`, works" in line


def test_says_which_releases_are_supported():
    """The supported range is that of the extra, wherever it's stated."""
    for name, known in ENGINES.items():
        (need,) = PROJECT["optional-dependencies"][name]
        assert need.startswith(f"{name}>={known['version'].removesuffix('.0')},<")


@pytest.mark.parametrize("module", [vllm, sglang])
def test_what_is_used_of_an_engine_is_asked_for_first(module):
    """Each name that a request uses from the engine is checked at the start."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    engine_name = module.__name__.rpartition(".")[2]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="import_module"), args=[asked]), attr=name):
                path = vars(module)[asked.id] if isinstance(asked, ast.Name) else ast.literal_eval(asked)
                assert not path.startswith(engine_name) or name in module._USED[path]


def test_a_plug_in_takes_what_the_engine_gives():
    """A class fits if each of its methods can replace the engine's own."""

    class Ours:
        def read(self, text, *, end=False): ...

    class Theirs:
        def read(self, text, *, end): ...

    assert issubclass(above(Ours, Theirs, "Both"), Theirs)
    assert above(Ours, type("Older", (), {}), "Both", new=("read",))().read("") is None
    above(Ours, type("Theirs", (), {"read": lambda self, text: None}), "Both")
    for signature in ("self", "self, words, *, end", "self, text, more, *, end", "self, text, *, end, more=1"):
        other = type("Theirs", (), {"read": eval(f"lambda {signature}: None")})
        with pytest.raises(TypeError, match="Theirs.read: expected"):
            above(Ours, other, "Both")


def test_the_pytest_plugin_needs_no_new_pytest(tmp_path):
    """The plug-in can be imported by an older pytest, without the names and hook wrappers of releases 7 and 8."""
    code = (
        "import pytest\nfor name in ('Stash', 'StashKey'): delattr(pytest, name)\n"
        "old = lambda hookwrapper=False, tryfirst=False, trylast=False: lambda hook: hook\n"
        "pytest.hookimpl = old\nimport unrender.testing.plugin"
    )

    assert python(tmp_path, "-c", code).returncode == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("given", ["", "import sys\nsys.modules['jinja2'] = None"], ids=["whole", "without jinja2"])
def test_a_foreign_project_is_tested_as_without_unrender(site, given):
    """Pytest runs an unrelated project with all warnings as errors."""
    (site / "early.py").write_text(given)
    (site / "suite").mkdir()
    (site / "suite" / "test_it.py").write_text(
        "import pytest\n@pytest.fixture\ndef chat(): return 1\ndef test_it(chat): assert chat == 1\n"
    )

    run = python(site, "-m", "pytest", "-W", "error", "-p", "early", "-p", "no:cacheprovider", "-q", "suite")

    assert (run.returncode, run.stdout.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")
