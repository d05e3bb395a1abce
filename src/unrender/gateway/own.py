"""Serves the paths that generate nothing: models, formats, prompts, stored answers, health and counts."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from unrender.gateway.ask import Ask
from unrender.gateway.body import read_json
from unrender.gateway.failure import STATUSES, Kind, invalid
from unrender.gateway.gateway import Gateway
from unrender.gateway.metrics import MEDIA_TYPE
from unrender.gateway.models import Model
from unrender.gateway.openapi import Path, document
from unrender.gateway.surfaces import chat, messages
from unrender.machine.events import Malformed
from unrender.turn import Turn

_log = logging.getLogger("unrender.gateway")

Answering = Callable[[Request], Awaitable[Response]]


class Own:
    """The paths that generate nothing."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.paths: Sequence[Path] = ()
        """All paths of the gateway."""

    def keyed(self, endpoint: Answering) -> Answering:
        """Return an endpoint that looks at the key before anything else: before the body, too."""

        async def checked(request: Request) -> Response:
            self._opened(request)
            return await endpoint(request)

        return checked

    def _opened(self, request: Request) -> frozenset[str]:
        return self._gateway.keys.check(dict(request.scope["headers"]))

    def _model(self, request: Request, name: str) -> Model:
        return self._gateway.models.find(name, self._opened(request))

    async def models(self, request: Request) -> Response:
        """List the models that the key opens, in the fields that each API's clients look for."""
        listed = [described(model) for model in self._gateway.models.among(self._opened(request))]
        first, last = (listed[0]["id"], listed[-1]["id"]) if listed else (None, None)
        body = {
            "object": "list",
            "data": listed,
            "models": listed,
            "has_more": False,
            "first_id": first,
            "last_id": last,
        }
        return answered(body)

    async def model(self, request: Request) -> Response:
        """Describe one model."""
        return answered(described(self._model(request, request.path_params["name"])))

    async def format(self, request: Request) -> Response:
        """Return the format that was derived from a model's template."""
        model = self._model(request, request.query_params.get("model", ""))
        return Response(model.turns.template.format.to_json(), media_type="application/json")

    async def render(self, request: Request) -> Response:
        """Return the prompt of a chat request, and what an engine is told with it."""
        body = await self._body(request)
        turn, warnings = await self._turn(request, chat.read(body))
        said = {"stop": turn.stop, "preserved_tokens": turn.preserved_tokens, "begun": turn.begun, "warnings": warnings}
        return answered({"prompt": turn.prompt, **said})

    async def parse(self, request: Request) -> Response:
        """Return the message that a text means as the answer to a chat request."""
        body = await self._body(request)
        text = body.pop("text", None)
        if not isinstance(text, str):
            raise invalid(f"text: expected a string, found {text!r:.80}", param="text")
        turn, warnings = await self._turn(request, chat.read(body))
        parser = turn.parser()
        events = [*parser.feed(text), *parser.finish()]
        broken = [
            {"text": event.text, "position": event.position, "expected": event.expected}
            for event in events
            if isinstance(event, Malformed)
        ]
        message = parser.message
        reason = message.finish_reason()
        return answered(
            {"message": message.to_openai(), "finish_reason": reason, "malformed": broken, "warnings": warnings}
        )

    async def count(self, request: Request) -> Response:
        """Return how many tokens the prompt of a request to `/v1/messages` has; an estimate where the engine cannot say."""
        ask = messages.read_conversation(await self._read(request))
        turn, _ = await self._turn(request, ask)
        counted, exact = await self._model(request, ask.model).count(turn.prompt)
        return answered({"input_tokens": counted} | ({} if exact else {"estimated": True}))

    async def stored(self, request: Request) -> Response:
        """Return an answer of Responses that was stored."""
        return answered(self._gateway.stored.get(*self._stored(request)).response)

    async def delete(self, request: Request) -> Response:
        """Forget an answer of Responses that was stored."""
        return answered(self._gateway.stored.delete(*self._stored(request)))

    async def input_items(self, request: Request) -> Response:
        """Return the items that a stored answer was given to, a page of them."""
        owner, id = self._stored(request)
        return answered(self._gateway.stored.input_items(owner, id, dict(request.query_params)))

    def _stored(self, request: Request) -> tuple[bytes, str]:
        """Return whose answer is asked for, and its id."""
        return self._gateway.keys.owner(dict(request.scope["headers"])), request.path_params["id"]

    async def openapi(self, _: Request) -> Response:
        """Return what all paths take and give, as an OpenAPI document."""
        return answered(document(self.paths))

    async def metrics(self, _: Request) -> Response:
        """Return what was counted, for Prometheus."""
        gateway = self._gateway
        return Response(gateway.metrics.text({"streams": gateway.streams}), media_type=MEDIA_TYPE)

    async def health(self, _: Request) -> Response:
        """Say that the process lives."""
        return answered({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        """Say whether answers can be generated: every engine is there, and the gateway is not shutting down."""
        found = zip(self._gateway.models, await self.problems(), strict=True)
        problems = {model.name: why for model, why in found if why}
        if self._gateway.draining:
            problems["gateway"] = "shutting down"
        models = self._gateway.models
        status = {
            "status": "not ready" if problems else "ready",
            "problems": problems,
            "grammars": {model.name: model.capabilities.dialect or None for model in models},
            "findings": {model.name: model.found.told() | {"said": _complaints(model)} for model in models},
        }
        return answered(status, STATUSES[Kind.BUSY] if problems else 200)

    async def problems(self) -> list[str | None]:
        """Return for each model why it cannot answer, None where it can; an engine is tried when it is first there."""
        return await asyncio.gather(*map(_problem, self._gateway.models))

    async def _turn(self, request: Request, ask: Ask) -> tuple[Turn, tuple[str, ...]]:
        return await self._model(request, ask.model).turns.turn(ask, self._gateway.client(request.scope))

    async def _read(self, request: Request) -> Any:
        return await read_json(request.receive, self._gateway.limits.body, self._gateway.limits.upload)

    async def _body(self, request: Request) -> dict[str, Any]:
        body = await self._read(request)
        if not isinstance(body, dict):
            raise invalid(f"body: expected an object, found {type(body).__name__}")
        return body


async def _problem(model: Model) -> str | None:
    problem = await model.backend.ready()
    if problem is None and model.probes and await model.probe():
        for complaint in _complaints(model):
            _log.warning("%s: %s", model.name, complaint)
    return problem


def _complaints(model: Model) -> list[str]:
    """Return what an operator should know of a model's engine."""
    engine = model.backend.capabilities
    none = (
        [] if engine.dialect or engine.obeys else ["the engine takes no grammars: calls and formats are only asked for"]
    )
    return [*none, *model.found.complaints()]


def answered(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response in ASCII.

    Clients may send half a surrogate pair, which has no form in UTF-8.
    """
    return Response(json.dumps(body), status, headers, media_type="application/json")


def described(model: Model) -> dict[str, Any]:
    """Return a model's description with the fields that OpenAI's, Anthropic's and Codex's clients look for."""
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
