"""Encodes prompts as token ids with the engine's own tokenizer; a prompt that continues an answer keeps the ids that were sampled.

Strategy: the ids of a finished answer are kept under a digest of its prompt and its text. A later prompt that begins with exactly
this text gets these ids, and only the text that follows is encoded: after a special token, so that no tokenizer adds a space to it.
Rule: where this isn't possible the whole prompt is encoded, so the ids always spell the prompt.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b

from unrender import Turn
from unrender.limits import MAX_FILE

_SIZE = 4
"""Bytes of an id."""


class PromptIds:
    """Token ids of the prompts of one engine. `tokenize` returns the ids of a text, without BOS."""

    def __init__(self, tokenize: Callable[[str], Awaitable[list[int]]], *, most: int = MAX_FILE // _SIZE) -> None:
        self._tokenize = tokenize
        self._most = most
        self._count = 0
        self._kept: OrderedDict[bytes, array[int]] = OrderedDict()
        """Ids by the digest of the text that they spell; those used last are at the end."""
        self._single: dict[str, int | None] = {}
        """The id of a text that is one token; None for a text of several."""

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
        """Return the turn's markers and stops that are one token, by id."""
        texts = dict.fromkeys([*turn.preserved_tokens, *turn.stop])
        return {id: text for text in texts if (id := await self._id(text)) is not None}

    async def keep(self, turn: Turn, prompt: Sequence[int], text: str, ids: Sequence[int]) -> None:
        """Keep the ids of a finished answer, unless its last token may say more than its text."""
        # An engine cuts the text after a stop text, but not the token that holds it: the token `END.` leaves the letters `END`.
        for stop in turn.stop:
            if text.endswith(stop) and await self._id(stop) != ids[-1]:
                return
        key = _digest(turn.prompt + text)
        self._count -= len(self._kept.pop(key, ()))
        self._kept[key] = array("I", [*prompt, *ids])
        self._count += len(self._kept[key])
        while self._count > self._most:
            self._count -= len(self._kept.popitem(last=False)[1])

    async def _continuation(self, turn: Turn, text: str) -> list[int] | None:
        """Return the ids of text that follows other ids; None where no special token of the turn can stand before it."""
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
