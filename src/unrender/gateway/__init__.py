"""Serves OpenAI's and Anthropic's APIs for any chat template and any engine that completes text.

A request passes through these stages: `exchange` (bytes → JSON) → `surfaces` (JSON → an `Ask`) → `answers` (an `Ask` → a prompt and a
grammar) → `backends` (a prompt → pieces of text) → `answers` (pieces → events) → `surfaces` (events → frames) → `exchange` (frames →
bytes). Start reading at `exchange`, which runs all stages. This module builds the application, and handles requests that don't generate
text: they return models, formats, prompts, stored answers, token counts, and errors for invalid requests. `serve` runs the application, and
`config` reads its settings. `gateway` holds the models (`answers/model.py`), limits and keys that requests share.
`uploads` reads request bodies. `record` writes metrics and the log. `failure` defines the errors that clients see. `schema` validates JSON from outside.

Needs the extra `gateway`. `app` is the ASGI application; `unrender serve` runs it. Rules: model output never causes a server error. No
parameter is ignored silently. Processes share no state except stored answers. The cache in `answers/kept.py` is optional: without it,
prompts are rendered again. Only public names of unrender are imported.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from unrender import Turn
from unrender.gateway.answers.model import Model, Models
from unrender.gateway.exchange import ID_HEADERS, Exchange, request_id
from unrender.gateway.failure import Failure, FailureKind
from unrender.gateway.gateway import Gateway, GatewayLimits, Keys, free_descriptors
from unrender.gateway.record import Metrics
from unrender.gateway.surfaces import Ask, chat, messages
from unrender.gateway.surfaces.chat import CHAT
from unrender.gateway.surfaces.messages import MESSAGES
from unrender.gateway.surfaces.responses import RESPONSES
from unrender.gateway.uploads import Gone
from unrender.signatures import nearest
from unrender.version import __version__

__all__ = ["app"]


_log = logging.getLogger("unrender.gateway")

_SCRAPE = 2.0
"""Maximum time to ask engines for their state when metrics are read, in seconds."""
_WELCOME = """unrender {version}: this is the gateway, which serves models over HTTP.

OpenAI's clients      base_url = {base}/v1
Anthropic's clients   base_url = {base}

GET  /v1/models              the models
POST /v1/chat/completions    Chat Completions
POST /v1/responses           Responses
POST /v1/messages            Messages
GET  /ready                  the state of each engine
GET  /metrics                metrics for Prometheus
"""
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def app(
    models: Sequence[Model],
    *,
    limits: GatewayLimits | None = None,
    keys: Keys | None = None,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    store: str = "",
) -> Starlette:
    """Return the gateway as an ASGI application, which you can serve directly or mount in another application.

    The application's `state.gateway` is the `Gateway`. `origins` are the allowed CORS origins ("*" for all). Without keys, a server on the
    loopback address also rejects other host names than its own, except `hosts`. `store` is the file for stored answers of the Responses
    API, whose total size is limited to `limits.store_bytes`.
    """
    gateway = Gateway(
        models=Models(models),
        limits=limits or GatewayLimits(),
        keys=keys or Keys(),
        store=store,
    )
    paths = Paths(gateway)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.gather(*(model.turns.warm_up() for model in gateway.models))
        await gateway.stored.tidy()
        gateway.most_jobs = free_descriptors().jobs
        if gateway.most_jobs < gateway.limits.max_streams:
            said = "the limit of open files (ulimit -n) allows %d answers at a time, fewer than max_streams = %d"
            _log.warning(said, gateway.most_jobs, gateway.limits.max_streams)
        for model, problem in zip(gateway.models, await paths.problems(), strict=True):
            _log.info("%s: %s", model.name, problem or f"ready, {model.backend.capabilities}")
        yield
        await asyncio.gather(*(model.backend.close() for model in gateway.models))
        await gateway.stored.close()

    handlers: dict[Any, Any] = {HTTPException: _no_such_path, Failure: _refused, Gone: _left, Exception: _defect}
    told = (*ID_HEADERS, "x-unrender-warnings", "retry-after")
    layers = [Middleware(CORSMiddleware, origins, ["*"], ["*"], expose_headers=told)] if origins else []
    if not gateway.keys.models:  # a web page doesn't know a key
        layers.insert(0, Middleware(PageGuard, hosts=hosts, origins=origins))
    application = Starlette(routes=paths.all, lifespan=lifespan, exception_handlers=handlers, middleware=layers)
    application.state.gateway = gateway
    return application


async def _left(_: Request, __: Exception) -> Response:
    """Return a placeholder response that nobody receives, since the client has disconnected."""
    return Response(status_code=FailureKind.INVALID.status)


async def _refused(request: Request, failure: Failure) -> Response:
    api = messages.MESSAGES if "/v1/messages" in request.url.path else chat.CHAT
    return _named(request, answered(api.refusal(failure), api.statuses.get(failure.kind, failure.kind.status)))


def _named(request: Request, response: Response) -> Response:
    """Return a response with the request's id."""
    response.headers.update(dict.fromkeys(ID_HEADERS, request_id(dict(request.scope["headers"]))))
    return response


