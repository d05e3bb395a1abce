"""Tests of each engine on a real socket: requests, answers and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from engine_server import MAKERS, EngineServer, Scripted, pieces_of, read_request, with_engine
from serving import HELLO, RED, SHOWING, TOOL, corpus, template

from unrender.gateway.backends import IMAGE, Backend, EngineError, EngineGrammar, Job

TEXTS = ("Hé", "llo ", "😀")


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


TURN = template().prepare(HELLO, tools=[TOOL])


PARTS = [
    {"type": "text", "text": "Which is"},
    {"type": "image_url", "image_url": {"url": RED}},
    {"type": "text", "text": " or?"},
]
SHOWN = SHOWING.prepare([{"role": "user", "content": PARTS}])
MARKED = replace(SHOWN, prompt=SHOWN.prompt.replace("<|vision|>", IMAGE))
TURNS = {"": TURN, "shown": SHOWN, "marked": MARKED}
"""Turns without an image, and with the template's own placeholder or the gateway's."""


def job(**more: Any) -> Job:
    return Job(**{"turn": TURN, "request_id": "r1", "headers": {"traceparent": "t"}, **more})


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
@pytest.mark.parametrize("before", [[], [b"\xef", 0.01, b"\xbb\xbf"]], ids=["", "mark"])
def test_answer_is_whole(kind, size, before):
    """The pieces add up to the text, and the engine's counts arrive, however the network splits the bytes. A byte order mark is skipped."""
    cut = [kind.answer[at : at + size] for at in range(0, len(kind.answer), size)]

    _, pieces = generated(kind, [*before, *cut])

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
    `lacks` is a word that no request contains. `texts` are those of the pieces, `scored` the tokens with log probabilities, and `first` is the first of them.
    """
    kind = KINDS[row["engine"]]
    given = {name: row.get(name, getattr(kind, name)) for name in ("path", "others")}
    kind = replace(kind, make=MAKERS[row.get("client", row["engine"])], **given)
    more: dict[str, Any] = {"turn": TURNS[row.get("image", "")]}
    more |= {"grammar": EngineGrammar(dialect="structural_tag", text="{}")} if row.get("tag") else {}
    theirs, ours = row.get("instead", ("", ""))
    said = row.get("answer", kind.answer.decode().replace(theirs, ours))
    said = [said] if isinstance(said, str) else said
    said = (
        [part.encode(errors="surrogateescape") if isinstance(part, str) else part for part in said]
        if isinstance(said, list)
        else said
    )
    server = {name: row[name] for name in ("status", "idle_timeout") if name in row}

    engine, pieces = generated(kind, said, work=job(**row.get("job", {}), **more), **server)

    requests = [(body, headers) for path, body, headers in engine.asked if path == kind.path]
    assert len(requests) == row.get("requests", 1)
    for body, headers in requests:
        assert headers.items() >= {"authorization": "Bearer secret", "traceparent": "t"}.items()
        for name, value in row.get("body", {}).items():
            assert body[name] == value or body[name].items() >= value.items()
        assert row.get("lacks", "nothing") not in str(body)
    if "error" in row:
        (error,) = pieces
        assert {name: getattr(error, name) for name in row["error"]} == row["error"]
        assert row.get("hidden", "its secret") not in str(error)
        return
    scores = [score for piece in pieces for score in piece.logprobs]
    assert [piece.finish for piece in pieces if piece.finish] == [row.get("finish", "stop")]
    assert [piece.text for piece in pieces if piece.text or piece.logprobs] == row.get("texts", list(TEXTS))
    assert [score["token"] for score in scores] == row.get("scored", [])
    assert scores[:1] == row.get("first", [])


def test_llama_server_is_given_triggers():
    """Marker tokens are preserved, and a lazy grammar has its triggers."""
    grammar = EngineGrammar(dialect="gbnf", text="root ::= x", triggers=TURN.constraint("llama.cpp").triggers)
    engine, _ = generated(KINDS["llama-server"], work=job(grammar=grammar))
    body = engine.asked[-1][1]

    assert body["prompt"] == TURN.prompt
    assert set(TURN.preserved_tokens) == set(body["preserved_tokens"])
    assert (body["grammar"], body["grammar_lazy"]) == ("root ::= x", True)
    assert body["grammar_triggers"] == [{"type": 2, "value": TURN.constraint("llama.cpp").triggers[0].value}]


def test_template_comes_from_llama_server():
    """llama-server provides its template and its tokens."""
    props = {"chat_template": "{{ bos_token }}x", "bos_token": "<s>", "eos_token": "</s>"}
    loaded = with_engine(MAKERS["llama-server"], {"/props": props}, lambda backend, _: backend.templates())

    assert (loaded.default, loaded.bos_token, loaded.eos_token) == ("{{ bos_token }}x", "<s>", "</s>")


def test_engines_differ():
    """Engines that can count tokens do, and the others return None. Only some accept images."""
    answers = {"/tokenize": {"tokens": [1, 2, 3], "count": 4}, "/v1/models": {"data": [{"id": "m"}]}}
    counts = [with_engine(make, answers, lambda backend, _: backend.count("text")) for make in MAKERS.values()]

    assert counts == [3, 4, None, 4, None]
    assert [make(Scripted()).capabilities.images for make in MAKERS.values()] == ["marked", "shown", "", "shown", ""]


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
                path, *_ = await read_request(reader)
            except asyncio.IncompleteReadError:
                break
            self.jobs += path == "/completion"
            said = KINDS["llama-server"].answer if path == "/completion" else b'{"tokens": []}'
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
