"""Tests of malformed answers from engines. The result is always pieces of the right types, or an `EngineError`."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from engine_server import Scripted, pieces_of

from unrender.gateway.backends import EngineError, OutputPiece
from unrender.openai import Usage

from .test_engines import KINDS, ROWS, Kind, job

WRONG: list[Any] = [
    None, 5, -1, 10**400, 1e308, True, "", "x", "length", "\ud800", [], {}, [5], [None], [[]], [{}], ["x"], {"x": 1},
    float("nan"), float("inf"), {"message": [1]}, {"type": 5}, {"type": "abort"},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in JSON, starting with the root."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    """Return JSON with the value at a path replaced."""
    if not path:
        return wrong
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], wrong)
    return copy


def damaged(value: Any) -> Iterator[Any]:
    """Yield JSON with every wrong value at every place."""
    for place in places(value):
        for wrong in WRONG:
            yield put(value, place, wrong)


def frames(name: str, kind: Kind) -> list[Any]:
    """Return the JSON of an answer's lines, after one with log probabilities."""
    lines = [line.removeprefix(b"data: ") for line in kind.answer.split(b"\n")]
    return [ROWS[name]["scored"], *(json.loads(line) for line in lines if line[:1] == b"{")]


def written(name: str, items: list[Any]) -> bytes:
    """Return JSON in the engine's notation."""
    if name == "ollama":
        return b"".join(json.dumps(item).encode() + b"\n" for item in items)
    return b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in items) + b"data: [DONE]\n\n"


async def came(kind: Kind, said: bytes, others: dict[str, Any] | None = None) -> list[OutputPiece | EngineError]:
    """Return the pieces, and the error that ended them."""
    parts = [said[at : at + 50] for at in range(0, len(said), 50)]
    return await pieces_of(kind.make(Scripted(parts, kind.others if others is None else others)), job(logprobs=2))


def check_types(found: list[OutputPiece | EngineError]) -> None:
    """Check the types of all pieces."""
    for item in found:
        if isinstance(item, EngineError):
            continue
        assert isinstance(item.text, str)
        assert isinstance(item.tokens, int)
        assert item.finish in (None, "stop", "length")
        assert item.usage is None or isinstance(item.usage, Usage)
        assert item.usage is None or 0 <= item.usage.prompt_tokens < 10**12
        for token in item.logprobs:
            json.dumps(token, allow_nan=False)
            assert isinstance(token["token"], str)
            assert isinstance(token["logprob"], float | int)


@pytest.mark.parametrize("name", KINDS)
def test_wrong_value_at_any_place_is_an_error_or_nothing(name):
    """A wrong value at any place of any frame gives pieces of the right types, or an `EngineError`."""
    kind = KINDS[name]
    items = frames(name, kind)

    async def run():
        for i, item in enumerate(items):
            for wrong in damaged(item):
                check_types(await came(kind, written(name, [*items[:i], wrong, *items[i + 1 :]])))

    asyncio.run(run())


@pytest.mark.parametrize("name", KINDS)
def test_wrong_answer_of_another_path_is_an_error_or_nothing(name):
    """The same applies to the engine's answers about its models, tokens and settings."""
    kind = KINDS[name]
    known = {
        "/props": {"bos_token": "<s>"},
        "/tokenize": {"tokens": [{"id": 1, "piece": "<s>"}], "count": 1},
        **kind.others,
    }

    async def run():
        for path, value in known.items():
            for wrong in damaged(value):
                check_types(await came(kind, kind.answer, {**known, path: wrong}))

    asyncio.run(run())


@pytest.mark.parametrize("name", KINDS)
def test_bytes_that_were_changed_are_an_error_or_text(name):
    """Bytes that are changed, lost or duplicated, and endless lines, raise only `EngineError`."""
    kind, draw = KINDS[name], random.Random(5)

    async def run():
        for _ in range(400):
            data = bytearray(kind.answer)
            for _ in range(draw.randrange(1, 4)):
                at = draw.randrange(len(data))
                data[at : at + draw.choice([0, 1, 9])] = draw.choice(
                    [b"", b"\xff", b'"', b"\n", b"{", b"1e999", b"\x00"]
                )
            check_types(await came(kind, bytes(data)))
        deep = b"data: " + b"[" * 100_000 + b"\n\n"
        long = b"data: " + b"x" * 8_000_100
        html = b"<html>\n<body>502</body>\n</html>\n"
        for said in (deep, deep.removeprefix(b"data: "), long, html, b"\n" * 1000, b"data:\n\n", b"data: null\n\n"):
            assert isinstance((await came(kind, said))[-1], EngineError), said[:20]

    asyncio.run(run())
