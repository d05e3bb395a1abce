"""Backends: the engines. Each engine's client turns a `Job`, which contains a prompt, into pieces of text.

This module defines the interface of an engine, and a sampler that makes up answers without a model; read it first. `connection` contains the HTTP client and the base class of the engines with an HTTP API: `completions` (with `prompt_ids` for token ids), `llama_server`
(also Ollama) and `sglang`. `llama_server` can also start a server in this process.

Rules: engines don't use templates and parse nothing. Engines return `OutputPiece`s and raise only `EngineError`. Closing the generator cancels
the engine's work.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from unrender import GrammarError, Turn
from unrender.examples import example_answer
from unrender.openai import Usage
from unrender.types import Trigger

SAMPLING = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"}
)
"""Names of all sampling parameters, as in `Job.sampling`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """Features that an engine supports."""

    dialect: str = ""
    """Grammar dialect: "gbnf", "structural_tag", "lark" or "json_schema"; "" if grammars are not supported."""
    lazy: bool = False
    """True if a grammar can wait for its triggers, so that text before calls is not constrained."""
    obeys: bool = False
    """True if no grammar is needed, because the output is always well-formed."""
    logprobs: bool = False
    token_ids: bool = False
    """True if the engine returns the token ids of prompts and answers."""
    takes_ids: Literal["never", "text", "always"] = "never"
    """Prompts that may be sent as token ids: all, those without images ("text"), or none."""
    sampling: frozenset[str] = frozenset()
    """Names in `Job.sampling` that have an effect."""
    seed: bool = True
    images: str = ""
    """Image placeholders in a prompt: "shown" for the template's own, "marked" for `IMAGE`, "" if images are not supported."""