async def _defect(request: Request, _: Exception) -> Response:
    return await _refused(request, Failure(FailureKind.INTERNAL, "internal error"))


async def _no_such_path(request: Request, error: HTTPException) -> Response:
    kind = FailureKind.WRONG_METHOD if error.status_code == FailureKind.WRONG_METHOD.status else FailureKind.NOT_FOUND
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    hint = _hint(path) if kind is FailureKind.NOT_FOUND else ""
    response = await _refused(request, Failure(kind, f"{request.method} {request.url.path}: {error.detail}{hint}"))
    response.headers.update(error.headers or {})
    return response


_APIS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}


def _hint(path: str) -> str:
    """Return the address that was probably meant by an unknown path; "" if there is none.

    >>> _hint("/v1/v1/messages"), _hint("/chat/completions")
    ('; did you mean /v1/messages? Check the base URL: /v1 occurs twice', '; did you mean /v1/chat/completions? Check the base URL: /v1 is missing')
    """
    known = (*_APIS, "/v1/models", "/v1/messages/count_tokens")
    end = "/v1/" + path.removesuffix("/").rpartition("/v1/")[2].lstrip("/")
    if end in known and path != end:
        what = "occurs twice" if path.count("/v1") > 1 else "is missing" if "/v1" not in path else "is not at its start"
        return f"; did you mean {end}? Check the base URL: /v1 {what}"
    return f"; did you mean {near}?" if (near := nearest(path, known, cutoff=0.8)) else ""


class Paths:
    """Routes of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        stored = "/v1/responses/{id}"
        self.all: Sequence[Route] = (
            # `Exchange` checks the key itself, since it counts rejected requests.
            *(Route(path, partial(Exchange, gateway, api), methods=["POST"]) for path, api in _APIS.items()),
            Route("/", self.welcome),
            self._route("/v1/messages/count_tokens", self.count, "POST"),
            self._route("/v1/render", self.render, "POST"),
            self._route(stored, self.stored),
            self._route(stored, self.delete, "DELETE"),
            self._route("/v1/models", self.models),
            self._route("/v1/models/{name:path}", self.model),
            self._route("/v1/format", self.format),
            *(Route(f"/{name}", getattr(self, name)) for name in ("metrics", "health", "ready")),
        )
        """All routes."""

    def _route(self, path: str, handler: Callable[[Request], Awaitable[Response]], method: str = "GET") -> Route:
        """Return a route that checks the API key before it reads the body."""

        async def checked(request: Request) -> Response:
            self._opened(request)
            return _named(request, await handler(request))

        return Route(path, checked, methods=[method])

    def _opened(self, request: Request) -> frozenset[str]:
        return self._gateway.keys.check(dict(request.scope["headers"]))

    def _model(self, request: Request, name: str) -> Model:
        return self._gateway.models.find(name, self._opened(request))

    async def models(self, request: Request) -> Response:
        """List the models that the key allows, with the fields that each API's clients expect."""
        listed = [model_entry(model) for model in self._gateway.models.among(self._opened(request))]
        ends = {"first_id": listed[0]["id"] if listed else None, "last_id": listed[-1]["id"] if listed else None}
        return answered({"object": "list", "data": listed, "models": listed, "has_more": False, **ends})

    async def model(self, request: Request) -> Response:
        """Describe one model."""
        return answered(model_entry(self._model(request, request.path_params["name"])))

    async def format(self, request: Request) -> Response:
        """Return the format that was derived from a model's template."""
        model = self._model(request, request.query_params.get("model", ""))
        return Response(model.turns.template.format.to_json(), media_type="application/json")

    async def render(self, request: Request) -> Response:
        """Return the prompt of a chat request, with its stop strings and special tokens."""
        turn = await self._turn(request, chat.read(await self._read(request)))
        said = {name: getattr(turn, name) for name in ("prompt", "stop", "preserved_tokens", "prefill")}
        return answered({**said, "warnings": turn.warnings})

    async def count(self, request: Request) -> Response:
        """Return the token count of a `/v1/messages` prompt, or an estimate if the engine can't count."""
        ask = messages.read_count_request(await self._read(request))
        turn = await self._turn(request, ask)
        counted, exact = await self._model(request, ask.model).count(turn.prompt)
        return answered({"input_tokens": counted} | ({} if exact else {"estimated": True}))

    async def stored(self, request: Request) -> Response:
        """Return a stored answer of the Responses API."""
        return answered((await self._gateway.stored.get(*self._stored(request))).response)

    async def delete(self, request: Request) -> Response:
        """Delete a stored answer of the Responses API."""
        return answered(await self._gateway.stored.delete(*self._stored(request)))

    def _stored(self, request: Request) -> tuple[bytes, str]:
        """Return the sender's identifier and the id of the requested answer."""
        return self._gateway.keys.owner(dict(request.scope["headers"])), request.path_params["id"]

    async def welcome(self, request: Request) -> Response:
        """Tell a person with a browser what runs here."""
        base = f"{str(request.base_url).rstrip('/')}"
        return Response(_WELCOME.format(base=base, version=__version__), media_type="text/plain")

    async def metrics(self, _: Request) -> Response:
        """Return the metrics for Prometheus."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SCRAPE):
                await self.problems()
        return Response(self._gateway.metrics.text(), media_type=_PROMETHEUS)

    async def health(self, _: Request) -> Response:
        """Return 200 while the process is running."""
        return answered({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """Return 200 if at least one engine is ready, otherwise 503, with a description of each problem."""
        models = self._gateway.models
        found = list(zip(models, await self.problems(), strict=True))
        problems = {model.name: why for model, why in found if why}
        none = len(problems) == len(found)
        status = {
            "status": "not ready" if none else "partly ready" if problems else "ready",
            "engines": {model.name: "not ready" if why else "ready" for model, why in found},
            "problems": problems,
            "grammars": {model.name: model.capabilities.dialect or None for model in models},
            "findings": {model.name: model.found.told() | {"warnings": _complaints(model)} for model in models},
        }
        return answered(status, FailureKind.BUSY.status if none else 200)

    async def problems(self) -> list[str | None]:
        """Return a description of each model's problem, or None if the model is ready. Probes an engine when it is first ready."""
        return await asyncio.gather(*(_problem(model, self._gateway.metrics) for model in self._gateway.models))

    async def _turn(self, request: Request, ask: Ask) -> Turn:
        return await self._model(request, ask.model).turns.turn(
            ask, self._gateway.client(request.scope), self._gateway.shelf(request.scope)
        )

    async def _read(self, request: Request) -> Any:
        return await self._gateway.uploads.read(request.receive, dict(request.scope["headers"]))


