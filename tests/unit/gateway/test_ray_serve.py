"""Tests of the gateway in Ray Serve. Two replicas stream all three APIs, with the same answer for the same seed.

These tests run only if Ray Serve is installed (`python3 scripts/run.py tables`).
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

ray = pytest.importorskip("ray")
serve = pytest.importorskip("ray.serve")

CHAT = "/v1/chat/completions"
TURN = [{"role": "user", "content": "Hello"}]
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    CHAT: ({"messages": TURN, "seed": 3}, "data: [DONE]"),
    "/v1/responses": ({"input": "Hello"}, "response.completed"),
    "/v1/messages": ({"messages": TURN, "max_tokens": 100}, "message_stop"),
}
"""Requests, and the ends of their streams."""


def gateway() -> Any:
    """Return the application. Each replica calls this, because an engine's connections can't be pickled."""
    from unrender.gateway import app  # noqa: PLC0415 - in the replica
    from unrender.gateway.config import read  # noqa: PLC0415

    return app(read({"models": [{"name": "m"}]}).models)


@pytest.fixture(scope="module", autouse=True)
def replicas() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    deployment = serve.deployment(serve.ingress(gateway)(), num_replicas=2, ray_actor_options={"num_cpus": 0.2})
    serve.run(deployment.bind(), route_prefix="/llm")
    yield
    serve.shutdown()
    ray.shutdown()


def answer(path: str, **more: Any) -> str:
    data = json.dumps(ASKED[path][0] | more).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:8000/llm{path}", data)) as found:
        return str(found.read(), "utf-8")


@pytest.mark.parametrize("path", ASKED)
def test_an_answer_streams_to_its_end(path: str) -> None:
    """Each API's stream ends as its clients expect."""
    assert ASKED[path][1] in answer(path, stream=True)


def test_replicas_say_the_same_for_a_seed() -> None:
    """Six equal requests get the same choices from any replica."""
    assert len({str(json.loads(answer(CHAT))["choices"]) for _ in range(6)}) == 1
