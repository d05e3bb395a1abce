"""Makes a template of a function that writes conversations, for models whose prompts are written by code.

Strategy: all that analysis learns, it learns from renderings. What it reads off a template's source besides, the names of
variables and of messages' fields, comes from the function's signature and from the fields that are in use everywhere.
Evidence for declared formats is looked for in what the function writes.

Rules: the function is the caller's own code, so it runs without the bounds of time that templates have; what it raises is an
error of the rendering, as a template's refusal is.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from unrender.errors import TemplateError
from unrender.rendering.cost import Exhausted, Limits
from unrender.rendering.facts import Facts
from unrender.rendering.template import Rendering, Template, copied

Renderer = Callable[..., str]
"""Takes messages, and by name what it has parameters for: `tools`, `add_generation_prompt`, switches."""
_FIELDS = frozenset({"reasoning_content", "reasoning", "thinking"})
"""Where messages hold reasoning."""


class CodeTemplate(Template):
    """A template that is a function. Two are equal if they have the same function and tokens.

    `switches` are variables that the function takes in its `**keywords`, without naming them. Raises `TemplateError`
    when it is not a function, takes no messages, or cannot take a switch.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        switches: Collection[str] = (),
        bos_token: str = "",
        eos_token: str = "",
        limits: Limits = Limits(),  # noqa: B008 -- frozen
    ) -> None:
        super().__init__("", bos_token=bos_token, eos_token=eos_token, limits=limits)
        self._renderer = renderer
        self._switches = tuple(switches)
        known, defaults = _parameters(renderer, self._switches)
        self._known = Facts(variables=known, string_constants=(), attribute_names=_FIELDS, defaults=defaults)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **context: Any,
    ) -> Rendering:
        """Call the function with copies of the variables that it has parameters for.

        An error that it raises is in the result.
        """
        given = {"tools": tools, "add_generation_prompt": add_generation_prompt, **context}
        variables = {name: copied(value, name) for name, value in given.items() if name in self.variables}
        try:
            return Rendering(text=self._written(copied(messages, "messages"), variables))
        except Exhausted as error:
            return Rendering(error=str(error), exhausted=True)
        except Exception as error:  # noqa: BLE001 -- code fails as code does, and refuses so
            return self._failed(f"{type(error).__name__}: {error}", error)

    def _written(self, messages: Any, variables: dict[str, Any]) -> str:
        text = self._renderer(messages, **variables)
        if not isinstance(text, str):
            raise TypeError(f"expected the renderer to return text, found {type(text).__name__}")
        if len(text) > self.limits.characters:
            raise Exhausted(f"the renderer writes more than {self.limits.characters} characters")
        return text

    @cached_property
    def digest(self) -> str:
        """A random text for each object: code cannot be hashed, so nothing about it may be found on disk."""
        return secrets.token_hex(32)

    @property
    def _facts(self) -> Facts:
        return self._known

    @property
    def _key(self) -> tuple[Any, ...]:
        return self._renderer, self._switches, self.bos_token, self.eos_token, self.limits

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._renderer, self._switches, self.bos_token, self.eos_token, self.limits)

    def __repr__(self) -> str:
        return f"CodeTemplate({self._renderer!r:.60})"


def _rebuild(
    renderer: Renderer, switches: tuple[str, ...], bos_token: str, eos_token: str, limits: Limits
) -> CodeTemplate:
    return CodeTemplate(renderer, switches=switches, bos_token=bos_token, eos_token=eos_token, limits=limits)


def _parameters(renderer: Renderer, switches: Sequence[str]) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return the names of what a function takes after the messages, and their defaults."""
    if not callable(renderer):
        raise TemplateError(f"renderer: expected a function, found {type(renderer).__name__}")
    try:
        _messages, *others = inspect.signature(renderer).parameters.values()
    except ValueError as error:
        raise TemplateError("renderer: expected a function that takes messages") from error
    named = {p.name: p.default for p in others if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_more = any(p.kind is p.VAR_KEYWORD for p in others)
    unknown = [name for name in switches if name not in named and not takes_more]
    if unknown:
        raise TemplateError(f"renderer: expected a parameter {unknown[0]!r}, found {sorted(named)}")
    defaults = {name: value for name, value in named.items() if value is not inspect.Parameter.empty}
    return frozenset({*named, *switches}), defaults
