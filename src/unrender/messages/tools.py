"""Reads the tools of a request, in any form, once: as plain data for templates, and as `Tool`s for the rest.

Servers are given the same tools with every request: tools of the same content share what was read of them. It is read
from a copy, so that nothing changes when the caller's own data does.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.cache import SHARED, content_key
from unrender.messages.inputs import plain_tools
from unrender.messages.wire import Tool, read_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of a request, read for templates and for the library."""

    plain: Sequence[Mapping[str, Any]] = ()
    """Each as `{"type": "function", "function": {…}}`; shared by requests, so never to be changed."""
    tools: tuple[Tool, ...] = ()
    key: bytes = b""
    """Equal for no tools that differ; empty where there is no such key."""


def read_offer(tools: Any, *, repeats: bool = False) -> Offer:
    """Read the tools of a request; none for None. `repeats` and `MessageError`s are as for `plain_tools`."""
    if tools is None:
        return Offer()
    key = content_key(tools)
    found: Offer | None = SHARED.get(("offer", key, repeats)) if key else None
    if found is not None:
        return found
    offer = _read(tools, repeats=repeats)
    if key and offer.key:
        SHARED.put(("offer", key, repeats), offer, len(key) + len(offer.key))
    return offer


def _read(tools: Any, *, repeats: bool) -> Offer:
    plain = plain_tools(tools, repeats=repeats) or []
    read = read_tools(plain)
    try:
        # Version 2 knows no shared parts: equal content is written alike. Reading has bounded what that can come to.
        written = marshal.dumps(plain, 2)
    except ValueError:
        return Offer(plain=plain, tools=read)
    own = marshal.loads(written)  # noqa: S302 -- written just now
    made: Offer = SHARED.made(
        ("offer", written), lambda: Offer(plain=own, tools=read, key=written), lambda _: len(written)
    )
    return made
