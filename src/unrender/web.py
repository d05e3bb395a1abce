"""Opens the listening sockets of the gateway and of the playground."""

from __future__ import annotations

import socket

_BACKLOG = 2048
"""Maximum number of connections waiting to be accepted."""


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a listening TCP socket. Port 0 selects any free port. Raises `OSError` if listening fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    # Name the protocol, which accepted sockets inherit: asyncio turns Nagle's algorithm off only for sockets of `IPPROTO_TCP`. With that
    # algorithm, each response on a kept-alive connection would wait about 40 ms for the client's acknowledgement.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=made.detach())
