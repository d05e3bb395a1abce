"""RawScanner: raw text up to its end marker becomes JSON of the type that the schema wants."""

from __future__ import annotations

import json

import pytest
from properties.families import RAW_LINES
from splitting import splits

from unrender.values.finder import Finder
from unrender.values.raw import RawScanner
from unrender.values.scanner import Status
from unrender.values.unmarked_ends import Follow

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


@pytest.mark.parametrize("kind", ["null", "boolean", "integer", "number"])
def test_a_brace_is_text_where_no_list_or_object_is_allowed(kind: str) -> None:
    """It is released at once; beside a list or an object it waits."""
    for text in ("{x", "[x"):
        assert RawScanner(END, frozenset(("string", kind))).scan(text, 0, final=False)[1] == f'"{text}'
        for other in ("array", "object"):
            assert RawScanner(END, frozenset(("string", kind, other))).scan(text, 0, final=False)[1] == ""


def test_text_is_released_before_its_end() -> None:
    """A string streams; a number waits for its end."""
    words, number = RawScanner(END, frozenset(("string",))), RawScanner(END, frozenset(("integer",)))

    assert words.scan("some text", 0, final=False) == (9, '"some text', Status.MORE)
    assert number.scan("123", 0, final=False) == (3, "", Status.MORE)


@pytest.mark.parametrize(
    ("text", "types", "final", "expected"),
    [
        ("ab", {"string"}, False, (2, '"ab', Status.MORE)),
        ("ab<", {"string"}, False, (2, '"ab', Status.MORE)),
        ("ab<", {"string"}, True, (3, '"ab<', Status.MORE)),
        ("ab</v>", {"string"}, False, (2, '"ab"', Status.DONE)),
        ("ab\n</v>", {"string"}, False, (2, '"ab"', Status.DONE)),
        ("12", {"integer"}, False, (2, "", Status.MORE)),
        ("12</v>", {"integer"}, False, (2, "12", Status.DONE)),
        ("12x", {"integer"}, False, (3, '"12x', Status.MORE)),
        ("{", {"object"}, False, (1, "{", Status.MORE)),
        ("[1, ", {"array", "object"}, False, (4, "[1", Status.MORE)),
        ("{x", {"object"}, False, (1, "{", Status.FAILED)),
        ("{x", {"object", "string"}, False, (2, "", Status.MORE)),
        ("{x", {"string", "integer"}, False, (2, '"{x', Status.MORE)),
        ("{x", set(), False, (2, "", Status.MORE)),
        (" {}", {"object"}, False, (3, "", Status.MORE)),
        ("", {"string"}, False, (0, '"', Status.MORE)),
        ("", set(), False, (0, "", Status.MORE)),
    ],
)
def test_one_scan(text: str, types: set[str], final: bool, expected: tuple[int, str, Status]) -> None:
    """How far it goes, what is out, and whether there is more: from any place in the buffer."""
    assert RawScanner(END, frozenset(types)).scan(text, 0, final=final) == expected
    at, piece, status = RawScanner(END, frozenset(types)).scan("~~" + text, 2, final=final)
    assert (at - 2, piece, status) == expected


@pytest.mark.parametrize(
    ("pieces", "head", "blank", "out"),
    [
        (["tr", "ue"], "true", False, ["", ""]),
        (["true", " "], "true", True, ["", ""]),
        (["true ", "x"], "true x", False, ["", '"true x']),
        (["true", " x"], "true x", False, ["", '"true x']),
        ([" ", "7"], "7", False, ["", ""]),
        (["7", "", " "], "7", True, ["", "", ""]),
        (["{", " a"], "{", False, ["", ""]),
    ],
)
def test_what_may_be_a_word_is_held(pieces: list[str], head: str, blank: bool, out: list[str]) -> None:
    """Without the space around it; what cannot be one any more is out, whole."""
    scanner = RawScanner(END, frozenset())
    found = [scanner.scan(piece, 0, final=False)[1] for piece in pieces]

    assert (found, scanner.head, scanner.blank) == (out, head, blank)


def test_a_copy_goes_on_alone() -> None:
    """With what it holds, and with the list that it reads."""
    held, listed, begun = (RawScanner(END, frozenset(types)) for types in ((), ("array",), ("string",)))
    held.scan("tr ", 0, final=False)
    listed.scan("[", 0, final=False)
    begun.scan("a", 0, final=False)
    names = ("is_string", "begun", "head", "blank", "held", "types")
    for scanner in (held, listed, begun):
        other = scanner.copy()
        assert [getattr(other, name) for name in names] == [getattr(scanner, name) for name in names]
        assert other.finder is END
        other.scan("1", 0, final=False)
        other.held.append("x")

    assert (held.held, begun.held) == (["tr "], [])
    assert listed.literal is not None
    assert listed.scan("2]", 0, final=False) == (2, "2]", Status.DONE)


def test_what_goes_straight_through() -> None:
    """Text of a string that has begun, up to what JSON writes otherwise or what may end it."""
    begun, held, listed = (RawScanner(END, frozenset(types)) for types in (("string",), ("integer",), ("array",)))
    assert begun.flow is None
    begun.scan("a", 0, final=False)
    held.scan("1", 0, final=False)
    listed.scan("[", 0, final=False)
    assert (held.flow, listed.flow) == (None, None)
    flow = begun.flow
    assert flow is not None

    assert [flow.take(text) for text in ("b c", 'b"', "b<", "b</v>", "b\n")] == [("b c", 3), None, ("b", 1), None, None]


def test_a_list_may_hold_what_ends_its_value() -> None:
    """Where that is JSON's own punctuation, a list or an object is read to its end, unless it may be text."""
    closed = Finder(("]",))

    assert RawScanner(closed, frozenset(("array", "null"))).scan("[[1], 2]]", 0, final=False) == (
        8,
        "[[1], 2]",
        Status.DONE,
    )
    assert RawScanner(closed, frozenset(("array", "string"))).scan("[[1], 2]]", 0, final=False)[0] == 3
    assert RawScanner(END, frozenset(("array", "null"))).scan("[1] x", 0, final=False) == (5, "", Status.MORE)


def test_the_beginning_of_a_value_may_be_known() -> None:
    """It is taken like any other text."""
    assert RawScanner(END, frozenset(("string",))).begin("'a' ") == "\"'a' "


def test_what_follows_a_value_is_not_punctuation_alone() -> None:
    """Where no marker closes it, a list that may be something else waits for its end."""
    follow = Follow(RAW_LINES.format.tools)

    assert RawScanner(follow, frozenset(("array", "null"))).scan("[1] x", 0, final=False) == (5, "", Status.MORE)
