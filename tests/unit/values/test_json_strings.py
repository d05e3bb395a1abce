"""QuotedScanner: a JSON string that holds an object gives the object."""

from __future__ import annotations

import json

import pytest
from splitting import splits

from unrender.values.json_strings import QuotedScanner
from unrender.values.scanner import LiteralStyle, Status


def scanned(text: str) -> tuple[str, int, Status]:
    """Scan at every chunking: the JSON text, where the reading ended, and the status, which must not differ."""
    outcomes = {_scan(chunks) for chunks in splits(text)}
    assert len(outcomes) == 1, outcomes
    return outcomes.pop()


def _scan(chunks: list[str]) -> tuple[str, int, Status]:
    scanner, buffer, result, status, base = QuotedScanner(LiteralStyle()), "", "", Status.MORE, 0
    for i, chunk in enumerate([*chunks, ""]):
        buffer += chunk
        if status is Status.MORE and buffer:
            scanner = scanner.copy()
            end, piece, status = scanner.scan(buffer, 0, final=i == len(chunks))
            buffer, result, base = buffer[end:], result + piece, base + end
    return result, base, status


@pytest.mark.parametrize("value", [{}, {"a": 'say "hi"\n\\'}, {"é": ["🌍", 1.5, None, {"b": {}}]}])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_object_inside_comes_out(value: dict[str, object], ascii_only: bool) -> None:
    """An object that was dumped twice comes out dumped once, character for character."""
    inside = json.dumps(value, ensure_ascii=ascii_only)
    text = json.dumps(inside, ensure_ascii=ascii_only)

    assert scanned(text + ", ") == (inside, len(text), Status.DONE)


@pytest.mark.parametrize("text", ['""', '"  "'])
def test_an_empty_string_means_no_arguments(text: str) -> None:
    """A string with nothing in it is read as an empty object."""
    assert scanned(text) == ("{}", len(text), Status.DONE)


@pytest.mark.parametrize(
    ("text", "place"), [('"hello"', 1), ('"{x"', 2), ('"{} y"', 4), ('"[1]"', 1), (r'"{\"a\": \"\"}}"', 14), ('"{"', 2)]
)
def test_what_is_no_object_fails_where_it_breaks(text: str, place: int) -> None:
    """Anything but one object fails, and the position says where in the output."""
    assert scanned(text)[1:] == (place, Status.FAILED)


@pytest.mark.parametrize(
    ("text", "final", "expected"),
    [
        ('"', False, (1, "", Status.MORE)),
        ('"{', False, (2, "{", Status.MORE)),
        ('"{\\', False, (2, "{", Status.MORE)),
        ('"{\\"a\\": \\"x\\u00', False, (12, '{"a": "x', Status.MORE)),
        ('"{\\"a\\": \\"\\ud83c', False, (11, '{"a": "', Status.MORE)),
        ('"{\\"a\\": \\"\\u00e9', False, (17, '{"a": "é', Status.MORE)),
        ('"{\\"a\\": \\"\\ud83c\\udf0d', False, (23, '{"a": "🌍', Status.MORE)),
        ('"{\\"a\\": \\"\\uD83C', False, (11, '{"a": "', Status.MORE)),
        ('"{\\"a\\": \\"\\uD', False, (11, '{"a": "', Status.MORE)),
        ('"{\\"a\\": \\"\\uD83C\\uDF0D', False, (23, '{"a": "🌍', Status.MORE)),
        ('"{\\"a\\": \\"\\u00e', False, (11, '{"a": "', Status.MORE)),
        ('"{\\"a\\": \\"\\u', False, (11, '{"a": "', Status.MORE)),
        ('"{}', False, (3, "{}", Status.MORE)),
        ('"{} ', False, (4, "{}", Status.MORE)),
        ('"{\\"a\\": 1', False, (9, '{"a": ', Status.MORE)),
        ('"{\\"a\\": tru', True, (9, '{"a": ', Status.FAILED)),
        ('"{\\"a\\": 1"', False, (10, '{"a": 1', Status.FAILED)),
        ('"{}"x', False, (4, "{}", Status.DONE)),
        ('"{} "x', False, (5, "{}", Status.DONE)),
        ('" {}"x', False, (5, "{}", Status.DONE)),
        ('""x', False, (2, "{}", Status.DONE)),
        ('"{}x', False, (3, "{}", Status.FAILED)),
        ('"x', False, (1, "", Status.FAILED)),
        ('"{"', False, (2, "{", Status.FAILED)),
    ],
)
def test_one_scan(text: str, final: bool, expected: tuple[int, str, Status]) -> None:
    """How far it goes, what it gives, and whether there is more: from any place in the buffer."""
    assert QuotedScanner(LiteralStyle()).scan(text, 0, final=final) == expected
    at, piece, status = QuotedScanner(LiteralStyle()).scan("~~" + text, 2, final=final)
    assert (at - 2, piece, status) == expected


@pytest.mark.parametrize(
    ("text", "json"),
    [
        (r'"{\"a\": \"\\n\\\\\"}"', r'{"a": "\n\\"}'),
        (r'"{\"a\": \"\q\"}"', r'{"a": "\\q"}'),
        ('"{\\"a\\":\\n1}"', '{"a":\n1}'),
        (r'"{\"a\": \"\ud83c\"}"', None),
    ],
)
def test_escapes_inside(text: str, json: str | None) -> None:
    """Those of the string are read first; what is left is read as JSON."""
    scanner = QuotedScanner(LiteralStyle())
    _, found, status = scanner.scan(text, 0, final=True)

    assert status is Status.DONE
    if json is not None:
        assert found == json


def test_a_value_that_is_complete_takes_white_space_alone() -> None:
    """In the next chunk as well, and in a copy."""
    scanner = QuotedScanner(LiteralStyle())
    scanner.scan('"{}', 0, final=False)
    assert (scanner.done, scanner.opened, scanner.flow) == (True, True, None)
    other = scanner.copy()

    assert scanner.scan(" x", 0, final=False) == (1, "", Status.FAILED)
    assert other.scan(' "', 0, final=False) == (2, "", Status.DONE)
