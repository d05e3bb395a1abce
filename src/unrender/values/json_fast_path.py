"""Parses well-formed JSON in large steps.

Strategy: each state has one compiled regex that matches the next step. A step is a complete value if the text contains one that isn't
nested too deeply. Otherwise the step is a single bracket, comma or key. Parsing stops at text that doesn't match, which may be an
incomplete word or invalid JSON.

Rules: quantifiers are possessive or in atomic groups, so matching never backtracks and takes linear time. Python 3.11 before 3.11.5
matches possessive quantifiers of groups incorrectly (https://github.com/python/cpython/issues/106052), so groups are atomic instead.
"""

from __future__ import annotations

import re

from unrender.limits import MAX_PIECES

VALUE, FIRST_ITEM, ITEM, FIRST_KEY, KEY, COLON, NEXT, STRING, KEY_STRING, END = range(10)
"""States of the parser, named after the part that it expects next. `FIRST_…` also allows the end of the list or object, `NEXT` is a comma
or a closing bracket, and `…STRING` is the rest of a string.
"""
LEVELS = 3
"""Maximum nesting of lists and objects that one step can match. Each level doubles the size of the regex."""

_GAP = r"[ \t\n\r]*+"
_MANY = f"{{0,{MAX_PIECES}}}"  # An atomic group needs memory for each repetition. Longer texts take several steps.
_INSIDE = rf'(?>(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}})){_MANY})'
_TEXT = f'"{_INSIDE}"'
_ATOM = (
    r"(?:-?(?:0|[1-9][0-9]{0,90}+)(?>(?:\.[0-9]{1,90}+)?(?:[eE][-+]?[0-9]{1,9}+)?)|true|false|null)(?=[ \t\n\r,\]}])"
)


def _whole(levels: int) -> str:
    if levels == 0:
        return f"(?:{_TEXT}|{_ATOM})"
    inner = _whole(levels - 1)
    # A comma must be followed by another item, and an item by a comma or the closing bracket. So `1, ]` and `1 2` don't match.
    items = rf"\[{_GAP}(?>(?:{inner}{_GAP}(?:,{_GAP}(?!\])|(?=\]))){_MANY})\]"
    members = rf"\{{{_GAP}(?>(?:{_TEXT}{_GAP}:{_GAP}{inner}{_GAP}(?:,{_GAP}(?!\}})|(?=\}}))){_MANY})\}}"
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
    """The regex of each state, compiled on first use. Compiling all of them would take longer than the rest of the import."""

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
"""States in which a key is parsed."""
_OPENED = {"list": ("[", FIRST_ITEM), "object": ("{", FIRST_KEY)}
_CLOSES = {"]": "[", "}": "{"}


def well_formed(
    text: str, start: int, state: int, stack: str, comma: str, depth: int
) -> tuple[str, int, int, str, str, str]:
    """Parse `text` from `start` on as far as it is well-formed JSON.

    `stack` contains the open brackets, and `depth` is their maximum number. `comma` is a comma before `text`, which is held until an item
    follows. Returns a tuple: the well-formed text, its end, the state, the open brackets and the held comma there, and the outermost
    object's keys. The keys are returned as written, without their opening quotes.
    """
    at, last, size, keys = start, start, len(text), ""
    while at < size and state != END and (found := _STEPS[state].match(text, at)):
        kind, end = found.lastgroup, found.end()
        if kind in _FOLLOWING:
            # Collect the names of the arguments, because duplicates are reported.
            if state in _KEYED and len(stack) == 1:
                key = text[at:end] if state == KEY_STRING else found.group(str(kind))[1:]
                keys += key.rstrip(": \t\n\r") if kind == "key" else key  # `":` may be the start of the key `:a`.
            state = _FOLLOWING[kind]
        elif kind == "comma":
            last = end - 1
            state = ITEM if stack[-1] == "[" else KEY
        elif kind == "close":
            if _CLOSES[text[end - 1]] != stack[-1]:
                break
            stack, state = stack[:-1], NEXT
        elif len(stack) < depth:  # If a list or object is long, incomplete or deep, read only its bracket.
            bracket, state = _OPENED[str(kind)]
            stack += bracket
        else:
            break
        at = end
        # Once the outermost bracket is closed, the rest of the text is not part of the value.
        if state == NEXT and not stack:
            state = END
    if at == start:
        return "", at, state, stack, comma, ""
    end = last if state in (ITEM, KEY) else at
    return comma + text[start:end], at, state, stack, text[end:at], keys
