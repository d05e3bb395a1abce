"""A gateway on a socket, before an engine whose answers are known: what the clients of this folder are run against."""

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
from unrender.gateway.answers.turns import Turns
from unrender.gateway.backends.backend import EngineCapabilities, EngineError, Job
from unrender.gateway.serve import listener, server

collect_ignore = [] if all(map(installed, ("pydantic_ai", "litellm"))) else ["test_clients.py", "test_proxy.py"]


def said(job: Job) -> Iterable[str | EngineError]:
    """Return what a model says that thinks, calls `get_weather` when it is asked about rain, and tells what it learnt; else, what the
    request forces it to.
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
    # Of an object that may hold anything, the question alone says what.
    elif "properties" in schema or request.tool_choice in ("required", "named"):
        text = job.turn.sample(7)
    elif "Who?" in prompt:
        text = thought + json.dumps({"person": {"name": "Ada", "age": 36, "tags": []}}) + "<|end|>"
    else:
        text = f"{thought}Hello there, ünïcödé.<|end|>"
    return chunked(text, 5)


@pytest.fixture(scope="session")
def engine() -> Told:
    """Return the engine, which keeps its jobs."""
    return Told(said, capabilities=EngineCapabilities(seed=False, obeys=True))


@pytest.fixture(scope="session")
def address(engine: Told) -> Iterator[str]:
    """Run a gateway in a thread, and return where it listens."""
    model = Model(name="small", turns=Turns(template=template()), backend=engine, aliases=("m",))
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
    """See that the gateway logs no defect."""
    yield
    found = [
        one.message
        for one in caplog.get_records("call")
        if one.name.startswith("unrender") and one.levelno >= logging.ERROR
    ]
    assert not found
