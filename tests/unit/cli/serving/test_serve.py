"""`unrender serve`: options into a gateway, and a real server that finishes what it has begun."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from unrender.cli.commands import app


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--backend", "vllm"], "needs the engine's URL"),
        (["--backend", "sampler", "http://x"], "--backend sampler has no URL"),
        (["--backend", "transformers"], "needs --model"),
        (["--backend", "transformers", "http://x"], "--backend transformers has no URL"),
        (["--backend", "vllm", "http://x"], "template: expected a model directory"),
        (["--backend", "vllm", "http://x", "--model", "nowhere.jinja"], "nowhere.jinja: expected"),
        (["http://127.0.0.1:9"], "cannot be reached"),
        (["--gguf", "nowhere.gguf"], "nowhere.gguf: no such file"),
        (["--gguf", "x.gguf", "--backend", "vllm"], "expected no 'backend' beside it"),
        (["--config", "nowhere.toml"], "nowhere.toml: No such file"),
        (["--config", "x.toml", "--name", "m"], "expected no 'name' beside it"),
    ],
)
def test_mistake_is_a_sentence(arguments, said):
    """What cannot be served ends the command with code 2 and a sentence."""
    result = CliRunner().invoke(app, ["serve", *arguments])

    assert result.exit_code == 2
    assert said in result.output


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

    assert ("no keys: everyone who reaches this address may use it" in said) == warned
    assert f"listening at http://{host}:" in said
    assert f"{host}:0" not in said


def _post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=20)


@pytest.mark.slow
def test_server_finishes_what_it_has_begun(tmp_path):
    """At SIGTERM the answer on its way is finished, `/ready` and new requests are refused, and the process ends well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = tmp_path / "gateway.toml"
    config.write_text(f'port = {port}\n[[models]]\nname = "m"\nrate = 40.0\n')
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-m", "unrender", "serve", "--config", config], stderr=subprocess.PIPE)
    try:
        _wait(f"{url}/ready")
        stream = _post(
            f"{url}/v1/chat/completions", {"stream": True, "seed": 3, "messages": [{"role": "user", "content": "Hi"}]}
        )
        lines: list[bytes] = [stream.readline()]
        reader = threading.Thread(target=lambda: lines.extend(stream))
        reader.start()
        os.kill(server.pid, signal.SIGTERM)
        time.sleep(0.2)
        refused = _status(f"{url}/ready") if reader.is_alive() else 503
        reader.join(20)
        assert lines[-2] == b"data: [DONE]\n"
        assert refused == 503
        assert server.wait(10) == 0
    finally:
        server.kill()
        server.communicate()


def _wait(url):
    for _ in range(200):
        try:
            return urllib.request.urlopen(url, timeout=5)
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url}: the server does not answer")


def _status(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code
