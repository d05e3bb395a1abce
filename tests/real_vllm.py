"""vLLM's own server without a GPU: transformers generates in place of its engine.

python tests/real_vllm.py FILE.gguf OPTION...

Its command line, app, renderer, detokenizer and grammar backend are vLLM's own. Only the process with the weights is
replaced. It needs an installed vLLM (`python3 scripts/run.py real-servers`).
"""

from __future__ import annotations

import asyncio
import importlib
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from real_core import Core, Token, Wanted, folder_of


class Held:
    """A grammar compiled by vLLM."""

    def __init__(self, backend: Any, key: Any) -> None:
        self._grammar, self._bits = backend.compile_grammar(*key), backend.allocate_token_bitmask(1)
        self._apply = importlib.import_module("xgrammar").apply_token_bitmask_inplace

    def mask(self, scores: Any) -> None:
        """Mask the tokens that the grammar doesn't allow."""
        self._grammar.fill_bitmask(self._bits, 0)
        self._apply(scores.unsqueeze(0), self._bits)

    def take(self, token: int) -> bool:
        """Accept a token."""
        assert self._grammar.accept_tokens("", [token]), token
        return bool(self._grammar.is_terminated())


class Client:
    """A fake of the engine client for vLLM's frontend. It generates one answer after the other."""

    engine_ranks_managed = (0,)

    def __init__(self, core: Core, backend: Any) -> None:
        self._core, self._backend = core, backend
        self._engine = importlib.import_module("vllm.v1.engine")
        self._outputs: asyncio.Queue[Any] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1)
        self._wanted: set[str] = set()
        self.resources = SimpleNamespace(engine_dead=False)

    async def get_supported_tasks_async(self) -> tuple[str, ...]:
        """Return the supported tasks."""
        return ("generate",)

    async def reset_mm_cache_async(self) -> None:
        """Do nothing: there is no image cache."""

    async def get_output_async(self) -> Any:
        """Return the next tokens."""
        return await self._outputs.get()

    async def add_request_async(self, request: Any) -> None:
        """Queue a request behind those that wait."""
        self._wanted.add(request.request_id)
        self._thread.submit(self._work, request)

    async def abort_requests_async(self, ids: Sequence[str]) -> None:
        """Stop at the next token."""
        self._wanted.difference_update(ids)

    def shutdown(self, timeout: float | None = None) -> None:
        """Stop the engine."""
        del timeout
        self._wanted.clear()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _work(self, request: Any) -> None:
        asked, name = request.sampling_params, request.request_id
        key_of = importlib.import_module("vllm.v1.structured_output.request").get_structured_output_key
        key = asked.structured_outputs and key_of(asked.structured_outputs)
        drawn = asked.temperature and asked.seed is None
        wanted = Wanted(
            prompt=tuple(request.prompt_token_ids),
            limit=asked.max_tokens,
            temperature=asked.temperature,
            seed=random.getrandbits(32) if drawn else asked.seed or 0,
            ends=frozenset(asked.all_stop_token_ids),
            grammar=key,
        )
        try:
            for token in self._core.answer(
                wanted, lambda: Held(self._backend, key) if key else None, scored=asked.logprobs is not None
            ):
                if name not in self._wanted:
                    return
                self._put(name, token, asked.logprobs)
        except Exception as error:  # noqa: BLE001 - a client waits for an end
            print(f"core: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
            self._put(name, Token(0, "error"), None)

    def _put(self, name: str, token: Token, top: int | None) -> None:
        reasons = {"": None, **{reason.name.lower(): reason for reason in self._engine.FinishReason}}
        output = self._engine.EngineCoreOutput(
            request_id=name,
            new_token_ids=[token.id],
            finish_reason=reasons[token.finish],
            new_logprobs=None if top is None else _scored(token, top),
        )
        outputs = self._engine.EngineCoreOutputs(outputs=[output])
        self._loop.call_soon_threadsafe(self._outputs.put_nowait, outputs)


def _scored(token: Token, top: int) -> Any:
    numpy, lists = importlib.import_module("numpy"), importlib.import_module("vllm.v1.outputs").LogprobsLists
    best, own = token.scores.topk(top), token.scores[token.id]
    ids, values = [token.id, *best.indices.tolist()], [float(own), *best.values.tolist()]
    return lists(numpy.array([ids]), numpy.array([values]), numpy.array([int((token.scores >= own).sum())]))


def main(file: str, *options: str) -> None:
    """Serve a model's file until the process is stopped."""
    core = Core(Path(file))

    def client(*, vllm_config: Any, renderer: Any, **_: Any) -> Client:
        backend = importlib.import_module("vllm.v1.structured_output.backend_xgrammar").XgrammarBackend
        size = vllm_config.model_config.get_vocab_size()
        return Client(core, backend(vllm_config, tokenizer=renderer.tokenizer, vocab_size=size))

    with tempfile.TemporaryDirectory() as folder:
        serve(folder_of(Path(file), Path(folder)), client, *options)


_SAID = ("--disable-log-stats", "--enable-scale-out")  # The second setting enables the path that takes token ids.


def serve(folder: Path, client: Callable[..., Any], *options: str) -> None:
    """Serve the model in a folder; `client` creates the engine client for vLLM's frontend."""
    platforms: Any = importlib.import_module("vllm.platforms")
    # Without a GPU, vLLM finds no device: its CPU build is a separate release.
    platforms._current_platform = importlib.import_module("vllm.platforms.cpu").CpuPlatform()
    module: Any = importlib.import_module("torch").nn.Module

    # vLLM checks a model's class, and its own class needs parts of the engine.
    class Unused(module):  # type: ignore[misc]
        def __init__(self, *, vllm_config: Any) -> None: ...
        def forward(self, input_ids: Any, positions: Any) -> Any: ...
        def embed_input_ids(self, input_ids: Any) -> Any: ...
        def compute_logits(self, hidden_states: Any) -> Any: ...

    importlib.import_module("vllm").ModelRegistry.register_model("LlamaForCausalLM", Unused)
    importlib.import_module("vllm.v1.engine.core_client").EngineCoreClient.make_async_mp_client = client
    said = {"--model": folder, "--served-model-name": "m", "--host": "127.0.0.1", "--dtype": "float32"}
    sys.argv[1:] = [*(str(word) for option in said.items() for word in option), *_SAID, *options]
    importlib.import_module("vllm.entrypoints.launchers.api_server.entry").main()


if __name__ == "__main__":
    main(*sys.argv[1:])
