"""Immutable data, copies that can be changed, and nested values, which `prepare` and `parser` accept up to a limit."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from unrender import ChatTemplate, RequestError
from unrender.json_values import FrozenDict, FrozenList, content_key, frozen, thawed

DATA: dict[str, Any] = {"a": [1, {"b": None}], "c": {"d": ["e"]}}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "set": lambda data: data.__setitem__("a", 1),
    "delete": lambda data: data.__delitem__("a"),
    "update": lambda data: data.update(a=1),
    "or": lambda data: data.__ior__({"a": 1}),
    "pop": lambda data: data.pop("a"),
    "popitem": lambda data: data.popitem(),
    "setdefault": lambda data: data.setdefault("z", 1),
    "clear": lambda data: data.clear(),
    "item": lambda data: data["a"].__setitem__(0, 2),
    "no item": lambda data: data["a"].__delitem__(0),
    "append": lambda data: data["a"].append(2),
    "extend": lambda data: data["a"].extend([2]),
    "insert": lambda data: data["a"].insert(0, 2),
    "remove": lambda data: data["a"].remove(1),
    "last": lambda data: data["a"].pop(),
    "sort": lambda data: data["a"].sort(),
    "reverse": lambda data: data["a"].reverse(),
    "plus": lambda data: data["a"].__iadd__([2]),
    "times": lambda data: data["a"].__imul__(2),
    "no items": lambda data: data["a"].clear(),
    "inside": lambda data: data["a"][1].update(b=1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_frozen_data_cannot_be_changed(change):
    """Any change raises a `TypeError` at every depth, and has no effect."""
    data = frozen(DATA)

    with pytest.raises(TypeError, match="shared and immutable"):
        change(data)
    assert data == DATA


def test_every_way_to_change_is_closed():
    """Python's lists and dicts have no other mutating methods of their own."""
    kept = {"__init__", "__new__", "__class_getitem__", "__reversed__", "copy", "get", "items", "keys", "values"}
    reading = {"count", "index", "__contains__", "__getitem__", "__iter__", "__len__", "__or__", "__ror__", "__add__"}
    reading |= {"__mul__", "__rmul__", "__sizeof__", "__doc__", "__hash__", "__repr__", "__getattribute__"}
    reading |= {"fromkeys", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}

    for kind, mutable in ((FrozenDict, dict), (FrozenList, list)):
        assert set(vars(mutable)) - set(vars(kind)) - kept - reading == set()


def test_frozen_data_are_copies():
    """Frozen data doesn't depend on the original. Tuples and mappings of any kind are accepted."""
    own = copy.deepcopy(DATA)
    data = frozen(own)
    own["a"].append(2)

    assert data == DATA
    assert frozen(MappingProxyType({"a": ({"b": 1},)})) == {"a": [{"b": 1}]}
    assert frozen(data) is data
    assert frozen("text") == "text"


def test_frozen_data_are_data():
    """Frozen data can be written as JSON, pickled, copied and merged like lists and dicts."""
    data = frozen(DATA)

    assert json.dumps(data) == json.dumps(DATA)
    assert {**data, "a": 1} == {**DATA, "a": 1}
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        assert other == DATA
        with pytest.raises(TypeError):
            other["c"]["d"].append(1)


def test_thawed_data_are_plain():
    """The copy consists of plain dicts and lists. Changing it changes nothing else."""
    data = frozen(DATA)
    own = thawed(data)
    own["a"][1]["b"] = own["c"]["d"] = 1

    assert data == DATA
    assert [type(part) for part in (own, own["a"], own["a"][1])] == [dict, list, dict]


def test_shared_parts_cost_no_more():
    """Parts that are shared exponentially often, and a value that contains itself, are copied quickly."""
    shared: Any = []
    for _ in range(5000):
        shared = [shared, shared]
    cyclic: dict[str, Any] = {}
    cyclic["self"] = [cyclic]
    found = frozen(cyclic)

    assert frozen(shared)[0] is not None
    assert found["self"][0] is found
    assert type(thawed(found)["self"][0]) is dict


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("1", 1), ([1], (1,)), (None, "")])
def test_values_that_differ_have_different_keys(one, other):
    """In Python, True equals 1, but not in a schema."""
    assert content_key({"enum": [one]}) != content_key({"enum": [other]})


