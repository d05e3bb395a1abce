"""The models that are served: a name → its template, its engine, and who may use it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unrender.gateway.backends.backend import Backend
from unrender.gateway.failure import Failure, Kind
from unrender.gateway.turns import Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model."""

    name: str
    turns: Turns
    backend: Backend
    aliases: tuple[str, ...] = ()
    """Other names for it; "*" for every name that nobody else has."""
    reasoning_field: str = "reasoning_content"
    attempts: int = 2
    """How often a job is sent to the engine, at most, before anything has come back."""
    created: int = 0


@dataclass(slots=True)
class Models:
    """All models, by their names."""

    all: Sequence[Model] = ()
    active: int = 0
    """Answers on their way."""
    idle: asyncio.Event | None = None
    """Set when the last answer is out, once somebody waits for that."""
    _named: Mapping[str, Model] = field(init=False)

    def __post_init__(self) -> None:
        self._named = {name: model for model in self.all for name in (model.name, *model.aliases)}

    def __iter__(self) -> Iterator[Model]:
        return iter(self.all)

    def begin(self) -> None:
        """Count an answer."""
        self.active += 1

    def end(self) -> None:
        """Count an answer no more."""
        self.active -= 1
        if not self.active and self.idle is not None:
            self.idle.set()

    async def retire(self, kept: Sequence[Model] = ()) -> None:
        """Wait until all answers are out, and let go of the engines of all models but those `kept`."""
        self.idle = asyncio.Event()
        if self.active:
            await self.idle.wait()
        await asyncio.gather(*(model.backend.close() for model in self.all if not any(model is one for one in kept)))

    def find(self, name: str) -> Model:
        """Return the model of that name; without a name, the only one. Raises `Failure` when there is none."""
        if not name and len(self.all) == 1:
            return self.all[0]
        model = self._named.get(name) or (self._named.get("*") if name else None)
        if model is None:
            known = [model.name for model in self.all]
            raise Failure(
                Kind.NOT_FOUND,
                f"model: expected one of {known}, found {name!r:.80}",
                param="model",
                code="model_not_found",
            )
        return model
