"""The playground's server, and the requests that it rejects."""

from __future__ import annotations

import asyncio
import re
import socket
from importlib.resources import files

from cases import cases
from starlette.testclient import TestClient

from unrender import ChatTemplate
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


@cases
def test_a_request(why, method, path, host, headers, body, times, status, found):
    """A request is answered, or refused with an error as JSON."""
    content = body.encode("latin-1") * times
    answer = fetched(method, path, host, headers={"content-type": "application/json", **headers}, content=content)

    assert answer.status_code == status, why
    for text in found:
        assert text in answer.text


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
