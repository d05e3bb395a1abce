"""Explanations of outputs, and the recorded steps of a parser."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest
from cases import case_rows, cases
from explanation_rows import EXPLANATIONS, SAID, TEMPLATES, TOOLS, explanation_of, said, template_named
from recipes import rows_of
from splitting import fed

from unrender import (
    ChatTemplate,
    ContentText,
    Message,
    MessageFinished,
    Parser,
    ReasoningText,
    ToolCall,
    UnrenderError,
)
from unrender.explain import Explanation, Stop, explain, replay
from unrender.explain.hints import Hint
from unrender.format import Format, Reasoning, ReasoningMode
from unrender.format.declared import common_calls
from unrender.grammar import Role
from unrender.types import Request, Span, Tool

NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))
ROWS = rows_of(EXPLANATIONS)


@pytest.mark.few(2)
@pytest.mark.parametrize("template", sorted({row["template"] for row in ROWS}))
def test_an_output_is_explained_as_the_row_says(template):
    """An explanation has the parsed parts, the position where parsing stopped, other syntaxes and a fix. Every character has a role."""
    for row in ROWS:
        if row["template"] == template:
            assert said(row) == {key: row[key] for key in SAID if key in row}, row
            data = json.loads(json.dumps(explanation_of(row).to_dict()))
            assert "".join(span["text"] for span in data["spans"]) == row["output"]
            failed = [call for call in data["calls"] if call["status"] != "complete"]
            assert data["clean"] == (not failed and not {"stops", "hints"} & row.keys()), row


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_a_template_writes_is_clean(name):
    """A sampled answer, with or without calls, has no hints except about its schema."""
    template = template_named(name)
    for choice in ("auto", "required"):
        try:
            turn = template.prepare([{"role": "user", "content": "Hello"}], tools=TOOLS, tool_choice=choice)
        except UnrenderError:
            continue  # Some templates refuse tools, or this conversation.
        for seed in range(2):
            explanation = explain(template, turn.sample(seed), tools=TOOLS, tool_choice=choice)
            assert {hint.name for hint in explanation.hints} <= {"schema-mismatch"}, explanation.output


WORDS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<call>", "</call>", "<|end|>", "[TOOL_CALLS]", "<fn="),
    *("get_weather", "get_wether", '{"name": "get_weather", "arguments": ', '{"city": "Rome"}', "}", '"', "\n", "("),
)


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_output_is_an_error(name):
    """Any output is explained for any template, and every character has a role."""
    random = Random(name)
    outputs = ["".join(random.choices(WORDS, k=random.randint(1, 9))) for _ in range(5)]

    for output in outputs:
        explanation = explain(template_named(name), output, tools=TOOLS)

        assert "".join(output[span.start : span.end] for span in explanation.spans) == output
        assert json.dumps(explanation.to_dict())


STOP = Stop(begun=1, position=3, expected="a name", found="x y")
HINT = Hint(name="truncated", text="it ends", fix="Allow more")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (STOP, "at character 3: expected a name, found 'x y'"),
        (replace(STOP, found=""), "at character 3: expected a name, found the end of the output"),
        (replace(STOP, found="\n"), "at character 3: expected a name, found '\\n'"),
        (HINT, "it ends. Allow more."),
        (replace(HINT, fix="Was it meant?"), "it ends. Was it meant?"),
    ],
)
def test_a_stop_and_a_hint_are_sentences(said, text):
    """A stop names the position, the expected text and the text found. A hint names the problem and a fix."""
    assert str(said) == text


def calling(status):
    calls = (ToolCall(id="i", name="f", arguments_json="{}", status=status),)
    return Message(tool_calls=calls) if status == "complete" else Message(failed_calls=calls)


@pytest.mark.parametrize(
    ("changes", "clean"),
    [
        ({}, True),
        ({"stops": (STOP,)}, False),
        ({"hints": (HINT,)}, False),
        ({"tolerances": ("a space",)}, True),
        ({"message": calling("complete")}, True),
        ({"message": calling("truncated")}, False),
        ({"message": calling("invalid")}, False),
    ],
)
def test_what_is_clean(changes, clean):
    """An explanation is clean if parsing never stopped, every call is complete and there are no hints. Tolerated syntax is clean."""
    plain = Explanation(
        output="Hi", format=Format(), message=Message(content="Hi"), spans=(Span(Role.CONTENT, 0, 2),), events=()
    )

    assert replace(plain, **changes).clean is clean
    assert plain.to_dict()["nearest"] is None


COMMON = {declared.name: declared.format for declared in common_calls()}
FIND = Tool(name="find", parameters={"properties": {"what": {"type": "string"}, "most": {"type": "integer"}}})


def test_no_syntax_is_missing_here(request):
    """Every known call syntax has a case."""
    rows = case_rows(request.path.with_name("cases.jsonl"))

    assert {row["name"] for row in rows if row["test"] == "a_syntax_reads_what_it_is_called"} == set(COMMON)


@cases
def test_a_syntax_reads_what_it_is_called(name, text):
    """The call is parsed completely, and its values have the schema's types."""
    parser = Parser(COMMON[name], Request(tools=(FIND,)))
    fed(parser, [text])
    message = parser.message

    assert [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls] == [
        ("find", {"what": "it", "most": 3})
    ]
    assert message.content == ""


