r"""A client's view of a stream, without a client: frames that add up to the whole response.

>>> chat = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n'
>>> added_up("/v1/chat/completions", chat)
[{'message': {'content': 'Hi'}}]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

_ONCE = ("id", "type", "role", "index", "finish_reason")
"""Fields that a later delta replaces. All other texts are appended."""
_OWN = (
    *("id", "call_id", "created_at", "completed_at", "usage", "index"),
    *("parsed", "parsed_output", "parsed_arguments"),
)
"""Fields that differ between any two answers, occur only in a stream, or are added by clients."""


class Broken(Exception):
    """The stream ended with an error, or not at all."""


def frames(text: str) -> list[dict[str, Any]]:
    """Return the JSON data of a stream's frames."""
    lines = (line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: "))
    return [json.loads(line) for line in lines if line != "[DONE]"]


def added_up(path: str, text: str) -> Any:
    """Return the answer of a stream, without parts that always differ. Raises `Broken` for an error."""
    found = frames(text)
    if not found or any("error" in frame for frame in found) or not _ENDS[path](text, found):
        raise Broken(text[-500:])
    return comparable(_ADDED[path](found))


def said(path: str, body: Mapping[str, Any]) -> Any:
    """Return a whole answer in the form of `added_up`."""
    return comparable(_SAID[path](body))


def comparable(value: Any) -> Any:
    """Return an answer without ids, costs and empty values."""
    if isinstance(value, dict):
        found = {name: comparable(item) for name, item in value.items() if name not in _OWN}
        return {name: item for name, item in found.items() if item not in (None, "", [], {})}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def _merged(before: Any, after: Any) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        new = {name: item for name, item in after.items() if name in _ONCE or name not in before}
        more = {name: _merged(before[name], item) for name, item in after.items() if name not in new}
        return {**before, **more, **new}
    if isinstance(before, list) and isinstance(after, list):
        for item in after:
            place = item.get("index") if isinstance(item, dict) else None
            same = [at for at, one in enumerate(before) if place is not None and one.get("index") == place]
            before = (
                [*before[: same[0]], _merged(before[same[0]], item), *before[same[0] + 1 :]]
                if same
                else [*before, item]
            )
        return before
    if isinstance(before, str) and isinstance(after, str):
        return before + after
    return before if after is None else after


def _choices(found: list[dict[str, Any]]) -> list[Any]:
    choices: list[Any] = []
    for frame in found:
        choices = _merged(
            choices, [{**one, "message": one["delta"]} if "delta" in one else one for one in frame["choices"]]
        )
    whole = [{name: item for name, item in choice.items() if name != "delta"} for choice in choices]
    return sorted(whole, key=lambda choice: choice["index"])


def _message(found: list[dict[str, Any]]) -> dict[str, Any]:
    blocks: list[Any] = []
    ends: dict[str, Any] = {}
    for frame in found:
        match frame["type"]:
            case "content_block_start":
                blocks.append(frame["content_block"])
            case "content_block_delta":
                delta = {name: text for name, text in frame["delta"].items() if name != "type"}
                blocks[frame["index"]] = _merged(blocks[frame["index"]], delta)
            case "message_delta":
                ends = frame["delta"]
    for block in blocks:
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json") or "{}")
    return {"content": blocks, **ends}


_ADDED: Mapping[str, Callable[[list[dict[str, Any]]], Any]] = {
    "/v1/chat/completions": _choices,
    "/v1/messages": _message,
    "/v1/responses": lambda found: found[-1]["response"],
}
_ENDS: Mapping[str, Callable[[str, list[dict[str, Any]]], bool]] = {
    "/v1/chat/completions": lambda text, _: text.endswith("data: [DONE]\n\n"),
    "/v1/messages": lambda _, found: found[-1]["type"] == "message_stop",
    "/v1/responses": lambda _, found: found[-1]["type"] in ("response.completed", "response.incomplete"),
}
_SAID: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "/v1/chat/completions": lambda body: body["choices"],
    "/v1/messages": lambda body: {name: body[name] for name in ("content", "stop_reason", "stop_sequence")},
    "/v1/responses": lambda body: body,
}
STREAMED = tuple(_SAID)
"""The paths that support streaming."""
