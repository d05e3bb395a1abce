"""Tests of each engine on a real socket: requests, answers and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from engine_server import MAKERS, EngineServer, events, pieces_of, with_engine
from serving import HELLO, TOOL, browser, corpus, openai_client, served, template

from unrender.gateway.backends import Backend, EngineError, EngineGrammar, Job

TEXTS = ("Hé", "llo ", "😀")
LAST = {"content": "", "stop": True, "stop_type": "eos", "tokens_evaluated": 7, "tokens_predicted": 3}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engine: its constructor, its path, `TEXTS` in its own form, and its other answers."""

    make: Callable[..., Backend]
    path: str
    answer: bytes
    others: dict[str, Any]
    counts_cached: bool = True


ROWS = {row["name"]: row for row in corpus("engines")}
KINDS = {
    name: Kind(MAKERS[name], row["path"], row["answer"].encode(), row["others"], row["counts_cached"])
    for name, row in ROWS.items()
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def sglang(text: str, tokens: int, finish: Any = None) -> dict[str, Any]:
    meta = {"completion_tokens": tokens, "prompt_tokens": 7, "cached_tokens": 2, "finish_reason": finish}
    return {"text": text, "meta_info": meta}


TURN = template().prepare(HELLO, tools=[TOOL])


def job(**more: Any) -> Job:
    return Job(turn=TURN, request_id="r1", headers={"traceparent": "t"}, **more)


def generated(
    kind: Kind, said: Any = None, *, work: Job | None = None, **server: Any
) -> tuple[EngineServer, list[Any]]:
    """Return the engine, and the pieces or the error from a job."""

    async def act(backend: Backend, engine: EngineServer) -> tuple[EngineServer, list[Any]]:
        return engine, await pieces_of(backend, work or job())

    answers = {**kind.others, kind.path: [kind.answer] if said is None else said}
    return with_engine(partial(kind.make, key="secret"), answers, act, **server)  # type: ignore[no-any-return]


@each_kind
@pytest.mark.parametrize("size", [2, 10_000])
def test_answer_is_whole(kind, size):
    """The pieces add up to the text, and the engine's counts arrive, however the network splits the bytes."""
    cut = [kind.answer[at : at + size] for at in range(0, len(kind.answer), size)]

    _, pieces = generated(kind, cut)

    assert "".join(piece.text for piece in pieces) == "".join(TEXTS)
    assert sum(piece.tokens for piece in pieces) == 3
    assert [piece.finish for piece in pieces if piece.finish] == ["stop"]
    (usage,) = [piece.usage for piece in pieces if piece.usage]
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 3)
    assert usage.cached_tokens == 2 or not kind.counts_cached


@each_kind
def test_answer_that_is_cut_is_an_error(kind):
    """A truncated answer is an error, even if the connection was closed properly."""
    last_word = kind.answer.rindex(b'"stop"}]}' if kind.path == "/v1/completions" else b"}")
    cuts = {*range(0, last_word, 37), *range(last_word - 15, last_word + 1)}

    for end in cuts:
        _, (*before, error) = generated(kind, [kind.answer[:end]])
        assert isinstance(error, EngineError)
        assert "".join(TEXTS).startswith("".join(piece.text for piece in before))


@pytest.mark.parametrize("kind", [KINDS["vllm"], MAKERS["openai"]], ids=["vllm", "openai"])
def test_complete_answer_needs_no_final_event(kind):
    """An answer with a finish reason is complete, even if the stream ends without `[DONE]` or without usage."""
    own = replace(KINDS["vllm"], make=kind) if callable(kind) else kind
    for end in (b"data: [DONE]", b'data: {"choices": [], "usage"'):
        _, pieces = generated(own, [own.answer.partition(end)[0]])

        assert "".join(piece.text for piece in pieces) == "".join(TEXTS)
        assert [piece.finish for piece in pieces if piece.finish] == ["stop"]


@each_kind
def test_byte_order_mark_is_skipped(kind):
    """A byte order mark before the first event is skipped, even if it arrives in several reads."""
    _, pieces = generated(kind, [b"\xef", 0.01, b"\xbb\xbf" + kind.answer])

    assert "".join(piece.text for piece in pieces) == "".join(TEXTS)


@each_kind
@pytest.mark.parametrize(("status", "transient"), [(500, False), (503, True), (400, False)])
def test_refusal_is_an_error_with_the_engines_words(kind, status, transient):
    """A status that isn't a success is an error with the engine's message. Some errors are transient."""

    async def refused(backend, _):
        backend._bos, backend._model, backend._incremental = "", "its-name", False  # nothing else is asked
        return await pieces_of(backend, job())

    (error,) = with_engine(kind.make, {kind.path: {"error": {"message": "too long"}}}, refused, status=status)
    assert (error.status, error.transient, "too long" in error.message) == (status, transient, True)


