"""Rows of `tests/corpus/answers/*.jsonl`: a format, a request, a text, and the expected reading.

A file is named after the format of its rows: one of `properties.families`, of `corpus/formats.json`, or a grammar made
by hand (`by_hand_lines`). A row contains only the differences from the defaults:

- `why`: the purpose of the row;
- `with`: changes of the format, as a JSON merge patch (RFC 7396);
- `tools` (default: those of `REQUEST`; null if unknown), `more_tools` in addition, and other fields of the request;
- `prompt`, `prefill`, `is_continuation`, `known_ids`: the state before the answer, as in `Turn`;
- `policy`, `strict`: parser settings;
- `text`, and `finish`: the engine's finish reason;
- `events`: `["content", text]`, `["call", name, id]` (no id if numbered), `["malformed", position, expected, text]` …;
- `failed`: failed calls, `[name, arguments, status]`; `raises`: the position where a strict parser stops, and what it
  expected;
- `spans`: the role and length of each stretch of the text;
- `written`: whether the grammar of the same turn allows the text.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from engines import Accepts, lark_reader
from properties.families import BY_HAND, FAMILIES, REQUEST
from splitting import merged
from tables import case_rows

from unrender import (
    ArgumentsText,
    ContentText,
    Event,
    GrammarError,
    Malformed,
    MessageFinished,
    ParseError,
    Parser,
    Policy,
    ReasoningText,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    Turn,
)
from unrender.errors import SchemaWarning
from unrender.format import Format
from unrender.grammar import Grammar
from unrender.parser.prompt_tail import read_prefill
from unrender.testing import numbered_id
from unrender.types import Request, Tool

ANSWERS = Path(__file__).parent / "corpus" / "answers"
_MORE = ANSWERS.with_name("formats.json")
FORMATS: dict[str, tuple[Format, Grammar | None]] = {
    **{family.name: (family.format, None) for family in FAMILIES},
    **{name: (Format.from_dict(data), None) for name, data in json.loads(_MORE.read_text("utf-8")).items()},
    **{f"by_hand_{made.name}".replace(" ", "_"): (made.format, made.grammar) for made in BY_HAND},
}
READ = ("events", "failed", "spans", "raises", "written")
"""The fields of a row with the result of reading its text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One line of a file."""

    name: str
    """The name of the format."""
    data: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"{self.name}: {self.data['why']}: {self.text!r:.200}"

    @property
    def text(self) -> str:
        text: str = self.data["text"]
        return text

    @cached_property
    def turn(self) -> Turn:
        """The turn whose answer is the text."""
        base, grammar = FORMATS[self.name]
        request = _request(json.dumps({key: self.data[key] for key in _REQUESTED if key in self.data}))
        format = _changed(self.name, json.dumps(self.data["with"], sort_keys=True)) if "with" in self.data else base
        return Turn(
            prompt=self.data.get("prompt", ""),
            request=request,
            format=format,
            prefill=self.data["prefill"]
            if "prefill" in self.data
            else read_prefill(format, self.data.get("prompt", "")),
            is_continuation=self.data.get("is_continuation", False),
            known_ids=tuple(self.data.get("known_ids", ())),
            grammar=grammar,
        )

    @property
    def usual(self) -> bool:
        """Return whether the row uses a parser's defaults."""
        return not {"policy", "strict", "finish"} & set(self.data)

    def parser(self) -> Parser:
        """Return a new parser with numbered calls."""
        policy = Policy(**self.data.get("policy", {}))
        return self.turn.parser(strict=self.data.get("strict", False), policy=policy, ids=numbered_id)

    def restored(self, state: Mapping[str, Any]) -> Parser:
        """Return the parser restored from a state."""
        return self.turn.restore(state, ids=numbered_id)

    def read(self, chunks: Iterable[str]) -> dict[str, Any]:
        """Return the result of reading the text in these chunks, as a row's fields."""
        parser = self.parser()
        return self.read_on(parser, [], chunks)

    def read_on(self, parser: Parser, before: Iterable[Event], chunks: Iterable[str]) -> dict[str, Any]:
        """Return the result of a parser that has already returned the given events; `chunks` are the rest."""
        events = list(before)
        try:
            for chunk in chunks:
                events += parser.feed(chunk)
            events += parser.finish(self.data.get("finish"))
        except ParseError as error:
            return {"raises": [error.position, error.expected]}
        content = parser.message.content
        failed = [_failed(call, content) for call in parser.message.failed_calls]
        spans = ", ".join(f"{span.role.value} {span.end - span.start}" for span in parser.spans)
        return {"events": written(events), **({"failed": failed} if failed else {}), "spans": spans}

    def expected(self) -> dict[str, Any]:
        """Return the row's expected result."""
        return {key: self.data[key] for key in READ if key in self.data and key != "written"}

    def allowed(self) -> bool | None:
        """Return whether the turn's grammar allows the text; None if there is no grammar or no engine for it."""
        if "\0" in self.text:
            return None
        key = json.dumps([self.name, {key: value for key, value in self.data.items() if key in _OF_TURN}])
        if key not in _READERS:
            _READERS[key] = _reader(self.turn)
        accepts = _READERS[key]
        return None if accepts is None else accepts(self.text)


