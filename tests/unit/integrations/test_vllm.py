"""A real vLLM without a model: its own classes use the plug-in as its servers do.

Optional: it runs if vLLM is installed (`python3 scripts/run.py plugins`).
"""

from __future__ import annotations

import importlib.util
import json
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import pytest
from answers import all_template_paths
from byte_tokenizer import byte_tokenizer
from driven import EOS, SCHEMA, SEEDS, TOOLS, USER, meant, prepared, template, tokenizer
from driven_vllm import chat, folded, ids, items, parser_class, parser_of, responses, streamed
from engines import installed, tag_reader
from splitting import splits

NEEDED = ("vllm", "torch", "xgrammar")
if not all(map(installed, NEEDED)):
    pytest.skip("vllm is needed", allow_module_level=True)
pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore"),
]

FLAT: Any = [{"type": "function", **tool["function"]} for tool in TOOLS]
FORM: Any = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
SERVER = "vllm.entrypoints.openai.chat_completion.serving"
RENDERER = "vllm.renderers.online_renderer"


@pytest.fixture(scope="module", autouse=True)
def plugin():
    """Load the plug-in as vLLM does, by its entry point."""
    importlib.import_module("vllm.plugins").load_general_plugins()


def adjusted(name, request, prompt, **options):
    """Return the request after rendering, and the structural tag that the engine gets."""
    request = parser_of(name, request, prompt, RENDERER, parser_class(name, **options)).adjust_request(request)
    asked = request.extract_structured_outputs()
    return request, json.loads(asked.structural_tag) if asked and asked.structural_tag else None


@pytest.mark.parametrize("name", all_template_paths())
def test_chat_streams_what_the_template_says(name):
    """For every chunking through vLLM's stream processor, and for a whole answer, the format's message is returned."""
    turn, tools = prepared(name)
    request = chat(tools=TOOLS if tools else None)
    for seed in SEEDS:
        answer = turn.sample(seed)
        expected = turn.parse(answer)
        for chunks in splits(answer, seed):
            deltas, reason = streamed(name, request, turn.prompt, chunks or [""])
            assert folded(deltas) == meant(expected)
            assert reason == ("tool_calls" if expected.tool_calls else "stop")
        parser = parser_of(name, request, turn.prompt, SERVER)
        reasoning, content, calls = parser.parse(answer, request, enable_auto_tools=True)
        said = [(call.name, call.arguments) for call in calls or ()]
        assert (reasoning or "", content or "", said) == meant(expected)


@pytest.mark.parametrize("name", all_template_paths())
def test_responses_stream_what_the_template_says(name):
    """Through the Responses server's own event loop, the items equal those of the message."""
    turn, tools = prepared(name)
    request = responses(tools=FLAT if tools else [], stream=True)
    for seed in SEEDS:
        answer = turn.sample(seed)
        for chunks in splits(answer, seed):
            assert items(name, request, turn.prompt, chunks or [""]) == meant(turn.parse(answer))


def test_what_follows_a_call_in_its_last_chunk_is_an_item_of_its_own():
    """If a chunk contains the end of a call and more text or another call, Responses lose nothing."""
    call = '<|call>call:get_weather{city:<|"|>Rome<|"|>}<call|>'
    turn, _ = prepared("bare-keys")
    request = responses(tools=FLAT, stream=True)
    for answer in (f"{call}Bye", f"Hi{call}So{call}Bye"):
        for at in range(1, len(answer)):
            assert items("bare-keys", request, turn.prompt, [answer[:at], answer[at:]]) == meant(turn.parse(answer))


CHOICES: Any = {
    "strict": {"tools": [{**TOOLS[0], "function": {**TOOLS[0]["function"], "strict": True}}, TOOLS[1]]},
    "required": {"tools": TOOLS, "tool_choice": "required"},
    "one call": {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
    "named": {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "now"}}},
    "form": {"response_format": FORM},
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", all_template_paths())
def test_chat_is_held_to_what_was_asked(name, choice):
    """From the first token, the structural tag accepts everything that the template allows. vLLM accepts the tag."""
    _, tools = prepared(name)
    asked = CHOICES[choice]
    if asked.get("tools") and not tools:
        pytest.skip("the template has no calls")
    turn = template(name).prepare(USER, tool_format="none", **asked)
    request, tag = adjusted(name, chat(**asked), turn.prompt)

    accepts = tag_reader(tag)
    assert all(accepts(turn.sample(seed)) for seed in SEEDS)
    if choice != "strict":
        assert not accepts("x")
    assert request._grammar_from_parser
    assert (request.skip_special_tokens, request.spaces_between_special_tokens) == (False, False)
    params = request.to_sampling_params(9, {})
    assert json.loads(params.structured_outputs.structural_tag) == tag
    importlib.import_module("vllm.v1.structured_output.backend_xgrammar").validate_xgrammar_grammar(params)


