"""Three programs that do a task with an agent package, each through a different API.

Rules: each program sets what a sensible user sets: limits of tokens and turns, and a tool choice for the first turn.
Everything else is the package's own: histories, results, ids and streams.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import agents
import anthropic
import openai
from agent_loops.errands import Desk, Tool, ToolFailed
from agent_loops.wire import Wire
from anthropic.lib.tools import BetaAsyncFunctionTool, ToolError
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool, ToolException
from langchain_openai import ChatOpenAI
from openai.types.shared import Reasoning

agents.set_tracing_disabled(disabled=True)

TOKENS, TURNS = 160, 4
"""Limits of one answer and of one task."""


@dataclass(frozen=True, slots=True)
class End:
    """The reason why a loop ended (`answer`, `length` for a token limit, or `turns`) and the last answer."""

    reason: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """Options of a loop."""

    stream: bool
    tokens: int = TOKENS


async def openai_agents(desk: Desk, wire: Wire, way: Way) -> End:
    """OpenAI's Agents SDK, on Responses."""
    task = desk.task

    def tool(one: Tool) -> agents.FunctionTool:
        async def invoke(_: Any, arguments: str) -> str:
            try:
                return desk.run(one.name, arguments)
            except ToolFailed as error:
                return f"error: {error}"

        # Strict schemas require all properties.
        return agents.FunctionTool(one.name, one.what, one.schema, invoke, strict_json_schema=not one.optional)

    async with openai.AsyncOpenAI(
        base_url=f"{wire.address}/v1",
        api_key="any",
        http_client=wire.client(),
        max_retries=0,
        _strict_response_validation=True,
    ) as client:
        agent = agents.Agent(
            name="clerk",
            instructions=task.system,
            tools=list(map(tool, desk.tools())),
            model=agents.OpenAIResponsesModel(model="m", openai_client=client),
            model_settings=agents.ModelSettings(
                temperature=0,
                max_tokens=way.tokens,
                tool_choice=task.choice,
                parallel_tool_calls=task.parallel,
                reasoning=Reasoning(effort=task.reasoning) if task.reasoning else None,  # type: ignore[arg-type] # a name
            ),
            reset_tool_choice=not task.always,
        )
        try:
            if way.stream:
                run: Any = agents.Runner.run_streamed(agent, task.question, max_turns=TURNS)
                async for _ in run.stream_events():
                    pass
            else:
                run = await agents.Runner.run(agent, task.question, max_turns=TURNS)
        except agents.MaxTurnsExceeded:
            return End("turns")
        except agents.ModelBehaviorError as error:
            # The only sign in the package that a limit cut the answer off.
            if "max_output_tokens" not in str(error):
                raise
            return End("length")
    return End("answer", run.final_output)


class _FirstChoice(AgentMiddleware[Any, Any]):  # type: ignore[misc] # unknown where it is not installed
    """Forces the task's tool choice in the first turn."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        task = self._desk.task
        first = task.always or not any(isinstance(one, AIMessage) for one in request.messages)
        settings = {"parallel_tool_calls": task.parallel}
        return await handler(request.override(tool_choice=task.choice if first else "auto", model_settings=settings))


async def langchain(desk: Desk, wire: Wire, way: Way) -> End:
    """LangChain's agent, on Chat Completions."""

    def tool(one: Tool) -> StructuredTool:
        async def invoke(**arguments: Any) -> str:
            try:
                return desk.run(one.name, json.dumps(arguments))
            except ToolFailed as error:
                raise ToolException(str(error)) from error

        return StructuredTool(
            name=one.name,
            description=one.what,
            args_schema=one.schema,
            coroutine=invoke,
            handle_tool_error=True,
        )

    async with wire.client() as client:
        model = ChatOpenAI(
            model="m",
            base_url=f"{wire.address}/v1",
            api_key="any",
            http_async_client=client,
            temperature=0,
            max_tokens=way.tokens,
            max_retries=0,
            streaming=way.stream,
            use_responses_api=False,
            reasoning_effort=desk.task.reasoning,
        )
        agent = create_agent(
            model,
            tools=list(map(tool, desk.tools())),
            system_prompt=desk.task.system,
            middleware=[_FirstChoice(desk), ModelCallLimitMiddleware(run_limit=TURNS, exit_behavior="end")],
        )
        state = await agent.ainvoke({"messages": [{"role": "user", "content": desk.task.question}]})
    *_, last = state["messages"]
    if "finish_reason" not in last.response_metadata:
        return End("turns")
    reason = last.response_metadata["finish_reason"]
    return End("answer" if reason == "stop" else reason, last.text)


async def claude(desk: Desk, wire: Wire, way: Way) -> End:
    """Anthropic's tool runner, on Messages."""
    task = desk.task

    def tool(one: Tool) -> BetaAsyncFunctionTool[Any]:
        async def invoke(**arguments: Any) -> str:
            try:
                return desk.run(one.name, json.dumps(arguments))
            except ToolFailed as error:
                raise ToolError(str(error)) from error

        return BetaAsyncFunctionTool(invoke, name=one.name, description=one.what, input_schema=one.schema)

    kinds = {"auto": "auto", "required": "any"}
    free = {"type": "auto", "disable_parallel_tool_use": not task.parallel}
    named = {} if task.choice in kinds else {"name": task.choice}
    first = {**free, "type": kinds.get(task.choice, "tool"), **named}
    async with anthropic.AsyncAnthropic(
        base_url=wire.address, api_key="any", http_client=wire.client(), max_retries=0
    ) as client:
        messages: Any = client.beta.messages  # The package's types require a record type for each item.
        runner = messages.tool_runner(
            model="m",
            max_tokens=way.tokens,
            max_iterations=TURNS,
            extra_body={"temperature": 0},
            system=task.system,
            messages=[{"role": "user", "content": task.question}],
            tools=list(map(tool, desk.tools())),
            tool_choice=first,
            stream=way.stream,
            **({"thinking": {"type": "disabled"}} if task.reasoning else {}),
        )
        async for turn in runner:
            message = await turn.get_final_message() if way.stream else turn
            if not task.always:
                runner.set_messages_params(lambda sent: {**sent, "tool_choice": free})
    said = "".join(block.text for block in message.content if block.type == "text")
    return End({"end_turn": "answer", "max_tokens": "length", "tool_use": "turns"}[message.stop_reason], said)


PROGRAMS: Mapping[str, Callable[[Desk, Wire, Way], Coroutine[Any, Any, End]]] = {
    "openai-agents on Responses": openai_agents,
    "langchain on Chat Completions": langchain,
    "anthropic on Messages": claude,
}
