"""Finds a template's own variables: their names, their defaults, and which of them change the prompt.

Rules: what a template does not read is a mistake of the caller, and refused; nothing is ignored in silence.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unrender.cache import kept
from unrender.errors import MessageError, TemplateWarning
from unrender.freezing import frozen
from unrender.rendering.capabilities import Capabilities
from unrender.rendering.shape import shape_context, shape_messages
from unrender.rendering.template import Template

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
    kept = (_prompt(template, capabilities), None)  # A value that the template refuses changes nothing.
    found: Mapping[str, Variable] = frozen(
        {
            name: Variable(
                name=name,
                default=template.defaults.get(name),
                changes=tuple(value for value in _TRIED if _prompt(template, capabilities, {name: value}) not in kept),
            )
            for name in names
        }
    )
    return found


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

    found = get_close_matches(name, [*_ARGUMENTS, *sorted(known)], n=1)
    return f"; did you mean {found[0]!r}?" if found else f": {sorted(known - _GIVEN - _FUNCTIONS)}"


def thinking_of(given: Mapping[str, Any], template: Template, capabilities: Capabilities) -> bool | None:
    """Return whether thinking is switched on for a rendering with these variables; None if there is no such switch."""
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
    switches = ((), capabilities.thinking_on, capabilities.thinking_off)
    left_out, on, off = (_prompt(template, capabilities, dict(switch)) for switch in switches)
    if on == off:
        return None
    return left_out == on if left_out in (on, off) else None


def _prompt(template: Template, capabilities: Capabilities, given: Mapping[str, Any] | None = None) -> str | None:
    context = shape_context(None, capabilities) | dict(given or {})
    rendering = template.render(shape_messages(_ASKED, capabilities), add_generation_prompt=True, **context)
    return rendering.text if rendering.error is None else None
