"""Tests of common mistakes by new users: each error suggests a fix."""

from __future__ import annotations

import pytest
from serving import HELLO, TOOL, Told, asked, posted, served, template

from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import TurnFactory
from unrender.gateway.backends import EngineCapabilities, OutputPiece
from unrender.gateway.backends.llama_server import start
from unrender.gateway.config import read
from unrender.gateway.failure import Failure
from unrender.openai import Usage

CHAT = "/v1/chat/completions"
WRONG_SCHEMA = {"type": "objekt"}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/v1/messages", "did you mean /v1/messages? Check the base URL: /v1 occurs twice"),
        ("/v1/v1/chat/completions", "did you mean /v1/chat/completions? Check the base URL: /v1 occurs twice"),
        ("/chat/completions", "did you mean /v1/chat/completions? Check the base URL: /v1 is missing"),
        ("/messages", "did you mean /v1/messages? Check the base URL: /v1 is missing"),
        ("/api/v1/responses", "did you mean /v1/responses? Check the base URL: /v1 is not at its start"),
        ("/v1/chat/completion", "did you mean /v1/chat/completions?"),
        ("/v1/embeddings", "Not Found"),
    ],
)
def test_wrong_address_names_the_right_one(path, said):
    """The error for an unknown path suggests the right one."""
    answer = posted(served(), path, json={})

    assert answer.status_code == 404
    assert said in str(answer.json())
    assert ("did you mean" in said) == ("did you mean" in str(answer.json()))


def test_root_says_what_this_is():
    """A browser at the root gets a page with the addresses."""
    page = asked(served(), "GET", "/")

    assert page.status_code == 200
    assert "base_url = http://gateway/v1\n" in page.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": WRONG_SCHEMA}}}),
        ("/v1/responses", {"text": {"format": {"type": "json_schema", "name": "a", "schema": WRONG_SCHEMA}}}),
        ("/v1/messages", {"output_config": {"format": {"type": "json_schema", "schema": WRONG_SCHEMA}}}),
        (CHAT, {"tools": [{"type": "function", "function": {"name": "a", "parameters": WRONG_SCHEMA}}]}),
        ("/v1/responses", {"tools": [{"type": "function", "name": "a", "parameters": WRONG_SCHEMA}]}),
        ("/v1/messages", {"tools": [{"name": "a", "input_schema": WRONG_SCHEMA}]}),
    ],
)
@pytest.mark.parametrize("dialect", ["", "gbnf"])
def test_invalid_schema_is_refused(path, body, dialect):
    """An invalid schema of a response format or a tool is an error in every API, with and without grammars."""
    given = {"input": "Hi"} if path.endswith("responses") else {"messages": HELLO, "max_tokens": 99}

    answer = posted(served(Told("Hi", capabilities=EngineCapabilities(dialect=dialect))), path, json=given | body)

    assert answer.status_code == 400
    where = "tools[0].function.parameters" if "tools" in body else "response_format"
    assert f"{where}: invalid schema: #/type: expected one of" in answer.json()["error"]["message"]


def test_misspelt_parameter_names_the_right_one():
    """A warning about an ignored parameter suggests a similar known one."""
    answer = posted(served(), CHAT, json={"messages": HELLO, "max_token": 5, "top_a": 1}).json()

    assert answer["warnings"] == ["max_token (did you mean max_tokens?): not honoured", "top_a: not honoured"]


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("localhost:8080", "did you mean http://localhost:8080?"),
        ("[::1]:8080/v1", "did you mean http://[::1]:8080/v1?"),
        ("example.com", "did you mean http://example.com?"),
        ("chat_template.jinja", "a template is `template` or --model"),
        ("what is this", "found 'what is this'"),
    ],
)
def test_wrong_url_says_what_is_missing(url, hint):
    """The error distinguishes an address without a scheme from a file."""
    with pytest.raises(Failure) as caught:
        read({"models": [{"backend": "llama-server", "url": url}]})

    assert hint in caught.value.message


def test_file_that_is_no_model_is_not_loaded(tmp_path, monkeypatch):
    """A template in place of weights is an error of one sentence, instead of ten lines from llama.cpp."""
    monkeypatch.setattr("unrender.gateway.backends.llama_server.llama_cpp", object)
    (tmp_path / "t.jinja").write_text("{{ messages }}")

    with pytest.raises(Failure, match="expected a GGUF file.*a template is `template` or --model"):
        start(str(tmp_path / "t.jinja"))


def test_small_model_has_a_limit_and_makes_one_call():
    """A model's own limit applies to requests without one, a warning reports the truncation, and there is at most one call."""
    said = ["Hello", OutputPiece("", 0, "length", Usage(prompt_tokens=1, completion_tokens=512))]
    engine = Told(said, capabilities=EngineCapabilities(dialect="gbnf", lazy=True, seed=False))
    application = served(engine, max_tokens=512, parallel_tool_calls=False)

    answers = [
        posted(application, CHAT, json={"messages": HELLO, "tools": [TOOL]} | more).json()
        for more in ({}, {"max_tokens": 600})
    ]

    assert [job.limit for job in engine.jobs] == [512, 600]
    assert not any(job.turn.request.parallel_tool_calls for job in engine.jobs)
    assert "cut off after 512 tokens; set a token limit" in str(answers[0]["warnings"])


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


def test_billing_header_is_dropped():
    """A system block that changes with each request doesn't reach the prompt, and a warning says so."""
    engine = Told("Hi")
    blocks = [{"type": "text", "text": text} for text in ("x-anthropic-billing-header: cc=1;", "Be brief.")]
    body = {"messages": HELLO, "max_tokens": 9}

    answers = [
        posted(served(engine), "/v1/messages", json=body | {"system": system}).json()
        for system in (blocks, "Be brief.", blocks[:1])
    ]

    prompts = [job.turn.prompt for job in engine.jobs]
    assert prompts[0] == prompts[1]
    assert "billing" not in prompts[2]
    assert "billing header" in answers[0]["warnings"][0]