IMAGE = f"<image {secrets.token_hex(8)}>"
"""Placeholder for an image in a prompt, until an engine inserts its own mark. The placeholder is random, so no client can write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGrammar:
    """A grammar in the engine's dialect. With `triggers`, the grammar starts when one of them matches."""

    dialect: str
    text: str
    triggers: tuple[Trigger, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A request to an engine for one answer."""

    turn: Turn
    """The prompt, the stop strings, and the special tokens that must not be stripped."""
    request_id: str
    grammar: EngineGrammar | None = None
    limit: int | None = None
    """Maximum number of generated tokens; None if only the context limits them."""
    sampling: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    logprobs: int | None = None
    """Number of alternatives with log probabilities for each token; None if log probabilities are not requested."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers to forward to the engine, e.g. `traceparent`."""
    messages: Sequence[Mapping[str, Any]] = ()
    """The conversation in OpenAI's format. Only the sampler uses this field."""
    prompt_ids: Sequence[int] | None = None
    """Token ids of the prompt, for engines that accept them; None to send text."""
    wants_ids: bool = False
    """True if the client asks for the token ids of the prompt and the answer."""


class OutputPiece(NamedTuple):
    """A piece of an answer."""

    text: str
    tokens: int = 1
    """Number of tokens in the piece. If the engine doesn't report the number, a piece counts as one token."""
    finish: str | None = None
    """Finish reason in the last piece: "stop", "length" or "content_filter"."""
    usage: Usage | None = None
    """Token counts from the engine, in the last piece."""
    logprobs: tuple[Mapping[str, Any], ...] = ()
    """Tokens of the piece, each as returned by `scored`, with `top_logprobs`."""
    more: bool = False
    """True if the next piece has already been received, so this piece's frames may wait for it."""
    ids: tuple[int, ...] = ()
    """Token ids of the piece, if the engine sends them."""
    special: Mapping[int, str] | None = None
    """Texts of the format's markers and stop strings that are a single token of the model, by id. None if the engine doesn't send ids, or if
    a grammar constrains the answer.
    """
    prompt_ids: tuple[int, ...] = ()
    """Token ids of the prompt, in the first piece, if they are known."""


_IMPOSSIBLE = -9999.0
"""Log probability of an impossible token, as in OpenAI's API, since JSON has no infinity."""


def scored(text: str, logprob: float) -> dict[str, Any]:
    """Return a token in the format of Chat Completions, without `top_logprobs`.

    >>> scored("Hi", -0.5)
    {'token': 'Hi', 'logprob': -0.5, 'bytes': [72, 105]}
    >>> scored("Hi", -float("inf"))["logprob"]
    -9999.0
    """
    value = logprob if _IMPOSSIBLE <= logprob < -_IMPOSSIBLE else _IMPOSSIBLE
    return {"token": text, "logprob": value, "bytes": list(text.encode(errors="replace"))}


_SECRETS = re.compile(
    r"""(?<=://)[^/\s@]+(?=@)  # the password in http://user:password@host
    | (?<=\bbearer\ )\S+ | (?<=\bbasic\ )\S+
    | \b(?:sk|pk|rk|hf|gsk|xai|ghp|nvapi)[-_][\w-]{8,}  # API keys as vendors write them
    | (?:api[-_ ]?key|token|password|secret)["']?\s*[:=]\s*["']?[^\s"',;]{4,}""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches text of an engine that looks like a key or a password."""


class EngineError(Exception):
    """Raised if the engine is unreachable, rejects the job, or fails during the answer.

    `message` is sent to clients. `where`, the engine's address, is only logged, since clients must not see it. Text that looks like a key or
    a password is replaced in both.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        status: int | None = None,
        transient: bool = False,
        retry_after: str = "",
    ) -> None:
        self.message = _SECRETS.sub("***", message)
        super().__init__(f"{_SECRETS.sub('***', where)}: {self.message}" if where else self.message)
        self.status = status
        """HTTP status from the engine, if there is one."""
        self.retry_after = retry_after
        """The engine's `retry-after` header; "" if there is none."""
        self.transient = transient
        """True if the same job may succeed when it is sent again."""

    @property
    def kind(self) -> str:
        """Kind of error: "busy", "refused", "failed", "unreachable" or "broke_off"."""
        if self.status is None:
            return "unreachable" if self.transient else "broke_off"
        if self.status in (429, 503):
            return "busy"
        return "refused" if 400 <= self.status < 500 else "failed"


class Backend(Protocol):
    """Interface of an engine's client."""

    @property
    def capabilities(self) -> EngineCapabilities:
        """Features of the engine."""

    def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Yield the pieces of the answer. Raises `EngineError`. Closing the generator cancels the engine's work."""

    async def count(self, text: str) -> int | None:
        """Return the number of tokens in a text, or None if the engine can't count."""

    async def ready(self) -> str | None:
        """Return None if answers can be generated, otherwise the reason."""

    async def close(self) -> None:
        """Close connections."""


_TOKEN = re.compile(r"\s?\w{1,16}|\s+|[^\w\s]", re.DOTALL)
"""Matches a token of the sampler, usually a word. Joined, the tokens are the complete text."""


class Sampler:
    """An engine without a model, for tests and demos. The engine makes up calls and plain words. Equal requests get equal answers.

    It generates `rate` tokens per second; 0 means no limit.
    """

    capabilities: EngineCapabilities = EngineCapabilities(obeys=True, images="shown")

    def __init__(self, *, rate: float = 0.0) -> None:
        self._pause = 1 / rate if rate else 0.0

    async def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Yield an example answer. The wording depends on the seed."""
        try:
            text = await asyncio.to_thread(example_answer, job.turn, job.messages, job.seed or 0)
        except GrammarError as error:
            raise EngineError(f"the sampler can't answer this request: {error}", status=400) from error
        # Wait between pieces, as a real engine does between tokens.
        tokens = _TOKEN.findall(text)
        cut_off = job.limit is not None and len(tokens) > job.limit
        kept = tokens[: job.limit]
        for token in kept:
            if self._pause:
                await asyncio.sleep(self._pause)
            yield OutputPiece(token)
        usage = Usage(prompt_tokens=await self.count(job.turn.prompt), completion_tokens=len(kept))
        yield OutputPiece("", 0, "length" if cut_off else "stop", usage)

    async def count(self, text: str) -> int:
        """Return the number of sampler tokens in a text."""
        return len(_TOKEN.findall(text))

    async def ready(self) -> str | None:
        """Return None: the sampler is always ready."""
        return None

    async def close(self) -> None:
        """Do nothing."""


def free_cores(system: Path = Path("/sys")) -> int:
    """Return the number of cores that a model may use: all but one. Return 0, which selects the library's default, if the system doesn't
    report its cores.

    The threads of llama.cpp wait for each other hundreds of times per token, and use CPU time while they wait. If another
    process occupies the core of one thread, all threads wait. So with as many threads as cores, the speed can drop from 70 tokens per
    second to 2.
    """
    siblings = "devices/system/cpu/cpu{}/topology/thread_siblings_list"
    try:
        # Count cores instead of hyperthreads, which share the core's arithmetic units: all hyperthreads of a core list the same siblings.
        cores = len({(system / siblings.format(cpu)).read_text() for cpu in os.sched_getaffinity(0)})
    except (AttributeError, OSError):  # Not Linux.
        return 0
    with suppress(OSError, ValueError):  # The file contains "max" if there's no quota.
        quota, period = map(int, (system / "fs/cgroup/cpu.max").read_text().split())
        cores = min(cores, quota // period)  # A container may have a quota of CPU time.
    return max(cores - 1, 1)
