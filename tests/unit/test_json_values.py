"""Immutable data, and copies that can be changed."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

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
