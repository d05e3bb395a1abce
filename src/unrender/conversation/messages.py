"""Parse conversations in any common format into typed messages.

Input: dicts in the format of OpenAI's Chat Completions or Responses or of Anthropic's Messages, SDK objects, or our own `Message`. Output:
a `Conversation`, a tuple of frozen `Said` objects. Later steps use only these objects. They are converted back to dicts for rendering.

Rules:
- Content parts with an equivalent in OpenAI's format are converted. Other parts raise `RequestError` with their path, since templates
  would drop them or print their repr. Parts of a type that the template itself supports are left unchanged.
- A tool result that is neither text nor a list of parts is converted to JSON, so that all templates print the same text.
- The arguments of earlier calls are never rejected, because a model wrote them. Templates that accept text get the text unchanged.
  Other templates get the complete members of the JSON object, and the remaining text as one more member.
"""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

from unrender.errors import RequestError, TemplateWarning
from unrender.json_values import check_values, checked_list
from unrender.messages import MEDIA_FORMS, REASONING_FIELDS, Message
from unrender.rendering import Template
from unrender.signatures import expected_one_of

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
"""Message roles in OpenAI's format."""
MEDIA_KINDS = ("image", "audio", "video", "file")
MEDIA_TYPES = {form.format(kind): kind for kind in MEDIA_KINDS for form in MEDIA_FORMS}
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Types of text parts, and the field that contains the text."""
_THOUGHTS = ("thinking", "reasoning")
RESULTS = ("tool", "function")
"""Roles of tool results."""
_EXPECTED = {"assistant": ("text", "thinking", "tool_use", *MEDIA_KINDS), "user": ("text", "tool_result", *MEDIA_KINDS)}
_OF_THE_STREAM = ("index", "status")
"""Fields of streamed calls. They are removed, since some templates print every field of a call."""
_OWN = ("role", "content", "tool_calls", "tool_call_id", "name")
_FUNCTION = ("name", "arguments")

_Part = Mapping[str, Any]
_Placed = tuple[_Part, str]
"""A part and its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidCall:
    """A tool call in an earlier answer."""

    name: str
    arguments: Any = None
    """A dict, or text that may be invalid JSON."""
    id: str | None = None
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the call, unchanged."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the call's `function`, unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message of a conversation."""

    role: str
    content: Any = None
    """Text, a list of parts, an object that the template supports, or None."""
    reasoning: str = ""
    calls: tuple[SaidCall, ...] = ()
    answers: str | None = None
    """For tool results: the id of the call."""
    name: str | None = None
    """For tool results: the tool's name. For other messages: the speaker's name."""
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the message, unchanged."""


Conversation = tuple[Said, ...]
Continued = Literal["content", "reasoning", True]
"""The part of the last message that the model continues. True means content."""


def conversation_of(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """Convert messages in OpenAI's format to a `Conversation`, without the checks that `read_messages` makes."""
    return tuple(_said(message, message.get("content"), _calls_of(message)) for message in messages)


def read_messages(
    messages: Any, *, reads: Collection[str] = (), keys: Collection[str] = (), as_text: bool = True
) -> tuple[Conversation, tuple[str, ...]]:
    """Return the conversation, and a note for each part that is ignored or changed.

    `reads` are the roles and part types that the template supports, and `keys` are the keys that it reads from objects. If `as_text` is
    True, arguments that are invalid JSON stay text. A message with several tool results is split into several messages. Raises
    `RequestError` with the path of the message and field.
    """
    if not checked_list(messages, "messages"):
        raise RequestError("messages: expected at least one message, found none")
    plain = [_plain(message) for message in messages]
    check_values(plain, where="messages", only_json=False)
    reader = _Reader(reads, keys, as_text=as_text)
    said = tuple(one for i, message in enumerate(plain) for one in reader.read(message, f"messages[{i}]"))
    return said, tuple(reader.notes)


def read_conversation(messages: Any, template: Template, *, as_text: bool) -> Conversation:
    """Parse a conversation for one template, as `read_messages` does. Each note is issued as a warning."""
    known = template.facts.string_constants
    keys = template.facts.attribute_names.union(known)
    conversation, notes = read_messages(messages, reads=known, keys=keys, as_text=as_text)
    for note in notes:
        warnings.warn(note, TemplateWarning, stacklevel=5)
    return conversation


