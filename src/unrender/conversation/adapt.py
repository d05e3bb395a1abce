"""Convert a conversation, including its media, to the message dicts that a template expects.

Rules:
- As little information as possible is lost. Reasoning goes into the field that the template reads. An unsupported system message
  is merged into the next user message. An unsupported tool result becomes a user message.
- Media may use OpenAI's part types (`image_url`, `input_audio`, `file`) or those of transformers (`image`, `audio`, `video`).
  To find out whether a template supports a type, a part of that type is rendered between two words. An unsupported part is an error.
- Unknown fields and parts are passed through unchanged. Only `shaped` returns messages as dicts; all other functions use `Said` objects.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, dropwhile
from typing import Any

from unrender.cache import kept
from unrender.conversation import Capabilities, ReasoningPlace, shape_context
from unrender.conversation.messages import (
    MEDIA_TYPES,
    RESULTS,
    Conversation,
    Said,
    SaidCall,
    arguments_text,
    content_parts,
    conversation_of,
    object_of,
)
from unrender.errors import RequestError
from unrender.messages import MEDIA_FORMS, Media, media_value
from unrender.rendering import Template

_SYSTEM = ("system", "developer")
"""Roles of messages from the application's developer."""


def shape_messages(messages: Sequence[Mapping[str, Any]], capabilities: Capabilities) -> list[dict[str, Any]]:
    """Convert `messages` from OpenAI's format to the form that the template needs.

    This changes the form of arguments (mapping or JSON text) and content (null, text or parts), the place of reasoning, ids and roles. The
    input isn't modified.
    """
    return shaped(conversation_of(messages), capabilities)


def shaped(conversation: Iterable[Said], capabilities: Capabilities) -> list[dict[str, Any]]:
    """Convert a conversation to dicts in the form that the template needs."""
    # Add names and ids first, because a tool result that becomes a user message loses its id.
    said = with_names(conversation)
    if capabilities.requires_short_id or capabilities.requires_name_in_id:
        said = _renamed(said, capabilities)
    said = tuple(_adapted(one, capabilities) for one in said)
    if capabilities.reasoning_place is ReasoningPlace.BLOCK:
        said = _alike(said)
    if not capabilities.supports_system_role:
        said = said_by_user(said)
    return [_written(_with_content(one, capabilities), flat=capabilities.requires_flat_calls) for one in said]


def _written(said: Said, *, flat: bool) -> dict[str, Any]:
    written: dict[str, Any] = {"role": said.role}
    if said.answers is not None:
        written["tool_call_id"] = said.answers
    written["content"] = said.content
    if said.name is not None:
        written["name"] = said.name
    if said.calls:
        written["tool_calls"] = [_written_call(call, flat=flat) for call in said.calls]
    return {**written, **said.rest}


def _written_call(call: SaidCall, *, flat: bool) -> dict[str, Any]:
    named = {} if call.id is None else {"id": call.id}
    said = (("name", call.name or None), ("arguments", call.arguments))
    function = {name: value for name, value in said if value is not None} | dict(call.more)
    return {**named, "type": "function", **call.rest, "function": function, **(function if flat else {})}


def with_names(conversation: Iterable[Said]) -> Conversation:
    """Return the conversation with function names added to tool results, since some templates print these names."""
    names: dict[str | None, str] = {}
    said = []
    for one in conversation:
        # Some applications restart the numbering in each answer, so match a result with the latest call that has its id.
        names |= {call.id: call.name for call in one.calls}
        named = one.role in RESULTS and one.name is None and names.get(one.answers)
        said.append(replace(one, name=named) if named else one)
    return tuple(said)


def _renamed(conversation: Conversation, capabilities: Capabilities) -> Conversation:
    renamed: dict[Any, str] = {}
    used: set[str] = set()
    said = []
    position = 0
    for one in conversation:
        calls = []
        # Number calls across the entire conversation instead of per message, as in `functions.f:0` and `functions.f:1`.
        for index, call in enumerate(one.calls, start=position):
            new = _new_id(call, index, capabilities, used)
            used.add(new)
            renamed[call.id] = new
            calls.append(replace(call, id=new))
        position += len(calls)
        # A result without a matching call needs a valid id too.
        own = renamed.get(one.answers) or short_id(str(one.answers), capabilities)
        said.append(replace(one, calls=tuple(calls), answers=own if one.role == "tool" else one.answers))
    return tuple(said)


