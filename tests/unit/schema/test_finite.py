"""What no finite value has is left out; what is left may be anything of its kind."""

from __future__ import annotations

import pytest
from lines import shape_line

from unrender.nodes import Literal
from unrender.schema.admission import finite_definitions, kind_of, kinds_of, options_of, shapes_inside, without_endless
from unrender.schema.shapes import (
    Anything,
    Array,
    Boolean,
    Constant,
    Contained,
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
    alternatives,
    union,
)

NULL, TEXT, ANY, NOTHING, ENDLESS, FINE = Null(), Text(), Anything(), Nothing(), Reference("endless"), Reference("fine")
MUST, MAY = Property("e", ENDLESS, True), Property("e", ENDLESS)
ENDING = {"fine"}


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        (ENDLESS, "never"),
        (FINE, "$fine"),
        (NULL, "null"),
        (Union((ENDLESS, NULL)), "null"),
        (Union((ENDLESS, NULL, FINE)), "null | $fine"),
        (Array(items=ENDLESS), "[]{0,0}"),
        (Array(items=ENDLESS, minimum=1), "never"),
        (Array(items=ENDLESS, maximum=3), "[]{0,0}"),
        (Array(items=FINE, minimum=1), "[$fine*]{1,}"),
        (Array(prefix=(NULL, ENDLESS, NULL), items=TEXT), "[null]{0,1}"),
        (Array(prefix=(NULL, ENDLESS), items=TEXT, minimum=1, maximum=5), "[null]{1,1}"),
        (Array(prefix=(NULL, ENDLESS), items=TEXT, minimum=2), "never"),
        (Array(prefix=(NULL, TEXT), items=ENDLESS, maximum=1), "[null]{0,1}"),
        (Array(prefix=(NULL,), items=TEXT, maximum=4), "[null, string*]{0,4}"),
        (Object(properties=(MUST,)), "never"),
        (Object(properties=(MAY,)), "{}"),
        (Object(properties=(MAY, Property("n", NULL, True))), "{n: null}"),
        (Object(extra=((TEXT, ENDLESS),)), "{}"),
        (Object(extra=((TEXT, ENDLESS),), minimum=1), "never"),
        (Object(extra=((TEXT, ENDLESS), (Text(maximum=1), NULL)), minimum=1), "{(string{0,1}): null}{1,}"),
    ],
)
def test_what_refers_to_the_endless_is_impossible(shape: Shape, line: str) -> None:
    """An item ends its list, a property is left out, and what needs either is impossible itself."""
    assert shape_line(without_endless(shape, ENDING)) == line


def refers(*, required: bool) -> Object:
    return Object(properties=(Property("x", Reference("x"), required),))


@pytest.mark.parametrize(
    ("shape", "is_finite"),
    [
        (NOTHING, False),
        (NULL, True),
        (Reference("x"), False),
        (Union((Reference("x"), NULL)), True),
        (Union((Reference("x"), NOTHING)), False),
        (refers(required=True), False),
        (refers(required=False), True),
        (Array(items=Reference("x")), True),
        (Array(items=Reference("x"), minimum=1), False),
        (Array(prefix=(Reference("x"),), items=NULL), True),
        (Array(prefix=(Reference("x"),), items=NULL, minimum=1), False),
        (Array(prefix=(NULL,), items=Reference("x"), minimum=1), True),
        (Array(prefix=(NULL,), items=Reference("x"), minimum=2), False),
        (Array(items=NULL, minimum=1, contained=Contained(Reference("x"), NULL, 1, None)), False),
        (Array(items=Reference("x"), minimum=1, contained=Contained(NULL, Reference("x"), 1, None)), True),
        (Object(extra=((TEXT, Reference("x")),)), True),
        (Object(extra=((TEXT, Reference("x")),), minimum=1), False),
        (Object(extra=((TEXT, Reference("x")), (TEXT, NULL)), minimum=1), True),
    ],
)
def test_a_definition_is_kept_when_a_finite_value_has_it(shape: Shape, is_finite: bool) -> None:
    """What may be left out needs nothing."""
    assert set(finite_definitions({"x": shape, "n": NULL})) == ({"x", "n"} if is_finite else {"n"})


