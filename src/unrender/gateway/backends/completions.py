"""Client for engines with OpenAI's `/v1/completions`. vLLM gets token ids instead of text if it supports them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from unrender.gateway.backends import SAMPLING, EngineCapabilities, EngineError, Job, OutputPiece
from unrender.gateway.backends.connection import EngineObject, HttpEngine, list_in, score, scored_items
from unrender.openai import Usage

_COMMON = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"})
_TOKENIZE = "/tokenize"
"""Path for counting tokens."""
_TOKENS_IN = "/inference/v1/generate"
"""Path for prompts as token ids, with images."""
_UNLIMITED = 4096
"""Default value of `max_tokens` if the room in the context is unknown. Without `max_tokens`, engines stop after 16 tokens."""
_SAMPLED = (
    *sorted(SAMPLING),
    *("stop", "seed", "logprobs", "skip_special_tokens", "spaces_between_special_tokens", "include_stop_str_in_output"),
)
"""Sampling parameters that both of vLLM's paths accept, for text and for token ids."""


class Completions(HttpEngine):
    """An engine that completes text."""

    path = "/v1/completions"
    health = sign = "/v1/models"
    usage_follows = True
    capabilities = EngineCapabilities(logprobs=True, sampling=_COMMON)
    fixed: ClassVar[Mapping[str, Any]] = {}
    """Fields of every request."""

    _context: int | None = None
    """Context size in tokens; 0 if the engine doesn't report it, and None before the first request."""

    async def _body(self, job: Job) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": await self._name(),
            "prompt": job.turn.prompt,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": await self._limit(job),
            "stop": list(job.turn.stop)[:4],  # OpenAI allows four; the parser detects the others
            **self.fixed,
            **{name: value for name, value in job.sampling.items() if name in self.capabilities.sampling},
        }
        if job.seed is not None:
            body["seed"] = job.seed
        if job.logprobs is not None:
            body["logprobs"] = job.logprobs
        return body

    def _pieces(self, data: EngineObject, top: int | None) -> list[OutputPiece]:
        found = []
        for choice in data.listed("choices"):
            if choice.get("finish_reason") == "abort":
                raise EngineError("the engine aborted the request", where=self._where)
            text, ids = choice.text("text"), choice.ids("token_ids")
            # vLLM lists the ids of a piece. For other engines, a piece counts as one token. Even a piece without text may contain a token,
            # which is then part of a character.
            tokens = int(bool(text)) if ids is None else len(ids)
            logprobs = () if top is None else tuple(_tokens(choice.get("logprobs"), top))
            prompt, finish = choice.ids("prompt_token_ids"), choice.ending("finish_reason")
            found.append(
                OutputPiece(text, tokens, finish, None, logprobs, ids=tuple(ids or ()), prompt_ids=tuple(prompt or ()))
            )
        if isinstance(data.get("usage"), dict):
            usage = Usage(
                prompt_tokens=data.number("usage", "prompt_tokens"),
                completion_tokens=data.number("usage", "completion_tokens"),
                cached_tokens=data.number("usage", "prompt_tokens_details", "cached_tokens"),
            )
            found.append(OutputPiece("", 0, None, usage))
        return found

    async def chat(self, request: Mapping[str, Any]) -> EngineObject:
        """Return the answer of the engine's own Chat Completions endpoint."""
        return await super().chat({"model": await self._name(), **request})

    async def context(self) -> int | None:
        """Return the context size, if the engine's list of models contains it."""
        await self._name()
        return self._context or None

    async def _name(self) -> str:
        """Return the model's name on the engine."""
        if self._context is None:
            await self._learn()
        return self._model

    async def _learn(self) -> None:
        """Query the model's name and context. Raises `EngineError` if there is no name."""
        nothing = EngineObject({}, self._where)
        try:
            listed = (await self._query("/v1/models")).listed("data") or [nothing]
        # Ignore the error if the settings contain the model's name, since a server without this path may still complete text.
        except EngineError as error:
            if not self._model or error.status is None:
                raise
            listed = [nothing]
        known = next((item for item in listed if item.get("id") == self._model), listed[0])
        self._model = self._model or known.text("id")
        self._context = known.number("max_model_len")

    async def _limit(self, job: Job) -> int:
        """Return the maximum number of tokens to generate: the request's limit, or less if the context is known to have less room.

        The engine treats null as 16, and rejects a value that exceeds the context.
        """
        # A prompt has at most as many tokens as bytes, e.g. two for "Hi". If that many fit in addition to the limit, counting isn't
        # necessary.
        context = self._context or 0
        most = len(job.turn.prompt.encode(errors="replace"))
        if job.limit is not None and (not context or job.limit + most <= context):
            return job.limit
        counted = None
        if context:
            counted = await self.count(job.turn.prompt) if job.prompt_ids is None else len(job.prompt_ids)
        if counted is not None and counted >= context:
            said = f"the maximum context length is {context} tokens, and the prompt has {counted}"
            raise EngineError(said, where=self._where, status=400)
        if counted is None:  # then only the engine knows the room
            return job.limit or min(_UNLIMITED, context // 2 or _UNLIMITED)
        return min(job.limit or context, context - counted)


class VLLM(Completions):
    """A vLLM server. The engine accepts structural tags and, since vLLM 0.33, token ids and images.

    An engine started with its own reasoning parser accepts grammars on this path, but ignores them.
    """

    health, sign = "/health", "/version"
    capabilities = EngineCapabilities(
        dialect="structural_tag",
        logprobs=True,
        token_ids=True,
        takes_ids="always",
        sampling=SAMPLING,
        images="shown",
    )
    fixed: ClassVar[Mapping[str, Any]] = {
        "add_special_tokens": False,  # the template has already added BOS
        "skip_special_tokens": False,  # the parser needs special tokens
        "spaces_between_special_tokens": False,
        # The parser detects stop strings. To strip stop strings, the engine would have to hold back output throughout the answer.
        "include_stop_str_in_output": True,
        "return_token_ids": True,
    }

    _takes_ids: bool | None = None
    """True if the engine returns text for token ids; None before the first request."""

    async def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Yield the engine's output. With token ids, a prompt reuses the exact ids that were sampled before."""
        as_ids, generate = job.turn.media or await self._ids_taken(), super().generate
        try:
            async with aclosing(self._prompt_ids.generated(job, generate) if as_ids else generate(job)) as pieces:
                async for piece in pieces:
                    yield piece
        except EngineError as error:
            if as_ids and error.status == 404:  # The engine was probably restarted with a release that lacks this path.
                self._takes_ids = None
            raise

    async def _ids_taken(self) -> bool:
        """Return True if the engine returns text for token ids. The result is cached.

        vLLM before 0.33 has the path, but ignores `output_mode` and returns only ids. The engine's OpenAPI schema shows if it supports
        `output_mode`.
        """
        if self._takes_ids is None:
            try:
                schema: Any = await self._connection.json("/openapi.json")
                paths, request = schema["paths"], schema["components"]["schemas"]["GenerateRequest"]["properties"]
                self._takes_ids = {_TOKENS_IN, _TOKENIZE} <= {*paths} and "output_mode" in request
            except EngineError as error:
                if error.status is None:
                    raise
                self._takes_ids = False
            except (KeyError, TypeError):
                self._takes_ids = False
        return self._takes_ids

    async def _body(self, job: Job) -> dict[str, Any]:
        as_text, job = job.prompt_ids is None, await self._prompt_ids.guarded(job)
        body = await super()._body(job)
        if job.grammar is not None:
            body["structured_outputs"] = {"structural_tag": job.grammar.text}
        if as_text:
            return body if job.prompt_ids is None else {**body, "prompt": list(job.prompt_ids)}
        return self._with_ids(body, job)

    def _path(self, job: Job) -> str:
        """Return the path for a job. The completions path of older releases accepts token ids, too, but no images."""
        return self.path if job.prompt_ids is None else _TOKENS_IN

    def _with_ids(self, body: dict[str, Any], job: Job) -> dict[str, Any]:
        """Return a request with the prompt's token ids and images. The engine expands the image placeholders."""
        sampled = {name: body[name] for name in (*_SAMPLED, "structured_outputs") if name in body}
        # With images, send only the request's own limit, since only the engine knows the number of tokens in an image. Without a limit, the
        # engine uses the remaining context.
        limit = job.limit if job.turn.media else body["max_tokens"]
        if limit is not None:
            sampled["max_tokens"] = limit
        parts = [{"type": "image_url", "url": medium.data} for medium in job.turn.media]
        return {
            **{name: body[name] for name in ("model", "stream", "stream_options")},
            "token_ids": list(job.prompt_ids or ()),
            **({"content_parts": parts} if parts else {}),
            "sampling_params": sampled,
            "output_mode": "text",
            "reasoning_ended": True,  # the grammar constrains the entire answer, including its reasoning
        }

    async def count(self, text: str) -> int | None:
        """Return the engine's token count."""
        return (await self._tokenized(text)).number("count")

    async def rendered(self, request: Mapping[str, Any]) -> str | None:
        """Return the engine's own prompt, decoded from the token ids of its messages."""
        name = await self._name()
        ids = (await self._query(_TOKENIZE, {"model": name, **request})).get("tokens")
        return (await self._query("/detokenize", {"model": name, "tokens": ids})).text("prompt") or None

    async def _tokenized(self, text: str, *, start: bool = False) -> EngineObject:  # noqa: ARG002 - it adds no BOS
        body = {"model": await self._name(), "prompt": text, "add_special_tokens": False}
        return await self._query(_TOKENIZE, body)


def _tokens(logprobs: Any, top: int) -> list[dict[str, Any]]:
    """Return log probabilities in the format of Chat Completions. Invalid entries are omitted."""
    # This is the format of responses to requests with token ids.
    if content := list_in(logprobs, "content"):
        return scored_items(content, top)
    tokens, values, others = (list_in(logprobs, name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    beside = [list(other.items())[:top] if isinstance(other, dict) else [] for other in others]
    return [
        token | {"top_logprobs": [one for name, of in alternatives for one in score(name, of)]}
        for text, value, alternatives in zip(tokens, values, beside or [[]] * len(tokens), strict=False)
        for token in score(text, value)
    ]
