"""Divides the process's file descriptors between clients and engines, so that none is missing in the middle of an answer.

Strategy: a client's connection needs one descriptor, and each choice of an answer needs one for the engine. Half of the free descriptors are
for clients. The connections that remain when all streams are in use serve requests that don't generate text, and refuse the others.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

try:
    import resource
except ImportError:  # Windows, where sockets aren't descriptors and have no such limit
    resource = None  # type: ignore[assignment]

_OTHERS = 12
"""Descriptors for files that are opened later, such as the store and templates."""
_UNBOUNDED = 1 << 20
"""Limit of descriptors that is requested if the system allows any number."""
_SPARE = 8
"""One connection in so many is for requests that don't generate text."""


class Descriptors(NamedTuple):
    """Maximum number of connections to clients, and of connections to engines that generate text."""

    clients: int
    jobs: int


def raise_limit() -> None:
    """Raise the soft limit of file descriptors to the hard limit. Often, the soft limit is 1,024 and the hard limit is far higher."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _UNBOUNDED if hard == resource.RLIM_INFINITY else hard
        if soft != resource.RLIM_INFINITY and soft < most:
            with suppress(ValueError, OSError):  # macOS has another, lower limit for a process.
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def free_descriptors() -> Descriptors:
    """Return how many connections the free file descriptors allow."""
    if resource is None:
        return divided(_UNBOUNDED)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = 0
    with suppress(OSError):  # Some sandboxes have no such folder. There, `_OTHERS` has to be enough.
        used = len(list((Path("/proc/self/fd") if sys.platform == "linux" else Path("/dev/fd")).iterdir()))
    return divided((_UNBOUNDED if soft == resource.RLIM_INFINITY else min(soft, _UNBOUNDED)) - used - _OTHERS)


def divided(free: int) -> Descriptors:
    """Return the limits for a number of free descriptors.

    >>> divided(1000)
    Descriptors(clients=500, jobs=438)
    >>> divided(3)
    Descriptors(clients=2, jobs=1)
    """
    clients = max(free // 2, 2)
    return Descriptors(clients, clients - max(clients // _SPARE, 1))