async def _problem(model: Model, metrics: Metrics) -> str | None:
    problem = await model.backend.ready()
    metrics.ready.labels(model.name).set(problem is None)
    if problem is None and model.settings.probe and await model.probe():
        for complaint in _complaints(model):
            _log.warning("%s: %s", model.name, complaint)
    return problem


def _complaints(model: Model) -> list[str]:
    """Return warnings about a model's engine for the operator."""
    engine = model.backend.capabilities
    none = "the engine doesn't support grammars, so tool calls and response formats are not enforced"
    told = [] if engine.dialect or engine.obeys else [none]
    return [*told, *model.found.complaints()]


def answered(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response in ASCII.

    Clients may send unpaired surrogates, which UTF-8 can't encode.
    """
    return Response(json.dumps(body), status, headers, media_type="application/json")


def model_entry(model: Model) -> dict[str, Any]:
    """Return a model's description with the fields that OpenAI's, Anthropic's and Codex's clients expect."""
    return {
        "id": model.name,
        "object": "model",
        "type": "model",
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "unrender",
        "slug": model.name,
        "display_name": model.name,
    }


class PageGuard:
    """ASGI middleware that rejects requests of foreign pages. `hosts` and `origins` are allowed; "*" in `origins` allows all pages.

    It protects a gateway without keys on the loopback address from web pages of other sites that the local user visits. A browser sends
    requests of any page to local addresses: a form or a simple script needs no permission, and a domain may resolve to 127.0.0.1. Such
    requests name the page's site in `origin`, or the domain in `host`. Programs and local pages name neither.
    """

    def __init__(self, app: ASGIApp, *, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        answers: ASGIApp = self._app
        if scope["type"] == "http" and is_local((scope.get("server") or ("",))[0]) and (why := self._problem(scope)):
            answers = await _refused(Request(scope), Failure(FailureKind.FORBIDDEN, why))
        await answers(scope, receive, send)

    def _problem(self, scope: Scope) -> str:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
        host = _host_name(f"//{headers.get(b'host', '')}")
        if host and not is_local(host) and host not in self._hosts:
            return (
                f"host: expected a name of this machine, found {host!r:.80}; add keys, or allow the name with `hosts`"
            )
        origin = headers.get(b"origin", "")
        if not origin or origin in self._origins or "*" in self._origins:
            return ""
        # Desktop programs send origins of their own, e.g. `vscode-webview://…`, which no web page has.
        if origin == "null" or (origin.startswith(("http://", "https://")) and not is_local(_host_name(origin))):
            return f"origin: expected a page of this machine, found {origin!r:.80}; add keys, or allow it with `cors`"
        return ""


def _host_name(url: str) -> str:
    """Return the host name in a URL; the URL itself if it is invalid."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return url


def is_local(name: str) -> bool:
    """Return True if a host name or an address means this machine.

    >>> [is_local(name) for name in ("localhost", "127.0.0.1", "::1", "a.localhost", "example.com", "")]
    [True, True, True, True, False, False]
    """
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
