"""RawScanner: raw text up to its end marker becomes JSON of the type that the schema wants."""

from __future__ import annotations

import json

import pytest
from splitting import splits

from unrender.parsing.finder import Finder
from unrender.parsing.raw import RawScanner
from unrender.parsing.values import Status

END = Finder(("</v>", "\n</v>"))


def scanned(text: str, *types: str) -> str:
    """Scan `text` and its end marker at every chunking; returns the JSON text, which must not differ."""
    results = {_scan(chunks, frozenset(types)) for chunks in splits(text + "</v>")}
    assert len(results) == 1, results
    return results.pop()


def _scan(chunks: list[str], types: frozenset[str]) -> str:
    scanner, buffer, result, status = RawScanner(END, types), "", "", Status.MORE
    for chunk in chunks:
        buffer += chunk
        if status is Status.MORE:
            scanner = scanner.copy()
            end, piece, status = scanner.scan(buffer, 0, final=False)
            buffer, result = buffer[end:], result + piece
    assert status is Status.DONE
    return result


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("02134", ["string"], "02134"),
        ("7", ["integer"], 7),
        ("7", [], 7),
        ("007", [], "007"),
        ("True", ["boolean"], True),
        ("TRUE", ["boolean"], True),
        ("null", ["string", "null"], None),
        ("null", ["string"], "null"),
        ("nullify", ["string", "null"], "nullify"),
        (" 7 ", ["integer"], 7),
        ("three", ["integer"], "three"),
        ("3 apples", [], "3 apples"),
        ('{"a": [1]}', ["object"], {"a": [1]}),
        ("{'a': None}", ["object"], {"a": None}),
        ('{"a": 1}', ["string"], '{"a": 1}'),
        ("[1, 2", [], "[1, 2"),
        ("a\n<b>\n\n", ["string"], "a\n<b>\n"),
        ("", ["string"], ""),
        ("x" * 1000, ["integer", "string"], "x" * 1000),
        (" " * 500 + "5", ["integer"], 5),
        ("5" + " " * 500, ["integer"], 5),
        ("null" + " " * 500 + "x", [], "null" + " " * 500 + "x"),
    ],
)
def test_the_schema_says_what_raw_text_is(text: str, types: list[str], expected: object) -> None:
    """The same text is a number, a word or a string as the allowed types say; what fits none is what it looks like."""
    assert json.loads(scanned(text, *types)) == expected


def test_text_is_released_before_its_end() -> None:
    """A string streams; a number waits for its end."""
    words, number = RawScanner(END, frozenset(("string",))), RawScanner(END, frozenset(("integer",)))

    assert words.scan("some text", 0, final=False) == (9, '"some text', Status.MORE)
    assert number.scan("123", 0, final=False) == (3, "", Status.MORE)
