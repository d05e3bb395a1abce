"""Find and replace the texts of a conversation: contents, results, arguments, names, descriptions and documents.

Input: a conversation, tools or documents, and a function that replaces a text. Output: a copy with the replaced texts. Structure that
templates compare with constants, such as roles, part types and JSON types, is never passed to the function, because it can't hold a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from unrender.conversation.messages import RESULTS, Conversation, Said, SaidCall, object_of
from unrender.prompt import PieceKind
from unrender.rendering import copied

_WORDS = re.compile(r"[\w$#/.:-]*+")
"""Matches text without brackets and spaces. No template writes a marker in this form."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*+:)?', re.DOTALL)
"""Matches a JSON string, and the colon after the name of a member."""
_NAMES = "properties"
_PROSE = ("description", "title", "enum", "const", "default", "examples")
"""Members of a tool's schema whose strings are free text."""


class Owner(NamedTuple):
    """The owner of a text."""

    kind: PieceKind
    message: int | None = None
    """Index of the message; None for a tool or document."""
    role: str = ""
    """Role of the message."""
    where: str = ""
    """Path of the text, e.g. `messages[2].content`."""


Replacer = Callable[[Owner, str], str]
"""A function that returns another text for a body's text."""


def changed_conversation(conversation: Conversation, change: Replacer) -> Conversation:
    """Return a copy of a conversation with changed texts."""
    return tuple(_changed_said(said, i, change) for i, said in enumerate(conversation))


def changed_tools(tools: Sequence[Any], change: Replacer) -> list[Any]:
    """Return a copy of tools in OpenAI's format with changed names, descriptions and other texts."""
    return [_changed_tool(tool, f"tools[{i}]", change) for i, tool in enumerate(tools)]


def changed_documents(documents: Sequence[Any], change: Replacer) -> list[Any]:
    """Return a copy of documents with changed texts."""
    return [
        _copy(item, partial(change, Owner("document", where=f"documents[{i}]"))) for i, item in enumerate(documents)
    ]


def _changed_said(said: Said, index: int, change: Replacer) -> Said:
    place = f"messages[{index}]"

    def body(kind: PieceKind, where: str) -> Callable[[str], str]:
        return partial(change, Owner(kind, index, said.role, f"{place}.{where}"))

    content = body("result" if said.role in RESULTS else "content", "content")
    # Ids have one owner in the whole conversation, because a call's id and its result's id must stay equal.
    name, id = body("name", "name"), partial(change, Owner("name", where="id"))
    return replace(
        said,
        content=_copy(said.content, content),
        reasoning=_changed(said.reasoning, body("reasoning", "reasoning")),
        calls=tuple(_changed_call(call, f"tool_calls[{k}]", body, id) for k, call in enumerate(said.calls)),
        answers=said.answers and _unless_word(said.answers, id),
        name=said.name and _changed(said.name, name),
        rest=_copy(said.rest, partial(_unless_word, change=content)),
    )


def _changed_call(
    call: SaidCall, where: str, body: Callable[[PieceKind, str], Callable[[str], str]], id: Callable[[str], str]
) -> SaidCall:
    name, value, key = body("name", where), body("argument", where), body("argument_name", where)
    arguments = call.arguments
    if isinstance(arguments, str) and object_of(arguments) is not None:
        arguments = _STRING.sub(lambda found: _changed_literal(found, key if found[1] else value), arguments)
    else:
        arguments = _copy(arguments, value, key)
    more = partial(_unless_word, change=value)
    return replace(
        call,
        name=_changed(call.name, name),
        arguments=arguments,
        id=call.id and _unless_word(call.id, id),
        rest=_copy(call.rest, more),
        more=_copy(call.more, more),
    )


def _changed_literal(found: re.Match[str], change: Callable[[str], str]) -> str:
    colon = found[1] or ""
    literal = found[0].removesuffix(colon)
    text = json.loads(literal, strict=False)
    other = _changed(text, change)
    return found[0] if other == text else json.dumps(other, ensure_ascii=literal.isascii()) + colon


def _changed_tool(tool: Any, where: str, change: Replacer) -> Any:
    name, argument, words = (
        partial(change, Owner(kind, where=where)) for kind in ("name", "argument_name", "description")
    )

    def leaf(text: str, member: str) -> str:
        if member == "name":
            return _changed(text, name)
        if member == "required":
            return _changed(text, argument)
        return _changed(text, words) if member in _PROSE else _unless_word(text, words)

    def key(text: str, member: str) -> str:
        return _changed(text, argument) if member == _NAMES else _unless_word(text, words)

    return _copy_with(tool, leaf, key)


def _changed(text: str, change: Callable[[str], str]) -> str:
    return change(text) if text.strip() else text


def _unless_word(text: str, change: Callable[[str], str]) -> str:
    return text if _WORDS.fullmatch(text) else _changed(text, change)


def _copy(value: Any, change: Callable[[str], str], key: Callable[[str], str] | None = None) -> Any:
    """Return a copy of a text, or of parts or JSON data, with changed texts. Names of members change only if `key` is given."""
    if isinstance(value, str):
        return _changed(value, change)
    if value is None or not value:
        return value

    def leaf(text: str, member: str) -> str:
        return _unless_word(text, change) if key is None and member == "type" else _changed(text, change)

    return _copy_with(value, leaf, (lambda text, _: _changed(text, key)) if key is not None else (lambda text, _: text))


def _copy_with(value: Any, leaf: Callable[[str, str], str], key: Callable[[str, str], str]) -> Any:
    """Return a copy of JSON data. `leaf` returns another text for a string, and `key` another name for a member. Both get the text, and the
    name of the member that contains it.
    """
    root: list[Any] = [copied(value, "value")]
    waiting: list[tuple[Any, str]] = [(root, "")]
    while waiting:
        holder, member = waiting.pop()
        named = isinstance(holder, Mapping)
        items = list(holder.items() if named else enumerate(holder))
        if named:
            holder.clear()
        for at, item in items:
            inside = str(at) if named else member
            holder[key(at, member) if isinstance(at, str) else at] = (
                leaf(item, inside) if isinstance(item, str) else item
            )
            if isinstance(item, dict | list):
                waiting.append((item, inside))
    return root[0]
