"""Completes a derived format from declared formats, and from an example call in the prompt.

A marker with an evident typing error is read without it, too.

Rules: what was derived stays. A declared part fills only a part that the template does not render; call syntaxes,
spellings and ignored markers are added, since they widen what is read and never what is generated. An example is a JSON
object of two fields that stand for a tool's name and its arguments, with placeholders for values, and only once in what
tools add to the prompt. What is around it counts where a marker and its closer are.
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
    """Return `format` with all that is added by the declared formats whose evidence is in the template's `words`."""
    for declared in declared_formats():
        if declared.evidence and declared.evidence.found_in(words):
            with suppress(FormatError):  # What does not go together with the derived parts adds nothing.
                format = with_declared(format, declared)
    written = json.dumps(plain_data(format.tools))
    if (right := _MISTYPED.sub(r"<\1\2\1>", written)) != written:
        with suppress(FormatError):
            mended = decode(CallSyntax, json.loads(right), where="")
            format = replace(format, tolerated=tuple(dict.fromkeys((mended, *format.tolerated))))
    return format


_MISTYPED = re.compile(r"<(\||\\uff5c)([^<>|\s\"]{1,64}?)(?:>\1|\1\1)>")
"""`<|call>|>` or `<|call||>` in JSON: the model was taught `<|call|>`, which is one token."""


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
"""Number of characters around an example to search for its markers."""


@dataclass(frozen=True, slots=True)
class Example:
    """A call syntax, and the text that shows it."""

    tools: CallSyntax
    text: str


def find_example(prober: Prober) -> Example | None:
    """Return the call syntax of the prompt's example; None if there is no example, or several."""
    prompt = prober.render([user()], tools=prober.offered, prompt=True) if prober.offered else None
    if prompt is None:
        return None
    # An object with a probe's name in it is one of the offered tools, not an example.
    matches = (match for match in _EXAMPLE.finditer(prompt) if not any(name in match.group() for name in NAMES))
    found = {_described(prompt, match) for match in matches}
    return found.pop() if len(found) == 1 else None


def _described(prompt: str, match: re.Match[str]) -> Example:
    before, after = prompt[max(match.start() - _FAR, 0) : match.start()], prompt[match.end() : match.end() + _FAR]
    # `<calls>[{"name": …}]</calls>`: the brackets belong to the section, and the markers are around them.
    if listed := before.rstrip().endswith("["):
        before, after = before.rstrip()[:-1], after.partition("]")[2]
    # `Return <fn>\n{…}\n</fn>.`: a marker before it that is closed after it is the call's, with the white space inside.
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
