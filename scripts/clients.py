"""Clients that people use, each through a whole tool loop against the gateway: `python scripts/clients.py [NAME ...]`.

Needs node and npm, and the project with its gateway and its tests' dependencies; the clients are installed into `.clients`. No part of
CI: the packages fill some 800 MB. `--python PROGRAM` names a Python that has LangChain and LiteLLM already.  The engine is scripted: it calls the one tool that it knows of the client's, and then says what it
learnt, so that a client gets to "It rains." only if it has understood the call and sent its result back.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".clients"
PYTHON = FOLDER / "python"
PACKAGES = (
    "ai@^6",
    "zod",
    "@ai-sdk/openai-compatible",
    "@ai-sdk/anthropic",
    "@openai/codex",
    "@anthropic-ai/claude-code",
)
PYTHON_PACKAGES = ("langchain>=1,<2", "langchain-openai>=1,<2", "litellm>=1.80,<2")
LEARNT = "wet in Paris"
ANSWER = "It rains."
CALLS = {
    "get_weather": '{"city": "Paris"}',
    "shell": f'{{"command": ["echo", "{LEARNT}"]}}',
    "exec_command": f'{{"cmd": "echo {LEARNT}"}}',
    "Bash": f'{{"command": "echo {LEARNT}", "description": "Look."}}',
}
"""The tools of the clients, and what they are called with."""
SCRIPT = """
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText, streamText, tool, stepCountIs } from 'ai';
import { z } from 'zod';
const baseURL = process.env.GATEWAY + '/v1', apiKey = 'any';
const model = process.argv[2] === 'chat'
  ? createOpenAICompatible({ name: 'gateway', baseURL, apiKey })('m') : createAnthropic({ baseURL, apiKey })('m');
const execute = async ({ city }) => 'wet in ' + city;
const tools = { get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute }) };
const asked = { model, tools, prompt: 'Rain?', stopWhen: stepCountIs(4), maxOutputTokens: 1000 };
const whole = await generateText(asked), stream = streamText(asked);
if (whole.steps[0].reasoningText !== 'Look.') throw 'no reasoning';
if (await stream.text !== whole.text) throw 'stream and whole differ';
console.log(whole.text);
"""

LANGCHAIN = """
import os
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

def get_weather(city: str) -> str:
    'Tell the weather.'
    return f'wet in {city}'

address = os.environ['GATEWAY'] + '/v1'
asked = {'messages': [{'role': 'user', 'content': 'Rain?'}]}
for more in ({}, {'streaming': True}, {'use_responses_api': True}):
    agent = create_agent(ChatOpenAI(model='m', base_url=address, api_key='any', **more), [get_weather])
    *_, last = agent.invoke(asked)['messages']
    assert last.text == 'It rains.', (more, last)
print(last.text)
"""
LITELLM = """
import json, os
import litellm

function = {'name': 'get_weather', 'parameters': {'type': 'object', 'properties': {'city': {'type': 'string'}}}}
asked = {'model': 'openai/m', 'api_base': os.environ['GATEWAY'] + '/v1', 'api_key': 'any',
         'tools': [{'type': 'function', 'function': function}]}
for stream in (False, True):
    messages = [{'role': 'user', 'content': 'Rain?'}]
    for _ in range(2):
        answer = litellm.completion(messages=messages, stream=stream, **asked)
        message = (litellm.stream_chunk_builder(list(answer)) if stream else answer).choices[0].message
        messages.append(message.model_dump())
        for call in message.tool_calls or []:
            assert message.reasoning_content == 'Look.', message
            city = json.loads(call.function.arguments)['city']
            messages.append({'role': 'tool', 'tool_call_id': call.id, 'content': f'wet in {city}'})
    assert message.content == 'It rains.', (stream, message)
