"""What is wrong with one skeleton: slots that it may not have, or that nothing tells apart."""

from __future__ import annotations

import pytest

from unrender.format import Arguments, Skeleton, Slot
from unrender.format.call_checks import (
    Problem,
    check_after_words,
    check_once,
    check_skeleton,
    check_touching,
    literals,
    text_of_part,
)
from unrender.limits import MAX_PARTS

NAME, ARGUMENTS, ID, INDEX = Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.INDEX
KEY, VALUE, ANY, TYPE = Slot.KEY, Slot.VALUE, Slot.ANY, Slot.TYPE


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        ((), []),
        (("<", NAME, ">", ARGUMENTS), []),
        ((NAME, ARGUMENTS), []),
        (("<", KEY), [("s[1]", "expected one of the slots ['name', 'arguments'], found 'key'")]),
        (("", NAME), [("s[0]", "expected a text or a slot, found nothing")]),
        ((NAME, "<", ">"), [("s[2]", "expected a slot, as a text comes before it")]),
        (("a", NAME) * (MAX_PARTS // 2), []),
        (("a", NAME) * (MAX_PARTS // 2) + ("b",), [("s", "expected at most 32 parts, found 33")]),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_a_skeleton_has_its_own_slots_and_one_text_between_two(parts: Skeleton, problems: list[Problem]) -> None:
    """Each part that breaks this is named by its number."""
    assert list(check_skeleton(parts, (NAME, ARGUMENTS), "s")) == problems


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        (("<", NAME), []),
        (("<", ID), [("s", "expected the slot `name` once, found it 0 times")]),
        ((NAME, "<", NAME), [("s", "expected the slot `name` once, found it 2 times")]),
    ],
)
def test_a_slot_is_there_once(parts: Skeleton, problems: list[Problem]) -> None:
    """Neither missing nor twice."""
    assert list(check_once(parts, NAME, "s")) == problems


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((NAME, ":", ID), []),
        ((NAME, ID), [("s[1]", "name", "id")]),
        ((NAME, "\n", ID), [("s[2]", "name", "id")]),
        ((KEY, " ", VALUE), []),
        ((KEY, VALUE), [("s[1]", "key", "value")]),
        ((NAME, ARGUMENTS), []),
        ((ANY, ARGUMENTS), [("s[1]", "any", "arguments")]),
        ((NAME, ANY, ARGUMENTS), [("s[2]", "any", "arguments")]),
        ((NAME, " ", INDEX), []),
        ((NAME, INDEX), [("s[1]", "name", "index")]),
        ((ID, " ", INDEX), [("s[2]", "id", "index")]),
        ((NAME, " ", TYPE, VALUE), [("s[2]", "name", "type"), ("s[3]", "type", "value")]),
    ],
    ids=repr,
)
def test_slots_that_nothing_tells_apart(parts: Skeleton, found: list[tuple[str, str, str]]) -> None:
    """White space parts a key from its value and a name from a number, no other two; free slots show where they begin."""
    problems = list(check_touching(parts, "s", free=(ARGUMENTS, ANY)))

    assert problems == [(at, f"expected a text between the slots `{a}` and `{b}`") for at, a, b in found]


@pytest.mark.parametrize(
    ("parts", "arguments", "found"),
    [
        ((NAME, "(", ARGUMENTS), {}, []),
        ((NAME, "with", ARGUMENTS), {}, [("s[1]", "name", "with")]),
        ((NAME, "_", ARGUMENTS), {}, [("s[1]", "name", "_")]),
        ((ID, "7"), {}, [("s[1]", "id", "7")]),
        ((KEY, "x", VALUE), {}, [("s[1]", "key", "x")]),
        ((VALUE, "x"), {}, []),
        (("<", NAME), {}, []),
        ((NAME, ARGUMENTS), {}, []),
        ((NAME, ARGUMENTS), {"start": "args("}, [("s[1]", "name", "args(")]),
        ((NAME, ARGUMENTS), {"start": "(", "entry": (KEY, "=", VALUE)}, []),
        ((NAME, ARGUMENTS), {"entry": (KEY, "=", VALUE)}, [("s[1]", "name", "name")]),
        ((NAME, ARGUMENTS), {"entry": (" --", KEY, "=", VALUE)}, []),
        ((NAME, ARGUMENTS), {"when_empty": "none"}, [("s[1]", "name", "{")]),
        ((NAME, ARGUMENTS), {"when_empty": ""}, []),
        ((NAME, "(", ARGUMENTS), {"when_empty": "none"}, []),
    ],
    ids=repr,
)
def test_a_word_that_goes_on_a_name(parts: Skeleton, arguments: dict[str, str], found: list[tuple[str, ...]]) -> None:
    """No letter, digit or `_` follows a name, an id or a key, be it that of the arguments, or of what is instead of them."""
    problems = list(check_after_words(parts, Arguments(**arguments), "s"))

    assert problems == [
        (at, f"expected no letter or digit right after `{slot}`, found {text!r}") for at, slot, text in found
    ]


def test_texts_of_a_skeleton() -> None:
    """A slot has no text; the texts come in their order."""
    assert (text_of_part("<"), text_of_part(NAME)) == ("<", "")
    assert literals(("<", NAME, ">", ARGUMENTS, "</>")) == ["<", ">", "</>"]
