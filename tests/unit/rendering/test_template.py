"""Templates render as in transformers, within limits, and errors are values. `tests/corpus/rendering` has the expressions."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
from cases import cases
from jinja2.utils import Namespace
from plain_jinja import compiled
from recipes import rows_of
from rendering_rows import NOON, RENDERING, facts, rendering_of, shaped, template_of
from vendor import vendor_templates

from unrender import Limits, TemplateError
from unrender.rendering.cost import CostBudget, Exhausted
from unrender.rendering.printing import plain, variables_of, without_addresses
from unrender.rendering.sandbox import Sandbox

CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Déjà <vu> & 'so'",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def render(source, messages=(), **options):
    return template_of(source, bos_token="<s>", eos_token="</s>", clock=lambda: NOON).render(messages, **options)


@cases
def test_renders_as_transformers(source):
    """Counting and limits don't change a template's output."""
    x = {"a": "é", "b": [1, 2, 3], "c": {"d": [None, True, 1.5]}}

    assert render(source, x=x).unwrap() == compiled(source, NOON).render(x=x)


def conversations():
    """Yield keyword arguments of a few ordinary renderings."""
    call = {"id": "call00001", "type": "function", "function": {"name": "weather", "arguments": {"city": "Köln"}}}
    answered = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": "weather", "tool_call_id": "call00001", "content": "sunny"},
        {"role": "assistant", "content": "It is sunny.", "reasoning_content": "I see."},
    ]
    yield {"messages": CHAT, "tools": None, "add_generation_prompt": False}
    yield {"messages": CHAT[:1], "tools": None, "add_generation_prompt": True}
    yield {"messages": CHAT[:1], "tools": [TOOL], "add_generation_prompt": True}
    yield {"messages": answered, "tools": [TOOL], "add_generation_prompt": False}
    yield {"messages": [*answered, CHAT[0]], "tools": [TOOL], "add_generation_prompt": True}


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", vendor_templates())
def test_vendor_template_renders_as_in_transformers(name):
    """Every vendor's template gives the same text as in transformers' sandbox, if that renders it."""
    source = vendor_templates()[name].read_text(encoding="utf-8")
    for variables in conversations():
        rendering = render(source, **variables)
        try:
            expected = compiled(source, NOON).render(documents=None, bos_token="<s>", eos_token="</s>", **variables)
        except Exception as error:  # noqa: BLE001 -- templates fail as programs do
            # Renderings that transformers rejects: lists that are appended to, and lazy lists as JSON.
            harmless = "is unsafe" in str(error) or "generator is not JSON serializable" in str(error)
            assert rendering.error is not None or harmless
        else:
            assert rendering.unwrap() == expected


def test_lists_may_be_changed():
    """A template may change its own lists and dicts and those passed in. The caller's objects don't change."""
    source = "{% set _ = messages.append('x') %}{{ messages[0].update(role='y') }}{{ messages }}"
    messages = [{"role": "user"}]
    before = copy.deepcopy(messages)

    first, second = render(source, messages), render(source, messages)

    assert first.unwrap() == second.unwrap() == "None[{'role': 'y'}, 'x']"
    assert messages == before


def test_standard_variables():
    """Tokens, tools and documents are defined. The caller's variables take precedence."""
    source = (
        "{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ mood }}"
    )

    assert render(source, mood="!").unwrap() == "<s></s>TrueTrueFalse!"
    assert render("{{ eos_token }}", eos_token="<e>").unwrap() == "<e>"


def test_refusal_is_the_templates_own_words():
    """`raise_exception` gives an error with the template's message and line, and no text."""
    rendering = render("a\nb{{ raise_exception('Roles must alternate') }}")

    assert (rendering.text, rendering.error, rendering.line) == ("", "Roles must alternate", 2)
    with pytest.raises(TemplateError, match="template, line 2: Roles must alternate"):
        rendering.unwrap()


@cases
def test_failure_is_a_value(source, error):
    """Any failure is an error with a reason and a line."""
    rendering = render(source)

    assert rendering.text == ""
    assert rendering.error.startswith(error)
    assert rendering.line == 2