@pytest.mark.parametrize("name", ["JSON between <tool_call> tags", "a JSON list between <tool_calls> tags"])
def test_prose_is_no_call(name):
    """Text that only mentions a tool stays text."""
    parser = Parser(COMMON[name], Request(tools=(FIND,)))
    fed(parser, ["I could find it."])

    assert (parser.message.content, parser.message.tool_calls) == ("I could find it.", ())


def test_an_explanation_is_printed_for_people():
    """`print` and notebooks show the same text as `unrender explain`, with control characters and HTML escaped."""
    template = ChatTemplate.from_string(SOURCE_OF_CALLS)
    found = explain(template, 'Hi\x1b <b> <call>{"name": "now", "arg', tools=[{"name": "now", "parameters": {}}])

    shown, page = str(found), found._repr_html_()

    assert shown.splitlines()[0] == "The output ends inside the call of 'now'."
    assert "^ character 34: expected a key" in shown
    assert "\\x1b <b>" in shown
    assert "\\x1b &lt;b&gt;" in page
    assert "color:" in page


def test_a_turn_is_printed_for_people():
    """`print(turn)` shows the tools, the stop strings and the prompt; a long prompt is shortened."""
    turn = ChatTemplate.from_string(SOURCE_OF_CALLS).prepare([{"role": "user", "content": "x" * 5000}])

    assert str(turn).startswith("Prompt   5")
    assert "\nTools    none\nStop at  </>\n" in str(turn)
    assert str(turn).endswith("x</><assistant>")
    assert len(str(turn)) < 2200


SOURCE_OF_CALLS = """{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>
{{- {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}</>{% endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""


TEMPLATES = Path(__file__).parents[2] / "templates"
FORMAT = Format(reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"))
PARSER = partial(Parser, FORMAT, Request())


class LosesChunkEnds(Parser):
    """A parser with a bug for replay to find: its result depends on the chunks."""

    __slots__ = ()

    def feed(self, text, **kwargs):
        return super().feed(text[:-1] if len(text) > 2 else text, **kwargs)


def test_steps_show_what_came_out_when():
    """Each chunk has its events, and the number of characters held back."""
    result = replay(PARSER, ["<thi", "nk>Rain?</think>Hel", "lo"])

    assert [(step.chunk, step.events, step.held) for step in result.steps] == [
        ("<thi", (), 4),
        ("nk>Rain?</think>Hel", (ReasoningText("Rain?"), ContentText("Hel")), 0),
        ("lo", (ContentText("lo"),), 0),
        (None, (MessageFinished(),), 0),
    ]


def test_other_chunkings_agree():
    """The whole text, single characters and every split in two give the same message and events."""
    result = replay(PARSER, ["<think>Rain?", "</think>Hello"])

    assert result.tried == 2 + len("<think>Rain?</think>Hello") - 1
    assert result.differences == ()
    assert result.message.reasoning == "Rain?"


def test_difference_is_found():
    """A parser whose message depends on the chunks is detected, with the chunking that shows the difference."""
    result = replay(partial(LosesChunkEnds, FORMAT, Request()), ["He", "ll", "o"])

    assert result.message.content == "Hello"
    assert "all at once" in [difference.chunking for difference in result.differences]
    assert result.differences[0].message.content == "Hell"


@pytest.mark.parametrize("chunks", [[], [""], ["", "a", ""]], ids=repr)
def test_empty_chunks(chunks):
    """Without chunks, or with empty chunks, there are no differences."""
    assert replay(ChatTemplate.from_string("{{ messages }}").prepare_rendered().parser, chunks).differences == ()


def test_long_outputs_are_cut_at_some_places():
    """A very long output is split at fewer positions, which are evenly spread."""
    result = replay(PARSER, ["a" * 20_000])

    assert 50 < result.tried < 1000


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>'


@pytest.mark.parametrize("text", ["Hello", f"A{CALL}B", f"<think>{CALL}</think>{CALL}", "<tool_call>x" * 3])
def test_what_is_settled_is_what_spans_tell(text):
    """After every character, the number of settled characters is the end of the last span."""
    template = ChatTemplate.from_file(TEMPLATES / "json-tags.jinja")
    parser = template.prepare([{"role": "user", "content": "x"}], tools=[{"name": "get_weather"}]).parser()

    for char in text:
        parser.feed(char)
        assert parser._settled == (max(parser.spans[-1].end, 0) if parser.spans else 0)
    parser.finish()
    assert parser._settled == len(text)
