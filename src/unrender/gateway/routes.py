"""Models → the ASGI application: all paths, and errors of paths that are none."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unrender.gateway.body import read_json
from unrender.gateway.exchange import Endpoint
from unrender.gateway.failure import STATUSES, Failure, Kind, invalid
from unrender.gateway.gateway import Gateway, Keys, Limits
from unrender.gateway.metrics import MEDIA_TYPE
from unrender.gateway.models import Model, Models
from unrender.gateway.surfaces import chat, messages, responses
from unrender.parsing.events import Malformed

_log = logging.getLogger("unrender.gateway")


def app(models: Sequence[Model], *, limits: Limits | None = None, keys: Keys | None = None) -> Starlette:
    """Return the gateway as an ASGI application, to be served or mounted into another one.

    Its `state.gateway` is the `Gateway`.
    """
    gateway = Gateway(models=Models(models), limits=limits or Limits(), keys=keys or Keys())
    own = _Own(gateway)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.gather(*(model.turns.warm_up() for model in gateway.models))
        for model, problem in zip(gateway.models, await own.problems(), strict=True):
            _log.info("%s: %s", model.name, problem or f"ready, {model.backend.capabilities}")
        yield
        await asyncio.gather(*(model.backend.close() for model in gateway.models))

    routes = [
        Route("/v1/chat/completions", Endpoint(gateway, chat.CHAT), methods=["POST"]),
        Route("/v1/responses", Endpoint(gateway, responses.RESPONSES), methods=["POST"]),
        Route("/v1/messages", Endpoint(gateway, messages.MESSAGES), methods=["POST"]),
        Route("/v1/messages/count_tokens", own.count, methods=["POST"]),
        Route("/v1/models", own.models),
        Route("/v1/models/{name:path}", own.model),
        Route("/v1/format", own.format),
        Route("/v1/render", own.render, methods=["POST"]),
        Route("/v1/parse", own.parse, methods=["POST"]),
        Route("/metrics", own.metrics),
        Route("/health", own.health),
        Route("/ready", own.ready),
    ]
    handlers: dict[Any, Any] = {HTTPException: _no_such_path, Failure: _refused, Exception: _defect}
    application = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    application.state.gateway = gateway
    return application


_CHARACTERS = 4
"""Characters of a token, roughly."""


class _Own:
    """The paths that generate nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def _check(self, request: Request, model: str | None = None) -> None:
        self._gateway.keys.check(dict(request.scope["headers"]), model)

    def _model(self, request: Request, name: str) -> Model:
        self._check(request)
        model = self._gateway.models.find(name)
        self._check(request, model.name)
        return model

    async def models(self, request: Request) -> Response:
        """List the models, in the fields that each API's clients look for."""
        self._check(request)
        listed = [_described(model) for model in self._gateway.models]
        first, last = listed[0]["id"], listed[-1]["id"]
        body = {
            "object": "list",
            "data": listed,
            "models": listed,
            "has_more": False,
            "first_id": first,
            "last_id": last,
        }
        return _json(body)

    async def model(self, request: Request) -> Response:
        """Describe one model."""
        return _json(_described(self._model(request, request.path_params["name"])))

    async def format(self, request: Request) -> Response:
        """Return the format that was derived from a model's template."""
        model = self._model(request, request.query_params.get("model", ""))
        return Response(model.turns.template.format.to_json(), media_type="application/json")

    async def render(self, request: Request) -> Response:
        """Return the prompt of a chat request, and what an engine is told with it."""
        body = await self._body(request)
        turn, warnings = await self._model(request, chat.read(body).model).turns.turn(chat.read(body))
        said = {"stop": turn.stop, "preserved_tokens": turn.preserved_tokens, "begun": turn.begun, "warnings": warnings}
        return _json({"prompt": turn.prompt, **said})

    async def parse(self, request: Request) -> Response:
        """Return the message that a text means as the answer to a chat request."""
        body = await self._body(request)
        text = body.pop("text", None)
        if not isinstance(text, str):
            raise invalid(f"text: expected a string, found {text!r:.80}", param="text")
        turn, warnings = await self._model(request, chat.read(body).model).turns.turn(chat.read(body))
        parser = turn.parser()
        events = [*parser.feed(text), *parser.finish()]
        broken = [
            {"text": event.text, "position": event.position, "expected": event.expected}
            for event in events
            if isinstance(event, Malformed)
        ]
        message = parser.message
        reason = message.finish_reason()
        return _json(
            {"message": message.to_openai(), "finish_reason": reason, "malformed": broken, "warnings": warnings}
        )

    async def count(self, request: Request) -> Response:
        """Return how many tokens the prompt of a request to `/v1/messages` has; an estimate where the engine cannot say."""
        ask = messages.read_conversation(await read_json(request.receive, self._gateway.limits.body))
        model = self._model(request, ask.model)
        turn, _ = await model.turns.turn(ask)
        counted = await model.backend.count(turn.prompt)
        if counted is None:
            return _json({"input_tokens": len(turn.prompt) // _CHARACTERS + 1, "estimated": True})
        return _json({"input_tokens": counted})

    async def metrics(self, _: Request) -> Response:
        """Return what was counted, for Prometheus."""
        gateway = self._gateway
        return Response(gateway.metrics.text({"streams": gateway.streams}), media_type=MEDIA_TYPE)

    async def health(self, _: Request) -> Response:
        """Say that the process lives."""
        return _json({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """Say whether answers can be generated: every engine is there, and the gateway is not shutting down."""
        found = zip(self._gateway.models, await self.problems(), strict=True)
        problems = {model.name: why for model, why in found if why}
        if self._gateway.draining:
            problems["gateway"] = "shutting down"
        grammars = {model.name: model.backend.capabilities.dialect or None for model in self._gateway.models}
        status = {"status": "not ready" if problems else "ready", "problems": problems, "grammars": grammars}
        return _json(status, STATUSES[Kind.BUSY] if problems else 200)

    async def problems(self) -> list[str | None]:
        """Return for each model why it cannot answer, None where it can."""
        return await asyncio.gather(*(model.backend.ready() for model in self._gateway.models))

    async def _body(self, request: Request) -> dict[str, Any]:
        body = await read_json(request.receive, self._gateway.limits.body)
        if not isinstance(body, dict):
            raise invalid(f"body: expected an object, found {type(body).__name__}")
        return body


def _json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response in ASCII, since half a surrogate pair, which clients may send, has no form in UTF-8."""
    return Response(json.dumps(body), status, headers, media_type="application/json")


def _described(model: Model) -> dict[str, Any]:
    """Return what OpenAI's, Anthropic's and Codex's clients want to know of a model."""
    return {
        "id": model.name,
        "object": "model",
        "type": "model",
        "created": model.created,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": "unrender",
        "slug": model.name,
        "display_name": model.name,
    }


async def _refused(request: Request, failure: Failure) -> Response:
    api = messages.MESSAGES if request.url.path.startswith("/v1/messages") else chat.CHAT
    return _json(api.refusal(failure), api.statuses.get(failure.kind, failure.status))


async def _defect(request: Request, _: Exception) -> Response:
    return await _refused(request, Failure(Kind.INTERNAL, "the gateway has a defect"))


async def _no_such_path(request: Request, error: HTTPException) -> Response:
    kind = Kind.WRONG_METHOD if error.status_code == STATUSES[Kind.WRONG_METHOD] else Kind.NOT_FOUND
    failure = Failure(kind, f"{request.method} {request.url.path}: {error.detail}")
    return _json(chat.refusal(failure), error.status_code, error.headers)
