"""Places in a schema: how their values are checked, and shown in errors."""

from __future__ import annotations

from typing import Any

import pytest
from cases import cases

from unrender import GrammarError
from unrender.schema.places import Place, is_deep, pointer, value_in_words


@cases
def test_a_value_is_shown_in_part(value: Any, text: str) -> None:
    """An error shows at most 80 characters, and never fails itself."""
    assert value_in_words(value) == text


def test_a_number_that_python_cannot_write_is_shown_by_its_type() -> None:
    """Python refuses to print numbers with thousands of digits."""
    assert value_in_words(10**5000) == "a int that is too large to be shown"


def test_marks_are_no_part_of_a_pointer() -> None:
    """Marks that the reader added to a path, and the number after each, aren't part of the pointer."""
    place = Place({"type": "null"}, "#/a", "http://h/x", ("http://h/x",))
    made = place.made("k/l", {"anyOf": [{}]})

    assert made.path == "#/a/\0k~1l"
    assert made.base == "http://h/x"
    assert made.schema == {"anyOf": [{}]}
    assert pointer(f"{made.path}/0/b") == "#/a/b"
    assert pointer("#/a/b/0") == "#/a/b/0"
    assert place.marked("m").path == "#/a/\0m"
    assert place.marked("m").schema == {"type": "null"}


def test_a_scope_begins_where_the_base_changes() -> None:
    """A scope starts at each `$id`."""
    plain = Place({"items": {}, "not": {"$id": "x"}}, "#")

    assert plain.at("items").scope == ()
    assert plain.at("not").scope == ("x",)


@pytest.mark.parametrize("schema", [5, "a", None, [], ["a"]])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    """A value that isn't a schema is rejected however it's reached."""
    with pytest.raises(GrammarError, match="#/a: expected a JSON Schema, found"):
        Place.checked(schema, "#/a")
    with pytest.raises(GrammarError, match="#/a: expected a JSON Schema, found"):
        Place({"a": schema}, "#").at("a")
    assert Place.checked({}, "#/a", "b") == Place({}, "#/a", "b")


def nested(depth: int, leaf: Any = 1) -> Any:
    for at in range(depth):
        leaf = [leaf] if at % 2 else {"a": leaf}
    return leaf


def test_depth_is_bounded() -> None:
    """The limit is 48 levels of lists or objects."""
    assert [is_deep(nested(depth)) for depth in (0, 46, 47, 48, 49)] == [False, False, False, True, True]
    assert is_deep((nested(47), 1))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([{1}], "{1}"),
        ([{"a": {5: 1}}], "{5: 1}"),
        ([{"a": 1, 5: 2}], "{'a': 1, 5: 2}"),
        ([[float("inf")]], "inf"),
        ([nested(40, float("nan"))], "nan"),
        ([10**1000], "1" + "0" * 79),
        ([-(10**1000)], "-1" + "0" * 78),
        (["a", (b"a",)], "b'a'"),
    ],
)
def test_listed_values_are_json(values: list[Any], found: str) -> None:
    """All values inside a list are checked."""
    with pytest.raises(GrammarError) as caught:
        Place({"enum": values}, "#/a").values("enum")

    assert str(caught.value) == f"#/a/enum: expected JSON, found {found}"


def test_values_are_listed() -> None:
    """A constant is a list of one. Values that are too deep aren't checked."""
    values = [None, True, 1, 2.5, "a", [1], {"a": (1,)}, 10**999, nested(60, float("nan"))]

    assert Place({"enum": values}, "#").values("enum") == values
    assert Place({"const": [1]}, "#").values("const") == [[1]]
    assert Place({"enum": (1, 2)}, "#").values("enum") == [1, 2]
    with pytest.raises(GrammarError, match="#/enum: expected a list, found 5"):
        Place({"enum": 5}, "#").values("enum")