@each_kind
def test_engine_that_is_not_there_is_an_error_that_may_pass(kind):
    """An unreachable engine is a transient error, so the same job may be sent again."""

    async def asked(backend: Any, engine: EngineServer) -> Any:
        engine._server.close()
        return await backend.ready(), await pieces_of(backend, job())

    ready, (error,) = with_engine(kind.make, {}, asked)
    assert "cannot be reached" in ready
    assert ("cannot be reached" in error.message, error.transient) == (True, True)


@pytest.mark.parametrize("row", corpus("jobs"), ids=lambda row: row["says"])
def test_job(row):
    """An engine gets the request of its row, and its answer becomes pieces or an error.

    A request keeps special tokens, sets all defaults, avoids the engine's own limit, and contains the grammar. Errors show no keys.
    """
    kind = KINDS[row["engine"]]
    kind = replace(kind, make=MAKERS[row.get("client", row["engine"])], others=row.get("others", kind.others))
    grammar = {"grammar": EngineGrammar(dialect="structural_tag", text="{}")} if row.get("tag") else {}
    theirs, ours = row.get("instead", ("", ""))
    said = row.get("answer", [kind.answer.replace(theirs.encode(), ours.encode())])
    said = [said.encode()] if isinstance(said, str) else said

    engine, pieces = generated(kind, said, work=job(**row.get("job", {}), **grammar), status=row.get("status", 200))

    requests = [(body, headers) for path, body, headers in engine.asked if path == kind.path]
    assert len(requests) == row.get("requests", 1)
    for body, headers in requests:
        assert headers.items() >= {"authorization": "Bearer secret", "traceparent": "t"}.items()
        for name, value in row.get("body", {}).items():
            assert body[name] == value or body[name].items() >= value.items()
    if "error" in row:
        (error,) = pieces
        assert {name: getattr(error, name) for name in row["error"]} == row["error"]
        assert row.get("hidden", "its secret") not in str(error)
    else:
        assert [piece.finish for piece in pieces if piece.finish] == [row.get("finish", "stop")]


def test_llama_server_is_given_triggers():
    """Marker tokens are preserved, and a lazy grammar has its triggers."""
    grammar = EngineGrammar(dialect="gbnf", text="root ::= x", triggers=TURN.constraint("llama.cpp").triggers)
    engine, _ = generated(KINDS["llama-server"], work=job(grammar=grammar))
    body = engine.asked[-1][1]

    assert body["prompt"] == TURN.prompt
    assert set(TURN.preserved_tokens) == set(body["preserved_tokens"])
    assert (body["grammar"], body["grammar_lazy"]) == ("root ::= x", True)
    assert body["grammar_triggers"] == [{"type": 2, "value": TURN.constraint("llama.cpp").triggers[0].value}]


def sglang_scored(*texts: str) -> dict[str, Any]:
    """Return SGLang's scores of tokens, each with two alternatives."""
    rows = [[-0.5, 7, text] for text in texts]
    return {"output_token_logprobs": rows, "output_top_logprobs": [[row, [-1.5, 8, "x"]] for row in rows]}


@pytest.mark.parametrize("incremental", [False, True])
def test_sglang_scores_each_token_once(incremental):
    """Cumulative and incremental frames give the same scores. A token with half a character comes before its text."""
    kind = KINDS["sglang"]
    frames = [sglang("a", 1), sglang("a\ufffd", 2), sglang("aé", 3), sglang("aé", 4, {"type": "stop", "matched": 2})]
    scores = [["a"], ["a", "\ufffd"], ["a", "\ufffd", "\ufffd"], ["a", "\ufffd", "\ufffd", ""]]
    if incremental:
        frames = [frame | {"text": text} for frame, text in zip(frames, ("a", "", "é", ""), strict=True)]
        scores = [now[before:] for before, now in enumerate(scores)]
    for frame, texts in zip(frames, scores, strict=True):
        frame["meta_info"] |= sglang_scored(*texts)
    others = {"/get_server_info": {"incremental_streaming_output": incremental}}

    engine, pieces = generated(replace(kind, answer=events(*frames), others=others), work=job(logprobs=1))

    body = next(body for path, body, _ in engine.asked if path == kind.path)
    assert (body["return_logprob"], body["top_logprobs_num"], body["return_text_in_logprobs"]) == (True, 1, True)
    assert pieces[-1].finish == "stop"
    told = [(piece.text, [token["token"] for token in piece.logprobs]) for piece in pieces]
    assert told == [("a", ["a"]), ("", ["\ufffd"]), ("é", ["\ufffd"]), ("", [""])]
    first = {"token": "a", "logprob": -0.5, "bytes": [97]}
    assert pieces[0].logprobs == (first | {"top_logprobs": [first]},)


