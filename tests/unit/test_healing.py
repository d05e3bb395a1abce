"""A broken call continues after its valid part: nothing wrong is kept, and no other call is allowed."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import damaged
import pytest
from answers import all_template_paths, template_named
from cases import cases, thinned
from engines import WRITERS
from vendor import all_vendor_templates, vendor_cases

from unrender import ChatTemplate, Turn
from unrender.machine.interpreter import Machine

HEAD = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for call in m.tool_calls or [] %}"
TAIL = "{% endfor %}</>{% endfor %}{{ tools | tojson }}<assistant>"
FUNCTION = "{% set f = call.function %}"
JSON = "<call>\n{{ {'name': f.name, 'arguments': f.arguments} | tojson }}\n</call>"
TAGS = (
    "<call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>\n"
    "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</call>"
)
NAMED = "[CALL]{{ f.name }}[ARGS]{{ f.arguments | tojson }}[/CALL]"
WHOLE = {
    "json": (JSON, '<call>\n{"name": "plan", "arguments": {"title": "Tea, \\"hot\\"", "hour": 12}}\n</call>'),
    "tags": (
        TAGS,
        "<call>\n<function=plan>\n<parameter=title>\nTea\n</parameter>\n<parameter=hour>\n12\n</parameter>\n</function>\n</call>",
    ),
    "named": (NAMED, '[CALL]plan[ARGS]{"title": "Tea", "hour": 12}[/CALL]'),
}
"""For each format, the template's text of a call, and one complete call."""
PROPERTIES = {"title": {"type": "string"}, "hour": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["title", "hour"], "additionalProperties": False}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("plan", "planet", "cancel")
]
TEMPLATES = {name: ChatTemplate.from_string(HEAD + FUNCTION + call + TAIL) for name, (call, _) in WHOLE.items()}


def prepared(name: str, **how) -> Turn:
    return TEMPLATES[name].prepare([{"role": "user", "content": "Hello"}], **{"tools": TOOLS, **how})


def completed(turn: Turn, text: str):
    message = turn.parse(text)
    assert not message.failed_calls
    assert all(call.status == "complete" for call in message.tool_calls)
    return message.tool_calls


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("before", ["", "Let me see.\n"])
@thinned(3)
def test_any_place_may_break(name, before, step):
    """Wherever a call breaks after its name, its valid start is kept. The grammar allows only a call of that tool."""
    turn, whole = prepared(name), before + WHOLE[name][1]
    named = whole.index("plan") + len("plan") + 2
    healed = 0
    for at in range(named, len(whole), step):
        text = whole[:at] + "§ no\n"
        failed = [call.name for call in turn.parse(text).failed_calls]
        healing = turn.heal(text)
        assert failed in ([], ["plan"])
        # Inside a value, the inserted text is valid, so the call breaks at the end of the output.
        if healing is None:
            assert not failed
            continue
        assert failed
        assert named - 2 <= healing.cut <= len(text)
        assert healing.name == "plan"
        assert healing.prompt == turn.prompt + text[: healing.cut]
        for seed in range(2):
            first, *_ = completed(turn, text[: healing.cut] + healing.sample(seed))
            assert first.name == "plan"
            assert not first.problems()
        healed += 1
    assert healed > (len(whole) - named) / 2 / step


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
@cases
def test_good_beginning_is_kept(name, begun, text, good, dialect):
    """The kept text ends before a wrong value, an unclosed string, or a marker in a value. The prompt may have begun the call."""
    turn = prepared(name)
    turn = replace(turn, prompt=turn.prompt + begun, prefill=begun)
    healing = turn.heal(text)

    assert healing is not None
    assert (begun + text[: healing.cut]).endswith(good)
    assert healing.prompt == turn.prompt + text[: healing.cut]
    assert healing.turn.prefill.endswith(good)
    assert not any(call.problems() for call in completed(turn, text[: healing.cut] + healing.sample(1)))
    assert len(json.dumps(WRITERS[dialect](healing))) > 10


def test_what_comes_again_is_not_the_call_that_broke():
    """If a call's start is written twice, the first one is cut after its last argument.

    The values of the second one are written again.
    """
    whole = WHOLE["tags"][1]
    begun = whole[: whole.index("=hour>")]
    turn = prepared("tags")
    healing = turn.heal(begun + whole)

    assert healing is not None
    kept = (begun + whole)[: healing.cut]
    assert kept == begun[: begun.rindex("<parameter")]
    assert [call.arguments for call in completed(turn, kept + healing.sample(1))] == [{"title": "Tea", "hour": 12}]


LETTER = {
    "to": {"type": "string"},
    "subject": {"type": "string"},
    "count": {"type": "integer"},
    "more": {"type": "object", "properties": {"count": {"type": "integer"}}},
}
SEND = {"name": "send", "parameters": {"type": "object", "properties": LETTER, "required": ["to", "subject"]}}


@cases
def test_intact_arguments_are_kept(name, text, arguments):
    """Complete arguments of a broken call stay the same in the healed one, even after the place where it breaks."""
    turn = prepared(name, tools=[SEND])
    healing = turn.heal(text, finish_reason="stop")

    assert healing is not None
    for seed in range(3):
        calls = completed(turn, text[: healing.cut] + healing.sample(seed))
        assert len(calls) == 1
        assert {key: calls[0].arguments.get(key) for key in arguments} == arguments
        assert not calls[0].problems()


