"""Defines all exceptions of unrender. All of them, except for `ParseError`, report mistakes of the caller.

A lenient parser never raises on model output, and a strict parser raises only `ParseError`.
"""

from __future__ import annotations


class UnrenderError(Exception):
    """Base of all errors raised by unrender."""


class TemplateError(UnrenderError):
    """The template couldn't be loaded, compiled or rendered. The message contains the location and the reason."""


class RequestError(UnrenderError):
    """A message, tool or request is malformed. The error message contains the path to the problem."""


class FormatError(UnrenderError):
    """A `Format` (or its JSON) is inconsistent.

    `where` is the path of the invalid field, e.g. `format.reasoning.end`, or "" if more than one field is involved.
    """

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.where = where


class FormatVersionError(FormatError):
    """The JSON of a `Format` has a version that this release doesn't support."""


class StateError(UnrenderError):
    """A parser's saved state doesn't match the release, format or request. The message contains the reason."""


class GrammarError(UnrenderError):
    """A grammar can't be built, or can't be expressed in the requested dialect."""


class ExportError(UnrenderError):
    """A `Format` can't be exported as a response template, or a response template is malformed."""


class TokenizerError(UnrenderError):
    """A tokenizer can't encode a prompt. The tokenizer doesn't list its special tokens, or can't encode the text of a special token as
    ordinary text.
    """


class ExtendError(UnrenderError):
    """A prompt can't be extended. The message contains the reason.

    `reason` is a code: "answer", "call", "messages", "state", "thoughts", "tools" or "unproved".
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class UnrenderWarning(UserWarning):
    """Base of all warnings issued by unrender."""


class FormatWarning(UnrenderWarning):
    """A finding about a template contradicts answers that the template itself renders.

    The finding was dropped from the format. The message names this finding.
    """


class TemplateWarning(UnrenderWarning):
    """A part of a request has no effect, because the template doesn't support that part. The message names the part."""


class SchemaWarning(UnrenderWarning):
    """A grammar doesn't enforce a keyword of a JSON Schema. The message names the tool, the path and the keyword."""


class ParseError(UnrenderError):
    """A strict parser found text that the format doesn't allow.

    `position` is the index of the character in the output, `expected` lists what the format allows at that position, and `context` is the
    surrounding text.
    """

    def __init__(self, position: int, expected: str, context: str) -> None:
        super().__init__(f"malformed output at character {position}: expected {expected}, found {context!r}")
        self.position = position
        self.expected = expected
        self.context = context

    def __reduce__(self) -> tuple[type[ParseError], tuple[int, str, str]]:
        return type(self), (self.position, self.expected, self.context)
