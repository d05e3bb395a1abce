"""Outputs that were read, and outputs that were not: where reading stopped, and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from unrender import CallStatus, ChatTemplate
from unrender.errors import UnrenderError
from unrender.explain import explain
from unrender.nodes import Role
from unrender.parser.streaming import Span

TEMPLATES = Path(__file__).parents[2] / "templates"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
                "required": ["city"],
            },
        },
    }
]
CALL = '\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call><|end|>'


def explained(output, *, template="json-tags", **request):
    loaded = ChatTemplate.from_file(TEMPLATES / f"{template}.jinja")
    return explain(loaded, output, **{"tools": TOOLS} | request)


def hints(explanation):
    return {hint.name: str(hint) for hint in explanation.hints}


@pytest.mark.parametrize(
    "output", ["", "Hello", f"<think>\nRain?\n</think>\n\nHello{CALL}", "<tool_call>\n{", "a</think>b", "\n\n<|end|>"]
)
def test_every_character_has_a_role(output):
    """The spans cover the output without gaps, whatever it is."""
    spans = explained(output).spans

    assert "".join(output[span.start : span.end] for span in spans) == output


def test_characters_that_the_prompt_wrote_are_not_counted():
    """Positions count from the first character of the output, not of what the prompt had begun."""
    explanation = explained("Rain?\n</think>\n\nHello", prompt="<|assistant|><think>\n")

    assert explanation.spans[0] == Span(Role.REASONING, 0, 5)
    assert explanation.message.reasoning == "Rain?"


@pytest.mark.parametrize(
    "output", [f"Hello{CALL}", f"<think>\nRain?\n</think>\n\n{CALL}", "I could ask get_weather, or not.<|end|>"]
)
def test_nothing_to_say_about_a_good_output(output):
    """An output that was read as it was meant is clean: no stops, no hints, no other syntax."""
    explanation = explained(output)

    assert explanation.clean
    assert (explanation.stops, explanation.hints, explanation.nearest) == ((), (), None)


def test_stop_says_where_and_what_was_expected():
    """A call that breaks off stops at the character that does not fit."""
    output = 'Hello\n<tool_call>\n{"name": "get_weather", "arguments": {"city" = "Rome"}}\n</tool_call>'

    explanation = explained(output)

    stop = explanation.stops[0]
    assert output[stop.position] == "="
    assert stop.expected == "a JSON value"
    assert stop.found == '= "Rome"}}'
    assert [call.status for call in explanation.calls] == [CallStatus.INVALID]


def test_unknown_tool_gets_its_closest_match():
    """A misspelt name stops the call at the name, and the tool that was meant is named."""
    output = CALL.replace("get_weather", "get_wether")

    explanation = explained(output)

    assert explanation.stops[0].position == output.index('"get_wether')
    assert hints(explanation)["unknown-tool"] == "no tool is called 'get_wether'. Did the model mean 'get_weather'?"


@pytest.mark.parametrize("opener", ["", "tool_call>"])
def test_stripped_opener(opener):
    """A call whose opener the engine took away is recognised, and the token to keep is named."""
    explanation = explained("Hello" + CALL.replace("<tool_call>", opener))

    assert "'<tool_call>'" in hints(explanation)["special-tokens-stripped"]
    assert "other-syntax" not in hints(explanation)


@pytest.mark.slow
def test_stripped_opener_without_any_rest():
    """A tool that looks called where nothing opens a call is a hint even when no syntax reads it."""
    explanation = explained('Hello\nget_weather{"city": "Rome"}', template="tag-json")

    assert "'<fn='" in hints(explanation)["special-tokens-stripped"]


def test_another_familys_syntax():
    """A call in a syntax that the template does not have is read with the nearest one that does."""
    explanation = explained('Hello\n[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"}')

    assert explanation.nearest
    assert explanation.nearest.name == "[TOOL_CALLS]name[ARGS]JSON"
    assert explanation.nearest.calls == ('get_weather({"city": "Rome"})',)
    assert "other-syntax" in hints(explanation)


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ('Sure:\n```json\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n```', "JSON in a ```json fence"),
        ('```\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n```', "JSON in a ``` fence"),
        ("get_weather(city='Rome')", "a Python call, name(key=value)"),
        ('[get_weather(city="Rome")]', "a list of Python calls, [name(key=value)]"),
        ('```tool_code\nget_weather(city="Rome")\n```', "Python calls in a ```tool_code fence"),
    ],
)
@pytest.mark.parametrize("template", ["json-tags", "tag-json", "bare-keys"])
def test_what_a_model_wrote_otherwise_is_not_blamed_on_the_engine(template, output, name):
    """A fence or a call as in Python is called what it is; no special token was stripped from it."""
    explanation = explained(output, template=template)

    assert explanation.nearest
    assert explanation.nearest.name == name
    assert list(hints(explanation)) == ["other-syntax"]


@pytest.mark.parametrize("output", ['get_weather("Rome")', '```json\n{"tool": "get_weather", "input": {}}\n```'])
def test_a_call_that_nothing_reads_is_told_without_a_culprit(output):
    """What looks called, and fits no known syntax, is said to be just that."""
    assert list(hints(explained(output))) == ["looks-called"]


@pytest.mark.parametrize(
    "output", ["Shall I use get_weather()?", "get_weather (see above) knows.", "`get_weather` it is"]
)
def test_prose_about_a_tool_is_prose(output):
    """A tool's name in a sentence is not a call."""
    assert explained(output).clean


