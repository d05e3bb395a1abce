"""verl's own agent loop with our builder and parser, and our builder compared with verl's default."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from byte_tokenizer import byte_tokenizer
from letters import CALL, HOSTILE, SCHEMA, SOURCE, SPECIAL, WORDS
from tables import table
from verl.experimental.agent_loop.agent_loop import AgentLoopBase
from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
from verl.experimental.agent_loop.tool_parser import ToolParser as VerlToolParser
from verl.tools.schemas import OpenAIFunctionToolSchema
from verl.utils.tokenizer import continuous_token_wiring as wiring
from verl_loop import agent_loop

from unrender.integrations.verl import ContinuousTokenBuilder, ToolParser, install

ASKED = [{"role": "user", "content": "Weather in Paris?"}]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return byte_tokenizer(SPECIAL, eos="<|end|>", template=SOURCE)


def encoded(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def test_metadata_are_aligned_by_verl(tokenizer: Any) -> None:
    """Verl's `align_response_metadata` keeps all sampled tokens, and pads mask and log probabilities to match."""
    builder = ContinuousTokenBuilder(tokenizer)
    prompt = builder.build_initial_tokens(ASKED, tools=[SCHEMA])
    answer = encoded(tokenizer, CALL.removesuffix("<|end|>"))
    first = builder.merge_assistant_tokens(prompt, answer)
    mask, logprobs = builder.align_response_metadata(first, [], [], assistant_logprobs=[-1.0] * len(answer))
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {}}}],
    }
    history: list[dict[str, Any]] = [*ASKED, call]

    merged = builder.merge_context_tokens(
        history, [*history, {"role": "tool", "content": HOSTILE}], first.token_ids, tools=[SCHEMA]
    )
    mask, logprobs = builder.align_response_metadata(merged, mask, logprobs)

    assert merged.token_ids[: len(first.token_ids)] == first.token_ids
    assert tokenizer.decode(merged.inserted_token_ids) == "<|end|>"
    assert tokenizer.decode(merged.token_ids[len(first.token_ids) :]) == f"<|end|><|tool|>{HOSTILE}<|end|><|assistant|>"
    assert merged.token_ids.count(tokenizer.convert_tokens_to_ids("<|user|>")) == 1
    assert len(mask) == len(logprobs) == len(merged.token_ids) - len(prompt)
    assert (sum(mask), sum(logprobs)) == (len(answer), -len(answer))


def test_what_is_not_certain_is_an_error(tokenizer: Any) -> None:
    """Ids of another conversation, an assistant's answer in the context, and images raise an error."""
    builder = ContinuousTokenBuilder(tokenizer)
    prompt = builder.build_initial_tokens(ASKED)
    user = {"role": "user", "content": "And?"}
    with pytest.raises(ValueError, match="expected the ids that merge_assistant_tokens returned last"):
        builder.merge_context_tokens(ASKED, [*ASKED, user], prompt)
    merged = builder.merge_assistant_tokens(prompt, encoded(tokenizer, "<think>\n\n</think>\n\nYes.<|end|>"))
    with pytest.raises(ValueError, match="assistant"):
        builder.merge_context_tokens(ASKED, [*ASKED, {"role": "assistant", "content": "x"}, user], merged.token_ids)
    with pytest.raises(ValueError, match="without images"):
        builder.build_initial_tokens(ASKED, images=["x"])


@pytest.mark.parametrize("text", [CALL, "Yes.<|end|>", CALL[:-30], ""])
def test_answers_are_read(tokenizer: Any, text: str) -> None:
    """Calls have arguments as JSON text. Other text is content, and no text raises an error."""
    parser = (
        VerlToolParser.get_tool_parser("unrender", tokenizer)
        if "unrender" in VerlToolParser._registry
        else ToolParser(tokenizer)
    )
    content, calls = asyncio.run(
        parser.extract_tool_calls(encoded(tokenizer, text), [OpenAIFunctionToolSchema(**SCHEMA)])
    )

    assert [(call.name, json.loads(call.arguments)) for call in calls] == (
        [("weather", {"city": "Paris"})] if text == CALL else []
    )
    assert "Hm." not in content


