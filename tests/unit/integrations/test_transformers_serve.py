"""The real `transformers serve`, with a scripted model and an exported response template.

Optional: it runs if transformers can serve (`python3 scripts/run.py transformers`).
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import command_line
import pytest
from engines import installed
from scripted_model import write_scripted_model

NEEDED = ("torch", "transformers", "accelerate", "fastapi", "uvicorn", "openai")
if not all(map(installed, NEEDED)):
    pytest.skip("transformers[serving] is needed", allow_module_level=True)
pytestmark = pytest.mark.engine

TEMPLATE = (Path(__file__).resolve().parents[2] / "templates" / "json-tags.jinja").read_text(encoding="utf-8")
SPECIAL = ("<|system|>", "<|user|>", "<|assistant|>", "<|tools|>", "<|tool|>", "<|end|>")
PIECES = (
    "<think>\nRa", "in?\n</th", "ink>\n\n", "One ", "moment.", '\n<tool_call>\n{"name": "get_', 'weather", "arguments": ',
    '{"city": "Paris"}}\n</tool', "_call>", "<|end|>",
)  # fmt: skip
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}  # fmt: skip
ASKED = {"messages": [{"role": "user", "content": "Rain in Paris?"}], "tools": [TOOL], "max_tokens": 40}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the model and its tokenizer."""
    path = tmp_path_factory.mktemp("scripted")
    write_scripted_model(path, TEMPLATE, SPECIAL, last="<|assistant|>", pieces=PIECES)
    return path


@contextmanager
def serving(folder):
    """Run the server, and yield a function that sends requests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from transformers.cli.transformers import main; main()"
    options = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    server = subprocess.Popen([sys.executable, "-c", code, *options])

    def ask(path, body=None):
        data = json.dumps({"model": str(folder), **body}).encode() if body else None
        request = Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    try:
        _wait(ask, server)
        yield ask
    finally:
        server.terminate()
        server.wait(30)


def _wait(ask, server):
    end = time.monotonic() + 240
    while time.monotonic() < end and server.poll() is None:
        try:
            ask("/health")
        except URLError:
            time.sleep(0.5)
        else:
            return
    pytest.fail("the server did not start")


def whole(ask):
    """Return reasoning, content and calls of a whole answer, and its finish reason."""
    (choice,) = json.loads(ask("/v1/chat/completions", {**ASKED, "stream": False}))["choices"]
    return _parts([choice["message"]]), choice["finish_reason"]


def streamed(ask):
    """Return the parts of a streamed answer, and its finish reason."""
    lines = ask("/v1/chat/completions", {**ASKED, "stream": True}).splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    return _parts([choice["delta"] for choice in choices]), reasons[-1]


def _parts(messages):
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    texts = ("".join(message.get(name) or "" for message in messages) for name in ("reasoning_content", "content"))
    return *map(str.strip, texts), [(call["name"], json.loads(call["arguments"])) for call in calls]


def test_an_exported_template_is_served(folder):
    """With the exported template, reasoning, content and the call are separated. Without it, everything is content."""
    with serving(folder) as ask:
        assert whole(ask) == (("", "".join(PIECES[:-1]).strip(), []), "stop")

    exported = ["format", "export", str(folder), "--write", str(folder / "tokenizer_config.json")]
    assert command_line.run(*exported).exit_code == 0

    expected = ("Rain?", "One moment.", [("get_weather", {"city": "Paris"})])
    with serving(folder) as ask:
        assert whole(ask) == (expected, "tool_calls")
        assert streamed(ask) == (expected, "tool_calls")
