"""Show a template's format, the events of an answer, and a small model that calls a function and writes JSON.

Usage: `python3 scripts/demo.py [TEMPLATE [ANSWER]]`, both arguments are files. By default, the template comes from
`$UNRENDER_TEMPLATES`, `../shared/templates` or a download, with a prepared answer. The model is downloaded once (93
MB). If the download fails, or there's no build of llama.cpp for this system, a sampler writes well-formed answers.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import fetch
from environment import ROOT, Environment

sys.path.append(str(ROOT / "benchmarks"))

from served import Server, ask, started

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
COMMON = {"model": "any", "temperature": 0, "seed": 4, "max_tokens": 80}


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
    with ExitStack() as stack:
        bound = _gateway(stack, "--example-model")
        with bound.get("/v1/models") as models:
            real = json.load(models)["data"][0]["id"] != "sampler"
        print("\nA real answer, streamed" if real else "\nNo model: all that follows is random, but well-formed")
        _ask(bound, PLAIN)
        free = _gateway(stack, "--example-model", "--constrain", "never") if real else None
        print('\nThe model must call multiply(a: integer, b: integer): tool_choice="required"')
        said = _ask(bound, SUM, **CALL)
        (call,) = said["tool_calls"]
        given = json.loads(call["function"]["arguments"])
        result = {"role": "tool", "tool_call_id": call["id"], "content": str(given["a"] * given["b"])}
        print(f"  the result: {result['content']}")
        _ask(bound, SUM, said, result)
        _without_grammar(free, SUM, CALL)
        print("\nA JSON schema to fill: name (string), age (integer), job (string)")
        _ask(bound, SENTENCE, **FILLED)
        _without_grammar(free, SENTENCE, FILLED)


def _without_grammar(free: Server | None, question: str, request: Mapping[str, Any]) -> None:
    if free:
        print("\nThe same request without a grammar")
        _ask(free, question, **request)


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


def _gateway(stack: ExitStack, *options: str) -> Server:
    """Return a gateway that runs until the stack closes. If it exits, exit with an error message."""
    command = ["unrender", "serve", *options, "--port", "{port}"]
    print(f"\n$ {shlex.join(command[:-2])}\n", flush=True)
    return started(stack, [str(TOOLS.program("unrender")), *command[1:]], "/ready", output=None)


def _ask(server: Server, question: str, *more: Mapping[str, Any], **request: Any) -> dict[str, Any]:
    """Print a question and the streamed answer. Return the message for the next request."""
    print("  " if more else f"  > {question}\n  ", end="")
    messages = [{"role": "user", "content": question}, *more]
    try:
        said = ask(server, {**COMMON, "messages": messages, **request}, _print)
    except urllib.error.HTTPError as error:
        sys.exit(f"demo: {error.read().decode()}")
    print(f"{')' if said.calls else ''}   [{said.seconds:.1f} s]", flush=True)
    return {"role": "assistant", **{name: part for name, part in said.message.items() if part or name == "content"}}


def _print(delta: Mapping[str, Any]) -> None:
    for part in delta.get("tool_calls", ()):
        for key, text in part.get("function", {}).items():
            print(f"{text}(" if key == "name" else text, end="", flush=True)
    print((delta.get("content") or "").replace("\n", "\n  "), end="", flush=True)


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
