r"""Writes a format's literals as the regular expressions of a response template.

Rules: text is matched as it stands. White space at a marker's ends is layout: next to verbatim text at most as much of it
is matched as the marker itself has, so that verbatim text comes back exact; elsewhere any amount. The patterns are read by
the `regex` package, which also finds beginnings of matches at the end of the text so far; Python's own `re` reads them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from unrender.format import Format, Part, Slot

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_CONTROLS = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}

ANYWHERE = r"\s*"
"""Layout between two things that are not verbatim text."""


def escape(text: str) -> str:
    r"""Return a pattern for exactly this text, as readable as possible.

    >>> print(escape('<|x|> {"a"'))
    <\|x\|> \{"a"
    """
    escaped = _SPECIAL.sub(lambda match: "\\" + match[0], text)
    return "".join(_CONTROLS.get(character, character) for character in escaped)


def any_of(patterns: Iterable[str]) -> str:
    """Return a pattern for any of `patterns`, the longest tried first; "" for none."""
    kept = sorted(dict.fromkeys(pattern for pattern in patterns if pattern), key=len, reverse=True)
    return kept[0] if len(kept) == 1 else f"(?:{'|'.join(kept)})" if kept else ""


def maybe(pattern: str) -> str:
    """Return a pattern that makes `pattern` optional."""
    return f"(?:{pattern})?" if pattern else ""


def at_most(layout: str) -> str:
    r"""Return a pattern for at most as much white space as there is in `layout`.

    >>> at_most("\n\n")
    '\\s{0,2}'
    """
    return f"\\s{{0,{len(layout)}}}" if layout else ""


def beside_text(marker: str, core: str) -> str:
    """Return a pattern for a marker next to verbatim text; `core` is the marker's pattern without its layout."""
    bare = marker.strip()
    before, after = marker[: len(marker) - len(marker.lstrip())], marker[len(marker.rstrip()) :] if bare else ""
    return at_most(before) + core + at_most(after)


def beside_layout(parts: Sequence[Part]) -> str:
    """Return a pattern for a row of literals and slots; layout in them may have any width."""
    pattern = ""
    for i, part in enumerate(parts):
        if isinstance(part, Slot):
            pattern += _slot(part, [text for text in parts[i + 1 : i + 2] if not isinstance(text, Slot)])
            continue
        bare = part.strip()
        before = ANYWHERE if part[:1].isspace() else ""
        after = ANYWHERE if bare and part[-1:].isspace() else ""
        pattern += before + escape(bare) + after
    return pattern.replace(ANYWHERE * 2, ANYWHERE)


def spelled(format: Format, marker: str) -> str:
    """Return a pattern for the marker without its layout, in all its spellings."""
    bare = marker.strip()
    others = [other for spelling in format.spellings if spelling.marker.strip() == bare for other in spelling.others]
    return any_of(map(escape, (bare, *others))) if bare else ""


def skeleton(parts: Sequence[Part], *, follows: Sequence[str] = (), groups: Iterable[Slot] = ()) -> str:
    """Return a pattern for literals and slots. Each slot in `groups` becomes a group of its name.

    One of the texts in `follows` comes after the last part: a slot there ends at it. A slot that occurs twice holds the
    same text both times.
    """
    named, seen = set(groups), set()
    pattern = ""
    for i, part in enumerate(parts):
        if not isinstance(part, Slot):
            pattern += escape(part)
        elif part in seen:
            pattern += f"(?P={part})"
        else:
            following = parts[i + 1] if i + 1 < len(parts) else None
            body = _slot(part, follows if following is None or isinstance(following, Slot) else (following,))
            pattern += f"(?P<{part}>{body})" if part in named else body
            seen.update(named & {part})
    return pattern


def turn_ends(format: Format) -> list[str]:
    """Return a pattern for each end of turn, including all white space after it."""
    ends = [end for end in (format.turn.end, *format.turn.ends) if end.strip()]
    return [at_most(end[: len(end) - len(end.lstrip())]) + spelled(format, end) + ANYWHERE for end in ends]


def _slot(slot: Slot, stops: Iterable[str]) -> str:
    """Return a pattern for the text of a slot, which ends before the first character of what follows."""
    ends = "".join(sorted({stop.lstrip()[:1] for stop in stops}))
    ends = "".join("\\" + text if text in r"\]^-[" else text for text in ends)
    match slot:
        case Slot.INDEX:
            return r"\d+"
        case Slot.VALUE:
            return ".*?"
        case Slot.ANY | Slot.TYPE:
            return f"[^{ends}]*" if ends else ".*?"
        case Slot.KEY:
            return f"[^{ends}\\n]+"
        case _:
            return f"[^{ends}\\s]+"
