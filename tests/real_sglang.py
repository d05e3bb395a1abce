"""SGLang's own server without a GPU: transformers generates in place of its scheduler.

python tests/real_sglang.py FILE.gguf OPTION...

Its command line, app, tokenizer manager, detokenizer, stop rules and grammar backend are SGLang's own. Only the process
with the weights is replaced. It needs an installed SGLang (`python3 scripts/run.py real-servers`).
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torchless_vision
from real_core import Core, Token, Wanted, folder_of

torchless_vision.install()  # Needed in each process, which imports this file before SGLang.
_SRT = "sglang.srt"
CONTEXT = 8192
"""Maximum tokens of a prompt and its answer."""
_SAID = f"--served-model-name m --device cpu --grammar-backend xgrammar --skip-server-warmup --dtype float32 --context-length {CONTEXT}"


def _module(name: str) -> Any:
    return importlib.import_module(f"{_SRT}.{name}")


class Held:
    """A grammar compiled by SGLang."""

    def __init__(self, grammar: Any, size: int) -> None:
        self._grammar, self._bits = grammar, grammar.allocate_vocab_mask(size, 1, "cpu")

    def mask(self, scores: Any) -> None:
        """Mask the tokens that the grammar doesn't allow."""
        self._grammar.fill_vocab_mask(self._bits, 0)
        self._grammar.apply_vocab_mask(scores.unsqueeze(0), self._bits)

    def take(self, token: int) -> bool:
        """Accept a token."""
        self._grammar.accept_token(token)
        return bool(self._grammar.is_terminated())


