"""Answers with random, well-formed text in pieces like tokens: an engine without a model, for tests and first tries."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator

from unrender import GrammarError, Usage
from unrender.gateway.backends.backend import EngineCapabilities, EngineError, Job, Piece

_TOKEN = re.compile(r"\s?\w{1,6}|\s+|[^\w\s]", re.DOTALL)
"""What counts as a token; together they are the whole text."""


class Sampler:
    """Writes answers at `rate` tokens a second, 0 for as fast as it can."""

    def __init__(self, *, rate: float = 0.0) -> None:
        self._pause = 1 / rate if rate else 0.0

    @property
    def capabilities(self) -> EngineCapabilities:
        """It needs no grammar: the answers that it draws are well-formed."""
        return EngineCapabilities(obeys=True)

    async def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
        """Yield a random answer, the same for the same seed."""
        seed = secrets.randbits(32) if job.seed is None else job.seed
        try:
            text = await asyncio.to_thread(job.turn.sample, seed)
        except GrammarError as error:
            raise EngineError(f"the sampler has no grammar for this request: {error}", status=400) from error
        # The limit cuts the text off between pieces, as an engine would between tokens.
        tokens = _TOKEN.findall(text)
        cut_off = job.limit is not None and len(tokens) > job.limit
        kept = tokens[: job.limit]
        for token in kept:
            if self._pause:
                await asyncio.sleep(self._pause)
            yield Piece(token)
        usage = Usage(prompt_tokens=await self.count(job.turn.prompt), completion_tokens=len(kept))
        yield Piece("", 0, "length" if cut_off else "stop", usage)

    async def count(self, text: str) -> int:
        """Return the number of pieces."""
        return len(_TOKEN.findall(text))

    async def ready(self) -> str | None:
        """It always is."""
        return None

    async def close(self) -> None:
        """It holds nothing."""
