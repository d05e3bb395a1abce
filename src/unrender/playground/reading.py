"""Reads an output chunk by chunk into a film, which the page's slider runs through.

Rules: positions count characters of the output. The film has a bounded number of steps; a long output in small chunks is fed in
larger ones, and the film says in which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from unrender import Event, Turn, deltas
from unrender.limits import MOST_FILM_STEPS


def film(turn: Turn, text: str, chunk: int) -> dict[str, Any]:
    """Return every step with its events and deltas, the spans of the whole output, and the message.

    No text raises an error.
    """
    # A film has at most so many steps: 50,000 characters one by one are fed ten at a time.
    size = max(chunk, 1, -(-len(text) // MOST_FILM_STEPS))
    return _film(turn, [text[at : at + size] for at in range(0, len(text), size)]) | {"chunk": size}


def recorded(turn: Turn, chunks: Sequence[str]) -> dict[str, Any]:
    """Return the film of a recorded stream in its own chunks.

    If there are too many chunks, neighbours are joined.
    """
    together = max(1, -(-len(chunks) // MOST_FILM_STEPS))
    return _film(turn, ["".join(chunks[at : at + together]) for at in range(0, len(chunks), together)]) | {"chunk": 0}


def _film(turn: Turn, chunks: Iterable[str]) -> dict[str, Any]:
    parser, steps, fed = turn.parser(ids=_call_id), [], 0
    for chunk in chunks:
        events = parser.feed(chunk)
        fed += len(chunk)
        steps.append({"fed": fed, "settled": parser.settled, **_said(events)})
    last = parser.finish()
    steps.append({"fed": fed, "settled": fed, **_said(last)})
    message = parser.message
    return {
        "steps": steps,
        "spans": [{"role": str(span.role), "start": span.start, "end": span.end} for span in parser.spans],
        "message": message.to_openai(),
        "dead_calls": [f"{call.name}: {call.status}" for call in message.dead_calls],
        "finish_reason": message.finish_reason(),
    }


def _call_id(position: int, _name: str) -> str:
    """Return an id that is the same each time the page asks."""
    return f"call{position:05}"


def _said(events: Sequence[Event]) -> dict[str, Any]:
    named = [{"event": type(event).__name__, **asdict(event)} for event in events]
    return {"events": named, "deltas": list(deltas(events))}
