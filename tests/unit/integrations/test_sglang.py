"""A real SGLang without a model: its own parsers use the plug-in as its servers do.

The last tests are the situations of SGLang's own tests of function calls, in answers of our own: each template's text for
a message. Optional: it runs if SGLang is installed (`python3 scripts/run.py plugins`).
"""

from __future__ import annotations

import importlib
import json
from functools import cache
from typing import Any

import pytest
import torchless_vision
from answers import QUESTION, Said, all_template_paths, written
from byte_tokenizer import byte_tokenizer
from driven import EOS, SCHEMA, SEEDS, TOOLS, USER, meant, prepared, template, tokenizer
from driven_sglang import calls_parser, reasoning_parser, request_of, streamed, whole
from engines import installed, tag_reader
from splitting import splits
from tables import table

from unrender import UnrenderError
from unrender.format import ToolMode

NEEDED = ("sglang", "torch", "xgrammar")
if not all(map(installed, NEEDED)):
    pytest.skip("sglang is needed", allow_module_level=True)
pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore"),
]

STRICT: Any = [{**tool, "function": {**tool["function"], "strict": True}} for tool in TOOLS]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    """Load the plug-in as SGLang does, by its entry point."""
    torchless_vision.install()
    importlib.import_module("sglang.srt.plugins").load_plugins()


@pytest.mark.parametrize("name", all_template_paths())
def test_both_detectors_give_what_the_template_says(name):
    """For every chunking, and for a whole answer, both parsers together give the format's message."""
    turn, tools = prepared(name)
    request = request_of(turn.prompt, TOOLS if tools else None)
    # Without reasoning, its parser is optional if the other parser reads the answer.
    reasons = {True, bool(template(name).format.reasoning.end.strip()) or not tools}
    for seed in SEEDS:
        answer = turn.sample(seed)
        expected = meant(turn.parse(answer))
        for chunks in splits(answer, seed):
            assert [streamed(name, request, chunks or [""], reasons=on) for on in reasons] == [
                expected for _ in reasons
            ]
        assert [whole(name, request, answer, reasons=on) for on in reasons] == [expected for _ in reasons]


CHOICES: Any = {
    "required": "required",
    "named": {"type": "function", "function": {"name": "now"}},
    "strict": "auto",
    "one": "auto",
}


def constraint(name, choice, *, thinking_mode):
    """Return the structural tag that SGLang requests before rendering the prompt, and the parser that returns it."""
    protocol = importlib.import_module("sglang.srt.entrypoints.openai.protocol")
    request = request_of("", STRICT if choice == "strict" else TOOLS)
    parser = calls_parser(name, request)
    asked = protocol.ToolChoice(**CHOICES[choice]) if choice == "named" else CHOICES[choice]
    found = parser.get_structure_constraint(asked, parallel_tool_calls=choice != "one", thinking_mode=thinking_mode)
    assert found[0] == "structural_tag"
    return found[1], parser, asked


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", all_template_paths())
def test_answers_are_held_to_what_was_asked(name, choice):
    """The tag accepts everything after the reasoning.

    The tag for a whole message accepts everything that the template allows.
    """
    _, tools = prepared(name)
    if not tools:
        pytest.skip("the template has no calls")
    told = STRICT if choice == "strict" else TOOLS
    turn = template(name).prepare(
        USER, tools=told, tool_choice=CHOICES[choice], parallel_tool_calls=choice != "one", tool_format="none"
    )
    late, parser, asked = constraint(name, choice, thinking_mode=False)
    accepts = tag_reader(late.model_dump(by_alias=True))
    opener, closer = turn.format.reasoning.start.strip(), turn.format.reasoning.end.strip()
    for seed in SEEDS:
        answer = turn.sample(seed)
        _, found, rest = answer.removeprefix(opener).partition(closer) if closer else ("", "x", answer)
        # Other parts may end like reasoning, so only text that starts with reasoning is cut there.
        reasoned = found and (turn.prefill or answer.lstrip().startswith(opener))
        assert accepts(rest) or not (reasoned or not closer)
    if choice in ("required", "named"):
        assert not accepts("Hello")
    if not turn.prefill:
        early = parser.detector.get_structural_tag(
            tools=parser.structural_tag_tools(),
            tool_choice=asked,
            parallel_tool_calls=choice != "one",
            message_start=True,
        )
        assert all(map(tag_reader(early.model_dump(by_alias=True)), map(turn.sample, SEEDS)))


