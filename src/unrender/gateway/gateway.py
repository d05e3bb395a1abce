"""Holds the state that all requests share: models, limits, keys, and the number of running answers.

The process's file descriptors are divided between clients and engines, so that none is missing in the middle of an answer. A client's
connection needs one descriptor, and each choice of an answer needs one for the engine. Half of the free descriptors are for clients. The
connections that remain when all streams are in use serve requests that don't generate text, and refuse the others.
"""

from __future__ import annotations

import hmac
import sys
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from unrender.gateway.answers.kept import Conversations, Shelf
from unrender.gateway.answers.model import ANY_MODEL, Models
from unrender.gateway.failure import Failure, FailureKind
from unrender.gateway.record import Metrics
from unrender.gateway.schema import Seconds, Settings
from unrender.gateway.surfaces.stored import Stored
from unrender.gateway.uploads import Uploads


class GatewayLimits(Settings):
    """Limits for single requests, and for all requests together."""

    max_body_bytes: Annotated[int, Field(ge=1, le=10**12)] = 32_000_000
    """Maximum size of a request body."""
    upload_bytes: Annotated[int, Field(ge=0, le=10**12)] = 16_000_000
    """Size of all unfinished request bodies together above which only one of them is read further; the others wait."""
    upload_timeout: Seconds = 60.0
    """Time limit for receiving a request body, in seconds."""
    max_streams: Annotated[int, Field(ge=0, le=10**9)] = 1024
    """Maximum number of answers in progress. Requests above this limit are rejected, not queued."""
    store_bytes: Annotated[int, Field(ge=0, le=10**12)] = 0
    """Maximum size of the store for Responses API answers, which later requests may refer to; 0 disables the store."""
    store_seconds: Seconds = 30 * 24 * 3600.0
    """Lifetime of a stored answer, in seconds."""
    kept_bytes: Annotated[int, Field(ge=0, le=10**12)] = 100_000_000
    """Maximum size of the cache of generated answers, which later prompts may extend; 0 disables the cache."""
    answer_timeout: Seconds | None = None
    """Time limit for an answer, in seconds; None for no limit."""
    keepalive_interval: Seconds = 15.0
    """Time without frames, in seconds, after which a stream sends a ping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """API keys and their models. Without keys, every client may use every model."""

    models: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Names of the models that each key allows, by key; "*" allows all."""

    def check(self, headers: Mapping[bytes, bytes]) -> frozenset[str]:
        """Return the names of the models that the request's key allows; "*" allows all.

        Raises `Failure` if there is no valid key. The check takes the same time for every key.
        """
        if not self.models:
            return ANY_MODEL
        given = self.owner(headers)
        # Compare every key, so that the response time doesn't reveal which key is nearly right.
        found = [one for key, one in self.models.items() if hmac.compare_digest(sha256(key.encode()).digest(), given)]
        if not found:
            raise Failure(FailureKind.UNAUTHENTICATED, "expected a valid API key", code="invalid_api_key")
        return found[-1]

    def owner(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return an identifier of the request's sender. If no keys are configured, all senders have the same identifier."""
        return credential(headers) if self.models else b""


def credential(headers: Mapping[bytes, bytes]) -> bytes:
    """Return a digest of the key in the request's headers, even if no key is required."""
    # OpenAI's clients send `authorization: Bearer KEY`, Anthropic's `x-api-key: KEY`.
    bearer = headers.get(b"authorization", b"")
    given = bearer[7:].strip() if bearer[:7].lower() == b"bearer " else headers.get(b"x-api-key", b"")
    return sha256(given).digest()


@dataclass(slots=True, kw_only=True)
class Gateway:
    """One gateway. Gateways can run side by side, since they share no state except stored answers."""

    models: Models
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    keys: Keys = field(default_factory=Keys)
    metrics: Metrics = field(init=False)
    store: str = ""
    """File for stored answers of the Responses API; "" keeps them in memory."""
    stored: Stored = field(init=False)
    kept: Conversations = field(init=False)
    uploads: Uploads = field(init=False)
    streams: int = 0
    """Number of answers in progress."""
    jobs: int = 0
    """Number of choices in progress, each of which needs a connection to an engine."""
    most_jobs: int | None = None
    """Maximum number of choices in progress, which the process's file descriptors allow; None for no limit."""

    def __post_init__(self) -> None:
        self.stored = Stored(self.store, most=self.limits.store_bytes, seconds=self.limits.store_seconds)
        self.kept = Conversations(most=self.limits.kept_bytes)
        self.metrics = Metrics(self.kept)
        limits = self.limits
        self.uploads = Uploads(most=limits.max_body_bytes, budget=limits.upload_bytes, seconds=limits.upload_timeout)

    @contextmanager
    def slot(self, choices: int) -> Iterator[None]:
        """Count an answer with so many choices while it is generated. Raises `Failure` if there are too many answers."""
        if self.streams >= self.limits.max_streams:
            said = f"expected at most {self.limits.max_streams} answers at a time"
            raise Failure(FailureKind.BUSY, said, code="too_many_streams")
        if self.most_jobs is not None and self.jobs + choices > self.most_jobs:
            said = f"expected at most {self.most_jobs} choices at a time, as many as the limit of open files allows"
            raise Failure(FailureKind.BUSY, said, code="too_many_streams")
        self.streams += 1
        self.jobs += choices
        self.metrics.streams.inc()
        try:
            yield
        finally:
            self.streams -= 1
            self.jobs -= choices
            self.metrics.streams.dec()

    def client(self, scope: Mapping[str, Any]) -> Hashable:
        """Return the identifier by which requests are scheduled fairly: a digest of the key, or the connection's address and port."""
        # Without keys, several clients may share an address, e.g. on one machine or behind a proxy.
        return self.keys.owner(dict(scope["headers"])) or tuple(scope.get("client") or ())

    def shelf(self, scope: Mapping[str, Any]) -> Shelf:
        """Return the kept answers that the sender of a request may continue."""
        # Even if no key is required, keys distinguish senders, so that nobody can continue another sender's answer.
        return Shelf(all=self.kept, sender=credential(dict(scope["headers"])))


try:
    import resource
except ImportError:  # Windows, where sockets aren't descriptors and have no such limit
    resource = None  # type: ignore[assignment]

_OTHERS = 12
"""Descriptors for files that are opened later, such as the store and templates."""
_UNBOUNDED = 1 << 20
"""Limit of descriptors that is requested if the system allows any number."""
_SPARE = 8
"""One connection in so many is for requests that don't generate text."""


class Descriptors(NamedTuple):
    """Maximum number of connections to clients, and of connections to engines that generate text."""

    clients: int
    jobs: int


def raise_limit() -> None:
    """Raise the soft limit of file descriptors to the hard limit. Often, the soft limit is 1,024 and the hard limit is far higher."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _UNBOUNDED if hard == resource.RLIM_INFINITY else hard
        if soft != resource.RLIM_INFINITY and soft < most:
            with suppress(ValueError, OSError):  # macOS has another, lower limit for a process.
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def free_descriptors() -> Descriptors:
    """Return how many connections the free file descriptors allow."""
    if resource is None:
        return divided(_UNBOUNDED)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = 0
    with suppress(OSError):  # Some sandboxes have no such folder. There, `_OTHERS` has to be enough.
        used = len(list((Path("/proc/self/fd") if sys.platform == "linux" else Path("/dev/fd")).iterdir()))
    return divided((_UNBOUNDED if soft == resource.RLIM_INFINITY else min(soft, _UNBOUNDED)) - used - _OTHERS)


def divided(free: int) -> Descriptors:
    """Return the limits for a number of free descriptors.

    >>> divided(1000)
    Descriptors(clients=500, jobs=438)
    >>> divided(3)
    Descriptors(clients=2, jobs=1)
    """
    clients = max(free // 2, 2)
    return Descriptors(clients, clients - max(clients // _SPARE, 1))
