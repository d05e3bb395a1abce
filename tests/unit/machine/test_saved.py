"""Fields of saved JSON data: each of the type and in the range that is asked for, or an error that says where."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.errors import StateError
from unrender.machine.saved import MOST, Saved

DATA: dict[str, Any] = {
    "text": "a",
    "flag": False,
    "number": 5,
    "choice": "b",
    "items": [1, "x"],
    "texts": ["a", "b"],
    "numbers": [1, 1, 3],
    "object": {"inner": "x"},
    "nothing": None,
    "objects": [{"a": 1}, {"a": 2}],
    "long": "x" * 100,
}
SAVED = Saved(DATA)


def test_fields_of_the_right_kind() -> None:
    """They come as they are."""
    assert SAVED.text("text") == "a"
    assert SAVED.flag("flag") is False
    assert SAVED.number("number", 5, 5) == 5
    assert SAVED.choice("choice", {"a": 1, "b": 2}) == 2
    assert SAVED.items("items") == [1, "x"]
    assert SAVED.texts("texts") == ["a", "b"]
    assert SAVED.numbers("numbers", 1, 3) == [1, 1, 3]
    assert SAVED.object("nothing") is None
    assert SAVED.object("absent") is None
    assert SAVED.part("object").text("inner") == "x"
    assert [item.number("a") for item in SAVED.objects("objects")] == [1, 2]
    inner = SAVED.object("object")
    assert inner is not None
    assert inner.text("inner") == "x"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: SAVED.text("flag"), "state.flag: expected a string, found False"),
        (lambda: SAVED.text("absent"), "state.absent: expected a string, found 'nothing'"),
        (lambda: SAVED.flag("number"), "state.number: expected true or false, found 5"),
        (lambda: SAVED.number("text"), f"state.text: expected an integer from 0 to {MOST}, found 'a'"),
        (lambda: SAVED.number("flag"), f"state.flag: expected an integer from 0 to {MOST}, found False"),
        (lambda: SAVED.number("number", 6), f"state.number: expected an integer from 6 to {MOST}, found 5"),
        (lambda: SAVED.number("number", 0, 4), "state.number: expected an integer from 0 to 4, found 5"),
        (lambda: SAVED.choice("choice", {"a": 1, "c": 2}), "state.choice: expected one of a, c, found 'b'"),
        (lambda: SAVED.choice("items", {"a": 1}), "state.items: expected one of a, found [1, 'x']"),
        (lambda: SAVED.items("text"), "state.text: expected a list, found 'a'"),
        (lambda: SAVED.texts("items"), "state.items: expected a list of strings, found [1, 'x']"),
        (
            lambda: SAVED.numbers("numbers", 2, 3),
            "state.numbers: expected a rising list of integers from 2 to 3, found [1, 1, 3]",
        ),
        (
            lambda: SAVED.numbers("numbers", 1, 2),
            "state.numbers: expected a rising list of integers from 1 to 2, found [1, 1, 3]",
        ),
        (
            lambda: Saved({"a": [2, 1]}).numbers("a", 0, 9),
            "state.a: expected a rising list of integers from 0 to 9, found [2, 1]",
        ),
        (
            lambda: Saved({"a": [True]}).numbers("a", 0, 9),
            "state.a: expected a rising list of integers from 0 to 9, found [True]",
        ),
        (
            lambda: Saved({"a": ["1"]}).numbers("a", 0, 9),
            "state.a: expected a rising list of integers from 0 to 9, found ['1']",
        ),
        (lambda: Saved([]), "state: expected an object, found list"),
        (lambda: SAVED.object("text"), "state.text: expected an object, found str"),
        (lambda: SAVED.part("nothing"), "state.nothing: expected an object, found NoneType"),
        (lambda: SAVED.part("object").flag("inner"), "state.object.inner: expected true or false, found 'x'"),
        (lambda: SAVED.objects("texts"), "state.texts[0]: expected an object, found str"),
        (lambda: SAVED.objects("objects")[1].text("a"), "state.objects[1].a: expected a string, found 2"),
        (lambda: SAVED.flag("long"), f"state.long: expected true or false, found '{'x' * 59}"),
        (lambda: SAVED.require("text", False, "more"), "state.text: expected more, found 'a'"),
    ],
)
def test_fields_of_another_kind(ask: Any, message: str) -> None:
    """The error says where, what was expected, and what was found, of which not too much."""
    with pytest.raises(StateError) as raised:
        ask()
    assert str(raised.value) == message


def test_a_requirement_that_holds() -> None:
    """Nothing happens."""
    SAVED.require("text", True, "more")

    assert MOST == 9007199254740992
