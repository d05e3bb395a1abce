"""Finds where a broken call stops being good, so that the model goes on from there under the grammar of the answer.

The good part is written anew as the format writes it: the name of the call and the arguments before the one that broke. That one is
begun again, since nobody knows where its value should have ended: `{"note": "He said "hello" to me"}` breaks inside it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.answer.build import own_calls
from unrender.answer.encode import encode_answer, encode_calls
from unrender.answer.nodes import Calls, literal_of
from unrender.dialects.remainder import Remainder
from unrender.errors import GrammarError
from unrender.limits import MAX_LISTED
from unrender.machine.events import Malformed, ToolCallFinished
from unrender.machine.policy import Policy
from unrender.machine.quotation import opened
from unrender.messages.wire import CallStatus, ToolCall, ToolChoice
from unrender.turn import Turn, generated_format

_DECODER = json.JSONDecoder()
_PAIRS: Mapping[str, tuple[Any, Any]] = {
    "string": ("a", "b"),
    "integer": (1, 2),
    "number": (1, 2),
    "boolean": (True, False),
    "array": (["a"], ["b"]),
    "object": ({"a": 1}, {"b": 1}),
}
"""Two values of each type that are written alike as far as every value of the type is."""
_NO_ARGUMENT = ({"a": "a"}, {"b": "b"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """A broken answer, as far as it is good, and the turn in which the model goes on."""

    kept: str
    """The answer's text up to the broken call, and the call's good part. The whole answer is this and what the model writes now."""
    turn: Turn
    """Its prompt ends with `kept`; its grammars are those of the rest."""


def healing_of(turn: Turn, text: str, finish_reason: str | None, policy: Policy) -> Healing | None:
    """Return how an answer goes on whose first broken call can be healed; None where there is none."""
    calls = own_calls(turn.format)
    if finish_reason == "length" or turn.grammar is not None or calls is None or not turn.request.calls_allowed:
        return None
    parser = turn.parser(policy=replace(policy, calls="complete"))
    whole, broken = 0, None
    for event in (*parser.feed(text), *parser.finish(finish_reason)):
        whole += isinstance(event, ToolCallFinished)
        if isinstance(event, Malformed) and event.call is not None:
            broken = event.call
            break
    if broken is None or broken.status is not CallStatus.INVALID or turn.request.tool(broken.name) is None:
        return None
    said = broken.text.lstrip()
    start = text.find(said)
    quotation = opened(text[:start], cut=False, anchored=False)
    if start < 0 or (quotation and (quotation.spans_lines or quotation.certain)):
        return None  # It may only be shown.
    # A call that breaks in a run goes on with that run: what opens it was before the first call.
    before = parser.message.tool_calls[:whole] if calls.open and calls.open.core not in said else ()
    run = _begun_run(turn, calls, broken, before)
    opener = calls.call_open.core or literal_of(calls.function[0]).strip()
    good = run[run.rfind(opener) if opener else len(run) :] if before else run
    # A call has begun, so the grammar holds from here on, and not only from the next trigger.
    choice = turn.request.tool_choice if turn.request.tool_choice is ToolChoice.NAMED else ToolChoice.REQUIRED
    request = replace(turn.request, tool_choice=choice)
    for begun in _beginnings(turn, run, before):
        format = generated_format(turn.format, begun)
        rest = Remainder(format=format, request=request, begun=begun, limits=turn.limits)
        try:
            if rest.begins:
                prompt = turn.prompt + text[:start] + good
                going_on = replace(turn, prompt=prompt, request=request, begun=begun)
                return Healing(kept=text[:start] + good, turn=going_on)
        except GrammarError:  # No grammar can be written for this answer.
            return None
    return None


def _begun_run(turn: Turn, calls: Calls, broken: ToolCall, before: Sequence[ToolCall]) -> str:
    """Return a run of calls, as the format writes it, up to the value of the argument that broke."""
    tool = turn.request.tool(broken.name)
    done, key = _members(broken.arguments)
    properties = (tool.parameters or {}).get("properties") if tool and isinstance(tool.parameters, Mapping) else None
    schema = properties.get(key) if isinstance(properties, Mapping) else None
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    pair = _PAIRS.get(kind if isinstance(kind, str) else "string", _PAIRS["string"])
    options = [{**done, key: value} for value in pair] if key else list(_NO_ARGUMENT)
    id = "0" * (calls.id_length or 9)
    earlier = [(call.name, json.loads(call.arguments), call.id or id) for call in before]
    texts = [encode_calls(calls, [*earlier, (broken.name, values, id)]) for values in options]
    return os.path.commonprefix(texts)


def _members(arguments: str) -> tuple[dict[str, Any], str]:
    """Return the members of a JSON object that breaks off, without the last one, and the name of that one; "" where there is none."""
    done: dict[str, Any] = {}
    at = 1
    while len(done) < MAX_LISTED:
        at = len(arguments) - len(arguments[at:].lstrip(" \n,"))
        try:
            key, at = _DECODER.raw_decode(arguments, at)
            colon = arguments.index(":", at)
        except (ValueError, RecursionError):
            return done, ""
        try:
            value, at = _DECODER.raw_decode(arguments, len(arguments) - len(arguments[colon + 1 :].lstrip()))
        except (ValueError, RecursionError):
            return done, key
        if not arguments[at:].lstrip().startswith(","):
            return done, key
        done[key] = value
    return done, ""


def _beginnings(turn: Turn, run: str, before: Sequence[ToolCall]) -> Iterator[str]:
    """Yield answers that begin with a run of calls, as the format writes them: alone, and behind a thought."""
    calls = [(call.name, json.loads(call.arguments), call.id) for call in before] or [("a", {}, "a")]
    for reasoning in ("", "a"):
        whole = encode_answer(turn.format, reasoning=reasoning, calls=calls)
        alone = encode_calls(own_calls(turn.format), calls)
        prefix = whole[: whole.find(alone)]
        yield prefix + run
        if turn.begun and not prefix.startswith(turn.begun):
            yield turn.begun + prefix + run
