"""Nodes of numbers, lists and other shapes, and their weights."""

from __future__ import annotations

import itertools
import json
import re
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from cases import cases
from hypothesis import assume, given
from hypothesis import strategies as st
from lines import generates, node_line, shape_line
from schema_rows import read, schema_rows

from unrender import GrammarError, Limits
from unrender.answer.build import calls_in_syntax
from unrender.format import CallSyntax, Format, Slot
from unrender.grammar import Grammar, conforms, unsupported_keywords
from unrender.grammar.expansion import Values, expand
from unrender.limits import STANDARD
from unrender.nodes import JsonValue, Sequence
from unrender.nodes.patterns import write_pattern
from unrender.schema import Reading
from unrender.schema.integers import integer_node, multiples, number_node
from unrender.schema.reader import read_schema, within
from unrender.schema.shapes import (
    Array,
    Integer,
    Nothing,
    Null,
    Number,
    Object,
    Property,
    Reference,
    Shape,
    Text,
    Union,
)
from unrender.schema.weights import Scale, Weight
from unrender.schema.writer import Unwritable, shape_schema, write_schema
from unrender.types import Tool

ROWS = [row for row in schema_rows() if "error" not in row]


def test_the_written_schema_admits_the_same_values():
    """A schema validator agrees with the rows, except for floating-point numbers, which it rounds."""
    for row in ROWS:
        with suppress(Unwritable):
            validator = jsonschema.Draft202012Validator(write_schema(read_schema(row["schema"])))
            for field in ("accepts", "rejects"):
                values = [value for value in row.get(field, ()) if not re.search(r"[0-9][.e]", json.dumps(value))]
                assert [value for value in values if validator.is_valid(value) != (field == "accepts")] == [], row


@cases
def test_a_schema_is_written_in_few_keywords(schema, written):
    """Types are explicit, objects are closed, integers have the rules' number of digits, and recursion uses `$defs`."""
    assert write_schema(read_schema(schema)) == written


@cases
def test_what_engines_do_not_say_is_not_written(schema, reason):
    """Keywords that engines don't support are left to the grammar's rules."""
    with pytest.raises(Unwritable, match=reason):
        write_schema(read_schema(schema))


def test_the_impossible_has_no_schema():
    """`Nothing` can't be written, and callers remove it first."""
    with pytest.raises(ValueError, match="no value has this shape"):
        shape_schema(Nothing())


WHOLE = st.integers(-12_000, 12_000)
BOUND = st.none() | WHOLE
DECIMAL = st.decimals(min_value=-120, max_value=120, places=2)


@given(low=BOUND, high=BOUND, value=WHOLE)
def test_whole_numbers_are_exactly_those_within_the_bounds(low, high, value):
    """An integer is generated if and only if it's within the bounds, which are inclusive."""
    assume(low is None or high is None or low <= high)

    assert generates(integer_node(low, high), str(value)) == (
        (low is None or value >= low) and (high is None or value <= high)
    )


def test_no_number_between_the_bounds_is_an_error():
    """An empty range has no node."""
    with pytest.raises(ValueError, match="no integer between 3 and 2"):
        integer_node(3, 2)


@given(
    low=st.none() | DECIMAL, high=st.none() | DECIMAL, value=DECIMAL, open_low=st.booleans(), open_high=st.booleans()
)
def test_numbers_are_exactly_those_within_the_bounds(low, high, value, open_low, open_high):
    """A decimal is generated if and only if it's within the bounds, which are inclusive unless marked as exclusive."""
    assume(low is not None or high is not None)
    assume(low is None or high is None or low < high)
    shape = Number(minimum=low, maximum=high, exclusive_minimum=open_low, exclusive_maximum=open_high)
    above = low is None or (value > low if open_low else value >= low)
    below = high is None or (value < high if open_high else value <= high)

    text = format(value.normalize() if value else Decimal(0), "f")

    assert generates(number_node(shape), text) == (above and below)


