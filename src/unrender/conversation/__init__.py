"""Turn a conversation and a request into a `Turn`.

Input: messages, tools and settings in any format that `ChatTemplate.prepare` accepts. Output: the prompt, the prefill, and the constraints
on the answer.

Start with `preparation`, which uses the other modules once for each request:

- `messages` and `tools` parse the input.
- `offer` describes tools in words if the template ignores them. It also decides whether earlier calls are written as text.
- `concede` rearranges conversations that the template rejects.
- `adapt` converts messages to the dicts that the template expects.
- `transcript` runs these steps to render prompts and training masks.
- `variables` sets the template's variables, e.g. for thinking and documents.
- `markers` finds the template's markers in texts of the request, and `pieces` visits each text, and attributes each part of a
  prompt.

This module defines the capabilities of a template, which analysis determines with probes, and on which rendering depends.

Rules: Arguments are never modified. An invalid argument raises `RequestError`, with the argument's path. No part of the request is dropped
silently: it is rendered, rejected, or mentioned in a note.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

ContextValue = str | bool | int
Context = tuple[tuple[str, ContextValue], ...]


class ReasoningPlace(StrEnum):
    """The part of a message from which the template reads reasoning."""

    NOWHERE = "nowhere"
    FIELD = "field"
    """A field of the message, such as `message.reasoning_content`."""
    PART = "part"
    """A typed part of the content, such as `{"type": "thinking", "thinking": "…"}`."""
    BLOCK = "block"
    """A block in structured content, such as `{"blocks": [{"type": "thoughts", "text": "…"}]}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A feature of conversations that a template rejects or drops, with the concessions that make up for it."""

    feature: str
    """A key of `concede.FEATURES`."""
    why: str
    """Description of the template's behaviour, for a note."""
    concessions: tuple[str, ...] = ()
    """The `words` of the concessions that make the template accept the conversation. Empty if no concession helps."""
    thinking: bool | None = None
    """True if the refusal applies only when thinking is on, False if only when thinking is off, None if it always applies."""
    tools: bool | None = None
    """True if the refusal applies only to requests with tools, False if only to requests without tools, None if it always applies."""

    def holds(self, *, thinking: bool | None, tools: bool) -> bool:
        """Return whether the refusal applies to a request with this thinking mode. `tools` is True if the request has tools."""
        return self.thinking in (None, thinking) and self.tools in (None, tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Capabilities of a template, and its requirements for messages and variables."""

    supports_tools: bool = False
    """True if the template renders the offered tools."""
    supports_tool_calls: bool = False
    """True if the template renders the tool calls of assistant messages."""
    supports_parallel_tool_calls: bool = False
    supports_content_with_calls: bool = False
    supports_content_with_reasoning_and_calls: bool = False
    supports_tool_role: bool = False
    supports_system_role: bool = False
    supports_typed_content: bool = False
    """True if content may be a list of parts."""
    requires_typed_content: bool = False
    """True if content must be a list of parts."""
    supports_object_arguments: bool = False
    supports_string_arguments: bool = False
    supports_call_id: bool = False
    """True if the template renders the ids of calls."""
    requires_short_id: bool = False
    """True if ids must consist of exactly `id_length` letters or digits."""
    id_length: int = 9
    requires_digits_in_id: bool = False
    """True if ids must consist of digits only."""
    requires_name_in_id: bool = False
    """True if the template renders only the id of a call, so ids must have the form `functions.NAME:INDEX`."""
    requires_flat_calls: bool = False
    """True if the template reads the name and the arguments from the call itself instead of its `function`."""
    requires_text_values: bool = False
    """True if each argument value must be a string. Other values are then passed as JSON text."""
    requires_nonnull_content: bool = True
    """True if content must be a string in messages with calls, False if it must be null."""
    supports_preserve_reasoning: bool = False
    """True if the template keeps the reasoning of turns before the last user message."""
    supports_enable_thinking: bool = False
    reasoning_place: ReasoningPlace = ReasoningPlace.NOWHERE
    reasoning_field: str = ""
    """Name of the message field, or type of the part or block, such as `reasoning_content`, `thinking`, `thoughts`."""
    thinking_on: Context = ()
    """Variables that turn thinking on, such as `(("enable_thinking", True),)`."""
    thinking_off: Context = ()
    tools_variable: str = "tools"
    """Name of the variable for the tools, such as `tools` or `functions`."""
    tools_as_text: bool = False
    """True if the tools have to be passed as JSON text."""
    requires_tools: bool = False
    """True if the tools variable must be defined even if there are no tools."""
    required_context: Context = ()
    """Other variables that the template requires, such as `datetime`, with placeholder values for probes."""

    asks_after_results: bool = True
    """True if the template writes a generation prompt after tool results."""
    requires_descriptions: bool = False
    """True if each tool and each of its parameters must have a description."""
    requires_single_types: bool = False
    """True if each parameter must have exactly one type."""
    refuses: tuple[Refusal, ...] = ()
    """The features of conversations that the template rejects or renders only in part."""


def shape_context(
    tools: Sequence[Any] | None, capabilities: Capabilities, *, thinking: bool | None = None
) -> dict[str, Any]:
    """Return the variables for rendering a probe: the tools, the thinking switch, and other variables that the template requires.

    The variables have the template's own names. If `thinking` is None, the variables that turn thinking on or off aren't set. Don't use the
    result for prompts, since `required_context` contains only placeholders.
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
