"""Talks to Ollama's `/api/generate` with `raw`; no grammars, so answers are only validated afterwards."""

from __future__ import annotations

from typing import Any

from unrender import Usage
from unrender.gateway.backends.backend import EngineCapabilities, Job, Piece
from unrender.gateway.backends.connection import Connection, HttpEngine, Reader, Said, parsed
from unrender.gateway.backends.llama_server import LLAMA_SAMPLING, llama_sampling


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
        return EngineCapabilities(sampling=frozenset(LLAMA_SAMPLING))

    def _reader(self, _: Job) -> Reader:
        def read(line: bytes) -> tuple[list[Piece], bool]:
            if not line.strip():
                return [], False
            data = Said(parsed(line, self._where), self._where)
            text = data.text("response")
            if not data.get("done"):
                return [Piece(text)], False
            usage = Usage(prompt_tokens=data.number("prompt_eval_count"), completion_tokens=data.number("eval_count"))
            return [Piece(text, 0, "length" if data.get("done_reason") == "length" else "stop", usage)], True

        return read

    async def _body(self, job: Job) -> dict[str, Any]:
        options: dict[str, Any] = {
            **llama_sampling(job.sampling),
            "num_predict": -1 if job.limit is None else job.limit,
            "stop": list(job.turn.stop),
        }
        if job.seed is not None:
            options["seed"] = job.seed
        return {"model": self._model, "prompt": job.turn.prompt, "raw": True, "stream": True, "options": options}
