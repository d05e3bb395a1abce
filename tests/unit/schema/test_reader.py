"""Reading a schema: limits, places and references, and schemas that no JSON row can hold. For meanings, see `tests/corpus/schemas.jsonl`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import cases
from lines import shape_line
from recipes import ANALYSIS, rows_of
from schema_rows import read

from unrender import ChatTemplate, GrammarError, ToolCall, Turn
from unrender.format import Format
from unrender.grammar import bundled, conforms, unsupported_keywords
from unrender.schema import Unsupported
from unrender.schema import reader as json_schema
from unrender.schema.admission import canonical
from unrender.schema.conjuncts import excluded_schemas
from unrender.schema.places import Place, is_deep, pointer, value_in_words
from unrender.schema.reader import read_schema


def reported(schema):
    return [(item.path, item.keyword) for item in read_schema(schema).unsupported]


def test_a_schema_that_explodes_is_cut_off(monkeypatch):
    """If nested alternatives grow too large, the rest may be anything, and this is reported."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", 50)
    branches = [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(12)]

    assert "schema" in {keyword for _, keyword in reported({"type": "string", "allOf": branches})}


def test_a_reading_is_kept_and_serves_longer_limits_when_it_lost_nothing() -> None:
    """Equal schemas are read once, whatever the maximum length."""
    once, again = (json.loads('{"type": "object", "properties": {"kept": {"type": "string"}}}') for _ in range(2))
    found = read_schema(once, longest=1000)
    assert read_schema(again, longest=1000) is found
    assert read_schema(again) is found


def test_a_reading_with_losses_serves_its_own_limit_alone() -> None:
    """A length that one dialect can't count may be supported by another."""
    schema = {"type": "string", "maxLength": 2000}
    assert read_schema(schema, longest=1000).unsupported
    assert not read_schema(schema).unsupported


def test_equal_numbers_of_other_types_are_other_schemas() -> None:
    """Python's 1 and True are equal, but not in JSON Schema."""
    assert read_schema({"const": 1}) is not read_schema({"const": True})


@pytest.mark.parametrize(("steps", "losses"), [(4, []), (3, ["the schema expands into more than 3 parts"])])
def test_the_parts_of_a_schema_are_counted(monkeypatch, steps, losses):
    """Each place counts, even scalars. Beyond the limit, the rest may be anything."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", steps)
    properties = {"a": {"type": "string"}, "b": {"minLength": 1}, "c": {"minLength": 2}}
    schema = {"type": "object", "properties": properties, "title": f"{steps} steps"}

    assert [item.reason for item in read_schema(schema).unsupported] == losses


def test_listed_values_are_counted(monkeypatch):
    """Ten listed values cost as much as one place."""
    monkeypatch.setattr("unrender.schema.reader.MAX_SCHEMA_PARTS", 14)
    few, many = ({"properties": {"a": {"enum": list(range(n))}, "b": {"minLength": 1}}} for n in (109, 111))

    assert read_schema(few).unsupported == ()
    assert [item.path for item in read_schema(many).unsupported] == ["#/properties/b"]


def test_a_part_of_a_schema_is_read_alone():
    """`at` selects the part, whose references refer to the whole schema."""
    schema = {"$defs": {"a": {"type": "null"}, "b": {"items": {"$ref": "#/$defs/a"}}}, "type": "string"}

    assert shape_line(read_schema(schema, at="#/$defs/b").shape) == "[null*]"
    with pytest.raises(GrammarError, match="'c' is missing"):
        read_schema(schema, at="#/$defs/c")


def test_a_loss_is_told_with_its_tool():
    """The message starts with the tool, if there is one."""
    loss = Unsupported(path="#/a", keyword="not", reason="why", tool="f")

    assert str(loss) == "tool 'f': #/a: not is not enforced: why"
    assert str(Unsupported(path="#", keyword="not", reason="why")) == "#: not is not enforced: why"


@pytest.mark.parametrize("times", [1, 14, 46])
@cases
def test_plain_schemas_are_read_as_all_others(leaf, times):
    """The fast path for common keywords gives the same result as the full reader at any depth."""

    def inside(depth: int, **more: Any) -> dict[str, Any]:
        """Return the leaf inside lists and objects. `more` adds keywords without effect, which need the full reader."""
        inner = inside(depth - 1, **more) if depth else leaf
        here = {f"min{kind}": 0 for kind in more}
        if depth % 2:
            return {"type": "array", "items": inner, **here}
        return {"type": "object", "properties": {"x": inner, "y": leaf}, "required": ["y"] * (depth % 4), **here}

    short, long = (
        _read_or_error({**inside(times, **more), "$defs": {"a": {"type": "null"}}})
        for more in ({}, {"Items": 0, "Properties": 0})
    )

    assert short == long


def _read_or_error(schema: dict[str, Any]) -> object:
    try:
        found = read_schema(schema)
    except GrammarError as error:
        return str(error)
    return found.shape, found.unsupported, found.weight


@cases
def test_objects_are_read_alike_whatever_is_beside_them(schema):
    """A keyword without effect, such as `minProperties: 0`, doesn't change the result."""
    assert _read_or_error(schema) == _read_or_error({**schema, "minProperties": 0})


