"""A prompt that offers tools in, the call syntax out of which it gives an example: for templates that never write a call.

Rules: an example is a JSON object of two fields that stand for a tool's name and its arguments, with placeholders for
values, and only once in what tools add to the prompt. What is around it counts where a marker and its closer are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.analysis.ask.probes import NAMES, Prober, user
from unrender.analysis.find.split import closers_of, is_tag, lexemes
from unrender.format import CallSyntax, Envelope, Slot, ToolMode

_PLACEHOLDER = r"(?:\"[^\"{}\[\]]{1,80}\"|<[^<>{}\"]{1,80}>|[\w$][^\"{}\[\],:]{0,80})"
_GAP = r"\s{0,64}+"
_EXAMPLE = re.compile(
    rf"\{{{_GAP}\"(?P<name>\w{{0,32}}(?:name|function|tool)\w{{0,32}})\"{_GAP}:{_GAP}{_PLACEHOLDER}{_GAP},"
    rf"{_GAP}\"(?P<arguments>\w{{0,32}}(?:arg|param|input)\w{{0,32}})\"{_GAP}:{_GAP}"
    rf"(?:{_PLACEHOLDER}|\{{[^{{}}]{{0,200}}\}}){_GAP}\}}",
    re.IGNORECASE,
)
"""Every part is bounded: a prompt is somebody else's, and nothing interrupts a search."""
_FAR = 200
"""Characters beside an example in which its markers are."""


@dataclass(frozen=True, slots=True)
class Example:
    """A call syntax, and the text that shows it."""

    tools: CallSyntax
    text: str


def find_example(prober: Prober) -> Example | None:
    """Return the call syntax that the prompt gives an example of; None where it gives none, or several."""
    prompt = prober.render([user()], tools=prober.offered, prompt=True) if prober.offered else None
    if prompt is None:
        return None
    found = {_described(prompt, match) for match in _EXAMPLE.finditer(prompt) if not _is_offer(match.group())}
    return found.pop() if len(found) == 1 else None


def _is_offer(text: str) -> bool:
    """Return whether an object is one of the offered tools, not an example."""
    return any(name in text for name in NAMES)


def _described(prompt: str, match: re.Match[str]) -> Example:
    before, after = prompt[max(match.start() - _FAR, 0) : match.start()], prompt[match.end() : match.end() + _FAR]
    listed = before.rstrip().endswith("[")
    if listed:
        before = before.rstrip()[:-1]
        after = after.partition("]")[2]
    opener, closer = _around(before, after)
    name, arguments = match["name"], match["arguments"]
    tools = CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        section_start=opener + "[" if listed else "",
        section_end="]" + closer if listed else "",
        call_start="" if listed else opener,
        call_end="" if listed else closer,
        separator=", " if listed else "\n",
        function=(f'{{"{name}": "', Slot.NAME, f'", "{arguments}": ', Slot.ARGUMENTS, "}"),
        envelope=Envelope(name_field=(name,), args_field=(arguments,), array_wrapped=listed),
    )
    return Example(tools, opener + match.group() + closer)


def _around(before: str, after: str) -> tuple[str, str]:
    """Return the marker before an example and its closer after it, with the white space inside; nothing where either is missing."""
    left, right = lexemes(before.rstrip()), lexemes(after.lstrip())
    if not left or not right or not is_tag(left[-1]) or right[0] not in closers_of(left[-1]):
        return "", ""
    return left[-1] + before[len(before.rstrip()) :], after[: len(after) - len(after.lstrip())] + right[0]
