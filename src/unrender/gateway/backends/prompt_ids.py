"""Encodes prompts as token ids with the engine's tokenizer, and reuses the sampled ids of earlier answers.

Strategy: the ids of a finished answer are stored under a digest of its prompt and its text. A later prompt that starts with exactly this
text reuses the ids, and only the rest is encoded. The rest is encoded after a special token, so that no tokenizer adds a space. Rule: if no
ids can be reused, the entire prompt is encoded, so the ids always decode to the prompt.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from hashlib import blake2b

from unrender import Turn
from unrender.gateway.backends.backend import EngineError, Job, Piece
from unrender.limits import MAX_FILE

_SIZE = 4
"""Bytes per id."""


class PromptIds:
    """Token ids of the prompts of one engine. `tokenize` returns the ids of a text, without BOS.

    `strips_stop` is True for an engine that removes the stop string from the text, but not from the ids.
    """

    def __init__(
        self,
        tokenize: Callable[[str], Awaitable[list[int]]],
        *,
        most: int = MAX_FILE // _SIZE,
        strips_stop: bool = False,
    ) -> None:
        self._tokenize = tokenize
        self._strips_stop = strips_stop
        self._most = most
        self._count = 0
        self._kept: OrderedDict[bytes, array[int]] = OrderedDict()
        """Ids by the digest of their text, ordered by last use."""
        self._single: dict[str, int | None] = {}
        """Id of each text that is a single token; None for a text of several tokens."""

    async def generated(
        self, job: Job, generate: Callable[[Job], AsyncGenerator[Piece, None]]
    ) -> AsyncGenerator[Piece, None]:
        """Yield the pieces of `generate` for a job whose prompt is given as ids. The ids of a finished answer are stored.

        Raises `EngineError` if the client asks for ids, and the engine returns none.
        """
        prompt, special = await self.of(job.turn), await self.special(job.turn)
        texts: list[str] = []
        ids: list[int] = []
        finished = False
        async with aclosing(generate(replace(job, prompt_ids=prompt))) as pieces:
            async for piece in pieces:
                # Some engines send the token that ends an answer without its text.
                text = piece.text or "".join(special[id] for id in piece.ids if id in special)
                texts.append(text)
                ids += piece.ids
                finished = finished or bool(piece.finish)
                # An engine's grammar doesn't distinguish special tokens from ordinary text, so a marker may have ordinary tokens.
                known = special if piece.ids and job.grammar is None else None
                yield piece._replace(text=text, special=known, prompt_ids=tuple(prompt))
        if job.wants_ids and any(texts) and not ids:
            raise EngineError("expected the token ids of the answer, found none; the engine may be too old")
        if finished and ids:
            await self.keep(job.turn, prompt, "".join(texts), ids)

    async def of(self, turn: Turn) -> list[int]:
        """Return the ids of a turn's prompt."""
        appended = "".join(piece.text for piece in turn.appended)
        if appended and turn.prompt.endswith(appended):
            key = _digest(turn.prompt.removesuffix(appended))
            before = self._kept.get(key)
            if before is not None:
                self._kept.move_to_end(key)
                added = await self._continuation(turn, appended)
                if added is not None:
                    return [*before, *added]
        return await self._tokenize(turn.prompt)

    async def special(self, turn: Turn) -> dict[int, str]:
        """Return the turn's markers and stop strings that are a single token, by token id."""
        texts = dict.fromkeys([*turn.preserved_tokens, *turn.stop])
        return {id: text for text in texts if (id := await self._id(text)) is not None}

    async def keep(self, turn: Turn, prompt: Sequence[int], text: str, ids: Sequence[int]) -> None:
        """Store the ids of a finished answer, unless the last token may contain more text than the answer."""
        # The ids may contain more than the text, because an engine cuts the text after a stop string, but not the token: the token `END.`
        # leaves the text `END`.
        last = {stop: await self._id(stop) for stop in turn.stop}
        if any(text.endswith(stop) and id != ids[-1] for stop, id in last.items()):
            return
        if self._strips_stop and None in last.values() and ids[-1] not in await self.special(turn):
            return
        key = _digest(turn.prompt + text)
        self._count -= len(self._kept.pop(key, ()))
        self._kept[key] = array("I", [*prompt, *ids])
        self._count += len(self._kept[key])
        while self._count > self._most:
            self._count -= len(self._kept.popitem(last=False)[1])

    async def _continuation(self, turn: Turn, text: str) -> list[int] | None:
        """Return the ids of `text` as a continuation. Returns None if the turn has no special token that can precede the text."""
        for anchor in (*turn.preserved_tokens, *turn.stop):
            first = await self._id(anchor)
            if first is not None:
                ids = await self._tokenize(anchor + text)
                return ids[1:] if ids[:1] == [first] else None
        return None

    async def _id(self, text: str) -> int | None:
        if text not in self._single:
            ids = await self._tokenize(text)
            self._single[text] = ids[0] if len(ids) == 1 else None
        return self._single[text]


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
