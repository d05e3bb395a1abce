"""Defines what a caller may decide about deviations that can be read in two ways."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from unrender.parsing.saved import Saved


class UnknownTools(StrEnum):
    """How to treat a call of a tool that was not offered."""

    CONTENT = "content"
    """Content, byte for byte, with a `Malformed` event."""
    CALL = "call"
    """A call whose `known` is False."""


class CallsInReasoning(StrEnum):
    """How to treat a call inside reasoning that was never closed."""

    RESCUE = "rescue"
    """A call when nothing but closers follow it: the model forgot to close its reasoning. Until then it is held back."""
    IGNORE = "ignore"
    """Reasoning."""


class UndeclaredReasoning(StrEnum):
    """How to treat a common marker of reasoning at the start of an answer when the format does not have it."""

    READ = "read"
    """Reasoning, up to its closing marker, with a `Malformed` event."""
    CONTENT = "content"
    """Content, markers included."""


class DeadCalls(StrEnum):
    """How to treat the text of a dead call.

    A dead call was begun and cannot be completed: it breaks, or the output ends in it.
    """

    CONTENT = "content"
    """Content, byte for byte, when the call has died: the text is nowhere else in a message that is sent on."""
    WITHHOLD = "withhold"
    """Nothing beside the call itself, which is in `Message.tool_calls` with its status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How to read text that can mean two things. The defaults serve agents that execute the calls they get.

    A call of a tool that nobody offered cannot be executed, and is most often a quoted example: it is content. A call
    at the very end of open reasoning is what models write when they forget the closer, and would be lost if ignored. A
    call inside reasoning that goes on is the model thinking aloud. Models that were trained to think do so even if
    their template has no reasoning, and answers begin with such markers for no other reason. The text of a dead call is
    kept, so readers of the answer see what the model tried to do.
    """

    unknown_tools: UnknownTools = UnknownTools.CONTENT
    calls_in_reasoning: CallsInReasoning = CallsInReasoning.RESCUE
    malformed: DeadCalls = DeadCalls.CONTENT
    undeclared_reasoning: UndeclaredReasoning = UndeclaredReasoning.READ


def save_policy(policy: Policy) -> dict[str, str]:
    """Return a policy as JSON data."""
    return {field.name: getattr(policy, field.name).value for field in fields(policy)}


def read_policy(saved: Saved) -> Policy:
    """Return a saved policy. Raises `StateError` for words that no policy has."""
    return Policy(
        unknown_tools=saved.choice("unknown_tools", {word.value: word for word in UnknownTools}),
        calls_in_reasoning=saved.choice("calls_in_reasoning", {word.value: word for word in CallsInReasoning}),
        malformed=saved.choice("malformed", {word.value: word for word in DeadCalls}),
        undeclared_reasoning=saved.choice("undeclared_reasoning", {word.value: word for word in UndeclaredReasoning}),
    )
