"""`unrender playground`: options into a page, on a port of this machine or in a folder."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from unrender.cli.commands import app


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jinja"], "nowhere.jinja: expected"),
        (["--static", "site", "--pyodide", "nowhere"], "nowhere: expected an address, or a folder"),
        (["--port", "70000"], "70000"),
    ],
)
def test_mistake_is_a_sentence(arguments, said):
    """What cannot be shown ends the command with code 2 and a sentence."""
    result = CliRunner().invoke(app, ["playground", *arguments])

    assert result.exit_code == 2
    assert said in result.stderr


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
            with urllib.request.urlopen(f"{address}templates") as response:
                (offered,) = json.load(response)
        finally:
            run.terminate()

    assert offered["name"] == str(tmp_path / "mine.jinja")
    assert offered["source"] == "{{ messages[0].content }}"
