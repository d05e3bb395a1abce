"""What a saved parser is made of, field by field, and which values of each field are refused."""

from __future__ import annotations

from typing import Any

import pytest
from properties.families import (
    COUNTED,
    ESCAPED,
    JOINED,
    JSON_ENVELOPE,
    NESTED_TAGS,
    REQUEST,
    TAG_AND_JSON,
    TAGGED,
    Family,
)
from saving import changed, restored, state_of

from unrender.errors import StateError
from unrender.machine.policy import CallRelease, Policy
from unrender.parser.streaming import Parser

AS_WRITTEN = Policy(calls=CallRelease.WRITTEN)
IN_A_STRING = 'Hi\n<tool_call>\n{"name": "now", "arguments": {"a": ["b'
HELD = "<think>So<|calls_begin|><|call_begin|>functions.now:0<|args_begin|>{"
TAGGED_VALUE = "<function=now>\n<parameter=city>\nRo"


def test_a_state_holds_what_its_version_says() -> None:
    """Other processes read it: what is in it changes with `STATE_VERSION` alone."""
    state = state_of(JSON_ENVELOPE, IN_A_STRING)
    del state["digest"], state["for"]

    assert state == {
        "version": 3,
        "finished": False,
        "message": {
            "content": "Hi",
            "reasoning": "",
            "calls": [],
            "dead": [],
        },
        "waiting": [],
        "called": False,
        "broken": [],
        "quoting": {"tokens": [], "held": "", "quoted": []},
        "machine": {
            "answered": True,
            "fenced": False,
            "final": False,
            "given": True,
            "halted": False,
            "length_limited": False,
            "loose": False,
            "mentioned": False,
            "strict": False,
            "pc": 12,
            "base": 53,
            "past": '\n<tool_call>\n{"name": "now", "arguments": {"a": ["b',
            "buffer": "",
            "at": 0,
            "failed_at": -1,
            "wanted": "",
            "calls": 0,
            "closed": 0,
            "steps": 15,
            "reread": 0,
            "ids": [],
            "id_calls": [],
            "id_offset": 0,
            "policy": {
                "unknown_tools": "content",
                "calls_in_reasoning": "rescue",
                "calls": "complete",
                "undeclared_reasoning": "read",
            },
            "roles": [
                "content",
                "layout",
                "marker",
                "layout",
                "marker",
                "layout",
                "marker",
                "name",
                "marker",
                "layout",
                "marker",
                "layout",
                "argument",
            ],
            "ends": [2, 3, 14, 15, 23, 24, 25, 28, 30, 31, 43, 44, 53],
            "carried": [],
            "carried_spans": [],
            "events": [],
            "frames": [],
            "call": {
                "keys": [],
                "arguments": ['{"a": ["b'],
                "held": [],
                "mark": 2,
                "start": 2,
                "name": "now",
                "id": "",
                "key": "",
                "kind": "",
                "latest": "",
                "known": True,
                "begun": False,
                "closed": False,
                "ended": False,
                "listing": False,
                "holds": "",
                "count": 1,
                "recover": 3,
                "separated": 0,
            },
            "scanner": {
                "kind": "envelope",
                "step": 4,
                "path": [],
                "key": "arguments",
                "ids": [],
                "skips": False,
                "repeated": "",
                "others": [],
                "held": [],
                "inner": {"kind": "literal", "state": 7, "stack": "{[", "quote": '"', "comma": "", "keys": 'a"'}
                | {"inner": None},
            },
        },
    }


def test_text_that_is_kept_is_kept_whole() -> None:
    """In however many pieces it came."""
    pieces = [IN_A_STRING[at : at + 7] for at in range(0, len(IN_A_STRING), 7)]

    assert state_of(JSON_ENVELOPE, *pieces)["machine"]["past"] == IN_A_STRING[2:]


def test_a_state_holds_the_ways_back_and_what_waits_for_them() -> None:
    """Calls in reasoning are held until it is known whether they count."""
    machine = state_of(COUNTED, HELD, policy=AS_WRITTEN)["machine"]

    assert machine["events"] == [
        {"kind": "started", "index": 0, "id": "functions.now:0", "name": "now", "known": True},
        {"kind": "arguments", "index": 0, "text": "{"},
    ]
    assert machine["frames"] == [
        {
            "left": 2,
            "events": 0,
            "attempt": 69,
            "at": 9,
            "spans": 2,
            "span_end": 9,
            "calls": 0,
            "holds": True,
            "whole": False,
        }
    ]
    assert (machine["call"]["mark"], machine["call"]["start"]) == (38, 9)


