"""Completes a derived format with declared formats, and with an example call in the prompt.

If a marker contains an obvious typo, the corrected marker is also accepted.

Rules: derived parts never change. A declared part is used only if the template doesn't render that part. Declared call syntaxes, spellings
and ignored markers are added, so that more answers can be parsed. These declared parts never affect generation. An example is a JSON object
with two placeholders: one for the tool's name and one for its arguments. If the prompt contains several examples, none is used. Text around
the example is used only if it consists of a marker and the matching closer.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace

from unrender.analysis.ask.probes import NAMES, Prober, user
from unrender.errors import FormatError
from unrender.format import CallSyntax, Format, Slot
from unrender.format.data import decode, plain_data
from unrender.format.tokens import lexemes
from unrender.formats import declared_formats, with_declared
from unrender.proof.split import closers_of, is_tag


def complete(format: Format, words: str) -> Format:
    """Return `format`, completed with declared formats.

    A declared format is used if `words`, the template's text, contains the evidence that this format requires.
    """
    for declared in declared_formats():
        if declared.evidence and declared.evidence.found_in(words):
            with suppress(FormatError):  # Skip declared parts that conflict with derived ones.
                format = with_declared(format, declared)
    written = json.dumps(plain_data(format.tools))
    if (right := _MISTYPED.sub(r"<\1\2\1>", written)) != written:
        with suppress(FormatError):
            mended = decode(CallSyntax, json.loads(right), where="")
            format = replace(format, tolerated=tuple(dict.fromkeys((mended, *format.tolerated))))
    return format


_MISTYPED = re.compile(r"<(\||\\uff5c)([^<>|\s\"]{1,64}?)(?:>\1|\1\1)>")
"""Matches a typo of the token `<|call|>` in JSON, such as `<|call|>|>` or `<|call||>`."""


_PLACEHOLDER = r"(?:\"[^\"{}\[\]]{1,80}\"|<[^<>{}\"]{1,80}>|[\w$][^\"{}\[\],:]{0,80})"
_GAP = r"\s{0,64}+"
_EXAMPLE = re.compile(
    rf"\{{{_GAP}\"(?P<name>\w{{0,32}}(?:name|function|tool)\w{{0,32}})\"{_GAP}:{_GAP}{_PLACEHOLDER}{_GAP},"
    rf"{_GAP}\"(?P<arguments>\w{{0,32}}(?:arg|param|input)\w{{0,32}})\"{_GAP}:{_GAP}"
    rf"(?:{_PLACEHOLDER}|\{{[^{{}}]{{0,200}}\}}){_GAP}\}}",
    re.IGNORECASE,
)
"""Matches an example call. All repetitions in the pattern are bounded, because prompts are untrusted and a search can't be interrupted."""
_FAR = 200
"""Maximum distance between the example and its markers, in characters."""


@dataclass(frozen=True, slots=True)
class Example:
    """A call syntax derived from an example, and the example's text."""

    tools: CallSyntax
    text: str


def find_example(prober: Prober) -> Example | None:
    """Return the call syntax of the example in the prompt, or None if there are no examples or several."""
    prompt = prober.render([user()], tools=prober.offered, prompt=True) if prober.offered else None
    if prompt is None:
        return None
    # Skip objects that contain a probe's tool name: they describe offered tools.
    matches = (match for match in _EXAMPLE.finditer(prompt) if not any(name in match.group() for name in NAMES))
    found = {_described(prompt, match) for match in matches}
    return found.pop() if len(found) == 1 else None


def _described(prompt: str, match: re.Match[str]) -> Example:
    before, after = prompt[max(match.start() - _FAR, 0) : match.start()], prompt[match.end() : match.end() + _FAR]
    # In `<calls>[{"name": …}]</calls>`, the brackets are part of the section. Look for markers outside the brackets.
    if listed := before.rstrip().endswith("["):
        before, after = before.rstrip()[:-1], after.partition("]")[2]
    # In `Return <fn>\n{…}\n</fn>.`, `<fn>` and its closer are the call's markers, including the whitespace inside them.
    left, right = lexemes(before.rstrip()), lexemes(after.lstrip())
    opener = closer = ""
    if left and right and is_tag(left[-1]) and right[0] in closers_of(left[-1]):
        opener = left[-1] + before[len(before.rstrip()) :]
        closer = after[: len(after) - len(after.lstrip())] + right[0]
    function = (f'{{"{match["name"]}": "', Slot.NAME, f'", "{match["arguments"]}": ', Slot.ARGUMENTS, "}")
    tools = CallSyntax(call_start=opener, call_end=closer, separator="\n", function=function)
    if listed:
        tools = CallSyntax(section_start=f"{opener}[", section_end=f"]{closer}", separator=", ", function=function)
    return Example(tools, opener + match.group() + closer)
