"""Defines a gateway model: a template, an engine, and the name that clients use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unrender import Turn
from unrender.gateway.answers.probes import Findings, probe
from unrender.gateway.answers.turns import Calls, Repairs, Turns
from unrender.gateway.backends.backend import Backend, EngineCapabilities, EngineError
from unrender.gateway.failure import Failure, Kind
from unrender.gateway.surfaces.surface import ReasoningField
from unrender.signatures import expected_one_of

_CHARACTERS = 4
"""Estimated number of characters per token."""
ALL = frozenset("*")
"""Model names for a key that may use every model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that the gateway serves."""

    name: str
    turns: Turns
    backend: Backend
    aliases: tuple[str, ...] = ()
    """Other names of the model; "*" matches every name that no other model has."""
    reasoning_field: ReasoningField = "reasoning_content"
    attempts: int = 2
    """Maximum number of attempts per job. A job is retried only while the engine has returned nothing."""
    tool_calls: Calls = "auto"
    repair: Repairs = "format"
    """Damaged calls to repair, as in `Policy`."""
    max_tokens: int | None = None
    """Token limit for requests without one; None if only the engine limits them."""
    parallel_tool_calls: bool = True
    """False if an answer has at most one call, whatever the request says."""
    heals: bool = True
    """True if an engine that supports grammars regenerates the rest of a broken call with a grammar."""
    created: int = 0
    probes: bool = False
    """True if the engine is probed when it is first ready."""
    found: Findings = field(default_factory=Findings)
    """Results of probing the engine."""

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
            await probe(self.turns, self.backend, self.found)
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

    def find(self, name: str, opened: frozenset[str] = ALL) -> Model:
        """Return the model with this name, or the only model if the name is empty. Raises `Failure` if no model in `opened` matches."""
        known = self.among(opened)
        only = known[0] if len(known) == 1 else None
        model = self._named.get(name) or self._named.get("*") if name else only
        if model is None or not any(model is one for one in known):
            said = expected_one_of("model", [one.name for one in known], name)
            raise Failure(Kind.NOT_FOUND, said, param="model", code="model_not_found")
        return model