def check_results(conversation: Conversation) -> None:
    """Raise `RequestError` for a tool result whose id isn't that of an earlier call.

    Without an id, a result belongs to the next call without a result. The same is true if no earlier call has an id.
    """
    known: dict[str, None] = {}
    for said in conversation:
        known |= {call.id: None for call in said.calls if call.id}
        if said.answers and known and said.answers not in known:
            where, what = "messages: tool_call_id", "the ids of earlier calls, "
            raise RequestError(expected_one_of(where, known, said.answers, what=what))


def split_continued(
    conversation: Conversation, continued: Continued | Literal[False] | None
) -> tuple[Conversation, Said | None]:
    """Split off the last message if the model has to continue it. Returns None instead of this message if `continued` isn't set.

    Raises `RequestError`, with the message's path, if the message can't be continued.
    """
    if not continued:
        return conversation, None
    *before, said = conversation
    where = f"messages[{len(before)}]"
    if continued not in (True, "content", "reasoning"):
        raise RequestError(f"continue_final_message: expected 'content' or 'reasoning', found {continued!r}")
    if said.role != "assistant":
        raise RequestError(f"{where}.role: expected the assistant's message to continue, found {said.role!r}")
    if said.calls:
        raise RequestError(f"{where}.tool_calls: expected a message without calls to continue")
    if not isinstance(said.content, str | None):
        raise RequestError(f"{where}.content: expected text to continue, found {type(said.content).__name__}")
    return tuple(before), said


class _Reader:
    """Parser for the messages of one conversation."""

    def __init__(self, reads: Collection[str], keys: Collection[str], *, as_text: bool) -> None:
        self._reads, self._keys, self._as_text = reads, keys, as_text
        self.notes: list[str] = []

    def read(self, message: Any, where: str) -> Iterator[Said]:
        """Yield the equivalent of one message in OpenAI's format, as one or more messages."""
        role, content = self._role(message, where), message.get("content")
        place = f"{where}.content"
        placed = [(part, f"{place}[{k}]") for k, part in enumerate(content)] if isinstance(content, list) else []
        if isinstance(content, Mapping | list) and role in RESULTS:
            content, placed = result_content(content, place, self._reads), []
        elif isinstance(content, Mapping) and not any(key in self._keys for key in content):
            raise RequestError(f"{place}: expected text or a list of parts, found an object: {content!r:.60}")
        elif not isinstance(content, str | Mapping | list | None):
            raise RequestError(f"{place}: expected text or a list of parts, found {type(content).__name__}")
        # Reject missing content, which is allowed only in assistant messages.
        elif content is None and role != "assistant":
            raise RequestError(f"{place}: expected text or a list of parts, found nothing")
        for part, at in placed:
            if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
                raise RequestError(f"{at}: expected a part with a type, found {part!r:.60}")
        calls = message.get("tool_calls")
        if all(part["type"] in self._reads or _is_plain(part) for part, _ in placed):
            yield _said(message, content, self._calls(calls, where))
        elif role == "assistant":
            yield self._answer(message, placed, where)
        else:
            yield from self._others(_said(message, None, self._calls(calls, where)), placed)

    def _role(self, message: Any, where: str) -> str:
        if not isinstance(message, Mapping):
            raise RequestError(f"{where}: expected an object, found {type(message).__name__}{_other_form(message)}")
        role = message.get("role")
        if not isinstance(role, str) or not (role in ROLES or role in self._reads):
            raise RequestError(expected_one_of(f"{where}.role", sorted(ROLES), role) + _other_form(message))
        _check_texts(message, ("name", "tool_call_id"), where=where)
        return role

    def _answer(self, message: _Part, placed: Sequence[_Placed], where: str) -> Said:
        calls: list[Any] = list(message.get("tool_calls") or ())
        thoughts = [message[name] for name in REASONING_FIELDS if isinstance(message.get(name), str)][:1]
        shown = []
        for part, at in placed:
            match part["type"]:
                case "tool_use":
                    calls.append(_used(part, at))
                case "redacted_thinking":
                    self._ignore(at)
                case kind if kind in _THOUGHTS:
                    thoughts.append(_thought(part, at))
                case _:
                    shown.append(self._shown(part, at, "assistant"))
        reasoning = "\n".join(thoughts) if any(thoughts) else ""
        return replace(_said(message, _whole(shown), self._calls(calls, where)), reasoning=reasoning)

    def _others(self, said: Said, placed: Sequence[_Placed]) -> Iterator[Said]:
        # A user message may contain tool results. `[text, result, result, text]` is split into four messages in OpenAI's format.
        for is_result, group in groupby(placed, lambda one: said.role == "user" and one[0]["type"] == "tool_result"):
            if is_result:
                yield from (self._result(part, at) for part, at in group)
            else:
                yield replace(said, content=_whole([self._shown(part, at, said.role) for part, at in group]))

    def _result(self, part: _Part, where: str) -> Said:
        id = part.get("tool_use_id")
        if not isinstance(id, str):
            raise RequestError(f"{where}.tool_use_id: expected text, found {id!r:.60}")
        if part.get("is_error"):
            self._ignore(f"{where}.is_error")
        content = result_content(part.get("content"), f"{where}.content", self._reads)
        # Join text blocks with line breaks: `["Paris", "Rome"]` becomes two lines.
        if isinstance(content, list) and all(item["type"] == "text" for item in content):
            content = "\n".join(item["text"] for item in content)
        return Said(role="tool", answers=id, content=content)

    def _shown(self, part: _Part, where: str, role: str) -> _Part:
        if part["type"] not in self._reads and not _is_shown(part, ()):
            raise _refusal(part, where, role)
        return _shown(part, where)

    def _ignore(self, where: str) -> None:
        self.notes.append(f"{where}: not shown to the model")

    def _calls(self, calls: Any, where: str) -> tuple[SaidCall, ...]:
        where = f"{where}.tool_calls"
        listed = () if calls is None else checked_list(calls, where)
        return tuple(self._call(call, f"{where}[{i}]") for i, call in enumerate(listed))

    def _call(self, call: Any, where: str) -> SaidCall:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
            raise RequestError(f"{where}.function.name: expected a non-empty string, found {name!r}")
        _check_texts(call, ("id", "type"), where=where)
        arguments = function.get("arguments")
        check_values({"arguments": arguments}, where=f"{where}.function")
        said = arguments if isinstance(arguments, Mapping) else arguments_text(arguments)
        if not self._as_text and isinstance(said, str) and object_of(said) is None:
            values = values_of(said)
            self.notes.append(
                f"{where}.function.arguments: the template supports only JSON objects, found {said!r:.60}; "
                f"rendered as {json.dumps(values, ensure_ascii=False):.60}"
            )
            said = values
        return replace(_call_of(call), arguments=said)