@cases
def test_a_range_is_cut_into_few_blocks(low, high, pattern):
    """A range of integers is divided by length, then by digit. Without a bound, integers have up to 18 digits."""
    assert write_pattern(integer_node(low, high)) == pattern


THOUSANDTHS = [
    (value, text, len(text.partition(".")[2]))
    for value in (Decimal(count) / 1000 for count in range(-3100, 4000))
    for text in [format(value.normalize(), "f") if value else "0"]
]


def number(low, high, open_, places):
    return Number(
        minimum=low and Decimal(low),
        maximum=high and Decimal(high),
        exclusive_minimum="(" in open_,
        exclusive_maximum=")" in open_,
        places=places,
    )


@cases
def test_every_number_between_two_bounds_has_a_spelling_and_no_other_number_has(low, high, open_, places):
    """All numbers with up to three places around the bounds agree with arithmetic. Trailing zeros are allowed."""
    written = re.compile(write_pattern(number_node(number(low, high, open_, places))))
    least, most = low and Decimal(low), high and Decimal(high)
    for value, text, digits in THOUSANDTHS:
        above = least is None or value > least or (value == least and "(" not in open_)
        below = most is None or value < most or (value == most and ")" not in open_)
        fits = places is None or digits <= places
        assert (written.fullmatch(text) is not None) == (above and below and fits), text


@cases
def test_numbers_without_bounds(shape, pattern):
    """The number of digits is limited. Exponents are allowed if places aren't limited. Fractions are never whole."""
    assert write_pattern(number_node(Number(**shape))) == pattern


def test_no_number_between_two_bounds_is_an_error():
    """An empty range has no node."""
    with pytest.raises(ValueError, match="no number between 2 and 1"):
        number_node(number("2", "1", "", None))


@cases
def test_multiples_between_bounds_are_listed_where_they_are_few(low, high, step, expected):
    """Up to 256 multiples are listed. One-sided bounds and large steps aren't supported."""
    found = multiples(Integer(minimum=low, maximum=high, multiple=step))

    assert (found and node_line(found.node)) == expected


def test_as_many_multiples_as_are_listed():
    """256 multiples are still listed."""
    found = multiples(Integer(minimum=0, maximum=767, multiple=3))

    assert node_line(found.node) == " | ".join(f"'{value}'" for value in range(0, 768, 3))
    assert found.rules == {}


NATURAL = (
    "'1' $multiple-of-2-1 | '2' $multiple-of-2-0 | '3' $multiple-of-2-1 | '4' $multiple-of-2-0 | '5' $multiple-of-2-1"
)
NATURAL += " | '6' $multiple-of-2-0 | '7' $multiple-of-2-1 | '8' $multiple-of-2-0 | '9' $multiple-of-2-1"


@cases
def test_multiples_without_bounds_are_counted_digit_by_digit(low, high, expected):
    """Each remainder has a rule. Bounds beyond 18 digits are ignored, and no number starts with zero."""
    found = multiples(Integer(minimum=low, maximum=high, multiple=2))

    assert node_line(found.node).replace("(", "").replace(")", "") == expected.replace("(", "").replace(")", "")
    even = "'0' $multiple-of-2-0 | " + NATURAL
    assert {name: node_line(node) for name, node in found.rules.items()} == {
        "multiple-of-2-0": f"{even} | ''",
        "multiple-of-2-1": even,
    }


def test_the_largest_step_that_is_counted():
    """Steps up to 64 have a rule for each remainder."""
    assert len(multiples(Integer(multiple=64)).rules) == 64


@pytest.mark.parametrize("places", [None, 2])
def test_edges_with_more_digits_than_are_written(places):
    """A bound of twenty digits is as exact as one of eighteen."""
    low, high = Decimal("0.12345678901234567891"), Decimal("2.98765432109876543219")
    written = re.compile(write_pattern(number_node(Number(minimum=low, maximum=high, places=places))))

    inside = ["0.13", "0.2", "1", "1.55", "2", "2.9", "2.98"]
    outside = ["0", "0.1", "0.12", "2.99", "3"]
    assert [text for text in (*inside, *outside) if written.fullmatch(text)] == inside


