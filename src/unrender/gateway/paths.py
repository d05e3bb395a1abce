"""Lists the paths of a gateway: what answers each, and its entry in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from unrender.gateway.exchange import Endpoint
from unrender.gateway.gateway import Gateway
from unrender.gateway.openapi import ANSWERS, Path, request_of
from unrender.gateway.own import Own
from unrender.gateway.schema import Schema
from unrender.gateway.surfaces import chat, completions, messages, responses

_NAMED: Mapping[str, Schema] = {"model": {"type": "string"}}
_LISTED: Schema = {"type": "object", "required": ["data"], "properties": {"data": {"type": "array"}}}
_PAGE: Mapping[str, Schema] = {
    "order": {"enum": ["asc", "desc"]},
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "after": {"type": "string"},
}


def listed(gateway: Gateway, own: Own) -> tuple[Path, ...]:
    """Return all paths."""
    said = _requests()
    generating = (
        ("/v1/chat/completions", chat.CHAT, "An answer to a conversation, by OpenAI's Chat Completions."),
        ("/v1/responses", responses.RESPONSES, "An answer to a conversation, by OpenAI's Responses."),
        ("/v1/messages", messages.MESSAGES, "An answer to a conversation, by Anthropic's Messages."),
        ("/v1/completions", completions.COMPLETIONS, "How a text goes on; nothing is added to it, and nothing read."),
    )
    apis = [
        Path(
            path=path,
            endpoint=Endpoint(gateway, api),
            summary=summary,
            method="POST",
            body=said[api.name],
            answer=ANSWERS[api.name],
            streams=True,
            errors="anthropic" if api is messages.MESSAGES else "openai",
        )
        for path, api, summary in generating
    ]
    return (*apis, *_about_answers(own, said), *_about_models(own), *_about_gateway(own))


def _about_answers(own: Own, said: Mapping[str, Schema]) -> tuple[Path, ...]:
    stored = "/v1/responses/{id}"
    return (
        _post("/v1/messages/count_tokens", own.count, said["count"], errors="anthropic"),
        _post("/v1/render", own.render, said["chat"]),
        _post("/v1/parse", own.parse, said["parse"]),
        _get(stored, own.stored),
        _get(stored, own.delete, method="DELETE"),
        _get(f"{stored}/input_items", own.input_items, query=_PAGE, answer=_LISTED),
    )


def _about_models(own: Own) -> tuple[Path, ...]:
    return (
        _get("/v1/models", own.models, answer=_LISTED),
        _get("/v1/models/{name:path}", own.model),
        _get("/v1/format", own.format, query=_NAMED),
    )


def _about_gateway(own: Own) -> tuple[Path, ...]:
    return (
        _get("/openapi.json", own.openapi, open=True),
        _get("/metrics", own.metrics, media="text/plain", answer={"type": "string"}, open=True),
        _get("/health", own.health, open=True),
        _get("/ready", own.ready, open=True),
    )


def _get(path: str, endpoint: Any, **more: Any) -> Path:
    return Path(path=path, endpoint=endpoint, summary=endpoint.__doc__, **more)


def _post(path: str, endpoint: Any, body: Schema, **more: Any) -> Path:
    return _get(path, endpoint, method="POST", body=body, **more)


@cache
def _requests() -> Mapping[str, Schema]:
    """Return the schema of each API's requests, and of our own."""
    talk = request_of("chat", chat.read, "messages")
    return {
        "chat": talk,
        "responses": request_of("responses", responses.read, "input", given={"input": ""}),
        "messages": request_of("messages", messages.read, "messages", "max_tokens", given={"max_tokens": 1}),
        "completions": request_of("completions", completions.read, "prompt", given={"prompt": ""}),
        "count": request_of("messages", messages.read_conversation, "messages"),
        "parse": {
            **talk,
            "required": ["messages", "text"],
            "properties": {**talk["properties"], "text": {"type": "string"}},
        },
    }
