"""A value from a caller is JSON of a limited size, or an error that names the place."""

from __future__ import annotations

from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from unrender import RequestError
from unrender.json_values import check_values
from unrender.limits import MAX_DEPTH


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        datetime.now(UTC),
        {"a": [1, 2.5, True, None, ("x",)]},
        MappingProxyType({"a": {}}),
        nested(MAX_DEPTH),
    ],
)
def test_json_is_let_through(value: object) -> None:
    """Scalars, lists, tuples and objects with text keys are accepted. The outermost value may be any of them."""
    check_values(value, where="here")


WRONG = {
    "not JSON": ({"a": [{1}]}, "here.a[0]: expected JSON, found set"),
    "a key that is not text": ({"a": [{"b": {5: 1}}]}, "here.a[0].b: expected text as keys, found 5"),
    "too deep": (
        nested(MAX_DEPTH + 1),
        f"here{'[0]' * 6}…: expected at most 500 levels of lists and objects, found more",
    ),
    "a long way": (
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": {1}}}}}}}},
        "here.a.b.c.d.e.f…: expected JSON, found set",
    ),
}


@pytest.mark.parametrize(("value", "message"), WRONG.values(), ids=WRONG)
def test_the_place_is_named(value: object, message: str) -> None:
    """The error has the first six keys from the outside in, and what was expected there."""
    with pytest.raises(RequestError) as caught:
        check_values(value, where="here")

    assert str(caught.value) == message


def test_a_value_that_holds_itself_is_too_deep() -> None:
    """A value that contains itself is too deep, like any other value of that depth."""
    value: list[object] = []
    value.append(value)

    with pytest.raises(RequestError, match="at most 500 levels"):
        check_values(value, where="here")


def test_other_values_pass_where_json_is_not_asked_for() -> None:
    """Values that are only rendered may contain dates and keys other than text. Depth and size are still limited."""
    check_values([datetime.now(UTC), {5: "five"}], where="here", only_json=False)

    with pytest.raises(RequestError, match="at most 500 levels"):
        check_values(nested(MAX_DEPTH + 1), where="here", only_json=False)


def test_lists_and_objects_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The maximum number of lists and objects is accepted, but not one more."""
    monkeypatch.setattr("unrender.json_values.MAX_VALUES", 3)

    check_values([[], [], []], where="here")
    with pytest.raises(RequestError, match="here: expected at most 3 lists and objects, found more"):
        check_values([[], [[]], []], where="here")
