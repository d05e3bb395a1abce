"""Decodes the entities of XML in a text, and lists the entities that templates write.

Rules: only the five names of XML and numbers are entities. `&` on its own, and every other name, is text as it is: models
forget to escape. Every entity is short, so that little text waits for its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ENTITIES: Mapping[str, tuple[str, ...]] = {
    "&": ("&amp;", "&#38;"),
    "<": ("&lt;", "&#60;"),
    ">": ("&gt;", "&#62;"),
    '"': ("&quot;", "&#34;"),
    "'": ("&apos;", "&#39;", "&#x27;"),
}
"""Characters → how templates escape them."""

_NAMES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));")
_BEGUN = re.compile(r"&(?:[a-z]{0,4}|#[0-9]{0,7}|#x[0-9A-Fa-f]{0,6})\Z")
_LONGEST = len("&#1114111;")


def unescape(text: str) -> str:
    """Return `text` with its entities replaced by their characters.

    >>> unescape("a &lt; b &amp; c & d &#39;e&#x27; &nbsp;")
    "a < b & c & d 'e' &nbsp;"
    """
    return _ENTITY.sub(_character, text)


def unescaped_until(text: str) -> int:
    """Return the position of an incomplete entity at the end of `text`; the length of `text` if there is none.

    >>> unescaped_until("a &l"), unescaped_until("a & b")
    (2, 5)
    """
    at = text.rfind("&", max(0, len(text) - _LONGEST))
    return at if at >= 0 and _BEGUN.match(text, at) else len(text)


def _character(found: re.Match[str]) -> str:
    name, decimal, hexadecimal = found.groups()
    if name:
        return _NAMES[name]
    point = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0 < point < 0xD800 or 0xDFFF < point <= 0x10FFFF
    return chr(point) if is_character else found.group()