def _plain(message: Any) -> Any:
    """Return a message as a dict, with its parts and calls as lists of dicts. Values that aren't messages are returned unchanged."""
    data = message.to_openai() if isinstance(message, Message) else plain_item(message)
    if not isinstance(data, Mapping):
        return data
    changed: dict[str, Any] = {}
    for name in ("tool_calls", "content"):
        items = data.get(name)
        if isinstance(items, Sequence) and not isinstance(items, str | bytes):
            changed[name] = [plain_item(item) for item in items]
    return {**data, **changed} if changed else data


def plain_item(item: Any) -> Any:
    """Return an SDK object as a dict (pydantic's `model_dump`, or `to_dict`). Other values are returned unchanged."""
    # Skip pydantic classes: unlike instances, they contain no data.
    if isinstance(item, Mapping) or inspect.isclass(item):
        return item
    for method in ("model_dump", "to_dict"):
        dump = getattr(item, method, None)
        if callable(dump):
            return dump(exclude_none=True, by_alias=True) if method == "model_dump" else dump()
    return item


def _said(message: _Part, content: Any, calls: tuple[SaidCall, ...]) -> Said:
    role = message.get("role") or ""
    thoughts = REASONING_FIELDS if role == "assistant" else ()
    said = [message[name] for name in thoughts if isinstance(message.get(name), str) and message[name]]
    # Drop fields that are None: SDKs send `"refusal": null`, and templates test whether a key exists.
    rest = {name: value for name, value in message.items() if value is not None and name not in (*_OWN, *thoughts)}
    reasoning, id, name = next(iter(said), ""), message.get("tool_call_id"), message.get("name")
    return Said(role=role, content=content, reasoning=reasoning, calls=calls, answers=id, name=name, rest=rest)


