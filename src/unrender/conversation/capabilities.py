"""Capabilities of a template, as found by probes. Analysis produces them and rendering uses them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

ContextValue = str | bool | int
Context = tuple[tuple[str, ContextValue], ...]


class ReasoningPlace(StrEnum):
    """The place in a message from which the template reads reasoning."""

    NOWHERE = "nowhere"
    FIELD = "field"
    """A field of the message, e.g. `message.reasoning_content`."""
    PART = "part"
    """A typed part of the content, e.g. `{"type": "thinking", "thinking": "…"}`."""
    BLOCK = "block"
    """A block of a mapping, e.g. `{"blocks": [{"type": "thoughts", "text": "…"}]}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A feature of conversations that a template rejects or drops, and the concessions that help."""

    feature: str
    """A key of `concede.FEATURES`."""
    why: str
    """The template's behaviour, in words, for a note."""
    concessions: tuple[str, ...] = ()
    """The `words` of the concessions that make the template accept the conversation; empty if none helps."""
    thinking: bool | None = None
    """True if the refusal applies only with thinking, False if only without, None for both."""
    tools: bool | None = None
    """True if the refusal applies only with tools, False if only without, None for both."""

    def holds(self, *, thinking: bool | None, tools: bool) -> bool:
        """Return whether the refusal applies to a request with this thinking setting, with or without tools."""
        return self.thinking in (None, thinking) and self.tools in (None, tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of a template, and the form of messages that it needs, found by probes."""

    supports_tools: bool = False
    """The template writes the offered tools into the prompt."""
    supports_tool_calls: bool = False
    """The template writes the tool calls of assistant messages."""
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
    """The template writes the ids of calls."""
    requires_short_id: bool = False
    """Ids must be `id_length` letters or digits."""
    id_length: int = 9
    requires_digits_in_id: bool = False
    """Ids must consist of digits only."""
    requires_name_in_id: bool = False
    """Calls are written as their id only, which must therefore be `functions.NAME:INDEX`."""
    requires_flat_calls: bool = False
    """The template reads name and arguments from the call itself, not from its `function`."""
    requires_text_values: bool = False
    """Each argument value must be a string. Other values are passed as JSON text."""
    requires_nonnull_content: bool = True
    """True if content next to calls must be a string, False if it must be null."""
    supports_preserve_reasoning: bool = False
    """The template keeps the reasoning of turns before the last user message."""
    supports_enable_thinking: bool = False
    reasoning_place: ReasoningPlace = ReasoningPlace.NOWHERE
    reasoning_field: str = ""
    """Name of the field, or type of the part or block, e.g. `reasoning_content`, `thinking`, `thoughts`."""
    thinking_on: Context = ()
    """Variables that turn thinking on, e.g. `(("enable_thinking", True),)`."""
    thinking_off: Context = ()
    tools_variable: str = "tools"
    """Name of the variable that contains the tools, e.g. `tools`, `functions`."""
    tools_as_text: bool = False
    """True if the tools have to be passed as JSON text."""
    requires_tools: bool = False
    """The tools variable must be defined even if there are no tools."""
    required_context: Context = ()
    """Other variables that the template needs, e.g. `datetime`. The values are placeholders for probes."""

    asks_after_results: bool = True
    """The template writes a generation prompt after a tool result."""
    requires_descriptions: bool = False
    """Each tool and each of its parameters must have a description."""
    requires_single_types: bool = False
    """Each parameter must have exactly one type."""
    refuses: tuple[Refusal, ...] = ()
    """Conversations that the template rejects or shows only in part."""

    @property
    def thinking_switch(self) -> str:
        """Name of the variable that turns thinking on or off, e.g. `enable_thinking`; empty if there is none."""
        return next((name for name, _ in self.thinking_off), "")


def shape_context(
    tools: Sequence[Any] | None, capabilities: Capabilities, *, thinking: bool | None = None
) -> dict[str, Any]:
    """Return the variables for rendering a probe: tools, the thinking switch, and others that the template requires.

    Variables have the template's own names. If `thinking` is None, the switch isn't set. Prompts don't use `required_context`: the caller
    has to pass the variables that the template requires.
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