class Scheduler:
    """A fake of the scheduler for SGLang's other processes. It generates one answer after the other."""

    def __init__(self, file: Path, server: Any, ports: Any) -> None:
        self._core = Core(file)
        self._batch, self._io = _module("managers.schedule_batch"), _module("managers.io_struct")
        self._tokenizer = _module("utils.hf_transformers_utils").get_tokenizer(server.model_path)
        self._size = len(self._tokenizer)
        self._ends = {self._tokenizer.eos_token_id}
        self._grammars = _module("constrained.xgrammar_backend").XGrammarGrammarBackend(
            self._tokenizer,
            self._size,
            model_eos_token_ids=list(self._ends),
            any_whitespace=not server.constrained_json_disable_any_whitespace,
        )
        components = "managers.scheduler_components"
        self._channels = _module(f"{components}.ipc_channels").SchedulerIpcChannels.create(
            port_args=ports, is_rank_zero=True, skip_tokenizer_init=False, metrics_enabled=False, enable_scripted_runtime=False
        )  # fmt: skip
        self._sent = _module(f"{components}.output_streamer").SchedulerOutputStreamer(
            send_to_detokenizer=self._channels.send_to_detokenizer,
            tree_cache=SimpleNamespace(),
            server_args=server,
            is_generation=True,
            spec_algorithm=_module("speculative.spec_info").SpeculativeAlgorithm.NONE,
            disaggregation_mode=_module("disaggregation.utils").DisaggregationMode.NULL,
            enable_hicache_storage=lambda: False,
        )
        self._waiting: deque[Any] = deque()

    def run(self) -> None:
        """Answer requests until the process is stopped."""
        while True:
            self._receive(wait=not self._waiting)
            if self._waiting:
                request = self._waiting[0]
                try:
                    for token in self._tokens(request):
                        self._add(request, token)
                        self._receive(wait=False)
                        if request.finished():
                            break
                # SGLang's own scheduler also stops a request whose grammar doesn't compile.
                except ValueError as error:
                    request.finished_reason = self._batch.FINISH_ABORT(str(error), 400, "BadRequestError")
                    self._sent.stream_output([request], False)
                self._waiting.popleft()

    def _receive(self, *, wait: bool) -> None:
        """Receive pending requests; wait for one if the scheduler is idle."""
        socket = self._channels.recv_from_tokenizer
        while socket.poll(None if wait else 0):
            self._take(self._io.sock_recv(socket))
            wait = False

    def _take(self, said: Any) -> None:
        kind = type(said).__name__
        if kind == "TokenizedGenerateReqInput":
            self._waiting.append(self._request(said))
        elif kind == "BatchTokenizedGenerateReqInput":
            self._waiting += [self._request(one) for one in said.batch]
        elif kind == "AbortReq":
            for one in self._waiting:
                if said.abort_all or one.rid.startswith(said.rid):
                    one.to_finish = self._batch.FINISH_ABORT()
        elif kind == "GetInternalStateReq":
            state = self._io.GetInternalStateReqOutput(internal_state={})
            self._channels.send_to_tokenizer.send_output(state, said)

    def _request(self, said: Any) -> Any:
        asked = said.sampling_params
        room = CONTEXT - len(said.input_ids) - 1
        asked.max_new_tokens = room if asked.max_new_tokens is None else min(asked.max_new_tokens, room)
        request = self._batch.Req(
            said.rid, said.input_text, said.input_ids, asked, return_logprob=said.return_logprob,
            top_logprobs_num=said.top_logprobs_num, stream=said.stream, eos_token_ids=self._ends,
            vocab_size=self._size, http_worker_ipc=said.http_worker_ipc, time_stats=said.time_stats,
        )  # fmt: skip
        request.tokenizer = self._tokenizer
        return request

    def _tokens(self, request: Any) -> Iterator[Token]:
        asked = request.sampling_params
        kinds = {"json": "json_schema"} | {kind: kind for kind in ("structural_tag", "ebnf", "regex")}
        texts = ((kind, getattr(asked, name)) for kind, name in kinds.items())
        key = next(((kind, text) for kind, text in texts if text is not None), None)
        wanted = Wanted(
            prompt=tuple(request.origin_input_ids),
            limit=asked.max_new_tokens or 1,  # For `n`, SGLang first sends a limit of 0.
            temperature=0 if asked.top_k == 1 else asked.temperature,  # `top_k=1` is SGLang's temperature 0.
            seed=asked.sampling_seed or 0,
            ends=frozenset(self._ends | set(asked.stop_token_ids or ())),
            grammar=key,
        )
        return self._core.answer(wanted, lambda: self._held(key) if key else None, scored=request.return_logprob)

    def _held(self, key: tuple[str, str]) -> Held:
        grammar = self._grammars._init_value_dispatch(key, False)
        if wrong := getattr(grammar, "error_message", ""):
            raise ValueError(f"Failed to compile {key[0]} grammar: {wrong}")
        return Held(grammar, self._size)

    def _add(self, request: Any, token: Token) -> None:
        request.output_ids.append(token.id)
        if request.return_logprob:
            told, top = request.logprob, request.logprob.top_logprobs_num
            told.output_token_logprobs_val.append(float(token.scores[token.id]))
            told.output_token_logprobs_idx.append(token.id)
            best = token.scores.topk(top)
            told.output_top_logprobs_val.append(best.values.tolist())
            told.output_top_logprobs_idx.append(best.indices.tolist())
        request.update_finish_state()
        if token.finish == "stop" and not request.finished():
            request.finished_reason = self._batch.FINISH_MATCHED_TOKEN(matched=token.id)
        self._sent.stream_output([request], request.return_logprob)


def schedule(server: Any, ports: Any, gpu: int, _tp: int, _pp: int, rank: int | None, pipe: Any, **_: Any) -> None:
    """Run in the scheduler's process."""
    context = _module("runtime_context")
    context.publish(server, role="scheduler", ranks=context.SpawnRanks(world_rank=0, dp_rank=rank, gpu_id=gpu))
    scheduler = Scheduler(Path(sys.argv[1]), server, ports)
    told: Mapping[str, Any] = {"status": "ready", "startup_time": 0.0}
    pipe.send({**told, "max_total_num_tokens": CONTEXT, "max_req_input_len": CONTEXT - 2})
    scheduler.run()


def main(file: str, *options: str) -> None:
    """Run the server until the process is stopped."""
    _module("plugins").load_plugins()
    with tempfile.TemporaryDirectory() as folder:
        model = ["--model-path", str(folder_of(Path(file), Path(folder))), *_SAID.split()]
        args = _module("server_args").prepare_server_args([*model, *options])
        _module("entrypoints.http_server").launch_server(args, run_scheduler_process_func=schedule)


if __name__ == "__main__":
    main(*sys.argv[1:])
