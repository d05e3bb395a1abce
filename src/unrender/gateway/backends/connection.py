"""Reads an engine's HTTP responses line by line. Every failure is an `EngineError` with the URL.

Rules: closing `lines` closes the connection, so that the engine stops generating. The length of a line is limited. A stream that ends isn't
necessarily complete: the reader has to check for the engine's final event.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Self

import aiohttp

from unrender.gateway.backends import EngineCapabilities, EngineError, Job, OutputPiece, scored
from unrender.gateway.backends.prompt_ids import PromptIds
from unrender.limits import MAX_LINE

SHOWN = 300
"""Maximum length of an engine's error message, in characters."""
_MOST = 10**12
"""Upper limit for valid token counts."""
_TRANSIENT = (502, 503, 504)
_WAIT = re.compile(r"[0-9A-Za-z,: ]{1,40}")
"""Matches a valid `retry-after` header: seconds or a date."""
_BYTE_ORDER_MARK = "\ufeff".encode()
"""Bytes that may precede the first event of a stream."""
_FINISHES = {"length": "length", "max_tokens": "length", "content_filter": "content_filter"}
"""Finish reasons of engines, as in `OutputPiece.finish`. All others are "stop"."""
_decode = json.JSONDecoder().raw_decode
_KEPT = 4.0
"""Seconds for which an unused connection is kept. llama-server and vLLM close connections after 5 seconds."""
_END = 0.02
"""Maximum time to wait for the end of a response after the final event, in seconds. Only then, the connection can be used again."""
_QUICK = aiohttp.ClientTimeout(total=10)
"""Timeout for all requests except those that generate answers."""
_PATIENT = aiohttp.ClientTimeout(total=None, sock_connect=10)
"""Timeout for requests that generate answers. `idle_timeout` limits their silence."""