VALUES = (0, 1, 2, "a", None)
LISTS = [list(found) for length in range(5) for found in itertools.product(VALUES, repeat=length)]
FLAG = {"type": "boolean"}


@cases
def test_a_list_is_admitted_exactly_when_its_schema_says_so(schema):
    """No keyword is unsupported, and the shape agrees with JSON Schema on every short list."""
    valid = jsonschema.Draft202012Validator(schema).is_valid

    assert unsupported_keywords(schema) == ()
    assert [found for found in LISTS if conforms(found, schema) != valid(found)] == []


@cases
def test_what_a_list_admits(schema, admitted, refused):
    """Counted items have the type that their keywords imply. The first items may have their own shapes."""
    assert [found for found in (*admitted, *refused) if conforms(found, schema)] == admitted


@cases
def test_a_list_is_read_as_a_line(schema, line, lost):
    """Beyond a few hundred items, `uniqueItems` is unsupported.

    If another document applies, other items may be anything.
    """
    found = read({"schema": schema})

    assert (found.get("shape"), found.get("lost", [])) == (line, lost)


def test_as_many_lists_as_are_written_out(monkeypatch):
    """The limit applies to the total number of items in all lists: here, two lists of one item and two of two."""
    schema = {"items": {"enum": ["a", "b"]}, "uniqueItems": True}
    monkeypatch.setattr("unrender.schema.containers.MAX_OPTIONS", 6)
    written = read({"schema": {**schema, "title": "enough"}})["shape"]
    assert written == '[] | ["a"] | ["b"] | ["a", "b"] | ["b", "a"]'
    monkeypatch.setattr("unrender.schema.containers.MAX_OPTIONS", 5)
    assert read({"schema": {**schema, "title": "too many"}})["shape"] == '[("a" | "b")*]'


NULL, TEXT = Null(), Text()


def reading(shape: Shape, **definitions: Shape) -> Reading:
    return Reading(shape=shape, definitions=definitions, unsupported=())


@cases
def test_a_schema_is_weighed(schema: Any, parts: int, characters: int, depth: int) -> None:
    """The weight counts parts, characters and levels of everything below."""
    assert read_schema(schema).weight == Weight(parts, characters, depth)


def test_a_shared_shape_counts_as_often_as_it_is_used() -> None:
    """A shared shape counts each time, but weighing takes only one step per place."""
    shape: Shape = NULL
    for _ in range(60):
        shape = Object(properties=(Property("a", shape), Property("b", shape)))
    scale = Scale()
    weight = scale.weigh(shape)
    steps = len(scale.kept)

    assert weight == Weight(2**61 - 1, 2 * (2**60 - 1), 60)
    assert steps <= 2 * 61


def test_definitions_are_weighed_beside() -> None:
    """Definitions add no level, and the sum is stored with the reading."""
    found = reading(Array(items=Reference("r")), r=Array(items=Array(items=NULL)), s=Text(excluded=frozenset(["ab"])))

    assert Scale().whole(found.shape, found.definitions) == Weight(26, 2, 2)
    assert found.weight == Weight(26, 2, 2)


@pytest.mark.few(2)
@cases
def test_what_ranges_expand_to_is_weighed(schema: dict[str, Any]) -> None:
    """A thousand bounds are small to read but large to write: too much for one tool. A dozen aren't."""

    def reasons(times: int) -> list[str]:
        properties = {f"p{i}": schema for i in range(times)}
        found: list[str] = []
        within(read_schema({"type": "object", "properties": properties}), STANDARD, lambda _, why: found.append(why))
        return found

    assert reasons(12) == []
    assert all("parts, more than 50000" in why for why in reasons(1500))
    assert reasons(1500)