def test_template_comes_from_llama_server():
    """llama-server provides its template and its tokens."""
    props = {"chat_template": "{{ bos_token }}x", "bos_token": "<s>", "eos_token": "</s>"}
    loaded = with_engine(MAKERS["llama-server"], {"/props": props}, lambda backend, _: backend.templates())

    assert (loaded.default, loaded.bos_token, loaded.eos_token) == ("{{ bos_token }}x", "<s>", "</s>")


def test_tokens_are_counted():
    """Engines that can count do, and the others return None."""
    answers = {"/tokenize": {"tokens": [1, 2, 3], "count": 4}, "/v1/models": {"data": [{"id": "m"}]}}
    counts = [with_engine(make, answers, lambda backend, _: backend.count("text")) for make in MAKERS.values()]

    assert counts == [3, 4, None, 4, None]


def test_log_probabilities_take_one_form():
    """Log probabilities of llama-server and vLLM have the form of chat completions."""
    llama, vllm = KINDS["llama-server"], KINDS["vllm"]
    token = {"id": 1, "token": "Hi", "logprob": -0.5, "bytes": [72, 105]}
    other = {"id": 2, "token": "Ho", "logprob": -1.5, "bytes": [72, 111]}
    first = {"content": "Hi", "stop": False, "completion_probabilities": [token | {"top_logprobs": [token, other]}]}
    answers = (
        (llama, events(first, LAST, done=False)),
        (vllm, events({"choices": [{"text": "Hi", "finish_reason": "stop", "logprobs": {
            "tokens": ["Hi"], "token_logprobs": [-0.5], "top_logprobs": [{"Hi": -0.5, "Ho": -1.5}]}}]})),
    )  # fmt: skip

    for kind, answer in answers:
        _, pieces = generated(replace(kind, answer=answer), work=job(logprobs=2))
        (found,) = [logprob for piece in pieces for logprob in piece.logprobs]
        assert (found["token"], found["logprob"], found["bytes"]) == ("Hi", -0.5, [72, 105])
        assert [item["token"] for item in found["top_logprobs"]] == ["Hi", "Ho"]


@each_kind
def test_client_gets_the_engines_answer(kind):
    """OpenAI's client gets the engine's text and counts, and a broken engine becomes status 502."""

    async def answered(backend, engine):
        application = served(backend)
        client: Any = openai_client(application)
        whole = await client.chat.completions.create(model="m", messages=HELLO, tools=[TOOL])
        engine.answers = {**kind.others, kind.path: [kind.answer[:30]]}
        async with browser(application) as plain:
            return whole, await plain.post("/v1/chat/completions", json={"messages": HELLO})

    whole, broken = with_engine(kind.make, {**kind.others, kind.path: [kind.answer]}, answered)
    assert whole.choices[0].message.content == "".join(TEXTS)
    assert whole.usage.prompt_tokens == 7
    assert broken.status_code == 502
    assert "127.0.0.1" not in broken.text


class Kept:
    """An engine that keeps connections open, and closes each without notice after a number of requests."""

    def __init__(self, requests: int) -> None:
        self.requests = requests
        self.connections = 0
        self.jobs = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests, and drop the first one beyond the limit."""
        self.connections += 1
        for _ in range(self.requests):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            self.jobs += b"/completion" in head
            said = KINDS["llama-server"].answer if b"/completion" in head else b'{"tokens": []}'
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(said), said))
            await writer.drain()
            writer.write(b"0\r\n\r\n")
        else:
            # The client believes that the connection is open until it has sent the next request.
            with suppress(asyncio.IncompleteReadError):
                await reader.readexactly(1)
        writer.close()


@pytest.mark.parametrize(("requests", "connections"), [(100, 1), (2, 5)])
def test_connection_is_used_again(requests, connections):
    """Consecutive jobs share a connection. If it was closed, the job is sent over a new one."""

    async def run():
        engine = Kept(requests)
        async with await asyncio.start_server(engine.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            backend = MAKERS["llama-server"](f"http://127.0.0.1:{port}")
            for _ in range(6):
                async for _piece in backend.generate(job()):
                    pass
            await backend.close()
        return engine

    engine = asyncio.run(run())

    assert engine.jobs == 6
    assert engine.connections <= connections


def test_job_is_not_sent_twice_over_a_new_connection():
    """An engine that crashes on a job over a new connection doesn't get the job again."""
    sent = []

    async def run():
        async def die(reader, writer):
            sent.append(await reader.readuntil(b"\r\n\r\n"))
            writer.close()

        async with await asyncio.start_server(die, "127.0.0.1", 0) as server:
            backend = MAKERS["ollama"](f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            with pytest.raises(EngineError):
                await anext(backend.generate(job()))
            await backend.close()

    asyncio.run(run())

    assert len(sent) == 1
