"""Probes of engines: results, consequences, and reports."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from cases import beside
from serving import HELLO, TOOL, Told, asked, posted, template

from unrender import ChatTemplate
from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import ModelSettings, TurnFactory
from unrender.gateway.backends import EngineCapabilities, EngineError, OutputPiece
from unrender.openai import Usage

CONSTRAINED = EngineCapabilities(dialect="structural_tag", sampling=frozenset({"temperature"}))


def engine(*, holds=True, doubles=False, end="", capabilities=CONSTRAINED, fails=None):
    """Return an engine that may ignore a grammar or add a first token."""

    def answer(job):
        if fails is not None:
            return [fails]
        text = "Hello there"
        if job.grammar is not None and holds:
            text = json.loads(job.grammar.text)["format"].get("value", text)
        usage = Usage(prompt_tokens=len(job.turn.prompt.split()) + doubles, completion_tokens=2)
        return [OutputPiece(text + end), OutputPiece("", 0, "stop", usage)]

    return Told(answer, capabilities=capabilities)


def model(engine):
    template = ChatTemplate.from_string(beside(__file__, "probed.jinja"), bos_token="<s>")
    return Model(name="m", turns=TurnFactory(template=template, settings=ModelSettings(probe=True)), backend=engine)


ENGINES = {
    "good": ({}, {"grammar": True, "adds_bos": False}),
    "writes the end": ({"end": "<|end|>"}, {"grammar": True, "adds_bos": False}),
    "disregards": ({"holds": False}, {"grammar": False, "adds_bos": False}),
    "doubles": ({"doubles": True}, {"grammar": True, "adds_bos": True}),
    "without grammars": ({"capabilities": EngineCapabilities()}, {"grammar": None, "adds_bos": False}),
    "refuses": ({"fails": EngineError("refused", status=400)}, {"grammar": False, "adds_bos": None}),
}


@pytest.mark.parametrize(("how", "found"), ENGINES.values(), ids=ENGINES)
def test_engine_is_found_out(how, found, caplog):
    """`/ready` and the log contain the results of the probe. An engine is probed once."""
    probed = engine(**how)
    application = app([model(probed)])
    with caplog.at_level(logging.WARNING, "unrender.gateway"):
        first = asked(application, "GET", "/ready").json()["findings"]["m"]
    tries = len(probed.jobs)
    second = asked(application, "GET", "/ready").json()["findings"]["m"]

    said = first.pop("warnings")
    assert first == found
    assert second == first | {"warnings": said}
    assert len(probed.jobs) == tries > 0
    assert [record.getMessage() for record in caplog.records] == [f"m: {sentence}" for sentence in said]
    assert bool(said) == (found != {"grammar": True, "adds_bos": False})


def test_findings_are_acted_upon():
    """An engine that ignores grammars gets none, with a warning. One that adds the first token gets prompts without it."""
    loose, doubling = model(engine(holds=False)), model(engine(doubles=True))

    def again(one):
        request = {"messages": HELLO, "tools": [TOOL], "tool_choice": "required"}
        posted(app([one]), "/v1/chat/completions", json=request)
        asyncio.run(one.probe())
        return posted(app([one]), "/v1/chat/completions", json=request).json()

    after = again(loose)
    assert loose.backend.jobs[0].grammar is not None
    assert loose.backend.jobs[-1].grammar is None
    assert after["warnings"][0] == "tool_choice: not enforced, since the engine uses no grammar"
    again(doubling)
    assert doubling.backend.jobs[0].turn.prompt.startswith("<s><|user|>")
    assert doubling.backend.jobs[-1].turn.prompt.startswith("<|user|>")


def test_engine_that_is_not_there_is_tried_later():
    """An unreachable engine leaves everything unknown, and is probed again."""
    silent = engine(fails=EngineError("refused"))
    one = model(silent)

    asyncio.run(one.probe())
    assert (one.found.tried, one.found.grammar) == (False, None)
    silent.said = engine().said
    asyncio.run(one.probe())
    assert one.found.grammar is True


def test_one_dead_engine_of_two_leaves_the_gateway_ready():
    """The gateway is ready if any engine is. The body and a metric contain the state of each engine."""

    class Dead(Told):
        async def ready(self):
            return "the engine cannot be reached"

    def state(*engines):
        turns = TurnFactory(template=template())
        models = [Model(name=f"m{i}", turns=turns, backend=engine) for i, engine in enumerate(engines)]
        application = app(models)
        answer, metrics = asked(application, "GET", "/ready"), asked(application, "GET", "/metrics").text
        return answer.status_code, answer.json()["status"], answer.json()["engines"], metrics

    code, status, engines, metrics = state(Told("Hi"), Dead("Hi"))
    assert (code, status, engines) == (200, "partly ready", {"m0": "ready", "m1": "not ready"})
    assert 'unrender_engine_ready{model="m0"} 1.0' in metrics
    assert 'unrender_engine_ready{model="m1"} 0.0' in metrics
    assert state(Dead("Hi"))[:2] == (503, "not ready")
    assert state(Told("Hi"))[:2] == (200, "ready")
