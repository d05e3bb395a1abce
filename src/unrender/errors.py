"""Defines every exception that unrender raises: for callers' mistakes, never for model text.

Model output is nobody's mistake: lenient parsing raises nothing, and strict parsing raises `ParseError` alone.
"""

from __future__ import annotations


class UnrenderError(Exception):
    """Base of all errors raised by unrender."""


class TemplateError(UnrenderError):
    """The template could not be loaded, compiled or rendered; the message says where and why."""


class RequestError(UnrenderError):
    """A message, tool or request given by the caller is malformed; the message names the place."""


class FormatError(UnrenderError):
    """A `Format` (or its JSON) is inconsistent.

    `where` is the path of the wrong field, e.g. `format.reasoning.end`; "" when it is not a single field.
    """

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class FormatVersionError(FormatError):
    """The JSON of a `Format` has a version that this release does not read."""


class StateError(UnrenderError):
    """A parser's saved state cannot be continued with this release, format and request; the message says why."""


class GrammarError(UnrenderError):
    """A grammar cannot be built or expressed in the requested dialect."""


class ExportError(UnrenderError):
    """A `Format` cannot be written as another system's description of formats, or such a description is malformed."""


class TokenizerError(UnrenderError):
    """A tokenizer cannot encode a prompt as it must be: it does not tell its special tokens, or cannot spell one in ordinary tokens."""


class ExtendError(UnrenderError):
    """A prompt cannot be extended by what comes after it; the message says why.

    `reason` is a word: "answer", "call", "messages", "state", "thoughts", "tools" or "unproved".
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class UnrenderWarning(UserWarning):
    """Base of all warnings given by unrender."""


class FormatWarning(UnrenderWarning):
    """A finding about a template does not hold for its own answers.

    The format claims less because of it, and the message says what.
    """


class TemplateWarning(UnrenderWarning):
    """The template cannot do what was asked for, so that has no effect; the message names it."""


class SchemaWarning(UnrenderWarning):
    """A keyword of a JSON Schema is not enforced by a grammar; the message names the tool, the path and the keyword."""


class ParseError(UnrenderError):
    """Strict parsing met text that the format does not allow.

    `position` counts characters from the start of the output, `expected` says what the format allows there, in the
    user's words, and `context` is the text around the position.
    """

    def __init__(self, position: int, expected: str, context: str) -> None:
        super().__init__(f"malformed output at character {position}: expected {expected}, found {context!r}")
        self.position = position
        self.expected = expected
        self.context = context

    def __reduce__(self) -> tuple[type[ParseError], tuple[int, str, str]]:
        return type(self), (self.position, self.expected, self.context)
