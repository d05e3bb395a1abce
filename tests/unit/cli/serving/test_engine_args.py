"""`unrender engine-args`: a template and an engine in, commands out, each of them one that exists."""

from __future__ import annotations

import importlib
import json
import shlex
from pathlib import Path

import click
import pytest

from unrender.cli.commands import app
from unrender.cli.serving.serve import serve_command
from unrender.integrations import rendered
from unrender.verify import verify


@pytest.fixture(autouse=True)
def proved_once(monkeypatch):
    """Prove each format once for all tests; a proof takes longer than all else here."""
    known = {}

    def proof(template):
        key = (template.format, template.template)
        if key not in known:
            known[key] = verify(template)
        return known[key]

    monkeypatch.setattr("unrender.cli.serving.engine_args.verify", proof)


@pytest.fixture
def args(run):
    """Return a function that asks for an engine's commands as JSON."""

    def asked(engine, template="chat_template.jinja"):
        result = run("engine-args", template, "--engine", engine, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return asked


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama-server", "transformers", "ollama"])
def test_commands_of_ours_exist(args, engine):
    """Every command of unrender that is printed is one that the command line takes, and the proof holds."""
    data = args(engine)

    ours = [shlex.split(line)[1:] for way in data["ways"] for line in way["lines"] if line.startswith("unrender ")]
    for name, *words in ours:
        app.commands[name].make_context(name, words, resilient_parsing=False)
    assert ours or engine == "transformers"
    assert all(finding["verdict"] != "refuted" for finding in data["proof"]["findings"])
    assert all(way["why"] for way in data["ways"])


def test_the_backend_is_one_that_the_gateway_has(args):
    """The gateway's backend has the engine's name."""
    kind = next(option.type for option in serve_command.params if option.name == "backend")
    assert isinstance(kind, click.Choice)

    for engine in ("vllm", "sglang", "llama-server", "ollama"):
        assert engine in kind.choices
        gateway = next(way for way in args(engine)["ways"] if way["title"] == "With the gateway")
        assert f"--backend {engine} " in gateway["lines"][1]


def test_the_plug_in_has_the_name_that_is_registered(args):
    """The flags name the parsers by the plug-in's own name; a template's file is told by the variable that it reads."""
    Path("model").mkdir()
    Path("model/chat_template.jinja").write_bytes(Path("chat_template.jinja").read_bytes())

    for engine in ("vllm", "sglang"):
        plugin = importlib.import_module(f"unrender.integrations.{engine}")
        by_file, by_folder = (args(engine, model)["ways"][0]["lines"][1] for model in ("chat_template.jinja", "model"))
        assert f"--tool-call-parser {plugin.NAME} --reasoning-parser {plugin.NAME}" in by_folder
        assert by_file.startswith(f"{rendered.TEMPLATE}=chat_template.jinja ")
        assert (" MODEL " in by_file, " model " in by_folder) == (True, True)


@pytest.mark.slow
def test_flags_follow_the_format(run, args):
    """A template without calls and reasoning needs no parsers of them."""
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
    Path("plain.jinja").write_text(source, encoding="utf-8")

    assert "hf" in args("vllm")["ways"][-1]["lines"][1]
    assert "hf" not in args("vllm", "plain.jinja")["ways"][-1]["lines"][1]


def test_a_folder_is_written_to(args):
    """A model's folder is named where it is one; a file's folder is the user's to name."""
    Path("model").mkdir()
    Path("model/chat_template.jinja").write_text(
        Path("chat_template.jinja").read_text(encoding="utf-8"), encoding="utf-8"
    )

    assert "--write model/tokenizer_config.json" in args("vllm", "model")["ways"][-1]["lines"][0]
    assert "--write DIR/tokenizer_config.json" in args("vllm")["ways"][-1]["lines"][0]


def test_prints_commands_to_copy(run):
    """For people, commands are in lines of their own, with the reasons below them."""
    result = run("engine-args", "chat_template.jinja", "--engine", "vllm")

    assert "\nvllm serve MODEL --port 8001\n" in result.stdout
    assert "vllm#57726" in result.stdout
    assert "not expressed" in result.stdout
    assert "Proof" in result.stdout
