"""Writes conversations with a template, for prompts and for whatever must look like them.

Strategy: roles are named, tools described and messages shaped as the template wants them. What it still refuses, or leaves out, is
rewritten in steps until it shows it; each step keeps what was said, and is a note.

Rules: nothing is ignored in silence. A text that the prompt does not hold is looked for once more under another name, since
templates may trim or escape it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from unrender.injection import Injection, Plan
from unrender.injection.history import CONCESSIONS, MOVES, Concession, with_last_words
from unrender.limits import MOST_LOST
from unrender.messages.inputs import plain_messages, readable_calls
from unrender.messages.wire import read_messages
from unrender.prompt.variables import Heard
from unrender.rendering.shape import Capabilities, shape_messages
from unrender.rendering.template import Rendering, Template

_DEVELOPER = "developer"
_MOVABLE = ("system", "developer", "user", "tool")
"""Whose words may move to another message where the template does not show them in their own."""
_NEEDLE = "Qzmessage{}zq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes conversations with one template, one set of tools and one set of variables."""

    template: Template
    capabilities: Capabilities
    plan: Plan
    injection: Injection | None
    heard: Heard
    conceded: tuple[Concession, ...] = ()
    """How a conversation is said otherwise, because the template refuses it or leaves something out."""
    notes: tuple[str, ...] = ()
    """What the rendering shows otherwise than it was said, or not at all."""

    def read(self, messages: Any) -> tuple[Mapping[str, Any], ...]:
        """Check a conversation, and return it in OpenAI's form. Raises `MessageError` that names the place."""
        checked = read_messages(plain_messages(messages), more_roles=self.template.string_constants)
        as_text = self.capabilities.supports_string_arguments and not self.plan.writes_calls
        return tuple(readable_calls(checked, as_text=as_text))

    def render(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> Rendering:
        """Render a conversation; `asks` is whether it ends with what asks for an answer."""
        return self.template.render(self.shaped(messages), add_generation_prompt=asks, **self.heard.context)

    def text(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> str | None:
        """Return what `render` writes; None when the template refuses."""
        rendering = self.render(messages, asks=asks)
        return rendering.text if rendering.error is None else None

    def shaped(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return a conversation as the template is given it."""
        said: Sequence[Mapping[str, Any]] = _with_known_roles(messages, self.template)
        for concession in self.conceded:
            said = concession.rewrite(said, self.plan.format)
        if self.heard.word:
            said = with_last_words(said, self.heard.word)
        return shape_messages(self.plan.inject(said, self.injection), self.capabilities)

    def taken(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> tuple[Writer, Rendering]:
        """Return the rendering, and the writer that makes it, with notes: this one, or one with concessions.

        When the template refuses with all of them as well, the rendering is the first refusal.
        """
        rendering = first = self.render(messages, asks=asks)
        writer, lost = self, self._lost(messages, first, asks=asks)
        why = f"refuses the conversation ({first.error:.200})" if first.error else "does not show all that is said"
        # What is lost of an answer stays lost: its words are nobody else's.
        moves = any(messages[i]["role"] in _MOVABLE for i in lost)
        concessions = (*MOVES, *CONCESSIONS) if first.error else MOVES if moves else ()
        # A template that ran out of steps would do so again, whatever the words.
        for other in self._conceding(messages, concessions) if concessions and not first.exhausted else ():
            shown = other.render(messages, asks=asks)
            still = other._lost(messages, shown, asks=asks)
            if shown.error is None and (first.error or len(still) < len(lost)):
                writer, rendering, lost = other, shown, still
                break
        notes = [f"the template {why}; {concession.words}" for concession in writer.conceded]
        notes += [f"messages[{i}].content: the template does not show it" for i in lost]
        return replace(writer, notes=(*self.heard.notes, *self._undocumented(rendering), *notes)), rendering

    def _lost(self, messages: Sequence[Mapping[str, Any]], rendering: Rendering, *, asks: bool) -> list[int]:
        """Return the messages whose texts are not in a rendering, trimmed and escaped or not, as far as that is certain."""
        if rendering.error is not None:
            return []
        if not (missing := [*islice(_missing(rendering.text, messages), MOST_LOST)]):
            return []
        # `<b>` is `\\u003cb\\u003e` in a prompt that writes JSON: a needle in its place tells whether it is shown.
        planted = list(messages)
        for i in missing:
            planted[i] = {**messages[i], "content": _NEEDLE.format(i)}
        text = self.text(planted, asks=asks)
        return [i for i in missing if text is not None and _NEEDLE.format(i) not in text]

    def _undocumented(self, rendering: Rendering) -> Iterator[str]:
        """Yield a note for each document of which the rendering shows nothing."""
        for i, document in enumerate(self.heard.context.get("documents") or ()):
            values = document.values() if isinstance(document, Mapping) else [document]
            if not any(isinstance(value, str) and value.strip() in rendering.text for value in values):
                yield f"documents[{i}]: the template does not show it"

    def _conceding(
        self, messages: Sequence[Mapping[str, Any]], concessions: tuple[Concession, ...]
    ) -> Iterator[Writer]:
        """Yield the writers that concede something which makes a difference."""
        writers = [self]
        tools = self.heard.context.get("tools")
        # Templates that insist on descriptions get empty ones where a tool has none; one that wants a list gets an empty one.
        described = [_described(tool) for tool in tools or ()] if isinstance(tools, list | None) else tools
        if described != tools:
            writers.append(replace(self, heard=replace(self.heard, context={**self.heard.context, "tools": described})))
        if self.plan.offers and tools:  # They are described in words, and a template may raise at any tools.
            untold = {name: value for name, value in self.heard.context.items() if name != "tools"}
            writers.append(replace(self, heard=replace(self.heard, context=untold)))
        yield from writers[1:]
        # One concession where one is enough: each changes how something is said.
        for some in (*((one,) for one in concessions), MOVES, concessions):
            if conceded := self._changing(messages, some):
                yield from (replace(writer, conceded=conceded) for writer in writers)

    def _changing(
        self, messages: Sequence[Mapping[str, Any]], concessions: Sequence[Concession]
    ) -> tuple[Concession, ...]:
        """Return those of some concessions, made one after the other, that change the conversation."""
        said, changing = [*_with_known_roles(messages, self.template)], []
        for concession in concessions:
            other = [*concession.rewrite(said, self.plan.format)]
            if other != said:
                said = other
                changing.append(concession)
        return tuple(changing)


def _missing(text: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the messages of which some text is not in `text`."""
    # Each is looked for after the one before it, so that a long conversation is read once.
    at = 0
    for i, message in enumerate(messages):
        content = message.get("content")
        parts = [p.get("text") for p in content if isinstance(p, Mapping)] if isinstance(content, list) else [content]
        for part in parts:
            said = part.strip() if isinstance(part, str) else ""
            found = text.find(said, at)
            if found >= 0:
                at = found + len(said)
            elif said not in text:
                yield i
                break


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
    if isinstance(parameters := function["parameters"], Mapping):
        properties = {
            name: {"description": "", **schema} if isinstance(schema, Mapping) else schema
            for name, schema in parameters.get("properties", {}).items()
        }
        function["parameters"] = {**parameters, "properties": properties}
    return {**tool, "function": function}