@cases
def test_source_that_does_not_compile(source, message):
    """Creating a template with a syntax error raises the error with its line."""
    with pytest.raises(TemplateError, match=message):
        template_of(source)


def test_digest():
    """Equal templates have equal digests, which include the tokens."""
    assert template_of("a").digest == template_of("a").digest
    assert len({template_of("a").digest, template_of("b").digest, template_of("a", eos_token="b").digest}) == 3


def test_special_tokens():
    """Tokens that the template reads are variables and part of its identity. A caller's variable takes precedence."""
    source, tokens = "{{ sep_token }}", {"sep_token": "<sep>", "pad_token": "<pad>"}
    template = pickle.loads(pickle.dumps(template_of(source, special_tokens=tokens)))

    assert template.render([]).text == "<sep>"
    assert template.render([], sep_token="|").text == "|"
    assert template == template_of(source, special_tokens={"sep_token": "<sep>"}) != template_of(source)
    assert template_of("a", special_tokens=tokens) == template_of("a")


@pytest.mark.parametrize("source", ["{{ .Prompt }}", "{{- range .Messages }}{{ .Content }}{{ end }}", "{{ if $last }}"])
def test_templates_of_go_are_told_apart(source):
    """The error for an Ollama template names its syntax and the file to use instead."""
    with pytest.raises(TemplateError, match=r"expected Jinja, found '\{\{.*Go's syntax.*tokenizer_config"):
        template_of(source)


def test_limited():
    """`limited` returns a copy with other limits. The original keeps its own."""
    template = template_of("{% for i in range(100) %}{{ i }}{% endfor %}")

    limited = template.limited(Limits(rendering_steps=10))

    assert limited.render([]).exhausted
    assert not template.render([]).exhausted
    assert limited.digest == template.digest


def test_threads():
    """One template renders in several threads at once, with separate limits for each rendering."""
    template = template_of("{% for i in range(2000) %}{{ i }}{% endfor %}")
    expected, texts = template.render([]), []
    threads = [threading.Thread(target=lambda: texts.append(template.render([]))) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert texts == [expected] * 8


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


class Thing:
    """An opaque object with a text of its own."""

    def __str__(self):
        return "a thing at 0x7F00"

    def method(self):
        """Do nothing."""


def generator():
    yield 1


@pytest.mark.parametrize(
    "value", [["a", {"b": (1, None)}], {"a": [1]}, "text", 7, Namespace(x=1), {1}, {}.keys(), range(2), None]
)
def test_data_stay_themselves(value):
    """Values without opaque parts aren't copied."""
    assert plain(value) is value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (object(), "<object object>"),
        ("x".upper, "<method upper>"),
        (Thing().method, "<method method>"),
        (str.upper, "<method upper>"),
        (generator, "<callable>"),
        (int, "<callable>"),
        (generator(), "<generator object generator>"),
        ([object()], "[<object object>]"),
        ((1, object()), "(1, <object object>)"),
        ({"a": [object()]}, "{'a': [<object object>]}"),
        ({generator: 1}, "{<callable>: 1}"),
        (Namespace(x=len), "<Namespace {'x': <method len>}>"),
        ({"a": len}.values(), "dict_values([<method len>])"),
        ({len}, "set([<method len>])"),
    ],
)
def test_opaque_values_print_without_an_address(value, expected):
    """Opaque values are printed as their kind at any depth, and methods as their name."""
    assert str(plain(value)) == expected


def test_text_and_representation_are_two():
    """An object's own text is used, but inside a list its representation."""
    assert str(plain(Thing())) == "a thing"
    assert repr(plain(Thing())).startswith("<")
    assert " at 0x" not in repr(plain(Thing()))


@cases
def test_addresses(text, expected):
    """Only Python's memory addresses are removed."""
    assert without_addresses(text) == expected


def test_variables_of_a_namespace():
    """A namespace returns the variables that the template set."""
    namespace = Namespace(a=1)
    namespace["b"] = 2

    assert variables_of(namespace) == {"a": 1, "b": 2}
