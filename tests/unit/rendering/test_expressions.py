"""Built-in values in templates and their cost: the rows of `tests/corpus/rendering/expressions.jsonl`."""

from __future__ import annotations

import threading

import pytest
from cases import cases
from recipes import rows_of
from rendering_rows import NOON, RENDERING, facts, rendering_of, shaped, template_of

from unrender import Limits
from unrender.rendering.cost import CostBudget, Exhausted
from unrender.rendering.sandbox import Sandbox

ROWS = rows_of(RENDERING / "expressions.jsonl")
SAID = ("text", "error", "exhausted")


def test_an_expression_gives_what_the_row_says():
    """The text equals that of transformers. Otherwise, the error names an unlisted attribute or a limit."""
    for row in ROWS:
        found = rendering_of(row)
        expected = {"text": "", "error": None, "exhausted": False} | {key: row[key] for key in SAID if key in row}
        assert {key: getattr(found, key) for key in SAID} == expected, row


def test_an_expression_needs_what_the_row_says():
    """A value's size is measured before it's created: with a limit one lower, the rendering fails."""
    for row in ROWS:
        needs = row.get("needs", {})
        if needs:
            assert rendering_of(row, **needs).text == row["text"], row
        for name, count in needs.items():
            assert rendering_of(row, **{name: count - 1}).exhausted, row


def test_the_facts_of_a_source_are_as_the_row_says():
    """The facts are variables, attribute names, constants, and the defaults of missing variables."""
    for row in rows_of(RENDERING / "facts.jsonl"):
        assert {**facts(row), "source": row["source"]} == row


def test_a_conversation_takes_the_shape_that_the_row_says():
    """Messages use the template's fields for reasoning, ids, arguments and parts. No message is changed in place."""
    for row in rows_of(RENDERING / "shapes.jsonl"):
        before = str(row)
        assert shaped(row)["shaped"] == row["shaped"], row
        assert str(row) == before


@cases
def test_rounds_are_counted(source):
    """Each round, call, output and stream item is a step."""
    row = {"source": source, "with": {"f": lambda *args: len(args), "a": "x"}}

    assert rendering_of(row, steps=2000).error is None
    assert rendering_of(row, steps=60).error == "the template needs more than 60 steps"


class Record:
    """A caller's object, passed to a template."""

    name = "own"
    rows = [1, 2]  # noqa: RUF012 - a list that a template reads

    def __getitem__(self, key):
        return f"item {key}"


@cases
def test_the_attribute_comes_before_the_item(source, text):
    """`|attr` reads only the attribute. A dot tries the attribute first, and brackets try it last."""
    assert template_of(source).render([], own=Record()).unwrap() == text


def test_what_an_opaque_value_holds_is_weighed():
    """The weight of an opaque value excludes its attributes, which are weighed when read."""
    row = {"source": "{{ own.rows is defined }}", "with": {"own": Record()}}

    assert rendering_of(row, characters=36).text == "True"
    assert rendering_of(row, characters=35).exhausted


def test_spread_arguments_need_room():
    """`*items` creates a list of the arguments, which counts."""
    row = {"source": "{{ f(*[1, 2, 3]) }}", "with": {"f": lambda *args: len(args)}}

    assert rendering_of(row, items=3).text == "3"
    assert rendering_of(row, items=2).exhausted


def test_nothing_is_computed_when_compiling():
    """An expensive constant expression is only computed during rendering, which has a limit."""
    for source in ("{{ 10 ** (10 ** 10) }}", "{{ 'x' * 10 ** 12 }}"):
        assert rendering_of({"source": "{% if no %}" + source + "{% endif %}"}).text == ""
        assert rendering_of({"source": source}).exhausted


def test_each_thread_has_its_own_budget():
    """A rendering in one thread doesn't use up the budget of another thread."""
    sandbox = Sandbox(lambda: NOON, Limits())
    sandbox.budget = mine = CostBudget(Limits())
    seen = []

    def other():
        seen.append(hasattr(sandbox, "budget"))
        sandbox.budget = CostBudget(Limits())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()

    assert seen == [False]
    assert sandbox.budget is mine


def test_error_of_a_template_has_bounded_length():
    """A template may raise any text, but only a short part is kept."""
    rendering = template_of("{{ raise_exception('x' * 9000000) }}").render([])

    assert rendering.error is not None
    assert len(rendering.error) < 3000


# Only the budget, in cases that need a fake clock.


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""
    time = [100.0]
    monkeypatch.setattr("unrender.rendering.cost.now", lambda: time[0])
    return time


@pytest.mark.parametrize(
    "work",
    [
        lambda spent, size: spent.text(size),
        lambda spent, size: spent.read(size - 781),
        lambda spent, size: spent.items((size + 7) // 8),
        lambda spent, size: spent.weigh(["x" * (size - 16)]),
        lambda spent, size: [spent.step() for _ in range(size // 781 + 1)],
    ],
    ids=["text", "read", "items", "weigh", "steps"],
)
def test_bulk_is_worth_a_look_at_the_clock(clock, work):
    """After 50,000 characters of any kind of work, the clock is checked and the time limit applies."""
    spent = CostBudget(Limits(rendering_seconds=1.0))
    clock[0] = 101.0
    work(spent, 50_001)
    clock[0] = 101.001

    with pytest.raises(Exhausted, match=r"the template needs more than 1\.0 seconds"):
        work(spent, 50_782)


@pytest.mark.parametrize(
    ("limits", "work", "times", "message"),
    [
        ({"steps": 2}, lambda spent: (spent.step(), spent.check()), 2, "more than 2 steps"),
        ({"characters": 7}, lambda spent: spent.text(7), 10, "more than 70 characters of text"),
        ({"characters": 7}, lambda spent: spent.text(8), 0, "a text of more than 7 characters"),
        ({"items": 3}, lambda spent: spent.items(3), 25, "lists of more than 75 items together"),
        ({"items": 3}, lambda spent: spent.items(4), 0, "a list of more than 3 items"),
    ],
)
def test_work_is_counted_together(limits, work, times, message):
    """Each kind of work is counted, and the total is limited."""
    spent = CostBudget(Limits(rendering_seconds=60, **{f"rendering_{name}": most for name, most in limits.items()}))
    for _ in range(times):
        work(spent)

    with pytest.raises(Exhausted, match=message):
        work(spent)


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_values_are_nested_500_deep():
    """Deeper values would overflow Python's stack when hashed. A value that contains itself is measured, too."""
    assert CostBudget(Limits()).weigh(nested(501)) == 501 * 12

    with pytest.raises(Exhausted, match="nests values more than 500 levels deep"):
        CostBudget(Limits()).weigh(nested(502))
    endless = []
    endless += [endless, endless]
    with pytest.raises(Exhausted, match="more than 9000 characters"):
        CostBudget(Limits(rendering_characters=9000)).weigh(endless)
