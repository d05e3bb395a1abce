"""Defines the capabilities of a template, found by probes: the contract between the analysis and rendering."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

ContextValue = str | bool | int
Context = tuple[tuple[str, ContextValue], ...]


class ReasoningPlace(StrEnum):
    """The place in a message where the template looks for reasoning."""

    NOWHERE = "nowhere"
    FIELD = "field"
    """A field of the message, e.g. `message.reasoning_content`."""
    PART = "part"
    """A typed part of the content, e.g. `{"type": "thinking", "thinking": "…"}`."""
    BLOCK = "block"
    """A block of a mapping, e.g. `{"blocks": [{"type": "thoughts", "text": "…"}]}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A feature of conversations that a template rejects or drops, with the concessions for it."""

    feature: str
    """One of the names of `concede.FEATURES`."""
    why: str
    """The template's behaviour, for a note."""
    concessions: tuple[str, ...] = ()
    """The words of the concessions with which it takes such a conversation; empty where none helps."""
    thinking: bool | None = None
    """True if it does so only with thinking, False if only without; None for both."""
    tools: bool | None = None
    """True if it does so only with tools, False if only without; None for both."""

    def holds(self, *, thinking: bool | None, tools: bool) -> bool:
        """Return whether it does so in a request with this thinking, and with or without tools."""
        return self.thinking in (None, thinking) and self.tools in (None, tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of a template, and the form of messages that it needs, found by probes."""

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
    """True if content next to calls must be a string, False if it must be null."""
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
    """True if the variable needs JSON text."""
    requires_tools: bool = False
    """The variable must be there even when there are no tools."""
    required_context: Context = ()
    """Other variables without which the template does not render, e.g. `datetime`, with values that only probes use."""

    asks_after_results: bool = True
    """A generation prompt is written after a tool's result."""
    requires_descriptions: bool = False
    """Each tool and each of its parameters must have a description."""
    requires_single_types: bool = False
    """Each parameter must be described with one type."""
    refuses: tuple[Refusal, ...] = ()
    """Conversations that it refuses, or does not show in full."""

    @property
    def thinking_switch(self) -> str:
        """The variable that switches thinking, e.g. `enable_thinking`; empty without such a variable."""
        return next((name for name, _ in self.thinking_off), "")


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
