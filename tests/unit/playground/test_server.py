"""The page over HTTP: what is served, and what is refused."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest
from cases import cases
from starlette.testclient import TestClient

from unrender import ChatTemplate
from unrender.limits import MAX_LINE
from unrender.playground.server import app

PAGE = files("unrender.playground").joinpath("page")
SOURCE = "{{ messages[0].content }}"


def fetched(method, path, host="127.0.0.1:8800", **options):
    """Ask a playground that offers one template, as a browser at `host` would."""
    application = app({"mine": ChatTemplate.from_string(SOURCE, eos_token="</s>")})
    return TestClient(application, base_url=f"http://{host}").request(method, path, **options)


def test_page_and_its_files_are_served():
    """The page, and every file that it or its script names, come with their types."""
    page = fetched("GET", "/")
    named = re.findall(r'(?:href|src)="([\w.]+)"', page.text)

    assert page.headers["content-type"].startswith("text/html")
    assert {"playground.css", "playground.js"} <= set(named)
    for name in [*named, *(file.name for file in PAGE.iterdir() if file.name != "index.html")]:
        assert fetched("GET", f"/{name}").content == PAGE.joinpath(name).read_bytes()


def test_page_may_load_nothing_but_its_own():
    """Every response says that scripts come from here alone, and that no other page may hold this one."""
    for path in ("/", "/playground.js", "/nothing"):
        policy = fetched("GET", path).headers["content-security-policy"]

        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_page_has_no_script_or_style_of_its_own():
    """The policy forbids scripts and styles in the page, so it has none; and no text is set as HTML."""
    assert not re.search(r"<script>|<style|\son\w+=|style=", PAGE.joinpath("index.html").read_text())
    scripts = [file.read_text() for file in PAGE.iterdir() if file.name.endswith(".js")]
    assert len(scripts) > 5
    for script in scripts:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)


def test_templates_named_at_the_start_are_offered():
    """The page lists the templates of the command line with their tokens."""
    (offered,) = fetched("GET", "/templates").json()

    assert offered == {"name": "mine", "source": SOURCE, "bos_token": "", "eos_token": "</s>"}


def test_questions_are_answered():
    """A question is a path, and its fields are the body."""
    found = fetched("POST", "/ask/prompt", json={"source": SOURCE})

    assert found.json()["prompt"] == "Hello"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.0.1"])
def test_other_names_of_this_machine_are_refused(host):
    """A site that points its own name at this machine gets nothing."""
    assert fetched("GET", "/", host=host).status_code == 400
    assert fetched("POST", "/ask/prompt", host=host, json={"source": SOURCE}).status_code == 400


@cases
def test_other_sites_are_refused(headers):
    """A script or a form of another site cannot ask."""
    assert fetched("POST", "/ask/prompt", content=b"{}", headers=headers).status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b"[" * 100_000, 400), (b'"' + b"x" * MAX_LINE + b'"', 413), (b"\xff\xfe", 400)],
)
def test_bodies_that_are_no_question_are_refused(body, status):
    """A body that isn't a JSON object of bounded size is an error in JSON."""
    found = fetched("POST", "/ask/prompt", content=body, headers={"content-type": "application/json"})

    assert found.status_code == status
    assert "expected" in json.loads(found.text)["error"]
