"""Engines with a small real model behind our gateway on a socket, and each engine's own chat endpoint for comparison.

The model is the one that `unrender serve --example-model` downloads. Each engine runs on one thread, since others use
the machine, too.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import openai
from real_requests import ROOT, Answer, Request, sent, whole

from unrender import Turn
from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.backends import EngineGrammar, Job
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer
from unrender.gateway.config import example_model, read
from unrender.gateway.serve import listener, server

KEPT = ROOT / ".cache" / "example-model"
"""The folder of the model. Tests run without the analysis cache, which would contain the model otherwise."""
STARTS = 900
"""Maximum start-up time of an engine's server in seconds. Imports alone take 20 s on an idle machine."""
Messages = Sequence[Mapping[str, Any]]


class Own(Protocol):
    """The engine without unrender."""

    def prompt(self, messages: Messages) -> list[int]:
        """Return the tokens of the chat endpoint's prompt."""

    def tokens(self, prompt: str) -> list[int]:
        """Return the tokens of our prompt."""

    def answer(self, request: Request) -> Answer:
        """Return the chat endpoint's answer."""

    def generated(self, model: Model, turn: Turn) -> tuple[str, list[int]]:
        """Return an answer's text and tokens, constrained by the turn's grammar as in the gateway."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of tokens."""

    def busy(self) -> bool:
        """Return whether the engine is generating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """An engine behind a gateway."""

    url: str
    model: Model
    own: Own
    special: frozenset[int]
    """The ids of the model's special tokens."""
    keeps: bool = False
    """True if the engine's cache changes rounding, and so its answers at temperature 0."""
    forced: int
    """Number of forced calls, lower for a slow engine."""
    plugin: bool = False
    """True if the engine's own server answers with our plug-in, without a gateway."""
    holds_schemas: bool = False
    """True if the engine enforces a response format itself, without calling the plug-in."""

    @property
    def client(self) -> Any:
        """OpenAI's client. It validates only the gateway's answers strictly: SGLang's own metadata isn't text."""
        return openai.OpenAI(
            base_url=f"{self.url}/v1", api_key="-", max_retries=0, _strict_response_validation=not self.plugin
        )

    def ask(self, request: Request) -> Answer:
        """Return an answer."""
        others = ("continue_final_message", "add_generation_prompt")
        more = {"extra_body": {name: request[name] for name in others if name in request}}
        body = {name: value for name, value in sent(request).items() if name not in more["extra_body"]}
        with self.client as client:
            return dict(client.chat.completions.create(**body, **more).model_dump(warnings=not self.plugin))

    def warm(self, request: Request) -> None:
        """Have the engine read a prompt if its cache changes the rounding of later answers."""
        if self.keeps:
            self.ask({**request, "max_tokens": 1})

    def stream(self, request: Request) -> Answer:
        """Return a streamed answer."""
        with (
            self.client as client,
            client.chat.completions.create(**sent(request), stream=True, stream_options={"include_usage": True}) as run,
        ):
            return whole(chunk.model_dump(warnings=not self.plugin) for chunk in run)

    def prompt(self, request: Request) -> str:
        """Return the gateway's prompt; without a gateway, our template's prompt."""
        if self.plugin:
            return self.model.turns.template.prepare(request["messages"]).prompt
        return str(_json(f"{self.url}/v1/render", sent(request))["prompt"])


def _json(url: str, body: Any = None, *, seconds: float | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=seconds) as answer:
        return json.load(answer)


def _body(backend: Any, job: Job) -> dict[str, Any]:
    """Return the request body for a whole answer, from a new backend: connections belong to one event loop."""

    async def made() -> dict[str, Any]:
        try:
            return {**await backend._body(job), "stream": False}
        finally:
            await backend.close()

    return asyncio.run(made())


@contextmanager
def serving(model: Model) -> Iterator[str]:
    """Run a gateway in its own thread and yield its address."""
    listening = listener("127.0.0.1", 0)
    running = server(app([model]))
    thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(10)


