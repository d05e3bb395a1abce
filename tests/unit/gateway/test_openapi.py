"""The paths that generate nothing, and `/openapi.json`: schemathesis sends what it allows and what it does not, and judges the answers by it."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from serving import CALL, HELLO, TOOL, Told, asked, served, template

from unrender.gateway import GatewayLimits, Sampler

pytest_plugins = ["schemathesis.pytest.plugin"]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", served(Sampler(), limits=GatewayLimits(store_bytes=100_000)))
FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.few(4)
@pytest.mark.slow
@SCHEMA.parametrize()
@FEW
def test_paths_keep_what_the_document_says(case):
    """Every path takes what is described and refuses what is not, and answers in the described form, never with a 5xx."""
    case.call_and_validate(checks=CHECKS, timeout=100)


def test_document_has_every_path():
    """Every route is described, and its requests by what reads them: ranges, words and fields that are refused."""
    application, found = served(Sampler()), fetched("/openapi.json").json()
    paths, schemas = found["paths"], found["components"]["schemas"]
    routes: Any = application.routes
    served_paths = {(route.path.replace(":path", ""), method) for route in routes for method in route.methods}
    assert {(path, method.upper()) for path, found in paths.items() for method in found} == {
        (path, method) for path, method in served_paths if method != "HEAD"
    }
    body = paths["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/ChatRequest"}
    chat = schemas["ChatRequest"]["properties"]
    assert chat["n"]["anyOf"] == [{"type": "integer", "minimum": 1, "maximum": 16}, {"type": "null"}]
    assert "xhigh" in chat["reasoning_effort"]["anyOf"][0]["enum"]
    assert chat["chat_template"]["type"] == "null"
    assert schemas["StreamOptions"]["properties"]["include_usage"]["anyOf"] == [{"type": "boolean"}, {"type": "null"}]


def fetched(path, body=None):
    return asked(served(Told("Hi")), "GET" if body is None else "POST", path, json=body)


def test_models_are_listed_for_every_client():
    """`/v1/models` lists the models under `data` and under `models`; one can be asked for by its name."""
    listed, one = fetched("/v1/models").json(), fetched("/v1/models/m").json()

    assert listed["data"] == listed["models"] == [one]
    assert one["id"] == "m"
    assert fetched("/v1/models/other").status_code == 404


def test_format_is_shown():
    """`/v1/format` gives the derived format."""
    assert fetched("/v1/format").json()["tools"]["call_start"] == template().format.tools.call_start


def test_prompt_is_rendered():
    """`/v1/render` gives the prompt that the engine would get."""
    answer = fetched("/v1/render", {"messages": HELLO}).json()

    assert answer["prompt"] == template().prepare(HELLO).prompt
    assert "<|end|>" in answer["stop"]


def test_text_is_parsed():
    """`/v1/parse` reads a text as the answer to a request, and says what could not be read."""
    answer = fetched("/v1/parse", {"messages": HELLO, "tools": [TOOL], "text": f"Look.\n{CALL}"}).json()
    broken = fetched("/v1/parse", {"messages": HELLO, "tools": [TOOL], "text": "<tool_call>\n{x"}).json()

    assert answer["message"]["content"] == "Look."
    assert answer["finish_reason"] == "tool_calls"
    assert answer["malformed"] == []
    assert broken["malformed"]
    assert fetched("/v1/parse", {"messages": HELLO}).status_code == 400


def test_unknown_paths_are_refused_in_the_same_shape():
    """A path that is none, and a wrong method, get an error like all others."""
    assert fetched("/v1/nothing").json()["error"]["message"] == "GET /v1/nothing: Not Found"
    assert fetched("/v1/chat/completions").status_code == 405


def test_own_template_passes():
    """The template that comes with the gateway has reasoning and calls, and loses nothing."""
    format = template().format

    assert (format.reasoning.start, format.tools.mode.value) == ("<think>\n", "json_native")
    assert template().capabilities.supports_tools
