"""Command `batch replay`, which feeds the recorded chunks of one answer to the parser."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from unrender import Event
from unrender.cli.inputs import (
    BadInput,
    InputPath,
    RequestOptions,
    conversation_options,
    json_option,
    parse_json,
    text_of_file,
)
from unrender.cli.terminal import (
    BOLD,
    DIM,
    INDENT,
    event_data,
    event_line,
    print_heading,
    print_json,
    print_line,
)
from unrender.explain import Replay, replay

_STREAM_FIELDS = ("", "data", "event", "id", "retry")
"""Field names of an event stream. A line with an empty field name is a comment."""
_DONE = "[DONE]"
"""Last event of OpenAI's streams."""


@click.command(short_help="Show the events of each chunk.")
@conversation_options
@click.argument("chunks", type=InputPath())
@json_option
def replay_command(chunks: str, *, request: RequestOptions, as_json: bool) -> None:
    """Show the events for recorded chunks, and compare other chunkings.

    CHUNKS is a JSON list, a file with one JSON value per line, or a recorded event stream (`data:` lines); - is standard input. A
    chunk is a string, an object with `text` or `content`, or a streamed completion of an OpenAI server. The exit code is 1 if another
    chunking gives another result.
    """
    result = replay(request.turn().parser, read_chunks(chunks))
    if as_json:
        print_json(_data(result))
    else:
        _show_replay(result)
    sys.exit(bool(result.differences))


def read_chunks(path: str) -> list[str]:
    """Return the chunks in a file. If a chunk has no text, raises `BadInput` with the number of the chunk."""
    text = text_of_file(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        lines = ((number, _said(line)) for number, line in enumerate(text.split("\n"), 1))
        found = [parse_json(line, f"{path}, line {number}") for number, line in lines if line]
    chunks = found if isinstance(found, list) else [found]
    return [_text(chunk, f"{path}: chunk {number}") for number, chunk in enumerate(chunks, 1)]


def _said(line: str) -> str:
    """Return a line without the parts that an event stream adds. For a `data:` line, the data is returned."""
    field, _, value = line.strip().partition(":")
    if field not in _STREAM_FIELDS:
        return line.strip()
    return "" if field != "data" or value.strip() == _DONE else value.strip()


def _text(chunk: Any, where: str) -> str:
    if isinstance(chunk, dict) and isinstance(choices := chunk.get("choices"), list):
        choice = choices[0] if choices else {}
        chunk = choice.get("delta", choice) if isinstance(choice, dict) else choice
    elif isinstance(chunk, dict) and chunk.get("role") not in (None, "assistant"):
        raise BadInput(f"{where}: expected a chunk of an answer, found a message of the role {chunk['role']!r:.60}")
    if isinstance(chunk, dict):
        chunk = chunk.get("text", chunk.get("content")) or ""
    if not isinstance(chunk, str):
        raise BadInput(f"{where}: expected a string, or an object with `text` or `content`, found {chunk!r:.60}")
    return chunk


def _show_replay(result: Replay) -> None:
    for step in result.steps:
        held = f"  ({step.held} characters held back)" if step.held else ""
        print_line(("end of output" if step.chunk is None else repr(step.chunk), BOLD), (held, DIM))
        for event in step.events:
            print_line(f"{INDENT}{event_line(event)}")
    print_heading("Other chunkings", f"{result.tried} tried, {len(result.differences) or 'none'} differ")
    for difference in result.differences[:3]:
        print_heading(difference.chunking)
        recorded, other = (set(map(event_line, events)) for events in (result.events, difference.events))
        for sign, lines in (("-", recorded - other), ("+", other - recorded)):
            for line in sorted(lines):
                print_line(f"{INDENT}{sign} {line}")


def _data(result: Replay) -> dict[str, Any]:
    def plain(events: Iterable[Event]) -> list[dict[str, Any]]:
        return list(map(event_data, events))

    differences = (
        {"chunking": found.chunking, "message": found.message.to_openai(), "events": plain(found.events)}
        for found in result.differences
    )
    return {
        "steps": [{"chunk": step.chunk, "events": plain(step.events), "held": step.held} for step in result.steps],
        "message": result.message.to_openai(),
        "tried": result.tried,
        "differences": list(differences),
    }
