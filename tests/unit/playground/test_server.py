"""The playground's server, and the requests that it rejects."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from importlib.resources import files

import pytest
from cases import cases
from starlette.testclient import TestClient

from unrender import ChatTemplate
from unrender.limits import MAX_LINE
from unrender.playground.server import app, bound

PAGE = files("unrender.playground").joinpath("page")
SOURCE = "{{ messages[0].content }}"


def fetched(method, path, host="127.0.0.1:8800", **options):
    """Send a request to a playground with one template, as a browser at `host` would."""
    application = app({"mine": ChatTemplate.from_string(SOURCE, eos_token="</s>")})
    return TestClient(application, base_url=f"http://{host}").request(method, path, **options)


def test_page_and_its_files_are_served():
    """The page and its files are served with their content types."""
    page = fetched("GET", "/")
    named = re.findall(r'(?:href|src)="([\w.]+)"', page.text)

    assert page.headers["content-type"].startswith("text/html")
    assert {"playground.css", "playground.js"} <= set(named)
    for name in [*named, *(file.name for file in PAGE.iterdir() if file.name != "index.html")]:
        assert fetched("GET", f"/{name}").content == PAGE.joinpath(name).read_bytes()


def test_page_may_load_nothing_but_its_own():
    """Every response has a policy that allows only the page's own scripts, and no frames."""
    for path in ("/", "/playground.js", "/nothing"):
        policy = fetched("GET", path).headers["content-security-policy"]

        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_page_has_no_script_or_style_of_its_own():
    """The page has no inline scripts or styles, and never sets HTML."""
    assert not re.search(r"<script>|<style|\son\w+=|style=", PAGE.joinpath("index.html").read_text())
    scripts = [file.read_text() for file in PAGE.iterdir() if file.name.endswith(".js")]
    assert len(scripts) > 5
    for script in scripts:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)


def test_templates_named_at_the_start_are_offered():
    """The templates from the command line are listed with their tokens."""
    (offered,) = fetched("GET", "/templates").json()

    assert offered == {"name": "mine", "source": SOURCE, "bos_token": "", "eos_token": "</s>"}


def test_questions_are_answered():
    """The path names the request, and the body contains its fields."""
    found = fetched("POST", "/ask/prompt", json={"source": SOURCE})

    assert found.json()["prompt"] == "Hello"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1"])
def test_other_names_of_this_machine_are_refused(host):
    """Requests with another host name are rejected."""
    assert fetched("GET", "/", host=host).status_code == 400
    assert fetched("POST", "/ask/prompt", host=host, json={"source": SOURCE}).status_code == 400


@cases
def test_other_sites_are_refused(headers):
    """Requests from other sites are rejected."""
    assert fetched("POST", "/ask/prompt", content=b"{}", headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b"[" * 100_000, 400), (b'"' + b"x" * MAX_LINE + b'"', 413), (b"\xff\xfe", 400)],
)
def test_bodies_that_are_no_question_are_refused(body, status):
    """An invalid or oversized body returns an error as JSON."""
    found = fetched("POST", "/ask/prompt", content=body, headers={"content-type": "application/json"})

    assert found.status_code == status
    assert "expected" in json.loads(found.text)["error"]


def test_responses_do_not_wait_for_acknowledgements():
    """A connection that the playground's socket accepts has `TCP_NODELAY`."""

    async def run():
        accepted = asyncio.get_running_loop().create_future()

        async def serve(_, writer):
            accepted.set_result(writer)

        async with await asyncio.start_server(serve, sock=bound(0)) as server:
            _, client = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer = await accepted
            option = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            client.close()
            return option

    assert asyncio.run(run()) == 1
