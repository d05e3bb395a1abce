"""Defines the exception for failed requests, which each surface formats for its API.

Rule: a failure is caused by the caller, the engine or the operator, never by model output.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class FailureKind(StrEnum):
    """Kind of failure, with the HTTP status that is sent if the answer has not started."""

    INVALID = "invalid", 400
    UNAUTHENTICATED = "unauthenticated", 401
    FORBIDDEN = "forbidden", 403
    NOT_FOUND = "not_found", 404
    WRONG_METHOD = "wrong_method", 405
    TOO_LARGE = "too_large", 413
    TOO_SLOW = "too_slow", 408
    """The request didn't arrive in time."""
    BUSY = "busy", 503
    LIMITED = "limited", 429
    """The engine rejects the request because of its rate limit."""
    ENGINE = "engine", 502
    """The engine is unreachable, rejects a job, or fails during an answer."""
    TIMEOUT = "timeout", 504
    INTERNAL = "internal", 500

    status: int

    def __new__(cls, value: str, status: int) -> Self:
        """Return a member with its HTTP status."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.status = status
        return member


CONTEXT_LENGTH = "context_length_exceeded"
"""OpenAI's error code for a prompt that is too long."""


class Failure(Exception):
    """Error returned to the client. `param` is the invalid field, and `code` the error code.

    `retry_after` is the value of the header for a request that may be sent again.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: str = "1",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return the failure for a malformed or unsupported request."""
    return Failure(FailureKind.INVALID, message, param=param, code=code)