BROKEN = CALL.replace('"Paris"', "oops")
UNKNOWN = CALL.replace("weather", "wind")


@pytest.mark.parametrize(
    ("answer", "said"), [(BROKEN, "Invalid JSON in arguments for 'weather'"), (UNKNOWN, "Unknown function 'wind'")]
)
def test_errors_are_results(tokenizer: Any, monkeypatch: pytest.MonkeyPatch, answer: str, said: str) -> None:
    """Verl's loop answers a failed call and one of an unknown tool with its own error, and the model answers again."""
    answers = [encoded(tokenizer, text) for text in (answer, CALL, WORDS)]
    loop, prompts = loop_of(tokenizer, monkeypatch, answers)

    output = asyncio.run(conversation(loop))

    assert len(prompts) == 3
    assert said in tokenizer.decode(prompts[1])
    assert HOSTILE in tokenizer.decode(prompts[2])
    assert [id for id, own in zip(output.response_ids, output.response_mask, strict=True) if own] == [
        id for ids in answers for id in ids
    ]


OPENED = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}"
)


@pytest.mark.parametrize(("variables", "content"), [({}, ""), ({"enable_thinking": False}, "Yes.")])
def test_answers_are_read_with_the_prompts_variables(variables: Any, content: str) -> None:
    """Verl passes the template's variables only to the builder. They decide whether reasoning is open."""
    tokenizer = byte_tokenizer(SPECIAL, eos="<|end|>", template=OPENED)
    builder = ContinuousTokenBuilder(tokenizer, chat_template_kwargs=variables)

    found, _ = asyncio.run(ToolParser(tokenizer).extract_tool_calls(encoded(tokenizer, "Yes.<|end|>"), []))

    assert builder.chat_template_kwargs == variables
    assert found == content


def loop_of(tokenizer: Any, monkeypatch: pytest.MonkeyPatch, answers: list[list[int]]) -> tuple[Any, list[list[int]]]:
    """Return verl's `ToolAgentLoop` with a scripted engine, and the list of the prompts that the engine gets."""
    monkeypatch.setattr(wiring, "_CONTINUOUS_TOKEN_BUILDER_REGISTRY", dict(wiring._CONTINUOUS_TOKEN_BUILDER_REGISTRY))
    install()
    prompts: list[list[int]] = []

    class Engine:
        async def generate(self, *, prompt_ids: list[int], **_: Any) -> Any:
            prompts.append(list(prompt_ids))
            ids = answers[len(prompts) - 1]
            return SimpleNamespace(token_ids=ids, log_probs=[-0.5] * len(ids), **table("trainers")["VERL"])

    loop = agent_loop(tokenizer, Engine(), SCHEMA, lambda **_: HOSTILE)
    return loop, prompts


async def conversation(loop: Any) -> Any:
    """Return the output of verl's own state machine."""
    loop.loop = asyncio.get_running_loop()
    return await loop.run({}, raw_prompt=list(ASKED))


def test_verls_own_loop_makes_one_row(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every prompt begins with the last one and its answer, and the mask marks what was sampled."""
    answers = [encoded(tokenizer, CALL), encoded(tokenizer, WORDS)]
    loop, prompts = loop_of(tokenizer, monkeypatch, answers)

    output = asyncio.run(conversation(loop))

    assert issubclass(ToolAgentLoop, AgentLoopBase)
    assert isinstance(loop.continuous_token_builder, ContinuousTokenBuilder)
    assert prompts[1][: len(prompts[0]) + len(answers[0])] == prompts[0] + answers[0]
    sampled = [id for id, own in zip(output.response_ids, output.response_mask, strict=True) if own]
    others = [id for id, own in zip(output.response_ids, output.response_mask, strict=True) if not own]
    assert sampled == answers[0] + answers[1]
    assert len(output.response_logprobs) == len(output.response_ids)
    assert tokenizer.decode(others) == f"<|tool|>{HOSTILE}<|end|><|assistant|>"
