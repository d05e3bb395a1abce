"""Talks to Ollama's `/api/generate` with `raw`; no grammars, so answers are only validated afterwards."""

from __future__ import annotations

from typing import Any

from unrender import Usage
from unrender.gateway.backends.backend import EngineCapabilities, Job, Piece
from unrender.gateway.backends.connection import Connection, HttpEngine, Reader, checked, number, parsed, text_of

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


class Ollama(HttpEngine):
    """An Ollama server; `model` is the model's name there."""

    path = "/api/generate"
    health = "/api/version"

    def __init__(self, connection: Connection, *, model: str) -> None:
        super().__init__(connection)
        self._model = model

    @property
    def capabilities(self) -> EngineCapabilities:
        """No grammars."""
        return EngineCapabilities(sampling=frozenset(_SAMPLING))

    def _reader(self, _: Job) -> Reader:
        def read(line: bytes, more: bool) -> tuple[list[Piece], bool]:
            if not line.strip():
                return [], False
            data = checked(parsed(line, self._where), self._where)
            text = text_of(data, "response", self._where)
            if not data.get("done"):
                return [Piece(text, more=more)], False
            usage = Usage(prompt_tokens=number(data, "prompt_eval_count"), completion_tokens=number(data, "eval_count"))
            return [Piece(text, 0, "length" if data.get("done_reason") == "length" else "stop", usage)], True

        return read

    async def _body(self, job: Job) -> dict[str, Any]:
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
