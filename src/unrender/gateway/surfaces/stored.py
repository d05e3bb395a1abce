"""Stores Responses API answers for `previous_response_id`, item references, and the `/v1/responses/{id}` paths.

Rules: nothing is stored unless a store size is configured. The oldest answers are deleted when the store is full, and every answer expires.
An answer can be read only with the API key that requested it. In a SQLite file, answers survive a restart, and all processes on the machine
that use the file share them. Otherwise, answers are stored in memory. One thread accesses the database, and each statement is its own
transaction.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from unrender.gateway.failure import Failure, FailureKind, invalid

_OFF = "answers are not stored; send the conversation itself"
_PATIENCE = 5.0
"""Maximum time to wait while another process uses the database, in seconds."""
_ROOM = 0.9
"""Fraction of the store's size that is kept when old answers are deleted. The rest leaves room for answers that other processes store
before the next check.
"""
_SEEN = 100
"""Number of times that the total size is checked while the store fills up.

A check adds up the sizes of all answers, so checking after every new answer would be slow.
"""
_OPENING = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL")
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    owner TEXT NOT NULL, id TEXT NOT NULL, kept REAL NOT NULL, size INTEGER NOT NULL,
    given TEXT NOT NULL, response TEXT NOT NULL, PRIMARY KEY (owner, id)
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS answers_by_age ON answers (kept, size)"
_LEAVE = """
DELETE FROM answers WHERE (owner, id) IN (
    SELECT owner, id FROM (SELECT owner, id, SUM(size) OVER (ORDER BY kept DESC, id) AS newer FROM answers) AS sums
    WHERE newer > ?
)
"""
"""Statement that deletes the oldest answers, so that the others fit into a total size in bytes."""
_T = TypeVar("_T")
_log = logging.getLogger("unrender.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stored answer."""

    response: Mapping[str, Any]
    given: Sequence[Any]
    """Items before the answer: those of its request, and of the answers that it continues."""