class Connection:
    """Connection to one engine. `idle_timeout` is the maximum silence during an answer, in seconds."""

    def __init__(self, url: str, *, key: str = "", idle_timeout: float = 300.0) -> None:
        self.url: str = url.rstrip("/")
        self._key = key
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._idle = idle_timeout
        self._session: aiohttp.ClientSession | None = None
        """Keeps connections open for the next request, since opening one costs as much as a short answer."""
        self._fresh: aiohttp.ClientSession | None = None
        """Opens a new connection for each request."""

    async def lines(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[list[bytes], None]:
        """Send JSON and yield the lines of the answer, without line ends and without empty lines. Raises `EngineError`.

        Lines that were received together are yielded as one list.
        """
        async with (
            self._request(path, body, headers, idle=self._idle) as response,
            _Silence(response.content, self._idle) as silence,
        ):
            # A line may arrive in thousands of reads. Joining the parts after each read would copy the line thousands of times.
            rest: list[bytes] = []  # an unfinished line, joined once
            size, mark = 0, _BYTE_ORDER_MARK
            while chunk := await response.content.readany():
                silence.since = math.inf
                rest.append(chunk)
                size += len(chunk)
                if b"\n" in chunk:
                    lines = b"".join(rest).split(b"\n")
                    last = lines.pop()
                    rest, size = [last], len(last)
                    lines[0], mark = lines[0].removeprefix(mark), b""
                    if left := [line for line in lines if line]:
                        yield left
                # The limit applies to one line, not to the answer: `size` counts only the unfinished line.
                if size > MAX_LINE:
                    raise EngineError(f"expected lines of at most {MAX_LINE} bytes", where=f"{self.url}{path}")
                silence.since = time.monotonic()
            if size:
                yield [b"".join(rest)]

    async def json(self, path: str, body: Mapping[str, Any] | None = None, *, generates: bool = False) -> Any:
        """Return the JSON of a short response. Raises `EngineError`. With `generates`, the response may take as long as an answer."""
        idle = self._idle if generates else None
        async with self._request(path, body, idle=idle) as response, asyncio.timeout(idle):
            return parsed(await response.read(), f"{self.url}{path}")

    async def problem(self, path: str) -> str | None:
        """Return None if the path responds with 200, otherwise a description of the problem."""
        try:
            async with self._request(path):
                return None
        except EngineError as error:
            return error.message

    async def close(self) -> None:
        """Close all connections."""
        for session in filter(None, (self._session, self._fresh)):
            await session.close()
        self._session = self._fresh = None

    async def _sent(self, method: str, where: str, **said: Any) -> aiohttp.ClientResponse:
        """Send a request. If a connection that was kept open turns out to be closed, send it again over a new one."""
        # Create the sessions here, since they belong to the running event loop.
        if self._session is None or self._fresh is None:
            self._session = _session(aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT))
            self._fresh = _session(aiohttp.TCPConnector(limit=0, force_close=True))
        reused: list[bool] = []
        try:
            return await self._session.request(method, where, allow_redirects=False, trace_request_ctx=reused, **said)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # The engine closed the connection while nothing was sent, so it hasn't seen the request.
            if not reused:
                raise
            return await self._fresh.request(method, where, allow_redirects=False, **said)

    @asynccontextmanager
    async def _request(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        idle: float | None = None,
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """Send a request, and yield the response. `idle` is the maximum time until the response starts, if the engine generates."""
        where, response = f"{self.url}{path}", None
        own = {**self._headers, **(headers or {})}
        try:
            method = "GET" if body is None else "POST"
            async with asyncio.timeout(idle):
                timeout = _QUICK if idle is None else _PATIENT
                response = await self._sent(method, where, json=body, headers=own, timeout=timeout)
            async with response:
                if response.status != 200:
                    said = f"{response.status} {_reason(await response.content.read(MAX_LINE))}"
                    raise EngineError(
                        said.replace(self._key, "***") if self._key else said,
                        where=where,
                        status=response.status,
                        transient=response.status in _TRANSIENT,
                        retry_after=wait if _WAIT.fullmatch(wait := response.headers.get("retry-after", "")) else "",
                    )
                yield response
        except TimeoutError as error:
            raise EngineError("the engine doesn't respond", where=where, transient=response is None) from error
        except aiohttp.ClientError as error:
            # If no byte of the answer has been received, the job may be sent again.
            begun = response is not None and bool(response.content.total_bytes)
            said = "the engine closed the stream" if response else "the engine cannot be reached"
            raise EngineError(said, where=f"{where}: {type(error).__name__} {error}", transient=not begun) from error


class _Silence:
    """Ends the reading of a response that sends nothing for `seconds`.

    It has one timer per response. `aiohttp` would set a timer for each chunk, which costs more than reading the chunk.
    """

    def __init__(self, content: aiohttp.StreamReader, seconds: float) -> None:
        self.since: float = time.monotonic()
        """Time since which the next chunk is awaited; infinity while none is awaited."""
        self._content, self._seconds = content, seconds

    async def __aenter__(self) -> Self:
        self._check()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        left = self._seconds - max(time.monotonic() - self.since, 0.0)
        if left <= 0:
            self._content.set_exception(TimeoutError())
            return
        self._timer = asyncio.get_running_loop().call_later(left, self._check)


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    """Return a session that appends True to `trace_request_ctx` if a request uses a connection again."""
    trace = aiohttp.TraceConfig()

    async def reused(_: aiohttp.ClientSession, context: Any, __: Any) -> None:
        if context.trace_request_ctx is not None:
            context.trace_request_ctx.append(True)

    trace.on_connection_reuseconn.append(reused)
    jar = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(connector=connector, cookie_jar=jar, trace_configs=[trace])


_CUT = "the engine closed the stream before its final event"


class HttpEngine:
    """Base class of engines with an HTTP API: sends JSON and reads the answer line by line, up to its last event.

    `model` is the model's name at an engine with several models; "" selects the first one.
    """

    path = ""
    """Path for jobs."""
    health = "/health"
    """Path that responds with 200 once the engine is ready."""
    sign = ""
    """Path that only this kind of engine has."""
    capabilities: EngineCapabilities = EngineCapabilities()
    usage_follows = False
    """True if an event with the usage follows the piece with the finish reason, so that only `[DONE]` ends the stream."""

    strips_stop = False
    """True if the engine removes the stop string from the text, but not from the token ids."""

    def __init__(self, connection: Connection, *, model: str = "") -> None:
        self._connection = connection
        self._model = model
        self._prompt_ids = PromptIds(self._tokens_of, strips_stop=self.strips_stop)
        self._where: str = connection.url + self.path

    def _path(self, job: Job) -> str:  # noqa: ARG002
        """Return the path for a job."""
        return self.path

    async def _body(self, job: Job) -> dict[str, Any]:
        """Return the request body for a job."""
        raise NotImplementedError

    def _reader(self, job: Job) -> Callable[[EngineObject], list[OutputPiece]]:
        """Return a function that returns the pieces in each event of one answer."""
        return partial(self._pieces, top=job.logprobs)

    def _pieces(self, data: EngineObject, top: int | None) -> list[OutputPiece]:
        """Return the pieces in an event, with at most `top` alternatives for each token; None for no log probabilities."""
        raise NotImplementedError

    async def _tokenized(self, text: str, *, start: bool = False) -> EngineObject:
        """Return the engine's response with the `tokens` of a text. With `start`, the text is the start of a prompt."""
        raise NotImplementedError

    async def _tokens_of(self, text: str, *, start: bool = False) -> list[int]:
        """Return the ids of a text. Raises `EngineError` for an invalid response."""
        return (await self._tokenized(text, start=start)).given_ids("tokens")

    async def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Yield the pieces of the engine's answer."""
        body, read = await self._body(job), self._reader(job)
        left: int | None = None
        finished = False
        async with aclosing(self._connection.lines(self._path(job), body, job.headers)) as reads:
            async for lines in reads:
                left = len(lines)
                for line in lines:
                    left -= 1
                    data = self._event(line)
                    for piece in read(data) if data else ():
                        finished = finished or piece.finish is not None
                        yield piece._replace(more=True) if left else piece
                    if data is None and not finished:
                        raise EngineError(_CUT, where=self._where)
                    if data is None or (finished and not self.usage_follows):
                        with suppress(TimeoutError, EngineError):
                            async with asyncio.timeout(_END):
                                await anext(reads, None)
                        return
        # Some engines end a complete answer without the final event.
        if not finished:
            raise EngineError(_CUT, where=self._where, transient=left is None)

    def _event(self, line: bytes) -> EngineObject | None:
        """Return the JSON in a line of server-sent events; None for `[DONE]`, an empty object for lines without data.

        Raises `EngineError` if the data is not an object or reports an error.
        """
        if not line.startswith(b"data:"):
            if line.startswith(b"error:"):  # llama-server's form
                raise EngineError(_reason(line[6:]), where=self._where)
            # Skip lines without data, such as `: ping` and `event: message`.
            return EngineObject({}, self._where)
        # "data:{…}" and "data: {…}" are equivalent, and engines use both.
        data = line[5:].strip()
        return None if data == b"[DONE]" else EngineObject(parsed(data, self._where), self._where)

    async def _query(self, path: str, body: Mapping[str, Any] | None = None) -> EngineObject:
        """Return the JSON object from a path."""
        return EngineObject(await self._connection.json(path, body), f"{self._connection.url}{path}")

    async def count(self, text: str) -> int | None:  # noqa: ARG002
        """Return the number of tokens in a text, or None if the engine can't count."""
        return None

    async def rendered(self, request: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Return the engine's own prompt for a request to Chat Completions, or None if the engine doesn't show its prompts.

        Raises `EngineError` if the engine rejects the request.
        """
        return None

    async def chat(self, request: Mapping[str, Any]) -> EngineObject:
        """Return the answer of the engine's own Chat Completions endpoint. Raises `EngineError`."""
        path = "/v1/chat/completions"
        return EngineObject(await self._connection.json(path, request, generates=True), f"{self._connection.url}{path}")

    async def context(self) -> int | None:
        """Return the context size in tokens, or None if the engine doesn't report it."""
        return None

    async def ready(self) -> str | None:
        """Return None if the engine is healthy, otherwise a description of the problem."""
        return await self._connection.problem(self.health)

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()


class EngineObject(dict[str, Any]):
    """A JSON object from an engine, whose fields may have any type.

    Raises `EngineError` if the value is not an object, or reports an error.
    """

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise EngineError(f"expected an object, found {type(value).__name__}", where=where)
        # Some engines respond with 200 and report the error in the body.
        if error := value.get("error"):
            code = error.get("code") if isinstance(error, dict) else None
            raise EngineError(_words(value), where=where, status=code if isinstance(code, int) else None)
        super().__init__(value)
        self._where = where

    def text(self, name: str) -> str:
        """Return the string field `name`, or "" if it is absent. Raises `EngineError` if the field has another type."""
        text = self.get(name)
        if text is not None and not isinstance(text, str):
            raise EngineError(f"{name}: expected text, found {type(text).__name__}", where=self._where)
        return text or ""

    def listed(self, name: str) -> list[EngineObject]:
        """Return the objects in the list field `name`, or an empty list if it is absent. Raises `EngineError` if the field has another
        type.
        """
        found = self.get(name)
        if found is not None and not isinstance(found, list):
            raise EngineError(f"{name}: expected a list of objects, found {type(found).__name__}", where=self._where)
        return [EngineObject(item, self._where) for item in found or ()]

    def number(self, *names: str) -> int:
        """Return the number at a path of names in nested objects, or 0 if it is absent or invalid."""
        value: Any = self
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else 0

    def ids(self, name: str) -> list[int] | None:
        """Return the token ids in the field `name`, or None if it is absent or has other values."""
        found = self.get(name)
        # `map` and `min` need no bytecode per id, which matters since this method is called for each token.
        valid = isinstance(found, list) and {int}.issuperset(map(type, found))
        return found if valid and (not found or (min(found) >= 0 and max(found) < 2**32)) else None

    def given_ids(self, name: str) -> list[int]:
        """Return the token ids in the field `name`. Raises `EngineError` if it is absent or has other values."""
        found = self.ids(name)
        if found is None:
            said = f"{name}: expected a list of token ids, found {self.get(name)!r:.80}"
            raise EngineError(said, where=self._where)
        return found

    def ending(self, name: str) -> str | None:
        """Return the finish reason in the field `name`, as in `OutputPiece.finish`; None before the end."""
        reason = self.text(name)
        return _FINISHES.get(reason, "stop") if reason else None


def parsed(data: bytes, where: str) -> Any:
    """Parse JSON. Raises `EngineError`, naming `where`, for anything else."""
    try:
        text = data.decode().strip()
        value, end = _decode(text)  # for a short line, this takes half as long as `json.loads`
        return value if end == len(text) else json.loads(text)
    except (ValueError, RecursionError) as error:
        # The data may be text of the model, which is neither logged nor sent.
        raise EngineError(f"expected JSON, found {len(data)} bytes of something else", where=where) from error


def _reason(data: bytes) -> str:
    """Return the message in an engine's error."""
    try:
        return _words(json.loads(data))
    except (ValueError, RecursionError):
        return " ".join(data[: 4 * SHOWN].decode(errors="replace").split())[:SHOWN]


def _words(value: Any) -> str:
    # In {"error": {"message": "…"}}, {"detail": "…"} and {"message": "…"}, the innermost value is the message.
    for name in ("error", "message", "detail"):
        while isinstance(value, dict) and name in value:
            value = value[name]
    return value[:SHOWN] if isinstance(value, str) else "the engine sent no error message"


def list_in(value: Any, name: str) -> list[Any]:
    """Return the list in a field of an object; empty for anything else."""
    rows = value.get(name) if isinstance(value, Mapping) else None
    return rows if isinstance(rows, list) else []


def scored_items(items: Iterable[Any], top: int) -> list[dict[str, Any]]:
    """Return tokens in the format of Chat Completions, each with at most `top` alternatives. Invalid data are omitted."""
    return [
        token | {"top_logprobs": [one for other in list_in(item, "top_logprobs")[:top] for one in _scored_item(other)]}
        for item in items
        for token in _scored_item(item)
    ]


def _scored_item(item: Any) -> list[dict[str, Any]]:
    """Return a list with the token of an item that contains `token`, `logprob`, and optionally `bytes`.

    Such a token may be only part of a character.
    """
    if not isinstance(item, Mapping):
        return []
    own = item.get("bytes")
    known = isinstance(own, list) and all(type(byte) is int and 0 <= byte < 256 for byte in own)
    return [token | ({"bytes": own} if known else {}) for token in score(item.get("token"), item.get("logprob"))]


def score(text: Any, value: Any) -> list[dict[str, Any]]:
    """Return a list with the token and its log probability; empty for invalid data."""
    return [scored(text, value)] if isinstance(text, str) and isinstance(value, float | int) else []
