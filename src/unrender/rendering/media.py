"""Brings images, audio, video and files in messages into the form that a template shows, and lists them.

Strategy: callers have OpenAI's parts (`image_url`, `input_audio`, `file`) or transformers' (`image`, `audio`, `video`);
templates read one form or another. Which one is found by rendering a part between two words: it is shown where something
is between them. What a template cannot show is an error that names the part, for nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.cache import kept
from unrender.errors import MessageError
from unrender.rendering.capabilities import Capabilities
from unrender.rendering.shape import shape_context
from unrender.rendering.template import Template

KINDS = ("image", "audio", "video", "file")
_FORMS = ("{}", "{}_url", "input_{}")
"""The types of parts of a kind: transformers', OpenAI's for Chat Completions, OpenAI's for sound and for Responses."""
_TYPES = {form.format(kind): kind for kind in KINDS for form in _FORMS}
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
            known = part["type"] in forms and part["type"] in part
            part = part if known else _part(forms[0], kind, _value(part, kind))  # noqa: PLW2901
        parts.append(part)
    return {**message, "content": parts}


def _kind(part: Any) -> str:
    return _TYPES.get(str(part.get("type")), "") if isinstance(part, Mapping) else ""


def _value(part: Mapping[str, Any], kind: str) -> Any:
    """Return where the data of a part are: a URL, or what replaces it."""
    value = next((part[form.format(kind)] for form in _FORMS if form.format(kind) in part), None)
    return value.get("url", value) if isinstance(value, Mapping) else value


def _part(name: str, kind: str, value: Any) -> dict[str, Any]:
    return {"type": name, name: {"url": value} if name.endswith("_url") else value, kind: value}


@kept(500)
def _forms_shown(template: Template, capabilities: Capabilities, kind: str) -> tuple[str, ...]:
    """Return the types of parts of this kind that the template shows."""
    types = (form.format(kind) for form in _FORMS)
    return tuple(name for name in types if _is_shown(template, capabilities, _part(name, kind, "https://x/y")))


def _is_shown(template: Template, capabilities: Capabilities, part: Mapping[str, Any]) -> bool:
    with_part = _between(template, capabilities, [part])
    return with_part is not None and with_part != _between(template, capabilities, [])


def _between(template: Template, capabilities: Capabilities, parts: list[Any]) -> str | None:
    """Return what a template writes around and between two words with `parts` between them; None when that is not a text."""
    content = [{"type": "text", "text": _BEFORE}, *parts, {"type": "text", "text": _AFTER}]
    context = shape_context(None, capabilities)
    rendering = template.render([{"role": "user", "content": content}], add_generation_prompt=True, **context)
    text = rendering.text
    # A template that takes content for text writes the list as Python does.
    whole = _BEFORE in text and _AFTER in text and "'type'" not in text and '"type"' not in text
    return text if rendering.error is None and whole else None
