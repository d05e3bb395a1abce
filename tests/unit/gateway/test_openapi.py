"""`/openapi.json`: schemathesis sends what it allows and what it does not, and judges the answers by it."""

from __future__ import annotations

import asyncio
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
from serving import browser, served

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
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", served(Sampler(), limits=GatewayLimits(stored=100_000)))
FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@SCHEMA.parametrize()
@FEW
def test_paths_keep_what_the_document_says(case):
    """Every path takes what is described and refuses what is not, and answers in the described form, never with a 5xx."""
    case.call_and_validate(checks=CHECKS, timeout=100)


def test_document_has_every_path():
    """Every route is described, and its requests by what reads them: ranges, words and fields that are refused."""
    application = served(Sampler())

    async def run():
        async with browser(application) as client:
            return (await client.get("/openapi.json")).json()

    found = asyncio.run(run())
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
