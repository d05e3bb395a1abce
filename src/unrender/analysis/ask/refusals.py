"""Finds conversations that a template rejects or renders incompletely, and the concessions with which it renders them.

Strategy: conversations that combine many features are rendered first. Each feature that these conversations don't confirm is then tested in
a short conversation. If the template rejects that conversation or drops a text, concessions are tried until everything is rendered. The
smallest concession is tried first. Later requests with this feature then need only one rendering.

Rule: a feature is tested only if the template accepts the other features of its conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.analysis.ask import USER, Prober
from unrender.conversation import Refusal, concede
from unrender.conversation.messages import Conversation, Said
from unrender.conversation.tools import described
from unrender.format import Format

_OWN = re.compile("feature", re.IGNORECASE)
"""Matches a word that occurs in every conversation of `FEATURES`, so that errors which quote a conversation can be recognized."""
_QUESTION = Said(role="user", content=USER)


def find_refusals(prober: Prober, format: Format) -> tuple[Refusal, ...]:
    """Return the refusals of all features that a template rejects. `format` is the format of the template's answers."""
    found: list[Refusal] = []
    if prober.render((_QUESTION,), prompt=True, thinking=None) is None:
        return ()
    asked = {name: feature for name, feature in concede.FEATURES.items() if _may_have(prober, feature)}
    shown = _shown(prober, asked)
    for name in (name for name in asked if name not in shown):
        switched = asked[name].thoughts and prober.capabilities.supports_enable_thinking
        for thinking in (True, False) if switched else (None,):
            found += _refusals(prober, name, thinking, found, format)
            if prober.spent.is_over:
                return ()
    return tuple(found)


def _refusals(
    prober: Prober, name: str, thinking: bool | None, found: Sequence[Refusal], format: Format
) -> Iterator[Refusal]:
    """Yield the refusals of a feature, with separate refusals if the template's reasons differ with and without tools."""
    feature, can = concede.FEATURES[name], prober.capabilities
    on = True if thinking is None and can.supports_enable_thinking else thinking
    faults: dict[bool | None, tuple[str, _Asked, Conversation]] = {}
    for tools in (True, False) if can.supports_tools and not feature.calls else (None,):
        known = [one for one in found if one.holds(thinking=on, tools=tools is not False)]
        if not concede.is_hopeless(feature.example, known):
            asked = _Asked(prober, feature.example, on, tools)
            said = concede.rewritten(feature.example, concede.foreseen(feature.example, known, format), format)
            faults[tools] = (asked.fault(said), asked, said)
    if len({why for why, _, _ in faults.values()}) == 1 < len(faults):
        faults = {None: faults[True]}
    for tools, (why, asked, said) in faults.items():
        if why:
            tried = concede.ways(said, format, (*concede.MOVES, *concede.CONCESSIONS))
            helping = next((way for way in tried if not asked.fault(concede.rewritten(said, way, format))), ())
            words = tuple(concession.words for concession in helping)
            yield Refusal(feature=name, why=why, concessions=words, thinking=thinking, tools=tools)


def _may_have(prober: Prober, feature: concede.Feature) -> bool:
    """Return whether conversations with this feature are possible for the template."""
    has_developer = any(said.role == "developer" for said in feature.example)
    return (prober.capabilities.supports_tool_calls or not feature.calls) and (
        concede.knows_developer(prober.template.facts.string_constants) or not has_developer
    )


def _shown(prober: Prober, features: Mapping[str, concede.Feature]) -> set[str]:
    """Return the names of features that need no concessions, with or without thinking and tools."""
    can, shown = prober.capabilities, set[str]()
    on = (True if can.supports_enable_thinking else None, can.supports_tools or None)
    for i, conversation in enumerate((*concede.TOGETHER, *(feature.example for feature in features.values()))):
        new = {name for name, one in concede.FEATURES.items() if one.found(conversation)} - shown
        # If a conversation with many features is too long for this template, test the features one by one.
        if i < len(concede.TOGETHER) and prober.spent.exhausted:
            continue
        # A short conversation must not confirm other features, because a template may accept an unprompted answer in one place and reject
        # it in another.
        if not new or not features.keys() >= new or (len(new) > 1 and i >= len(concede.TOGETHER)):
            continue
        # Also render the first conversation without tools, and render conversations with reasoning with thinking switched off.
        off = (on[0] and not any(features[name].thoughts for name in new), on[1] and i > 0)
        if not any(_Asked(prober, conversation, *one).fault() for one in dict.fromkeys((on, off))):
            shown |= new
    return shown


def find_tools_wanted(prober: Prober) -> dict[str, Any]:
    """Return the fields of `Capabilities` that describe the template's requirements for tools."""

    def takes(tool: Mapping[str, Any]) -> bool:
        return prober.render((_QUESTION,), tools=[tool], prompt=True, thinking=None) is not None

    mixed = _tool({"type": ["string", "null"]})
    if not prober.capabilities.supports_tools or takes(mixed):
        return {}
    bare, in_words = _tool({}), described(mixed, plain=False)
    return {
        "requires_descriptions": not takes(bare) and takes(described(bare, plain=False)),
        "requires_single_types": not takes(in_words) and takes(described(in_words, plain=True)),
    }


def _tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"value": {"type": "string", **schema}}}
    return {"type": "function", "function": {"name": "feature_tool", "parameters": parameters}}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A conversation to render, with its options."""

    prober: Prober
    example: Conversation
    thinking: bool | None
    tools: bool | None
    """If false, no tools are offered, even if the template supports tools."""

    def fault(self, said: Conversation | None = None) -> str:
        """Return a warning if the template rejects the conversation or doesn't render all messages, otherwise an empty string."""
        tools = None if self.tools is False else self.prober.offered
        text, error = self.prober.ask(said or self.example, tools=tools, prompt=True, thinking=self.thinking)
        if text is None:
            # Don't quote errors that contain text from this conversation, because users' conversations don't contain that text.
            return "refuses the conversation" + ("" if _OWN.search(error) else f" ({error:.200})")
        words = (str(one.content) for one in self.example if one.role != "assistant")
        return "" if all(word in text for word in words) else "doesn't show all messages"