class _Llama:
    """llama.cpp's own server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def prompt(self, messages: Messages) -> list[int]:
        return self._tokens(_json(f"{self.url}/apply-template", {"messages": messages})["prompt"])

    def tokens(self, prompt: str) -> list[int]:
        return self._tokens(prompt)

    def _tokens(self, prompt: str) -> list[int]:
        body = {"content": prompt, "add_special": False, "parse_special": True}
        return list(_json(f"{self.url}/tokenize", body)["tokens"])

    def answer(self, request: Request) -> Answer:
        return dict(_json(f"{self.url}/v1/chat/completions", sent(request)))

    def generated(self, model: Model, turn: Turn) -> tuple[str, list[int]]:
        made = turn.constraint("llama.cpp")
        grammar = EngineGrammar(dialect="gbnf", text=made.grammar, triggers=made.triggers)
        job = Job(turn=turn, request_id="ids", grammar=grammar, limit=200, sampling={"temperature": 0})
        said = _json(f"{self.url}/completion", _body(LlamaServer(Connection(self.url)), job))
        return said["content"], said["tokens"]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        del skip_special_tokens
        return str(_json(f"{self.url}/detokenize", {"tokens": list(ids)})["content"])

    def busy(self) -> bool:
        return any(slot["is_processing"] for slot in _json(f"{self.url}/slots"))


@contextmanager
def llama_cpp() -> Iterator[Real]:
    """Run llama.cpp in this process, as `unrender serve --gguf` does."""
    settings = {"name": "m", "backend": "gguf", "path": str(example_model(KEPT)), "threads": 1}
    (model,) = read({"models": [settings]}).models
    backend: Any = model.backend
    with serving(model) as url:
        own = _Llama(backend._connection.url)
        special = frozenset(token for text in ("<|im_start|>", "<|im_end|>") for token in own.tokens(text))
        yield Real(url=url, model=model, own=own, special=special, keeps=True, forced=200)


class _Server:
    """The own server of vLLM or SGLang at an address."""

    def __init__(self, url: str, kind: str, model: Model, *, plugin: bool) -> None:
        self.url, self._kind, self._model, self._plugin = url, kind, model, plugin

    def prompt(self, messages: Messages) -> list[int]:
        return list(_json(f"{self.url}/tokenize", {"model": "m", "messages": messages})["tokens"])

    def tokens(self, prompt: str) -> list[int]:
        body = {"model": "m", "prompt": prompt, "add_special_tokens": False}
        return list(_json(f"{self.url}/tokenize", body)["tokens"])

    def answer(self, request: Request) -> Answer:
        if not self._plugin:
            return dict(_json(f"{self.url}/v1/chat/completions", sent(request)))
        # With the plug-in, the chat endpoint uses it. Otherwise, the engine completes a prompt.
        asked = {name: value for name, value in sent(request).items() if name != "messages"}
        prompt = self._model.turns.template.prepare(request["messages"]).prompt
        answer = dict(_json(f"{self.url}/v1/completions", {**asked, "prompt": prompt, "add_special_tokens": False}))
        for choice in answer["choices"]:
            choice["message"] = {"content": choice["text"]}
        return answer

    def generated(self, model: Model, turn: Turn) -> tuple[str, list[int]]:
        del model
        tag = turn.constraint("xgrammar").grammar
        grammar = EngineGrammar(dialect="structural_tag", text=tag)
        job = Job(turn=turn, request_id="ids", grammar=grammar, limit=200, sampling={"temperature": 0})
        body = _body(_before(self._kind, self.url).backend, job)
        body.pop("stream_options", None)
        if self._kind == "sglang":
            said = _json(f"{self.url}/generate", body)
            return said["text"], said["output_ids"]
        said = _json(f"{self.url}/v1/completions", {**body, "return_token_ids": True})["choices"][0]
        return said["text"], said["token_ids"]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        body = {"model": "m", "tokens": list(ids), "skip_special_tokens": skip_special_tokens}
        said = _json(f"{self.url}/detokenize", body)
        return str(said["prompt" if self._kind == "vllm" else "text"])

    def busy(self) -> bool:
        # Answers are generated one by one, so a single token comes quickly if the engine is idle.
        try:
            _json(f"{self.url}/v1/completions", {"model": "m", "prompt": "Hi", "max_tokens": 1}, seconds=5)
        except TimeoutError:
            return True
        return False


def _before(kind: str, url: str) -> Model:
    """Return a gateway model for the server at an address."""
    settings = {"name": "m", "backend": kind, "url": url, "template": str(example_model(KEPT))}
    return read({"models": [settings]}).models[0]


@contextmanager
def own_server(kind: str, *, plugin: bool) -> Iterator[Real]:
    """Run vLLM's or SGLang's own server as its users do: behind the gateway, or with our plug-in."""
    file = example_model(KEPT)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    plain = _PLUGIN[kind] if plugin else ()
    log = KEPT / f"{kind}.log"
    command = [sys.executable, str(ROOT / "tests" / f"real_{kind}.py"), str(file), "--port", str(port), *plain]
    with log.open("wb") as written, subprocess.Popen(command, stdout=written, stderr=written) as process:
        try:
            _wait(process, f"{url}/health", log)
            model = _before(kind, url)
            own = _Server(url, kind, model, plugin=plugin)
            special = frozenset(token for text in ("<|im_start|>", "<|im_end|>") for token in own.tokens(text))
            more: dict[str, Any] = {"model": model, "own": own, "special": special, "forced": 12}
            if plugin:
                yield Real(url=url, plugin=True, holds_schemas=kind == "sglang", **more)
                return
            with serving(model) as gateway:
                yield Real(url=gateway, **more)
        finally:
            process.terminate()


_PARSERS = ("--tool-call-parser", "unrender", "--reasoning-parser", "unrender")
# SGLang's JSON grammars allow unlimited whitespace between tokens, and such a small model writes it.
_COMPACT = "--constrained-json-disable-any-whitespace"
_PLUGIN = {"vllm": ("--enable-auto-tool-choice", *_PARSERS), "sglang": (_COMPACT, *_PARSERS)}


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + STARTS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5)
        except OSError:
            assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")[-4000:]
            assert time.monotonic() < end, log
            time.sleep(0.5)
        else:
            return


ENGINES: Mapping[str, Callable[[], AbstractContextManager[Real]]] = {
    "llama.cpp": llama_cpp,
    **{kind: partial(own_server, kind, plugin=False) for kind in _PLUGIN},
    **{f"{kind}+plugin": partial(own_server, kind, plugin=True) for kind in _PLUGIN},
}
"""The engines by the names in `UNRENDER_REAL`."""
