"""Compares two renderings, and finds their common parts. The analysis is built on this module.

Rules:
- Texts are compared by *lexemes*, never by single characters. A lexeme is a `<tag>`, a `[MARKER]`, a word, one whitespace character
  or one other character. `<think>` and `<tool_call>` share the character `<`, but they have no lexeme in common.
- A marker is never separated from the word that completes it, as in `<|open|>` + `think`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from unrender.format import BRACKETS, lexemes

_WORDS = (("start", "end"), ("begin", "end"), ("open", "close"), ("prefix", "suffix"))
_PAIRS = (*_WORDS, *((left.upper(), right.upper()) for left, right in _WORDS))
"""Pairs of words that distinguish an opener from its closer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The result of comparing two texts: their common start, the different middle part of each, and their common end."""

    prefix: str
    left: str
    right: str
    suffix: str


def common_prefix(texts: Iterable[str]) -> str:
    """Return the longest common prefix of `texts`, in complete lexemes.

    >>> common_prefix(["<|a|>x<think>", "<|a|>x<tool>"])
    '<|a|>x'
    """
    return "".join(shared_start([lexemes(text) for text in texts]))


def common_suffix(texts: Iterable[str]) -> str:
    """Return the longest common suffix of `texts`, in complete lexemes."""
    backwards = [lexemes(text)[::-1] for text in texts]
    return "".join(shared_start(backwards)[::-1])


def shared_start(sequences: Sequence[Sequence[str]]) -> list[str]:
    """Return the longest common prefix of all sequences."""
    columns = zip(*sequences, strict=False)
    return [items[0] for items in takewhile(lambda items: items.count(items[0]) == len(items), columns)]


def calculate_diff_split(left: str, right: str) -> Split:
    """Split two texts into a common prefix, two different middle parts and a common suffix. No marker is split.

    >>> calculate_diff_split("<a>one</a>", "<a>two</a>")
    Split(prefix='<a>', left='one', right='two', suffix='</a>')
    """
    prefix = common_prefix([left, right])
    left, right = left[len(prefix) :], right[len(prefix) :]
    suffix = common_suffix([left, right])
    end = len(suffix)
    return Split(prefix=prefix, left=left[: len(left) - end], right=right[: len(right) - end], suffix=suffix)


def is_word(lexeme: str) -> bool:
    """Return whether a lexeme is a word or number, which may complete a marker."""
    return lexeme[:1].isalnum() or lexeme[:1] == "_"


def is_tag(lexeme: str) -> bool:
    """Return whether a lexeme is a complete bracketed marker such as `<think>` or `[INST]`."""
    return len(lexeme) > 2 and lexeme[0] + lexeme[-1] in BRACKETS


def tags_of(text: str) -> list[str]:
    """Return the bracketed markers in `text`, in order."""
    return [part for part in lexemes(text) if is_tag(part)]


def split_last_tag(text: str) -> tuple[str, str]:
    r"""Split `text` before its last tag. If there is no tag, the second part is empty.

    >>> split_last_tag("<end>\n<bot> ")
    ('<end>\n', '<bot> ')
    """
    parts = lexemes(text)
    last = max((i for i, part in enumerate(parts) if is_tag(part)), default=len(parts))
    return "".join(parts[:last]), "".join(parts[last:])


def closers_of(tag: str) -> tuple[str, ...]:
    """Return the markers that would close `tag`.

    >>> closers_of("<think>")
    ('</think>',)
    >>> closers_of("<|START_THINKING|>")
    ('</|START_THINKING|>', '<|/START_THINKING|>', '<|END_THINKING|>')
    """
    # `</think>` is itself a closer, so nothing closes it.
    if tag[1:2] == "/" or tag[1:3] == "|/":
        return ()
    if tag[:2] in ("<<", "[["):
        return () if tag[2:3] == "/" else (f"{tag[:2]}/{tag[2:]}",)
    closers = [f"{tag[0]}/{tag[1:]}"]
    if tag.startswith("<|") and tag.endswith("|>"):
        # `<|think|>` is closed by `<|/think|>`.
        closers.append(f"<|/{tag[2:]}")
    elif tag.startswith("<|"):
        # `<|think>` is closed by `<think|>`.
        closers.append(f"<{tag[2:-1]}|>")
    return (*closers, *(tag.replace(left, right) for left, right in _PAIRS if left in tag))


def openers_of(closer: str) -> tuple[str, ...]:
    """Return the markers that `closer` would close."""
    if closer[:3] in ("<</", "[[/"):
        return (closer.replace("/", "", 1),)
    candidates = [closer.replace("/", "", 1)] if closer[1:2] == "/" or closer[1:3] == "|/" else []
    # `<think|>` closes `<|think>`.
    if closer.endswith("|>") and not closer.startswith("<|"):
        candidates.append(f"<|{closer[1:-2]}>")
    return (*candidates, *(closer.replace(right, left) for left, right in _PAIRS if right in closer))


# Matches text that starts inside a tag, such as `/k][k]`. The pattern doesn't match `]<~[<`, where `<~` separates the brackets.
_OPEN_TAG = re.compile(
    "[^<>]*>|" + "|".join(rf"[^\{pair[0]}\{pair[1]}]*\{pair[1]}\s*\{pair[0]}" for pair in BRACKETS[1:])
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The literals before, after and between consecutive items."""

    prefix: str
    """The text before each item."""
    suffix: str
    """The text after each item."""
    separator: str
    """The text between two items."""
    rule: str = ""
    """Name of the rule that found the borders between the literals."""


def solve(before: Sequence[str], between: str, after: Sequence[str]) -> Solution:
    """Find the prefix, suffix and separator of consecutive items.

    >>> solve(["<c>", "hi <c>"], "</c>, <c>", ["</c>."])
    Solution(prefix='<c>', suffix='</c>', separator=', ', rule='what is between two, and at both ends')
    """
    # In `<c>f</c>, <c>g</c>.`, each item has the prefix `<c>` and the suffix `</c>`. The separator is the rest of the text between the
    # items, `, `.
    prefix = common_suffix([*before, between])
    suffix = common_prefix([between, *after])
    if len(prefix) + len(suffix) <= len(between):
        separator = between[len(suffix) : len(between) - len(prefix)]
        return Solution(prefix=prefix, suffix=suffix, separator=separator, rule="what is between two, and at both ends")
    # The prefix and the suffix overlap if a line break could belong to either, as in `\n[f]\n[g]\n`. Choose the border with the lowest
    # penalty.
    first = len(between) - len(prefix)
    borders = [first, *(at for at in accumulate(map(len, lexemes(between))) if first < at <= len(suffix))]
    border = min(borders, key=lambda at: _awkwardness(between, at))
    return Solution(
        prefix=between[border:], suffix=between[:border], separator="", rule="the border lies between whole tags"
    )


def _awkwardness(between: str, at: int) -> tuple[bool, bool, bool, bool, int]:
    left, right = ("", *lexemes(between[:at]))[-1], (*lexemes(between[at:]), "")[0]
    inside = _OPEN_TAG.match(between[at:]) is not None
    broken = (is_tag(left) and is_word(right)) or (is_word(left) and is_tag(right))
    # Avoid the following borders, from worst to best: inside a tag, as in `</c|>`; between a marker and its word, as in `<|open|>|think`;
    # before a line break, which usually ends an item; before other whitespace.
    return inside, broken, right == "\n", right.isspace(), at