def test_definitions_are_freed_of_the_endless() -> None:
    """Those that end by way of others are kept, without what does not end."""
    definitions: dict[str, Shape] = {
        "endless": Object(properties=(MUST,)),
        "top": Object(properties=(Property("m", Reference("middle"), True), MAY)),
        "middle": Array(items=Reference("bottom"), minimum=1),
        "bottom": NULL,
    }
    found = finite_definitions(definitions)

    assert {name: shape_line(shape) for name, shape in found.items()} == {
        "top": "{m: $middle}",
        "middle": "[$bottom*]{1,}",
        "bottom": "null",
    }
    kept = finite_definitions({"bottom": NULL})
    assert kept == {"bottom": NULL}


DEFINITIONS: dict[str, Shape] = {
    "n": NULL,
    "loop": Union((Reference("loop"), TEXT)),
    "u": Union((NULL, Reference("n"))),
}


@pytest.mark.parametrize(
    ("shape", "options", "kinds"),
    [
        (NULL, ["null"], ["null"]),
        (Boolean(), ["boolean"], ["boolean"]),
        (Integer(), ["integer"], ["integer"]),
        (Number(), ["number"], ["number"]),
        (TEXT, ["string"], ["string"]),
        (Array(), ["[any*]"], ["array"]),
        (Object(), ["{}"], ["object"]),
        (NOTHING, [], []),
        (Union((TEXT, NULL)), ["string", "null"], ["null", "string"]),
        (Union((Union((TEXT, NULL)), Boolean())), ["string", "null", "boolean"], ["boolean", "null", "string"]),
        (Reference("n"), ["null"], ["null"]),
        (Reference("u"), ["null", "null"], ["null"]),
        (Reference("loop"), ["string"], ["string"]),
        (
            Reference("unknown"),
            ["any"],
            ["array", "boolean", "integer", "null", "number", "object", "string"],
        ),
        (Union((Constant("7"), Constant('"a"'))), ["7", '"a"'], ["integer", "string"]),
    ],
)
def test_a_shape_is_taken_apart(shape: Shape, options: list[str], kinds: list[str]) -> None:
    """References are followed once, and each option has its type."""
    assert list(map(shape_line, options_of(shape, DEFINITIONS))) == options
    assert sorted(kinds_of(shape, DEFINITIONS)) == kinds


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "integer"),
        (1.0, "integer"),
        (1.5, "number"),
        (True, "boolean"),
        ("a", "string"),
        (None, "null"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_a_value_has_the_narrowest_type(value: object, kind: str) -> None:
    """A whole number is an integer however it is written."""
    assert kind_of(value) == kind


OBJECT = Object(properties=(Property("a", NULL),), extra=((Text(pattern=Literal("k")), Boolean()),), others=Integer())


@pytest.mark.parametrize(
    ("shape", "key", "line"),
    [
        (OBJECT, "a", "null"),
        (OBJECT, "k", "boolean"),
        (OBJECT, "x", "integer"),
        (OBJECT, None, "never"),
        (Array(prefix=(NULL,), items=TEXT), None, "null | string"),
        (Array(), "a", "never"),
        (ANY, "a", "any"),
        (ANY, None, "any"),
        (NULL, "a", "never"),
        (Union((OBJECT, Array(items=TEXT))), "a", "null"),
        (Union((OBJECT, Array(items=TEXT))), None, "string"),
        (Object(extra=((TEXT, NULL), (Text(maximum=1), TEXT))), "ab", "null"),
        (Object(extra=((TEXT, NULL), (Text(maximum=1), TEXT))), "a", "null | string"),
    ],
)
def test_what_is_inside_has_a_shape(shape: Shape, key: str | None, line: str) -> None:
    """A declared property, one of the extra ones, one of all others; or any item."""
    assert shape_line(shapes_inside(shape, key, {})) == line


def test_a_choice_has_no_doubles() -> None:
    """Nothing adds nothing, anything takes all, and lists are told apart by where they are."""
    one, other = Array(items=NULL), Array(items=NULL)

    assert union([]) == NOTHING
    assert union([NOTHING, NULL, NULL]) == NULL
    assert union([NULL, Union((NULL, TEXT))]) == Union((NULL, TEXT))
    assert union([NULL, ANY, TEXT]) == ANY
    assert len(union([one, other, one]).options) == 2
    assert list(alternatives(Union((NULL, Union((NOTHING, TEXT)))))) == [NULL, TEXT]
