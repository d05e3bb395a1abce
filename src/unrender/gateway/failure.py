"""Defines one exception for all failures of a request; each surface writes it in its own shape.

Rule: a failure is the caller's, the engine's or the operator's. Model output never causes one.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """Kind of failure."""

    INVALID = "invalid"
    UNAUTHENTICATED = "unauthenticated"
    NOT_FOUND = "not_found"
    WRONG_METHOD = "wrong_method"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    """The request did not come in time."""
    BUSY = "busy"
    ENGINE = "engine"
    """The engine cannot be reached, refuses, or breaks off."""
    TIMEOUT = "timeout"
    INTERNAL = "internal"


STATUSES = {
    Kind.INVALID: 400,
    Kind.UNAUTHENTICATED: 401,
    Kind.NOT_FOUND: 404,
    Kind.WRONG_METHOD: 405,
    Kind.TOO_LARGE: 413,
    Kind.TOO_SLOW: 408,
    Kind.BUSY: 503,
    Kind.ENGINE: 502,
    Kind.TIMEOUT: 504,
    Kind.INTERNAL: 500,
}
"""The HTTP status of each kind, where the answer has not begun."""


CONTEXT = "context_length_exceeded"
"""The code for a prompt that is too long, by OpenAI's name for it."""


class Failure(Exception):
    """A request that gets an error. `param` is the invalid field, and `code` the error code."""

    def __init__(self, kind: Kind, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.code = code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUSES[self.kind]


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return the failure for a request that is malformed or asks for something that is not available."""
    return Failure(Kind.INVALID, message, param=param, code=code)
