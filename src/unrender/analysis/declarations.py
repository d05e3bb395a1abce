"""Completes a derived format with declared formats, which say what no rendering shows.

Rules: what was derived stays. A declared part fills only a part that the template does not render; call syntaxes,
spellings and ignored markers are added, since they widen what is read and never what is generated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from unrender.errors import FormatError
from unrender.format import CallSyntax, Content, ContentMode, Format, Reasoning, ReasoningMode, Spelling, ToolMode
from unrender.formats import Declared, declared_formats


def complete(format: Format, words: str) -> Format:
    """Return `format` with all that is added by the declared formats whose evidence is in the template's `words`."""
    for declared in declared_formats():
        if declared.evidence and declared.evidence.found_in(words):
            with suppress(FormatError):  # What does not go together with the derived parts adds nothing.
                format = merge(format, declared)
    return format


def merge(format: Format, declared: Declared) -> Format:
    """Return `format` with what one declared format adds to it. Raises `FormatError` when the two do not go together."""
    added = declared.format
    merged = replace(
        format,
        reasoning=_reasoning(format.reasoning, added.reasoning),
        content=_content(format.content, added.content),
        tools=added.tools if format.tools.mode is ToolMode.NONE else format.tools,
        spellings=_spellings((*format.spellings, *added.spellings)),
        ignored=tuple(dict.fromkeys((*format.ignored, *added.ignored))),
    )
    others = [tools for tools in (*format.tolerated, *added.tolerated) if not _same_syntax(tools, merged.tools)]
    merged = replace(merged, tolerated=tuple(dict.fromkeys(others)))
    if merged == format:
        return format
    return replace(merged, declared=(*format.declared, declared.name))


def _reasoning(derived: Reasoning, added: Reasoning) -> Reasoning:
    return added if derived.mode is ReasoningMode.NONE else derived


def _content(derived: Content, added: Content) -> Content:
    return added if derived.mode is ContentMode.PLAIN and added.mode is not ContentMode.PLAIN else derived


def _same_syntax(one: CallSyntax, other: CallSyntax) -> bool:
    """True when both read the same calls: they differ at most in white space around their markers."""

    def shape(tools: CallSyntax) -> tuple[object, ...]:
        parts = (tools.section_start, tools.call_start, *tools.function, *tools.arguments.entry)
        return tuple(part.strip() if type(part) is str else part for part in parts)

    return shape(one) == shape(other)


def _spellings(spellings: tuple[Spelling, ...]) -> tuple[Spelling, ...]:
    return tuple(dict.fromkeys(spellings))
