"""LiteLLM's proxy in front of the gateway, configured as in docs/howto/serve-operations.md.

The vendors' own clients send the requests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from clients_more.programs import WEATHER, Person, get_weather
from environment import ROOT
from live import free_port

KEY = "sk-" + "5d0f8a6b7c9e4f1a" * 2
PAGE = ROOT / "docs" / "howto" / "serve-operations.md"


@pytest.fixture(scope="module")
def proxy(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the proxy, and return its address."""
    found = re.search(r"```yaml\n(model_list:.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "litellm.yaml").write_text(found[1].replace("http://127.0.0.1:8000", address), encoding="utf-8")
    port, log = free_port(), folder / "log.txt"
    own = {"LITELLM_MASTER_KEY": KEY, "GATEWAY_KEY": "any", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [str(Path(sys.executable).with_name("litellm")), "--config", "litellm.yaml", "--host", "127.0.0.1"]
    with (
        log.open("wb") as said,
        subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env={**os.environ, **own}, stdout=said, stderr=said
        ) as running,
    ):
        found_at = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                if httpx2.get(f"{found_at}/health/liveliness", timeout=5).status_code == 200:
                    break
            except httpx2.HTTPError:
                pass
            assert running.poll() is None, log.read_text(errors="replace")[-3000:]
            time.sleep(0.5)
        yield found_at
        running.terminate()


@pytest.fixture
def client(proxy: str) -> openai.OpenAI:
    """Return an OpenAI client of the proxy."""
    return openai.OpenAI(base_url=f"{proxy}/v1", api_key=KEY, max_retries=0)


TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_goes_through(client: openai.OpenAI, stream: bool) -> None:
    """A call, its reasoning and its result pass through the proxy, streamed or whole."""
    conversation: list[Any] = [{"role": "user", "content": "Rain?"}]
    message = _message(client, conversation, stream=stream)
    assert message["reasoning_content"].strip() == "Hm."
    (call,) = message["tool_calls"]
    result = get_weather(**_arguments(call))
    conversation += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]

    assert _message(client, conversation, stream=stream)["content"] == "It rains."


def _message(client: openai.OpenAI, conversation: list[Any], *, stream: bool) -> Any:
    asked: Any = {"model": "small", "messages": conversation, "tools": [TOOL]}
    if not stream:
        return client.chat.completions.create(**asked).choices[0].message.model_dump(exclude_none=True)
    with client.chat.completions.stream(**asked) as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message.model_dump(exclude_none=True)
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    return message


def _arguments(call: dict[str, Any]) -> Any:
    return json.loads(call["function"]["arguments"])


def test_structured_answer_goes_through(client: openai.OpenAI) -> None:
    """A response format reaches the gateway, which enforces it."""
    asked: Any = {"model": "small", "messages": [{"role": "user", "content": "Who?"}]}

    assert isinstance(client.chat.completions.parse(response_format=Person, **asked).choices[0].message.parsed, Person)


@pytest.mark.parametrize("stream", [False, True])
def test_responses_go_through(client: openai.OpenAI, stream: bool) -> None:
    """Responses pass through the proxy."""
    asked: Any = {"model": "small", "input": "Hello"}
    if not stream:
        assert client.responses.create(**asked).output_text == "Hello there, ünïcödé."
        return
    with client.responses.stream(**asked) as events:
        assert [event.delta for event in events if event.type == "response.output_text.delta"]
        assert events.get_final_response().output_text == "Hello there, ünïcödé."


@pytest.mark.parametrize("stream", [False, True])
def test_messages_go_through(proxy: str, stream: bool) -> None:
    """Messages pass through the proxy to the gateway's own endpoint."""
    client = anthropic.Anthropic(base_url=proxy, api_key=KEY, max_retries=0)
    asked: Any = {"model": "small-messages", "max_tokens": 500, "messages": [{"role": "user", "content": "Hello"}]}
    if stream:
        with client.messages.stream(**asked) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**asked)

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[-1].text == "Hello there, ünïcödé."


def test_error_goes_through(client: openai.OpenAI) -> None:
    """The proxy also reports an error if a prompt is too long."""
    asked: Any = {"model": "small", "messages": [{"role": "user", "content": "too long"}]}
    with pytest.raises(openai.BadRequestError, match="ContextWindowExceededError"):
        client.chat.completions.create(**asked)


def test_key_is_the_proxys(proxy: str) -> None:
    """The proxy rejects a client without one of its keys."""
    # Without a database, the proxy knows only its own key and returns another status.
    with pytest.raises((openai.AuthenticationError, openai.BadRequestError), match=r"No connected db|Authentication"):
        openai.OpenAI(base_url=f"{proxy}/v1", api_key="sk-other", max_retries=0).models.list()
