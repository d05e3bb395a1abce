"""Talks to Ollama's `/api/generate` with `raw`; no grammars, so answers are only validated afterwards."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from unrender.gateway.backends.backend import EngineCapabilities, EngineError, Job, Piece
from unrender.gateway.backends.connection import Connection, checked, number, parsed, text_of
from unrender.parser.completions import Usage

_PATH = "/api/generate"
_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
}
_NEUTRAL = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0}
"""The values that change nothing: the engine's own defaults are not OpenAI's."""


class Ollama:
    """An Ollama server; `model` is the model's name there."""

    def __init__(self, connection: Connection, *, model: str) -> None:
        self._connection = connection
        self._model = model
        self._where = connection.url + _PATH

    @property
    def capabilities(self) -> EngineCapabilities:
        """No grammars."""
        return EngineCapabilities(sampling=frozenset(_SAMPLING))

    async def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
        """Yield what the engine writes."""
        async with aclosing(self._connection.lines(_PATH, self._body(job), job.headers)) as lines:
            async for line, more in lines:
                if not line.strip():
                    continue
                data = checked(parsed(line, self._where), self._where)
                text = text_of(data, "response", self._where)
                if not data.get("done"):
                    yield Piece(text, more=more)
                    continue
                usage = Usage(
                    prompt_tokens=number(data, "prompt_eval_count"), completion_tokens=number(data, "eval_count")
                )
                yield Piece(text, 0, "length" if data.get("done_reason") == "length" else "stop", usage)
                return
        raise EngineError("the engine broke off before its last word", where=self._where)

    def _body(self, job: Job) -> dict[str, Any]:
        options: dict[str, Any] = {
            **_NEUTRAL,
            **{_SAMPLING[name]: value for name, value in job.sampling.items()},
            "num_predict": -1 if job.limit is None else job.limit,
            "stop": list(job.turn.stop),
        }
        if job.seed is not None:
            options["seed"] = job.seed
        return {"model": self._model, "prompt": job.turn.prompt, "raw": True, "stream": True, "options": options}

    async def count(self, text: str) -> int | None:  # noqa: ARG002
        """It does not tell."""
        return None

    async def ready(self) -> str | None:
        """Ask for its version."""
        return await self._connection.problem("/api/version")

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()
