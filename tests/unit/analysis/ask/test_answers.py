"""A template in, records of its answers out: what is rendered for each field, and what is not rendered at all."""

from __future__ import annotations

import pytest

from unrender.analysis.ask import answers
from unrender.analysis.ask.answers import (
    ANSWER_KINDS,
    Answers,
    Variants,
    render_answers,
    render_variants,
    render_written,
)
from unrender.analysis.ask.probes import (
    CONTENT,
    CONTENT2,
    IDS,
    KEYS,
    NAMES,
    NUMBERS,
    PLAIN_NEEDLE,
    REASONING,
    VALUES,
    Prober,
)
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.format import Arguments, CallSyntax, Format, Slot, ToolMode
from unrender.rendering.capabilities import ReasoningPlace
from unrender.rendering.template import Template

SOURCE = """\
{%- for m in messages -%}
<{{ m.role }}{{ '-' if enable_thinking is false }}>
{%- if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}
{{- m.content or '' }}
{%- for c in m.tool_calls or [] %}[{{ c.function.name }}#{{ c.id }}
{%- for k, v in c.function.arguments.items() %} {{ k }}={{ v | tojson }}{% endfor %}]{% endfor %}
{%- endfor -%}
"""
CUTTING = "{% for m in messages %}<{{ m.role }}>{{ (m.content or '').split('</think>')[-1] }}{% endfor %}{{ '<br>' }}{{ '</a b>' }}"
C, R = CONTENT, REASONING


def prober(source=SOURCE, **capabilities):
    known = {
        "supports_tool_calls": True,
        "supports_object_arguments": True,
        "supports_content_with_reasoning_and_calls": True,
        "reasoning_place": ReasoningPlace.FIELD,
        "reasoning_field": "reasoning_content",
        "thinking_off": (("enable_thinking", False),),
    }
    return Prober(template=Template(source)).with_capabilities(**(known | capabilities))


FRAME = TurnFrame(lead="<assistant>", header="<assistant>")


def call(number=0, arguments=1):
    values = "".join(f" {KEYS[at]}={NUMBERS[at] + number}" for at in range(arguments))
    return f"[{NAMES[number]}#{IDS[number]}{values}]"


def test_every_shape_is_rendered():
    """Each field holds what is after the header in the answer that it is named after."""
    assert render_answers(prober(), FRAME) == Answers(
        content=C,
        reasoned=f"({R}){C}",
        call=call(),
        empty_call=call(arguments=0),
        long_call=call(arguments=2),
        two_calls=call() + call(1),
        three_calls=call(0, 2) + call(1, 2) + call(2, 2),
        reasoned_call=f"({R}){call()}",
        mixed=C + call(),
        reasoned_mixed=f"({R}){C}{call()}",
    )


def test_thinking_is_switched_off():
    """Two answers are rendered with the switch as well."""
    answers = render_answers(prober(), TurnFrame(lead="<assistant->", header=""))

    assert (answers.content, answers.content_no_thinking, answers.call_no_thinking) == (None, C, call())


def test_content_is_put_after_closers():
    """Where reasoning is not shown, content is rendered after each string constant that may close it."""
    answers = render_answers(prober(CUTTING), FRAME)

    assert answers.cut == {"</think>": f"{C}<br></a b>"}


@pytest.mark.parametrize(
    ("constant", "closes"),
    [
        ("</think>", True),
        ("[/THINK]", True),
        ("<|END|>", True),
        ("</>", True),
        ("«/end»", True),
        ("]~/b]", False),
        ("weekend", False),
        ("<|end", False),
        ("end|>", False),
        ("<|the end|>", False),
    ],
)
def test_closers_are_bracketed_constants(constant, closes):
    """A constant in brackets of whatever kind that has an opener is tried, with the white space around it gone."""
    source = (
        f"{{% set x = ' {constant} ' %}}{{% for m in messages %}}<{{{{ m.role }}}}>{{{{ m.content }}}}{{% endfor %}}"
    )

    assert list(render_answers(prober(source), FRAME).cut) == ([constant] if closes else [])


