"""Holds what all requests of one gateway share: models, limits, keys, and the number of running answers."""

from __future__ import annotations

import hmac
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from unrender.gateway.answers.kept import Conversations, Shelf
from unrender.gateway.answers.model import ALL, Models
from unrender.gateway.failure import Failure, Kind
from unrender.gateway.record import Metrics
from unrender.gateway.surfaces.stored import Stored

if TYPE_CHECKING:
    from unrender.gateway.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """Limits for one request, and for all requests together."""

    max_body_bytes: int = 32_000_000
    """Size of a request's body."""
    upload_timeout: float = 60.0
    """Seconds until a request's body has to be there."""
    max_streams: int = 1024
    """Answers in progress; further requests are refused, none waits."""
    store_bytes: int = 0
    """Size of the store for answers of Responses, which later requests refer to; 0 turns it off."""
    store_seconds: float = 30 * 24 * 3600.0
    """Lifetime of a stored answer."""
    kept_bytes: int = 100_000_000
    """Size of the answers that are kept as they were generated, so that the next prompt can extend them; 0 turns that off."""
    answer_timeout: float | None = None
    """Seconds until an answer has to be complete; None for no limit."""
    keepalive_interval: float = 15.0
    """Seconds of silence after which a stream sends a ping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """API keys and their models. Without keys, every client may use every model."""

    models: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """A key → the names of the models it opens; "*" for all."""

    def check(self, headers: Mapping[bytes, bytes]) -> frozenset[str]:
        """Return the names of the models that the request's key opens; "*" for all.

        Raises `Failure` without a valid key. It takes the same time for all keys.
        """
        if not self.models:
            return ALL
        given = self.owner(headers)
        # All are compared, to the last: the time must not tell which key is nearly right.
        found = [one for key, one in self.models.items() if hmac.compare_digest(sha256(key.encode()).digest(), given)]
        if not found:
            raise Failure(Kind.UNAUTHENTICATED, "expected a valid API key", code="invalid_api_key")
        return found[-1]

    def owner(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return an identifier of the sender of a request; it is the same for everybody when no key is needed."""
        return credential(headers) if self.models else b""


def credential(headers: Mapping[bytes, bytes]) -> bytes:
    """Return a digest of the key that a request is sent with, whether one is needed or not."""
    # OpenAI's clients send `authorization: Bearer KEY`, Anthropic's `x-api-key: KEY`.
    bearer = headers.get(b"authorization", b"")
    given = bearer[7:].strip() if bearer[:7].lower() == b"bearer " else headers.get(b"x-api-key", b"")
    return sha256(given).digest()


@dataclass(slots=True, kw_only=True)
class Gateway:
    """One gateway. It holds no state that a second one would miss, except stored answers: without kept answers, prompts are rendered."""

    models: Models
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    keys: Keys = field(default_factory=Keys)
    metrics: Metrics = field(init=False)
    telemetry: Telemetry | None = None
    store: str = ""
    """The file that answers of Responses are stored in; "" is this process's memory."""
    stored: Stored = field(init=False)
    kept: Conversations = field(init=False)
    draining: bool = False
    """No new request is taken; those that are on their way are finished."""
    streams: int = 0
    """Answers on their way."""

    def __post_init__(self) -> None:
        self.stored = Stored(self.store, most=self.limits.store_bytes, seconds=self.limits.store_seconds)
        self.kept = Conversations(most=self.limits.kept_bytes)
        self.metrics = Metrics()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count an answer while it is generated. Raises `Failure` when there are too many, or when none is accepted."""
        if self.draining:
            raise Failure(Kind.BUSY, "the gateway is shutting down", code="shutting_down")
        if self.streams >= self.limits.max_streams:
            said = f"expected at most {self.limits.max_streams} answers at a time"
            raise Failure(Kind.BUSY, said, code="too_many_streams")
        self.streams += 1
        self.metrics.streams.inc()
        try:
            yield
        finally:
            self.streams -= 1
            self.metrics.streams.dec()

    def client(self, scope: Mapping[str, Any]) -> Hashable:
        """Return who sends a request, as far as clients take turns: a key, else an address."""
        peer = scope.get("client") or ("", 0)
        return self.keys.owner(dict(scope["headers"])) or peer[0]

    def shelf(self, scope: Mapping[str, Any]) -> Shelf:
        """Return the kept answers that the sender of a request may continue."""
        # A key that nobody asks for tells senders apart as well.
        return Shelf(all=self.kept, sender=credential(dict(scope["headers"])))
