"""Defines the exception for failed requests, which each surface formats for its API.

Rule: a failure is caused by the caller, the engine or the operator, never by model output.
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
    """The request didn't arrive in time."""
    BUSY = "busy"
    ENGINE = "engine"
    """The engine is unreachable, rejects a job, or fails during an answer."""
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
"""HTTP status of each kind, if the answer has not started."""


CONTEXT = "context_length_exceeded"
"""OpenAI's error code for a prompt that is too long."""


class Failure(Exception):
    """Error returned to the client. `param` is the invalid field, and `code` the error code."""

    def __init__(self, kind: Kind, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.code = code

    @property
    def status(self) -> int:
        """HTTP status of the failure."""
        return STATUSES[self.kind]


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return the failure for a malformed or unsupported request."""
    return Failure(Kind.INVALID, message, param=param, code=code)
