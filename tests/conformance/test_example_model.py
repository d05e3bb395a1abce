"""A real model in llama.cpp, in this process, held to a call: the one that `unrender serve --example-model` fetches."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from engines import installed

pytestmark = pytest.mark.engine

KEPT = Path(__file__).parents[2] / ".cache" / "example-model"
NUMBER = {"type": "integer"}
SCHEMA = {
    "type": "object",
    "properties": {"a": NUMBER, "b": NUMBER},
    "required": ["a", "b"],
    "additionalProperties": False,
}
REQUEST: Any = {
    "model": "any",
    "messages": [{"role": "user", "content": "What is 12 times 34?"}],
    "tools": [{"type": "function", "function": {"name": "multiply", "parameters": SCHEMA}}],
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "temperature": 0,
    "max_tokens": 100,
}


@pytest.fixture
def served():
    """Return the model, as a gateway takes it."""
    if not all(map(installed, ("xllamacpp", "aiohttp", "openai"))):
        pytest.skip("llama.cpp and the gateway's packages are needed: `python3 scripts/test.py`")
    from real_engines import example_model  # noqa: PLC0415 - only where its packages are

    from unrender.gateway import Failure  # noqa: PLC0415
    from unrender.gateway.config import read  # noqa: PLC0415

    try:
        path = example_model(KEPT)
    except Failure as failure:
        pytest.skip(failure.message)
    (model,) = read({"models": [{"backend": "gguf", "path": str(path), "aliases": "*"}]}).models
    return model


def test_forced_call_is_made_and_streams_alike(served):
    """A model whose template knows no tools calls the one that it must in its schema; streamed is what the whole says."""
    from serving import openai_client  # noqa: PLC0415

    from unrender.gateway import app  # noqa: PLC0415

    async def run():
        client: Any = openai_client(app([served]))
        whole = await client.chat.completions.create(**REQUEST)
        chunks = [
            chunk.choices[0].delta async for chunk in await client.chat.completions.create(**REQUEST, stream=True)
        ]
        await served.backend.close()
        return whole.choices[0], [call for delta in chunks for call in delta.tool_calls or []], chunks

    whole, parts, chunks = asyncio.run(run())

    (call,) = whole.message.tool_calls
    assert (whole.finish_reason, call.function.name) == ("tool_calls", "multiply")
    # Which numbers they are is up to the model, and to a processor's rounding.
    assert {name: type(value) for name, value in json.loads(call.function.arguments).items()} == {"a": int, "b": int}
    assert "".join(part.function.name or "" for part in parts) == call.function.name
    assert "".join(part.function.arguments or "" for part in parts) == call.function.arguments
    assert not whole.message.content
    assert not any(delta.content for delta in chunks)
