"""Splits literals into pieces that may be separated by whitespace, and recognizes literals that don't occur in prose."""

from __future__ import annotations

import re
from collections.abc import Iterable

TOKEN = re.compile(r"<[^<>\s=\"']+>|\[/?[A-Z][A-Z_]+\]|\[\|[^\[\]\s]+\|\]")
"""Matches a special token in one of the common spellings."""
_PROSE_WORD = re.compile(r"\w+[.:,;]?|```\w*[\s\[{]*")
"""Matches a word of prose with punctuation, or the start of a code block, such as ` ```json ` or ` ```tool_code `."""
_FENCED = re.compile(r"```\w*")
_EDGE = re.compile(r"(```\w*)|(?<=>)(?=<)|(?<=\|>)(?=\[)|(?<=\])(?=<[|/])")
"""Matches the positions at which a word is split into pieces: at a code fence, between two tags, and between a special token and a list."""
_JSON_TAIL = re.compile(r'\s*[\[{](?:\s*(?:[\[{:,]|"[^"]*"))*\s*$')
_JSON_HEAD = re.compile(r"^\s*(?:[\]}]\s*)+")
_JSON_TOKEN = re.compile(r'"[^"]*"|\S')
_KEYED_EDGE = re.compile(r'(?<=>)(?=\{)|(?<=\{)(?=")|(?<=":)(?=.)|(?<=",)(?=")|(?<=\})(?=<)')
"""Matches the positions at which whitespace may be inserted: between the JSON tokens around a name, and between JSON and its markers."""
_DISTINCTIVE = re.compile(r"\w.*\W|\W.*\w", re.DOTALL)


def tokens(text: str) -> list[str]:
    """Split a literal into pieces that may be separated by any whitespace."""
    return [piece for word in text.split() for piece in _EDGE.split(word) if piece]


def json_tokens(text: str) -> list[str]:
    """Split a literal that contains JSON. Each bracket and key of the JSON becomes a separate piece."""
    head = _JSON_HEAD.match(text)
    start = head.end() if head else 0
    # Whitespace may be inserted between the pieces. For example, `<call>{"name": ` is split into `<call>`, `{`, `"name"` and `:`.
    tail = _JSON_TAIL.search(text, start)
    end = tail.start() if tail else len(text)
    return [*_JSON_TOKEN.findall(text[:start]), *tokens(text[start:end]), *_JSON_TOKEN.findall(text[end:])]


def keyed_tokens(text: str) -> list[str]:
    """Split a literal of a call whose name occurs before the JSON and inside it, as in `f<args>{"name":"f","args":{…}}`."""
    return [piece for token in tokens(text) for piece in _KEYED_EDGE.split(token)]


def without_fences(pieces: Iterable[str]) -> list[str]:
    """Return the pieces except Markdown fences, because a fence may be missing."""
    return [piece for piece in pieces if not _FENCED.fullmatch(piece)]


def holds_token(text: str) -> bool:
    r"""Return whether a marker contains a special token and is therefore recognizable anywhere.

    >>> [holds_token(text) for text in ("<|im_start|>assistant\\n", "[INST]", "### Response:", "[Bot]")]
    [True, True, False, False]
    """
    return TOKEN.search(text) is not None


def is_distinctive(opener: str) -> bool:
    """Return whether `opener` is unlikely to occur in prose."""
    return len(opener) > 2 and bool(_DISTINCTIVE.search(opener))


def is_sign(piece: str) -> bool:
    """Return whether a piece is distinctive, but neither a word of prose nor the start of a code block."""
    return is_distinctive(piece) and not _PROSE_WORD.fullmatch(piece)


def is_phrase(marker: str) -> bool:
    """Return whether a marker is a sign (see `is_sign`) and not just the start of some JSON."""
    return is_sign(marker) and marker[0] not in "{[("