@pytest.mark.parametrize("name", WHOLE)
def test_healing_ends_with_the_calls_of_the_answer(name):
    """The model's own calls follow a healed one. Others may follow only if another call is broken."""
    turn, whole = prepared(name), WHOLE[name][1]
    broken = whole.replace("12", "noon")
    for later, most in (("", 1), ("\n" + whole, 2), ("\n" + whole + "\n" + broken, 9)):
        text = broken + later
        healing = turn.heal(text)
        assert healing is not None
        for seed in range(3):
            calls = completed(turn, text[: healing.cut] + healing.sample(seed))
            assert 1 + bool(later) <= len(calls) <= most
            assert [call.arguments_json for call in calls[1:2]] == [
                call.arguments_json for call in turn.parse(whole if later else "").tool_calls
            ]


def test_whole_answer_is_read_in_one_piece(monkeypatch):
    """Finding the broken call takes the same number of chunks for a longer answer."""
    pieces = []
    feed = Machine.feed

    def counted(machine, text):
        pieces.append(text)
        return feed(machine, text)

    monkeypatch.setattr(Machine, "feed", counted)
    counts = []
    for lines in (1, 100):
        assert prepared("json").heal("Let me see.\n" * lines + WHOLE["json"][1].replace("12", "noon")) is not None
        counts.append(len(pieces))
        pieces.clear()
    assert counts[0] == counts[1] < 20


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(("wrong", "by"), [("hour", "when"), ("12", '"noon"')])
@pytest.mark.parametrize("after", ["", "\n", " So.", "\nSo."])
def test_arguments_that_the_schema_refuses(name, wrong, by, after):
    """A parsed call that doesn't fit its schema continues from the last place where it still could."""
    whole = WHOLE[name][1]
    turn, text = prepared(name), "Hi.\n" + whole.replace(wrong, by) + after
    assert turn.parse(text).tool_calls[0].problems()
    healing = turn.heal(text)

    assert healing is not None
    assert text[: healing.cut] == "Hi.\n" + whole[: healing.cut - len("Hi.\n")]
    assert "Tea" in text[: healing.cut]
    first, *_ = completed(turn, text[: healing.cut] + healing.sample(1))
    assert not first.problems()


@pytest.mark.few(20)
@pytest.mark.parametrize("template", all_template_paths())
def test_wrong_number_in_each_format(template):
    """In each format, a call with a wrong number keeps the text before it, or continues from a prompt that ends there."""
    for label, turn, text, _ in damaged.answers(template_named(template)):
        if label == "number":
            before, after = text.rsplit("3", 1)
            started = replace(turn, prompt=turn.prompt + before, prefill=turn.prefill + before)
            refused, broken = turn.heal(before + '"x"' + after), started.heal('{"x",,' + after)
            assert refused is not None
            assert refused.cut <= len(before)
            assert "Paris" in text[: refused.cut]
            assert broken is not None
            assert broken.cut == 0
            for kept, healing in ((text[: refused.cut], refused), (before, broken)):
                first, *_ = completed(turn, kept + healing.sample(1))
                assert not first.problems()


@cases
def test_nothing_to_mend(text, how, finish):
    """A whole answer, a repaired call, a forbidden call, a quoted call and one that the token limit cut off are left unchanged."""
    assert prepared("json", **how).heal(text, finish_reason=finish) is None


def test_work_is_bounded():
    """A long answer that breaks late is quickly healed or left unchanged."""
    turn = prepared("json")
    long = '<call>\n{"name": "plan", "arguments": {"title": "' + "ab, " * 2_000 + '", "hour": noon}}\n</call>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        healing = turn.heal(long)

    assert healing is None or long[: healing.cut].endswith('"hour": ')


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("drift-damage", 5),
        pytest.param("drift-damage", 1, marks=pytest.mark.full),
        pytest.param("drift", 1, marks=pytest.mark.full),
    ],
)
def test_calls_that_real_models_broke_are_healed_or_left_alone(name, step):
    """Under the grammar, the healed call keeps its name and fits its schema."""
    rows, templates = vendor_cases(name), all_vendor_templates()
    if not rows:
        pytest.skip("no drifted answers found")
    known: dict[str, ChatTemplate] = {}
    healed, left = 0, []
    some = sorted({row["template"] for row in rows})[::step]
    for row in rows:
        if row["template"] not in some:
            continue
        stem = row["template"].removesuffix(".jinja")
        if stem not in known:
            known[stem] = ChatTemplate.from_file(templates[stem])
        asked = {"tools": row["tools"] or None, **row.get("kwargs", {})}
        turn = known[stem].prepare([{"role": "user", "content": "Go on."}], **asked)
        before = turn.parse(row["text"])
        broken = [call.name for call in before.failed_calls if turn.request.tool(call.name)]
        healing = turn.heal(row["text"]) if broken else None
        if healing is None:
            left += broken[:1]
            continue
        message = turn.parse(row["text"][: healing.cut] + healing.sample(1))
        calls = message.tool_calls[len(before.tool_calls) :]
        # A value may look like a damaged end of a call. Then the call fails, and doesn't become another call.
        assert [call.name for call in (*calls, *message.failed_calls)][:1] == [healing.name], row
        healed += bool(calls) and not calls[0].problems()
    assert healed >= 10 / step
    # A call with two valid readings fails and isn't healed, since the model may have meant either.
    assert healed >= 8 * len(left)
