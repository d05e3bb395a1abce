"""Modules are loaded only when they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
NEEDED = {"chat_template", "errors", "json_values", "limits", "rendering", "signatures", "version"}
"""The packages and modules that are needed for a `ChatTemplate`."""
HELLO = '[{"role": "user", "content": "Hello"}]'


def loaded(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running `code`."""
    shown = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\n{code}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def packages(modules: set[str]) -> set[str]:
    return {module.split(".")[1] for module in modules if module.startswith("unrender.")}


def test_a_template_is_made_without_analysis_parsers_and_grammars():
    """Creating the first `ChatTemplate` loads only the modules for rendering."""
    modules = loaded("from unrender import ChatTemplate\nChatTemplate.from_string('{{ messages }}')")

    assert packages(modules) == NEEDED
    assert modules & {"pydantic", "transformers", "huggingface_hub", "click"} == set()


def test_importing_the_package_loads_nothing_else():
    """`import unrender` loads only a table of names."""
    modules = loaded("import unrender")

    assert packages(modules) == {"version"}
    assert "jinja2" not in modules


@pytest.mark.slow
def test_answers_are_read_without_what_writes_grammars(tmp_path, monkeypatch):
    """Preparing a turn of a known template and parsing its answer loads no code that analyses templates or writes grammars."""
    monkeypatch.setenv("UNRENDER_CACHE", str(tmp_path))
    code = f"from unrender import ChatTemplate\nturn = ChatTemplate.from_string('{{{{ messages }}}}').prepare({HELLO})"

    first, later = loaded(code), loaded(f"{code}; turn.parse('Hi'); turn.parser().feed('Hi')")

    assert "unrender.parser.streaming" in later
    assert packages(later) & {"dialects", "export", "verify", "lint", "explain", "masks", "integrations"} == set()
    assert "unrender.analysis.derivation" in first
    assert {name for name in later if name.startswith("unrender.analysis.")} == {"unrender.analysis.stored"}


@pytest.mark.slow
def test_a_reader_of_text_needs_no_jinja():
    """A parser is loaded without templates, Jinja, conversations and grammars."""
    modules = loaded("import unrender.parser.streaming")

    assert "jinja2" not in modules
    others = {"rendering", "analysis", "proof", "conversation", "grammar", "dialects", "prompt", "turn", "openai"}
    assert packages(modules) & others == set()