def test_a_call_in_closed_reasoning_is_told():
    """A call that was only thought is named, unless it is made as well."""
    thought = f"<think>\nI call{CALL.removesuffix('<|end|>')}\n</think>\n\nIt rains.<|end|>"

    told = hints(explained(thought))

    assert list(told) == ["call-in-reasoning"]
    assert told["call-in-reasoning"].startswith('get_weather({"city": "Rome"}) is written inside the reasoning')
    assert explained(thought.replace("It rains.<|end|>", CALL)).clean


@pytest.mark.parametrize("rest", ["\nuser: And in Rome?", CALL])
def test_text_after_the_end_is_told(rest):
    """What an engine delivers after the end of the turn is named, with the place of the end."""
    told = hints(explained(f"Hello<|end|>{rest}"))

    assert list(told) == ["text-after-end"]
    assert "ends at character 5 with '<|end|>'" in told["text-after-end"]


@pytest.mark.parametrize("rest", ["", "\n", "<|end|>\n"])
def test_an_end_that_is_written_twice_is_an_end(rest):
    """White space and more ends after the end are nothing to complain about."""
    assert explained(f"Hello<|end|>{rest}").clean


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in TEMPLATES.glob("*.jinja")))
def test_what_a_template_writes_is_clean(name):
    """No hint is given on an answer as it should be, with calls and without."""
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")
    for tools, choice in ((TOOLS, "auto"), (TOOLS, "required")):
        try:
            turn = template.prepare([{"role": "user", "content": "Hello"}], tools=tools, tool_choice=choice)
        except UnrenderError:
            continue  # Some templates refuse tools, or this conversation.
        for seed in range(2):
            explanation = explain(template, turn.sample(seed), tools=tools, tool_choice=choice)
            assert set(hints(explanation)) <= {"schema-mismatch"}, explanation.output


def test_tolerated_syntax_is_named():
    """A call that was read although the template writes calls otherwise says which tolerance that was."""
    explanation = explained("<tool_call><function=get_weather><parameter=city>Rome</parameter></function></tool_call>")

    assert explanation.message.tool_calls[0].arguments == '{"city": "Rome"}'
    assert explanation.tolerances == ("a call in another syntax: Tagged arguments under the JSON syntax's marker.",)


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ro', "truncated"),
        ("<think>\nIf only", "reasoning-not-closed"),
        ("Rain?\n</think>\nHello", "closer-without-opener"),
    ],
)
def test_outputs_that_break_off(output, name):
    """Ends in the middle and closers of nothing are told apart."""
    assert name in hints(explained(output))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"days": 1}, "the required argument 'city' is missing"),
        ({"city": "Rome", "days": "1"}, "argument 'days' should be integer, found '1'"),
        ({"city": "Rome", "days": True}, "argument 'days' should be integer, found True"),
        ({"city": "Rome", "unit": "K"}, "argument 'unit' should be one of ['C', 'F'], found 'K'"),
        ({"city": "Rome", "town": ""}, "no argument is called 'town'"),
    ],
)
def test_arguments_that_do_not_fit_the_schema(arguments, complaint):
    """A call that was read is still held against the tool's schema."""
    output = CALL.replace('{"city": "Rome"}', json.dumps(arguments))

    assert complaint in hints(explained(output))["schema-mismatch"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (CALL.replace('"arguments"', '"args"'), "'args' is not a key of this format"),
        (CALL.replace('"arguments": {"city": "Rome"}', '"city": "Rome"'), "a call has no 'arguments'"),
        (CALL.replace('"arguments"', '"args": {}, "arguments"'), "'args' was left out"),
    ],
)
def test_a_field_that_the_format_does_not_know(call, said):
    """It is named, whether it was read as the arguments, was left out, or ended the call."""
    assert said in hints(explained(call))["unknown-field"]


def test_tool_without_properties_takes_any():
    """A schema that names no arguments is not a reason to complain about any."""
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]

    assert explained(CALL, tools=tools).clean


def test_no_tools_no_calls():
    """Without tools nothing is a call, and the reader is told."""
    explanation = explained(CALL, tools=None)

    assert "no tools were offered" in hints(explanation)["no-tools-offered"]


@pytest.mark.slow
def test_template_without_calls():
    """A template that writes no calls cannot show how they are read."""
    explanation = explained('get_weather{"city": "Rome"}', template="plain", tool_format="none")

    assert "no way to write calls" in hints(explanation)["no-call-syntax"]


def test_explanation_is_data():
    """The JSON form holds every character, every call and every hint."""
    output = f"Hello{CALL}".replace('"Rome"', "7")

    data = json.loads(json.dumps(explained(output).to_dict()))

    assert "".join(span["text"] for span in data["spans"]) == output
    assert data["calls"][0]["name"] == "get_weather"
    assert [hint["name"] for hint in data["hints"]] == ["schema-mismatch"]
    assert data["clean"] is False


WORDS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<call>", "</call>", "<|end|>", "[TOOL_CALLS]", "<fn="),
    *(
        "get_weather",
        "get_wether",
        '{"name": "get_weather", "arguments": ',
        '{"city": "Rome"}',
        "}",
        '"',
        "\n",
        "Hello",
        "(",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in TEMPLATES.glob("*.jinja")))
def test_no_output_is_an_error(name):
    """Whatever a model writes, after whatever template, is explained, and every character has a role."""
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")
    random = Random(name)
    outputs = ["".join(random.choices(WORDS, k=random.randint(1, 9))) for _ in range(5)]

    for output in outputs:
        explanation = explain(template, output, tools=TOOLS)

        assert "".join(output[span.start : span.end] for span in explanation.spans) == output
        assert json.dumps(explanation.to_dict())
