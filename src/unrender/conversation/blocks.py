"""Converts content that is no text into OpenAI's form: blocks of Anthropic's API and of Responses, and results that are data.

Rules:
- What has a meaning in OpenAI's form gets it. What has none is a `MessageError` that names its place: templates drop it, or print
  it as Python does.
- A tool's result that is neither text nor a list of parts is its JSON, so that all templates show the same.
- Parts of a type that the template reads by itself are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from unrender.errors import MessageError
from unrender.messages.wire import REASONING_FIELDS, check_values

MEDIA_KINDS = ("image", "audio", "video", "file")
MEDIA_FORMS = ("{}", "{}_url", "input_{}")
"""The types of parts of a kind: transformers', OpenAI's for Chat Completions, OpenAI's for sound and for Responses."""
MEDIA_TYPES = {form.format(kind): kind for kind in MEDIA_KINDS for form in MEDIA_FORMS}
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of parts that are text → the field that holds it."""
_THOUGHTS = ("thinking", "reasoning")
_RESULTS = ("tool", "function")
"""Roles whose content is a tool's result."""
_EXPECTED = {
    "assistant": ("text", "thinking", "tool_use", *MEDIA_KINDS),
    "user": ("text", "tool_result", *MEDIA_KINDS),
}

_Part = Mapping[str, Any]
_Placed = tuple[_Part, str]
"""A part, and its place."""


def in_openai_form(
    messages: Any, *, types: Collection[str] = (), keys: Collection[str] = (), ignored: list[str]
) -> Any:
    """Return a conversation whose content is OpenAI's; a message that is so already comes back as it is.

    `types` are types of parts, and `keys` those of objects, that the template reads by itself. The places of what has no
    effect are added to `ignored`. A message with results of tools becomes several. Raises `MessageError`, naming the
    place. A value that is not a conversation is returned unchanged, so that `read_messages` refuses it.
    """
    if not isinstance(messages, list):
        return messages
    reader = _Reader(types, keys, ignored)
    return [one for i, message in enumerate(messages) for one in reader.read(message, f"messages[{i}]")]


def result_content(content: Any, where: str, types: Collection[str] = ()) -> Any:
    """Return a tool's result as text or parts: anything else as JSON, and nothing as "".

    >>> result_content({"temp": 21, "place": "Zürich"}, "content")
    '{"temp": 21, "place": "Zürich"}'
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    # `[{"type": "file", "name": "a.txt"}]` is a listing of files: a part holds what it shows.
    if isinstance(content, list | tuple) and content and all(_is_shown(one, types) and _holds(one) for one in content):
        return [_shown(part, f"{where}[{k}]") for k, part in enumerate(content)]
    check_values(content, where=where)
    return json.dumps(content, ensure_ascii=False)


class _Reader:
    """Reads the messages of one conversation."""

    def __init__(self, types: Collection[str], keys: Collection[str], ignored: list[str]) -> None:
        self._types, self._keys, self._ignored = types, keys, ignored

    def read(self, message: Any, where: str) -> Sequence[Any]:
        """Return what a message is in OpenAI's form."""
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, Mapping | list | tuple):
            return [message]
        where = f"{where}.content"
        if message.get("role") in _RESULTS:
            return [{**message, "content": result_content(content, where, self._types)}]
        if isinstance(content, Mapping):
            if not any(key in self._keys for key in content):
                raise MessageError(f"{where}: expected text or a list of parts, found an object: {content!r:.60}")
            return [message]
        placed = [(part, f"{where}[{k}]") for k, part in enumerate(content)]
        for part, place in placed:
            if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
                raise MessageError(f"{place}: expected a part with a type, found {part!r:.60}")
        if all(part["type"] in self._types or _is_plain(part) for part in content):
            return [message]
        return self._answer(message, placed) if message.get("role") == "assistant" else self._others(message, placed)

    def _answer(self, message: _Part, placed: Sequence[_Placed]) -> list[_Part]:
        calls: list[Any] = list(message.get("tool_calls") or ())
        thoughts = [message[name] for name in REASONING_FIELDS if isinstance(message.get(name), str)][:1]
        shown = []
        for part, where in placed:
            match part["type"]:
                case "tool_use":
                    calls.append(_call(part, where))
                case "redacted_thinking":
                    self._ignored.append(where)
                case kind if kind in _THOUGHTS:
                    thoughts.append(_thought(part, where))
                case _:
                    shown.append(self._shown(part, where, "assistant"))
        others = {name: value for name, value in message.items() if name not in REASONING_FIELDS}
        more: dict[str, Any] = {"reasoning_content": "\n".join(thoughts)} if any(thoughts) else {}
        return [{**others, "content": _joined(shown), **more, **({"tool_calls": calls} if calls else {})}]

    def _others(self, message: _Part, placed: Sequence[_Placed]) -> list[_Part]:
        return [one for group in self._groups(message, placed) for one in group]

    def _groups(self, message: _Part, placed: Sequence[_Placed]) -> Iterator[list[_Part]]:
        # A user's message may hold results of tools: [text, result, result, text] is four messages in OpenAI's form.
        role = str(message.get("role"))
        for is_result, group in groupby(placed, lambda one: role == "user" and one[0]["type"] == "tool_result"):
            if is_result:
                yield [self._result(part, where) for part, where in group]
            else:
                yield [{**message, "content": _joined([self._shown(part, where, role) for part, where in group])}]

    def _result(self, part: _Part, where: str) -> _Part:
        id = part.get("tool_use_id")
        if not isinstance(id, str):
            raise MessageError(f"{where}.tool_use_id: expected text, found {id!r:.60}")
        if part.get("is_error"):
            self._ignored.append(f"{where}.is_error")
        content = result_content(part.get("content"), f"{where}.content", self._types)
        # `["Paris", "Rome"]` as two blocks are two lines.
        if isinstance(content, list) and all(item["type"] == "text" for item in content):
            content = "\n".join(item["text"] for item in content)
        return {"role": "tool", "tool_call_id": id, "content": content}

    def _shown(self, part: _Part, where: str, role: str) -> _Part:
        if part["type"] not in self._types and not _is_shown(part, ()):
            raise _refusal(part, where, role)
        return _shown(part, where)


