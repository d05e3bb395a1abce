"""Requests to a small real model, the same for every engine, and one judge of the answers.

The judge takes its rules from the request alone: the number of choices, the calls, their schemas, the length. Values
are judged by jsonschema, not by our code. Requests for calls or a schema must not end at a token limit, so their texts
have a `maxLength`. Without it, such a small model may write text, or the digits of a fraction, to the end of its
context.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
from tables import case_rows, named_rows

Request = Mapping[str, Any]
Answer = dict[str, Any]
"""A completion as JSON."""

ROOT = Path(__file__).parent.parent
LONGEST = 700
"""Maximum tokens of a call or a schema's value. An answer of this length has no end."""
TEXT = {"type": "string", "maxLength": 24}
SCHEMAS = case_rows(ROOT / "tests" / "real" / "schemas.jsonl")
_rows = partial(named_rows, ROOT / "tests" / "real" / "scenarios.jsonl")
CONVERSATIONS: Mapping[str, list[dict[str, str]]] = {
    name: row["messages"] for name, row in _rows("conversation").items()
}
"""Plain chats whose prompts and answers must equal those of the engine's own chat endpoint."""
TOOLS = {name: {"type": "function", "function": {"name": name, **row}} for name, row in _rows("tool").items()}
ADD = TOOLS["add"]


def _scenario(row: Request) -> Request:
    """Return a row's request with its tools and conversation filled in."""
    messages = row["messages"]
    found = {**row, "messages": CONVERSATIONS[messages] if isinstance(messages, str) else messages}
    return found | ({"tools": [TOOLS[name] for name in row["tools"]]} if "tools" in row else {})


SCENARIOS: Mapping[str, Request] = {
    **{f"chat: {name}": {"messages": messages, "max_tokens": 40} for name, messages in CONVERSATIONS.items()},
    **{name: _scenario(row) for name, row in _rows("scenario").items()},
}
ASKED = {key: SCENARIOS["required"][key] for key in ("messages", "tools")}
FRUITS: Request = {"messages": CONVERSATIONS["a question"], "max_tokens": 40}
STORY: Request = {"messages": SCENARIOS["a limit"]["messages"]}


def beyond_sglang() -> dict[str, str]:
    """Return SGLang's behaviour for schemas that it can't enforce: "refused" or "any" (arbitrary JSON).

    Without reasoning, SGLang enforces a schema itself and doesn't call the plug-in. It rejects keywords that xgrammar
    doesn't support (`uniqueItems`, `multipleOf`) with 400. For `allOf` with several schemas, xgrammar warns and
    enforces none of them.
    """
    return {row["tool"]: row["sglang"] for row in SCHEMAS if "sglang" in row}


def schema_requests() -> dict[str, Request]:
    """Return a request for a value of each schema in `tests/real/schemas.jsonl`, as in real tools."""
    return {
        row["tool"]: {
            "messages": [{"role": "user", "content": f"{row['question']} Answer in JSON."}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "arguments", "schema": row["schema"], "strict": row.get("strict", True)},
            },
        }
        for row in SCHEMAS
    }


def forced_calls(count: int) -> list[Request]:
    """Return `count` requests that force a call, drawn from the tables of `benchmarks/grammar_worth.py`."""
    sys.path.append(str(ROOT / "benchmarks"))
    tables, draw = importlib.import_module("grammar_worth"), random.Random(25)
    kinds = [make for name, make in tables.CATEGORIES.items() if name != "irrelevant"]
    tasks = [kinds[at % len(kinds)](draw) for at in range(count)]
    more = {"tool_choice": "required", "parallel_tool_calls": False}
    return [
        {"messages": [{"role": "user", "content": task.question}], "tools": bounded(task.tools), **more}
        for task in tasks
    ]


def bounded(value: Any) -> Any:
    """Return schemas with a `maxLength` for each text that had none."""
    if isinstance(value, Mapping):
        more = TEXT if value.get("type") == "string" and not {"enum", "const", "maxLength"} & value.keys() else {}
        return {**{name: bounded(item) for name, item in value.items()}, **more}
    return [bounded(item) for item in value] if isinstance(value, list | tuple) else value


def sent(request: Request) -> dict[str, Any]:
    """Return a request with the default fields of all requests."""
    return {"model": "m", "temperature": 0, "max_tokens": LONGEST, **request}


def judged(request: Request, answer: Answer) -> list[str]:
    """Return the errors in an answer."""
    asked = sent(request)
    return [*_counted(asked, answer), *(wrong for choice in answer["choices"] for wrong in _choice(asked, choice))]


def _counted(asked: Request, answer: Answer) -> Iterator[str]:
    usage, choices, n = answer.get("usage") or {}, answer["choices"], asked.get("n", 1)
    if [choice["index"] for choice in choices] != list(range(n)):
        yield f"{n} choices asked for, {len(choices)} given"
    prompt, said = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    if usage.get("total_tokens") != prompt + said or prompt <= 0 or not 0 < said <= n * asked["max_tokens"]:
        yield f"usage {usage}"
    if n == 1 and (choices[0]["finish_reason"] == "length") != (said == asked["max_tokens"]):
        yield f"{choices[0]['finish_reason']} after {said} tokens"
    tokens = [token for choice in choices for token in (choice.get("logprobs") or {}).get("content") or ()]
    # The token that ends the answer may be included. llama.cpp lists one for all tokens of a character.
    plain_text = all((choice["message"].get("content") or "").isascii() for choice in choices)
    if (
        asked.get("logprobs")
        and not asked.get("tools")
        and not len(tokens) <= said <= len(tokens) + (n if plain_text else said)
    ):
        yield f"log probabilities of {len(tokens)} tokens, {said} counted"


