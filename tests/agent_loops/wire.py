"""Requests and responses between a program and the gateway, and a judge of their histories.

Rules: the judge knows the formats of the three APIs and uses nothing from unrender. In the history that a program sends
back, each call must have one result under an id from the gateway. Each call must also have reached a tool.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from agent_loops.errands import Called

Call = tuple[str, str, str]
"""The id, name and arguments of a call."""


@dataclass(slots=True)
class Wire:
    """The gateway's address, and every request with its answer."""

    address: str
    exchanges: list[dict[str, Any]] = field(default_factory=list)

    def client(self) -> httpx2.AsyncClient:
        """Return the HTTP client that the packages use."""
        return httpx2.AsyncClient(transport=_Kept(self.exchanges), timeout=280)

    def answered(self) -> list[dict[str, Any]]:
        """Return the exchanges, except for a program's first attempt to have its conversation stored.

        The gateway rejects such attempts.
        """
        return [one for one in self.exchanges if "thread_unsupported_request" not in one["answer"]]


class _Kept(httpx2.AsyncHTTPTransport):
    """A transport that copies requests and answers."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        super().__init__()
        self._exchanges = exchanges

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        kept = {"request": json.loads(request.content), "status": response.status_code, "answer": ""}
        self._exchanges.append(kept)
        body = _Copied(response, kept)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=body, extensions=response.extensions
        )


class _Copied(httpx2.AsyncByteStream):
    """A response body that is copied while it is read."""

    def __init__(self, response: httpx2.Response, kept: dict[str, Any]) -> None:
        self._response = response
        self._kept = kept

    async def __aiter__(self) -> AsyncIterator[bytes]:
        data = b""
        async for piece in self._response.aiter_raw():
            data += piece
            self._kept["answer"] = data.decode("utf-8", "replace")
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@dataclass(frozen=True, slots=True)
class History:
    """The calls and the ids of the results in one request."""

    calls: Sequence[Call]
    results: Sequence[str]


def _chat(body: Mapping[str, Any]) -> Iterator[Call | str]:
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            yield call["id"], call["function"]["name"], call["function"]["arguments"]
        if message["role"] == "tool":
            yield message["tool_call_id"]


def _responses(body: Mapping[str, Any]) -> Iterator[Call | str]:
    for item in body["input"] if isinstance(body["input"], list) else ():
        if item.get("type") == "function_call":
            yield item["call_id"], item["name"], item["arguments"]
        if item.get("type") == "function_call_output":
            yield item["call_id"]


def _messages(body: Mapping[str, Any]) -> Iterator[Call | str]:
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                yield block["id"], block["name"], json.dumps(block["input"])
            if block["type"] == "tool_result":
                yield block["tool_use_id"]


HISTORIES: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Call | str]]] = {
    "input": _responses,
    "max_completion_tokens": _chat,
    "messages": _messages,
}
"""A field that only one API's requests have, and the function that reads them; the first match counts."""


def history(body: Mapping[str, Any]) -> History:
    """Return the calls and results in a request."""
    found = list(next(read for name, read in HISTORIES.items() if name in body)(body))
    return History([one for one in found if not isinstance(one, str)], [one for one in found if isinstance(one, str)])


def complaints(wire: Wire, called: Sequence[Called], *, turns: int, stream: bool) -> list[str]:
    """Return the complaints about a loop; empty if there are none."""
    exchanges = wire.answered()
    wrong = [f"broken call: {one}" for one in called if one.broken]
    wrong += [f"status {one['status']}: {one['answer'][:500]}" for one in exchanges if one["status"] != 200]
    wrong += [f"streamed: {one['answer'][:80]}" for one in exchanges if one["answer"].startswith("{") == stream]
    if not 0 < len(exchanges) <= turns:
        wrong.append(f"{len(exchanges)} turns")
    if exchanges:
        said = "".join(one["answer"] for one in exchanges)
        wrong += _mismatched(history(exchanges[-1]["request"]), said, called)
    return wrong


def _mismatched(held: History, said: str, called: Sequence[Called]) -> Iterator[str]:
    ids = [id for id, _, _ in held.calls]
    if len(set(ids)) < len(ids):
        yield f"one id twice: {ids}"
    if sorted(ids) != sorted(held.results):
        yield f"calls {ids}, but results of {list(held.results)}"
    for id in ids:
        if f'"{id}"' not in said:
            yield f"an id that no answer gave: {id}"
    sent = Counter(_plain(name, arguments) for _, name, arguments in held.calls)
    run = Counter(_plain(one.name, one.arguments) for one in called)
    for call in sent - run:
        yield f"a call that no tool was given: {call}"


def _plain(name: str, arguments: str) -> tuple[str, str]:
    return name, json.dumps(json.loads(arguments), sort_keys=True)
