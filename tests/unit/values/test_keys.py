"""Keys that come twice in one object of a JSON value."""

from __future__ import annotations

import pytest

from unrender.values.atoms import duplicate_key, duplicate_of
from unrender.values.scanner import LiteralScanner, LiteralStyle


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"a": 1, "b": 2}', ""),
        ('{"a": 1, "b": 2, "a": 3}', "a"),
        ('{"a": {"b": 1}, "b": {"a": 1}}', ""),
        ('[{"a": 1}, {"a": 1, "c": [{"b": 1, "b": 2}]}]', "b"),
        ('{"a": 1, "\\u0061": 2}', "a"),
        ('"a: b: c"', ""),
        ("{a: 1, a: 2", ""),
        ('{"": 1, "": 2}', '""'),
        ('{"a": ' + "1" * 5000 + ', "a": 1}', "a"),
    ],
)
def test_at_any_depth_of_a_value(text: str, key: str) -> None:
    """In one object, however its key is escaped; what is no JSON has none."""
    assert duplicate_key(text) == key


@pytest.mark.parametrize(
    ("keys", "key"), [("", ""), ('a"', ""), ('a"b"', ""), ('a"b"a"', "a"), ('a\\"b"b"', ""), ('é"\\u00e9"', "é")]
)
def test_among_keys_that_were_collected(keys: str, key: str) -> None:
    """Each ends at a quotation mark that is not escaped."""
    assert duplicate_of(keys) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"city": 1, "days": {"x": [1, 2]}, "city": 2}', "city"),
        ('{"city": "{\\"city\\": 1}", "x": {"city": 1}}', ""),
        ("{'city': 'a', city: 'b'}", "city"),
        ('{"x": {"a": 1, "a": 2}}', ""),
        ('{"ci\\u0074y": 1, "city": 2}', "city"),
    ],
)
def test_a_value_collects_the_keys_of_its_outermost_object(text: str, key: str) -> None:
    """Whole, in pieces, and on the fast path of each piece, to the same end."""
    for size in (1, 2, 3, 7, len(text)):
        scanner = LiteralScanner(LiteralStyle(loose_keys=True))
        left = ""
        for start in range(0, len(text), size):
            left += text[start : start + size]
            taken = scanner.flow and scanner.flow.take(left)
            used = taken[1] if taken else scanner.scan(left, 0, final=False)[0]
            left = left[used:]

        assert (left, scanner.duplicate) == ("", key), size