def _choice(asked: Request, choice: Answer) -> Iterator[str]:
    message, text = choice["message"], choice["message"].get("content") or ""
    calls = message.get("tool_calls") or []
    cut = choice["finish_reason"] == "length"
    if cut and asked["max_tokens"] == LONGEST:
        yield f"no end: {message}"
    # A call of the function that the request names may end with `stop`, as in vLLM and in OpenAI's own answers.
    named = isinstance(asked.get("tool_choice"), Mapping) and choice["finish_reason"] == "stop"
    if (choice["finish_reason"] == "tool_calls") != bool(calls and not cut) and not (named and calls):
        yield f"{choice['finish_reason']} with {len(calls)} calls"
    yield from _calls(asked, calls, cut=cut)
    if asked.get("response_format") and not cut:
        yield from _invalid(text, asked["response_format"]["json_schema"]["schema"])
    yield from (f"the stop string {stop!r}" for stop in asked.get("stop", ()) if stop in text)
    if asked.get("logprobs"):
        yield from _scored(asked, text, calls, (choice.get("logprobs") or {}).get("content") or [])
    elif choice.get("logprobs"):
        yield "log probabilities that nobody wants"


def _calls(asked: Request, calls: list[Answer], *, cut: bool) -> Iterator[str]:
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in asked.get("tools", ())}
    wanted = asked.get("tool_choice", "auto")
    named = wanted["function"]["name"] if isinstance(wanted, Mapping) else ""
    if (wanted == "required" or named) and not calls:
        yield "no call"
    if calls and wanted == "none":
        yield f"calls {calls}"
    if len(calls) > 1 and not asked.get("parallel_tool_calls", True):
        yield f"{len(calls)} calls, one at most asked for"
    if len({call["id"] for call in calls}) != len(calls):
        yield "two calls of one id"
    whole = calls[:-1] if cut else calls  # The last call may be cut off.
    for name, arguments in ((call["function"]["name"], call["function"]["arguments"]) for call in whole):
        if name not in ([named] if named else schemas):
            yield f"a call of {name}"
        else:
            yield from _invalid(arguments, schemas[name])


def _invalid(text: str, schema: Any) -> Iterator[str]:
    try:
        jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        yield f"{text[:200]}: {str(error).splitlines()[0]}"


def _scored(asked: Request, text: str, calls: list[Answer], tokens: list[Answer]) -> Iterator[str]:
    """Check log probabilities: they belong to the content's tokens, which are the likeliest at temperature 0."""
    told = b"".join(bytes(token["bytes"]) for token in tokens).decode(errors="replace")
    # vLLM's own endpoint also lists the tokens of calls and the one that ends the answer.
    more = told.startswith(text) if calls else told == text + "".join(token["token"] for token in tokens[-1:])
    if "stop" not in asked and told != text and not more:
        yield f"tokens {[token['token'] for token in tokens]} of {text!r}"
    for token in tokens:
        others = token["top_logprobs"]
        # vLLM's completions name alternatives by their text, and partial characters have no text.
        if not -1e4 < token["logprob"] <= 0 or (len(others) != asked["top_logprobs"] and token["token"]):
            yield f"log probability {token}"
        elif not asked.get("tools") and max(other["logprob"] for other in others) > token["logprob"]:
            yield f"not the likeliest: {token}"


def whole(chunks: Iterable[Answer]) -> Answer:
    """Return the answer that a client assembles from a stream."""
    choices: dict[int, Answer] = {}
    usage = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for part in chunk["choices"]:
            choice = choices.setdefault(
                part["index"], {"index": part["index"], "finish_reason": None, "logprobs": None, "message": {}}
            )
            choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
            _add(choice["message"], part["delta"])
            if part.get("logprobs"):
                known = choice["logprobs"] or {"content": []}
                choice["logprobs"] = {"content": known["content"] + (part["logprobs"].get("content") or [])}
    return {"choices": [choices[at] for at in sorted(choices)], "usage": usage}


def _add(message: Answer, delta: Answer) -> None:
    message["content"] = (message.get("content") or "") + (delta.get("content") or "")
    for call in delta.get("tool_calls") or ():
        known = message.setdefault("tool_calls", [])
        if call["index"] == len(known):
            known.append({"id": call["id"], "function": {"name": "", "arguments": ""}})
        function, new = known[call["index"]]["function"], call["function"]
        function["name"] += new.get("name") or ""
        function["arguments"] += new.get("arguments") or ""


def plain(answer: Answer) -> list[Any]:
    """Return the parts of an answer that are compared: everything except ids and times."""
    return [
        [
            choice["finish_reason"],
            choice["message"].get("content") or "",
            [(call["function"]["name"], call["function"]["arguments"]) for call in choice["message"].get("tool_calls") or ()],
            [token["token"] for token in (choice.get("logprobs") or {}).get("content") or ()],
        ]
        for choice in answer["choices"]
    ]  # fmt: skip