_REQUESTED = (
    "tools",
    "more_tools",
    "tool_choice",
    "named_tool",
    "parallel_tool_calls",
    "response_schema",
    "reasoning_format",
)


@cache
def _request(data: str) -> Request:
    fields = json.loads(data)
    if fields.get("tools") is not None:
        fields["tools"] = tuple(Tool(**tool) for tool in fields["tools"])
    if "more_tools" in fields:
        fields["tools"] = (*(REQUEST.tools or ()), *(Tool(**tool) for tool in fields.pop("more_tools")))
    return replace(REQUEST, **fields)


@cache
def _changed(name: str, patch: str) -> Format:
    return Format.from_dict(patched(FORMATS[name][0].to_dict(), json.loads(patch)))


def patched(data: Any, patch: Any) -> Any:
    """Return data with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    found = dict(data) if isinstance(data, dict) else {}
    for key, value in patch.items():
        found.pop(key, None) if value is None else found.update({key: patched(found.get(key), value)})
    return found


_OF_TURN = ("with", *_REQUESTED, "prompt", "prefill", "is_continuation")
_READERS: dict[str, Accepts | None] = {}


def _reader(turn: Turn) -> Accepts | None:
    """Return a reader of the turn's grammar; None if it can't be written, or the engine rejects it."""
    try:
        with warnings.catch_warnings(action="ignore", category=SchemaWarning):
            return lark_reader(turn.constraint("llguidance").grammar)
    except (GrammarError, ValueError):
        return None


def rows(path: Path) -> list[Row]:
    """Return the rows of a file."""
    return [Row(name=path.stem, data=data) for data in case_rows(path)]


def written(events: Iterable[Event]) -> list[list[Any]]:
    """Return events in a row's notation."""
    return list(_written(merged(list(events))))


def _written(events: Iterable[Event]) -> Iterator[list[Any]]:
    call = -1
    for event in events:
        match event:
            case ContentText(text) | ReasoningText(text):
                yield ["content" if isinstance(event, ContentText) else "reasoning", text]
            case ToolCallStarted(index, id, name, known):
                assert index == call + 1
                call = index
                numbered = [] if id == numbered_id(index, name) else [id]
                yield ["call" if known else "unknown call", name, *numbered]
            case ArgumentsText(index, text):
                assert index == call
                yield ["arguments", text]
            case ToolCallFinished(index, status):
                assert index == call
                yield [status]
            case Malformed(text, position, expected):
                yield ["malformed", position, expected, *([text] if text else [])]
            case MessageFinished():
                pass


def _failed(call: ToolCall, content: str) -> list[Any]:
    """Return a failed call in a row's notation, with its text unless the content contains it."""
    assert call.status != "complete"
    return [
        call.name,
        call.arguments_json,
        call.status,
        *([call.id] if call.id else []),
        *([] if call.offered else ["unknown"]),
        *([{"text": call.text}] if call.text not in content else []),
    ]
