"""Invariants of every parser and every text, as assertions that feed a text.

Strategy: each reading is checked by itself (`check_events`, `check_spans`), then readings are compared.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from splitting import fed, fed_only, merged, pieces, splits

from unrender import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    Message,
    MessageFinished,
    ParseError,
    Parser,
    ReasoningText,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.grammar import Role
from unrender.openai import deltas

MakeParser = Callable[[], Parser]
Restore = Callable[[Mapping[str, Any]], Parser]


def check(make: MakeParser, text: str, *, seed: int = 0) -> Message:
    """Assert that `text` is read the same for every chunking, completely, and in proper events. Return the message.

    Parsers number their calls, so that ids are the same in every reading.
    """
    parser = make()
    first = read(parser, text, [text])
    if not parser._format.cleans_content:
        check_content(parser, text)
    for chunks in splits(text, seed):
        other = make()
        assert (read(other, text, chunks), other.spans) == (first, parser.spans), chunks[:50]
    return parser.message


def read(parser: Parser, text: str, chunks: list[str]) -> tuple[list[Event], Message]:
    """Feed all chunks and check the results. Return the merged events and the message."""
    events = fed(parser, chunks)
    check_events(events, parser.message)
    check_release(parser, events)
    check_spans(parser, text)
    return merged(events), parser.message


def check_events(events: list[Event], message: Message) -> None:
    """Assert that events are in order, also within each call, and that their deltas add up to `message`."""
    assert events[-1] == MessageFinished()
    assert MessageFinished() not in events[:-1]
    assert all(event.text for event in events if isinstance(event, ContentText | ReasoningText | ArgumentsText))
    assert accumulated(deltas(events)) == as_streamed(events, message).to_openai()
    started = [event.index for event in events if isinstance(event, ToolCallStarted)]
    assert started == list(range(len(message.tool_calls)))
    for index, call in enumerate(message.tool_calls):
        _check_call(events, index, call)


def as_streamed(events: Iterable[Event], message: Message) -> Message:
    """Return the message as it was streamed: reasoning whose start marker is missing is content again."""
    ends = [event.text for event in events if isinstance(event, Malformed) and event.ends_reasoning]
    if not ends:
        return message
    (end,) = ends
    return replace(message, reasoning="", content=message.reasoning + end + message.content)


def check_release(parser: Parser, events: list[Event]) -> None:
    """Assert that a call is sent when it's complete or, if the policy allows it, as soon as its name is known."""
    message, waits = parser.message, parser._machine.policy.tool_calls == "complete"
    ended = [event.status for event in events if isinstance(event, ToolCallFinished)]
    died = [event.call for event in events if isinstance(event, Malformed) and event.call]
    assert "complete" not in {call.status for call in message.failed_calls}
    if waits:
        assert set(ended) <= {"complete"}
        assert message.failed_calls == tuple(died)
        return
    # A call beyond the limit is never sent, and one that was cut off before its name can't be.
    assert all(parser._machine.request._one_call or not call.name for call in died)
    given = [call for call in message.tool_calls if call.status != "complete"]
    assert [call for call in message.failed_calls if call not in died] == given


def _check_call(events: list[Event], index: int, call: ToolCall) -> None:
    own = [
        type(event)
        for event in events
        if isinstance(event, ToolCallStarted | ArgumentsText | ToolCallFinished) and event.index == index
    ]
    assert own[0] is ToolCallStarted
    assert own[-1] is ToolCallFinished
    assert set(own[1:-1]) <= {ArgumentsText}
    assert call.name
    assert call.id
    assert call.status != "open"
    if call.status == "complete":
        assert isinstance(json.loads(call.arguments_json), dict)


def accumulated(stream: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the message that a client assembles from deltas without knowing their fields.

    Texts are joined, and list elements are matched by their `index`, as in OpenAI's own client.
    """
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for delta in stream:
        _join(message, delta)
    for call in message.get("tool_calls", ()):
        del call["index"]
    return message


def _join(whole: dict[str, Any], part: dict[str, Any]) -> None:
    for key, value in part.items():
        if key == "index" or (key not in whole and not isinstance(value, list)):
            whole[key] = deepcopy(value)
        elif isinstance(value, str):
            whole[key] += value
        elif isinstance(value, dict):
            _join(whole[key], value)
        else:
            items = whole.setdefault(key, [])
            for item in value:
                items += [{} for _ in range(item["index"] + 1 - len(items))]
                _join(items[item["index"]], item)


def check_spans(parser: Parser, text: str) -> None:
    """Assert that the spans cover `text` without gap or overlap."""
    at = 0
    for span in parser.spans:
        assert span.start == at
        assert span.end > span.start
        at = span.end
    assert at == len(text)


def check_content(parser: Parser, text: str) -> None:
    """Assert that content is the text under spans of content. So the text of a failed call is there once.

    This holds if the prompt has started no content, and the format doesn't clean content.
    """
    said = "".join(text[span.start : span.end] for span in parser.spans if span.role is Role.CONTENT)
    assert parser.message.content == said


def check_strict(make: MakeParser, text: str, *, seed: int = 0, begun: int = 0) -> None:
    """Assert that a strict reading is the same for every chunking, and that an error has a position in the text.

    The position may also be in the last `begun` characters of the prompt.
    """
    outcomes = [strictly(make(), chunks) for chunks in splits(text, seed)]
    assert [outcome for outcome in outcomes if outcome != outcomes[0]] == []
    if isinstance(outcomes[0], tuple):
        position, expected = outcomes[0]
        assert -begun <= position <= len(text)
        assert expected


def strictly(parser: Parser, chunks: list[str]) -> Message | tuple[int, str]:
    """Return the message, or the position where a strict parser stops and what it expected there."""
    try:
        fed(parser, chunks)
    except ParseError as malformed:
        return malformed.position, malformed.expected
    return parser.message


def check_copies(make: MakeParser, restore: Restore, text: str, positions: Iterable[int]) -> None:
    """Assert that a parser copied, pickled or restored at any position continues like the original, which doesn't change."""
    whole = make()
    expected = (*read(whole, text, [text]), whole.spans)
    for at in positions:
        parser = make()
        before = fed_only(parser, pieces(text[:at], 3))
        restored = restore(parser.state())
        assert (restored.message, restored.spans) == (parser.message, parser.spans)
        for reader in (parser.copy(), pickle.loads(pickle.dumps(parser)), restored, parser):
            events = [*before, *reader.feed(text[at:]), *reader.finish()]
            assert (merged(events), reader.message, reader.spans) == expected
