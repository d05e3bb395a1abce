"""What readings add up to."""

from __future__ import annotations

from collections import Counter

import pytest

from unrender.batch.rows import Reading, Status
from unrender.batch.tally import REST, Tally, count, named
from unrender.messages.wire import CallStatus, Message, ToolCall


def call(name, status=CallStatus.COMPLETE):
    return ToolCall(id="i", name=name, arguments="{}", status=status)


def taken(*readings):
    tally = Tally()
    for reading in readings:
        tally.take(reading)
    return tally


def test_rows_and_calls_are_counted():
    """Rows by status, calls by tool and status, reasons as often as they are given."""
    message = Message(tool_calls=[call("f"), call("g"), call("f", CallStatus.TRUNCATED)])
    tally = taken(
        Reading(message=message, status=Status.TRUNCATED, reasons=("a name", "a name")),
        Reading(message=Message(tool_calls=[call("f")])),
        Reading(),
    )

    assert tally.rows == 3
    assert tally.statuses == {"truncated": 1, "complete": 2}
    assert tally.calls == {"f": {"complete": 2, "truncated": 1}, "g": {"complete": 1}}
    assert tally.reasons == {"a name": 2}
    assert tally.refusals == {}


def test_rows_that_could_not_be_read():
    """They are rows, with reasons of their own."""
    tally = Tally()
    tally.refuse("expected JSON")
    tally.refuse("expected JSON")

    assert (tally.rows, tally.statuses, tally.refusals) == (2, {"unreadable": 2}, {"expected JSON": 2})
    assert tally.reasons == {}


def test_tallies_are_merged():
    """What several workers counted is what one would have counted."""
    one = taken(Reading(message=Message(tool_calls=[call("f")]), reasons=("a",)))
    other = taken(Reading(message=Message(tool_calls=[call("f"), call("g")]), reasons=("a", "b")))
    other.refuse("c")
    one.merge(other)

    assert one.data() == {
        "statuses": {"complete": 2, "unreadable": 1},
        "calls": {"f": {"complete": 2}, "g": {"complete": 1}},
        "reasons": {"a": 2, "b": 1},
        "refusals": {"c": 1},
    }


def test_a_tally_comes_back():
    """A journal holds all of it, and counting goes on."""
    tally = taken(Reading(message=Message(tool_calls=[call("f")]), reasons=("a",)))
    tally.refuse("b")
    again = Tally.restore(tally.data())

    assert again == tally
    again.refuse("b")
    assert again.refusals == Counter(b=2)


def test_a_thousand_names_are_kept_apart():
    """Names that come later are counted together; those that are known go on."""
    counter = Counter()
    count(counter, (f"n{at}" for at in range(1000)))
    count(counter, ["n7", "new", "newer"], 2)

    assert (counter["n7"], counter[REST], len(counter)) == (3, 4, 1001)
    assert "new" not in counter


def test_a_thousand_tools_are_kept_apart():
    """The same holds for the tools that models call."""
    tally = taken(Reading(message=Message(tool_calls=[call(f"f{at}") for at in range(1002)])))

    assert len(tally.calls) == 1001
    assert tally.calls[REST] == {"complete": 2}


@pytest.mark.parametrize(("length", "kept"), [(200, 200), (201, 200)])
def test_names_are_short(length, kept):
    """A model can write a name of any length."""
    assert named("x" * length) == "x" * kept
