"""What a caller may decide about deviations that can be read in two ways."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class UnknownTools(StrEnum):
    """What a call of a tool that was not offered is."""

    CONTENT = "content"
    """Content, byte for byte, with a `Malformed` event."""
    CALL = "call"
    """A call whose `known` is False."""


class CallsInReasoning(StrEnum):
    """What a call inside reasoning that was never closed is."""

    RESCUE = "rescue"
    """A call when nothing but closers follow it: the model forgot to close its reasoning. Until then it is held back."""
    IGNORE = "ignore"
    """Reasoning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How deviations are read; the defaults serve agents that execute what they get.

    A call of a tool that nobody offered cannot be executed, and quoted examples are its commonest source: content. A call
    at the very end of open reasoning is what models write when they forget the closer, and it is lost if it is ignored;
    a call inside reasoning that goes on is the model thinking aloud.
    """

    unknown_tools: UnknownTools = UnknownTools.CONTENT
    calls_in_reasoning: CallsInReasoning = CallsInReasoning.RESCUE
