"""The model that `unrender serve --example-model` downloads, forced to call a tool in llama.cpp in this process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from engines import installed
from tables import table

pytestmark = pytest.mark.engine

REQUEST: Any = table("test_example_model")["REQUEST"]


@pytest.fixture
def served():
    """Return the model in the form that a gateway uses."""
    if not all(map(installed, ("xllamacpp", "aiohttp", "openai"))):
        pytest.skip("llama.cpp and the gateway's packages are needed: `python3 scripts/test.py`")
    import small_model  # noqa: PLC0415 - only where its packages are

    return small_model.served()


def test_forced_call_is_made_and_streams_alike(served):
    """A model whose template has no tools makes the forced call in its schema. Streamed and whole answers agree."""
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
    # The numbers depend on the model and on the processor's rounding.
    assert {name: type(value) for name, value in json.loads(call.function.arguments).items()} == {"a": int, "b": int}
    assert "".join(part.function.name or "" for part in parts) == call.function.name
    assert "".join(part.function.arguments or "" for part in parts) == call.function.arguments
    assert not whole.message.content
    assert not any(delta.content for delta in chunks)
