"""Holds what all requests of one gateway share: models, limits, keys, and the number of running answers."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from unrender.gateway.failure import Failure, Kind
from unrender.gateway.metrics import Metrics
from unrender.gateway.models import ALL, Model, Models
from unrender.gateway.surfaces.stored import Stored

if TYPE_CHECKING:
    from unrender.gateway.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """Limits for one request, and for all requests together."""

    body: int = 32_000_000
    """Bytes of a request."""
    upload: float = 60.0
    """Seconds that a request's body may take to come."""
    streams: int = 1024
    """Answers at a time; more are refused, none waits."""
    stored: int = 0
    """Bytes of answers of Responses that are kept for later requests to refer to; 0 keeps none."""
    seconds: float | None = None
    """How long an answer may take altogether; None for as long as the engine writes."""
    ping: float = 15.0
    """Seconds of silence after which a stream is kept open with a frame that means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Who may use what. Without keys, everybody may use everything."""

    models: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """A key → the names of the models it opens; "*" for all."""

    def check(self, headers: Mapping[bytes, bytes]) -> frozenset[str]:
        """Return the names of the models that the request's key opens; "*" for all.

        Raises `Failure` without a valid key. It takes the same time for all keys.
        """
        if not self.models:
            return ALL
        given = sha256(_given(headers)).digest()
        opened: frozenset[str] | None = None
        for key, models in self.models.items():  # to the last: the time must not tell which key is nearly right
            if hmac.compare_digest(sha256(key.encode()).digest(), given):
                opened = models
        if opened is None:
            raise Failure(Kind.UNAUTHENTICATED, "expected a valid API key", code="invalid_api_key")
        return opened

    def owner(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return an identifier of the sender of a request; it is the same for everybody when no key is needed."""
        return sha256(_given(headers)).digest() if self.models else b""


def _given(headers: Mapping[bytes, bytes]) -> bytes:
    bearer = headers.get(b"authorization", b"")
    return bearer[7:].strip() if bearer[:7].lower() == b"bearer " else headers.get(b"x-api-key", b"")


@dataclass(slots=True, kw_only=True)
class Gateway:
    """One gateway. It keeps no state that a second one would miss, unless it is told to store answers."""

    models: Models
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    keys: Keys = field(default_factory=Keys)
    metrics: Metrics = field(init=False)
    telemetry: Telemetry | None = None
    stored: Stored = field(init=False)
    draining: bool = False
    """No new request is taken; those that are on their way are finished."""
    streams: int = 0
    """Answers on their way."""

    def __post_init__(self) -> None:
        self.stored = Stored(most=self.limits.stored)
        self.metrics = Metrics(lambda: self.streams)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count an answer while it is generated. Raises `Failure` when there are too many, or when none is accepted."""
        if self.draining:
            raise Failure(Kind.BUSY, "the gateway is shutting down", code="shutting_down")
        if self.streams >= self.limits.streams:
            raise Failure(
                Kind.BUSY, f"expected at most {self.limits.streams} answers at a time", code="too_many_streams"
            )
        self.streams += 1
        models = self.models
        models.begin()
        try:
            yield
        finally:
            models.end()
            self.streams -= 1

    def client(self, scope: Mapping[str, Any]) -> Hashable:
        """Return who sends a request, as far as clients take turns: a key, else an address."""
        peer = scope.get("client") or ("", 0)
        return self.keys.owner(dict(scope["headers"])) or peer[0]

    async def replace(self, models: Sequence[Model], limits: GatewayLimits, keys: Keys) -> None:
        """Serve these models from now on, once they are warm; answers on their way are finished by those before."""
        # Warm before they serve; what is on its way holds on to the old ones, which let go of their engines after it.
        fresh, before = Models(models), self.models
        await asyncio.gather(*(model.turns.warm_up() for model in models if not any(model is one for one in before)))
        self.models, self.limits, self.keys = fresh, limits, keys
        self.stored.resize(limits.stored)
        await before.retire(kept=models)
