"""Describes a request, whichever API it came through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request, checked as far as it can be without the model's template."""

    model: str = ""
    """The name that the client gives; "" where it gives none."""
    messages: tuple[Any, ...] = ()
    """The conversation in OpenAI's form."""
    raw: str | None = None
    """A prompt that no template writes, for an answer that nobody reads; None for a conversation."""
    tools: tuple[Any, ...] = ()
    tool_choice: Any = None
    parallel_tool_calls: bool = True
    response_format: Any = None
    template: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the template, e.g. `enable_thinking`."""
    effort: str | None = None
    """How much the model should think: "none", or one of OpenAI's words."""
    continues: bool = False
    """The last message is the assistant's and is to be written on."""
    stream: bool = False
    include_usage: bool = False
    choices: int = 1
    stop: tuple[str, ...] = ()
    """Texts that end the content; not looked for in reasoning and arguments."""
    limit: int | None = None
    """The most tokens that may be generated; None for all that fit."""
    sampling: Mapping[str, float] = field(default_factory=dict)
    """`temperature`, `top_p`, …, by OpenAI's and the engines' common names."""
    seed: int | None = None
    logprobs: int | None = None
    """How many alternatives are wanted beside each token's own log probability; None when not even that is."""
    store: bool | None = None
    """The answer shall be stored, for later requests to refer to; None where the request does not say."""
    custom: frozenset[str] = frozenset()
    """The tools whose one argument, `input`, is free text."""
    unheeded: tuple[str, ...] = ()
    """What the request says that has no effect; the answer names it."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that the answer repeats."""
