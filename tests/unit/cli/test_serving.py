"""Commands that serve: options into commands to copy, a page, and a real server that finishes what it has begun."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import httpx2
import pytest
from click.testing import CliRunner
from live import free_port

from unrender.cli.commands import app
from unrender.cli.serving import serve_command
from unrender.integrations import rendered
from unrender.verify import verify


@pytest.fixture(scope="module")
def known():
    """Return what was verified."""
    return {}


@pytest.fixture(autouse=True)
def proved_once(monkeypatch, known):
    """Verify each format once for all tests; that takes longer than all else here."""

    def proof(template):
        key = (template.format, template._with_tools)
        if key not in known:
            known[key] = verify(template)
        return known[key]

    monkeypatch.setattr("unrender.cli.serving.verify", proof)


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
    # With its parent, as the command line makes it: a command keeps the help option of its first context.
    whole = app.make_context("unrender", ["engine-args"], resilient_parsing=True)
    for name, *words in ours:
        app.get_command(whole, name).make_context(name, words, parent=whole)
    assert ours or engine == "transformers"
    assert all(finding["verdict"] != "failed" for finding in data["checks"]["findings"])
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
    assert "   PASSED   " in result.stdout


def test_taken_port_is_a_sentence():
    """A port that something else listens at is named."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["playground", "--port", str(port)])

    assert (result.exit_code, f"port {port}: " in result.stderr) == (2, True)


def test_page_is_written_into_a_folder(tmp_path):
    """`--static` writes the page and ends."""
    result = CliRunner().invoke(app, ["playground", "--static", str(tmp_path / "site")])

    assert (result.exit_code, (tmp_path / "site" / "index.html").is_file()) == (0, True)


@pytest.mark.slow
def test_page_is_served_until_a_signal(tmp_path):
    """The command says where the page is, serves it with the template that was named, and ends on a signal."""
    (tmp_path / "mine.jinja").write_text("{{ messages[0].content }}")
    command = [sys.executable, "-m", "unrender", "playground", str(tmp_path / "mine.jinja"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        try:
            address = run.stderr.readline().split()[-1]
            (offered,) = httpx2.get(f"{address}templates").json()
        finally:
            run.terminate()

    assert offered["name"] == str(tmp_path / "mine.jinja")
    assert offered["source"] == "{{ messages[0].content }}"


def test_settings_are_checked(tmp_path):
    """`--check` says what settings would serve, without an engine, and ends; a mistake is code 2."""
    path = tmp_path / "gateway.toml"
    path.write_text('[[models]]\nname = "m"\nbackend = "llama-server"\nurl = "http://a"\naliases = ["n"]\n')

    good = CliRunner().invoke(app, ["serve", "--check", str(path)])
    path.write_text("[[models]]\nnmae = 1\n")
    bad = CliRunner().invoke(app, ["serve", "--check", str(path)])

    assert (good.exit_code, bad.exit_code) == (0, 2)
    assert "m  llama-server http://a; its own template; also called n" in good.output
    assert "at http://127.0.0.1:8000/v1; keys: none" in good.output
    assert "models[0].nmae: not a setting; did you mean" in bad.output


def test_port_in_use_is_said_first():
    """A port at which another server listens ends the command with code 2, before it says that it listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = CliRunner().invoke(app, ["serve", "--port", str(taken.getsockname()[1])])

    assert result.exit_code == 2
    assert "in use" in result.output
    assert "listening" not in result.output


@pytest.mark.slow
@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_gateway_that_is_open_to_all_says_so(host, warned):
    """Without keys, an address that others reach is named as open to everyone; one of this machine is not."""
    command = [sys.executable, "-m", "unrender", "serve", "--host", host, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = ""
    while "listening at" not in said:
        said += server.stderr.readline()
    server.kill()
    server.communicate()

    assert ("no keys: anyone who can reach this address can use it" in said) == warned
    assert f"listening at http://{host}:" in said
    assert f"{host}:0" not in said


@pytest.mark.slow
def test_server_finishes_what_it_has_begun(tmp_path):
    """At SIGTERM the answer on its way is finished and logged as a line of JSON, and new connections are refused."""
    port = free_port()
    config = tmp_path / "gateway.toml"
    config.write_text(f'port = {port}\n[[models]]\nname = "m"\nrate = 12.0\n')
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "unrender", "serve", "--log", "--config", config], stderr=subprocess.PIPE
    )
    try:
        while b"listening at" not in server.stderr.readline():
            pass
        assert httpx2.get(f"{url}/ready").status_code == 200
        request = {"stream": True, "seed": 3, "messages": [{"role": "user", "content": "Hi"}]}
        with httpx2.stream("POST", f"{url}/v1/chat/completions", json=request, timeout=20) as stream:
            coming = stream.iter_lines()
            lines = [next(coming)]
            os.kill(server.pid, signal.SIGTERM)
            time.sleep(0.2)
            with pytest.raises(httpx2.ConnectError):
                httpx2.get(f"{url}/ready")
            lines += coming
        assert lines[-2] == "data: [DONE]"
        assert server.wait(10) == -signal.SIGTERM
        ready, *_, asked = map(json.loads, server.stderr)
        assert (ready["level"], ready["logger"], ready["message"][:9]) == ("info", "unrender.gateway", "m: ready,")
        assert (asked["level"], asked["model"], asked["outcome"]) == ("info", "m", "ok")
        assert {"time", "seconds", "request"} <= asked.keys()
    finally:
        server.kill()
        server.communicate()
