"""Guards of operators and filters, each at its limit and one beyond it."""

from __future__ import annotations

import pytest

from unrender.rendering.cost import CostBudget, Exhausted, Limits
from unrender.rendering.growth import (
    Operands,
    count_of,
    guard_comparisons,
    guard_filter,
    guard_integer,
    guard_join,
    guard_keys,
    guard_numeric,
    guard_operator,
    guard_padding,
    guard_percent,
    guard_replace,
    guard_result,
    guard_slow_list,
    guard_slow_text,
)

AMPLE = 10**9


def budget(*, characters=AMPLE, items=AMPLE, steps=AMPLE):
    return CostBudget(Limits(characters=characters, items=items, steps=steps, seconds=60))


COSTS = [
    ("+", "abc", "de", "characters", 5),
    ("+", b"abc", bytearray(b"d"), "characters", 4),
    ("+", [1], [2, 3], "items", 3),
    ("+", (1, 2), (3, 4), "items", 4),
    ("*", "ab", 3, "characters", 6),
    ("*", 3, "ab", "characters", 6),
    ("*", [0, 1], 4, "items", 8),
    ("*", 4, (0,), "items", 4),
    ("*", "abc", True, "characters", 3),
    ("%", "%5d", (1,), "characters", 44),  # 3 of the text, 5 of the width, 36 for the tuple in the arguments
    ("%", "%*d", (7, 1), "characters", 59),  # 3, all numbers of the arguments, 48
    ("%", "%*d", (-7, 1), "characters", 59),
    ("%", "%s%s", "x", "characters", 38),  # 4, and twice 17
]


@pytest.mark.parametrize(("operator", "left", "right", "limit", "cost"), COSTS)
def test_an_operator_needs_room_for_its_result(operator, left, right, limit, cost):
    """An operation is done where its result has room, and refused where one character or item is missing."""
    guard_operator(budget(**{limit: cost}), operator, left, right)

    with pytest.raises(Exhausted, match=f"more than {cost - 1} "):
        guard_operator(budget(**{limit: cost - 1}), operator, left, right)


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [
        ("+", "a", [1]),
        ("-", "a", "b"),
        ("*", "abc", -3),
        ("*", [1], -3),
        ("*", 2.5, 3),
        ("*", {"a": 1}, 3),
        ("%", [1], (1,)),
    ],
)
def test_what_makes_nothing_costs_nothing(operator, left, right):
    """An operation that fails in Python, or makes an empty text, is left to Python."""
    guard_operator(budget(characters=0, items=0), operator, left, right)


@pytest.mark.parametrize(
    ("operator", "left", "most", "more"),
    [
        ("**", 2, 4096, 4097),  # two bits each
        ("*", 2**4095, 2**4095, 2**4096),
        ("+", 1, 2**8191 - 1, 2**8191),
        ("-", 2**8191 - 1, 1, 2**8191),
        ("%", 2**8191 - 1, 1, 2**8191),
        ("+", 1, -(2**8191 - 1), -(2**8191)),
    ],
)
def test_integers_grow_to_8192_bits(operator, left, most, more):
    """The length of a number is foreseen from its operands, before it is computed."""
    guard_operator(budget(), operator, left, most)

    with pytest.raises(Exhausted, match="an integer of more than 8192 bits"):
        guard_operator(budget(), operator, left, more)


def test_an_integer_has_8192_bits_at_most():
    """The longest number passes, the next one does not."""
    guard_integer(2**8192 - 1)

    with pytest.raises(Exhausted, match="8192 bits"):
        guard_integer(2**8192)


@pytest.mark.parametrize(
    ("result", "limit", "cost"),
    [("abc", "characters", 3), (b"ab", "characters", 2), ([1, 2], "items", 2), ((1, 2, 3), "items", 3)],
)
def test_a_result_is_counted(result, limit, cost):
    """What a filter returns is counted by its length."""
    guard_result(budget(**{limit: cost}), result)

    with pytest.raises(Exhausted):
        guard_result(budget(**{limit: cost - 1}), result)


def test_a_result_that_is_a_long_integer_is_refused():
    """A filter like `sum` can make a number that no operator made."""
    with pytest.raises(Exhausted, match="8192 bits"):
        guard_result(budget(), 2**8192)


@pytest.mark.parametrize("result", [{"a": 1}, None, 2.5, iter([1])])
def test_other_results_are_free(result):
    """A dict or a stream is counted when something is done with it."""
    guard_result(budget(characters=0, items=0), result)


