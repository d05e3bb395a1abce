"""Encodes prompts as token ids with the engine's tokenizer, and reuses the sampled ids of earlier answers.

Strategy: the ids of a finished answer are stored under a digest of its prompt and its text. A later prompt that starts with exactly this
text reuses the ids, and only the rest is encoded. The rest is encoded after a special token, so that no tokenizer adds a space. Rule: if no
ids can be reused, the entire prompt is encoded, so the ids always decode to the prompt.

If a message contains a marker of the template, the prompt is split inside that marker, and the parts are encoded in one request, with a
special token between them. So the marker becomes ordinary tokens.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate

from unrender import Turn
from unrender.cache import Cache
from unrender.gateway.backends import EngineError, Job, OutputPiece
from unrender.limits import MAX_FILE

_SIZE = 4
"""Bytes per id."""


class PromptIds:
    """Token ids of the prompts of one engine.

    `tokenize` returns the ids of a text; with `start`, those of the start of a prompt, with the BOS that the engine adds, if any.
    `strips_stop` is True for an engine that removes the stop string from the text, but not from the ids.
    """

    def __init__(
        self,
        tokenize: Callable[..., Awaitable[list[int]]],
        *,
        most: int = MAX_FILE // _SIZE,
        strips_stop: bool = False,
    ) -> None:
        self._tokenize = tokenize
        self._strips_stop = strips_stop
        self._kept: Cache[array[int]] = Cache(most)
        """Ids by the digest of their prompt's parts. Their number is limited."""
        self._single: dict[str, int | None] = {}
        """Id of each text that is a single token; None for a text of several tokens."""

    async def generated(
        self, job: Job, generate: Callable[[Job], AsyncGenerator[OutputPiece, None]]
    ) -> AsyncGenerator[OutputPiece, None]:
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

    async def guarded(self, job: Job) -> Job:
        """Return the job with the prompt's ids if a message contains a marker of the template. Any other prompt is sent as text."""
        takes = job.prompt_ids is None and job.turn._has_markers and not job.turn.media
        return replace(job, prompt_ids=await self.of(job.turn)) if takes else job

    async def of(self, turn: Turn) -> list[int]:
        """Return the ids of a turn's prompt."""
        parts = await _parts(turn)
        appended = "".join(piece.text for piece in turn.appended)
        if appended and turn.prompt.endswith(appended):
            earlier, added = _split(parts, len(turn.prompt) - len(appended))
            before = self._kept.get(digest_of(*earlier))
            if before is not None:
                anchor = await self._anchor(turn)
                ids = anchor and await self._joined(anchor, ["", *added])
                if ids:
                    return [*before, *ids]
        # If none of the markers is a single token, messages can't contain special tokens.
        anchor = await self._anchor(turn) if len(parts) > 1 else None
        if anchor is None:
            return await self._tokenize(turn.prompt, start=True)
        ids = await self._joined(anchor, parts)
        if ids is None:
            raise EngineError(f"the engine's tokenizer doesn't always encode {anchor[0]!r} as one token")
        return ids

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
        *parts, end = await _parts(turn)
        # The same text can be a conversation, and a single message that forges this conversation. These have different parts.
        self._kept.put(digest_of(*parts, end + text), array("I", [*prompt, *ids]), weight=len(prompt) + len(ids))

    async def _anchor(self, turn: Turn) -> tuple[str, int] | None:
        """Return a special token that can separate parts of a prompt, and its id. Returns None if the turn has none."""
        for text in (*turn.preserved_tokens, *turn.stop):
            id = await self._id(text)
            if id is not None:
                return text, id
        return None

    async def _joined(self, anchor: tuple[str, int], parts: Sequence[str]) -> list[int] | None:
        """Return the ids of parts that are encoded one by one, after the first, which may be empty. Only one request is sent.

        Returns None if the anchor isn't always a token.
        """
        text, token = anchor
        ids = await self._tokenize(text.join(parts), start=bool(parts[0]))
        if parts[0] == "" and parts[2:] == []:
            return ids[1:] if ids[:1] == [token] else None
        # The parts may contain the anchor, too: the template's own text does.
        places = [at for at, one in enumerate(ids) if one == token]
        between = [count - 1 for count in accumulate(part.count(text) + 1 for part in parts)]
        if len(places) != between.pop():
            return None
        removed = {places[at] for at in between}
        return [one for at, one in enumerate(ids) if at not in removed]

    async def _id(self, text: str) -> int | None:
        if text not in self._single:
            ids = await self._tokenize(text)
            self._single[text] = ids[0] if len(ids) == 1 else None
        return self._single[text]


async def _parts(turn: Turn) -> list[str]:
    """Return the parts of a prompt that are encoded one by one. Finding them may render the conversation, so use a thread."""
    return await asyncio.to_thread(turn._parts) if turn._has_markers else [turn.prompt]


def _split(parts: Sequence[str], at: int) -> tuple[list[str], list[str]]:
    """Split the parts of a prompt at a position of the prompt."""
    starts = [0, *accumulate(map(len, parts))]
    before = [part[: at - start] for part, start in zip(parts, starts, strict=False) if start < at]
    return before, [
        part[max(at - start, 0) :] for part, start in zip(parts, starts, strict=False) if start + len(part) > at
    ]


def digest_of(*parts: str | bytes) -> bytes:
    """Return the digest of a sequence of texts. Each one is prefixed with its length, so that no other sequence has the same digest."""
    made = blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="surrogatepass")
        made.update(len(data).to_bytes(8) + data)
    return made.digest()
