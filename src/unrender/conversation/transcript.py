"""Writes conversations with a template, for prompts and for whatever must look like them.

Strategy: roles are named, tools described and messages shaped as the template wants them. What it still refuses, or leaves out, is
rewritten in steps until it shows it; each step keeps what was said, and is a note.

Rules: nothing is ignored in silence. A text that the prompt does not hold is looked for once more under another name, since
templates may trim or escape it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from unrender.conversation.blocks import in_openai_form
from unrender.conversation.history import CONCESSIONS, MOVES, Concession, with_last_words
from unrender.conversation.inputs import function_of, message_calls, plain_messages, readable_calls
from unrender.conversation.offer import Injection, Plan
from unrender.conversation.shape import Capabilities, shape_messages
from unrender.conversation.variables import Heard, missing_variable
from unrender.errors import TemplateWarning
from unrender.limits import MOST_LOST, SLOWEST_RENDERINGS
from unrender.messages.wire import json_type, read_messages
from unrender.rendering.cost import now
from unrender.rendering.template import Rendering, Template

_DEVELOPER = "developer"
_MOVABLE = ("system", "developer", "user", "tool")
"""Whose words may move to another message where the template does not show them in their own."""
_NEEDLE = "Qzmessage{}zq"
_PLAIN_TOOLS = "the template refuses the tools; each parameter is described with a single type"


_UNCHECKED = "the template takes too long to check that it shows all that is said"


@dataclass(slots=True)
class SharedTime:
    """Processor time that all renderings of one conversation share."""

    left: float
    kept: float = 0.0
    """Part of it that only the last rendering may take."""
    cut: bool = False
    """Some rendering got less time than a rendering may take, and not enough."""

    @classmethod
    def of(cls, template: Template) -> SharedTime:
        """Return the time of a conversation of which nothing is rendered yet."""
        return cls(left=SLOWEST_RENDERINGS * template.limits.seconds)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is rendered, except for what time is kept."""
        return self.left <= self.kept

    def spend(self, template: Template, render: Callable[[Template], Rendering]) -> Rendering:
        """Render with the template, limited to what time there is."""
        usual, seconds, start = template.limits.seconds, self.left - self.kept, now()
        if seconds <= 0:
            rendering = Rendering(error="the template takes too long for this conversation", exhausted=True)
        elif seconds < usual:
            rendering = render(template.limited(replace(template.limits, seconds=seconds)))
        else:
            rendering = render(template)
        self.cut |= rendering.exhausted and seconds < usual
        self.left -= now() - start
        return rendering


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
    time: SharedTime | None = None
    """What time the renderings share; None: each may take as long as the template's limits say."""

    def read(self, messages: Any) -> tuple[Mapping[str, Any], ...]:
        """Check a conversation, and return it in OpenAI's form. Raises `MessageError` that names the place."""
        known, ignored = self.template.string_constants, list[str]()
        keys = self.template.attribute_names.union(known)
        said = in_openai_form(plain_messages(messages), types=known, keys=keys, ignored=ignored)
        checked = read_messages(said, more_roles=known)
        for place in ignored:
            warnings.warn(f"{place}: not shown to the model", TemplateWarning, stacklevel=4)
        as_text = self.capabilities.supports_string_arguments and not self.plan.writes_calls
        return tuple(readable_calls(checked, as_text=as_text))

    def render(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> Rendering:
        """Render a conversation; `asks` is whether it ends with what asks for an answer."""

        def render(template: Template) -> Rendering:
            return template.render(self.shaped(messages), add_generation_prompt=asks, **self.heard.context)

        return self.time.spend(self.template, render) if self.time else render(self.template)

    def text(self, messages: Sequence[Mapping[str, Any]], *, asks: bool) -> str | None:
        """Return what `render` writes; None when the template refuses."""
        rendering = self.render(messages, asks=asks)
        return rendering.text if rendering.error is None else None

    def bare(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        """Return the conversation without what asks for an answer, as the last rendering; None when the template refuses.

        Raises `TemplateError` when that takes more than is allowed.
        """
        if self.time:
            self.time.kept = 0.0
        rendering = self.render(messages, asks=False)
        return None if rendering.error is not None and not rendering.exhausted else rendering.unwrap()

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

        When the template refuses with all of them as well, the rendering is the first refusal. All renderings share their
        time, also with those that the returned writer makes later.
        """
        if self.time is None:
            return replace(self, time=SharedTime.of(self.template)).taken(messages, asks=asks)
        before, rendering = self.time.left, self.render(messages, asks=asks)
        first, self.time.kept = rendering, 0.0 if rendering.error else before - self.time.left
        if (needed := missing_variable(first, self.template)) in dict(self.capabilities.required_context):
            return self, _explained(first, needed)
        writer, lost = self, self._lost(messages, first, asks=asks)
        why = f"refuses the conversation ({first.error:.200})" if first.error else "does not show all that is said"
        # What is lost of an answer stays lost: its words are nobody else's.
        moves = any(messages[i]["role"] in _MOVABLE for i in lost)
        concessions = (*MOVES, *CONCESSIONS) if first.error else MOVES if moves else ()
        # A template that ran out of steps would do so again, whatever the words; a macro of types may be lost in a tool's.
        for other in self._conceding(messages, () if first.exhausted else concessions) if concessions else ():
            if self.time.is_over:
                break
            shown = other.render(messages, asks=asks)
            still = other._lost(messages, shown, asks=asks)
            if shown.error is None and (first.error or len(still) < len(lost)):
                writer, rendering, lost = other, shown, still
                break
        if rendering.error and self.heard.switched and not first.exhausted:
            untold = replace(self, heard=self.heard.without_switch(rendering.error, self.template, self.capabilities))
            if untold.render(messages, asks=asks).error is None:
                return untold.taken(messages, asks=asks)
        notes = [f"the template {why}; {concession.words}" for concession in writer.conceded]
        notes += [f"messages[{i}].content: the template does not show it" for i in lost]
        uncalled = writer._uncalled(messages, rendering, asks=asks)
        notes += [f"messages[{i}].tool_calls: the template does not show them" for i in uncalled]
        notes += [_UNCHECKED] if self.time.cut else []
        if needed and rendering is first:
            rendering = _explained(first, needed)
        return replace(writer, notes=(*writer.heard.notes, *self._undocumented(rendering), *notes)), rendering

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

    def _uncalled(self, messages: Sequence[Mapping[str, Any]], rendering: Rendering, *, asks: bool) -> list[int]:
        """Return the messages whose calls are not in a rendering, as far as that is certain."""
        if rendering.error is not None or not (
            missing := [*islice(_without_calls(rendering.text, messages), MOST_LOST)]
        ):
            return []
        # A tool's name is in the prompt where the tool is offered: a needle in its place tells whether the call is shown.
        planted = list(messages)
        for i in missing:
            calls = [
                {**call, "function": {**function_of(call), "name": _NEEDLE.format(i)}}
                for call in message_calls(planted[i])
            ]
            planted[i] = {**planted[i], "tool_calls": calls}
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
        # Last come tools in plain types: `def f(a: ' + types[param.type]` fails where a type is a list, or is not there.
        for plain, notes in ((False, ()), (True, (_PLAIN_TOOLS,))):
            described = [_described(tool, plain) for tool in tools or ()] if isinstance(tools, list | None) else tools
            if described != tools and described != writers[-1].heard.context.get("tools"):
                context = {**self.heard.context, "tools": described}
                heard = replace(self.heard, context=context, notes=(*self.heard.notes, *notes))
                writers.append(replace(self, heard=heard))
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


def _explained(rendering: Rendering, variable: str) -> Rendering:
    """Return a failed rendering whose error says how to give the variable that is missing."""
    # A token is a part of how answers are written, so analysis has to know it.
    way = f"load the template with special_tokens={{{variable!r}: …}}"
    if not variable.endswith(("_token", "_tokens")):
        way = f"give it by name, as in prepare(…, {variable}=…) or chat_template_kwargs"
    return replace(rendering, error=f"{rendering.error}; {way}")


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


def _without_calls(text: str, messages: Sequence[Mapping[str, Any]]) -> Iterator[int]:
    """Yield the messages of which some call's name is not in `text` after what was said before."""
    at, escaped = 0, 0
    for i, message in enumerate(messages):
        content = message.get("content")
        names = [str(function_of(call).get("name")) for call in message_calls(message)]
        # Where nothing is written as it was said, each search would go to the end of the prompt.
        known = [content.strip()] if isinstance(content, str) and escaped < MOST_LOST else []
        for said in (*known, *names):
            found = text.find(said, at)
            if found >= 0:
                at = found + len(said)
            elif said in names:
                yield i
                break
            else:
                escaped += 1


def _with_known_roles(messages: Sequence[Mapping[str, Any]], template: Template) -> Sequence[Mapping[str, Any]]:
    """Call the developer the system where the template does not know the newer name, and would drop what is said."""
    if not any(message["role"] == _DEVELOPER for message in messages):
        return messages
    if any(_DEVELOPER in text for text in template.string_constants):
        return messages
    return [{**message, "role": "system"} if message["role"] == _DEVELOPER else message for message in messages]


def _described(tool: Mapping[str, Any], plain: bool) -> dict[str, Any]:
    """Return a tool whose function and parameters all have a description, be it an empty one; if `plain`, also one type each."""
    function = {"parameters": {"type": "object", "properties": {}}, **tool["function"]}
    function["description"] = function.get("description") or ""
    if isinstance(parameters := function["parameters"], Mapping):
        properties = {name: _with_words(schema, plain) for name, schema in (parameters.get("properties") or {}).items()}
        required = {"required": parameters.get("required") or []} if plain or "required" in parameters else {}
        function["parameters"] = {**parameters, "properties": properties, **required}
    return {**tool, "function": function}


def _with_words(schema: Any, plain: bool) -> Any:
    """Return the schema of a parameter with a description and, if `plain`, with one type here and in what it consists of."""
    if not isinstance(schema, Mapping):
        return {"description": "", "type": "string"} if plain else schema
    described = {**schema, "description": schema.get("description") or ""}
    if not plain:
        return described
    kind = described["type"] = _one_type(schema)
    inside = {"items": schema.get("items")} if kind == "array" else {}
    if kind == "object":
        known = schema.get("properties") or {}
        inside = {"additionalProperties": schema.get("additionalProperties")}
        described["properties"] = {name: _with_words(item, plain) for name, item in known.items()}
    return described | {name: _with_words(item, plain) for name, item in inside.items()}


def _one_type(schema: Mapping[str, Any]) -> str:
    """Return the first JSON type that a schema names or shows, null apart; "string" where it shows none."""
    named = schema.get("type")
    for kind in named if isinstance(named, list) else [named]:
        if isinstance(kind, str) and kind != "null":
            return kind
    if values := [*(schema.get("enum") or ()), *([schema["const"]] if "const" in schema else [])]:
        return json_type(values[0])
    branches = [branch for word in ("anyOf", "oneOf", "allOf") for branch in schema.get(word) or ()]
    first = next((b for b in branches if isinstance(b, Mapping) and b.get("type") != "null"), None)
    return _one_type(first) if first else "object" if {"properties", "$ref"} & schema.keys() else "string"