ALLOWED: Any = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "now"}]}
NOW: Any = {"type": "function", "name": "now"}


@pytest.mark.parametrize(("choice", "others"), [("required", True), (NOW, False), (ALLOWED, False)], ids=str)
def test_responses_are_held_to_what_was_asked(choice, others):
    """Required, named and allowed tools are in the tag that the engine gets."""
    calls = [
        template("json-tags").prepare(USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": name}})
        for name in ("now", "get_weather")
    ]
    request, tag = adjusted("json-tags", responses(tools=FLAT, tool_choice=choice), calls[0].prompt)

    accepts, answers = tag_reader(tag), [turn.sample(1) for turn in calls]
    if hasattr(request, "_grammar_from_parser"):
        assert request._grammar_from_parser
    else:  # Before 0.33, vLLM waits for the end of reasoning.
        answers = [answer.partition("</think>")[2] for answer in answers]
    assert all(answers)
    assert list(map(accepts, answers)) == [True, others]
    assert not accepts("Hello<|end|>")
    assert json.loads(request.to_sampling_params(9, {}).structured_outputs.structural_tag) == tag


def test_a_form_in_responses_is_held():
    """`text.format` becomes a tag with the reasoning before the JSON."""
    form = {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}
    turn = template("json-tags").prepare(USER, response_format=FORM)
    request, tag = adjusted("json-tags", responses(text=form), turn.prompt)

    assert request.text.format.type == "json_schema"
    if tag is None:  # Before 0.33, vLLM's own waits for the end of reasoning.
        assert request.extract_structured_outputs().json
    else:
        assert tag_reader(tag)(turn.sample(1))


def test_free_answers_stay_free_unless_the_server_says_otherwise():
    """Without strict tools, nothing is constrained. `--tool-strict-level function` constrains calls, but not text."""
    turn = template("json-tags").prepare(USER, tools=TOOLS)

    assert adjusted("json-tags", chat(tools=TOOLS), turn.prompt)[1] is None
    if importlib.util.find_spec("vllm.tool_parsers.tool_strict_level") is None:  # 0.30
        return
    _, tag = adjusted("json-tags", chat(tools=TOOLS), turn.prompt, level="function")
    accepts = tag_reader(tag)
    assert accepts("<think>\nHm.\n</think>\n\nHello!")
    assert not accepts('<tool_call>\n{"name": "nothing"')


def test_a_form_of_vllms_own_waits_for_the_end_of_reasoning():
    """A choice or a regex is left to vLLM's own gate, which checks for the end of reasoning."""
    turn = template("json-tags").prepare(USER)
    request, _ = adjusted("json-tags", chat(structured_outputs={"choice": ["yes", "no"]}), turn.prompt)
    parser = parser_class("json-tags")(tokenizer("json-tags"), None)

    assert request.extract_structured_outputs().choice == ["yes", "no"]
    assert parser.is_reasoning_end(ids("json-tags", turn.prompt)) is False
    assert not request._grammar_from_parser


@pytest.mark.parametrize(
    ("answer", "open_at"), [("<think>\nHm.\n</think>\n\nYes", 20), ("Yes", 1), ("\n<think>x</think>y", 17)]
)
def test_the_gate_opens_where_reasoning_ends(answer, open_at):
    """The engine's reasoning parser reports the end of reasoning after the closing marker, or at once if there is none."""
    reasoning = importlib.import_module("vllm.reasoning").ReasoningParserManager.get_reasoning_parser("unrender")
    gate = reasoning(tokenizer("json-tags"), chat_template_kwargs={})
    before = ids("json-tags", template("json-tags").prepare(USER).prompt)
    tokens = ids("json-tags", answer)
    lengths = [*accumulate(len(tokenizer("json-tags").decode([token])) for token in tokens)]

    assert not gate.is_reasoning_end(before)
    for at, token in enumerate(tokens, 1):
        if gate.is_reasoning_end_streaming([*before, *tokens[:at]], [token]):
            assert lengths[at - 1] == open_at
            return
    pytest.fail("the gate never opened")


def test_reasoning_tokens_are_counted():
    """Tokens between the markers count, during the stream and at the end. Without a reasoning parser, none do."""
    name, answer = "json-tags", "<think>\nHm. Ö\n</think>\n\nYes"
    turn = template(name).prepare(USER)
    for cls, count in ((parser_class(name), len("Hm. Ö".encode())), (parser_class(name, reasoning=None), 0)):
        parser = parser_of(name, chat(), turn.prompt, SERVER, cls)
        parser.parse(answer, chat(), model_output_token_ids=ids(name, answer))
        tokens = ids(name, answer)
        counts = [parser.count_reasoning_tokens(tokens[:at]) for at in range(len(tokens) + 1)]
        assert counts == sorted(counts)
        assert counts[-1] == count
        assert parser.count_reasoning_tokens(ids(name, "Yes")) == 0


def test_without_a_reasoning_parser_reasoning_is_content():
    """If only used for tools, the plug-in leaves reasoning in the content."""
    name, answer = "json-tags", "<think>\nHm.\n</think>\n\nYes"
    parser = parser_of(name, chat(), template(name).prepare(USER).prompt, SERVER, parser_class(name, reasoning=None))

    assert parser.parse(answer, chat())[:2] == (None, answer)


def test_a_continued_answer_is_not_said_again():
    """If the client's last message is continued, the answer contains only new text, even inside reasoning."""
    name = "json-tags"
    start = template(name).prepare(USER).prompt
    for begun, answer, expected in (("<think>\nHm", ".\n</think>\n\nYes", (".", "Yes")), ("Ye", "s", (None, "s"))):
        messages = [*USER, {"role": "assistant", "content": begun}]
        request = chat(messages=messages, continue_final_message=True, add_generation_prompt=False)
        parser = parser_of(name, request, start + begun, SERVER)
        assert parser.parse(answer, request)[:2] == expected


def test_content_is_text_where_nothing_else_is_said():
    """An empty answer has empty content, as in vLLM without parsers. An answer with only reasoning has none."""
    name = "json-tags"
    said = {"": (None, "", None), "<think>\nHm": ("Hm", None, None)}
    for answer, expected in said.items():
        parser = parser_of(name, chat(), template(name).prepare(USER).prompt, SERVER)
        assert parser.parse(answer, chat()) == expected


def test_what_cannot_be_is_said_at_startup_or_as_a_bad_request():
    """A tokenizer without a template stops the server with an error. An unknown tool is the client's error."""
    manager = importlib.import_module("vllm.parser").ParserManager
    with pytest.raises(TypeError, match="expected a tokenizer with a Jinja chat template"):
        manager.get_parser("unrender", "unrender", enable_auto_tools=True, tokenizer=byte_tokenizer((), eos=EOS))
    bad = importlib.import_module("vllm.exceptions").VLLMValidationError
    missing = {**ALLOWED, "tools": [{"type": "function", "name": "missing"}]}
    with pytest.raises(bad, match="missing"):
        adjusted("json-tags", responses(tools=FLAT, tool_choice=missing), template("json-tags").prepare(USER).prompt)


def test_the_command_line_takes_the_name():
    """`vllm serve` checks names of parsers before it starts and finds ours. Other names give vLLM's own parsers."""
    try:
        server = importlib.import_module("vllm.entrypoints.common.cli_args")
    except ModuleNotFoundError:  # before 0.33
        server = importlib.import_module("vllm.entrypoints.launchers.launcher")
    server.validate_api_server_args(
        SimpleNamespace(
            enable_auto_tool_choice=True, tool_call_parser="unrender", tool_parser_plugin="",
            structured_outputs_config=SimpleNamespace(reasoning_parser="unrender"), reasoning_parser="unrender",
        )
    )  # fmt: skip
    manager = importlib.import_module("vllm.parser").ParserManager
    other = manager.get_parser("hermes", "qwen3", enable_auto_tools=True, model_name="m")
    assert other.tool_parser_cls.__module__.startswith("vllm.")
    with pytest.raises(TypeError, match="can't be combined"):
        manager.get_parser("hermes", "unrender", enable_auto_tools=True, model_name="m")
    assert manager.get_parser("unrender", None, enable_auto_tools=False, model_name="m") is None


def test_harmony_is_refused_in_words_that_help():
    """If vLLM has chosen its own Harmony parser, our error at the start explains what to do."""
    manager = importlib.import_module("vllm.parser").ParserManager
    with pytest.raises(TypeError, match="serve the model with the gateway"):
        manager.get_parser("unrender", "unrender", enable_auto_tools=True, model_name="m", is_harmony=True)
