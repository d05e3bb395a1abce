"""Reads well-formed JSON in big steps, as far as it goes.

Strategy: in each state, one compiled regex takes the next step. It is a whole value if that is all there and not nested too
deep, else one bracket, comma or key. What does not match may be half a word, or no JSON: the caller decides.

Rules: quantifiers are possessive, so no match goes back over what it has read, and work is linear.
"""

from __future__ import annotations

import re

VALUE, FIRST_ITEM, ITEM, FIRST_KEY, KEY, COLON, NEXT, STRING, KEY_STRING, END = range(10)
"""The kinds of the next part. `FIRST_…`: or the end of the list or object; `NEXT`: a comma, or the end; `…STRING`: more of a string."""
LEVELS = 3
"""Lists and objects of so many levels are taken whole; each level doubles the regex."""

_GAP = r"[ \t\n\r]*+"
_INSIDE = r'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_TEXT = f'"{_INSIDE}"'
_ATOM = r"(?:-?(?:0|[1-9][0-9]{0,90}+)(?:\.[0-9]{1,90}+)?+(?:[eE][-+]?[0-9]{1,9}+)?+|true|false|null)(?=[ \t\n\r,\]}])"


def _whole(levels: int) -> str:
    if levels == 0:
        return f"(?:{_TEXT}|{_ATOM})"
    inner = _whole(levels - 1)
    # After a comma another item has to follow, and without one the bracket: no list ends `1, ]`, none has `1 2`.
    items = rf"\[{_GAP}(?:{inner}{_GAP}(?:,{_GAP}(?!\])|(?=\])))*+\]"
    members = rf"\{{{_GAP}(?:{_TEXT}{_GAP}:{_GAP}{inner}{_GAP}(?:,{_GAP}(?!\}})|(?=\}})))*+\}}"
    return f"(?:{_TEXT}|{_ATOM}|{items}|{members})"


_A_VALUE = rf'(?P<value>{_whole(LEVELS)})|(?P<list>\[)|(?P<object>\{{)|(?P<text>"{_INSIDE}\Z)'
_A_KEY = rf'(?P<key>{_TEXT}{_GAP}:)|(?P<name>{_TEXT})|(?P<key_text>"{_INSIDE}\Z)'
_PATTERNS = {
    VALUE: rf"{_GAP}(?:{_A_VALUE})",
    ITEM: rf"{_GAP}(?:{_A_VALUE})",
    FIRST_ITEM: rf"{_GAP}(?:{_A_VALUE}|(?P<close>\]))",
    FIRST_KEY: rf"{_GAP}(?:{_A_KEY}|(?P<close>\}}))",
    KEY: rf"{_GAP}(?:{_A_KEY})",
    COLON: rf"{_GAP}(?P<key>:)",
    NEXT: rf"{_GAP}(?:(?P<comma>,)|(?P<close>[\]}}]))",
    STRING: rf'{_INSIDE}(?:(?P<value>")|(?P<text>\Z))',
    KEY_STRING: rf'{_INSIDE}(?:(?P<name>")|(?P<key_text>\Z))',
}


class _Steps(dict[int, re.Pattern[str]]):
    """The regex of each state, compiled when it is first wanted: together they take longer than the rest of an import."""

    def __missing__(self, state: int) -> re.Pattern[str]:
        step = self[state] = re.compile(_PATTERNS[state])
        return step


_STEPS = _Steps()
_FOLLOWING: dict[str | None, int] = {
    "value": NEXT,
    "key": VALUE,
    "name": COLON,
    "text": STRING,
    "key_text": KEY_STRING,
}
_KEYED = (FIRST_KEY, KEY, KEY_STRING)
"""The states in which a key is read."""
_OPENED = {"list": ("[", FIRST_ITEM), "object": ("{", FIRST_KEY)}
_CLOSES = {"]": "[", "}": "{"}


def well_formed(text: str, at: int, state: int, stack: str, depth: int) -> tuple[int, int, str, int, str]:
    """Continue from `at` as long as the text is well-formed JSON.

    `stack` holds the brackets that are open; at most `depth` may be. Returns the position where that ends, the state
    and the brackets there, the position of a comma that nothing has followed yet (-1 if there is none), and the keys of
    the outermost object, each without its first quotation mark.
    """
    comma, size, keys = -1, len(text), ""
    while at < size and (found := _STEPS[state].match(text, at)):
        kind, end = found.lastgroup, found.end()
        if kind in _FOLLOWING:
            # The arguments' own names: a key that comes twice among them is reported.
            if state in _KEYED and len(stack) == 1:
                keys += text[at:end] if state == KEY_STRING else found.group(str(kind))[1:].rstrip(": \t\n\r")
            state = _FOLLOWING[kind]
        elif kind == "comma":
            comma = end - 1
            state = ITEM if stack[-1] == "[" else KEY
        elif kind == "close":
            if _CLOSES[text[end - 1]] != stack[-1]:
                break
            stack, state = stack[:-1], NEXT
        elif len(stack) < depth:  # Too long, cut off or too deep to be taken whole: its bracket alone.
            bracket, state = _OPENED[str(kind)]
            stack += bracket
        else:
            break
        at = end
        # The outermost bracket has closed: what follows is not this value's.
        if state == NEXT and not stack:
            return at, END, stack, -1, keys
    return at, state, stack, comma if state in (ITEM, KEY) else -1, keys