def test_values_that_hold_each_other_many_times_have_a_key_at_once():
    """Values that contain themselves or unfold into 2 ** 200 parts get a key quickly."""
    endless: list[object] = []
    endless += [endless, endless]
    shared: dict[str, object] = {}
    for _ in range(200):
        shared = {"a": shared, "b": shared}

    assert content_key(endless)
    assert content_key(shared)


def test_frozen_data_have_one_key():
    """The key of a frozen dict is computed once. Values other than plain data have none."""
    data, other = frozen(DATA), frozen({"a": object()})

    assert content_key(data) == content_key(frozen(DATA)) != b""
    assert content_key(data) is content_key(data)
    assert content_key(other) == b""
    assert pickle.loads(pickle.dumps(data)) == copy.deepcopy(data) == DATA


RENDERS_ALL = (
    "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "</>{% endfor %}{{ '' if mine is defined }}<assistant>"
)
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def template() -> ChatTemplate:
    return ChatTemplate.from_string(RENDERS_ALL)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"type": "object"}
    value["properties"] = {"again": value}
    return value


def shared(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value, "b": value}
    return value


def tool(parameters: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}


def asked(arguments: Any) -> dict[str, Any]:
    call = {"type": "function", "id": "1", "function": {"name": "f", "arguments": arguments}}
    return {"messages": [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call]}, *HELLO]}


HOSTILE: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "deep schema": (lambda: tool(nested(5000)), r"tools\[0\]\.a|tools\[0\]\.function\.parameters\.a"),
    "deep enum": (lambda: tool({"enum": [nested(5000)]}), r"tools\[0\]\.function\.parameters\.enum\[0\]\.a"),
    "cyclic schema": (lambda: tool(cyclic()), r"parameters\.properties\.again"),
    "shared schema": (lambda: tool(shared(60)), "at most 1000000 lists and objects"),
    "number as key": (lambda: tool({"properties": {5: {}}}), r"properties: expected text as keys, found 5"),
    "date in a schema": (lambda: tool({"default": datetime.now(UTC)}), r"default: expected JSON, found datetime"),
    "deep arguments": (lambda: asked(nested(5000)), r"messages\[1\]\.tool_calls\[0\]\.function\.arguments"),
    "cyclic arguments": (lambda: asked(cyclic()), r"messages\[1\]\.tool_calls\[0\]\.function\.arguments"),
    "date in arguments": (lambda: asked({"at": datetime.now(UTC)}), r"arguments\.at: expected JSON, found datetime"),
    "deep content": (
        lambda: {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "more": nested(5000)}]}]},
        r"messages\[0\]\.content\[0\]\.more\.a",
    ),
    "deep response format": (
        lambda: {"response_format": {"type": "json_schema", "json_schema": {"schema": nested(5000)}}},
        r"response_format\.json_schema\.schema\.a",
    ),
    "deep documents": (lambda: {"documents": [nested(5000)]}, "documents: expected at most 500 levels"),
    "cyclic variable": (lambda: {"mine": cyclic()}, "mine: expected at most 500 levels"),
    "shared variable": (lambda: {"mine": shared(60)}, "mine: expected at most 1000000 lists and objects"),
    "variable without a copy": (lambda: {"mine": (x for x in "a")}, "mine: expected a value that can be copied"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        pytest.param(*row, id=name, marks=pytest.mark.full if name == "shared variable" else ())
        for name, row in HOSTILE.items()
    ],
)
def test_hostile_values_are_an_error_that_names_the_place(template, arguments, place):
    """A value that is nested too deeply, contains itself or isn't JSON raises a `RequestError`."""
    with pytest.raises(RequestError, match=place) as caught:
        template.prepare(**{"messages": HELLO} | arguments())

    assert len(str(caught.value)) < 600


def test_deep_values_are_rendered(template):
    """Values below the limit are rendered: a schema of 200 nested objects has 400 levels."""
    value: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        value = {"type": "object", "properties": {"a": value}}

    turn = template.prepare(HELLO, tools=tool(value)["tools"])

    assert turn.prompt.count("properties") == 200


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000])
def test_arguments_that_are_nested_too_deeply_stay_text(template, text):
    """Arguments as JSON text that is nested too deeply come from a model, so they are rendered as text."""
    assert text in template.prepare(asked(text)["messages"]).prompt.replace("\\", "")


def test_arguments_with_a_long_number_stay_text(template):
    """JSON with a number of 5,000 digits, which Python doesn't convert, is rendered as text."""
    text = f'{{"a": {"9" * 5000}}}'

    turn = template.prepare(asked(text)["messages"])

    assert json.dumps(text)[1:-1] in turn.prompt
