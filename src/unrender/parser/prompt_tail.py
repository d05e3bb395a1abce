"""Finds the prefill in a rendered prompt (the text after the header), and formats the start of an answer to be continued.

Rules: a header counts only if it's followed by nothing but text of the format's generation prompts. Text of an earlier turn is therefore
never treated as part of the answer. Without a known header, there is no prefill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from unrender.errors import RequestError
from unrender.format import Format, Reasoning, ReasoningMode
from unrender.format.declared import known_reasoning
from unrender.messages import Request


def read_prefill(format: Format, prompt: str) -> str:
    """Return the text after the assistant's header in `prompt`, or "" if there is no such text. `prompt` may be just the end of a prompt.

    >>> from unrender.format import TurnTexts
    >>> read_prefill(Format(turn=TurnTexts(headers=("<bot>",), prefill="<think>")), "<bot>Hi<end><user>Hello<end><bot><think>")
    '<think>'
    """
    written = after_header(format, prompt)
    if written is not None:
        usual = {text.strip() for text in ("", format.turn.prefill, format.turn.prefill_no_thinking)}
        known = (format.reasoning, *(known_reasoning() if format.undeclared_reasoning else ()))
        if written.strip() in usual or any(_is_block_of(format, markers, written.strip()) for markers in known):
            return written
    # If there is no header, an open reasoning marker at the very end is still used as the prefill.
    start = format.reasoning.start.strip()
    return prompt[prompt.rindex(start) :] if start and prompt.rstrip().endswith(start) else ""


def begun_by(format: Format, prompt: str, render_bare: Callable[[], str | None], said: Iterable[str] = ()) -> str:
    """Return the prefill of a generation prompt.

    `render_bare` renders the same conversation without a generation prompt, or returns None. `said` contains strings from the conversation
    that can't be part of a generation prompt. If one of them or an end of turn follows the last header, this header belongs to an earlier
    turn, and `render_bare` isn't called. Unlike `read_prefill`, this function accepts any words after the header.
    """
    known, written = read_prefill(format, prompt), after_header(format, prompt)
    end = format.turn.end.strip()
    # True if the turn that starts at the header has ended.
    over = end and end not in format.reasoning.end and end in (written or "")
    if known or not written or over or any(text in written for text in said):
        return known
    bare = render_bare()
    # The header counts only if it's in the generation prompt, i.e. in the text that is missing from `bare`.
    added = prompt[len(bare) :] if bare is not None and prompt.startswith(bare) else ""
    return written if len(written) <= len(added) else ""


def after_header(format: Format, prompt: str) -> str | None:
    """Return the text after the last header in `prompt`, or None if there is no header."""
    cores = [header.strip() for header in format.turn.headers if header.strip() and header.strip() in prompt]
    if not cores:
        return None
    # Earlier turns start with the same header, so use the last one.
    end, core = max((prompt.rfind(core) + len(core), core) for core in cores)
    spaces = (header[header.index(core) + len(core) :] for header in format.turn.headers if core in header)
    rest = prompt[end:]
    space = max((space for space in spaces if rest.startswith(space)), key=len, default="")
    return rest[len(space) :]


def _is_block_of(format: Format, markers: Reasoning, text: str) -> bool:
    """Return whether `text` consists only of a reasoning block with these markers, which may be open or closed."""
    start, end = markers.start.strip(), markers.end.strip()
    if not start or not text.startswith((start, end)):
        return False
    # Accept a closed block only at the end, because prompts disable reasoning with `<think>\n\n</think>\n\n`. After a block of an earlier
    # turn, more text follows.
    words, _, after = text.removeprefix(start).partition(end)
    if after.strip() not in ("", format.content.start.strip()):
        return False
    # Open reasoning can't contain ends of turn, headers or call markers.
    calls = [text for tools in format.syntaxes for text in tools.markers[:2]]
    foreign = (text.strip() for text in (format.turn.end, *format.turn.ends, *format.turn.headers, *calls))
    return not any(marker in words for marker in foreign if len(marker) > 1)


def begun_text(
    reasoning: str, content: str, format: Format | None, request: Request, *, thinks: bool, where: str
) -> str:
    """Return the text of an answer that the model must continue, from the header on.

    `thinks` is True if the model continues its reasoning. If `format` is None, only the content is returned. Raises `RequestError`, with a
    message that starts with `where`, if the format can't continue such an answer.
    """
    if format is None:
        if thinks or reasoning:
            raise RequestError(f"{where}: with a handwritten grammar, only content can be continued, found reasoning")
        return content
    if thinks:
        if not format.reasoning.end:
            raise RequestError(f"{where}: the template has no reasoning that could be continued")
        if content:
            why = f"expected nothing after the reasoning to continue, found {content!r:.60}"
            raise RequestError(f"{where}.content: {why}")
        return format._opening + reasoning
    # If reasoning and its markers are part of the content, they are already in `content`.
    before = "" if request.reasoning_format == "none" else _reasoning_before(reasoning, format)
    wrapper = format.content if reasoning else format._wrapper_alone
    # The wrapper may already be open, as in `<think>so</think><answer>`.
    opener = "" if before.endswith(wrapper.start) else wrapper.start
    return (before or format.turn.start_to_content) + opener + content


def _reasoning_before(reasoning: str, format: Format) -> str:
    """Return the text between header and content: the reasoning, or the text for empty reasoning."""
    markers, turn = format.reasoning, format.turn
    if not markers.end:
        return ""
    closing = markers.end + turn.reasoning_to_content
    if reasoning:
        return markers.start + reasoning + closing
    opening = format._opening.strip()
    for empty in (turn.prefill_no_thinking, markers.empty):
        if empty and (opening not in empty or markers.closed_in(empty)):
            # The block may include part of the joint: `<think></think>\n` followed by the joint `\n\n` becomes `<think></think>\n\n`.
            before, closer, _ = empty.rpartition(markers.end.strip())
            whole = before + closer + turn.reasoning_to_content
            return whole if closer and whole.startswith(empty) else empty
    # If the prompt always starts reasoning, end the reasoning.
    return format._opening + closing if opening and opening in turn.prefill else ""


def generated_format(format: Format, prefill: str) -> Format:
    """Return the format of the text after `prefill`.

    If only the usual prefill starts reasoning, and `prefill` is empty, reasoning is removed from the format.
    """
    worded = format.reasoning.mode is ReasoningMode.DELIMITER and format.turn.prefill
    if not worded or prefill:
        return format
    turn = replace(format.turn, prefill="", reasoning_to_content="", reasoning_to_tools="")
    return format._with(reasoning=Reasoning(), turn=turn)
