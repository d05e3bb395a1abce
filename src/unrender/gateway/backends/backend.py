"""Defines the interface of an engine: its job, its pieces and its features. The sampler is one without a model."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from unrender import GrammarError, Turn
from unrender.examples import example_answer
from unrender.openai import Usage
from unrender.types import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """Features of an engine."""

    dialect: str = ""
    """The grammar that it takes: "gbnf", "structural_tag", "lark", "json_schema"; "" for none."""
    lazy: bool = False
    """A grammar may wait for its triggers, so free text before calls stays free."""
    obeys: bool = False
    """True if it needs no grammar, because its output is always well-formed."""
    logprobs: bool = False
    sampling: frozenset[str] = frozenset()
    """The names in `Job.sampling` that have an effect."""
    seed: bool = True
    images: str = ""
    """Placeholders for images in a prompt: "shown" for the template's own, "marked" for `IMAGE`, "" for no images."""


IMAGE = f"<image {secrets.token_hex(8)}>"
"""Stands in a prompt for an image, until an engine puts its own mark there. No client can write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGrammar:
    """A constraint in an engine's own dialect. With `triggers`, it starts when one of them is met."""

    dialect: str
    text: str
    triggers: tuple[Trigger, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The task to generate one answer."""

    turn: Turn
    """The prompt, the texts that end an answer, and the special tokens that must not be stripped."""
    request_id: str
    grammar: EngineGrammar | None = None
    limit: int | None = None
    """The most tokens to generate; None for all that fit."""
    sampling: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    logprobs: int | None = None
    """Alternatives wanted beside each token's log probability; None for none at all."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that are handed on, e.g. `traceparent`."""
    messages: Sequence[Mapping[str, Any]] = ()
    """The conversation that the prompt shows, in OpenAI's form; engines read the prompt."""
    prompt_ids: Sequence[int] | None = None
    """The prompt's token ids, for an engine that takes ids; None for one that takes text."""


class SpecialTokens(NamedTuple):
    """The special tokens in a piece."""

    known: frozenset[str]
    """The texts among the format's markers and stops that are one token of the model."""
    found: tuple[str, ...]
    """Those in the piece, in order."""


class Piece(NamedTuple):
    """A piece of an answer."""

    text: str
    tokens: int = 1
    """Number of its tokens, as far as the engine reports it."""
    finish: str | None = None
    """"stop" or "length" in the last piece that has one."""
    usage: Usage | None = None
    """Token counts from the engine, in the last piece."""
    logprobs: tuple[Mapping[str, Any], ...] = ()
    """Its tokens, each as `scored` makes it, with its `top_logprobs`."""
    more: bool = False
    """The next piece is there already, so this one's frames may wait for it."""
    ids: tuple[int, ...] = ()
    """Its token ids, where the engine sends them."""
    special: SpecialTokens | None = None
    """Its special tokens; None if the engine sends no ids."""


_IMPOSSIBLE = -9999.0
"""OpenAI's log probability of an impossible token; JSON has no infinity."""


def scored(text: str, logprob: float) -> dict[str, Any]:
    """Return a token as chat completions write it, without `top_logprobs`.

    >>> scored("Hi", -0.5)
    {'token': 'Hi', 'logprob': -0.5, 'bytes': [72, 105]}
    >>> scored("Hi", -float("inf"))["logprob"]
    -9999.0
    """
    value = logprob if _IMPOSSIBLE <= logprob < -_IMPOSSIBLE else _IMPOSSIBLE
    return {"token": text, "logprob": value, "bytes": list(text.encode(errors="replace"))}


class EngineError(Exception):
    """The engine cannot be reached, refuses the job, or breaks off.

    Clients are told the `message`. `where` is only for the log: clients do not learn the addresses of engines.
    """

    def __init__(self, message: str, *, where: str = "", status: int | None = None, transient: bool = False) -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.status = status
        """The engine's HTTP status, where it gave one."""
        self.transient = transient
        """The same job may succeed if it is sent again."""

    @property
    def kind(self) -> str:
        """Kind of error: "busy", "refused", "failed", "unreachable" or "broke_off"."""
        if self.status is None:
            return "unreachable" if self.transient else "broke_off"
        if self.status in (429, 503):
            return "busy"
        return "refused" if 400 <= self.status < 500 else "failed"


class Backend(Protocol):
    """An engine."""

    @property
    def capabilities(self) -> EngineCapabilities:
        """Features of the engine."""

    def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
        """Yield the answer's pieces. Raises `EngineError`. Closing the generator cancels the engine's work."""

    async def count(self, text: str) -> int | None:
        """Return the number of tokens in a text; None if the engine can't count."""

    async def ready(self) -> str | None:
        """Return None when answers can be generated, else why not."""

    async def close(self) -> None:
        """Close connections."""


_TOKEN = re.compile(r"\s?\w{1,16}|\s+|[^\w\s]", re.DOTALL)
"""A token of the sampler, mostly a word; together they are the whole text."""


class Sampler:
    """An engine without a model, for tests and first tries: it answers with made-up calls and plain words, the same for the same request.

    It writes `rate` tokens a second, 0 for as many as it can.
    """

    def __init__(self, *, rate: float = 0.0) -> None:
        self._pause = 1 / rate if rate else 0.0

    @property
    def capabilities(self) -> EngineCapabilities:
        """It needs no grammar: its answers are well-formed."""
        return EngineCapabilities(obeys=True, images="shown")

    async def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
        """Yield an example answer; another seed words it otherwise."""
        try:
            text = await asyncio.to_thread(example_answer, job.turn, job.messages, job.seed or 0)
        except GrammarError as error:
            raise EngineError(f"the sampler has no grammar for this request: {error}", status=400) from error
        # The limit cuts the text off between pieces, as an engine would between tokens.
        tokens = _TOKEN.findall(text)
        cut_off = job.limit is not None and len(tokens) > job.limit
        kept = tokens[: job.limit]
        for token in kept:
            if self._pause:
                await asyncio.sleep(self._pause)
            yield Piece(token)
        usage = Usage(prompt_tokens=await self.count(job.turn.prompt), completion_tokens=len(kept))
        yield Piece("", 0, "length" if cut_off else "stop", usage)

    async def count(self, text: str) -> int:
        """Return the number of pieces."""
        return len(_TOKEN.findall(text))

    async def ready(self) -> str | None:
        """Return None: the sampler is always ready."""
        return None

    async def close(self) -> None:
        """Do nothing."""


def free_cores(system: Path = Path("/sys")) -> int:
    """Return how many cores a model may keep busy: all but one. 0, the library's own choice, where the system does not tell.

    The threads of llama.cpp, and of PyTorch, wait for each other hundreds of times for each token, and burn time meanwhile. When another
    process holds the core of one of them, all wait for that one: with as many threads as cores, 70 tokens a second become 2.
    """
    siblings = "devices/system/cpu/cpu{}/topology/thread_siblings_list"
    try:
        # Two hyperthreads of a core have the same siblings, and a core has the arithmetic of one.
        cores = len({(system / siblings.format(cpu)).read_text() for cpu in os.sched_getaffinity(0)})
    except (AttributeError, OSError):  # Not Linux.
        return 0
    with suppress(OSError, ValueError):  # Without a quota it says "max".
        quota, period = map(int, (system / "fs/cgroup/cpu.max").read_text().split())
        cores = min(cores, quota // period)  # What a container may use of its machine.
    return max(cores - 1, 1)
