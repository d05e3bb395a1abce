"""A chat template with a handwritten grammar: turns, requests, prefilled answers, and errors."""

from __future__ import annotations

import warnings
from functools import partial

import pytest
from cases import cases
from engines import lark_reader
from remainders import node_of
from splitting import fed

from unrender import (
    ChatTemplate,
    GrammarError,
    Policy,
    RequestError,
)
from unrender import grammar as peg
from unrender.errors import ExportError, StateError
from unrender.grammar import Grammar
from unrender.testing import numbered_id

SOURCE = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls or [] %}!{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}"
    "<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if thinking %}<think>{% endif %}{% endif %}"
)
NAME = peg.name(peg.chars("a-z_", 1, None))
CALL = peg.tool_call(peg.sequence("!", NAME, " ", peg.cut(), peg.arguments(peg.json_value())))
ANSWER = Grammar(
    peg.sequence(
        peg.optional(peg.sequence("<think>", peg.cut(), peg.reasoning(peg.until("</think>")), "</think>")),
        peg.content(peg.until("!", "<think>")),
        peg.zero_or_more(peg.ref("call")),
    ),
    {"call": CALL},
)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "parameters": CITY}, {"name": "get_time", "parameters": {"type": "object"}}]
ASK = [{"role": "user", "content": "Oslo?"}]


def template(grammar: Grammar = ANSWER) -> ChatTemplate:
    return ChatTemplate.from_string(SOURCE, eos_token="<eos>", grammar=grammar)


def turn(grammar: Grammar = ANSWER, **request):
    return template(grammar).prepare(ASK, **{"tools": TOOLS, **request})


@pytest.mark.parametrize("ending", ["<|end|>", "<|end|>\n", "<eos>", "<|end|>\n<eos>"])
def test_ends_of_the_turn_are_no_text(ending):
    """Ends of turn are dropped, whether the grammar matches or not."""
    parser = turn().parser()
    fed(parser, ["It rains." + ending])
    broken = turn().parser()
    fed(broken, ["!rm {}" + ending + "more"])

    assert parser.message.content == "It rains."
    assert broken.message.content == "!rm {}more"


def test_what_the_prompt_begins_is_read_first():
    """Reasoning opened by the prompt is open. Rows of `by_hand_blocks` show the grammar after it."""
    begun = turn(thinking=True)

    assert begun.prefill == "<think>"
    assert begun.parse("Hm.</think>Hi").to_openai()["reasoning_content"] == "Hm."


def test_a_beginning_that_the_grammar_does_not_have_is_refused():
    """If the grammar doesn't allow the prefill, parser and grammar raise an error."""
    begun = turn(Grammar(peg.tool_call(peg.sequence("!", NAME, peg.arguments(peg.json_value())))), thinking=True)

    for make in (begun.parser, partial(begun.constraint, "llama.cpp")):
        with pytest.raises(GrammarError, match="the prompt begins the answer with '<think>'"):
            make()


def test_content_is_continued():
    """The message is the whole turn. Only content can be continued, since the grammar has no known markers."""
    messages = [*ASK, {"role": "assistant", "content": "It is"}]
    continued = template().prepare(messages, continue_final_message=True)

    assert continued.parse(" 7 degrees.").content == "It is 7 degrees."
    with pytest.raises(RequestError, match=r"messages\[1\]: with a handwritten grammar, only content"):
        template().prepare([*ASK, {**messages[1], "reasoning": "Hm."}], continue_final_message=True)


def test_a_parser_for_a_prompt_that_was_rendered_elsewhere():
    """The template's own parser uses the grammar and the ids of the conversation."""
    parser = template().prepare_rendered("<|assistant|><think>", tools=TOOLS, known_ids=["a"]).parser(ids=numbered_id)
    fed(parser, ["Hm.</think>!get_time {}"])

    assert (parser.message.reasoning, parser.message.tool_calls[0].id) == ("Hm.", "call00001")


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda t: t.prepare(ASK, response_format={"type": "json_object"}), GrammarError, "response_format"),
        (lambda t: t.prepare_rendered(reasoning_format="none").parser(), GrammarError, "reasoning_format"),
        (lambda t: t.prepare(ASK, tool_format="tool-call-json"), RequestError, "tool_format"),
        (lambda t: t.response_template(), ExportError, "handwritten"),
        (lambda t: template(Grammar(peg.ref("a"))), GrammarError, "rule 'a' is not defined"),
    ],
)
def test_what_a_grammar_made_by_hand_cannot_do(use, error, message):
    """Each error names the unsupported argument."""
    with pytest.raises(error, match=message):
        use(template())


