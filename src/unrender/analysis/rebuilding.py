"""Doubts a format that was found: answers are written again from it, and every prompt must be one that answers follow.

Rules: what does not come out as the template rendered it is a doubt, white space apart, and so is a call syntax that fails
altogether. A text that every prompt writes and no answer begins with is one more header.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from unrender.analysis.ask.answers import Answers, Turns
from unrender.analysis.ask.probes import carries_needle, shapes
from unrender.analysis.find.turn_frame import TurnFrame, until_sentinel
from unrender.answer.encode import encode_answer
from unrender.errors import GrammarError
from unrender.format import Format, ToolMode
from unrender.messages.wire import Request, Tool
from unrender.parser.prompt_tail import begun_by
from unrender.proof.claims import possible_format


def find_doubts(answers: Answers, frame: TurnFrame, fmt: Format) -> Mapping[str, str]:
    """Return the answers that the format does not reproduce, white space apart: a sentence for each shape, e.g. `one call`."""
    doubts: dict[str, str] = {}
    for shape, (name, said) in shapes().items():
        body = getattr(answers, shape)
        parts = (said.content, said.reasoning, *(call.name for call in said.calls))
        if body is None or not all(part in body for part in parts):
            continue
        body = until_sentinel(body).removesuffix(frame.appended)
        made = [(call.name, call.arguments, call.id or "") for call in said.calls]
        rebuilt = encode_answer(fmt, content=said.content, reasoning=said.reasoning, calls=made)
        # `<t></t>Hi` beside `<call>…`: some templates write the empty form of reasoning before one part only; readers take it
        # as optional.
        # The history may leave out what every prompt begins.
        options = (rebuilt, rebuilt.removeprefix(fmt.reasoning.empty), rebuilt.removeprefix(fmt.turn.prefill))
        ends = ("", fmt.turn.end, *fmt.turn.ends)
        if _squeeze(body) not in [_squeeze(option + end) for option in options for end in ends]:
            doubts[name] = f"{name}: rendered as {body!r:.200}, understood as {rebuilt!r:.200}"
    return doubts


def _squeeze(text: str) -> str:
    return "".join(text.split())


def calls_are_refuted(doubts: Collection[str], fmt: Format) -> bool:
    """Return whether neither one call nor two can be written again: the derived syntax is then worthless."""
    # Calls in a row may differ from one alone, as in `<c>f</c>` and `[f, g]`: one of the two is enough to go on.
    needed = {"one call", "two calls"} if fmt.tools.parallel else {"one call"}
    return fmt.tools.mode is not ToolMode.NONE and needed <= {*doubts}


_REQUESTS = (Request(), Request(tools=(Tool(name="f"),)))


def with_headers(format: Format, turns: Turns) -> tuple[Format, tuple[str, ...]]:
    """Return a format with which answers can be written after every prompt, and in words what it claims no more."""
    given_up: tuple[str, ...] = ()
    for asked in filter(None, (turns.question, turns.result)):
        for prompt, bare in ((asked.prompt, asked.bare), (asked.prompt_no_thinking, asked.bare_no_thinking)):
            if prompt is not None:
                format, more = _with_header_of(format, prompt, bare)
                given_up += more
    return format, given_up


def _with_header_of(format: Format, prompt: str, bare: str | None) -> tuple[Format, tuple[str, ...]]:
    """Return the same for one prompt; `bare` is what the template writes where it asks for no answer."""
    begun = begun_by(format, prompt, lambda: bare)
    # The prompt ends in `<bot>final:` and answers begin with `<bot>` alone: the longer text is one more header.
    cut = _unwritten_length(format, begun)
    # It goes with the header at the end of the prompt, if there is one, and the layout after that.
    asked, cores = prompt.removesuffix(begun), map(str.strip, format.turn.headers)
    ends = ((asked.rfind(core) + len(core), len(core)) for core in cores if core and core in asked)
    end, length = max(ends, default=(len(asked), 0))
    header = asked[end - length :] + begun[:cut]
    if not cut or carries_needle(header):
        return format, ()
    changed: dict[str, Any] = {"headers": (*format.turn.headers, header)}
    for name in ("prefill", "prefill_no_thinking"):
        known = getattr(format.turn, name)
        if known.strip() and begun.rstrip().endswith(known.strip()):
            changed[name] = begun[cut:]
        elif cut < len(begun):  # `<think><think></think>` with thinking off begins with the same text.
            changed[name] = known.removeprefix(begun[:cut])
    format, more = possible_format(format, turn=replace(format.turn, **changed))
    why = f"the prompt begins answers with {begun[:cut]!r:.200}, as no answer does: it counts as their header"
    return format, (*([why] if begun[:cut].strip() else []), *more)


def _unwritten_length(format: Format, begun: str) -> int:
    """Return the length of the part that no answer writes: up to the opener of reasoning, or else all of it."""
    opener = format.reasoning.start.strip()
    opened = begun.count(opener) if opener else 0
    # `<think><think>`: a thought is opened once, so the first is not the answer's.
    starts = [*([0] if opened < 2 else []), *([begun.rfind(opener)] if opened else []), len(begun)]
    return next(start for start in starts if not begun[start:].strip() or _is_written(format, begun[start:]))


def _is_written(format: Format, begun: str) -> bool:
    """Return whether answers with and without tools may begin so."""
    from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- wanted for few templates

    requests = _REQUESTS if format.tools.mode is not ToolMode.NONE else _REQUESTS[:1]
    try:
        return all(Remainder(format=format, request=request, prefill=begun).begins for request in requests)
    except GrammarError:  # No grammar can be written, whatever the prompt begins.
        return True
