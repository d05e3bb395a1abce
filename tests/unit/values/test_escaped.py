"""EscapedScanner: text with entities up to its end marker becomes JSON of the type that the schema wants."""

from __future__ import annotations

import json

import pytest
from splitting import splits

from unrender.format.entities import unescape, unescaped_until
from unrender.values.finder import Finder
from unrender.values.notations import Decoder
from unrender.values.raw import EscapedScanner, RawScanner
from unrender.values.scanner import Status

DECODER = Decoder(unescape, unescaped_until, "&")
END = Finder(("</v>", "\n</v>"))


def scanned(text: str, *types: str, whole: bool = False) -> object:
    """Scan `text` and its end marker at every chunking; returns the value, which must not differ."""
    results = {_scan(chunks, frozenset(types), whole=whole) for chunks in splits(text + "</v>")}
    assert len(results) == 1, results
    return json.loads(results.pop())


def _scan(chunks: list[str], types: frozenset[str], *, whole: bool) -> str:
    scanner: RawScanner = EscapedScanner(END, types, DECODER, whole=whole)
    buffer, result, status = "", "", Status.MORE
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
        ("a &lt; b &amp;&amp; c", ["string"], "a < b && c"),
        ("&quot;x&quot; &apos;y&apos; &#34;z&#x27;", ["string"], "\"x\" 'y' \"z'"),
        ("&amp;lt;", ["string"], "&lt;"),
        ("a & b &nbsp; &am &", ["string"], "a & b &nbsp; &am &"),
        ("&#0; &#55296; &#1114112; &#x1F600;", ["string"], "&#0; &#55296; &#1114112; 😀"),
        ("a < b", ["string"], "a < b"),
        ("&lt;", [], "<"),
        ("7", ["integer"], 7),
        ("7", ["string"], "7"),
        ("", ["string"], ""),
        ('["a &lt; b"]', ["array"], ["a &lt; b"]),
        ('["a &lt; b"]', [], ["a &lt; b"]),
        ("[a &lt; b]", [], "[a < b]"),
    ],
)
def test_entities_of_strings_are_decoded(text, types, expected):
    """A string is decoded once, a list of unescaped JSON is not, and what is not an entity stays."""
    assert scanned(text, *types) == expected


@pytest.mark.parametrize("types", [["array"], []])
def test_lists_that_are_escaped_as_a_whole_are_decoded(types):
    """The text of the list is decoded before it is read as JSON."""
    assert scanned("[&#34;a &amp;lt; b&#34;, 2]", *types, whole=True) == ["a &lt; b", 2]


def test_text_is_released_up_to_an_open_entity():
    """Nothing but what may still become an entity waits."""
    scanner = EscapedScanner(END, frozenset(("string",)), DECODER, whole=False)

    assert scanner.scan("a &lt; b &am", 0, final=False)[1] == '"a < b '
