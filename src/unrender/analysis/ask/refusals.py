"""Finds what conversations a template refuses, or does not show, and what has to be conceded for them.

Strategy: a short conversation with each feature that some templates refuse is rendered. Where the template refuses it, or leaves out
what somebody says, concessions are tried, from the smallest, until it shows all. So a request with this feature is rendered once.

Rule: a feature is asked for only where the template takes what its conversation has besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unrender.analysis.ask.probes import Prober
from unrender.conversation.capabilities import Refusal
from unrender.conversation.concede import CONCESSIONS, FEATURES, MOVES, foreseen, is_hopeless, rewritten, ways
from unrender.conversation.messages import Conversation, Said
from unrender.conversation.tools import described
from unrender.format import Format

_OWN = re.compile("feature", re.IGNORECASE)
"""In all words of the conversations of `FEATURES`."""
_ALL = (*MOVES, *CONCESSIONS)
_QUESTION = Said(role="user", content="Featurevale")


def find_refusals(prober: Prober, format: Format) -> tuple[Refusal, ...]:
    """Return what a template refuses; `format` is how its answers are written."""
    found: list[Refusal] = []
    can = prober.capabilities
    if prober.write((_QUESTION,))[0] is None:
        return ()
    for name, feature in FEATURES.items():
        for thinking in (True, False) if feature.thoughts and can.supports_enable_thinking else (None,):
            known = [refusal for refusal in found if refusal.thinking in (None, thinking)]
            if is_hopeless(feature.example, known) or (feature.calls and not can.supports_tool_calls):
                continue
            asked = _Asked(prober, feature.example, thinking, format)
            said = rewritten(feature.example, foreseen(feature.example, known, format), format)
            if why := asked.refusal(said):
                helping = next(
                    (way for way in ways(said, format, _ALL) if not asked.refusal(rewritten(said, way, format))), ()
                )
                words = tuple(concession.words for concession in helping)
                found.append(Refusal(feature=name, why=why, concessions=words, thinking=thinking))
            if prober.spent.is_over:
                return ()
    return tuple(found)


def find_tools_wanted(prober: Prober) -> dict[str, Any]:
    """Return what a template demands of the tools that it describes, as fields of `Capabilities`."""
    if not prober.capabilities.supports_tools:
        return {}

    def takes(tool: Mapping[str, Any]) -> bool:
        return prober.write((_QUESTION,), tools=[tool])[0] is not None

    bare, mixed = _tool({}), described(_tool({"type": ["string", "null"]}), plain=False)
    return {
        "requires_descriptions": not takes(bare) and takes(described(bare, plain=False)),
        "requires_single_types": not takes(mixed) and takes(described(mixed, plain=True)),
    }


def _tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"value": {"type": "string", **schema}}}
    return {"type": "function", "function": {"name": "feature_tool", "parameters": parameters}}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A conversation that a template is asked for."""

    prober: Prober
    example: Conversation
    thinking: bool | None
    format: Format

    def refusal(self, said: Conversation) -> str:
        """Return what the template does that does not show all that the example says, for a note; "" where it does."""
        text, error = self.prober.write(said, thinking=self.thinking)
        if text is None:
            # What it says of this conversation is not true of another one.
            return "refuses the conversation" + ("" if _OWN.search(error) else f" ({error:.200})")
        words = (str(one.content) for one in self.example if one.role != "assistant")
        return "" if all(word in text for word in words) else "does not show all that is said"