def test_reading_costs_as_much_as_there_is_to_read(monkeypatch):
    """Twice as many values are canonicalised twice as often, however they are listed."""
    counted: list[Any] = []
    costs = []

    def counting(value: Any) -> str:
        counted.append(value)
        return canonical(value)

    monkeypatch.setattr(json_schema, "canonical", counting)
    for count in (500, 1000):
        counted.clear()
        values = [f"v{i}" for i in range(count)]
        read_schema({"allOf": [{"enum": values}, {"enum": values}], "type": "string"})
        costs.append(len(counted))

    assert costs[1] <= 2 * costs[0] <= 2 * 1000


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


def admitted(schema, value):
    assert unsupported_keywords(schema) == ()
    return conforms(value, schema)


def test_many_ways_to_the_same_part_stay_within_the_budget():
    """Parts are read once for each set of relevant anchors, not once for each path."""
    depth = 40
    rooms = {
        f"r{at}": {
            "$id": f"r{at}",
            "anyOf": [{"$ref": f"r{at + 1}"}, {"properties": {"next": {"$ref": f"r{at + 1}"}}}],
        }
        for at in range(depth)
    }
    last = {f"r{depth}": {"$id": f"r{depth}", "$dynamicAnchor": "end", "type": "null"}}

    assert conforms(None, {"$ref": "r0", "$defs": rooms | last})


@cases
def test_documents_that_are_handed_in_are_followed(schema, documents):
    """Documents are found directly, through others, by pointers, by another name, and relative to the schema."""
    schema = bundled(schema, documents)

    assert admitted(schema, 7)
    assert not admitted(schema, "a")


def test_only_documents_that_are_referred_to_are_taken():
    """No document is added twice or needlessly, and the arguments aren't changed."""
    schema, documents = {"items": {"$ref": "a"}}, {"a": {"$ref": "a#/$defs/b", "$defs": {"b": {}}}, "c": {}}

    found = bundled(schema, documents)

    assert list(found["$defs"]) == ["a"]
    assert bundled(found, documents) is found
    assert bundled(True, documents) is True
    assert schema == {"items": {"$ref": "a"}}


def test_a_document_that_is_false_lets_nothing_pass():
    """A boolean is a valid JSON Schema. For any other value, the error names the document."""
    assert not admitted(bundled({"items": {"$ref": "no"}}, {"no": False}), [1])
    with pytest.raises(GrammarError, match=r"documents\['a'\]: expected a JSON Schema, found 7"):
        bundled({"$ref": "a"}, {"a": 7})  # type: ignore[dict-item]


@pytest.mark.parametrize("row", rows_of(ANALYSIS.with_name("documents.jsonl")))
def test_what_is_referred_to_is_put_into_definitions(row):
    """Each referenced document is added once under its URI. Data isn't searched for references."""
    found = bundled(row["schema"], row["documents"])

    assert found.get("$defs") == (row["defs"] or row["schema"].get("$defs"))
    assert (found is row["schema"]) == (row["defs"] is None)


@pytest.mark.parametrize("word", ["$ref", "$dynamicRef"])
@cases
def test_a_reference_may_take_every_form(reference, line, word):
    """Anchors, pointers and URIs work. Without another anchor of the name, a dynamic reference is like a plain one."""
    listed = {
        "$id": "list",
        "items": {"type": "string"},
        "$defs": {"own": {"$dynamicAnchor": "t", "type": "null"}, "plain": {"$anchor": "p", "type": "boolean"}},
    }
    own = {"plain": {"$anchor": "plain", "type": "integer"}, "list": listed, "t": {"$anchor": "t", "type": "null"}}

    assert read({"schema": {"$id": "http://h/root", word: reference, "$defs": own}}) == {"shape": line}


def test_each_keyword_is_broken_in_its_way() -> None:
    """The complement of a keyword has its type, and sizes differ by one. Patterns and references have no complement."""
    rows = rows_of(ANALYSIS.with_name("complements.jsonl"))

    assert [{**row, "broken": excluded_schemas(row["schema"])} for row in rows] == rows


WRAPPED: list[Any] = [
    lambda schema: {"properties": {"a": schema}},
    lambda schema: {"prefixItems": [schema]},
    lambda schema: {"allOf": [schema]},
    lambda schema: {"anyOf": [schema]},
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_sixteen_levels_are_broken(wrap: Any) -> None:
    """Complements support 16 levels. Each keyword that contains schemas is a level."""
    schema: Any = {"minimum": 1}
    for _ in range(16):
        schema = wrap(schema)

    assert excluded_schemas(schema) is not None
    assert excluded_schemas(wrap(schema)) is None


def turn_with(parameters):
    return ChatTemplate.from_string("", format=Format()).prepare_rendered(
        tools=[{"name": "f", "parameters": parameters}]
    )


def said(turn: Turn, arguments, name="f"):
    tool = turn.request.tool(name)
    return ToolCall(name=name, arguments_json=arguments, id="1", offered=tool is not None, tool=tool).problems()


@cases
def test_problems(schema, arguments, problems):
    """Each problem has its place, the expected value, and the value found. Invalid JSON is a problem, too."""
    assert list(said(turn_with(schema), arguments)) == problems


def test_problems_are_bounded():
    """The number of problems for a long list of wrong values is limited."""
    turn = turn_with({"properties": {"a": {"items": {"type": "null"}}}})

    assert len(said(turn, '{"a": [' + "0, " * 999 + "0]}")) == 100


def test_a_call_of_another_tool_is_a_problem():
    """A call of an unknown tool is a problem, since its schema is unknown."""
    assert said(turn_with({}), "{}", "g") == ("expected the name of an offered tool, found 'g'",)
