"""Defines a gateway model: a template, an engine, and the name that clients use. At startup, the engine is probed.

A probe generates a few tokens. An answer that only the grammar allows shows that grammars are enforced. Comparing the engine's token count
for the request with its count for the prompt text shows whether it adds a BOS token.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from unrender import Turn
from unrender.gateway.answers.turns import HELLO, ModelSettings, TurnFactory
from unrender.gateway.backends import Backend, EngineCapabilities, EngineError, EngineGrammar, Job
from unrender.gateway.failure import Failure, FailureKind
from unrender.limits import MAX_SMALL
from unrender.openai import Usage
from unrender.signatures import expected_one_of

PROBE_WORD = "unrender"
"""The only answer that the probe's grammar allows; no model gives it without a grammar."""
UNREAD_CALL = (
    "an answer contained a tool call in another syntax, which was not parsed; `unrender probe` finds the syntax and writes a file for the "
    'setting `format`, and repair = "offered" parses such calls at the end of an answer'
)
"""Warning about a call that wasn't parsed."""
_SECONDS = 30
"""Time limit of a probe, in seconds."""


@dataclass(slots=True, kw_only=True)
class Findings:
    """Probe results for one model's engine; None means unknown."""

    grammar: bool | None = None
    """True if the engine enforces grammars."""
    adds_bos: bool | None = None
    """True if the engine adds a BOS token to a prompt that already has one."""
    unread: bool = False
    """True if an answer contained a call in another syntax, which wasn't parsed."""
    tried: bool = False
    trying: bool = False

    def told(self) -> dict[str, bool | None]:
        """Return the findings in the format of `/ready`."""
        return {"grammar": self.grammar, "adds_bos": self.adds_bos}

    def complaints(self) -> list[str]:
        """Return warnings for the operator."""
        loose = ["the engine ignores grammars, so tool calls and response formats are not enforced"]
        bos = ["the engine adds the BOS token itself, so prompts are sent without it"]
        return loose * (self.grammar is False) + bos * (self.adds_bos is True) + [UNREAD_CALL] * self.unread


async def find_features(turns: TurnFactory, backend: Backend, found: Findings) -> None:
    """Probe an engine and store the results in `found`. The results remain None if the engine fails or takes too long."""
    if backend.capabilities.obeys:
        found.tried = True
        return
    try:
        turn = await turns.turn(HELLO)
        async with asyncio.timeout(_SECONDS):
            await _probe(turn, turns.template._with_tools.bos_token, backend, found)
    except (EngineError, Failure, TimeoutError):
        return


async def _probe(turn: Turn, bos: str, backend: Backend, found: Findings) -> None:
    # No model answers "Hello" with exactly "unrender" unless a grammar forces it to.
    grammar = only(backend.capabilities.dialect, PROBE_WORD)
    text, usage = await _answer(turn, backend, grammar)
    if grammar is not None:
        # Ignore an end of turn after the word, since some engines also return the text that ends an answer.
        found.grammar = text.strip() in (PROBE_WORD, *(PROBE_WORD + end for end in turn.stop))
    # If both the template and the engine write "<s>", the engine counts one token more than its tokenizer finds in the prompt.
    if bos and turn.prompt.startswith(bos) and usage is not None and usage.prompt_tokens:
        counted = await backend.count(turn.prompt)
        found.adds_bos = None if counted is None else usage.prompt_tokens == counted + 1
    found.tried = True


async def _answer(turn: Turn, backend: Backend, grammar: EngineGrammar | None) -> tuple[str, Usage | None]:
    limit = 1 if grammar is None else MAX_SMALL
    job = Job(turn=turn, request_id="unrender-probe", grammar=grammar, limit=limit, sampling={"temperature": 0.0})
    texts: list[str] = []
    usage = None
    try:
        async with aclosing(backend.generate(job)) as pieces:
            async for piece in pieces:
                texts.append(piece.text)
                usage = piece.usage or usage
    except EngineError as error:
        if grammar is None or error.status is None:
            raise
        return "", None  # The engine rejects even the simplest grammar, so it doesn't support grammars.
    return "".join(texts), usage


def only(dialect: str, text: str) -> EngineGrammar | None:
    """Return a grammar that allows only `text`, or None if the dialect is unknown."""
    said = {
        "gbnf": f"root ::= {json.dumps(text)}\n",
        "lark": f"start: {json.dumps(text)}\n",
        "structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "const_string", "value": text}}),
    }
    return EngineGrammar(dialect=dialect, text=said[dialect]) if dialect in said else None


_CHARACTERS = 4
"""Estimated number of characters per token."""
ANY_MODEL = frozenset("*")
"""Model names for a key that may use every model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that the gateway serves."""

    name: str
    turns: TurnFactory
    backend: Backend
    aliases: tuple[str, ...] = ()
    """Other names of the model; "*" matches every name that no other model has."""
    found: Findings = field(default_factory=Findings)
    """Results of probing the engine."""

    @property
    def settings(self) -> ModelSettings:
        """The model's settings."""
        return self.turns.settings

    @property
    def capabilities(self) -> EngineCapabilities:
        """Features of the engine. The grammar dialect is omitted if the probe found that the engine ignores grammars."""
        # Trust the features that the engine declares until the probe has shown otherwise.
        stated = self.backend.capabilities
        return replace(stated, dialect="", lazy=False) if self.found.grammar is False else stated

    async def probe(self) -> bool:
        """Probe the engine, unless a probe has completed or is running. Return True if this call completed the probe."""
        # Run only one probe at a time: load balancers request `/ready` every second, and probing a busy engine takes longer than that.
        if self.found.tried or self.found.trying:
            return False
        self.found.trying = True
        try:
            await find_features(self.turns, self.backend, self.found)
        finally:
            self.found.trying = False
        return self.found.tried

    async def count(self, text: str) -> tuple[int, bool]:
        """Return the number of tokens in a text and True, or an estimate and False if the engine can't count them."""
        try:
            counted = await self.backend.count(text)
        except EngineError:
            counted = None
        return (len(text) // _CHARACTERS + 1, False) if counted is None else (counted, True)

    def sent(self, turn: Turn) -> Turn:
        """Return the turn as it is sent to the engine."""
        bos = self.turns.template._with_tools.bos_token
        # If the engine adds "<s>" itself, remove it from the prompt, which would otherwise have two.
        return replace(turn, prompt=turn.prompt.removeprefix(bos)) if self.found.adds_bos and bos else turn


@dataclass(slots=True)
class Models:
    """All models by name."""

    all: Sequence[Model] = ()
    _named: Mapping[str, Model] = field(init=False)

    def __post_init__(self) -> None:
        self._named = {name: model for model in self.all for name in (model.name, *model.aliases)}

    def __iter__(self) -> Iterator[Model]:
        return iter(self.all)

    def among(self, opened: frozenset[str]) -> list[Model]:
        """Return the models whose names are in `opened`."""
        return [model for model in self.all if opened & {model.name, "*"}]

    def find(self, name: str, opened: frozenset[str] = ANY_MODEL) -> Model:
        """Return the model with this name, or the only model if the name is empty. Raises `Failure` if no model in `opened` matches."""
        known = self.among(opened)
        only = known[0] if len(known) == 1 else None
        model = self._named.get(name) or self._named.get("*") if name else only
        if model is None or not any(model is one for one in known):
            said = expected_one_of("model", [one.name for one in known], name)
            raise Failure(FailureKind.NOT_FOUND, said, param="model", code="model_not_found")
        return model
