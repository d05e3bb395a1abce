"""Finds what a rendered prompt has begun of the answer: the text after the header.

Rules: a header counts only at the end of a prompt, with nothing after it but what a generation prompt of the format may
write. So no character of an earlier turn is taken for the answer; where nothing is recognised, nothing is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unrender.format import Format, Reasoning, ToolMode
from unrender.formats import known_reasoning


def prefill(format: Format, prompt: str) -> str:
    """Return what `prompt`, or its tail, has written after the assistant's header; "" when it shows nothing.

    >>> from unrender.format import TurnTexts
    >>> prefill(Format(turn=TurnTexts(headers=("<bot>",), prefill="<think>")), "<bot>Hi<end><user>Hello<end><bot><think>")
    '<think>'
    """
    written = after_header(format, prompt)
    if written is not None and _may_be_begun(format, written):
        return written
    return _marker_tail(format, prompt)


def begun_by(format: Format, prompt: str, render_bare: Callable[[], str | None]) -> str:
    """Return what a generation prompt has written of the answer.

    `render_bare` renders the same conversation without a generation prompt, or returns None. Unlike `prefill`, this
    function accepts any words that the generation prompt writes after the header.
    """
    known, written = prefill(format, prompt), after_header(format, prompt)
    if known or not written:
        return known
    bare = render_bare()
    # A header at the very end of the last input counts; a header of an earlier turn does not.
    added = prompt[len(bare) :] if bare is not None and prompt.startswith(bare) else ""
    return written if len(written) <= len(added) else ""


def after_header(format: Format, prompt: str) -> str | None:
    """Return the text after the last header in `prompt`; None when there is no header."""
    cores = [header.strip() for header in format.turn.headers if header.strip() and header.strip() in prompt]
    if not cores:
        return None
    # Earlier turns have the same header: the answer is after the last one.
    end, core = max((prompt.rfind(core) + len(core), core) for core in cores)
    spaces = (header[header.index(core) + len(core) :] for header in format.turn.headers if core in header)
    rest = prompt[end:]
    space = max((space for space in spaces if rest.startswith(space)), key=len, default="")
    return rest[len(space) :]


def _may_be_begun(format: Format, written: str) -> bool:
    """Return whether a generation prompt of the format may have written this: a known beginning, or a block of reasoning."""
    known = {text.strip() for text in ("", format.turn.prefill, format.turn.prefill_no_thinking)}
    return written.strip() in known or _is_block(format, written.strip())


def _is_block(format: Format, text: str) -> bool:
    """Return whether `text` is reasoning, open or closed, and nothing else."""
    known = known_reasoning() if format.undeclared_reasoning else ()
    return any(_is_block_of(format, markers, text) for markers in (format.reasoning, *known))


def _is_block_of(format: Format, markers: Reasoning, text: str) -> bool:
    start, end = markers.start.strip(), markers.end.strip()
    if not start or not text.startswith((start, end)):
        return False
    # `<think>\n\n</think>\n\n` is what a prompt writes for no thinking; an earlier turn has more after it.
    words, _, after = text.removeprefix(start).partition(end)
    if after.strip() not in ("", format.content.start.strip()):
        return False
    return not any(marker in words for marker in _foreign(format))


def _foreign(format: Format) -> Iterator[str]:
    """Yield what is never inside reasoning that goes on: ends of turn, headers, and the markers of calls."""
    turn = format.turn
    yield from (text.strip() for text in (turn.end, *turn.ends, *turn.headers) if len(text.strip()) > 1)
    for tools in (format.tools, *format.tolerated):
        if tools.mode is not ToolMode.NONE:
            yield from (text.strip() for text in (tools.section_start, tools.call_start) if len(text.strip()) > 1)


def _marker_tail(format: Format, prompt: str) -> str:
    """Without a header, an open reasoning marker at the very end still counts."""
    start = format.reasoning.start
    if start.strip() and prompt.rstrip().endswith(start.strip()):
        return prompt[prompt.rindex(start.strip()) :]
    return ""