@pytest.mark.parametrize(
    ("family", "text", "scanner"),
    [
        (
            JSON_ENVELOPE,
            '<tool_call>\n{"name": "now", "arguments": "{\\"a',
            {
                "kind": "quoted",
                "opened": True,
                "done": False,
                "inner": {"kind": "literal", "state": 8, "stack": "{", "quote": '"', "comma": "", "keys": "a"}
                | {"inner": None},
            },
        ),
        (
            TAGGED,
            TAGGED_VALUE,
            {"kind": "raw", "is_string": True, "begun": True, "head": "", "blank": False, "held": [], "inner": None},
        ),
        (
            TAGGED,
            "<function=now>\n<parameter=options>\n{'a': [1,",
            {
                "kind": "raw",
                "is_string": False,
                "begun": False,
                "head": "",
                "blank": False,
                "held": [],
                "inner": {"kind": "literal", "state": 2, "stack": "{[", "quote": '"', "comma": ",", "keys": 'a"'}
                | {"inner": None},
            },
        ),
        (
            ESCAPED,
            '<use name="now">\n<with name="city">a &l',
            {
                "kind": "escaped",
                "is_string": True,
                "begun": True,
                "head": "",
                "blank": False,
                "held": [],
                "kept": "&l",
                "inner": None,
            },
        ),
        (
            JOINED,
            "<|do|>now(tags=a b ,",
            {"kind": "joined", "is_string": False, "begun": False, "head": "a b", "blank": True, "held": ["a b "]}
            | {"inner": None},
        ),
        (
            NESTED_TAGS,
            ']<]ns[>[<tool_call>\n]<]ns[>[<invoke name="now">]<]ns[>[<tags>]<]ns[>[<tags>a',
            {"kind": "tags", "depth": 1, "begun": False, "held": ["]<]ns[>[<tags>", "a"], "kept": "", "inner": None},
        ),
        (
            TAG_AND_JSON,
            "<function=now>{'a': 1, ",
            {"kind": "literal", "state": 4, "stack": "{", "quote": '"', "comma": ", ", "keys": 'a"', "inner": None},
        ),
    ],
)
def test_a_state_holds_the_value_that_is_being_read(family: Family, text: str, scanner: dict[str, Any]) -> None:
    """Of each kind what its scanner remembers."""
    found = state_of(family, text)["machine"]["scanner"]

    assert (found["inner"] if found["kind"] == "envelope" else found) == scanner


