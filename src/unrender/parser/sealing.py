"""Seals a parser's state with digests, which tell whether it belongs to a format, request and grammar."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from unrender.errors import StateError
from unrender.format import Format
from unrender.machine.saved import Saved
from unrender.messages.wire import Request
from unrender.nodes import Grammar

STATE_VERSION = 3
"""Version of what `Parser.state` writes; other versions are refused."""


def sealed(body: Mapping[str, Any], format: Format, request: Request, grammar: Grammar | None) -> dict[str, Any]:
    """Return a state with its version, a digest of format, request and grammar, and a digest of everything."""
    whole = {"version": STATE_VERSION, "for": _digest(_described(format, request, grammar)), **body}
    return {**whole, "digest": _digest(json.dumps(whole, sort_keys=True))}


def opened(state: Mapping[str, Any], format: Format, request: Request, grammar: Grammar | None) -> Saved:
    """Return the fields of a state.

    Raises `StateError` when it is of another version, format or request, or was changed.
    """
    saved = Saved(state)
    saved.require("version", saved.number("version") == STATE_VERSION, f"{STATE_VERSION}, what this release writes")
    described = _digest(_described(format, request, grammar))
    saved.require("for", saved.text("for") == described, f"{described}, the digest of this format and request")
    saved.require("digest", saved.text("digest") == body_digest(state), "the digest of the rest")
    return saved


def _described(format: Format, request: Request, grammar: Grammar | None) -> str:
    """Return everything of format, request and grammar that decides how text is read."""
    tools = None if request.tools is None else [tool.to_openai() for tool in request.tools]
    said = [
        *(tools, request.tool_choice, request.named_tool, request.parallel_tool_calls),
        *(request.response_schema, request.reasoning_format),
    ]
    text = _format_json(format) + json.dumps(said, sort_keys=True, default=str)
    return text if grammar is None else text + repr(grammar)


@lru_cache(maxsize=64)
def _format_json(format: Format) -> str:
    return format.to_json(indent=None)


def body_digest(state: Mapping[str, Any]) -> str:
    """Return the digest of a state, without the digest that it holds.

    Raises `StateError` for a state that is not plain JSON data.
    """
    try:
        return _digest(json.dumps({key: value for key, value in state.items() if key != "digest"}, sort_keys=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"state: expected plain JSON data: {error}") from None


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
