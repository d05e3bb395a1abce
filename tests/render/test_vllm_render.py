"""vLLM's own render server over HTTP, without a GPU: the plug-in writes the engine's constraints and parses its output.

It runs if vLLM is installed, in its own task (`python3 scripts/run.py plugins-render`).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from byte_tokenizer import byte_tokenizer
from engines import installed, tag_reader

from unrender import ChatTemplate

NEEDED = ("vllm", "torch", "xgrammar")
if not all(map(installed, NEEDED)):
    pytest.skip("vllm is needed", allow_module_level=True)
pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

TEMPLATE = Path(__file__).resolve().parents[1] / "templates" / "json-tags.jinja"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather",
        "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]},
    },
}
ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "Will it rain?"}], "tools": [TOOL]}
LAUNCH = (
    "import vllm.platforms, vllm.platforms.cpu; vllm.platforms._current_platform = vllm.platforms.cpu.CpuPlatform(); "
    "from vllm.entrypoints.cli.main import main; main()"
)
"""On a machine without a GPU, vLLM's wheel for GPUs finds no platform."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the server with a checkpoint that has a tokenizer, a template, and no weights."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer().save_pretrained(folder)
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 512}
    said = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 4096, **sizes}
    (folder / "config.json").write_text(json.dumps(said), encoding="utf-8")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    flags = ("--tool-call-parser", "unrender", "--reasoning-parser", "unrender", "--enable-auto-tool-choice")
    command = [
        sys.executable,
        "-c",
        LAUNCH,
        "launch",
        "render",
        str(folder),
        "--served-model-name",
        "m",
        "--port",
        str(port),
    ]
    with (folder / "log").open("w") as log:
        env = {**os.environ, "VLLM_TARGET_DEVICE": "cpu"}
        server = subprocess.Popen([*command, *flags], stdout=log, stderr=log, env=env)
    try:
        _wait(f"http://127.0.0.1:{port}/health", server, folder / "log")
        yield f"http://127.0.0.1:{port}/v1/chat/completions"
    finally:
        server.terminate()
        server.wait(30)


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    while server.poll() is None:
        try:
            urlopen(url, timeout=5).close()
        except (URLError, OSError):
            time.sleep(1)
        else:
            return
    pytest.fail(log.read_text(encoding="utf-8")[-3000:])


def tokenizer() -> Any:
    special = ("<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
    return byte_tokenizer(special, eos="<|end|>", template=TEMPLATE.read_text(encoding="utf-8"))


def posted(url: str, body: Any) -> Any:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=120) as answer:
        return json.load(answer)


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_an_answer_is_rendered_constrained_and_read(url: str, choice: str) -> None:
    """The prompt is the template's, the tag has the required call, and its output is parsed into the message."""
    asked = {**ASKED, "tool_choice": choice}
    turn = ChatTemplate.from_file(TEMPLATE, eos_token="<|end|>").prepare(
        asked["messages"], tools=[TOOL], tool_choice=choice
    )
    rendered = posted(f"{url}/render", asked)

    assert tokenizer().decode(rendered["token_ids"]) == turn.prompt
    told = rendered["sampling_params"]
    assert told["skip_special_tokens"] is False
    if choice == "required":
        accepts = tag_reader(json.loads(told["structured_outputs"]["structural_tag"]))
        assert accepts(turn.sample(1))
        assert not accepts("No.")
    else:
        assert not told.get("structured_outputs")
    for seed in range(5):
        answer = turn.sample(seed)
        ids = tokenizer().encode(answer, add_special_tokens=False)
        generated = {"request_id": "r", "choices": [{"index": 0, "token_ids": ids, "finish_reason": "stop"}]}
        known = {"generate_response": generated, "prompt_token_ids": rendered["token_ids"], "chat_request": asked}
        said = posted(f"{url}/derender", known)["choices"][0]["message"]
        message = turn.parse(answer)
        calls = [
            (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in said.get("tool_calls") or ()
        ]
        assert (said.get("reasoning") or "", said.get("content") or "") == (message.reasoning, message.content)
        assert calls == [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls]
