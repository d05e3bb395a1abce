"""A gateway on a socket in front of an engine with known answers, for the clients in this folder."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping

import pytest
from engines import installed
from serving import CALL, Told, chunked, template

from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import TurnFactory
from unrender.gateway.backends import EngineCapabilities, EngineError, Job
from unrender.gateway.serve import listener, server

collect_ignore = [] if all(map(installed, ("pydantic_ai", "litellm"))) else ["test_clients.py", "test_proxy.py"]


def said(job: Job) -> Iterable[str | EngineError]:
    """Return the model's answer.

    It has reasoning, then a call of `get_weather` if the question is about rain, then an answer from the result. If the
    request forces a call or a schema, the answer is that call or JSON.
    """
    prompt, request = job.turn.prompt, job.turn.request
    schema = request.response_schema if isinstance(request.response_schema, Mapping) else {}
    thought = "" if job.turn.prefill else "<think>\nHm.\n</think>\n"
    if "too long" in prompt:
        return [EngineError("The prompt (total length 9999) is too long to fit into the model", status=400)]
    if "wet in Paris" in prompt:
        text = f"{thought}It rains.<|end|>"
    elif "Rain?" in prompt and request.tool("get_weather"):
        text = f"{thought}{CALL}<|end|>"
    # If the schema allows any object, only the question shows which one is expected.
    elif "properties" in schema or request.tool_choice in ("required", "named"):
        text = job.turn.sample(7)
    elif "Who?" in prompt:
        text = thought + json.dumps({"person": {"name": "Ada", "age": 36, "tags": []}}) + "<|end|>"
    else:
        text = f"{thought}Hello there, ünïcödé.<|end|>"
    return chunked(text, 5)


@pytest.fixture(scope="session")
def engine() -> Told:
    """Return the engine, which records its jobs."""
    return Told(said, capabilities=EngineCapabilities(seed=False, obeys=True))


@pytest.fixture(scope="session")
def address(engine: Told) -> Iterator[str]:
    """Run a gateway in a thread, and return its address."""
    model = Model(name="small", turns=TurnFactory(template=template()), backend=engine, aliases=("m",))
    running, listens = server(app([model])), listener("127.0.0.1", 0)
    thread = threading.Thread(target=running.run, args=([listens],), daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listens.getsockname()[1]}"
    running.should_exit = True
    thread.join(10)


@pytest.fixture(autouse=True)
def no_defect(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that the gateway logs no defect."""
    yield
    found = [
        one.message
        for one in caplog.get_records("call")
        if one.name.startswith("unrender") and one.levelno >= logging.ERROR
    ]
    assert not found