@pytest.mark.parametrize(
    "odd",
    [
        lambda count: Operands(None, (dict.fromkeys(range(count), 0),)),
        lambda count: Operands(None, ([(number, 0) for number in range(count)],)),
        lambda count: Operands(None, (dict.fromkeys(range(1000), 0), [(number, 0) for number in range(count - 1000)])),
    ],
    ids=["mapping", "pairs", "both"],
)
def test_5000_keys_may_be_something_else_than_text(odd):
    """Keys whose hashes somebody may have chosen are counted together, wherever they come from."""
    guard_keys(budget(), odd(5000))

    with pytest.raises(Exhausted, match="hashes more than 5000 keys that are not text"):
        guard_keys(budget(), odd(5001))


@pytest.mark.parametrize(
    "given",
    [{str(number): 0 for number in range(6000)}, [(str(number), 0) for number in range(6000)], [()] * 6000, 6000],
)
def test_keys_that_are_text_are_free(given):
    """Text is hashed with a secret, and what is not a pair is not a key."""
    guard_keys(budget(), Operands(None, (given,)))


def test_keywords_are_weighed():
    """`dict(a=…)` holds what it is given."""
    guard_keys(budget(characters=18), Operands(None, kwargs={"a": "x" * 18}))

    with pytest.raises(Exhausted, match="more than 23 characters"):
        guard_keys(budget(characters=23), Operands(None, kwargs={"a": [1]}))


def test_a_search_compares_a_hundred_million_characters_at_most():
    """A naive search costs the product of both lengths; what is not text is not searched."""
    guard_comparisons("x" * 10_000, "y" * 10_000)
    guard_comparisons("x" * 10_001, 10_000)

    with pytest.raises(Exhausted, match="compares more than 100000000 characters"):
        guard_comparisons(b"x" * 10_001, b"y" * 10_000)


CHARACTERS = [
    (guard_padding, Operands("a\nb", (4,)), 11),  # both lines by 4
    (guard_padding, Operands("\t", (8,)), 17),  # the tab, and the line
    (guard_padding, Operands("ab", ("--",)), 4),  # an indentation may be text
    (guard_padding, Operands("ab", (3,), {"fillchar": "-"}), 5),  # the widest of all that is given
    (guard_padding, Operands("ab", (-9,)), 2),
    (guard_padding, Operands(1234, ()), 4),
    (guard_replace, Operands("aXa", ("a", "bcd")), 9),
    (guard_replace, Operands("aXa", (), {"old": "a", "new": "bcd"}), 9),
    (guard_replace, Operands("abc", ("", "--")), 11),  # an empty text occurs before, between and after
    (guard_replace, Operands("abc", ()), 3),
    (guard_replace, Operands(1213, ("1", "xyz")), 10),
    (guard_join, Operands(["a", "b"], (", ",)), 58),
    (guard_percent, Operands(b"%3d", (1,)), 30),
    (guard_slow_text, Operands("abc", ("xy",)), 9),
    (guard_slow_text, Operands("abc", (5,)), 3),
]


@pytest.mark.parametrize(("guard", "asked", "cost"), CHARACTERS)
def test_a_text_is_measured_before_it_is_made(guard, asked, cost):
    """A guard foresees the longest text that can come out."""
    guard(budget(characters=cost), asked)

    with pytest.raises(Exhausted, match=f"text of more than {cost - 1} characters"):
        guard(budget(characters=cost - 1), asked)


@pytest.mark.parametrize(
    ("name", "asked", "cost"),
    [
        ("join", Operands(["a", "b"], ()), 2),
        ("first", Operands([1, 2, 3]), 3),
        ("map", Operands("abcd", ("upper",)), 4),
        ("sort", Operands([1, 2]), 2),
        ("unique", Operands([1, 2]), 2),
        ("batch", Operands([1, 2], (7,)), 7),
        ("slice", Operands([1, 2], (), {"slices": 9}), 9),
        ("slice", Operands([1, 2], (-9,)), 2),
    ],
)
def test_a_filter_needs_room_for_its_items(name, asked, cost):
    """A filter that walks over a list, or makes one, needs room for it."""
    guard_filter(budget(items=cost), name, asked)

    with pytest.raises(Exhausted, match=f"a list of more than {cost - 1} items"):
        guard_filter(budget(items=cost - 1), name, asked)