LAST = 1 << 53
"""Beyond it, readers of JSON disagree about integers."""
REFUSED: list[tuple[Family, str, str, Any]] = [
    (JSON_ENVELOPE, IN_A_STRING, "finished", True),
    (JSON_ENVELOPE, IN_A_STRING, "machine.pc", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.base", -LAST - 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.past", None),
    (JSON_ENVELOPE, IN_A_STRING, "machine.buffer", 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.at", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.at", 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.failed_at", -2),
    (JSON_ENVELOPE, IN_A_STRING, "machine.failed_at", 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.wanted", None),
    (JSON_ENVELOPE, IN_A_STRING, "machine.closed", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.closed", (1 << 30) + 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.steps", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.reread", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.policy.calls", "drop"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.calls", 0),
    (JSON_ENVELOPE, IN_A_STRING, "machine.calls", 2),
    (JSON_ENVELOPE, IN_A_STRING, "machine.ids", []),
    (JSON_ENVELOPE, IN_A_STRING, "machine.id_calls", [-2]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.id_offset", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.roles.0", "talk"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.roles", ["content"]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.ends.12", 54),
    (JSON_ENVELOPE, IN_A_STRING, "machine.ends.0", -LAST - 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.ends.0", 4),
    (JSON_ENVELOPE, IN_A_STRING, "machine.carried", [1]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.carried_spans", [13]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.carried_spans", [-1]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call", None),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.mark", 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.mark", 54),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.start", 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.start", 54),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.recover", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.recover", 1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.holds", "cooked"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.count", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.separated", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.kind", "literal"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.step", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.step", 7),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.ids", [1]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.ids", [["id"], "id"]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner", None),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.kind", "raw"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.state", -1),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.state", 10),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.stack", "{("),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.stack", "[" * 513),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.quote", ""),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.quote", "`"),
    (JSON_ENVELOPE, IN_A_STRING, "message.dead", None),
    (JSON_ENVELOPE, IN_A_STRING, "message.dead", [1]),
    (COUNTED, HELD, "machine.frames.0.attempt", -1),
    (COUNTED, HELD, "machine.frames.0.attempt", 0),
    (COUNTED, HELD, "machine.frames.0.attempt", 1 << 20),
    (COUNTED, HELD, "machine.frames.0.left", -1),
    (COUNTED, HELD, "machine.frames.0.left", 3),
    (COUNTED, HELD, "machine.frames.0.events", -1),
    (COUNTED, HELD, "machine.frames.0.events", 3),
    (COUNTED, HELD, "machine.frames.0.at", 8),
    (COUNTED, HELD, "machine.frames.0.at", 69),
    (COUNTED, HELD, "machine.frames.0.spans", -1),
    (COUNTED, HELD, "machine.frames.0.spans", 9),
    (COUNTED, HELD, "machine.frames.0.span_end", -LAST - 1),
    (COUNTED, HELD, "machine.frames.0.calls", 1),
    (COUNTED, HELD, "machine.frames.0.holds", 1),
    (COUNTED, HELD, "machine.frames.0.holds", False),
    (COUNTED, HELD, "machine.frames.0.whole", True),
    (COUNTED, HELD, "machine.events.0.index", 1),
    (COUNTED, HELD, "machine.events.1.index", 1),
    (COUNTED, HELD, "machine.events.1.index", -1),
    (COUNTED, HELD, "machine.events.0.kind", "begun"),
    (COUNTED, HELD, "machine.scanner.stack", ""),
    (TAGGED, TAGGED_VALUE, "machine.scanner.kind", "literal"),
    (TAGGED, TAGGED_VALUE, "machine.scanner.kind", "escaped"),
    (TAGGED, TAGGED_VALUE, "machine.scanner.begun", None),
    (TAGGED, TAGGED_VALUE, "machine.scanner.inner", {"state": 0}),
]


@pytest.mark.parametrize(
    ("family", "text", "path", "value"), REFUSED, ids=[f"{path}={value!r:.20}" for _, _, path, value in REFUSED]
)
def test_what_no_parser_has_written_is_refused(family: Family, text: str, path: str, value: Any) -> None:
    """The error names the field, and what was expected there."""
    state = changed(state_of(family, text, policy=AS_WRITTEN), path, value)

    with pytest.raises(StateError, match=r"state\.[a-z_.\[\]0-9]+: expected .+, found .+") as raised:
        restored(family, state)
    where = str(raised.value).partition(":")[0].removeprefix("state.").replace("[", ".").replace("]", "")
    assert path.startswith(where) or where.startswith(path.rpartition(".")[0])
    assert not where.endswith(".")


@pytest.mark.parametrize(
    ("family", "text", "path"),
    [
        (JSON_ENVELOPE, IN_A_STRING, "machine.pc"),
        (JSON_ENVELOPE, IN_A_STRING, "machine.call.recover"),
        (COUNTED, HELD, "machine.frames.0.attempt"),
    ],
)
def test_places_in_a_program_are_in_it(family: Family, text: str, path: str) -> None:
    """The first one after its end is refused by the field's name."""
    size = len(Parser(family.format, REQUEST).program)
    with pytest.raises(StateError, match=rf"{path.rpartition('.')[2]}: expected an integer from 0 to {size - 1}"):
        restored(family, changed(state_of(family, text), path, size))


ACCEPTED: list[tuple[Family, str, str, Any]] = [
    (JSON_ENVELOPE, IN_A_STRING, "machine.closed", 1 << 30),
    (JSON_ENVELOPE, IN_A_STRING, "machine.closed", 0),
    (JSON_ENVELOPE, IN_A_STRING, "machine.steps", LAST),
    (JSON_ENVELOPE, IN_A_STRING, "machine.id_calls", [-1]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.ends.12", 52),
    (JSON_ENVELOPE, IN_A_STRING, "machine.ends.0", -LAST),
    (JSON_ENVELOPE, IN_A_STRING, "machine.carried_spans", [0, 12]),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.mark", 53),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.start", 53),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.recover", 0),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.holds", "raw"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.call.holds", "read"),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.step", 5),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.stack", "[" * 512),
    (JSON_ENVELOPE, IN_A_STRING, "machine.scanner.inner.quote", "'"),
    (COUNTED, HELD, "machine.frames.0.left", 0),
    (COUNTED, HELD, "machine.frames.0.at", 68),
    (COUNTED, HELD, "machine.frames.0.spans", 8),
    (COUNTED, HELD, "machine.frames.0.spans", 0),
    (COUNTED, HELD, "machine.scanner.state", 9),
]


@pytest.mark.parametrize(
    ("family", "text", "path", "value"), ACCEPTED, ids=[f"{path}={value!r:.20}" for _, _, path, value in ACCEPTED]
)
def test_the_greatest_and_the_least_are_accepted(family: Family, text: str, path: str, value: Any) -> None:
    """And they are there again when the parser is saved."""
    state = changed(state_of(family, text, policy=AS_WRITTEN), path, value)
    again = restored(family, state).state()
    at: Any = again
    for key in path.split("."):
        at = at[int(key)] if key.isdigit() else at[key]

    assert at == value