def _calls_of(message: _Part) -> tuple[SaidCall, ...]:
    """Return the calls of an unchecked message. Elements that aren't objects are skipped."""
    calls = message.get("tool_calls")
    known = calls if isinstance(calls, list | tuple) else ()
    return tuple(_call_of(call) for call in known if isinstance(call, Mapping))


def _call_of(call: _Part) -> SaidCall:
    # Accept a `name` and `arguments` at the top level of the call, too.
    found = call.get("function", call)
    function: _Part = found if isinstance(found, Mapping) else {}
    rest = {key: call[key] for key in call if key not in ("id", "function", *_FUNCTION, *_OF_THE_STREAM)}
    more = {key: function[key] for key in function if key not in _FUNCTION} if "function" in call else {}
    name, arguments = function.get("name") or "", function.get("arguments")
    return SaidCall(name=name, arguments=arguments, id=call.get("id"), rest=rest, more=more)


def _check_texts(item: _Part, names: Sequence[str], *, where: str) -> None:
    for name in names:
        if not isinstance(item.get(name), str | None):
            raise RequestError(f"{where}.{name}: expected text, found {item[name]!r:.60}")


def _other_form(message: Any) -> str:
    """Return a hint for messages with `type` instead of `role`, such as LangChain's. Returns "" for other messages."""
    kind, role = (
        message.get(n) if isinstance(message, Mapping) else getattr(message, n, None) for n in ("type", "role")
    )
    if role is not None or not isinstance(kind, str):
        return ""
    return f", and the type {kind!r:.60}; convert LangChain's messages with convert_to_openai_messages"


# Content parts.


def result_content(content: Any, where: str, types: Collection[str] = ()) -> Any:
    """Return a tool's result as text or parts. None becomes an empty string, and any other value becomes JSON.

    >>> result_content({"temp": 21, "place": "Zürich"}, "content")
    '{"temp": 21, "place": "Zürich"}'
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    # A list counts as content parts only if each part contains its data. `[{"type": "file", "name": "a.txt"}]` is a file listing.
    if isinstance(content, list | tuple) and content and all(_is_shown(one, types) and _holds(one) for one in content):
        return [_shown(part, f"{where}[{k}]") for k, part in enumerate(content)]
    check_values(content, where=where)
    return json.dumps(content, ensure_ascii=False)


def _is_plain(part: _Part) -> bool:
    """Return whether a part is in OpenAI's format."""
    kind = part["type"]
    return isinstance(part.get("text"), str) if kind == "text" else kind in MEDIA_TYPES and "source" not in part


def _is_shown(part: Any, types: Collection[str]) -> bool:
    """Return whether a value is a text part, a media part, or a part of one of the template's own `types`."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        return False
    return isinstance(part.get(_TEXTS[kind]), str) if kind in _TEXTS else kind in MEDIA_TYPES or kind in types


def _holds(part: _Part) -> bool:
    """Return whether a part contains its data."""
    kind = MEDIA_TYPES.get(part["type"])
    return kind is None or "source" in part or any(form.format(kind) in part for form in MEDIA_FORMS)


def _shown(part: _Part, where: str) -> _Part:
    """Return a text or media part in OpenAI's format."""
    kind = part["type"]
    if kind == "text" or "source" not in part:
        return part if kind not in _TEXTS or kind == "text" else {"type": "text", "text": part[_TEXTS[kind]]}
    source = part["source"]
    if isinstance(source, Mapping) and kind == "image":
        url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
        if source.get("url") or isinstance(source.get("data"), str):
            return {"type": "image_url", "image_url": {"url": url}}
    raise RequestError(f"{where}.source: expected an image's url, or its media_type and data, found {source!r:.60}")


def _whole(parts: Sequence[_Part]) -> Any:
    """Return the parts joined into one string if all of them are text, otherwise as a list."""
    return "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else [*parts]


def _thought(part: _Part, where: str) -> str:
    """Return the text of a reasoning part, which may be a list of text parts."""
    value = part.get(part["type"], part.get("text"))
    if isinstance(value, list | tuple) and all(_is_shown(item, ()) and item["type"] in _TEXTS for item in value):
        return "".join(item[_TEXTS[item["type"]]] for item in value)
    if not isinstance(value, str):
        raise RequestError(f"{where}.{part['type']}: expected text, found {value!r:.60}")
    return value


