"""verl's `ToolAgentLoop` without verl's servers: with any engine, and with one tool that is a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
from verl.experimental.agent_loop.tool_parser import ToolParser
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
from verl.utils.tokenizer import continuous_token_wiring as wiring

DEFAULTS = {"max_assistant_turns": 0, "response_length": 4096}


class Tool:
    """A tool of verl, whose result is the text that a function returns."""

    def __init__(self, schema: Mapping[str, Any], run: Callable[..., str]) -> None:
        self.name, self.tool_schema, self._run = schema["function"]["name"], OpenAIFunctionToolSchema(**schema), run

    async def create(self, *_: Any, **__: Any) -> tuple[str, Any]:
        return "1", ToolResponse()

    async def execute(self, _: str, arguments: Mapping[str, Any], **__: Any) -> tuple[Any, float, dict[str, Any]]:
        return ToolResponse(text=self._run(**arguments)), 0.0, {}

    async def release(self, *_: Any, **__: Any) -> None: ...


def agent_loop(tokenizer: Any, engine: Any, schema: Mapping[str, Any], run: Callable[..., str], **limits: int) -> Any:
    """Return a loop with our builder and parser, which `unrender.integrations.verl.install` has registered."""
    made = object.__new__(ToolAgentLoop)  # Its constructor needs verl's servers.
    made.tokenizer, made.processor, made.mm_processor_kwargs, made.server_manager = tokenizer, None, None, engine
    made.continuous_token_builder = wiring.create_continuous_token_builder(tokenizer, hf_model_type="unknown")
    made.tool_parser = ToolParser.get_tool_parser("unrender", tokenizer)
    tool = Tool(schema, run)
    made.tools, made.tool_schemas, made.max_user_turns = {tool.name: tool}, [schema], 0
    made.max_tool_response_length, made.max_parallel_calls, made.tool_response_truncate_side = 4096, 1, "left"
    made.rollout_config = SimpleNamespace(prompt_length=4096, full_determinism=False)
    vars(made).update({**DEFAULTS, **limits})
    return made
