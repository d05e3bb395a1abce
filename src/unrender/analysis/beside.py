"""Finds the wrapper of content beside calls, if it differs from the wrapper of content alone."""

from __future__ import annotations

from unrender.analysis.answers import Answers
from unrender.analysis.content import without_reasoning
from unrender.analysis.probes import CONTENT, NAMES, REASONING
from unrender.analysis.reasoning import ReasoningFinding
from unrender.analysis.split import closers_of, common_prefix, is_tag, lexemes
from unrender.format import Content, ContentMode


def find_beside(answers: Answers, content: Content, found: ReasoningFinding) -> Content | None:
    """Return the wrapper of content before calls; None when it is the usual wrapper, or when no rendering shows both.

    The text before and after such content is compared with the text around a call alone. A wrapper that is also written
    around empty content shows its end that way. Otherwise it ends with the marker that closes its opener.
    """
    mixed = answers.mixed
    if mixed is None or NAMES[0] not in mixed.partition(CONTENT)[2]:
        return None
    opening, _, after_content = mixed.partition(CONTENT)
    if _is_reasoning(answers, opening):
        return None
    opening = without_reasoning(opening, found)
    alone = (answers.call or "").partition(NAMES[0])[0]
    alone = without_reasoning(alone, found)
    if opening.strip() == content.start.strip():
        return _around_calls(content, alone, after_content)
    if not opening.strip():
        return Content()
    empty = alone.startswith(opening) and common_prefix([alone[len(opening) :], after_content]).strip() != ""
    end = (
        _up_to_last_closer(alone[len(opening) :], after_content, opening) if empty else _closer(opening, after_content)
    )
    return Content(mode=ContentMode.ALWAYS_WRAPPED, start=opening, end=end, wraps_empty=empty and bool(end))


def _around_calls(content: Content, alone: str, after_content: str) -> Content | None:
    """Return the wrapper that calls are inside of as content is: beside them, nothing ends it. None where they are outside.

    `alone` is what is before a call without content, `after_content` what is after content and holds the call.
    """
    start, end = content.start.strip(), content.end.strip()
    if not start or not end or end in after_content.partition(NAMES[0])[0] or end not in after_content:
        return None
    inside = alone.lstrip().startswith(start)
    return Content(mode=ContentMode.ALWAYS_WRAPPED, start=content.start, wraps_empty=True) if inside else None


def _is_reasoning(answers: Answers, opening: str) -> bool:
    """Return whether content beside calls is where reasoning does."""
    reasoned = answers.reasoned_call or ""
    return REASONING in reasoned and reasoned.partition(REASONING)[0].strip() == opening.strip()


def _up_to_last_closer(alone: str, after_content: str, opening: str) -> str:
    """Return the end of a wrapper around nothing: what calls alone and content both have before the call."""
    shared = common_prefix([alone, after_content])
    return _closer(opening, shared) or shared


def _closer(opening: str, after_content: str) -> str:
    """Return what follows content up to and with the marker that closes the opening's last one; empty without any."""
    tags = [part for part in lexemes(opening) if is_tag(part)]
    for closer in closers_of(tags[-1]) if tags else ():
        head, closed, _ = after_content.partition(closer)
        if closed and NAMES[0] not in head:
            return head + closed
    return ""
