"""Splits texts into lexemes, and finds markers that are probably single tokens.

A lexeme is a `<tag>`, a `[MARKER]`, a word, one whitespace character or one other character. Markers are never split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from unrender.format import Format
from unrender.format.checks import texts_in

BRACKETS = ("<>", "[]", "«»", "‹›", "⟦⟧", "⟨⟩", "⟪⟫", "【】", "〖〗", "〔〕", "〈〉", "《》", "「」", "『』", "◁▷")
_BRACKETED = "|".join(rf"\{pair[0]}[^\{pair[0]}\{pair[1]}\s]*\{pair[1]}" for pair in BRACKETS)
# A marker with a typo, such as `<|call>|>`, is still one marker.
_LEXEME = re.compile(
    rf"<\|[^<>|\s]+>\|>|<｜[^<>｜\s]+>｜>|<<[^<>\s]+>>|\[\[[^\[\]\s]+\]\]|{_BRACKETED}|\w+|\s|.", re.DOTALL
)
_SPECIAL = re.compile(r"[<\[][^<>\[\]\"'{}\s]+[>\]]")
"""Matches a marker that may be a single token."""


def lexemes(text: str) -> list[str]:
    r"""Split `text` into lexemes. Joining the lexemes gives `text` again.

    >>> lexemes("<think>\nso far")
    ['<think>', '\n', 'so', ' ', 'far']
    """
    return _LEXEME.findall(text)


def preserved_tokens(fmt: Format, source: str = "") -> tuple[str, ...]:
    r"""Return all markers of the format that look like single tokens, in order of appearance.

    Markers of tolerated syntaxes are included only if they occur in the template's `source`.

    >>> from unrender.format import Format, Reasoning, ReasoningMode
    >>> reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
    >>> preserved_tokens(Format(reasoning=reasoning))
    ('<think>', '</think>')
    """
    # Exclude headers: they precede the answer, so it doesn't matter if a tokenizer drops them.
    answer = replace(fmt.turn, headers=(), unasked="")
    parts = (fmt.reasoning, *fmt._wrappers, fmt.tools, answer.end, answer.ends, answer, fmt.ignored)
    texts = (text for part in parts for text in literal_texts(part))
    tolerated = (tag for tag in special_tokens(literal_texts(fmt.tolerated)) if tag in source)
    return tuple(dict.fromkeys((*special_tokens(texts), *tolerated)))


def special_tokens(texts: Iterable[str]) -> Iterator[str]:
    """Yield the markers in `texts` that look like single tokens, e.g. `<think>`."""
    return (part for text in texts for part in lexemes(text) if _SPECIAL.fullmatch(part))


def ends_within(end: str) -> Iterator[str]:
    """Yield the proper starts of an end-of-turn marker that end with a special token, the shortest first.

    >>> list(ends_within("<|im_end|><|endofturn|>")), list(ends_within("<|im_end|>"))
    (['<|im_end|>'], [])
    """
    start = ""
    for part in lexemes(end):
        start += part
        if _SPECIAL.fullmatch(part) and start != end:
            yield start


def literal_texts(value: Any) -> Iterator[str]:
    """Return all literals in a part of a format, in order."""
    return (text for _, text in texts_in(value, "") if isinstance(text, str))
