"""Reads what the page sends: the template and the turn that it describes, with each field checked.

Rules: everything comes from outside. A field of the wrong type or size is a `BadQuestion` that names it; nothing is looked up on
the disk or on the net.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from unrender import ChatTemplate, Turn, UnrenderError
from unrender.cache import kept
from unrender.format import Format
from unrender.limits import LONGEST_PLAYGROUND_TEXT

Kind = TypeVar("Kind")

_WORDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
_QUESTION: list[Any] = [{"role": "user", "content": "Hello"}]
_THINKING: Mapping[str, Mapping[str, bool]] = {
    "": {},
    "on": {"enable_thinking": True},
    "off": {"enable_thinking": False},
}
"""What the page's switch says → the variable that `prepare` is given."""


class BadQuestion(UnrenderError):
    """A field of a question cannot be used; the message names it."""


def field(data: Mapping[str, Any], name: str, kind: type[Kind], default: Kind) -> Kind:
    """Return a field of the question; `default` if it is missing or null.

    Raises `BadQuestion`, naming the field, when it has another type, or is a text of more than `LONGEST_PLAYGROUND_TEXT` characters.
    """
    value = data.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadQuestion(f"{name}: expected {_WORDS[kind]}, found {value!r:.80}")
    if isinstance(value, str) and len(value) > LONGEST_PLAYGROUND_TEXT:
        raise BadQuestion(f"{name}: expected at most {LONGEST_PLAYGROUND_TEXT} characters, found {len(value)}")
    return value


def template_of(data: Mapping[str, Any]) -> ChatTemplate:
    """Return the template given by `source`, `bos_token` and `eos_token`. Raises `TemplateError`.

    What analysis finds is kept in memory, never on disk.
    """
    return _template(*(field(data, name, str, "") for name in ("source", "bos_token", "eos_token")))


def format_of(data: Mapping[str, Any]) -> Format:
    """Return the question's `format`, or else that of its template. Raises `FormatError` and `TemplateError`."""
    given = field(data, "format", dict, {})
    return Format.from_dict(given) if given else template_of(data).format


@kept(1_000_000)
def _template(source: str, bos_token: str, eos_token: str) -> ChatTemplate:
    return ChatTemplate.from_string(source, bos_token=bos_token, eos_token=eos_token, cache=False)


def turn_of(data: Mapping[str, Any]) -> tuple[ChatTemplate, Turn]:
    """Return the template, and the turn that answers the conversation. Raises what `ChatTemplate.prepare` raises."""
    template = template_of(data)
    return template, template.prepare(conversation(data), **settings(data), **choices(data))


def conversation(data: Mapping[str, Any]) -> list[Any]:
    """Return the messages of the conversation; a single question if there are none."""
    return field(data, "messages", list, _QUESTION) or _QUESTION


def settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a rendering apart from the messages: the tools, and the template's variables."""
    switch = field(data, "thinking", str, "")
    if switch not in _THINKING:
        raise BadQuestion(f"thinking: expected one of {', '.join(map(repr, _THINKING))}, found {switch!r:.80}")
    return {"tools": field(data, "tools", list, []) or None, **_THINKING[switch]}


def choices(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the demands on the answer, by their names in `prepare`."""
    given = {name: data[name] for name in ("tool_choice", "response_format") if data.get(name) is not None}
    return {"parallel_tool_calls": field(data, "parallel_tool_calls", bool, default=True), **given}
