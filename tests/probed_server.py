"""A server with a scripted model that solves the probe's tasks, and settings for known faults of servers and models.

Strategy: the model finds the task in its prompt, and writes the answer as its own template would. It speaks the
protocol of each kind of engine. A token is a special token, a word, or a character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from engine_server import EngineServer, events

from unrender import ChatTemplate
from unrender.answer.encode import encode_answer
from unrender.probe.answers import prepared
from unrender.probe.evidence import FREE, thinking_switch
from unrender.probe.tasks import COUNTS, Task, tasks_with

REFUSED = {"status": 400}


class Refused(Exception):
    """A request that the server rejects."""


Call = tuple[str, Mapping[str, Any], str]


def same(value: Any) -> Any:
    return value


def usage_of(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"prompt_tokens": said["read"], "completion_tokens": said["made"]}


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server. Each field other than its default is a fault, or a difference between healthy servers."""

    template: ChatTemplate
    kind: str = "llama-server"
    own_template: ChatTemplate | None = None
    """The template used by the server's own endpoints."""
    renders: Callable[[str], str] = same
    """Function that changes the prompts of the server's own endpoints."""
    hides_prompts: int = 0
    """Status of the response to a request for a prompt; 0 if the server shows its prompts."""
    reads: Callable[[str], str] = same
    """Function that changes each prompt before the model reads it."""
    writes: Callable[[str, Task, int], str] = lambda text, task, number: text
    """Function that changes the text of the model's answer to a task. `number` counts the answers."""
    sends: Callable[[str], str] = same
    """Function that changes the outgoing text, after its tokens were counted."""
    asks: Callable[[Any], Any] = same
    """Function that changes the requests to the server's own endpoints."""
    responds: Callable[[Any], Any] = same
    """Function that changes the responses of the server's own Chat Completions."""
    frames: Callable[[list[Any]], list[Any]] = same
    """Function that changes the events of a stream."""
    bound: Callable[[str], str] = same
    """Function that changes the answers under a grammar for calls."""
    bos: bool = False
    """True if the server adds another BOS token."""
    knows: bool = True
    """True if the template's special tokens are tokens of the model."""
    grammars: bool = True
    longest: int = 100_000
    """Number of characters of a grammar above which the server ignores it."""
    context: int = 100_000
    limit: int = 100_000
    ignores_limit: bool = False
    stops: bool = True
    """True if the server stops at the end of a turn and at stop strings."""
    shows_end: bool = False
    """True if the end of a turn is part of the answer's text."""
    stop: Sequence[str] = ()
    """The server's own stop strings."""
    fails: Callable[[str, Task], str] = lambda prompt, task: ""
    """Function that returns an error message."""
    counts: bool = True
    """True if SGLang's server can count tokens."""
    echoes: bool = False
    parses: Callable[[Sequence[Call]], Sequence[Call]] = lambda calls: calls
    """Function that changes the calls of the server's own parser."""
    state: dict[str, Any] = field(default_factory=lambda: {"answers": 0})

    # The model.

    def task_in(self, prompt: str) -> Task:
        """Return the task in a prompt, with its tools."""
        asked = [*(task for count in COUNTS for task in tasks_with(count)), FREE]
        found = [task for task in asked if task.messages[0]["content"] in prompt]
        known = sum(f'"{tool["function"]["name"]}"' in prompt for tool in next(tasks_with(60)).tools)
        return min(found, key=lambda task: abs(task.count - known)) if found else FREE

    def says(self, prompt: str, task: Task, *, bound: bool = False) -> str:
        """Return the model's answer, including the end of its turn. If it's `bound`, a grammar enforces the template's syntax."""
        turn = prepared(self.template, task, **({"enable_thinking": False} if self._off(prompt) else {}))
        offered = [call for call in task.wanted if f'"{call["name"]}"' in prompt or call["name"] in prompt]
        calls = [
            (it["name"], {k: v[0] for k, v in it["arguments"].items()}, f"call0000{i}") for i, it in enumerate(offered)
        ]
        content = "" if calls else "It is clear and 21 degrees." if len(task.messages) > 1 else "I can say that."
        reasoning = "Let me see." if turn.format.reasoning.end and turn.thinking is not False else ""
        text = encode_answer(turn.format, content=content, reasoning=reasoning, calls=calls).removeprefix(turn.prefill)
        self.state["answers"] += 1
        text = self.bound(text) if bound else self.writes(text, task, self.state["answers"])
        return text + (turn.format.turn.end.strip() or "<eos>")

    def _off(self, prompt: str) -> bool:
        if "switch" not in self.state:
            self.state["switch"] = thinking_switch(self.template)
        switch, off = self.state["switch"], self.template.format.turn.prefill_no_thinking
        return bool(switch and off and prompt.rstrip().endswith(off.strip()))

    # Tokens.

    def tokens(self, text: str) -> list[str]:
        own = (
            {*self.template.format.preserved_tokens, *self.template.format.turn.all_ends} if self.knows else set[str]()
        )
        special = sorted({*own, "<s>"}, key=len, reverse=True)
        return re.findall("|".join([*map(re.escape, special), r" ?\w+", r"\s", r"."]), text, re.DOTALL)

    def generated(self, prompt: str, *, grammar: str, stop: Sequence[str], limit: int) -> dict[str, Any]:
        """Return the text, the number of tokens read and generated, and the finish reason."""
        grammar = grammar if len(grammar) <= self.longest else ""
        read = self.reads(prompt)
        task = self.task_in(prompt)
        size = len(self.tokens(read)) + self.bos
        if error := self.fails(prompt, task):
            raise Refused(error)
        if size > self.context:
            raise Refused(f"the request exceeds the available context size ({self.context} tokens)")
        const = re.fullmatch(r'root ::= (".*")\s*', grammar) if grammar else None
        if self.grammars and const:
            text = json.loads(const[1])
        elif self.grammars and grammar.startswith("{") and json.loads(grammar)["format"].get("type") == "const_string":
            text = json.loads(grammar)["format"]["value"]
        else:
            text = self.says(read, task, bound=bool(grammar and self.grammars))
        made = self.tokens(text)
        finish = "stop"
        limit = self.limit if self.ignores_limit else min(limit, self.limit)
        if len(made) > limit:
            made, finish = made[:limit], "length"
        shown = "".join(made).removesuffix("<eos>")
        for end in (*stop, *self.stop, *self.template.format.turn.all_ends) if self.stops else ():
            shown = shown.partition(end)[0]
        made = made[: len(self.tokens(shown)) + 1]
        shown += made[-1] * (self.shows_end and made[-1] in self.template.format.turn.all_ends)
        return {"text": prompt * self.echoes + self.sends(shown), "read": size, "made": len(made), "finish": finish}

    # Protocols.

    def routes(self) -> dict[str, Any]:
        chat = {"/v1/chat/completions": lambda body: self.responds(self._chat(body))}
        own: dict[str, dict[str, Any]] = {
            "llama-server": {"/props": self._props, "/health": {}, "/completion": self._completion,
                             "/tokenize": self._tokenize, "/apply-template": self._apply},
            "vllm": {"/version": {"version": "0.30"}, "/health": {}, "/v1/models": self._models, "/v1/completions": self._openai,
                     "/tokenize": self._vllm_tokenize, "/detokenize": lambda body: {"prompt": self.state["shown"]}},
            "openai": {"/v1/models": self._models, "/v1/completions": self._openai},
            "sglang": {"/get_server_info": {"context_length": self.context}, "/health": {}, "/generate": self._generate,
                       "/tokenize": lambda body: {"count": len(self.tokens(body["prompt"]))} if self.counts else REFUSED},
            "ollama": {"/api/version": {"version": "1"}, "/api/generate": self._ollama},
        }  # fmt: skip
        return {path: self._checked(answer) for path, answer in {**chat, **own[self.kind]}.items()}

    def _checked(self, answer: Any) -> Any:
        """Return a function that returns the answer to a body, or the refusal in the form of the server."""

        def respond(body: Any) -> Any:
            try:
                return answer(body) if callable(answer) else answer
            except Refused as error:
                words = str(error)
                return REFUSED | {"error": words if self.kind == "ollama" else {"message": words}}

        return respond

    def _props(self, _: Any) -> Any:
        loaded = (self.own_template or self.template)._loaded
        tokens = {"bos_token": loaded.bos_token, "eos_token": loaded.eos_token}
        settings = {"default_generation_settings": {"n_ctx": self.context}}
        return {"chat_template": loaded.sources["default"], **tokens, **settings}

    def _models(self, _: Any) -> Any:
        return {"data": [{"id": "m", **({"max_model_len": self.context} if self.kind == "vllm" else {})}]}

    def _tokenize(self, body: Any) -> Any:
        made = self.tokens(body["content"])
        ids = self.state.setdefault("ids", {})
        numbers = [ids.setdefault(token, len(ids)) for token in made]
        return {"tokens": [{"piece": token} for token in made] if body.get("with_pieces") else numbers}

    def _apply(self, body: Any) -> Any:
        hidden = {"status": self.hides_prompts, "error": {"message": "no"}}
        return hidden if self.hides_prompts else {"prompt": self._rendered(body)}

    def _rendered(self, body: Any) -> str:
        body = self.asks(body)
        variables = body.get("chat_template_kwargs") or {}
        own = self.own_template or self.template
        task = Task(name="", messages=body["messages"], tools=body.get("tools") or (), variables=variables)
        return self.renders(prepared(own, task).prompt)

    def _vllm_tokenize(self, body: Any) -> Any:
        self.state["shown"] = self._rendered(body) if "messages" in body else body["prompt"]
        made = self.tokens(self.state["shown"])
        return {"tokens": list(range(len(made))), "count": len(made)}

    def _completion(self, body: Any) -> Any:
        limit = body["n_predict"] if body["n_predict"] >= 0 else 100_000
        # A lazy grammar has no effect before its trigger.
        grammar = "" if body.get("grammar_lazy") else body.get("grammar", "")
        prompt, texts = body["prompt"], list(self.state.get("ids", ()))
        prompt = prompt if isinstance(prompt, str) else "".join(texts[number] for number in prompt)
        said = self.generated(prompt, grammar=grammar, stop=body["stop"], limit=limit)
        last = {"content": "", "stop": True, "stop_type": {"stop": "eos", "length": "limit"}[said["finish"]],
                "tokens_predicted": said["made"], "tokens_evaluated": said["read"]}  # fmt: skip
        pieces = [{"content": it, "tokens": [1], "stop": False} for it in self.tokens(said["text"])]
        return [events(*self.frames(pieces), last, done=False)]

    def _openai(self, body: Any) -> Any:
        grammar = (body.get("structured_outputs") or {}).get("structural_tag", "")
        said = self.generated(body["prompt"], grammar=grammar, stop=body["stop"], limit=body["max_tokens"])
        pieces = [{"choices": [{"text": it, "finish_reason": None}]} for it in self.tokens(said["text"])]
        last = {"choices": [{"text": "", "finish_reason": said["finish"]}]}
        return [events(*self.frames(pieces), last, {"choices": [], "usage": usage_of(said)})]

    def _generate(self, body: Any) -> Any:
        given = body["sampling_params"]
        limit = given["max_new_tokens"] or 100_000
        said = self.generated(body["text"], grammar=given.get("structural_tag", ""), stop=given["stop"], limit=limit)
        meta = {**usage_of(said), "finish_reason": {"type": said["finish"]}}
        return [events({"text": said["text"], "meta_info": meta})]

    def _ollama(self, body: Any) -> Any:
        given = body["options"]
        limit = given["num_predict"] if given["num_predict"] >= 0 else 100_000
        said = self.generated(body["prompt"], grammar="", stop=given["stop"], limit=limit)
        counts = {"prompt_eval_count": said["read"], "eval_count": said["made"]}
        last = {"response": "", "done": True, "done_reason": said["finish"], **counts}
        lines = [*({"response": it, "done": False} for it in self.tokens(said["text"])), last]
        return ["".join(json.dumps(line) + "\n" for line in lines).encode()]

    def _chat(self, body: Any) -> Any:
        """Answer Chat Completions with the server's own template and parser."""
        prompt = self._rendered(body)
        said = self.generated(prompt, grammar="", stop=(), limit=body["max_tokens"])
        task = Task(name="", messages=body["messages"], tools=body.get("tools") or (), variables={})
        message = prepared(self.template, task).parse(said["text"])
        calls = self.parses([(call.name, call.arguments or {}, call.id) for call in message.tool_calls])
        made = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments, id in calls
        ]
        reply = {"role": "assistant", "content": message.content, **({"tool_calls": made} if made else {})}
        return {"choices": [{"message": reply}], "usage": usage_of(said)}


@asynccontextmanager
async def running(server: Server) -> Any:
    """Run a server, and yield its address."""
    async with EngineServer(server.routes()) as listening:
        yield listening.url