def test_a_saved_parser_keeps_its_beginning_its_policy_and_what_is_quoted():
    """The state includes the prefill, known ids, and text that only looks like a special token."""
    found = template().prepare(ASK, tools=TOOLS, thinking=True)
    parser = found.parser(policy=Policy(unknown_tools="call"), ids=numbered_id)
    parser.feed("a <thi", special=False)
    restored = found.restore(parser.state(), ids=numbered_id)
    for one in (parser, restored):
        one.feed("nk> b", special=False)
        one.feed("</think>!rm {}", special=True)
        one.finish()

    assert restored.message == parser.message
    assert restored.message.reasoning == "a <think> b"
    assert found.restore(restored.state()).finish() == []


@cases
def test_a_state_that_was_changed_is_refused(change, message):
    """States of another version or grammar, or with other text, are rejected."""
    found = turn()
    state = found.parser().state() | change

    with pytest.raises(StateError, match=message):
        found.restore(state)
    with pytest.raises(StateError, match="for"):
        turn(Grammar(peg.content(peg.rest()))).restore(found.parser().state())


def test_special_tokens_are_those_of_the_grammar():
    """Engines keep special tokens in the text, and they are distinguished from ordinary text."""
    found = turn()
    parser = found.parser()
    parser.feed("a <think> b", special=False)
    parser.finish()

    assert found.preserved_tokens == ("<think>", "</think>", "<|end|>", "<eos>")
    assert parser.message.content == "a <think> b"
    assert found.stop == ("<|end|>", "<eos>")


def test_names_of_rules_do_not_meet_those_that_are_made():
    """A rule with the name of a generated rule keeps its meaning."""
    rules = {
        "json": peg.arguments(peg.json_value()),
        "call-get-time": peg.content("x"),
        "call": peg.tool_call(peg.sequence(NAME, peg.ref("json"))),
    }
    grammar = Grammar(peg.sequence(peg.optional(peg.ref("call-get-time")), peg.ref("call")), rules)

    accepts = lark_reader(turn(grammar).constraint("llguidance").grammar)

    assert accepts('xget_weather{"city": "Rome"}')
    assert not accepts('get_weatherget_weather{"city": "Rome"}')


ENTRIES = peg.sequence(
    "(", peg.zero_or_more(peg.argument(peg.chars("a-z", 1, None), "=", peg.until(",", ")")), ","), ")"
)


@cases
def test_schemas_bind_what_they_can(inside, properties, yes, no, unsaid):
    """A value has the type of its schema if its text can be read as that type. Other keywords cause a warning."""
    parameters = {"type": "object", "properties": properties, "$defs": {"n": {"type": "integer"}}}
    bound = turn(
        Grammar(peg.tool_call(peg.sequence(NAME, node_of(inside)))), tools=[{"name": "go", "parameters": parameters}]
    )

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        accepts = lark_reader(bound.constraint("llguidance").grammar)

    assert accepts("go" + yes)
    assert no is None or not accepts("go" + no)
    assert [str(warning.message).split(": ")[2].split()[0] for warning in warned] == unsaid


def test_what_entries_cannot_say_of_several_arguments_is_reported():
    """Entries are written independently, so no argument can be required."""
    with pytest.warns(match="tool 'get_weather': #: required is not enforced"):
        turn(Grammar(peg.tool_call(peg.sequence(NAME, ENTRIES)))).constraint("llama.cpp")


def test_an_end_in_the_middle_is_read_but_not_written():
    """No dialect can express that nothing follows."""
    grammar = Grammar(peg.one_or_more(peg.choice(peg.content(peg.sequence("a", peg.choice(";", peg.end()))), "b")))

    assert turn(grammar).parse("a;ba").content == "a;a"
    with pytest.raises(GrammarError, match=r"end\(\): text may follow it"):
        turn(grammar).constraint("llama.cpp")


def test_a_call_that_is_taken_back_is_read_again():
    """Two options start with the same call, which is read twice but returned once."""
    call = peg.tool_call(peg.sequence("!", NAME, peg.arguments(peg.json_value())))
    parser = turn(
        Grammar(peg.sequence(peg.choice(peg.sequence(call, "?"), peg.sequence(call, ".")), peg.content(peg.rest())))
    ).parser()

    parser.feed("!get_time {}")
    fed(parser, [". Hi"])

    assert [call.name for call in parser.message.tool_calls] == ["get_time"]