def _is_plain(part: _Part) -> bool:
    """Return whether a part is OpenAI's already."""
    kind = part["type"]
    return isinstance(part.get("text"), str) if kind == "text" else kind in MEDIA_TYPES and "source" not in part


def _is_shown(part: Any, types: Collection[str]) -> bool:
    """Return whether a value is a part that is shown: a text, an image and so on, or one that the template knows."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        return False
    return isinstance(part.get(_TEXTS[kind]), str) if kind in _TEXTS else kind in MEDIA_TYPES or kind in types


def _holds(part: _Part) -> bool:
    """Return whether a part holds what it shows."""
    kind = MEDIA_TYPES.get(part["type"])
    return kind is None or "source" in part or any(form.format(kind) in part for form in MEDIA_FORMS)


def _shown(part: _Part, where: str) -> _Part:
    """Return a part that is shown in OpenAI's form."""
    kind = part["type"]
    if kind == "text" or "source" not in part:
        return part if kind not in _TEXTS or kind == "text" else {"type": "text", "text": part[_TEXTS[kind]]}
    source = part["source"]
    if isinstance(source, Mapping) and kind == "image":
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        if source.get("url") or isinstance(source.get("data"), str):
            return {"type": "image_url", "image_url": {"url": url}}
    raise MessageError(f"{where}.source: expected an image's url, or its media_type and data, found {source!r:.60}")


def _joined(parts: Sequence[_Part]) -> Any:
    """Return parts as one text, if all of them are texts."""
    return "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else [*parts]


def _thought(part: _Part, where: str) -> str:
    """Return the text of a thought; it may be a list of texts."""
    value = part.get(part["type"], part.get("text"))
    if isinstance(value, list | tuple) and all(_is_shown(item, ()) and item["type"] in _TEXTS for item in value):
        return "".join(item[_TEXTS[item["type"]]] for item in value)
    if not isinstance(value, str):
        raise MessageError(f"{where}.{part['type']}: expected text, found {value!r:.60}")
    return value


def _call(part: _Part, where: str) -> dict[str, Any]:
    name, id, given = part.get("name"), part.get("id"), part.get("input")
    if not isinstance(name, str) or not name:
        raise MessageError(f"{where}.name: expected a non-empty string, found {name!r:.60}")
    arguments = {} if given is None else given
    # What a model wrote for a broken call comes back as the text that it was.
    text = arguments if isinstance(arguments, str) else result_content(arguments, f"{where}.input")
    named = {} if id is None else {"id": id}
    return {**named, "type": "function", "function": {"name": name, "arguments": text}}


def _refusal(part: _Part, where: str, role: str) -> MessageError:
    kind = part["type"]
    if kind in _TEXTS:
        return MessageError(f"{where}.{_TEXTS[kind]}: expected text, found {part.get(_TEXTS[kind])!r:.60}")
    expected = list(_EXPECTED.get(role, ("text",)))
    return MessageError(f"{where}.type: expected one of {expected} in a message of role {role!r}, found {kind!r:.60}")
