"""well_formed: as far as JSON goes, and not a character further."""

from __future__ import annotations

import pytest

from unrender.parsing.wellformed import COLON, END, FIRST_ITEM, FIRST_KEY, ITEM, KEY, NEXT, STRING, VALUE, well_formed


@pytest.mark.parametrize(
    ("text", "state", "stack", "expected"),
    [
        ("1, 2]", FIRST_ITEM, "[", (5, END, "", -1)),
        ("1, 2] x", FIRST_ITEM, "[[", (5, NEXT, "[", -1)),
        ('"a": {"b": [1, {"c": null}]}, ', KEY, "{", (29, KEY, "{", 28)),
        ("1, ]", FIRST_ITEM, "[", (2, ITEM, "[", 1)),
        ("tru", FIRST_ITEM, "[", (0, FIRST_ITEM, "[", -1)),
        ("12", FIRST_ITEM, "[", (0, FIRST_ITEM, "[", -1)),
        ('"half', VALUE, "[", (5, STRING, "[", -1)),
        ('of it", 1', STRING, "[", (7, ITEM, "[", 6)),
        ('"key"', FIRST_KEY, "{", (5, COLON, "{", -1)),
        ("}", FIRST_ITEM, "[", (0, FIRST_ITEM, "[", -1)),
        ("]", NEXT, "{", (0, NEXT, "{", -1)),
        ("[[[[[1", VALUE, "[", (5, FIRST_ITEM, "[[[[[[", -1)),
        ("[" * 20, VALUE, "[", (8, FIRST_ITEM, "[" * 9, -1)),
        ("'a'", VALUE, "[", (0, VALUE, "[", -1)),
        ('"a\nb"', VALUE, "[", (0, VALUE, "[", -1)),
    ],
)
def test_it_stops_where_json_does(text: str, state: int, stack: str, expected: tuple[int, int, str, int]) -> None:
    """Where it ends, the state there, the open brackets, and a comma without a follower."""
    assert well_formed(text, 0, state, stack, 9) == expected