def test_free_answers_are_not_constrained():
    """If nothing is strict and several calls are allowed, there is no constraint."""
    parser = calls_parser("json-tags", request_of("", TOOLS))

    assert parser.get_structure_constraint("auto") is None
    assert parser.owns_tool_format()


def test_json_has_reasoning_before_it():
    """A response format applies after the reasoning. From the start of a message, its tag includes the reasoning."""
    turn = template("json-tags").prepare(
        USER, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    )
    detector = reasoning_parser("json-tags", request_of(turn.prompt), active=False).detector
    answer = turn.sample(1)

    assert detector.starts_message(turn.prompt)
    assert not detector.starts_message(turn.prompt + "<think>\n")
    tag = detector.json_answer_structural_tag(SCHEMA, tools=[], message_start=True)
    assert tag_reader(tag)(answer)
    tag = detector.json_answer_structural_tag(SCHEMA, tools=[])
    assert tag_reader(tag)(answer.partition("</think>")[2])


def test_without_a_reasoning_parser_calls_are_read_and_reasoning_is_content():
    """If only used for tools, the detector parses calls, streamed and whole, and leaves reasoning in the content."""
    answer = '<think>\nHm.\n</think>\n\nOk.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    request = request_of(template("json-tags").prepare(USER, tools=TOOLS).prompt, TOOLS)
    expected = ("", "<think>\nHm.\n</think>\n\nOk.", [("now", "{}")])

    assert whole("json-tags", request, answer, reasons=False) == expected
    for chunks in splits(answer):
        assert streamed("json-tags", request, chunks, reasons=False) == expected


def test_reasoning_in_one_piece_comes_when_it_is_over():
    """Without `stream_reasoning`, no reasoning is returned before its end."""
    request = request_of(template("json-tags").prepare(USER).prompt)
    parser = reasoning_parser("json-tags", request, active=False, stream_reasoning=False)
    seen = [parser.parse_stream_chunk(character) for character in "<think>\nHm. So.\n</think>\n\nYes"]
    seen.append(parser.parse_stream_end())

    assert [thought for thought, _ in seen if thought] == ["Hm. So."]
    assert "".join(text for _, text in seen) == "Yes"


def test_a_call_that_is_cut_off_is_text():
    """SGLang streams no part of the call. Its text is content, as in a whole answer."""
    answer = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ro'
    request = request_of(template("json-tags").prepare(USER, tools=TOOLS).prompt, TOOLS)
    parser = calls_parser("json-tags", request)
    begun, ended = parser.parse_stream_chunk(answer), parser.parse_stream_end()

    assert (begun[0] + ended[0], [*begun[1], *ended[1]]) == (answer, [])
    assert parser.detector.incomplete_tool_call_indices == set()
    assert whole("json-tags", request, answer)[1:] == (answer, [])


def test_template_without_reasoning_has_no_end_to_wait_for():
    """SGLang gets no markers, so grammars apply from the first token, and the whole answer is content."""
    parser = reasoning_parser("plain", request_of(template("plain").prepare(USER).prompt), active=False)

    assert parser.detector.get_think_end_token_ids(tokenizer("plain")) == []
    assert parser.parse_non_stream("Hello") == ("", "Hello")


def test_what_cannot_be_is_said_at_startup():
    """For a tokenizer without a template, the start fails with its name."""
    module = importlib.import_module("sglang.srt.parser.reasoning_parser")
    with pytest.raises(UnrenderError, match="expected a tokenizer with a Jinja chat template"):
        module.ReasoningParser("unrender", tokenizer=byte_tokenizer((), eos=EOS))


