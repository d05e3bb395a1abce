"""Makes the calls of earlier turns fit to be rendered, whatever a model has written for their arguments.

Rules: what a model wrote is never refused. Text that is not a JSON object stays as it is where a template takes text; where
it takes values alone, it gets the members that are certain, and the text after them as one more.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from unrender.errors import MessageError, TemplateWarning
from unrender.messages.json_values import check_values

_UNREAD = "arguments"
"""The member that holds the text which could not be read."""
_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"\s*+\{\s*+")
_COLON = re.compile(r"\s*+:\s*+")
_COMMA = re.compile(r"\s*+,\s*+")
_ENDED = ('"', "{", "[", "t", "f", "n")
"""How values begin that show where they end. A number may go on: `3` is the beginning of `34`."""


def readable_calls(messages: Sequence[Mapping[str, Any]], *, as_text: bool) -> list[Mapping[str, Any]]:
    """Return the conversation with arguments that a template can render: JSON objects, and other text with `as_text`.

    Each call whose text cannot be rendered as it is gives a `TemplateWarning` that names it. No argument is changed.
    """
    rewritten: list[str] = []
    read = [_readable(message, f"messages[{i}]", rewritten, as_text=as_text) for i, message in enumerate(messages)]
    for text in rewritten:
        warnings.warn(text, TemplateWarning, stacklevel=5)
    return read


def _readable(message: Mapping[str, Any], where: str, rewritten: list[str], *, as_text: bool) -> Mapping[str, Any]:
    if not (calls := message.get("tool_calls")):
        return message
    read = []
    for i, call in enumerate(calls):
        function = call.get("function", call)
        arguments = function.get("arguments")
        said = arguments if isinstance(arguments, Mapping) else arguments_text(arguments)
        if not as_text and isinstance(said, str) and object_of(said) is None:
            values = values_of(said)
            rewritten.append(
                f"{where}.tool_calls[{i}].function.arguments: the template writes JSON objects alone, found {said!r:.60}; "
                f"it is written as {json.dumps(values, ensure_ascii=False):.60}"
            )
            said = values
        changed = {**function, "arguments": said}
        read.append({**call, "function": changed} if "function" in call else changed)
    return {**message, "tool_calls": read}


def message_calls(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the calls of a message, as far as they are objects."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else ()


def function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `function` of a call; of a flat call, which has none, the call itself."""
    function = call.get("function", call)
    return function if isinstance(function, Mapping) else {}


def arguments_text(arguments: Any) -> str:
    """Return arguments in any form as text: nothing and white space are `{}`.

    >>> arguments_text(None), arguments_text([1]), arguments_text('{"a": ')
    ('{}', '[1]', '{"a": ')
    """
    if isinstance(arguments, str):
        return arguments if arguments.strip() else "{}"
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def object_of(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is; None when it is not one, or nested too deeply to be rendered."""
    try:
        value = json.loads(text)
        check_values(value, where="arguments")
    except (ValueError, RecursionError, MessageError):
        return None
    return value if isinstance(value, dict) else None


def values_of(arguments: Any) -> Mapping[str, Any]:
    """Return arguments in any form as values: those that are certain, and the text that could not be read as one more.

    >>> values_of('{"path": "a.txt", "lines": 3')
    {'path': 'a.txt', 'arguments': '"lines": 3'}
    """
    if isinstance(arguments, Mapping):
        return arguments
    text = arguments_text(arguments)
    whole = object_of(text)
    if whole is not None:
        return whole
    members, rest = _certain_members(text)
    if not rest:
        return members
    name = _UNREAD
    while name in members:
        name += "_"
    return {**members, name: rest}


def _certain_members(text: str) -> tuple[dict[str, Any], str]:
    """Return the members at the beginning of a broken object, and the text after them."""
    members: dict[str, Any] = {}
    opening = _OPENING.match(text)
    at = opening.end() if opening else len(text)
    while (member := _member(text, at)) is not None:
        name, value, at = member
        members[name] = value
        if not (comma := _COMMA.match(text, at)):
            break
        at = comma.end()
    rest = text[at:] if members else text
    return members, "" if rest.strip() in ("", "{", "}") else rest.strip()


def _member(text: str, at: int) -> tuple[str, Any, int] | None:
    """Return the name and the value of the member at `at`, and where it ends; None where that is not certain."""
    try:
        name, at = _DECODER.raw_decode(text, at)
        colon = _COLON.match(text, at)
        if not isinstance(name, str) or colon is None:
            return None
        value, end = _DECODER.raw_decode(text, colon.end())
        check_values(value, where="arguments")
    except (ValueError, RecursionError, MessageError):
        return None
    # At the end of a text that was cut off, `"lines": 3` may be the beginning of `"lines": 34`.
    certain = end < len(text) or text.startswith(_ENDED, colon.end())
    return (name, value, end) if certain else None
