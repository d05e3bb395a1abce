"""Serves the playground on a socket of this machine: the page's files, and one path for its questions.

Rules: for the person at this machine alone. A request under another host's name, or from another site's page, is refused, and so is
a body beyond the limit; the page may load nothing but its own files. Questions are answered in threads, a few at a time.
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
from unrender.playground.questions import answer

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""Names under which the page may be asked for; others are another site's, pointed at this machine."""
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_AT_ONCE = 2
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers that keep a browser from doing more than the page asks for."""


def app(templates: Mapping[str, ChatTemplate] | None = None) -> Starlette:
    """Return the playground as an ASGI application. The page offers `templates` by their names."""
    offered = [_described(name, template) for name, template in (templates or {}).items()]
    desk = _Desk(offered)
    routes = [
        Route("/templates", desk.templates),
        Route("/ask/{question}", desk.ask, methods=["POST"]),
        Mount("/", StaticFiles(packages=[("unrender.playground", "page")], html=True)),
    ]
    # Another host's name is refused first: a page of that name must learn nothing from what the inner ones say.
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
    """Return a socket at the loopback address; port 0 means any free port. Raises `OSError` when the port is taken."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # Who is told the address may come before the server runs, and waits.
    except OSError:
        listener.close()
        raise
    return listener


def serve(application: Starlette, listener: socket.socket) -> None:
    """Serve until a signal ends it."""
    config = uvicorn.Config(application, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


def _described(name: str, template: ChatTemplate) -> dict[str, str]:
    loaded = template._loaded
    return {"name": name, "source": loaded.with_tools, "bos_token": loaded.bos_token, "eos_token": loaded.eos_token}


class _Desk:
    """A place where questions are answered."""

    def __init__(self, offered: Sequence[Mapping[str, str]]) -> None:
        self._offered = offered
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def templates(self, _: Request) -> Response:
        """List the templates that were named at the start."""
        return _json(self._offered)

    async def ask(self, request: Request) -> Response:
        """Answer a question of the page."""
        if not _from_page(request):
            return _json({"error": "expected a question of this page, found another site's"}, 403)
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
    """Return whether the page itself asks: a form of another site has another type of content, its scripts another origin."""
    kind = request.headers.get("content-type", "").split(";")[0].strip()
    # Another page's script may send JSON only if we allowed it beforehand, which we never do; a form cannot send it at all.
    origin = request.headers.get("origin")
    return kind == "application/json" and origin in (None, f"{request.url.scheme}://{request.headers.get('host')}")


async def _body(request: Request) -> bytes | None:
    """Return the body; None where it is too long, of which no more than the limit is read."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_LINE:
            return None
    return bytes(body)


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, media_type="application/json")
