"""Checks a derived format against the rendered answers, and completes it with parts that no answer shows.

Rules: an answer that isn't rebuilt as the template rendered it raises a doubt, unless only whitespace differs. A call syntax with which no
call can be reproduced is dropped. If a prompt ends in text that no answer starts with, this text becomes another header.

Derived parts never change. A declared part is used only if the template doesn't render that part. Declared call syntaxes, spellings and
ignored markers are added, so that more answers can be parsed. These declared parts never affect generation. If a marker contains an obvious
typo, the corrected marker is also accepted. An example in the prompt is a JSON object with two placeholders: one for the tool's name and one
for its arguments. If the prompt contains several examples, none is used. Text around the example is used only if it consists of a marker and
the matching closer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from unrender.analysis.ask import NAMES, Prober, carries_needle, shapes, user
from unrender.analysis.ask.answers import Answers, Turns
from unrender.analysis.find.turn_frame import TurnFrame, until_sentinel
from unrender.answer.encode import encode_answer
from unrender.errors import FormatError, GrammarError
from unrender.format import CallSyntax, Format, Slot, ToolMode, lexemes
from unrender.format.data import decode, plain_data
from unrender.format.declared import declared_formats, with_declared
from unrender.messages import Request, Tool
from unrender.parser.prompt_tail import begun_by
from unrender.proof.claims import possible_format
from unrender.proof.split import closers_of, is_tag


def find_doubts(answers: Answers, frame: TurnFrame, fmt: Format) -> Mapping[str, str]:
    """Map each shape of answer that the format doesn't reproduce, e.g. `one call`, to a message. Whitespace is ignored."""
    doubts: dict[str, str] = {}
    for shape, (name, said) in shapes().items():
        body = getattr(answers, shape)
        parts = (said.content, said.reasoning, *(call.name for call in said.calls))
        if body is None or not all(part in body for part in parts):
            continue
        body = until_sentinel(body).removesuffix(frame.appended)
        made = [(call.name, call.arguments, call.id or "") for call in said.calls]
        rebuilt = encode_answer(fmt, content=said.content, reasoning=said.reasoning, calls=made)
        # Some templates write empty reasoning before some parts only, as in `<t></t>Hi` and `<call>…`, so empty reasoning is optional here.
        # The prefill is optional too, because the history may omit it.
        options = (rebuilt, rebuilt.removeprefix(fmt.reasoning.empty), rebuilt.removeprefix(fmt.turn.prefill))
        ends = ("", fmt.turn.end, *fmt.turn.ends)
        if _squeeze(body) not in [_squeeze(option + end) for option in options for end in ends]:
            doubts[name] = f"{name}: rendered as {body!r:.200}, understood as {rebuilt!r:.200}"
    return doubts


def _squeeze(text: str) -> str:
    return "".join(text.split())


def calls_are_refuted(doubts: Collection[str], fmt: Format) -> bool:
    """Return whether the call syntax is useless: the format reproduces neither one call nor two calls."""
    # Several calls may be written differently from a single one, as in `<c>f</c>` and `[f, g]`. A syntax that reproduces one call or two
    # calls is useful.
    needed = {"one call", "two calls"} if fmt.tools.parallel else {"one call"}
    return fmt.tools.mode is not ToolMode.NONE and needed <= {*doubts}


_REQUESTS = (Request(), Request(tools=(Tool(name="f"),)))


def with_headers(format: Format, turns: Turns) -> tuple[Format, tuple[str, ...]]:
    """Return a format that allows answers to every prompt, and a message for each finding that changed or was dropped."""
    given_up: tuple[str, ...] = ()
    for asked in filter(None, (turns.question, turns.result)):
        for prompt, bare in ((asked.prompt, asked.bare), (asked.prompt_no_thinking, asked.bare_no_thinking)):
            if prompt is not None:
                format, more = _with_header_of(format, prompt, bare)
                given_up += more
    return format, given_up


def _with_header_of(format: Format, prompt: str, bare: str | None) -> tuple[Format, tuple[str, ...]]:
    """Add the header of one prompt to the format. `bare` is the rendering without a generation prompt."""
    begun = begun_by(format, prompt, lambda: bare)
    # If the prompt ends in `<bot>final:` and answers start with just `<bot>`, `<bot>final:` becomes another header.
    cut = _unwritten_length(format, begun)
    # The new header includes the known header at the end of the prompt, if any, and the layout after it.
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
        # With thinking off, the prefill may start with the header's text too, as in `<think><think></think>`. Remove this text.
        elif cut < len(begun):
            changed[name] = known.removeprefix(begun[:cut])
    format, more = possible_format(format, turn=replace(format.turn, **changed))
    why = f"the prompt begins answers with {begun[:cut]!r:.200}, as no answer does: it counts as their header"
    return format, (*([why] if begun[:cut].strip() else []), *more)


def _unwritten_length(format: Format, begun: str) -> int:
    """Return the length of the start of `begun` that answers don't contain: the text before reasoning's opener, or all of `begun`."""
    opener = format.reasoning.start.strip()
    opened = begun.count(opener) if opener else 0
    # In `<think><think>`, only the second tag is part of the answer, because reasoning opens once.
    starts = [*([0] if opened < 2 else []), *([begun.rfind(opener)] if opened else []), len(begun)]
    return next(start for start in starts if not begun[start:].strip() or _is_written(format, begun[start:]))


def _is_written(format: Format, begun: str) -> bool:
    """Return whether answers may start with `begun`, with tools and without tools."""
    from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- wanted for few templates

    requests = _REQUESTS if format.tools.mode is not ToolMode.NONE else _REQUESTS[:1]
    try:
        return all(Remainder(format=format, request=request, prefill=begun).begins for request in requests)
    except GrammarError:  # Accept every prefill, because the format has no grammar to check it with.
        return True


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