class Stored:
    """The stored answers of one gateway, or of all gateways that use the same file.

    `place` is the file; "" stores answers in memory. Answers have at most `most` bytes together (0 disables the store), and expire after
    `seconds`.
    """

    def __init__(self, place: str = "", *, most: int, seconds: float) -> None:
        self.most: int = most
        self._place = place
        self._seconds = seconds
        self._unseen = 0
        """Number of bytes that this process has written since the last size check."""
        # A single thread keeps database work off the event loop and serializes access to the connection.
        self._thread = ThreadPoolExecutor(1, "stored")

    @cached_property
    def _database(self) -> sqlite3.Connection:
        """The database connection, created on first use, in the thread that uses it, as SQLite requires."""
        if self._place:
            Path(self._place).touch(0o600)  # the file contains conversations, so only its owner may read it
        opened = sqlite3.connect(self._place or ":memory:", timeout=_PATIENCE, isolation_level=None)
        for statement in (*_OPENING, _TABLE, _INDEX):
            opened.execute(statement)
        return opened

    def _do(self, statement: str, *given: Any) -> Any:
        return self._database.execute(statement, given)

    async def _run(self, work: Callable[[], _T]) -> _T:
        """Run `work` in the database's thread and return its result. Raises `Failure` if the database fails."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (sqlite3.Error, OSError) as error:
            _log.error("the response store is unavailable: %s", error)
            raise Failure(FailureKind.BUSY, "the response store is unavailable") from error

    async def continued(self, body: Any, owner: bytes) -> Any:
        """Return a request whose `input` is the complete conversation.

        Raises `Failure` if the request refers to an answer that is not stored.
        """
        if not isinstance(body, Mapping):
            return body
        # The body has not been validated. Invalid values are returned unchanged, and `responses` reports the error.
        previous, given = body.get("previous_response_id"), body.get("input")
        if previous is not None and not self.most:
            raise invalid(f"previous_response_id: {_OFF}", param="previous_response_id")
        refers = isinstance(given, list) and any(map(_refers, given))
        if not self.most or not (refers or previous is not None):
            return body
        return await self._run(lambda: self._continued(body, owner))

    def _continued(self, body: Mapping[str, Any], owner: bytes) -> Any:
        previous, given = body.get("previous_response_id"), body.get("input")
        found = cache(lambda id: self._found(owner, id))
        items = [_resolved(item, found) for item in given] if isinstance(given, list) else given
        if previous is None:
            return {**body, "input": items}
        entry = found(previous) if isinstance(previous, str) else None
        if entry is None:
            said = f"previous_response_id: expected the id of a stored response, found {previous!r:.80}"
            raise Failure(FailureKind.INVALID, said, param="previous_response_id", code="previous_response_not_found")
        # Take only the items from earlier requests. As in OpenAI's API, `instructions` apply to a single request.
        before = [*entry.given, *entry.response["output"]]
        return {**body, "input": [*before, *_listed(items)]} if isinstance(items, str | list) else body

    def _found(self, owner: bytes, id: str) -> Entry | None:
        # Look up only ASCII ids: all stored ids are ASCII, and a database query can't contain unpaired surrogates.
        if not (self.most and id.isascii() and id.isprintable()):
            return None
        oldest = time.time() - self._seconds
        statement = "SELECT given, response FROM answers WHERE owner = ? AND id = ? AND kept > ?"
        row = self._do(statement, owner.hex(), id, oldest).fetchone()
        return Entry(given=json.loads(row[0]), response=json.loads(row[1])) if row else None

    async def keep(self, owner: bytes, given: Any, response: Mapping[str, Any]) -> None:
        """Store an answer together with the items of its request. An answer that is too large is not stored."""
        await self._run(lambda: self._keep(owner, given, response))

    def _keep(self, owner: bytes, given: Any, response: Mapping[str, Any]) -> None:
        # Estimate the size in the database by the length of the JSON.
        texts = json.dumps(_listed(given)), json.dumps(response)
        size = sum(map(len, texts))
        if size > self.most * _ROOM:
            return
        row = (owner.hex(), str(response["id"]), time.time(), size, *texts)
        self._do("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?)", *row)
        self._unseen += size
        self._make_room()

    def _make_room(self) -> None:
        """Delete expired answers, and the oldest ones above the size limit."""
        self._do("DELETE FROM answers WHERE kept <= ?", time.time() - self._seconds)
        if self._unseen >= self.most / _SEEN:
            self._unseen = 0
            self._do(_LEAVE, int(self.most * _ROOM))

    async def tidy(self) -> None:
        """Delete answers that have expired, and the oldest ones if the store exceeds its size limit."""
        self._unseen = self.most
        with suppress(Failure):  # already logged
            if self.most:
                await self._run(self._make_room)

    async def close(self) -> None:
        """Close the database if it is open."""
        if "_database" in vars(self):
            await self._run(lambda: vars(self).pop("_database").close())

    async def get(self, owner: bytes, id: str) -> Entry:
        """Return a stored answer. Raises `Failure` if no stored answer has this id."""
        entry = await self._run(lambda: self._found(owner, id)) if self.most else None
        if entry is None:
            why = f"expected the id of a stored response, found {id!r:.80}" if self.most else _OFF
            raise Failure(FailureKind.NOT_FOUND, f"response: {why}", param="response_id")
        return entry

    async def delete(self, owner: bytes, id: str) -> dict[str, Any]:
        """Delete a stored answer, and return the confirmation. Raises `Failure` if no stored answer has this id."""
        await self.get(owner, id)
        await self._run(lambda: self._do("DELETE FROM answers WHERE owner = ? AND id = ?", owner.hex(), id))
        return {"id": id, "object": "response", "deleted": True}


def _refers(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "item_reference"


def _resolved(item: Any, found: Callable[[str], Entry | None]) -> Any:
    """Return the stored item that a reference points to. Other items are returned unchanged."""
    if not _refers(item):
        return item
    # Item ids contain the id of their answer: `msg_` + `4f…` + `000` is the first item of `resp_4f…`.
    id = item.get("id")
    entry = found(f"resp_{id.partition('_')[2][:-3]}") if isinstance(id, str) else None
    own = [one for one in entry.response["output"] if one["id"] == id] if entry else []
    if not own:
        raise invalid(f"input: expected the id of a stored item, found {id!r:.80}", param="input")
    return own[0]


def _listed(given: Any) -> Sequence[Any]:
    """Return the items of a request's `input`, which is a string or a list."""
    return [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
