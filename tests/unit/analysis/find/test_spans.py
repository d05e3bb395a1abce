"""Values in text."""

from __future__ import annotations

import pytest

from unrender.analysis.find.rows import arguments_span, json_spans, literal_span, path_to, value_holds


def test_arguments_are_found_in_json():
    """The JSON object that is exactly the arguments is found, wherever it is."""
    text = 'x {"name": "f", "arguments": {"k": 1}} y'

    span = arguments_span(text, {"k": 1})

    assert span is not None
    assert text[span.start : span.end] == '{"k": 1}'


def test_arguments_are_found_in_python():
    """A Python dictionary is found where JSON is none."""
    span = literal_span("call({'k': 1, 'm': None})", {"k": 1, "m": None})

    assert span is not None
    assert span.value == {"k": 1, "m": None}


def test_arguments_are_found_from_a_place_on():
    """What is written before it is another call's, also where it says the same."""
    again = arguments_span('{"k": 1} {"k": 1}', {"k": 1}, 8)

    assert again is not None
    assert again.start == 9
    assert arguments_span('{"k": 1} {"k": 1}', {"k": 1}, 9) == again
    assert arguments_span('{"k": 1} k', {"k": 1}, 8) is None


def test_long_literals_are_found():
    """Their ends are looked for at brackets, not at every character."""
    value = {"k": "x" * 500}

    assert literal_span(str(value), value) is not None


def test_other_values_are_not_arguments():
    """An object that holds more, or a key outside JSON, is not an argument."""
    assert arguments_span('{"k": 1, "other": 2}', {"k": 1}) is None
    assert arguments_span("<k>1</k>", {"k": 1}) is None
    assert literal_span("k: 1", {"k": 1}) is None


def test_spans_survive_hostile_text():
    """A long row of brackets costs a bounded number of trials."""
    assert list(json_spans("[" * 50_000, "[", 50_000)) == []


def test_paths_lead_to_values():
    """A path is the keys from the outside in; values of another type do not match."""
    value = {"function": {"name": "f", "n": 1}}

    assert path_to(value, "f") == ("function", "name")
    assert path_to(value, True) is None
    assert value_holds([value], "name")
    assert not value_holds(value, "g")


def test_as_many_brackets_are_tried_as_are_allowed():
    """The last of them may open JSON; one more is not looked at."""
    spans = [list(json_spans("{" * more + '{"a": 1}', "{", 999)) for more in (399, 400)]

    assert [len(found) for found in spans] == [1, 0]


@pytest.mark.parametrize(
    ("value", "wanted", "path"),
    [
        ({"a": {"b": 1}}, 1, ("a", "b")),
        ({"a": 1, "b": True}, True, ("b",)),
        ({"a": {}, "b": 1}, 1, ("b",)),
        ({"a": 1.0}, 1, None),
        ({"a": 2}, 1, None),
        ([1], 1, None),
    ],
)
def test_path_leads_to_the_first_value_of_its_type(value, wanted, path):
    """Types are told apart, and lists are not entered."""
    assert path_to(value, wanted) == path


@pytest.mark.parametrize(
    ("value", "wanted", "found"),
    [
        ({"k": 1}, "k", True),
        ({"k": [{"m": 2}]}, 2, True),
        ([1, [2]], 2, True),
        ("a", "a", True),
        ({"x": {"k": 1}}, {"k": 1}, True),
        ({"k": 1}, True, False),
        (1, "1", False),
        ({"k": 1}, 5, False),
        ([], 5, False),
    ],
)
def test_values_hold_keys_and_values(value, wanted, found):
    """Anywhere inside, as a key or as a value of the same type."""
    assert value_holds(value, wanted) is found
