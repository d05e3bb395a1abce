"""Proves what prompts begin of an answer by writing: a beginning that no answer goes on from gives way to a longer header.

Example: prompts end in `<bot>:`, and the history has `<bot> Hello`. No answer begins with `:`, so nothing could be generated
after it. Taken as a part of the header it claims nothing about answers, and what follows is read as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from unrender.analysis.asked import Turns
from unrender.analysis.possible import possible_format
from unrender.analysis.probes import carries_needle
from unrender.errors import GrammarError
from unrender.format import Format, ToolMode
from unrender.messages import Request, Tool
from unrender.parsing.begun import after_header, begun_by

_REQUESTS = (Request(), Request(tools=(Tool(name="f"),)))


def with_headers(format: Format, turns: Turns) -> tuple[Format, tuple[str, ...]]:
    """Return a format with which answers can be written after every prompt, and in words what it claims no more."""
    given_up: list[str] = []
    for prompt, bare in _prompts(turns):
        begun = begun_by(format, prompt, lambda bare=bare: bare)  # type: ignore[misc]
        cut = _header_in(format, begun)
        header = _last_header(format, prompt.removesuffix(begun)) + begun[:cut]
        if not cut or carries_needle(header):
            continue
        changed: dict[str, Any] = {"headers": (*format.turn.headers, header)}
        for name in ("prefill", "prefill_no_thinking"):
            if (known := getattr(format.turn, name)).strip() and begun.rstrip().endswith(known.strip()):
                changed[name] = begun[cut:]
        format, more = possible_format(format, turn=replace(format.turn, **changed))
        if begun[:cut].strip():
            given_up.append(
                f"the prompt begins answers with {begun[:cut]!r:.200}, as no answer does: it counts as their header"
            )
        given_up += more
    return format, tuple(given_up)


def _prompts(turns: Turns) -> Iterator[tuple[str, str | None]]:
    """Yield what follows an input in the prompt, and without one."""
    for asked in (turns.question, turns.result):
        if asked is not None:
            pairs = ((asked.prompt, asked.bare), (asked.prompt_no_thinking, asked.bare_no_thinking))
            yield from ((prompt, bare) for prompt, bare in pairs if prompt is not None)


def _header_in(format: Format, begun: str) -> int:
    """Return how much of a beginning is written by no answer: what is before reasoning, or else all of it."""
    opener = format.reasoning.start.strip()
    starts = [0, *([begun.rfind(opener)] if opener and opener in begun else []), len(begun)]
    return next(start for start in starts if not begun[start:].strip() or _is_written(format, begun[start:]))


def _is_written(format: Format, begun: str) -> bool:
    """Return whether answers with and without tools may begin so."""
    from unrender.emit.answer import Answer  # noqa: PLC0415 -- wanted for few templates

    requests = _REQUESTS if format.tools.mode is not ToolMode.NONE else _REQUESTS[:1]
    try:
        return all(Answer(format=format, request=request, begun=begun).begins for request in requests)
    except GrammarError:  # No grammar can be written, whatever the prompt begins.
        return True


def _last_header(format: Format, prompt: str) -> str:
    """Return the header with which a prompt ends, with the layout after it."""
    written = after_header(format, prompt)
    cores = [header.strip() for header in format.turn.headers if header.strip() and header.strip() in prompt]
    if written is None or not cores:
        return ""
    ends = {prompt.rfind(core) + len(core): core for core in sorted(cores, key=len)}
    core = ends[max(ends)]
    return prompt[prompt.rfind(core) :]
