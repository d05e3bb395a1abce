"""Defines the exception for failed requests, which each surface formats for its API.

Rule: a failure is caused by the caller, the engine or the operator, never by model output.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Self

_INVALID = "invalid_request_error"


class FailureKind(StrEnum):
    """Kind of failure: its name, the HTTP status that is sent if the answer has not started, and the types of the errors in OpenAI's and in
    Anthropic's format. Without a fourth value, both types are the same.
    """

    INVALID = "invalid", 400, _INVALID
    UNAUTHENTICATED = "unauthenticated", 401, "authentication_error"
    FORBIDDEN = "forbidden", 403, "permission_error"
    NOT_FOUND = "not_found", 404, _INVALID, "not_found_error"
    WRONG_METHOD = "wrong_method", 405, _INVALID
    TOO_LARGE = "too_large", 413, _INVALID, "request_too_large"
    TOO_SLOW = "too_slow", 408, _INVALID
    """The request didn't arrive in time."""
    BUSY = "busy", 503, "overloaded_error"
    LIMITED = "limited", 429, "rate_limit_error"
    """The engine rejects the request because of its rate limit."""
    ENGINE = "engine", 502, "engine_error", "api_error"
    """The engine is unreachable, rejects a job, or fails during an answer."""
    TIMEOUT = "timeout", 504, "timeout_error"
    INTERNAL = "internal", 500, "server_error", "api_error"

    status: int
    openai: str
    anthropic: str

    def __new__(cls, value: str, status: int, openai: str, anthropic: str = "") -> Self:
        """Return a member with its HTTP status and its types of errors."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.status, member.openai, member.anthropic = status, openai, anthropic or openai
        return member


CONTEXT_LENGTH = "context_length_exceeded"
"""OpenAI's error code for a prompt that is too long."""


@dataclass(eq=False, repr=False)
class Failure(Exception):
    """Error returned to the client."""

    kind: FailureKind
    message: str
    _: KW_ONLY
    param: str | None = None
    """The invalid field."""
    code: str | None = None
    """The error code."""
    retry_after: str = "1"
    """Value of the header for a request that may be sent again."""

    def __post_init__(self) -> None:
        super().__init__(self.message)


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return the failure for a malformed or unsupported request."""
    return Failure(FailureKind.INVALID, message, param=param, code=code)
