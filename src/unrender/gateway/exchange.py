"""Handles one HTTP request: reads it, prepares the turn, generates, and sends the answer or an error.

One task handles the request. A second task, the watcher, cancels the first one when the client disconnects.

Rules: each frame waits until the server has accepted the previous one, so a slow client slows down the engine instead of filling memory. A
stream has one task that sends pings.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, MutableMapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from unrender.gateway.answers import RunningAnswer
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import Prepared
from unrender.gateway.backends import EngineError
from unrender.gateway.failure import Failure, FailureKind
from unrender.gateway.gateway import Gateway
from unrender.gateway.record import Record
from unrender.gateway.surfaces import Api, Ask, Head, Surface
from unrender.gateway.uploads import Gone, Receive
from unrender.limits import MAX_REMARK

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
_STREAMED: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """One streamed response. Sends `ping` after `interval` seconds without a frame, even before the first frame."""

    def __init__(self, send: Send, headers: Headers, *, ping: bytes, interval: float) -> None:
        self.begun: bool = False
        """True once the status has been sent. Later errors are sent as events."""
        self._send = send
        self._headers = headers
        self._sending = False
        """True while a frame is being sent. Then the connection needs no ping."""
        self._pinging: asyncio.Event | None = None
        """Set when the ping that is being sent has been sent; None if none is."""
        self._last = time.monotonic()
        self._pings = asyncio.create_task(self._keep_open(ping, interval))

    async def send(self, frame: bytes) -> None:
        """Send a frame. Returns once the server has accepted the frame. Only one task may call this method."""
        # A frame and a ping must not interrupt each other. A lock would cost as much per frame as the rest of this method.
        if self._pinging is not None:
            await self._pinging.wait()
        self._sending = True
        try:
            await self._write(frame)
        finally:
            self._sending = False

    async def end(self, frame: bytes = b"") -> None:
        """Send the last frame and end the response."""
        if self._pinging is not None:
            await self._pinging.wait()
        self.close()
        await self._write(frame, more=False)

    def close(self) -> None:
        """Stop the pings. Call this method after every response, even a failed one."""
        self._pings.cancel()

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        if not self.begun:
            self.begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_STREAMED, *self._headers]})
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._last = time.monotonic()

    async def _keep_open(self, ping: bytes, interval: float) -> None:
        while True:
            # The minimum keeps the loop from spinning while a slow client delays a frame.
            await asyncio.sleep(max(self._last + interval - time.monotonic(), interval / 10))
            # No ping is needed during a delayed frame, since the connection isn't silent.
            if time.monotonic() - self._last >= interval and not self._sending:
                self._pinging = asyncio.Event()
                try:
                    await self._write(ping)
                finally:
                    self._pinging.set()
                    self._pinging = None


_log = logging.getLogger("unrender.gateway")

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
ID_HEADERS = ("x-request-id", "request-id")
"""Headers with the request id, as expected by OpenAI's and Anthropic's clients."""
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_FORWARDED = ("traceparent", "tracestate")
"""Headers that are forwarded to the engine, unless they contain invalid characters."""
_PLAIN = re.compile(r"[ -~]{1,512}")


class Exchange:
    """One request and its answer. Awaiting it handles the request, so `partial(Exchange, gateway, api)` is the ASGI application of an API."""

    def __init__(self, gateway: Gateway, api: Api, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self._gateway = gateway
        self._api = api
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._client = gateway.client(scope)
        self._shelf = gateway.shelf(scope)
        self._receive = receive
        self._send = send
        self._gone = False
        self._stream: EventStream | None = None
        self._answer: RunningAnswer | None = None
        self._stores = False
        """True if the answer will be stored."""
        self._items: Any = ()
        """The request's input items, which are stored with the answer."""
        self._record = Record(surface=api.name)
        self._forwarded = self._traced()
        self._id = request_id(self._headers)
        self._own: Headers = [(name.encode(), self._id.encode()) for name in ID_HEADERS]

    def _traced(self) -> dict[str, str]:
        """Record the id of the request's trace, and return the trace headers for the engine."""
        sent = {name: self._headers.get(name.encode(), b"").decode("latin-1") for name in _FORWARDED}
        given = {name: value for name, value in sent.items() if _PLAIN.fullmatch(value)}
        found = _TRACE.fullmatch(given.get("traceparent", ""))
        self._record.trace = found[1] if found else ""
        return given

    def __await__(self) -> Generator[Any, None, None]:
        return self._handle().__await__()

    async def _handle(self) -> None:
        """Handle the request. This method returns when the answer has been sent or the client has disconnected."""
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(self._gateway.limits.answer_timeout):
                await self._run()
        except Gone:
            self._gone = True
        except TimeoutError:
            await self._fail(
                Failure(FailureKind.TIMEOUT, f"the answer took more than {self._gateway.limits.answer_timeout} seconds")
            )
        except Failure as failure:
            if isinstance(failure.__cause__, EngineError):
                _log.warning("request %s: %s", self._id, failure.__cause__)
            await self._fail(failure)
        # The watcher cancels this task when the client disconnects; any other cancellation is a shutdown. After a disconnect, `uncancel`
        # keeps the timeout above from treating the cancellation as its own.
        except asyncio.CancelledError:
            if not self._gone or task is None:
                await self._fail(Failure(FailureKind.BUSY, "the gateway is shutting down", code="shutting_down"))
                self._record.outcome = "cancelled"
                raise
            task.uncancel()
        except Exception:  # noqa: BLE001 - the client must get a response
            _log.exception("request %s: internal error", self._id)
            await self._fail(Failure(FailureKind.INTERNAL, f"internal error; request {self._id}"))
        finally:
            if self._stream is not None:
                self._stream.close()
            if self._gone:
                self._record.outcome = "cancelled"
            self._record.end(self._gateway.metrics, self._id, self._answer)
            # The answer references this exchange, and such a cycle would keep both objects alive until the next garbage collection.
            self._answer = None

    async def _run(self) -> None:
        gateway = self._gateway
        # Check the key before reading the body, so that unauthorized requests use no memory.
        opened = gateway.keys.check(self._headers)
        ask = await self._read(await gateway.uploads.read(self._receive, self._headers))
        model = gateway.models.find(ask.model, opened)
        self._record.model = model.name
        with gateway.slot(ask.choices):
            # The watcher detects a disconnect, because nothing else reads from the connection during the answer.
            watcher = asyncio.create_task(self._watch(asyncio.current_task()))
            try:
                await self._respond(ask, model)
            finally:
                watcher.cancel()

    async def _read(self, body: Any) -> Ask:
        """Read the request, including the stored conversation that it refers to."""
        if not self._api.stores:
            return self._api.read(body)
        stored = self._gateway.stored
        # Replace `input` with the complete conversation, so that later code needs no special case.
        body = await stored.continued(body, self._gateway.keys.owner(self._headers))
        ask = self._api.read(body)
        self._stores = bool(stored.most) and ask.store is not False
        self._items = body["input"]
        return ask

    async def _keep(self, surface: Surface) -> None:
        """Add the answer to the cache, and store it if the request asks for that."""
        if self._answer is not None:
            self._answer.keep(self._shelf)
        if not self._stores:
            return
        try:
            await self._gateway.stored.keep(self._gateway.keys.owner(self._headers), self._items, surface.body())
        # Only log the failure: the client still gets its answer, and a later request that refers to the answer gets an error.
        except Failure:
            _log.warning("request %s: the answer was not stored", self._id)

    async def _watch(self, task: asyncio.Task[Any] | None) -> None:
        """Cancel the answer and the engine's work when the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        # Set `_gone` before cancelling: `_handle` uses it to distinguish a disconnect from a shutdown.
        self._gone = True
        if task is not None:
            task.cancel()

    async def _respond(self, ask: Ask, model: Model) -> None:
        if not model.settings.parallel_tool_calls:
            ask = replace(ask, parallel_tool_calls=False)
        prepared = await model.turns.prepare(ask, model.capabilities, self._client, self._shelf)
        self._record.prepared = prepared
        if ask.store and not self._stores:
            ask = replace(ask, unheeded=(*ask.unheeded, "store"))
        warnings = tuple(_warnings(ask, model, prepared))
        if warnings:
            self._own.append((b"x-unrender-warnings", _header("; ".join(warnings))))
        # Count the prompt's tokens now: streams of some APIs begin with the count, or with 0 if the engine can't count tokens.
        counted, exact = await model.count(prepared.turn.prompt) if ask.stream and self._api.counts else (0, True)

        def begin() -> RunningAnswer:
            head = Head(
                id=f"{self._api.prefix}{secrets.token_hex(12)}",
                model=ask.model if ask.model in model.aliases else model.name,
                created=int(time.time()),
                prompt_tokens=counted if exact else 0,
                warnings=warnings,
                reasoning_field=model.settings.reasoning_field,
                stored=self._stores,
            )
            self._answer = RunningAnswer(ask, model, prepared, self._api.surface(ask, head), self._id, self._forwarded)
            return self._answer

        if ask.stream:
            await self._send_stream(begin())
        else:
            await self._json(200, (await self._judge(ask, model, begin)).body())

    async def _send_stream(self, answer: RunningAnswer) -> None:
        ping, interval = answer.surface.ping(), self._gateway.limits.keepalive_interval
        stream = self._stream = EventStream(self._send, self._own, ping=ping, interval=interval)
        # The frames of a stream are discarded after sending, so store the answer that the surface has collected.
        answer.finished = self._keep
        async with aclosing(answer.frames()) as coming:
            async for frame in coming:
                self._record.framed()
                await stream.send(frame)
        await stream.end()

    async def _judge(self, ask: Ask, model: Model, begin: Callable[[], RunningAnswer]) -> Surface:
        """Generate the complete answer, store it if requested, and return it.

        An answer that violates the request is generated again, up to `attempts` times. With a seed, there is only one attempt, since the
        result would be the same.
        """
        for left in reversed(range(model.settings.attempts if ask.seed is None else 1)):
            answer = begin()
            async with aclosing(answer.frames()) as coming:
                async for _ in coming:
                    self._record.framed()
            if not (left and answer.lacking):
                break
        await self._keep(answer.surface)
        return answer.surface

    async def _fail(self, failure: Failure) -> None:
        self._record.outcome = failure.kind.value
        # `messages[2].content` is a path only in Chat Completions. For other APIs, report the field that contains the conversation.
        if (failure.param or "").startswith("messages") and self._api.conversation != "messages":
            failure.param = self._api.conversation
        if self._gone:
            return
        # After the status has been sent, even for a ping, an error can only be an event in the stream.
        if self._stream is not None and self._stream.begun and self._answer is not None:
            await self._stream.end(self._answer.surface.failed(failure))
            return
        if failure.kind in (FailureKind.BUSY, FailureKind.LIMITED):
            self._own.append((b"retry-after", failure.retry_after.encode()))
        await self._json(self._api.statuses.get(failure.kind, failure.kind.status), self._api.refusal(failure))

    async def _json(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body, separators=(",", ":")).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode()), *self._own]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": data, "more_body": False})


def _warnings(ask: Ask, model: Model, prepared: Prepared) -> Iterator[str]:
    """Yield warnings for the client, mainly about ignored parameters."""
    engine = model.capabilities
    heeded = {**dict.fromkeys(engine.sampling, True), "logprobs": engine.logprobs, "seed": engine.seed}
    wanted = [*ask.sampling, *(name for name in ("logprobs", "seed") if getattr(ask, name) is not None)]
    ignored = [name for name in wanted if not heeded.get(name)]
    yield from (f"{name}: not honoured" for name in (*ask.unheeded, *ignored))
    if ask.model and ask.model not in (model.name, *model.aliases):
        yield f"model: answered by {model.name}"
    yield from (f"{name}: not enforced, since the engine uses no grammar" for name in prepared.unbound(engine))
    yield from prepared.warnings


def request_id(headers: Mapping[bytes, bytes]) -> str:
    """Return the client's request id, or a new one."""
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    return given if _ID.fullmatch(given) else f"req-{secrets.token_hex(12)}"


def _header(text: str) -> bytes:
    """Return a text as a header value: ASCII, on one line, and of limited length."""
    plain = "".join(character if " " <= character <= "~" else "?" for character in text)
    return plain[:MAX_REMARK].encode()
