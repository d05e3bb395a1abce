"""Finds markers of a Format that the parser could not tell apart.

Strategy: each marker has a part in reading: it opens something, closes it, or is between. Two markers of different
parts that meet at one place must not be the same text. White space around a marker and brackets of JSON after it do not
tell it from another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from unrender.format.parts import CallSyntax, Content, Reasoning, ReasoningMode, Slot, TurnTexts
from unrender.format.skeleton_checks import Problem

JOINTS = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")

_FENCE = "```"
_WORDED_FENCE = re.compile(r"```\w")

_TEXTS = ("format.reasoning.start", "format.content.start")
"""The markers after which any text may follow."""

Named = tuple[str, str]
"""Where a marker is in the Format, and its text."""


def check_answer(
    turn: TurnTexts, reasoning: Reasoning, content: Content, tools: CallSyntax, ignored: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield the markers of an answer's parts that the parser cannot tell apart.

    They are the same text as another part's marker, or as an ignored marker.
    """
    parts = _cores(
        [
            ("format.reasoning.start", reasoning.start),
            ("format.reasoning.end", reasoning.end),
            ("format.content.start", content.start),
            ("format.content.end", content.end),
            *_openers(tools, "format.tools"),
        ]
    )
    # A part may end with the marker that begins it: the second one ends it.
    yield from _doubles(_without_twins(parts))
    openers = [(where, core) for where, core in parts if not where.endswith(".end")]
    yield from _hidden(openers)
    dropped = _cores(
        [
            ("format.turn.end", turn.end),
            *((f"format.turn.headers[{at}]", text) for at, text in enumerate(turn.headers)),
            *((f"format.turn.ends[{at}]", text) for at, text in enumerate(turn.ends)),
            *((f"format.ignored[{at}]", text) for at, text in enumerate(ignored)),
        ]
    )
    if reasoning.mode is ReasoningMode.DELIMITER and turn.prefill:
        joints = _cores((f"format.turn.{name}", getattr(turn, name)) for name in JOINTS)
        for other, text in (*parts, *dropped, *joints):
            if text in turn.prefill:
                yield "format.turn.prefill", f"expected words without the marker {text!r} of {other}"
    yield from _begins_calls(turn, content, tools)
    yield from _begins_otherwise(turn, reasoning)
    yield from _closes_alone(turn, reasoning)
    yield from _wordlike(turn, reasoning)
    for where, core in openers:
        for other, text in dropped:
            if core == text:
                yield other, f"expected another marker than {where.removeprefix('format.')}, found {text!r}"


def _hidden(openers: list[Named]) -> Iterator[Problem]:
    """Yield what begins with the marker that opens reasoning or content: the rest of it could be their text as well."""
    for where, core in openers:
        for other, text in openers if where in _TEXTS else ():
            if text != core and text.startswith(core):
                shorter = where.removeprefix("format.")
                yield other, f"expected a marker that does not begin with {core!r} of {shorter}, found {text!r}"


def _begins_calls(turn: TurnTexts, content: Content, tools: CallSyntax) -> Iterator[Problem]:
    """Yield a prompt that has always begun a call: no answer could be anything else."""
    for name, text in (("prefill", turn.prefill), ("prefill_no_thinking", turn.prefill_no_thinking)):
        for where, core in _cores(_openers(tools, "format.tools")):
            if text.strip().endswith(core) and not content.start.strip().startswith(core):
                opener = where.removeprefix("format.")
                yield f"format.turn.{name}", f"expected words that do not end with {core!r} of {opener}, found {text!r}"


def _begins_otherwise(turn: TurnTexts, reasoning: Reasoning) -> Iterator[Problem]:
    """Yield a prompt that does not open the reasoning that it always opens, or that begins the answer once more."""
    prompts = (("prefill", turn.prefill), ("prefill_no_thinking", turn.prefill_no_thinking))
    for name, text in prompts:
        for header, core in _cores((f"turn.headers[{at}]", header) for at, header in enumerate(turn.headers)):
            if core in text:
                yield f"format.turn.{name}", f"expected words without the marker {core!r} of {header}"
    opens = reasoning.mode in (ReasoningMode.FORCED_OPEN, ReasoningMode.FORCED_CLOSED)
    if opens and turn.prefill.strip() and reasoning.start.strip() not in turn.prefill:
        yield "format.turn.prefill", f"expected {reasoning.start.strip()!r} of reasoning.start, found {turn.prefill!r}"


def _closes_alone(turn: TurnTexts, reasoning: Reasoning) -> Iterator[Problem]:
    """Yield what ends reasoning that was not begun with a marker of one character: prose has such characters as well."""
    start, end = reasoning.start.strip(), reasoning.end.strip()
    if len(end) != 1 or reasoning.mode is ReasoningMode.DELIMITER:
        return
    for name, text in (
        ("reasoning.empty", reasoning.empty),
        ("turn.prefill_no_thinking", turn.prefill_no_thinking),
    ):
        if reasoning.closed_in(text) and not text.strip().startswith(start):
            yield f"format.{name}", f"expected {start!r} first, as {end!r} alone is not seen, found {text!r}"


