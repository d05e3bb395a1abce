"""Runs a model in this process: transformers generates, and llguidance or xgrammar constrains the tokens.

Rules: answers are generated one at a time in a separate thread, so that streams don't wait for the model. If a client disconnects, the
model stops at the next token. If a client reads slowly, the model waits.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from unrender.gateway.backends.backend import (
    EngineCapabilities,
    EngineError,
    EngineGrammar,
    Job,
    Piece,
    free_cores,
    scored,
)
from unrender.gateway.failure import invalid
from unrender.matchers import DIALECTS, Matcher, masked_scores, matcher_factory, preferred_library
from unrender.openai import Usage

_NEUTRAL = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
"""Neutral values, since a model's own defaults differ from OpenAI's."""
_WAITING = 16
"""Maximum number of unsent pieces before the model waits."""
_CONTEXT = 4096
"""Context in tokens, if the model doesn't specify it."""
_HALF = "\ufffd"
"""Tokenizers' replacement for part of a character."""
_PLAIN = (*range(33, 127), *range(161, 173), *range(174, 256))
_BYTES = {chr(byte): byte for byte in _PLAIN}
_BYTES |= {chr(256 + at): byte for at, byte in enumerate(byte for byte in range(256) if byte not in _PLAIN)}
_BYTES |= {f"<0x{byte:02X}>": byte for byte in range(256)}
"""Bytes by their names in vocabularies: `Ã` and `Ġ` in byte-level vocabularies, `<0xC3>` in SentencePiece vocabularies."""
_PATIENCE = 0.05
"""Seconds between checks for a disconnected client."""


def load(source: str, *, device: str = "", masks: str = "", threads: int = 0) -> Transformers:
    """Load a model and its tokenizer.

    `masks` is the library that constrains tokens to a grammar, by default the first one installed. `threads` is the number of CPU threads
    of the entire process; 0 leaves one core free. Raises `Failure` if a package is missing or the model can't be loaded.
    """
    try:
        library = importlib.import_module("transformers")
        torch = importlib.import_module("torch")
    except ImportError as error:
        missing = f"transformers: {error.name} is missing: pip install 'unrender[transformers]'"
        raise invalid(missing, param="backend") from None
    path = Path(source)
    # transformers expects the folder and the name of a file separately.
    where, file = (str(path.parent), {"gguf_file": path.name}) if path.suffix == ".gguf" else (source, {})
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(where, **file)
        model = library.AutoModelForCausalLM.from_pretrained(where, dtype="auto", **file)
    except Exception as error:
        raise invalid(f"path: {source}: {error!s:.300}", param="path") from error
    if not getattr(tokenizer, "is_fast", False):
        raise invalid(f"path: {source}: expected a fast tokenizer, found {type(tokenizer).__name__}", param="path")
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if chosen.partition(":")[0] == "cpu" and (threads := threads or free_cores()):
        torch.set_num_threads(threads)
    return Transformers(model.to(chosen).eval(), tokenizer, torch, masks=masks or preferred_library())


