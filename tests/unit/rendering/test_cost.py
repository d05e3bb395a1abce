"""Limits of a rendering, each reached exactly and gone beyond by one."""

from __future__ import annotations

import pytest
from jinja2.utils import Namespace

from unrender.rendering import cost as budgets
from unrender.rendering.cost import CostBudget, Exhausted, Limits

STEPS_UNTIL_A_LOOK = 65  # 781 characters each, 50,000 until the next look


def budget(**limits):
    return CostBudget(Limits(**{"seconds": 60, **limits}))


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    time = [100.0]
    monkeypatch.setattr(budgets, "now", lambda: time[0])
    return time


def test_steps_are_compared_when_the_clock_is():
    """A step too many is found at the next look, after the 65th step."""
    spent = budget(steps=0)
    for _ in range(STEPS_UNTIL_A_LOOK - 1):
        spent.step()

    with pytest.raises(Exhausted, match="the template needs more than 0 steps"):
        spent.step()


def test_the_last_step_is_allowed():
    """So many steps as the limit says are taken, and not one more."""
    spent = budget(steps=2)
    spent.step()
    spent.step()
    spent.check()
    spent.step()

    with pytest.raises(Exhausted, match="more than 2 steps"):
        spent.check()


def test_a_look_at_the_clock_begins_a_new_count():
    """After a look, the next one is as far away as the first was."""
    spent = budget(steps=STEPS_UNTIL_A_LOOK)
    for _ in range(2 * STEPS_UNTIL_A_LOOK - 1):
        spent.step()

    with pytest.raises(Exhausted, match="65 steps"):
        spent.step()


def test_time_runs_from_the_beginning(clock):
    """The limit is met at its second, and exceeded after it."""
    spent = budget(seconds=2.0)
    clock[0] = 102.0
    spent.check()
    clock[0] = 102.001

    with pytest.raises(Exhausted, match=r"the template needs more than 2\.0 seconds"):
        spent.check()


@pytest.mark.parametrize(
    "work",
    [
        lambda spent, size: spent.text(size),
        lambda spent, size: spent.read(size - 781),
        lambda spent, size: spent.items((size + 7) // 8),
        lambda spent, size: spent.weigh(["x" * (size - 16)]),
    ],
    ids=["text", "read", "items", "weigh"],
)
def test_bulk_is_worth_a_look_at_the_clock(clock, work):
    """After 50,000 characters of any kind of work, the clock is looked at."""
    spent = budget(seconds=1.0)
    clock[0] = 200.0
    work(spent, 50_000)

    with pytest.raises(Exhausted, match="seconds"):
        work(spent, 1 + 781)
    with pytest.raises(Exhausted, match="seconds"):
        work(budget(seconds=-1.0), 50_001)


def test_a_text_is_as_long_as_the_limit():
    """The limit is the longest text."""
    budget(characters=7).text(7)

    with pytest.raises(Exhausted, match="the template makes a text of more than 7 characters"):
        budget(characters=7).text(8)


def test_all_texts_are_ten_times_as_long():
    """Texts that are short one by one are counted together."""
    spent = budget(characters=7)
    for _ in range(10):
        spent.text(7)

    with pytest.raises(Exhausted, match="the template makes more than 70 characters of text"):
        spent.text(1)


def test_what_is_read_is_not_made():
    """Searching a text leaves no text."""
    spent = budget(characters=1)
    spent.read(1000)
    spent.text(1)


def test_a_list_is_as_long_as_the_limit():
    """The limit is the longest list."""
    budget(items=3).items(3)

    with pytest.raises(Exhausted, match="the template makes a list of more than 3 items"):
        budget(items=3).items(4)


def test_all_lists_are_25_times_as_long():
    """Lists that are short one by one are counted together."""
    spent = budget(items=3)
    for _ in range(25):
        spent.items(3)

    with pytest.raises(Exhausted, match="the template makes lists of more than 75 items together"):
        spent.items(1)


TWICE = ["a"]
WEIGHTS = [
    ("abc", 3),
    (b"ab", 2),
    (7, 12),
    (None, 12),
    ([], 12),
    (["ab"], 18),
    ([b"ab"], 18),
    (("ab", 1), 30),
    ({"a": 1}, 29),
    ({"a": {"b": "c"}}, 39),
    ([TWICE, TWICE], 46),
    (Namespace(x=1), 24),
    ({1}, 24),
    (object(), 12),
]


@pytest.mark.parametrize(("value", "weight"), WEIGHTS)
def test_values_are_weighed(value, weight):
    """Each value weighs its text and twelve, a text inside another value four; what is held twice counts twice."""
    assert budget().weigh(value) == weight


def test_nothing_weighs_more_than_a_text_may():
    """A value that would be too long as text is refused before it is one."""
    assert budget(characters=48).weigh([1, 2, 3]) == 48

    with pytest.raises(Exhausted, match="makes a text of more than 47 characters"):
        budget(characters=47).weigh([1, 2, 3])


def test_a_value_that_holds_itself_has_an_end():
    """Weighing stops where the limit is."""
    endless = []
    endless.append(endless)
    endless.append(endless)

    with pytest.raises(Exhausted, match="more than 9000 characters"):
        budget(characters=9000).weigh(endless)


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_values_are_nested_500_deep():
    """Deeper values overflow Python's stack when they are hashed."""
    assert budget().weigh(nested(501)) == 501 * 12

    with pytest.raises(Exhausted, match="nests values more than 500 levels deep"):
        budget().weigh(nested(502))
