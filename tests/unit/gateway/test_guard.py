"""Requests from foreign pages or confused proxies are refused before anything is read."""

from __future__ import annotations

import json
from functools import partial

import pytest
from live import ASKED, heard, request

from unrender.gateway.gateway import Keys
from unrender.gateway.serve import HEAD_BYTES

CHAT = "/v1/chat/completions"
BODY = json.dumps(ASKED[CHAT]).encode()
EVIL = "origin: https://evil.example\r\n"


post = partial(request, CHAT)


@pytest.mark.slow
def test_pages_of_other_sites_are_refused():
    """Without keys, a foreign host or origin is refused, but requests of local programs aren't."""
    refused = [
        post(headers=f"{EVIL}content-type: text/plain\r\n"),
        post(headers="origin: null\r\n"),
        post(host="evil.example"),
        post(host="evil.example:PORT"),
        post(host="127.0.0.1.evil.example"),
        post(host="[::"),
        b"GET /v1/models HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
        request("/v1/messages", headers=EVIL),
    ]
    allowed = [
        post(),
        post(host="127.0.0.1:PORT"),
        post(host="[::1]:PORT"),
        post(headers="origin: http://localhost:3000\r\n"),
        post(headers="origin: vscode-webview://abc\r\n"),
        b"GET /health HTTP/1.0\r\n\r\n",
    ]

    found = [answer[9:12] for answer in heard(*refused, *allowed)[0]]

    assert found == [b"403"] * len(refused) + [b"200"] * len(allowed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({"keys": Keys(models={"k": frozenset("*")})}, post(headers=f"{EVIL}x-api-key: k\r\n", host="evil.example")),
        ({"origins": ["https://evil.example"]}, post(headers=EVIL)),
        ({"origins": ["*"]}, post(headers=EVIL)),
        ({"hosts": ["evil.example"]}, post(host="evil.example")),
    ],
    ids=["keys", "origin", "all origins", "host"],
)
def test_pages_that_the_operator_allows_are_answered(settings, sent):
    """With keys, `cors` or `hosts`, requests from other pages are answered."""
    assert heard(sent, **settings)[0][0][9:12] == b"200"


@pytest.mark.slow
def test_two_lengths_end_the_connection():
    """A request with both `content-length` and `transfer-encoding` gets status 400. The rest of the connection isn't read as a request."""
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ncontent-length: {len(chunked)}\r\n\r\n"

    (answer,), _ = heard(head.encode() + chunked + post())

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Content-Length or Transfer-Encoding" in answer


@pytest.mark.slow
def test_head_has_a_limit_also_if_it_arrives_at_once():
    """Headers above the limit get status 400, whether in one long line or in many. Headers below the limit are accepted."""
    large, many = f"x: {'a' * HEAD_BYTES}\r\n", "".join(f"x{i}: {'b' * 50}\r\n" for i in range(400))

    found, _ = heard(post(headers=large), post(headers=many), post(headers=f"x: {'a' * (HEAD_BYTES - 1000)}\r\n"))

    assert [answer[9:12] for answer in found] == [b"400", b"400", b"200"]