@pytest.mark.parametrize(
    "name", ["pprint", "striptags", "title", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"]
)
def test_slow_filters_take_100000_characters(name):
    """What needs microseconds for each character gets a short text."""
    guard_filter(budget(), name, Operands("x" * 100_000))

    with pytest.raises(Exhausted, match="searches a text of more than 100000 characters"):
        guard_filter(budget(), name, Operands("x" * 100_001))


@pytest.mark.parametrize("name", ["dictsort", "groupby", "max", "min", "sort", "sum", "unique"])
def test_sorting_filters_take_a_weight_of_400000(name):
    """What compares all items gets a list that is soon compared."""
    guard_slow_list(budget(), Operands("x" * 400_000))
    guard_filter(budget(), name, Operands("x" * 400_000))

    with pytest.raises(Exhausted, match="compares more than 400000 characters"):
        guard_filter(budget(), name, Operands("x" * 400_001))


@pytest.mark.parametrize("name", ["first", "map", "groupby", "select", "selectattr", "batch"])
def test_names_of_attributes_are_short(name):
    """The name of an attribute is split at its dots."""
    guard_filter(budget(), name, Operands([], ("x" * 100_000,)))

    with pytest.raises(Exhausted, match="looks up a name of more than 100000 characters"):
        guard_filter(budget(), name, Operands([], ("x" * 100_001,)))


@pytest.mark.parametrize("name", ["capitalize", "e", "lower", "safe", "string", "trim", "truncate", "upper"])
def test_quick_filters_are_counted_as_reading(name):
    """Copying a text is a step, and so many characters until the next look at the clock."""
    guard_filter(budget(steps=0), name, Operands("x" * 49_219))

    with pytest.raises(Exhausted, match="more than 0 steps"):
        guard_filter(budget(steps=0), name, Operands("x" * 49_220))


@pytest.mark.parametrize("digits", [1000, -1000])
def test_a_number_is_rounded_to_1000_digits(digits):
    """Rounding to a million digits would make a number of so many."""
    guard_filter(budget(), "round", Operands(2.5, (digits,)))

    with pytest.raises(Exhausted, match="rounds to more than 1000 digits"):
        guard_filter(budget(), "round", Operands(2.5, (), {"precision": digits + (1 if digits > 0 else -1)}))


def test_unique_hashes_5000_odd_items():
    """`unique` hashes what it is given, except the letters of a text."""
    guard_filter(budget(), "unique", Operands(list(range(5000))))
    guard_filter(budget(), "unique", Operands("x" * 5001))

    with pytest.raises(Exhausted, match="5000 keys"):
        guard_filter(budget(), "unique", Operands(list(range(5001))))


@pytest.mark.parametrize(("value", "kind"), [("x", "str"), ([1], "list"), (None, "NoneType")])
def test_only_numbers_are_calculated_with(value, kind):
    """`'%999d' is even` would format, and `'x' | round` repeat."""
    with pytest.raises(TypeError, match=f"expected a number, found {kind}"):
        guard_numeric(value)
    with pytest.raises(TypeError, match="expected a number"):
        guard_filter(budget(), "round", Operands(value))


@pytest.mark.parametrize("value", [1, 2.5, True])
def test_numbers_are_calculated_with(value):
    """Whole or not, a number passes."""
    guard_numeric(value)


def test_a_filter_that_no_table_names_is_free():
    """`length` returns no more than it was given."""
    guard_filter(budget(characters=0, items=0, steps=0), "length", Operands("x" * 100_000))


@pytest.mark.parametrize(
    ("text", "part", "count"),
    [("aXa", "a", 2), ("aa", "", 3), (b"aXa", b"a", 2), ("aXa", b"a", 4), (b"aXa", "a", 4), ("aXa", None, 4)],
)
def test_count_of(text, part, count):
    """A part is counted; one of another type is taken for one that is everywhere."""
    assert count_of(text, part) == count


def test_what_is_asked():
    """All arguments are known together, and each by its place or its name."""
    asked = Operands(12, ("a",), {"most": 3})

    assert asked.given == ["a", 3]
    assert asked.text == "12"
    assert Operands(b"12").text == b"12"
    assert asked.argument(0, "sep") == "a"
    assert asked.argument(1, "most", -1) == 3
    assert asked.argument(1, "least", -1) == -1
