"""Writes conversations with a template: for prompts, and for whatever must look like them.

Strategy: roles are named, tools described and messages shaped as the template wants them. What it still refuses is
rewritten in steps until it takes it; each step keeps what was said, and is a `TemplateWarning`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.errors import TemplateWarning
from unrender.injection import Injection, Plan
from unrender.injection.history import CONCESSIONS, Concession
from unrender.messages.inputs import plain_messages, readable_calls
from unrender.messages.wire import read_messages
from unrender.prompt.variables import THINKING
from unrender.rendering.capabilities import Capabilities
from unrender.rendering.shape import shape_context, shape_messages
from unrender.rendering.template import Rendering, Template

_DEVELOPER = "developer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes conversations with one template, one set of tools and one set of variables."""

    template: Template
    capabilities: Capabilities
    plan: Plan
    injection: Injection | None
    context: Mapping[str, Any]
    thinking: bool | None = None
    """Whether thinking is switched on by the variables; None where that cannot be switched, or told."""
    conceded: tuple[Concession, ...] = ()
    """How a conversation is said otherwise, because the template refuses it."""

    def read(self, messages: Any) -> tuple[Mapping[str, Any], ...]:
        """Check a conversation, and return it in OpenAI's form. Raises `MessageError` that names the place."""
        checked = read_messages(plain_messages(messages), more_roles=self.template.string_constants)
        as_text = self.capabilities.supports_string_arguments and not self.plan.writes_calls
        return tuple(readable_calls(checked, as_text=as_text))

    def render(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> Rendering:
        """Render a conversation; `asks` is whether it ends with what asks for an answer."""
        return self.template.render(self.shaped(messages), add_generation_prompt=asks, **self.context)

    def text(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> str | None:
        """Return what `render` writes; None when the template refuses."""
        rendering = self.render(messages, asks=asks)
        return rendering.text if rendering.error is None else None

    def shaped(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return a conversation as the template is given it."""
        said: Sequence[Mapping[str, Any]] = _with_known_roles(messages, self.template)
        for concession in self.conceded:
            said = concession.rewrite(said, self.plan.format)
        return shape_messages(self.plan.inject(said, self.injection), self.capabilities)

    def taken(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> tuple[Writer, Rendering]:
        """Return the rendering, and the writer that makes it: this one, or one with concessions.

        When the template refuses with all of them as well, the rendering is the first refusal.
        """
        first = self.render(messages, asks=asks)
        if first.error is None or first.exhausted:
            return self, first
        for writer in self._conceding(messages):
            rendering = writer.render(messages, asks=asks)
            if rendering.error is None:
                for concession in writer.conceded:
                    said = f"the template refuses the conversation ({first.error:.200}); {concession.words}"
                    warnings.warn(said, TemplateWarning, stacklevel=4)
                return writer, rendering
        return self, first

    def _conceding(self, messages: Sequence[Mapping[str, Any]]) -> Iterator[Writer]:
        """Yield the writers that concede something which makes a difference."""
        writers = [self]
        if isinstance(tools := self.context.get("tools"), list):
            # Templates that insist on descriptions get empty ones where a tool has none.
            writers.append(replace(self, context={**self.context, "tools": [_described(tool) for tool in tools]}))
            yield writers[1]
        shown = self.shaped(messages)
        for concessions in (*((one,) for one in CONCESSIONS), CONCESSIONS):
            conceding = [replace(writer, conceded=concessions) for writer in writers]
            if conceding[0].shaped(messages) != shown:
                yield from conceding


def context_of(
    tools: Sequence[Mapping[str, Any]],
    capabilities: Capabilities,
    documents: Sequence[Any] | None,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the variables to render with: the template's own, the documents, and those `given`."""
    context = shape_context(tools, capabilities, thinking=given.get(THINKING))
    if documents is not None:
        context["documents"] = documents
    return context | {name: value for name, value in given.items() if name != THINKING or value is not None}


def _with_known_roles(messages: Sequence[Mapping[str, Any]], template: Template) -> Sequence[Mapping[str, Any]]:
    """Call the developer the system where the template does not know the newer name, and would drop what is said."""
    if not any(message["role"] == _DEVELOPER for message in messages):
        return messages
    if any(_DEVELOPER in text for text in template.string_constants):
        return messages
    return [{**message, "role": "system"} if message["role"] == _DEVELOPER else message for message in messages]


def _described(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool whose function and parameters all have a description, be it an empty one."""
    function = {"description": "", "parameters": {"type": "object", "properties": {}}, **tool["function"]}
    parameters = function["parameters"]
    if isinstance(parameters, Mapping):
        properties = parameters.get("properties", {})
        full = {name: _with_description(value) for name, value in properties.items()}
        function["parameters"] = {**parameters, "properties": full}
    return {**tool, "function": function}


def _with_description(schema: Any) -> Any:
    return {"description": "", **schema} if isinstance(schema, Mapping) else schema