def _new_id(call: SaidCall, index: int, capabilities: Capabilities, used: Collection[str]) -> str:
    if capabilities.requires_name_in_id:
        # Keep an id like `functions.f:7`, because the model wrote it in an earlier answer.
        given = str(call.id)
        written = re.fullmatch(rf"(?:\w+\.)?{re.escape(call.name)}:\d+", given)
        counted = (f"functions.{call.name}:{number}" for number in count(index))
        return given if written and given not in used else next(id for id in counted if id not in used)
    return short_id(str(call.id or f"call{index:05}"), capabilities)


def short_id(call_id: str, capabilities: Capabilities) -> str:
    """Return the id if the template accepts it. Otherwise, return a deterministic id of the required length."""
    length, digits = capabilities.id_length, capabilities.requires_digits_in_id
    if len(call_id) == length and call_id.isascii() and (call_id.isdigit() if digits else call_id.isalnum()):
        return call_id
    # Use a hash instead of a counter, so that a call and its result get the same id.
    hashed = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()
    return f"{int(hashed, 16):077}"[-length:] if digits else hashed[:length]


def _adapted(said: Said, capabilities: Capabilities) -> Said:
    if said.role == "tool" and not capabilities.supports_tool_role:
        return Said(role="user", content=said.content)
    if said.role != "assistant":
        return said
    content = said.content
    # Drop the content if the template supports either content or reasoning before a call, but not both. Otherwise, the content would
    # replace the reasoning.
    if said.calls and said.reasoning and not capabilities.supports_content_with_reasoning_and_calls:
        content = ""
    content = content or ("" if capabilities.requires_nonnull_content or not said.calls else None)
    calls = tuple(replace(call, arguments=_arguments(call.arguments, capabilities)) for call in said.calls)
    return _with_reasoning(replace(said, content=content, calls=calls), capabilities)


def _arguments(arguments: Any, capabilities: Capabilities) -> Any:
    # Parse the arguments for templates that need a dict, as in `{% for k, v in arguments.items() %}`. Invalid JSON stays text.
    if capabilities.supports_object_arguments and isinstance(arguments, str):
        found = object_of(arguments_text(arguments))
        arguments = arguments if found is None else found
    elif not capabilities.supports_object_arguments and not isinstance(arguments, str):
        arguments = arguments_text(arguments)
    if capabilities.requires_text_values and isinstance(arguments, Mapping):
        return {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in arguments.items()
        }
    return arguments


def _with_reasoning(said: Said, capabilities: Capabilities) -> Said:
    name, reasoning, content = capabilities.reasoning_field, said.reasoning, said.content
    said = replace(said, reasoning="")
    match capabilities.reasoning_place if reasoning else ReasoningPlace.NOWHERE:
        case ReasoningPlace.FIELD:
            return replace(said, rest={**said.rest, name: reasoning})
        case ReasoningPlace.PART:
            # Set both fields, because some templates read `part.thinking`, and others read `part.text` for every type of part.
            part = {"type": name, name: reasoning, "text": reasoning}
            return replace(said, content=[part, *(content_parts(content) if content else [])])
        case ReasoningPlace.BLOCK:
            return replace(said, content={"blocks": [{"type": name, "text": reasoning}, *_blocks(content)]})
    return said


def _alike(conversation: Conversation) -> Conversation:
    """Convert the content of all answers to blocks if any answer has blocks, since templates reject mixed content."""
    if not any(isinstance(one.content, Mapping) for one in conversation):
        return conversation
    return tuple(
        one
        if one.role != "assistant" or isinstance(one.content, Mapping)
        else replace(one, content={"blocks": _blocks(one.content)})
        for one in conversation
    )


def _blocks(content: Any) -> list[dict[str, Any]]:
    text = _text(content)
    return [{"type": "response", "text": text}] if text else []


def split_system(conversation: Conversation) -> tuple[Conversation, Conversation]:
    """Split a conversation into its leading system and developer messages, and the rest."""
    rest = tuple(dropwhile(lambda said: said.role in _SYSTEM, conversation))
    return conversation[: len(conversation) - len(rest)], rest


