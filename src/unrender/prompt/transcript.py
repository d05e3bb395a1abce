"""Writes conversations with a template, for prompts and for whatever must look like them; knows the template's own variables.

Strategy: roles are named, tools described and messages shaped as the template wants them. What it still refuses is
rewritten in steps until it takes it; each step keeps what was said, and is a `TemplateWarning`.

Rules: a variable that the template does not read is a mistake of the caller, and refused; nothing is ignored in silence.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.cache import kept
from unrender.errors import MessageError, TemplateWarning
from unrender.freezing import frozen
from unrender.injection import Injection, Plan
from unrender.injection.history import CONCESSIONS, Concession
from unrender.messages.inputs import plain_messages, readable_calls
from unrender.messages.wire import read_messages
from unrender.rendering.shape import Capabilities, shape_context, shape_messages
from unrender.rendering.template import Rendering, Template

_DEVELOPER = "developer"
THINKING = "enable_thinking"
"""What transformers calls the switch; templates have names of their own for it, which are found by analysis."""
_GIVEN = frozenset({"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"})
"""What every rendering has without a caller's word."""
_FUNCTIONS = frozenset(("raise_exception", "strftime_now", "range", "dict", "namespace", "cycler", "joiner"))
"""What templates call; no variables."""
_ARGUMENTS = (
    *("tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_format"),
    *("continue_final_message", "documents", "tool_format", "grammar"),
)
"""What `prepare` takes beside variables."""
_ASKED = ({"role": "user", "content": "Hello"},)
_TRIED = (True, False, "low", "high", 1)
"""Values of which some change what a template writes, whatever its variable is for."""


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
        # A template that ran out of steps would do so again, whatever the words.
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
        # One concession where one is enough: each changes how something is said.
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
    if isinstance(parameters := function["parameters"], Mapping):
        properties = {
            name: {"description": "", **schema} if isinstance(schema, Mapping) else schema
            for name, schema in parameters.get("properties", {}).items()
        }
        function["parameters"] = {**parameters, "properties": properties}
    return {**tool, "function": function}


# The template's own variables.


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that a template reads."""

    name: str
    default: Any = None
    """What the template takes it for when it is left out, where its source says so as a constant; else None."""
    changes: tuple[Any, ...] = ()
    """Of some values that were tried, those that change the prompt of a short conversation."""


@kept(4_000)
def own_variables(template: Template, capabilities: Capabilities) -> Mapping[str, Variable]:
    """Return the variables that a template reads, by name, without those that every rendering has."""
    names = sorted(template.variables - _GIVEN - _FUNCTIONS - {capabilities.tools_variable})
    usual = (_prompt(template, capabilities), None)  # A value that the template refuses changes nothing.
    found: dict[str, Variable] = {}
    for name in names:
        changes = tuple(value for value in _TRIED if _prompt(template, capabilities, {name: value}) not in usual)
        found[name] = Variable(name=name, default=template.defaults.get(name), changes=changes)
    variables: Mapping[str, Variable] = frozen(found)
    return variables


def check_variables(
    given: Mapping[str, Any], template: Template, capabilities: Capabilities, *, beside: Template | None = None
) -> None:
    """Raise `MessageError`, naming the nearest known name, for a variable that the template does not read.

    A variable is also accepted if the template `beside` it reads it, since that one is used for requests with other
    tools. A switch for thinking that the template does not have is a `TemplateWarning`: servers set it for every model.
    """
    if not given:
        return
    for name in ("messages", "add_generation_prompt"):
        if name in given:
            raise MessageError(f"{name}: set by prepare() itself, found it among the template's variables")
    thinking = given.get(THINKING)
    if not isinstance(thinking, bool | None):
        raise MessageError(f"{THINKING}: expected True or False, found {thinking!r:.60}")
    known = template.variables | _GIVEN | {THINKING} | (beside.variables if beside else frozenset())
    for name in given.keys() - known:
        raise MessageError(f"{name}: expected a variable that the template reads{_nearest(name, known)}")
    if thinking is not None and not capabilities.supports_enable_thinking and THINKING not in template.variables:
        text = f"{THINKING}: the template has no switch for thinking, so {thinking} changes nothing"
        warnings.warn(text, TemplateWarning, stacklevel=5)


def _nearest(name: str, known: frozenset[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 -- wanted for an error alone

    # `tool_choise=…` is taken for a variable: the arguments of `prepare` are suggested as well.
    found = get_close_matches(name, [*_ARGUMENTS, *sorted(known)], n=1)
    return f"; did you mean {found[0]!r}?" if found else f": {sorted(known - _GIVEN - _FUNCTIONS)}"


def thinking_of(given: Mapping[str, Any], template: Template, capabilities: Capabilities) -> bool | None:
    """Return whether thinking is switched on for a rendering with these variables; None without such a switch."""
    if not capabilities.supports_enable_thinking:
        return None
    if (thinking := given.get(THINKING)) is not None:
        return bool(thinking)
    for on, switch in ((True, capabilities.thinking_on), (False, capabilities.thinking_off)):
        if switch and all(given.get(name, _MISSING) == value for name, value in switch):
            return on
    return _default_thinking(template, capabilities)


_MISSING = object()


@kept(200)
def _default_thinking(template: Template, capabilities: Capabilities) -> bool | None:
    """Return what the template does when nobody says anything: what it writes then is what it writes for on, or for off."""
    # `{% if not thinking %}<think></think>`: off where nobody says anything, and no name tells that.
    switches = ((), capabilities.thinking_on, capabilities.thinking_off)
    left_out, on, off = (_prompt(template, capabilities, dict(switch)) for switch in switches)
    if on == off:
        return None
    return left_out == on if left_out in (on, off) else None


def _prompt(template: Template, capabilities: Capabilities, given: Mapping[str, Any] | None = None) -> str | None:
    context = shape_context(None, capabilities) | dict(given or {})
    rendering = template.render(shape_messages(_ASKED, capabilities), add_generation_prompt=True, **context)
    return rendering.text if rendering.error is None else None
