"""Makes the turn for an Ask, and the grammar that the engine gets with it.

Strategy: templates are rendered and grammars built in threads, in which clients take turns, so that no stream waits for them, and
no client for all that another has asked for. A grammar depends on the format, the tools, the choice and what the prompt has begun,
and is kept for the next request that has the same.
"""

from __future__ import annotations

import json
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, NamedTuple

from unrender import (
    ChatTemplate,
    Format,
    GrammarError,
    MessageError,
    Request,
    SchemaWarning,
    TemplateError,
    ToolChoice,
    Turn,
)
from unrender.gateway.answers.workers import Workers
from unrender.gateway.backends.backend import EngineCapabilities, EngineGrammar
from unrender.gateway.failure import Failure, invalid
from unrender.gateway.surfaces.ask import Ask
from unrender.grammar import Grammar, content, rest
from unrender.limits import MOST_GRAMMARS

_RESERVED = frozenset(
    name
    for name, parameter in signature(ChatTemplate.prepare).parameters.items()
    if parameter.kind is not Parameter.VAR_KEYWORD and name != "documents"
) | {"add_generation_prompt", "bos_token", "eos_token"}
"""What no client may set as a variable of the template."""
_WHOLE = ("structural_tag", "lark")
"""Dialects whose grammars leave free text free without waiting for triggers."""
_THREADS = 2
_UNREAD = Turn(prompt="", request=Request(), format=Format(), grammar=Grammar(content(rest())))
"""A turn whose answer is all content, whatever it looks like."""


