"""Programs as users write them. mypy checks this module with all its checks, as in a user's project."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from unrender import ChatTemplate, ContentText, Format, ToolCallFinished

PATH = Path(__file__).parent / "templates" / "json-tags.jinja"
MESSAGES = [{"role": "user", "content": "Will it rain?"}]
TOOLS = [{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call><|end|>'
FUNCTIONS: dict[str, Callable[..., Any]] = {"get_weather": lambda city: {"city": city, "rain": True}}


def generated(_: str) -> Iterator[str]:
    """Yield an answer in chunks, as a fake engine."""
    yield from (CALL[at : at + 7] for at in range(0, len(CALL), 7))


def test_a_format_is_seen_and_kept() -> None:
    """Load a template, print its format, and read the format back."""
    template = ChatTemplate.from_file(PATH)

    assert "<tool_call>" in str(template.format)
    assert Format.from_json(template.format.to_json()) == template.format


def test_an_engine_gets_what_it_needs() -> None:
    """Prepare a conversation, and constrain the answer."""
    turn = ChatTemplate.from_file(PATH).prepare(MESSAGES, tools=TOOLS, tool_choice="auto", enable_thinking=True)
    constraint = turn.constraint("llama.cpp")
    body = {
        "prompt": turn.prompt,
        "grammar": constraint.grammar,
        "grammar_triggers": [trigger.value for trigger in constraint.triggers],
        "stop": list(constraint.stop),
        "preserved_tokens": list(constraint.preserved_tokens),
    }

    assert all(body.values())


def test_an_answer_is_read_whole_or_in_chunks() -> None:
    """Parse a text; read a stream, plain and asynchronous; send OpenAI's chunks."""
    turn = ChatTemplate.from_file(PATH).prepare(MESSAGES, tools=TOOLS)
    answer = turn.stream(generated(turn.prompt))
    finished = [event.status for event in answer if isinstance(event, ToolCallFinished)]

    async def read() -> list[str]:
        async def chunks() -> AsyncIterator[str]:
            for chunk in ("It ", "rains."):
                yield chunk

        return [event.text async for event in turn.stream(chunks()) if isinstance(event, ContentText)]

    assert finished == ["complete"]
    assert answer.message == turn.parse(CALL, ids=lambda *_: answer.message.tool_calls[0].id)
    assert asyncio.run(read()) == ["It ", "rains."]
    assert [chunk["choices"][0]["finish_reason"] for chunk in turn.openai_chunks(generated(""), model="m")][
        -1
    ] == "tool_calls"


def test_calls_are_answered_and_the_conversation_goes_on() -> None:
    """Execute the calls, and request the next answer. The prompt starts with the last one and the model's own text."""
    turn = ChatTemplate.from_file(PATH).prepare(MESSAGES, tools=TOOLS)
    text = "".join(generated(turn.prompt))
    calls = turn.parse(text).tool_calls
    assert [call.problems() for call in calls] == [()]
    results = [call.result(FUNCTIONS[call.name](**call.arguments)) for call in calls]
    following = turn.next(text, results)

    assert following.prompt.startswith(turn.prompt + text)
    assert turn.heal(text) is None


def test_a_prompt_is_rendered_elsewhere() -> None:
    """Read the answer to a prompt rendered by an engine, chunk by chunk."""
    template = ChatTemplate.from_file(PATH)
    prompt = template.prepare(MESSAGES, tools=TOOLS).prompt
    parser = template.prepare_rendered(prompt, tools=TOOLS).parser()
    events = [event for chunk in generated(prompt) for event in parser.feed(chunk)] + parser.finish("stop")

    assert [type(event).__name__ for event in events][-1] == "MessageFinished"
    assert parser.message.tool_calls[0].arguments == {"city": "Paris"}
