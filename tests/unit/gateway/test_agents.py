"""Tests of whole tool loops with OpenAI's Agents SDK and Anthropic's tool runner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from anthropic.lib.tools import BetaFunctionTool
from serving import CALL, HELLO, WEATHER, Told, anthropic_of, chunked, openai_client, served

set_tracing_disabled(disabled=True)


def weather(city: str) -> str:
    """Tell the weather."""
    return f"wet in {city}"


get_weather = function_tool(weather, name_override="get_weather")


def weatherman(calls: int) -> Told:
    """Return a model that makes calls, and then answers with the result."""
    first = "\n".join(["<think>\nLook.\n</think>", *[CALL] * calls])
    return Told(lambda job: chunked(f"{'It rains.' if 'wet in Paris' in job.turn.prompt else first}<|end|>", 5))


@pytest.mark.parametrize("model", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
@pytest.mark.parametrize(("stream", "calls"), [(False, 1), (False, 2), (True, 2)])
def test_agent_calls_a_tool_and_answers(model: Any, stream, calls):
    """Each call is executed, and the next prompt has its result and the reasoning. The agent returns the model's answer."""

    async def run():
        engine = weatherman(calls)
        agent = Agent(
            name="a", tools=[get_weather], model=model(model="m", openai_client=openai_client(served(engine)))
        )
        if not stream:
            return engine, (await Runner.run(agent, "Rain?")).final_output
        streamed = Runner.run_streamed(agent, "Rain?")
        async for _ in streamed.stream_events():
            pass
        return engine, streamed.final_output

    engine, answer = asyncio.run(run())

    assert answer == "It rains."
    first, second = engine.jobs
    news = second.turn.prompt.removeprefix(first.turn.prompt)
    assert (news.count('"name": "get_weather"'), news.count("wet in Paris")) == (calls, calls)
    assert "Look." in second.turn.prompt or model is OpenAIChatCompletionsModel


@pytest.mark.parametrize(("stream", "calls"), [(False, 1), (True, 2)])
def test_tool_runner_sends_the_whole_conversation(stream, calls):
    """The runner expects a server that keeps the conversation. Without one, it sends the whole conversation with tools and results."""
    engine = weatherman(calls)
    tool = BetaFunctionTool(weather, name="get_weather", description="", input_schema=WEATHER["parameters"])
    runner = anthropic_of(served(engine)).beta.messages.tool_runner(
        model="m", max_tokens=100, max_iterations=3, messages=HELLO, tools=[tool], stream=stream
    )
    answer = runner.until_done().content[-1].text

    assert answer == "It rains."
    first, second = engine.jobs
    assert second.turn.prompt.startswith(first.turn.prompt.removesuffix("<think>\n"))
    assert second.turn.prompt.count("wet in Paris") == calls
