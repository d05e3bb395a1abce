"""Builds the ASGI application from models, with errors for unknown paths."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unrender.gateway.failure import STATUSES, Failure, Kind
from unrender.gateway.gateway import Gateway, GatewayLimits, Keys
from unrender.gateway.http.body import Gone
from unrender.gateway.http.paths import Paths, answered
from unrender.gateway.models import Model, Models
from unrender.gateway.surfaces import chat, messages

if TYPE_CHECKING:
    from unrender.gateway.telemetry import Telemetry

_log = logging.getLogger("unrender.gateway")


def app(
    models: Sequence[Model],
    *,
    limits: GatewayLimits | None = None,
    keys: Keys | None = None,
    telemetry: Telemetry | None = None,
) -> Starlette:
    """Return the gateway as an ASGI application, to be served or mounted into another one.

    The application's `state.gateway` is the `Gateway`. `telemetry` is an `unrender.gateway.telemetry.Telemetry`, which
    needs the extra `otel`.
    """
    gateway = Gateway(models=Models(models), limits=limits or GatewayLimits(), keys=keys or Keys(), telemetry=telemetry)
    paths = Paths(gateway)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.gather(*(model.turns.warm_up() for model in gateway.models))
        for model, problem in zip(gateway.models, await paths.problems(), strict=True):
            _log.info("%s: %s", model.name, problem or f"ready, {model.backend.capabilities}")
        yield
        await gateway.models.retire()

    routes = [Route(path.path, path.endpoint, methods=[path.method]) for path in paths.all]
    handlers: dict[Any, Any] = {HTTPException: _no_such_path, Failure: _refused, Gone: _left, Exception: _defect}
    application = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    application.state.gateway = gateway
    return application


async def _left(_: Request, __: Exception) -> Response:
    """Answer nobody: the client has gone."""
    return Response(status_code=STATUSES[Kind.INVALID])


async def _refused(request: Request, failure: Failure) -> Response:
    api = messages.MESSAGES if "/v1/messages" in request.url.path else chat.CHAT
    return answered(api.refusal(failure), api.statuses.get(failure.kind, failure.status))


async def _defect(request: Request, _: Exception) -> Response:
    return await _refused(request, Failure(Kind.INTERNAL, "the gateway has a defect"))


async def _no_such_path(request: Request, error: HTTPException) -> Response:
    kind = Kind.WRONG_METHOD if error.status_code == STATUSES[Kind.WRONG_METHOD] else Kind.NOT_FOUND
    failure = Failure(kind, f"{request.method} {request.url.path}: {error.detail}")
    return answered(chat.refusal(failure), error.status_code, error.headers)
