"""Serves the playground on the loopback address. It serves the page's files, and handles the page's requests at one path.

Rules: only the local user can use the playground. Requests with another host name, from another site's page, or with a body over the limit
are rejected. The page may load only its own files. Requests are handled in a thread, one at a time.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from unrender import ChatTemplate
from unrender.limits import MAX_LINE
from unrender.playground import answer
from unrender.web import listening_socket

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""Allowed host names. Any other host name may belong to a malicious site whose domain resolves to this machine."""
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_AT_ONCE = 1
"""Maximum number of requests handled at the same time. The limit is one, because Python records the warnings of all threads together."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers that limit what the browser allows the page to do."""


def app(templates: Mapping[str, ChatTemplate] | None = None) -> Starlette:
    """Return the playground as an ASGI application. The page lists `templates` by name."""
    offered = [_described(name, template) for name, template in (templates or {}).items()]
    desk = _Desk(offered)
    routes = [
        Route("/templates", desk.templates),
        Route("/ask/{question}", desk.ask, methods=["POST"]),
        Mount("/", StaticFiles(packages=[("unrender.playground", "page")], html=True)),
    ]
    # Check the host name first, so that a page with another host name gets no information from the inner layers.
    guards = [
        Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS)),
        Middleware(BaseHTTPMiddleware, dispatch=_careful),
    ]
    return Starlette(routes=routes, middleware=guards)


async def _careful(request: Request, answered: RequestResponseEndpoint) -> Response:
    response = await answered(request)
    response.headers.update(_HEADERS)
    return response


def bound(port: int) -> socket.socket:
    """Return a socket that listens on the loopback address. Port 0 selects any free port. Raises `OSError` if the port is taken."""
    return listening_socket("127.0.0.1", port)


def serve(application: Starlette, listener: socket.socket) -> None:
    """Serve until a signal stops the server."""
    config = uvicorn.Config(application, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


def _described(name: str, template: ChatTemplate) -> dict[str, str]:
    loaded = template._loaded
    return {"name": name, "source": loaded.with_tools, "bos_token": loaded.bos_token, "eos_token": loaded.eos_token}


class _Desk:
    """Handlers of the page's requests."""

    def __init__(self, offered: Sequence[Mapping[str, str]]) -> None:
        self._offered = offered
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def templates(self, _: Request) -> Response:
        """Return the templates passed to `app`."""
        return _json(self._offered)

    async def ask(self, request: Request) -> Response:
        """Answer a request from the page."""
        if not _from_page(request):
            return _json({"error": "expected a request from this page, found one from another site"}, 403)
        body = await _body(request)
        if body is None:
            return _json({"error": f"expected at most {MAX_LINE} bytes"}, 413)
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            return _json({"error": f"expected JSON: {error}"}, 400)
        if not isinstance(data, dict):
            return _json({"error": f"expected an object, found {type(data).__name__}"}, 400)
        async with self._room:
            return _json(await asyncio.to_thread(answer, request.path_params["question"], data))


def _from_page(request: Request) -> bool:
    """Return True if the request comes from our page. Forms of other sites send another content type, and their scripts send another
    origin.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip()
    # Scripts of other sites can send JSON only with our permission, which is never granted. Forms can't send JSON.
    origin = request.headers.get("origin")
    return kind == "application/json" and origin in (None, f"{request.url.scheme}://{request.headers.get('host')}")


async def _body(request: Request) -> bytes | None:
    """Return the body, or None if it's too long. No more than the limit is read."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_LINE:
            return None
    return bytes(body)


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, media_type="application/json")