class Constrain(StrEnum):
    """When the engine is given a grammar."""

    ALWAYS = "always"
    """Whenever there are tools or a response format, lazily where the model may answer freely."""
    REQUIRED = "required"
    """When a call, or a response format, is required."""
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A turn that is ready to be generated."""

    turn: Turn
    grammar: EngineGrammar | None = None
    warnings: tuple[str, ...] = ()
    grammar_result: str = "none"
    """What became of the grammar: "none", where none was due; "built"; "cached"; "relaxed", where it holds less than was
    asked; "unsupported", where there is none for what was asked."""
    prompt_seconds: float = 0.0
    grammar_seconds: float | None = None
    """None where none was due."""


@dataclass(kw_only=True)
class Turns:
    """Makes the turns of one model.

    `variables` are the template's, for every request; a request's own variables take precedence.
    """

    template: ChatTemplate
    constrain: Constrain = Constrain.ALWAYS
    variables: Mapping[str, Any] = field(default_factory=dict)
    tool_format: str = "auto"
    _grammars: OrderedDict[Hashable, _Built] = field(default_factory=OrderedDict)
    _prompts: Workers = field(default_factory=lambda: Workers(_THREADS, "unrender-prompt"))
    _builders: Workers = field(default_factory=lambda: Workers(1, "unrender-grammar"))

    async def warm_up(self) -> None:
        """Analyse the template, which takes a moment, before the first request needs it."""
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
        ask = Ask(messages=({"role": "user", "content": "Hello"},), tools=(tool,))
        await self._prompts.run("", lambda: self.template.format)
        try:
            await self.turn(ask)
        except Failure:  # A template may refuse this conversation and take others.
            return

    async def turn(self, ask: Ask, client: Hashable = "") -> tuple[Turn, tuple[str, ...]]:
        """Return the turn, and the parameters that the template does not heed. Raises `Failure`.

        `client` tells who asks: clients take turns.
        """
        return await self._prompts.run(client, lambda: self._turn(ask))

    async def prepare(self, ask: Ask, engine: EngineCapabilities, client: Hashable = "") -> Prepared:
        """Return the turn and its grammar. Raises `Failure` when the request or the template refuses."""
        begun = time.monotonic()
        turn, unheeded, key = await self._prompts.run(client, lambda: self._keyed(ask, engine))
        rendered = time.monotonic()
        plain = Prepared(turn=turn, warnings=unheeded, prompt_seconds=rendered - begun)
        if key is None:
            return plain
        found = self._known(key)
        cached = found is not None and found.result == "built"
        # A schema may take seconds to build. One thread builds, so that rendering always has the other cores.
        if found is None:  # what is known waits for nobody's building
            found = await self._builders.run(client, lambda: self._built(key, turn, engine))
        return replace(
            plain,
            grammar=found.grammar,
            warnings=(*unheeded, *found.losses),
            grammar_result="cached" if cached else found.result,
            grammar_seconds=time.monotonic() - rendered,
        )

    def _turn(self, ask: Ask) -> tuple[Turn, tuple[str, ...]]:
        if ask.raw is not None:
            return replace(_UNREAD, prompt=self._opened(ask.raw)), ()
        variables, unheeded = self._variables(ask)
        try:
            turn = self.template.prepare(
                ask.messages,
                tools=ask.tools or None,
                tool_choice=ask.tool_choice,
                parallel_tool_calls=ask.parallel_tool_calls,
                response_format=ask.response_format,
                continue_final_message=ask.continues,
                tool_format=self.tool_format,
                **variables,
            )
        except MessageError as error:
            where, colon, _ = str(error).partition(":")
            raise invalid(str(error), param=where if colon else None) from error
        except TemplateError as error:
            raise invalid(f"the model's template refuses the conversation: {error}", param="messages") from error
        return turn, unheeded

    def _opened(self, prompt: str) -> str:
        """Return a text after the token that begins all prompts of the model, which engines are told not to add."""
        bos = self.template.template.bos_token
        return prompt if prompt.startswith(bos) or not self._writes_bos else bos + prompt

    @cached_property
    def _writes_bos(self) -> bool:
        """Whether the template begins its prompts with the token for that."""
        try:
            turn, _ = self._turn(Ask(messages=({"role": "user", "content": "Hello"},)))
        except Failure:
            return False
        return turn.prompt.startswith(self.template.template.bos_token)

    def _variables(self, ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
        # `tools` or `messages` among the variables would replace the request's own, behind every check.
        for name in ask.template:
            if name in _RESERVED or not name.isidentifier():
                raise invalid(f"chat_template_kwargs.{name}: not a variable that a request may set", param=name)
        given: dict[str, Any] = {**self.variables, **ask.template}
        if ask.effort is None:
            return given, ()
        heeded = False
        template = self.template.template
        # Templates know one of two switches, or both: how much to think in a word, and whether to think at all.
        if ask.effort != "none" and "reasoning_effort" in template.variables:
            heeded, given = True, {"reasoning_effort": ask.effort, **given}
        if self.template.capabilities.supports_enable_thinking:
            heeded, given = True, {"enable_thinking": ask.effort != "none", **given}
        return given, () if heeded else ("reasoning_effort: the template knows no such thing",)

    def _constrained(self, turn: Turn, engine: EngineCapabilities) -> bool:
        request = turn.request
        due = request.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED) or request.response_schema is not None
        free = request.calls_allowed and (engine.lazy or engine.dialect in _WHOLE)
        return (due and self.constrain is not Constrain.NEVER) or (free and self.constrain is Constrain.ALWAYS)

    def _keyed(self, ask: Ask, engine: EngineCapabilities) -> tuple[Turn, tuple[str, ...], Hashable | None]:
        """Return the turn, what it does not heed, and the key of the grammar that is due; None where none is."""
        turn, unheeded = self._turn(ask)
        due = engine.dialect and self._constrained(turn, engine)
        return turn, unheeded, _key(turn, engine) if due else None

    def _known(self, key: Hashable) -> _Built | None:
        """Return a grammar that was built before; it is kept for longer then."""
        found = self._grammars.get(key)
        if found is not None:
            self._grammars[key] = found
            self._grammars.move_to_end(key)
        return found

    def _built(self, key: Hashable, turn: Turn, engine: EngineCapabilities) -> _Built:
        """Return a grammar, built now unless it was built while this work waited."""
        found = self._known(key)
        if found is None:
            found = self._grammars[key] = _build(turn, engine)
            while len(self._grammars) > MOST_GRAMMARS:
                self._grammars.popitem(last=False)
        return found


def _key(turn: Turn, engine: EngineCapabilities) -> Hashable:
    request = turn.request
    # What a grammar depends on, and nothing else: two conversations with the same tools share one.
    tools = [tool.to_openai() for tool in request.tools or ()]
    said = [tools, request.named_tool, request.response_schema, request.reasoning_format]
    choice = (request.tool_choice, request.parallel_tool_calls)
    return turn.format, choice, json.dumps(said, sort_keys=True), turn.begun, engine.dialect, engine.lazy


class _Built(NamedTuple):
    """What became of a grammar."""

    grammar: EngineGrammar | None
    losses: tuple[str, ...] = ()
    """What it does not hold."""

    @property
    def result(self) -> str:
        """What became of it, in a word."""
        return "unsupported" if self.grammar is None else "relaxed" if self.losses else "built"


def _build(turn: Turn, engine: EngineCapabilities) -> _Built:
    """Return the grammar, or None with the reason among the warnings: a request is not refused for its want."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SchemaWarning)
        try:
            # What a schema loses on its way into a grammar is said as warnings; the client is told each.
            triggers = turn.triggers if engine.lazy else ()
            grammar = EngineGrammar(dialect=engine.dialect, text=_written(turn, engine.dialect), triggers=triggers)
        except GrammarError as error:
            return _Built(None, (f"not constrained: {error}",))
    return _Built(grammar, tuple(f"not constrained: {item.message}" for item in caught))


def _written(turn: Turn, dialect: str) -> str:
    write: Mapping[str, Callable[[], str]] = {
        "gbnf": turn.gbnf,
        "lark": turn.lark,
        "structural_tag": lambda: json.dumps(turn.structural_tag()),
    }
    if dialect not in write:
        raise GrammarError(f"no grammar is written in {dialect!r}")
    return write[dialect]()
