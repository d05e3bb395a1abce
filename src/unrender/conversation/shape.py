"""Brings OpenAI conversations into the shape that one template wants, media included.

`Capabilities` is the contract between analysis and the facade: what a template takes, as probes found it. `shape_messages` brings
any conversation into that form.

Rules:
- Nothing is lost without need. Reasoning goes to the field that the template reads. A system message that it refuses goes
  into the next user message. A tool's result that it refuses becomes a user message.
- Media may be OpenAI's parts (`image_url`, `input_audio`, `file`) or transformers' (`image`, `audio`, `video`). A rendering
  of a part between two words shows which of them the template reads. What it cannot show is an error that names the part.
- Messages are copied, never changed. What is not understood is passed on as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import Any

from unrender.cache import kept
from unrender.conversation.blocks import MEDIA_FORMS, MEDIA_TYPES
from unrender.conversation.inputs import arguments_text, function_of, message_calls, object_of
from unrender.errors import MessageError
from unrender.messages.wire import REASONING_FIELDS
from unrender.rendering.template import Template

ContextValue = str | bool | int
Context = tuple[tuple[str, ContextValue], ...]


class ReasoningPlace(StrEnum):
    """Where in a message the template looks for reasoning."""

    NOWHERE = "nowhere"
    FIELD = "field"
    """A field of the message, e.g. `message.reasoning_content`."""
    PART = "part"
    """A typed part of the content, e.g. `{"type": "thinking", "thinking": "…"}`."""
    BLOCK = "block"
    """A block of a mapping, e.g. `{"blocks": [{"type": "thoughts", "text": "…"}]}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a template renders, and in which shape it wants messages, as probes show it."""

    supports_tools: bool = False
    """The offered tools are written into the prompt."""
    supports_tool_calls: bool = False
    """An assistant's calls are written."""
    supports_parallel_tool_calls: bool = False
    supports_content_with_calls: bool = False
    supports_content_with_reasoning_and_calls: bool = False
    supports_tool_role: bool = False
    supports_system_role: bool = False
    supports_typed_content: bool = False
    """Content may be a list of parts."""
    requires_typed_content: bool = False
    """Content must be a list of parts."""
    supports_object_arguments: bool = False
    supports_string_arguments: bool = False
    supports_call_id: bool = False
    """The id given with a call is written."""
    requires_short_id: bool = False
    """Ids must be `id_length` letters or digits."""
    id_length: int = 9
    requires_digits_in_id: bool = False
    """Ids must be digits alone."""
    requires_name_in_id: bool = False
    """Calls are written by their id alone, which therefore must be `functions.NAME:INDEX`."""
    requires_flat_calls: bool = False
    """Name and arguments are read from the call itself, not from its `function`."""
    requires_text_values: bool = False
    """Each value of a call's arguments must be a string: other values are given as JSON text."""
    requires_nonnull_content: bool = True
    """Content beside calls must be a string; otherwise it must be null."""
    supports_preserve_reasoning: bool = False
    """Reasoning of turns before the last user message is kept."""
    supports_enable_thinking: bool = False
    reasoning_place: ReasoningPlace = ReasoningPlace.NOWHERE
    reasoning_field: str = ""
    """The field, or the part's or block's type, e.g. `reasoning_content`, `thinking`, `thoughts`."""
    thinking_on: Context = ()
    """Variables that switch thinking on, e.g. `(("enable_thinking", True),)`."""
    thinking_off: Context = ()
    tools_variable: str = "tools"
    """The variable that holds the tools, e.g. `tools`, `functions`."""
    tools_as_text: bool = False
    """The variable wants JSON text."""
    requires_tools: bool = False
    """The variable must be there even when there are no tools."""
    required_context: Context = ()
    """Other variables without which the template does not render, e.g. `datetime`, with values that only probes use."""

    @property
    def thinking_switch(self) -> str:
        """The variable that switches thinking, e.g. `enable_thinking`; empty without such a variable."""
        return next((name for name, _ in self.thinking_off), "")


_OF_THE_STREAM = ("index", "status")
"""Fields of a call as it was streamed, which a template that writes whole calls would show."""


def shape_messages(messages: Sequence[Mapping[str, Any]], capabilities: Capabilities) -> list[dict[str, Any]]:
    """Return copies of `messages` in the shape that the template wants.

    Adapts arguments (mapping or JSON text), null or empty content, typed content, the place of reasoning, ids and
    roles.
    """
    # SDKs write `"tool_calls": null`, and templates ask for its length.
    copies = [{name: value for name, value in m.items() if value is not None or name == "content"} for m in messages]
    # Names and ids first: they go from calls to results, which a changed role no longer shows.
    name_results(copies)
    if capabilities.requires_short_id or capabilities.requires_name_in_id:
        _rename_ids(copies, capabilities)
    shaped = []
    for message in copies:
        if message.get("role") == "assistant":
            message = _shape_assistant(message, capabilities)  # noqa: PLW2901
        elif message.get("role") == "tool" and not capabilities.supports_tool_role:
            message = {"role": "user", "content": message.get("content")}  # noqa: PLW2901
        shaped.append(message)
    if capabilities.reasoning_place is ReasoningPlace.BLOCK:
        shaped = _alike(shaped)
    if not capabilities.supports_system_role:
        shaped = said_by_user(shaped)
    return [_shape_content(message, capabilities) for message in shaped]


def shape_context(
    tools: Sequence[Any] | None, capabilities: Capabilities, *, thinking: bool | None = None
) -> dict[str, Any]:
    """Return the variables to render a probe with: tools, the thinking switch, and what the template requires.

    Each has the template's own name. With `thinking` None, the switch is left to the template. Prompts take nothing from
    `required_context`: what the template requires, the caller has to say.
    """
    context: dict[str, Any] = dict(capabilities.required_context)
    if thinking is not None:
        context |= dict(capabilities.thinking_on if thinking else capabilities.thinking_off)
    if tools or capabilities.requires_tools:
        value = list(tools or ())
        context[capabilities.tools_variable] = (
            json.dumps(value, ensure_ascii=False) if capabilities.tools_as_text else value
        )
    return context


def call_ids(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the ids of all calls in a conversation, one for each, "" where a call has none."""
    return tuple(str(call.get("id") or "") for message in messages for call in message_calls(message))


def name_results(messages: list[dict[str, Any]]) -> None:
    """Give each tool result the name of the function that was called; some templates want to write it."""
    names = {call.get("id"): function_of(call).get("name") for message in messages for call in message_calls(message)}
    for message in messages:
        if message.get("role") == "tool" and "name" not in message and names.get(message.get("tool_call_id")):
            message["name"] = names[message.get("tool_call_id")]


def _rename_ids(messages: list[dict[str, Any]], capabilities: Capabilities) -> None:
    renamed: dict[Any, str] = {}
    used: set[str] = set()
    position = 0
    for message in messages:
        if message_calls(message):
            calls = [dict(call) for call in message_calls(message)]
            # `functions.f:0`, `functions.f:1`: the number counts the calls of the conversation, not of the message.
            for index, call in enumerate(calls, start=position):
                new = _new_id(call, index, capabilities, used)
                used.add(new)
                renamed[call.get("id")] = call["id"] = new
            message["tool_calls"] = calls
            position += len(calls)
        elif message.get("role") == "tool":
            # A result whose call is not in the conversation needs an id that the template takes as well.
            wanted = message.get("tool_call_id")
            message["tool_call_id"] = renamed.get(wanted) or short_id(str(wanted), capabilities)


def _new_id(call: Mapping[str, Any], index: int, capabilities: Capabilities, used: Collection[str]) -> str:
    if capabilities.requires_name_in_id:
        name, given = function_of(call).get("name"), str(call.get("id"))
        # An id like `functions.f:7` is kept: the model wrote it in an earlier answer.
        written = re.fullmatch(rf"(?:\w+\.)?{re.escape(str(name))}:\d+", given)
        counted = (f"functions.{name}:{number}" for number in count(index))
        return given if written and given not in used else next(id for id in counted if id not in used)
    return short_id(str(call.get("id") or f"call{index:05}"), capabilities)


def short_id(call_id: str, capabilities: Capabilities) -> str:
    """Return the id as a template takes it that wants ids of one length: itself, or else one that is always the same."""
    length, digits = capabilities.id_length, capabilities.requires_digits_in_id
    if len(call_id) == length and call_id.isascii() and (call_id.isdigit() if digits else call_id.isalnum()):
        return call_id
    # A hash, not a counter: a call and its result come to the same id by themselves.
    hashed = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()
    return f"{int(hashed, 16):077}"[-length:] if digits else hashed[:length]


def _shape_assistant(message: dict[str, Any], capabilities: Capabilities) -> dict[str, Any]:
    reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name)), "")
    shaped = {key: value for key, value in message.items() if key not in REASONING_FIELDS}
    calls = [_shape_call(call, capabilities) for call in message_calls(message)]
    shaped.pop("tool_calls", None)
    if calls:
        shaped["tool_calls"] = calls
    content = shaped.get("content")
    # Templates that write content or reasoning before a call, and not both, would write the content in the place of reasoning.
    if calls and reasoning and not capabilities.supports_content_with_reasoning_and_calls:
        content = ""
    if not content:
        content = "" if capabilities.requires_nonnull_content or not calls else None
    shaped["content"] = content
    return _place_reasoning(shaped, reasoning, capabilities) if isinstance(reasoning, str) and reasoning else shaped


def _alike(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the content of all answers as blocks where one of them has blocks: templates refuse a mixture."""
    in_blocks = [isinstance(message.get("content"), Mapping) for message in messages]
    if not any(in_blocks):
        return messages
    return [
        message
        if done or message.get("role") != "assistant"
        else message | {"content": {"blocks": _blocks(message["content"])}}
        for message, done in zip(messages, in_blocks, strict=True)
    ]


def _blocks(content: Any) -> list[dict[str, Any]]:
    text = _text(content)
    return [{"type": "response", "text": text}] if text else []


def _place_reasoning(message: dict[str, Any], reasoning: str, capabilities: Capabilities) -> dict[str, Any]:
    name = capabilities.reasoning_field
    content = message.get("content")
    match capabilities.reasoning_place:
        case ReasoningPlace.FIELD:
            return message | {name: reasoning}
        case ReasoningPlace.PART:
            texts = _parts(content) if content else []
            # Some templates read `part.thinking`, others `part.text` of any part.
            return message | {"content": [{"type": name, name: reasoning, "text": reasoning}, *texts]}
        case ReasoningPlace.BLOCK:
            return message | {"content": {"blocks": [{"type": name, "text": reasoning}, *_blocks(content)]}}
    return message


def _shape_call(call: Mapping[str, Any], capabilities: Capabilities) -> dict[str, Any]:
    call = {name: value for name, value in call.items() if name not in _OF_THE_STREAM}
    function = dict(function_of(call))
    arguments = function.get("arguments")
    # `{% for k, v in arguments.items() %}` wants an object, `{{ arguments }}` its text. Broken JSON can only be text.
    if capabilities.supports_object_arguments and isinstance(arguments, str):
        found = object_of(arguments_text(arguments))
        function["arguments"] = arguments if found is None else found
    elif not capabilities.supports_object_arguments and not isinstance(arguments, str):
        function["arguments"] = arguments_text(arguments)
    if capabilities.requires_text_values and isinstance(function.get("arguments"), Mapping):
        function["arguments"] = {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in function["arguments"].items()
        }
    if capabilities.requires_flat_calls:
        return {**call, **function}
    return {**call, "type": call.get("type", "function"), "function": function}


def said_by_user(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the conversation with the system's and the developer's words at the beginning of what the user says next."""
    merged: list[dict[str, Any]] = []
    pending: list[Any] = []
    for message in messages:
        # `system, user` becomes one user's message with both texts; a last system message becomes a user's.
        if message.get("role") in ("system", "developer"):
            pending.append(message.get("content"))
        elif pending and message.get("role") == "user":
            merged.append({**message, "content": _together([*pending, message.get("content")])})
            pending = []
        else:
            merged.append({**message})
    return [*merged, {"role": "user", "content": _together(pending)}] if pending else merged


def _together(contents: Sequence[Any]) -> Any:
    """Return contents as one: a text, or parts where one of them shows more than text."""
    if all(map(_is_text, (part for content in contents for part in _parts(content)))):
        return "\n\n".join(map(_text, contents))
    parts: list[Any] = []
    for content in contents:
        parts += [*_parts("\n\n" if parts else []), *_parts(content)]
    return parts


def _shape_content(message: dict[str, Any], capabilities: Capabilities) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str) and capabilities.requires_typed_content:
        return message | {"content": _parts(content)}
    # Templates that take a question in parts, for its images, may drop the parts of an answer.
    said = message.get("role") == "assistant"
    kept = capabilities.requires_typed_content if said else capabilities.supports_typed_content
    only_text = isinstance(content, list) and all(_is_text(part) for part in content)
    if only_text and not kept:
        return message | {"content": _text(content)}
    return message


def _parts(content: Any) -> list[Any]:
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if _is_text(part))
    return str(content or "")


# Images, sound, video and files.

_BEFORE, _AFTER = "Wexlorp", "Quandrim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """One image, sound, video or file, in the order of the placeholders."""

    kind: str
    """`image`, `audio`, `video` or `file`."""
    part: Mapping[str, Any]
    """The part as the caller gave it."""
    message: int
    """The message that it is in, counted from 0."""

    @property
    def data(self) -> Any:
        """What the part holds: a URL, or what stands in its place."""
        return _value(self.part, self.kind)


def shown_media(
    messages: Sequence[Mapping[str, Any]], template: Template, capabilities: Capabilities
) -> tuple[Sequence[Mapping[str, Any]], tuple[Media, ...]]:
    """Return the conversation with all media in the form that the template shows, and the media.

    Raises `MessageError`, naming message and part, for media that the template shows in no form. No argument is
    changed.
    """
    media: list[Media] = []
    shown = [_shown(message, i, template, capabilities, media) for i, message in enumerate(messages)]
    return (shown if media else messages), tuple(media)


def _shown(
    message: Mapping[str, Any], index: int, template: Template, capabilities: Capabilities, media: list[Media]
) -> Mapping[str, Any]:
    content = message.get("content")
    if not isinstance(content, list | tuple) or not any(_kind(part) for part in content):
        return message
    parts = []
    for at, part in enumerate(content):
        kind = _kind(part)
        if kind:
            forms = _forms_shown(template, capabilities, kind)
            if not forms:
                raise MessageError(
                    f"messages[{index}].content[{at}]: the template shows no {kind}, found {part['type']!r}"
                )
            media.append(Media(kind=kind, part=part, message=index))
            # A part that the template reads is left alone: it may have more fields, such as `detail`, that others read.
            known = part["type"] in forms and part["type"] in part
            part = part if known else _part(forms[0], kind, _value(part, kind))  # noqa: PLW2901
        parts.append(part)
    return {**message, "content": parts}


def _kind(part: Any) -> str:
    return MEDIA_TYPES.get(str(part.get("type")), "") if isinstance(part, Mapping) else ""


def _value(part: Mapping[str, Any], kind: str) -> Any:
    """Return the data of a part: a URL, or what stands in its place."""
    # `{"type": "image_url", "image_url": {"url": "https://…"}}` and `{"type": "image", "image": "…"}` both hold a URL.
    value = next((part[form.format(kind)] for form in MEDIA_FORMS if form.format(kind) in part), None)
    return value.get("url", value) if isinstance(value, Mapping) else value


def _part(name: str, kind: str, value: Any) -> dict[str, Any]:
    # `{"type": "image_url", "image_url": {"url": …}, "image": …}`: whoever asks for either field finds it.
    return {"type": name, name: {"url": value} if name.endswith("_url") else value, kind: value}


@kept(500)
def _forms_shown(template: Template, capabilities: Capabilities, kind: str) -> tuple[str, ...]:
    """Return the types of parts of this kind that the template shows."""
    parts = [_part(form.format(kind), kind, "https://x/y") for form in MEDIA_FORMS]
    unseen = (None, _between(template, capabilities, []))
    return tuple(part["type"] for part in parts if _between(template, capabilities, [part]) not in unseen)


def _between(template: Template, capabilities: Capabilities, parts: list[Any]) -> str | None:
    """Return what a template writes around and between two words with `parts` between them; None when that is not a text."""
    content = [{"type": "text", "text": _BEFORE}, *parts, {"type": "text", "text": _AFTER}]
    context = shape_context(None, capabilities)
    rendering = template.render([{"role": "user", "content": content}], add_generation_prompt=True, **context)
    text = rendering.text
    # A template that takes content for text writes the list as Python does.
    whole = _BEFORE in text and _AFTER in text and "'type'" not in text and '"type"' not in text
    return text if rendering.error is None and whole else None