def test_what_is_too_much_is_not_written_to_be_weighed() -> None:
    """Ranges are only written until the limit is reached."""
    shapes: tuple[Shape, ...] = tuple(Integer(minimum=-(10**16) - i, maximum=10**16 + i) for i in range(5000))
    scale = Scale()

    assert scale.whole(Union(shapes), {}).parts > STANDARD.grammar_parts
    assert scale.ranges < 250_000


def test_a_weight_is_put_above_another() -> None:
    """A weight above another has one more level."""
    assert Weight(2, 3, 1).above(Weight(4, 5, 1)) == Weight(6, 8, 2)
    assert Weight(2, 3, 5).above(Weight(4, 5, 1)) == Weight(6, 8, 5)


@cases
def test_what_is_too_much_is_told(weight: list[int], reason: str) -> None:
    """Depth is checked first, then parts, then characters."""
    assert Weight(*weight).too_much(Limits(tool_parts=10, tool_characters=20, tool_depth=3)) == reason


@cases
def test_a_tool_is_wider_where_it_is_too_much(
    schema: Any, limits: dict[str, int], line: str, parts: int, reported: list[list[str]]
) -> None:
    """Arguments that are too heavy by themselves are widened first, then all arguments."""
    losses: list[list[str]] = []
    found, weight = within(read_schema(schema), Limits(**limits), lambda *loss: losses.append([*loss]))

    assert (shape_line(found.shape), weight.parts, losses) == (line, parts, reported)


def expanded(*tools: Tool, limits: Limits = STANDARD, twice: bool = False, values: Values = Values.SPELLED) -> object:
    function = (Slot.NAME, Slot.ARGUMENTS)
    syntaxes = (CallSyntax(function=function), CallSyntax(function=(*function, "!")))
    call, other = (replace(calls_in_syntax(Format(), syntax), tools=tools) for syntax in syntaxes)
    return expand(Grammar(Sequence((call, other)) if twice else call), values, limits)


def tool(name: str, count: int) -> Tool:
    """Return a tool with `count` arguments. Each costs two characters and a part; the tool itself costs one part."""
    properties = {f"p{at}": {"type": "null"} for at in range(count)}
    return Tool(name=name, parameters={"type": "object", "properties": properties, "additionalProperties": False})


def test_all_tools_together_are_bounded() -> None:
    """The error has the total, the limit and the largest tool."""
    small, large = tool("small", 2), tool("large", 5)

    assert expanded(small, large, limits=Limits(grammar_parts=9)).weight == Weight(9, 14)  # type: ignore[attr-defined]
    with pytest.raises(GrammarError) as caught:
        expanded(small, large, limits=Limits(grammar_parts=8))
    assert str(caught.value) == (
        "tools: the first 2 take 9 parts, more than 8: offer fewer tools, or simplify them; "
        "the largest is 'large', at #/properties"
    )
    with pytest.raises(GrammarError, match="the first 2 take 14 characters, more than 13"):
        expanded(small, large, limits=Limits(grammar_characters=13))


def test_a_tool_counts_once_however_often_it_is_called() -> None:
    """The same tool in another syntax costs nothing extra."""
    assert expanded(tool("a", 2), limits=Limits(grammar_parts=3), twice=True).weight == Weight(3, 4)  # type: ignore[attr-defined]


def test_a_response_is_bounded_as_a_tool_is() -> None:
    """A response that is too heavy is an error, since it can't be widened."""
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    grammar = Grammar(JsonValue(schema))

    assert expand(grammar, Values.SPELLED, Limits(tool_parts=2)).unsupported == ()
    with pytest.raises(GrammarError) as caught:
        expand(grammar, Values.SPELLED, Limits(tool_parts=1))
    assert str(caught.value) == "response schema: #: it has 2 parts, more than 1; simplify it"