def test_the_command_line_takes_the_name():
    """SGLang's arguments include the parsers of loaded plug-ins."""
    arguments = importlib.import_module("sglang.srt.server_args")

    assert "unrender" in arguments._tool_call_parser_choices()
    assert "unrender" in arguments._reasoning_parser_choices()


T: Any = table("test_sglang_situations")
OFFERED: Any = T["TOOLS"]
PARIS = ("get_weather", {"city": "Paris", "days": 3})
SITUATIONS: Any = {
    name: (content, [tuple(call) for call in calls]) for name, (content, calls) in T["SITUATIONS"].items()
}


@cache
def asked(name):
    """Return a turn in which the template describes the tools."""
    try:
        turn = template(name).prepare(QUESTION, tools=OFFERED, tool_format="none", enable_thinking=False)
    except UnrenderError as error:
        return pytest.skip(f"the template refuses the tools: {error}")
    if turn.format.tools.mode is ToolMode.NONE:
        pytest.skip("the template has no calls")
    return turn


def answer_of(name, content, calls):
    """Return the template's text for a message. Skips the test if the template can't write it."""
    text = written(template(name), asked(name), Said.of(content=content, calls=calls), thinking=False)
    if text is None:
        pytest.skip("the template does not write all of this message after its prompt")
    return text


def given(found):
    """Return text and calls as values. Text includes reasoning, since a prompt may start reasoning."""
    reasoning, content, calls = found
    return (reasoning + content).strip(), [(name, json.loads(arguments or "{}")) for name, arguments in calls]


def skip_without_closers(name):
    """Skip a format whose arguments are lines that only the end of the answer closes."""
    tools = asked(name).format.tools
    if tools.arguments.entry and not (tools.call_end + tools.section_end).strip():
        pytest.skip("nothing closes a call in this format")


def both(name, text, seed=0):
    """Yield SGLang's reading of an answer, whole and streamed with additional empty chunks."""
    reasons = bool(template(name).format.reasoning.end.strip())
    request = request_of(asked(name).prompt, OFFERED)
    yield whole(name, request, text, reasons=reasons)
    for chunks in splits(text, seed):
        yield streamed(name, request, ["", *chunks, ""], reasons=reasons)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", all_template_paths())
def test_what_the_template_writes_comes_back(name, situation):
    """Names, values and their types, order and content equal the message, whole and for every chunking."""
    content, calls = SITUATIONS[situation]
    text = answer_of(name, content, calls)

    assert [found for found in map(given, both(name, text)) if found != (content, calls)] == []


@pytest.mark.parametrize("name", all_template_paths())
def test_text_after_a_call_is_not_lost(name):
    """Text after a call is content, and the call is kept."""
    skip_without_closers(name)
    text = answer_of(name, "", [PARIS]) + "\nThat is all."

    for said, calls in map(given, both(name, text)):
        assert calls == [PARIS]
        assert said.endswith("That is all.")


@pytest.mark.parametrize("name", all_template_paths())
def test_a_call_of_no_tool_is_text(name):
    """A call of an unknown tool is text, and none of it is lost."""
    text = answer_of(name, "", [PARIS]).replace("get_weather", "get_nothing")

    for said, calls in map(given, both(name, text)):
        assert calls == []
        assert "get_nothing" in said
        assert "Paris" in said


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", all_template_paths())
def test_a_call_that_is_cut_off_is_never_whole(name, part):
    """If an answer ends too early, its reading has the complete call or none."""
    skip_without_closers(name)
    text = answer_of(name, "", [PARIS])
    request = request_of(asked(name).prompt, OFFERED)
    found = whole(
        name, request, text[: int(len(text) * part)], reasons=bool(template(name).format.reasoning.end.strip())
    )

    assert given(found)[1] in ([], [PARIS])