print(message.content)
"""


def serve() -> str:
    """Run a gateway with the scripted engine in a thread; returns its address."""
    sys.path.insert(0, str(ROOT / "tests"))
    from serving import Told, served  # noqa: PLC0415 - the tests' own

    from unrender.gateway import Job, Piece  # noqa: PLC0415
    from unrender.gateway.serve import server  # noqa: PLC0415

    class Scripted(Told):
        async def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
            tools = [tool.name for tool in job.turn.request.tools or () if tool.name in CALLS]
            text = ANSWER
            if tools and LEARNT not in job.turn.prompt:
                call = f'{{"name": "{tools[0]}", "arguments": {CALLS[tools[0]]}}}'
                text = f"<think>\nLook.\n</think>\n<tool_call>\n{call}\n</tool_call>"
            for at in range(0, len(text), 5):
                yield Piece(text[at : at + 5])

    running = server(served(Scripted("")), port=0)
    threading.Thread(target=running.run, daemon=True).start()
    while not running.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"


def ai_sdk(surface: str) -> Callable[[Path, str], list[str]]:
    """Return what runs the AI SDK."""

    def prepared(_folder: Path, _address: str) -> list[str]:
        script = FOLDER / "ai.mjs"  # beside the packages that it imports
        script.write_text(SCRIPT)
        return ["node", str(script), surface]

    return prepared


def codex(folder: Path, address: str) -> list[str]:
    """Return what runs Codex."""
    provider = f'[model_providers.g]\nname = "g"\nbase_url = "{address}/v1"\nwire_api = "responses"\n'
    (folder / "config.toml").write_text(f'model = "m"\nmodel_provider = "g"\n{provider}')
    return [str(_program("codex")), "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "Does it rain?"]


def claude_code(_folder: Path, _address: str) -> list[str]:
    """Return what runs Claude Code."""
    return [str(_program("claude")), "-p", "Does it rain?", "--allowedTools", "Bash(echo:*)"]


def python(script: str) -> Callable[[Path, str], list[str]]:
    """Return what runs a script that uses a Python client."""
    return lambda _folder, _address: [str(PYTHON), "-c", script]


PYTHON_CLIENTS = {"LangChain": python(LANGCHAIN), "LiteLLM": python(LITELLM)}
NODE_CLIENTS = {
    "AI SDK, openai-compatible": ai_sdk("chat"),
    "AI SDK, anthropic": ai_sdk("messages"),
    "Codex": codex,
    "Claude Code": claude_code,
}
CLIENTS = {**PYTHON_CLIENTS, **NODE_CLIENTS}


def main() -> None:
    """Run the clients named, all by default; the exit code is 1 when one did not get to the answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CLIENTS], metavar="NAME", help=", ".join(CLIENTS))
    parser.add_argument("--python", type=Path)
    asked = parser.parse_args()
    chosen = {name: CLIENTS[name] for name in asked.names or CLIENTS}
    FOLDER.mkdir(exist_ok=True)
    if chosen.keys() & NODE_CLIENTS.keys():
        npm = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(FOLDER)]
        subprocess.run([*npm, *PACKAGES], check=True)
    if chosen.keys() & PYTHON_CLIENTS.keys():
        _python(asked.python)
    address = serve()
    failed = [name for name, prepared in chosen.items() if not _answers(name, prepared, address)]
    sys.exit(bool(failed))


def _python(given: Path | None) -> None:
    """Install the Python clients, where no Python that has them is given."""
    if given is None:
        venv.create(FOLDER / "venv", with_pip=True)
        given = FOLDER / "venv" / "bin" / "python"
        subprocess.run([given, "-m", "pip", "install", "--quiet", *PYTHON_PACKAGES], check=True)
    PYTHON.write_text(f'#!/bin/sh\nexec {given.absolute()} "$@"\n')
    PYTHON.chmod(0o755)


def _answers(name: str, prepared: Callable[[Path, str], list[str]], address: str) -> bool:
    with tempfile.TemporaryDirectory() as home:
        command = prepared(Path(home), address)
        own = {"HOME": home, "CODEX_HOME": home, "GATEWAY": address, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        anthropic = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_AUTH_TOKEN": "any", "ANTHROPIC_MODEL": "m"}
        done = subprocess.run(
            command, cwd=home, env={**os.environ, **own, **anthropic}, stdin=subprocess.DEVNULL, timeout=300,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    answered = done.stdout.strip().endswith(ANSWER)
    print(f"{name}: {'ok' if answered else done.stdout[-500:] + done.stderr[-1500:]}", flush=True)
    return answered


def _program(name: str) -> Path:
    return FOLDER / "node_modules" / ".bin" / name


if __name__ == "__main__":
    main()
