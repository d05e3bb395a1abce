"""A vendor's template into a show: the format derived from it, an answer parsed event by event, and a gateway that streams one.

Usage: `python3 scripts/demo.py [TEMPLATE [ANSWER]]`, both paths of files; without them, a template from
`$UNRENDER_TEMPLATES`, `../shared/templates` or a download, and an answer written here.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import fetch
from environment import Environment

TESTS = Environment.named("tests")
PIECE, PAUSE = 20, 0.12
"""Bytes and seconds: the pace of the answer."""

SEED = 4
TEMPLATE = "GLM-4.6.jinja"
ANSWER = """
<think>The user asks about two cities, so I need two calls.</think>
Let me look that up.
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>São "Sampa" Paulo</arg_value>
<arg_key>days</arg_key>
<arg_value>1</arg_value>
</tool_call>"""
TOOLS = """[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties":
{"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}]"""


def main() -> None:
    """Show a template's format and an answer's events; exit as the commands shown do."""
    TESTS.ready()
    template = Path(sys.argv[1]).resolve() if sys.argv[1:] else _templates() / TEMPLATE
    answer = Path(sys.argv[2]).read_text(encoding="utf-8") if sys.argv[2:] else ANSWER
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools.json"
        tools.write_text(TOOLS, encoding="utf-8")
        _show("unrender", "inspect", str(template))
        _show("unrender", "parse", str(template), "--tools", str(tools), "--stream", text=answer)
    _serve(template)


def _templates() -> Path:
    try:
        return fetch.available_templates()
    except fetch.FetchError as error:
        sys.exit(f"demo: {error}")


def _show(name: str, *arguments: str, text: str = "") -> None:
    print(f"\n$ {shlex.join([name, *arguments])}\n", flush=True)
    with subprocess.Popen([str(TESTS.program(name)), *arguments], stdin=subprocess.PIPE) as process:
        _type(text, process.stdin)
    if process.returncode:
        sys.exit(process.returncode)


def _serve(template: Path) -> None:
    """Run a gateway, and print what a client gets streamed; without a model, the answer is random, but well-formed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = ["serve", "--model", str(template), "--port", port]
    print(f"\n$ {shlex.join(['unrender', *command])}\n", flush=True)
    with subprocess.Popen([str(TESTS.program("unrender")), *command]) as gateway:
        try:
            _wait(port, gateway)
            request = {
                "tools": json.loads(TOOLS),
                "tool_choice": "required",
                "parallel_tool_calls": False,
                "seed": SEED,
            }
            messages = [{"role": "user", "content": "What's the weather in Paris?"}]
            print(f"\nclient.chat.completions.create(stream=True, tools=[...], messages={messages}):\n", flush=True)
            for delta in _deltas(port, {"model": "any", "messages": messages, **request}):
                print(f"  {json.dumps(delta, ensure_ascii=False)}", flush=True)
        finally:
            gateway.terminate()


def _wait(port: str, gateway: subprocess.Popen[bytes]) -> None:
    """Wait until the gateway answers; exit as it does when it ends before."""
    while gateway.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready")
            return
        time.sleep(0.1)
    sys.exit(gateway.returncode or 1)


def _deltas(port: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the deltas of a streamed chat completion, as OpenAI's client does."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    headers = {"content-type": "application/json", "authorization": "Bearer any"}
    connection.request("POST", "/v1/chat/completions", json.dumps({**request, "stream": True}), headers)
    for line in connection.getresponse():
        data = line.decode().removeprefix("data: ").strip()
        if data and data != "[DONE]":
            yield from (choice["delta"] for choice in json.loads(data)["choices"])


def _type(text: str, keyboard: IO[bytes] | None) -> None:
    """Write text in pieces, as a model does; a program that ends early says itself why."""
    data = text.encode()
    if keyboard is None:
        return
    with contextlib.suppress(BrokenPipeError):
        for start in range(0, len(data), PIECE):
            keyboard.write(data[start : start + PIECE])
            keyboard.flush()
            time.sleep(PAUSE)
        keyboard.close()


if __name__ == "__main__":
    main()
