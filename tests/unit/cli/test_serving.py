"""Tests of `serve` and `playground`, with real servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import command_line
import httpx2
import pytest
from live import free_port

from unrender.cli.serving import _BACKENDS
from unrender.gateway.config import BACKENDS, ENGINES


def test_each_kind_of_engine_can_be_named():
    """`--backend` has the kinds of the settings. The first is the sampler, and a model in this process has the option `--gguf`."""
    assert {*_BACKENDS, "gguf"} == BACKENDS.keys()
    assert {*_BACKENDS[1:]} == ENGINES.keys()


@contextmanager
def started(*words):
    """Run a server, and yield its process and what it has printed, up to its address."""
    command = [sys.executable, "-m", "unrender", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        said = ""
        try:
            while "http://" not in said:
                line = server.stderr.readline()
                assert line, said
                said += line
            yield server, said
        finally:
            server.kill()


@pytest.mark.slow
def test_page_is_served_until_a_signal(tmp_path):
    """The command prints the page's address, and serves the page with the given template until a signal."""
    (tmp_path / "mine.jinja").write_text("{{ messages[0].content }}")
    with started("playground", tmp_path / "mine.jinja", "--port", "0") as (server, said):
        (offered,) = httpx2.get(f"{said.split()[-1]}templates").json()
        server.terminate()
        server.wait(10)

    assert offered["name"] == str(tmp_path / "mine.jinja")
    assert offered["source"] == "{{ messages[0].content }}"


@pytest.mark.parametrize("command", ["serve", "playground"])
def test_port_in_use_is_said_first(command):
    """If the port is in use, the command fails before it prints an address, and the error names the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = command_line.run(command, "--port", str(port))

    assert (result.exit_code, str(port) in result.stderr, "in use" in result.stderr) == (2, True, True)
    assert "http://" not in result.output


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("127.0.0.1", False), ("localhost", False)])
def test_gateway_that_is_open_to_all_says_so(host, warned):
    """Without keys, the command warns about an address that other machines can reach."""
    with started("serve", "--host", host, "--port", "0") as (_, said):
        pass

    assert ("no keys: anyone who can reach this address can use it" in said) == warned
    assert f"listening at http://{host}:" in said
    assert f"{host}:0" not in said


@pytest.mark.slow
def test_server_finishes_what_it_has_begun(tmp_path):
    """After SIGTERM, the running answer is finished and logged as JSON, and new connections are refused."""
    port = free_port()
    config = tmp_path / "gateway.toml"
    config.write_text(f'port = {port}\n[[models]]\nname = "m"\nrate = 12.0\n')
    url = f"http://127.0.0.1:{port}"
    request = {"stream": True, "seed": 3, "messages": [{"role": "user", "content": "Hi"}]}
    with started("serve", "--log", "--config", config) as (server, _):
        assert httpx2.get(f"{url}/ready").status_code == 200
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