def said_by_user(conversation: Iterable[Said]) -> Conversation:
    """Return the conversation with system and developer messages merged into the next user message."""
    merged: list[Said] = []
    pending: list[Any] = []
    for one in conversation:
        # Merge `system, user` into one user message with the text of both messages. A system message at the end becomes a user message.
        if one.role in _SYSTEM:
            pending.append(one.content)
        elif pending and one.role == "user":
            merged.append(replace(one, content=_together([*pending, one.content])))
            pending = []
        else:
            merged.append(one)
    return (*merged, Said(role="user", content=_together(pending))) if pending else tuple(merged)


def _together(contents: Sequence[Any]) -> Any:
    """Join the contents of several messages into one string, or into a list of parts if the contents include media."""
    if all(map(_is_text, (part for content in contents for part in content_parts(content)))):
        return "\n\n".join(map(_text, contents))
    parts: list[Any] = []
    for content in contents:
        parts += [*content_parts("\n\n" if parts else []), *content_parts(content)]
    return parts


def _with_content(said: Said, capabilities: Capabilities) -> Said:
    content = said.content
    if isinstance(content, str) and capabilities.requires_typed_content:
        return replace(said, content=content_parts(content))
    # In answers, keep a list of parts only if the template requires it. Some templates accept such a list only in user messages, for
    # images.
    answer = said.role == "assistant"
    kept = capabilities.requires_typed_content if answer else capabilities.supports_typed_content
    return said if kept else as_text(said)


def as_text(said: Said) -> Said:
    """Return the message with its content parts joined into one string, if all of them are text."""
    only_text = isinstance(said.content, list) and all(map(_is_text, said.content))
    return replace(said, content=_text(said.content)) if only_text else said


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if _is_text(part))
    return str(content or "")


# Images, audio, video and files.

_BEFORE, _AFTER = "Wexlorp", "Quandrim"


def shown_media(
    conversation: Conversation, template: Template, capabilities: Capabilities
) -> tuple[Conversation, tuple[Media, ...]]:
    """Return the conversation with its media in a form that the template supports, and all media in order.

    Raises `RequestError`, with the path, for a part that the template doesn't support in any form.
    """
    media: list[Media] = []
    shown = tuple(_shown(one, i, template, capabilities, media) for i, one in enumerate(conversation))
    return (shown if media else conversation), tuple(media)


def _shown(said: Said, index: int, template: Template, capabilities: Capabilities, media: list[Media]) -> Said:
    if not isinstance(said.content, list) or not any(map(_kind, said.content)):
        return said
    parts = []
    for at, part in enumerate(said.content):
        kind = _kind(part)
        if kind:
            forms = _forms_shown(template, capabilities, kind)
            if not forms:
                raise RequestError(
                    f"messages[{index}].content[{at}]: the template doesn't support {kind} parts, found {part['type']!r}"
                )
            media.append(Media(kind=kind, part=part, message=index))
            # Leave supported parts unchanged, because they may have more fields, such as `detail`.
            known = part["type"] in forms and part["type"] in part
            part = part if known else _part(forms[0], kind, media_value(part, kind))  # noqa: PLW2901
        parts.append(part)
    return replace(said, content=parts)


def _kind(part: Any) -> str:
    return MEDIA_TYPES.get(str(part.get("type")), "") if isinstance(part, Mapping) else ""


def _part(name: str, kind: str, value: Any) -> dict[str, Any]:
    # Set both fields, e.g. `image_url` and `image`, since a template may read either of them.
    return {"type": name, name: {"url": value} if name.endswith("_url") else value, kind: value}


@kept(500)
def _forms_shown(template: Template, capabilities: Capabilities, kind: str) -> tuple[str, ...]:
    """Return the part types that the template supports for this kind of media."""
    parts = [_part(form.format(kind), kind, "https://x/y") for form in MEDIA_FORMS]
    unseen = (None, _between(template, capabilities, []))
    return tuple(part["type"] for part in parts if _between(template, capabilities, [part]) not in unseen)


def _between(template: Template, capabilities: Capabilities, parts: list[Any]) -> str | None:
    """Return the rendering of `parts` between two words. Returns None if rendering fails, or if the template prints the list's repr."""
    content = [{"type": "text", "text": _BEFORE}, *parts, {"type": "text", "text": _AFTER}]
    context = shape_context(None, capabilities)
    rendering = template.render([{"role": "user", "content": content}], add_generation_prompt=True, **context)
    text = rendering.text
    # A template that expects a string would print the list's repr, which contains the quoted key `type`.
    whole = _BEFORE in text and _AFTER in text and "'type'" not in text and '"type"' not in text
    return text if rendering.error is None and whole else None