def test_so_many_closers_are_tried(monkeypatch):
    """A template full of closing markers costs a bounded number of renderings."""
    monkeypatch.setattr(answers, "MOST_TRIED_NAMES", 2)
    source = CUTTING + "{{ '</think>' }}{{ '</b>' }}{{ '</c>' }}"

    assert list(render_answers(prober(source), FRAME).cut) == ["</b>", "</c>"]


def test_shown_reasoning_needs_no_closers():
    """Where reasoning is before content, or before a call, nothing else is tried."""
    shown = SOURCE + "{{ '</think>' if false }}"
    calls_only = shown.replace("if m.reasoning_content", "if m.reasoning_content and m.tool_calls")
    content_only = shown.replace("if m.reasoning_content", "if m.reasoning_content and not m.tool_calls")
    never = shown.replace("if m.reasoning_content", "if false")

    cuts = [render_answers(prober(source), FRAME).cut for source in (shown, calls_only, content_only, never)]

    assert cuts == [{}, {}, {}, {"</think>": f"{CONTENT2}</think>{C}"}]


def test_reasoning_after_content_is_not_shown():
    """Reasoning that nothing follows says nothing of its end: closers are tried."""
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.reasoning_content }}{% endfor %}{{ '</think>' }}"

    assert list(render_answers(prober(source), FRAME).cut) == ["</think>"]


def test_values_of_every_kind_are_rendered_for_tagged_arguments():
    """Each kind alone where arguments are tagged, and all together in any case; fewer each time they are asked for."""
    tagged, plain = (render_written(prober(), FRAME, tagged=tagged) for tagged in (True, False))

    assert tagged.kinds["string"] == f'[{NAMES[0]}#{IDS[0]} {KEYS[0]}="{PLAIN_NEEDLE}"]'
    assert tagged.kinds["number"] == call()
    assert tagged.kinds.keys() == ANSWER_KINDS.keys()
    assert plain.kinds == {}
    many = list(plain.many)
    assert dict(many[0][0]) == dict(VALUES)
    assert all(f" {key}=" in str(many[0][1]) for key in VALUES)
    assert [{type(value) for value in values.values()} for values, _ in many[1:]] == [
        {str, int, float, bool, list},
        {str, int, float, bool},
        {str},
    ]
    assert all("None" not in str(values) for values, _ in many[1:])
    assert all("pkeyaq" in values for values, _ in many[:2])


def test_variants_differ_in_one_respect():
    """Name, id, key and value are changed one at a time, and digits become a string."""
    tools = CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        call_start="[",
        call_end="]",
        function=(Slot.NAME, " ", Slot.ARGUMENTS),
        arguments=Arguments(entry=(Slot.KEY, "=", Slot.VALUE)),
    )

    assert render_variants(prober(), FRAME, Format(tools=tools)) == Variants(
        other_name=call().replace(NAMES[0], NAMES[1]),
        other_id=call().replace(IDS[0], IDS[1]),
        numeral=f'[{NAMES[0]}#{IDS[0]} {KEYS[0]}="{NUMBERS[0]}"]',
        other_key=call().replace(KEYS[0], KEYS[1]),
        other_value=call().replace(str(NUMBERS[0]), str(NUMBERS[1])),
    )


def test_variants_are_rendered_for_what_is_there():
    """Without calls nothing is rendered, and keys and values are only changed where they are tagged."""
    with_json = Format(tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, " ", Slot.ARGUMENTS)))
    variants = render_variants(prober(), FRAME, with_json)
    asked = prober()

    assert variants.other_name is not None
    assert (variants.other_key, variants.other_value) == (None, None)
    assert render_variants(asked, FRAME, Format()) == Variants()
    assert asked.renderings == 0