def _wordlike(turn: TurnTexts, reasoning: Reasoning) -> Iterator[Problem]:
    """Yield what lets the next word go on an end of reasoning that looks like a word, where white space is elsewhere."""
    end, core = reasoning.end, reasoning.end.strip()
    if not core[-1:].isalnum():
        return
    layout = end[len(end.rstrip()) :]
    joints = {f"turn.{name}": layout + getattr(turn, name) for name in ("reasoning_to_content", "reasoning_to_tools")}
    # The joint is after the empty form as well; after what the prompt writes, only what it writes itself.
    empty = {"reasoning.empty": reasoning.empty + turn.reasoning_to_content if reasoning.empty else ""}
    empty["turn.prefill_no_thinking"] = turn.prefill_no_thinking
    joints |= {name: text.rpartition(core)[2] for name, text in empty.items() if core in text}
    if reasoning.unseen:
        joints["reasoning.unseen"] = layout
    if any(text[:1].isspace() for text in joints.values()):
        for name, text in joints.items():
            if not text:
                yield f"format.{name}", f"expected white space after {core!r}, as it ends in a letter"


def check_syntax(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the markers of a call syntax that open a call, and also close one or separate two."""
    function = tools.function
    last = max((at for at, part in enumerate(function) if isinstance(part, Slot)), default=-1)
    closing = (
        []
        if tools.envelope
        else [(f"{where}.function[{at}]", str(part)) for at, part in enumerate(function) if at > last]
    )
    closers = [*closing, (f"{where}.call_end", tools.call_end), (f"{where}.section_end", tools.section_end)]
    openers, twins = _openers(tools, where), _twins(_openers(tools, where), closers)
    others = [closer for closer in closers if closer[0] not in twins]
    # Where no marker is before it, a call in JSON begins with its bracket.
    bare = [(f"{where}.function[0]", "{")] if tools.envelope and not tools.call_start.strip() else []
    yield from _doubles(_cores([*openers, *bare, *others, (f"{where}.separator", tools.separator)]))


def _twins(openers: list[Named], closers: list[Named]) -> set[str]:
    """Return where the same marker ends what it begins: all calls, or one call, which has to end before the next begins."""
    begins, ends = dict(_cores(openers)), dict(_cores(closers))
    sections = [place for place in begins if place.endswith(".section_start")]
    pairs = {(place, place.replace("_start", "_end")) for place in sections}
    one = [place for place in begins if place not in sections]
    last = [place for place in ends if not place.endswith(".section_end")]
    pairs |= {(one[0], last[-1])} if one and last else set()
    pairs |= {(one[-1], last[0])} if one and last else set()
    return {end for begin, end in pairs if ends.get(end) == begins[begin]}


def check_fences(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the problems of Markdown fences in a call syntax.

    A closing fence must have an opening one, and no word after it: otherwise the parser takes it for text of no part.
    """
    at = tools.function.index(Slot.ARGUMENTS) if Slot.ARGUMENTS in tools.function else 0
    before, after = (
        "".join(part for part in parts if not isinstance(part, Slot))
        for parts in (tools.function[:at], tools.function[at:])
    )
    opened = (tools.section_start + tools.call_start + before).count(_FENCE)
    closing = after + tools.call_end + tools.separator + tools.section_end
    if opened != closing.count(_FENCE) or _WORDED_FENCE.search(closing):
        yield f"{where}.call_end", "expected a Markdown fence without a word for each that is opened, and no other"


def _openers(tools: CallSyntax, where: str) -> list[Named]:
    """Return the markers that begin calls, the outermost first."""
    first = tools.function[0] if tools.function and not isinstance(tools.function[0], Slot) else ""
    named = [(f"{where}.section_start", tools.section_start), (f"{where}.call_start", tools.call_start)]
    named += [] if tools.envelope else [(f"{where}.function[0]", first)]
    return [(place, text) for place, text in named if text.strip()]


def _cores(named: Iterable[Named]) -> list[Named]:
    """Return the markers without what does not tell them apart, blank ones left out."""
    cores = ((where, text.strip().rstrip("[{ \n") or text.strip()) for where, text in named)
    return [(where, core) for where, core in cores if core]


def _without_twins(parts: list[Named]) -> list[Named]:
    """Return the markers, but not an end that is the same text as the start of its own part."""
    starts = {where.removesuffix(".start"): core for where, core in parts if where.endswith(".start")}
    return [(where, core) for where, core in parts if not _is_end_of(where, core, starts)]


def _is_end_of(where: str, core: str, starts: Mapping[str, str]) -> bool:
    return where.endswith(".end") and starts.get(where.removesuffix(".end")) == core


def _doubles(cores: list[Named]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for where, core in cores:
        if core in seen:
            yield where, f"expected another marker than {seen[core].removeprefix('format.')}, found {core!r}"
        seen.setdefault(core, where)
