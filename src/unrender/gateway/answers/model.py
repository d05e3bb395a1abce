"""Holds a model of a gateway: a template, an engine, and a name that clients call it by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unrender import Turn
from unrender.gateway.answers.probes import Findings, probe
from unrender.gateway.answers.turns import Calls, Repairs, Turns
from unrender.gateway.backends.backend import Backend, EngineCapabilities, EngineError
from unrender.gateway.failure import Failure, Kind
from unrender.gateway.surfaces.surface import ReasoningField

_CHARACTERS = 4
"""Characters of a token, roughly."""
ALL = frozenset("*")
"""The names of all models, as keys open them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model."""

    name: str
    turns: Turns
    backend: Backend
    aliases: tuple[str, ...] = ()
    """Other names for it; "*" for every name that no other model has."""
    reasoning_field: ReasoningField = "reasoning_content"
    attempts: int = 2
    """Maximum number of times that a job is sent while the engine has returned nothing."""
    tool_calls: Calls = "auto"
    repair: Repairs = "format"
    """Which damaged calls are repaired, as in `Policy`."""
    heals: bool = True
    """Let the engine rewrite a broken call from its good part, under a grammar, where the engine supports grammars."""
    created: int = 0
    validate_streams: bool = False
    """Streamed answers that no grammar binds are validated before their first byte is sent, and asked for again where that fails."""
    probes: bool = False
    """Probe the engine when it is first ready."""
    found: Findings = field(default_factory=Findings)
    """Results of probing the engine."""

    @property
    def capabilities(self) -> EngineCapabilities:
        """Features of the engine, without a grammar dialect that the probe found ignored."""
        # The stated features hold until the probe has shown otherwise.
        stated = self.backend.capabilities
        return replace(stated, dialect="", lazy=False) if self.found.grammar is False else stated

    async def probe(self) -> bool:
        """Probe the engine, unless that was done before or is in progress; return True when this call did it."""
        # Balancers ask `/ready` every second, and a try of a busy engine takes longer than that.
        if self.found.tried or self.found.trying:
            return False
        self.found.trying = True
        try:
            await probe(self.turns, self.backend, self.found)
        finally:
            self.found.trying = False
        return self.found.tried

    async def count(self, text: str) -> tuple[int, bool]:
        """Return how many tokens a text is, and whether the engine has said so; if it cannot, the number is an estimate."""
        try:
            counted = await self.backend.count(text)
        except EngineError:
            counted = None
        return (len(text) // _CHARACTERS + 1, False) if counted is None else (counted, True)

    def sent(self, turn: Turn) -> Turn:
        """Return the turn as it is sent to the engine."""
        bos = self.turns.template._with_tools.bos_token
        # Of an engine that writes "<s>" itself, the prompt's own "<s>" would be a second one.
        return replace(turn, prompt=turn.prompt.removeprefix(bos)) if self.found.doubled and bos else turn


@dataclass(slots=True)
class Models:
    """All models, by their names."""

    all: Sequence[Model] = ()
    _named: Mapping[str, Model] = field(init=False)

    def __post_init__(self) -> None:
        self._named = {name: model for model in self.all for name in (model.name, *model.aliases)}

    def __iter__(self) -> Iterator[Model]:
        return iter(self.all)

    def among(self, opened: frozenset[str]) -> list[Model]:
        """Return the models whose names are among these."""
        return [model for model in self.all if opened & {model.name, "*"}]

    def find(self, name: str, opened: frozenset[str] = ALL) -> Model:
        """Return the model with this name; without a name, the only model. Raises `Failure` when none of `opened` is it."""
        known = self.among(opened)
        only = known[0] if len(known) == 1 else None
        model = self._named.get(name) or self._named.get("*") if name else only
        if model is None or not any(model is one for one in known):
            said = f"model: expected one of {[one.name for one in known]}, found {name!r:.80}"
            raise Failure(Kind.NOT_FOUND, said, param="model", code="model_not_found")
        return model