class Transformers:
    """A loaded model."""

    def __init__(self, model: Any, tokenizer: Any, torch: Any, *, masks: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.torch = torch
        self.context: int = getattr(model.config, "max_position_embeddings", None) or _CONTEXT
        size = int(model.get_output_embeddings().weight.shape[0])
        self._matchers = matcher_factory(masks, tokenizer, size) if masks else None
        self._dialect = DIALECTS.get(masks, "")
        self._thread = ThreadPoolExecutor(1, "unrender-transformers")

    @property
    def capabilities(self) -> EngineCapabilities:
        """Features of the model, with grammars in the dialect of the library that constrains tokens."""
        return EngineCapabilities(dialect=self._dialect, logprobs=True, sampling=frozenset(_NEUTRAL))

    async def generate(self, job: Job) -> AsyncGenerator[Piece, None]:
        """Yield one piece per token."""
        run = Run(self, job, asyncio.get_running_loop())
        # The thread generates answers in order. A cancelled answer returns as soon as its turn comes.
        self._thread.submit(run.work)
        try:
            while (item := await run.queue.get()) is not None:
                if isinstance(item, EngineError):
                    raise item
                yield item
        finally:
            run.unwanted.set()

    def matcher(self, grammar: EngineGrammar | None) -> Matcher | None:
        """Return a matcher for the allowed next tokens; None without a grammar.

        Raises `EngineError` if the library rejects the grammar.
        """
        if grammar is None or self._matchers is None:
            return None
        try:
            return self._matchers(grammar.text)
        except (ValueError, RuntimeError) as error:
            raise EngineError(f"invalid grammar: {error!s:.300}", where="transformers", status=400) from error

    async def count(self, text: str) -> int | None:
        """Return the tokenizer's token count."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    async def ready(self) -> str | None:
        """Return None, because the model is ready as soon as it's loaded."""
        return None

    async def close(self) -> None:
        """Stop accepting jobs."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class Run:
    """State of one answer. transformers calls it for every token, in the model's thread."""

    def __init__(self, engine: Transformers, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        self.queue: asyncio.Queue[Piece | EngineError | None] = asyncio.Queue(_WAITING)
        self.unwanted: threading.Event = threading.Event()
        """Set when the client has disconnected."""
        self._engine = engine
        self._job = job
        self._loop = loop
        self._matcher: Matcher | None = None
        self._scores: Any = None
        """Log probabilities of the next token, if they are requested."""
        self._told: list[Mapping[str, Any]] = []
        """Tokens whose text is incomplete."""
        self._tail = ""
        self._count = 0
        self._stopped = False
        decoders = importlib.import_module("tokenizers.decoders")
        self._decoder = decoders.DecodeStream(skip_special_tokens=False)
        own = engine.model.generation_config.eos_token_id
        listed = own if isinstance(own, list) else [] if own is None else [own]
        # Stop texts that are single tokens, such as `<|im_end|>`. Other stop texts are searched for in the output.
        ids = engine.tokenizer.convert_tokens_to_ids(list(job.turn.stop))
        self._ends = {*listed, *(id for id in ids if id is not None and id != engine.tokenizer.unk_token_id)}

    def work(self) -> None:
        """Generate the answer. Errors are put into the queue, like pieces."""
        try:
            if not self.unwanted.is_set():
                self._generate()
            self._put(None)
        except EngineError as error:
            self._put(error)
        except Exception as error:  # noqa: BLE001 - the thread must survive for the next answer
            self._put(EngineError(f"{type(error).__name__}: {error!s:.300}", where="transformers"))

    def _generate(self) -> None:
        engine, job = self._engine, self._job
        prompt = engine.tokenizer(job.turn.prompt, add_special_tokens=False, return_tensors="pt").to(
            engine.model.device
        )
        length = prompt["input_ids"].shape[1]
        room = engine.context - length
        if room < 1:
            message = f"expected a prompt of at most {engine.context - 1} tokens, found {length}"
            raise EngineError(message, where="transformers", status=400)
        self._matcher = engine.matcher(job.grammar)
        if job.seed is not None:
            engine.torch.manual_seed(job.seed % 2**63)
        limit = room if job.limit is None else min(job.limit, room)
        engine.model.generate(
            input_ids=prompt["input_ids"],
            attention_mask=prompt["attention_mask"],
            max_new_tokens=limit,
            logits_processor=[self._masked],
            stopping_criteria=[self._taken],
            eos_token_id=sorted(self._ends) or None,
            pad_token_id=next(iter(self._ends), 0),
            **_sampling(job.sampling),
        )
        usage = Usage(prompt_tokens=length, completion_tokens=self._count)
        self._put(Piece("", 0, "stop" if self._stopped else "length", usage))

    def _masked(self, _: Any, scores: Any) -> Any:
        """Mask the scores of all tokens that the grammar doesn't allow."""
        if self._matcher is not None:
            scores = masked_scores(self._matcher, scores)
        if self._job.logprobs is not None:
            self._scores = self._engine.torch.log_softmax(scores[0].float(), -1)
        return scores

    def _taken(self, ids: Any, _: Any) -> Any:
        """Send the chosen token. Return True if it is the last one."""
        token = int(ids[0, -1])
        self._count += 1
        # transformers calls this after choosing each token. The token is not part of any text yet.
        ended = token in self._ends
        if self._matcher is not None and not ended:
            self._matcher.take(token)
        if not ended:
            self._send(token)
        self._stopped = ended or any(stop in self._tail for stop in self._job.turn.stop)
        return self._engine.torch.tensor([self._stopped or self.unwanted.is_set()], device=ids.device)

    def _send(self, token: int) -> None:
        if self._scores is not None:
            self._told.append(self._token(token))
        text = self._decoder.step(self._engine.tokenizer.backend_tokenizer, token) or ""
        longest = max(map(len, self._job.turn.stop), default=0)
        # Keep only as much text as a stop text may span.
        self._tail = (self._tail + text)[-longest - len(text) :]
        # "é" as two tokens has no text after the first. Both log probabilities are sent with the text after the second.
        if text or not self._told:
            self._put(Piece(text, 1, logprobs=tuple(self._told)))
            self._told.clear()

    def _token(self, token: int) -> Mapping[str, Any]:
        top = self._job.logprobs or 0
        others = self._scores.topk(top) if top else None
        listed = [] if others is None else zip(others.indices.tolist(), others.values.tolist(), strict=True)
        plain = [self._plain(id, value) for id, value in listed if value > -float("inf")]
        return {**self._plain(token, float(self._scores[token])), "top_logprobs": plain}

    def _plain(self, token: int, value: float) -> dict[str, Any]:
        tokenizer = self._engine.tokenizer
        found = scored(tokenizer.decode([token], skip_special_tokens=False), value)
        if _HALF in found["token"]:
            name = tokenizer.convert_ids_to_tokens(token)
            # "😀" as four tokens has no text in any of them. Clients join the bytes.
            own = [_BYTES.get(part) for part in ([name] if name in _BYTES else name)]
            return found if None in own else found | {"bytes": own}
        return found

    def _put(self, item: Piece | EngineError | None) -> None:
        """Put a piece into the queue, and wait if it's full, unless the client has disconnected."""
        if self.unwanted.is_set():
            return
        # If the client reads slowly, the queue is full. The model then waits here, and regularly checks for a disconnect.
        waiting = asyncio.run_coroutine_threadsafe(self.queue.put(item), self._loop)
        while not self.unwanted.is_set():
            try:
                waiting.result(_PATIENCE)
                return
            except TimeoutError:
                continue
        waiting.cancel()


def _sampling(asked: Mapping[str, float]) -> dict[str, Any]:
    """Return all generation settings explicitly."""
    # Omitted settings would come from the model's own `generation_config`.
    said: dict[str, Any] = {**_NEUTRAL, **asked}
    said["top_k"] = max(int(said["top_k"]), 0)
    if said["temperature"] > 0:
        return {**said, "do_sample": True}
    return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
