"""Stores answers of Responses for later requests: `previous_response_id`, item references, and their own paths.

Rules: nothing is stored unless a number of bytes is set aside for it; the oldest answers give way. An answer is only found with
the API key that asked for it. Another replica does not know it, so whoever stores needs one gateway, or sticky sessions.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unrender.gateway.failure import Failure, Kind, invalid
from unrender.limits import MOST_LISTED

_OFF = "answers are not stored; send the conversation itself"
_Key = tuple[bytes, str]
"""Whose it is, and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stored answer."""

    response: Mapping[str, Any]
    given: tuple[Any, ...]
    """The items that came before: those of the request, and of the answers that it goes on from."""
    size: int
    """Bytes, as JSON."""

    @property
    def items(self) -> tuple[Any, ...]:
        """The items of the conversation, including this answer."""
        return (*self.given, *self.response["output"])


@dataclass(slots=True)
class Stored:
    """The stored answers of one gateway, at most `most` bytes together; 0 stores none."""

    most: int = 0
    _entries: OrderedDict[_Key, Entry] = field(default_factory=OrderedDict)
    _items: dict[_Key, tuple[_Key, Any]] = field(default_factory=dict)
    """The output items by their ids, with the answer that each is part of."""
    _size: int = 0

    def continued(self, body: Any, owner: bytes) -> Any:
        """Return a request whose `input` is the whole conversation.

        Raises `Failure` when it refers to an answer that is not stored.
        """
        if not isinstance(body, Mapping):
            return body
        # The body is not checked yet: whatever looks wrong here goes on as it is, and `Responses` names the mistake.
        previous, given = body.get("previous_response_id"), body.get("input")
        if previous is not None and not self.most:
            raise invalid(f"previous_response_id: {_OFF}", param="previous_response_id")
        if not self.most:
            return body
        items = [self._resolved(item, owner) for item in given] if isinstance(given, list) else given
        if previous is None:
            return {**body, "input": items}
        # Only items go on, not `instructions`: those are of one request, as OpenAI has it.
        before = self._previous(previous, owner).items
        return {**body, "input": [*before, *_listed(items)]} if isinstance(items, str | list) else body

    def _previous(self, id: Any, owner: bytes) -> Entry:
        entry = self._entries.get((owner, id)) if isinstance(id, str) else None
        if entry is None:
            said = f"previous_response_id: expected the id of a stored response, found {id!r:.80}"
            raise Failure(Kind.INVALID, said, param="previous_response_id", code="previous_response_not_found")
        return entry

    def _resolved(self, item: Any, owner: bytes) -> Any:
        """Return the stored item that a reference means; anything else as it is."""
        if not isinstance(item, Mapping) or item.get("type") != "item_reference":
            return item
        id = item.get("id")
        _, found = self._items.get((owner, id), (None, None)) if isinstance(id, str) else (None, None)
        if found is None:
            raise invalid(f"input: expected the id of a stored item, found {id!r:.80}", param="input")
        return found

    def keep(self, owner: bytes, given: Any, response: Mapping[str, Any]) -> None:
        """Store an answer together with the items of its request. An answer that is too large is not stored."""
        items = tuple(_listed(given))
        # Measured as it would be sent; what Python makes of it takes more, by about as much for every answer.
        size = len(json.dumps([items, response]))
        if size > self.most:
            return
        key = (owner, str(response["id"]))
        self._entries[key] = Entry(response=response, given=items, size=size)
        self._size += size
        # An item can be referred to as long as its answer is here, so both go together.
        self._items.update({(owner, item["id"]): (key, item) for item in response["output"]})
        self.resize(self.most)

    def resize(self, most: int) -> None:
        """Set how many bytes may be stored; the oldest answers give way at once."""
        self.most = most
        while self._size > most:
            self._forget(next(iter(self._entries)))

    def get(self, owner: bytes, id: str) -> Entry:
        """Return a stored answer. Raises `Failure` when there is none with that id."""
        entry = self._entries.get((owner, id))
        if entry is None:
            why = f"found {id!r:.80}" if self.most else _OFF
            raise Failure(Kind.NOT_FOUND, f"response: expected the id of a stored response: {why}", param="response_id")
        return entry

    def delete(self, owner: bytes, id: str) -> dict[str, Any]:
        """Delete a stored answer; return the confirmation. Raises `Failure` when there is none."""
        self.get(owner, id)
        self._forget((owner, id))
        return {"id": id, "object": "response", "deleted": True}

    def _forget(self, key: _Key) -> None:
        entry = self._entries.pop(key)
        self._size -= entry.size
        for item in entry.response["output"]:
            self._items.pop((key[0], item["id"]), None)

    def input_items(self, owner: bytes, id: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return a page of the items in an answer's request.

        The newest item comes first unless `order` is "asc".
        """
        items = [_shown(item, i) for i, item in enumerate(self.get(owner, id).given)]
        if query.get("order", "desc") != "asc":
            items.reverse()
        ids = [item["id"] for item in items]
        after, limit = query.get("after"), query.get("limit", "20")
        if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= MOST_LISTED:
            raise invalid(f"limit: expected an integer from 1 to {MOST_LISTED}, found {limit!r:.80}", param="limit")
        if after is not None and after not in ids:
            raise invalid(f"after: expected the id of an item, found {after!r:.80}", param="after")
        begin = 0 if after is None else ids.index(after) + 1
        page = items[begin : begin + int(limit)]
        first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
        more = begin + len(page) < len(items)
        return {"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": more}


def _listed(given: Any) -> Sequence[Any]:
    """Return the items that an input means."""
    return [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given


def _shown(item: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return an input item with the fields that clients expect."""
    kind, content = item.get("type") or "message", item.get("content")
    shown = {"id": f"item_{index}", "status": "completed", **item, "type": kind}
    if kind == "message" and isinstance(content, str):
        part = {"type": "input_text", "text": content}
        if item.get("role") == "assistant":
            part = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}  # type: ignore[dict-item]
        shown["content"] = [part]
    return shown
