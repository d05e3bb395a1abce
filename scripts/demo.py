"""Show a template's format, the events of an answer, and a small model that calls a function and writes JSON.

Usage: `python3 scripts/demo.py [TEMPLATE [ANSWER]]`, both arguments are files. By default, the template comes from
`$UNRENDER_TEMPLATES`, `../shared/templates` or a download, with a prepared answer. The model is downloaded once (93
MB). If the download fails, or there's no build of llama.cpp for this system, a sampler writes well-formed answers.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import fetch
from environment import Environment

TOOLS = Environment.named("tools")
PIECE, PAUSE = 20, 0.05
"""Bytes and seconds: the pace of the prepared answer."""
LLAMA = ("--only-binary", "xllamacpp", "--group", "engines")
"""Pip options that prevent building llama.cpp, which takes long and needs a compiler."""

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
WEATHER = """[{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties":
{"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}]"""

PLAIN = "Why is the sky blue? Answer in one sentence."
SUM = "What is 12 times 34?"


def closed(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties, given with their types."""
    schemas = {name: {"type": kind} for name, kind in properties.items()}
    return {"type": "object", "properties": schemas, "required": list(schemas), "additionalProperties": False}


FUNCTION = {
    "name": "multiply",
    "description": "Multiply two numbers.",
    "parameters": closed({"a": "integer", "b": "integer"}),
}
CALL = {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required", "parallel_tool_calls": False}
SENTENCE = "Ada, 36, is an engineer in London."
PERSON = {"name": "person", "strict": True, "schema": closed({"name": "string", "age": "integer", "job": "string"})}
FILLED = {"response_format": {"type": "json_schema", "json_schema": PERSON}}
COMMON = {"model": "any", "temperature": 0, "seed": 4, "max_tokens": 80, "stream": True}


def main() -> None:
    """Show a template's format, an answer's events, and a model's answers. Exit with the status of the commands."""
    TOOLS.ready()
    try:
        TOOLS.ready([LLAMA])
    except SystemExit as error:
        print(f"demo: {error}\ndemo: without llama.cpp no model answers", file=sys.stderr)
    template = Path(sys.argv[1]).resolve() if sys.argv[1:] else _templates() / TEMPLATE
    answer = Path(sys.argv[2]).read_text(encoding="utf-8") if sys.argv[2:] else ANSWER
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder) / "tools.json"
        tools.write_text(WEATHER, encoding="utf-8")
        _show("unrender", "inspect", str(template))
        _show("unrender", "parse", str(template), "--tools", str(tools), "--stream", text=answer)
    with _gateway("--example-model") as bound:
        print("\nA real answer, streamed" if bound.real else "\nNo model: all that follows is random, but well-formed")
        bound.ask(PLAIN)
        with _gateway("--example-model", "--constrain", "never") if bound.real else contextlib.nullcontext() as free:
            print('\nThe model must call multiply(a: integer, b: integer): tool_choice="required"')
            said = bound.ask(SUM, **CALL)
            (call,) = said["tool_calls"]
            given = json.loads(call["function"]["arguments"])
            result = {"role": "tool", "tool_call_id": call["id"], "content": str(given["a"] * given["b"])}
            print(f"  the result: {result['content']}")
            bound.ask(SUM, said, result)
            _without_grammar(free, SUM, CALL)
            print("\nA JSON schema to fill: name (string), age (integer), job (string)")
            bound.ask(SENTENCE, **FILLED)
            _without_grammar(free, SENTENCE, FILLED)


def _without_grammar(free: Gateway | None, question: str, request: Mapping[str, Any]) -> None:
    if free:
        print("\nThe same request without a grammar")
        free.ask(question, **request)


def _templates() -> Path:
    try:
        return fetch.available_templates()
    except fetch.FetchError as error:
        sys.exit(f"demo: {error}")


def _show(name: str, *arguments: str, text: str = "") -> None:
    print(f"\n$ {shlex.join([name, *arguments])}\n", flush=True)
    with subprocess.Popen([str(TOOLS.program(name)), *arguments], stdin=subprocess.PIPE) as process:
        _type(text, process.stdin)
    if process.returncode:
        sys.exit(process.returncode)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway."""

    port: str

    @property
    def real(self) -> bool:
        """True if a model answers, False for the sampler."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models") as answer:
            return bool(json.load(answer)["data"][0]["id"] != "sampler")

    def ask(self, question: str, *more: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        """Print a question and the streamed answer. Return the message for the next request."""
        messages = [{"role": "user", "content": question}, *more]
        if not more:
            print(f"  > {question}")
        start, told = time.monotonic(), ""
        calls: dict[int, dict[str, Any]] = {}
        print("  ", end="")
        for delta in self._deltas({**COMMON, "messages": messages, **request}):
            for part in delta.get("tool_calls", ()):
                call = calls.setdefault(part["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = part.get("id") or call["id"]
                for key, text in part.get("function", {}).items():
                    call["function"][key] += text
                    print(f"{text}(" if key == "name" else text, end="", flush=True)
            told += delta.get("content") or ""
            print((delta.get("content") or "").replace("\n", "\n  "), end="", flush=True)
        print(f"{')' if calls else ''}   [{time.monotonic() - start:.1f} s]", flush=True)
        return {"role": "assistant", "content": told, **({"tool_calls": list(calls.values())} if calls else {})}

    def _deltas(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the deltas of a streamed chat completion, as OpenAI's client does."""
        headers = {"content-type": "application/json", "authorization": "Bearer any"}
        address = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        try:
            with urllib.request.urlopen(
                urllib.request.Request(address, json.dumps(request).encode(), headers)
            ) as answer:
                for line in answer:
                    if line.startswith(b"data: {"):
                        yield from (choice["delta"] for choice in json.loads(line[6:])["choices"])
        except urllib.error.HTTPError as error:
            sys.exit(f"demo: {error.read().decode()}")


@contextlib.contextmanager
def _gateway(*options: str) -> Iterator[Gateway]:
    """Run a gateway during the `with` block."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = str(unused.getsockname()[1])
    command = ["serve", *options, "--port", port]
    print(f"\n$ {shlex.join(['unrender', *command])}\n", flush=True)
    with subprocess.Popen([str(TOOLS.program("unrender")), *command]) as gateway:
        try:
            _wait(port, gateway)
            yield Gateway(port)
        finally:
            gateway.terminate()


def _wait(port: str, gateway: subprocess.Popen[bytes]) -> None:
    """Wait until the gateway is ready. If it exits, exit with its status."""
    while gateway.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ready")
            return
        time.sleep(0.1)
    sys.exit(gateway.returncode or 1)


def _type(text: str, keyboard: IO[bytes] | None) -> None:
    """Write text in chunks, as a model does. If the program ends early, it prints its own error."""
    if keyboard is None:
        return
    with contextlib.suppress(BrokenPipeError):
        for start in range(0, len(data := text.encode()), PIECE):
            keyboard.write(data[start : start + PIECE])
            keyboard.flush()
            time.sleep(PAUSE)
        keyboard.close()


if __name__ == "__main__":
    main()