def _used(part: _Part, where: str) -> dict[str, Any]:
    name, id, given = part.get("name"), part.get("id"), part.get("input")
    if not isinstance(name, str) or not name:
        raise RequestError(f"{where}.name: expected a non-empty string, found {name!r:.60}")
    arguments = {} if given is None else given
    # Keep a string unchanged, because it is the raw text of a broken call.
    text = arguments if isinstance(arguments, str) else result_content(arguments, f"{where}.input")
    named = {} if id is None else {"id": id}
    return {**named, "type": "function", "function": {"name": name, "arguments": text}}


def _refusal(part: _Part, where: str, role: str) -> RequestError:
    kind = part["type"]
    if kind in _TEXTS:
        return RequestError(f"{where}.{_TEXTS[kind]}: expected text, found {part.get(_TEXTS[kind])!r:.60}")
    expected = list(_EXPECTED.get(role, ("text",)))
    return RequestError(f"{where}.type: expected one of {expected} in a message of role {role!r}, found {kind!r:.60}")


def content_parts(content: Any) -> list[Any]:
    """Return content as a list of parts."""
    return list(content) if isinstance(content, list | tuple) else [{"type": "text", "text": content}]


def words_in(content: Any) -> list[str]:
    """Return all strings in a message's content."""
    return [part["text"] for part in content_parts(content) if _has_text(part)]


def with_texts(content: Any, texts: Iterator[str]) -> Any:
    """Return the content with its strings replaced by `texts`, in order."""
    if isinstance(content, list | tuple):
        return [{**part, "text": next(texts)} if _has_text(part) else part for part in content]
    return next(texts) if isinstance(content, str) else content


def _has_text(part: Any) -> bool:
    return isinstance(part, Mapping) and isinstance(part.get("text"), str)


# Calls of earlier turns.


_UNREAD = "arguments"
"""Member name for text that can't be parsed."""
_DECODER = json.JSONDecoder()
# Possessive quantifiers (`*+`) prevent quadratic time for long runs of whitespace.
_OPENING = re.compile(r"\s*+\{\s*+")
_COLON = re.compile(r"\s*+:\s*+")
_COMMA = re.compile(r"\s*+,\s*+")
_ENDED = ('"', "{", "[", "t", "f", "n")
"""First characters of JSON values whose end is certain. The end of a number isn't certain: `3` is a prefix of `34`."""


def arguments_text(arguments: Any) -> str:
    """Return arguments of any type as text. None and blank strings become `{}`.

    >>> arguments_text(None), arguments_text([1]), arguments_text('{"a": ')
    ('{}', '[1]', '{"a": ')
    """
    if isinstance(arguments, str):
        return arguments if arguments.strip() else "{}"
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def object_of(text: str) -> dict[str, Any] | None:
    """Return the JSON object in `text`. Returns None for other text, and for objects that are nested too deeply to be rendered."""
    try:
        value = json.loads(text)
        check_values(value, where="arguments")
    except (ValueError, RecursionError, RequestError):
        return None
    return value if isinstance(value, dict) else None


def values_of(arguments: Any) -> Mapping[str, Any]:
    """Return arguments of any type as a dict. Text that can't be parsed is added as one more member.

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
    # If the name `arguments` is already taken, call the member `arguments_`, as for `{"arguments": 1, "x": 3`.
    while name in members:
        name += "_"
    return {**members, name: rest}


def _certain_members(text: str) -> tuple[dict[str, Any], str]:
    """Return the complete members at the start of a broken object, and the text after them."""
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
    """Return the name, the value and the end of the member at position `at`. Returns None if the member may be incomplete."""
    try:
        name, at = _DECODER.raw_decode(text, at)
        colon = _COLON.match(text, at)
        if not isinstance(name, str) or colon is None:
            return None
        value, end = _DECODER.raw_decode(text, colon.end())
        check_values(value, where="arguments")
    except (ValueError, RecursionError, RequestError):
        return None
    # Reject a number at the end of truncated text: `"lines": 3` may be the start of `"lines": 34`.
    certain = end < len(text) or text.startswith(_ENDED, colon.end())
    return (name, value, end) if certain else None
