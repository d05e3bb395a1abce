"""Protects a gateway without keys on the loopback address from web pages of other sites that the local user visits.

A browser sends requests of any page to local addresses: a form or a simple script needs no permission, and a domain may resolve to
127.0.0.1. Such requests name the page's site in `origin`, or the domain in `host`. Programs and local pages name neither.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from unrender.gateway.failure import Failure, Kind
from unrender.gateway.http.stream import Send
from unrender.gateway.uploads import Receive

Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Guard:
    """ASGI middleware that rejects requests of foreign pages. `hosts` and `origins` are allowed; "*" in `origins` allows all pages.

    `refused` makes the response to a rejected request.
    """

    def __init__(
        self,
        app: Application,
        *,
        hosts: Collection[str],
        origins: Collection[str],
        refused: Callable[[MutableMapping[str, Any], Failure], Awaitable[Any]],
    ) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)
        self._refused = refused

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle a request."""
        problem = (
            self._problem(scope) if scope["type"] == "http" and is_local((scope.get("server") or ("",))[0]) else ""
        )
        if not problem:
            await self._app(scope, receive, send)
            return
        response = await self._refused(scope, Failure(Kind.FORBIDDEN, problem))
        await response(scope, receive, send)

    def _problem(self, scope: MutableMapping[str, Any]) -> str:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
        host = _name(f"//{headers.get(b'host', '')}")
        if host and not is_local(host) and host not in self._hosts:
            return (
                f"host: expected a name of this machine, found {host!r:.80}; add keys, or allow the name with `hosts`"
            )
        origin = headers.get(b"origin", "")
        if not origin or origin in self._origins or "*" in self._origins:
            return ""
        # Desktop programs send origins of their own, e.g. `vscode-webview://…`, which no web page has.
        if origin == "null" or (origin.startswith(("http://", "https://")) and not is_local(_name(origin))):
            return f"origin: expected a page of this machine, found {origin!r:.80}; add keys, or allow it with `cors`"
        return ""


def _name(url: str) -> str:
    """Return the host name in a URL; the URL itself if it is invalid."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return url


def is_local(name: str) -> bool:
    """Return True if a host name or an address means this machine.

    >>> [is_local(name) for name in ("localhost", "127.0.0.1", "::1", "a.localhost", "example.com", "")]
    [True, True, True, True, False, False]
    """
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
