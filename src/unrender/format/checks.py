"""Finds the first invariant that a Format breaks; it becomes a `FormatError` that names the field.

A check is a generator of problems, each a path and what is wrong there. Texts and counts come first, so that the later
checks work on data of bounded size. Then come the parts by themselves, and then the parts against each other.

Rules:
- What passes here is parsed, generated and exported without an error. An invariant that is missing is a bug here.
- Each marker has a role in reading: it opens something, closes it, or stands between. Two markers of different roles that
  meet at one place must not be the same text. White space around a marker, and brackets of JSON after it, do not tell it
  from another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from unrender.errors import FormatError
from unrender.format.call_checks import Problem, check_tools, is_marked, literals
from unrender.format.parts import CallSyntax, Content, ContentMode, Reasoning, ReasoningMode, Slot, TurnTexts, text_of
from unrender.limits import MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_TEXT

if TYPE_CHECKING:
    from unrender.format import Format


# No model writes them, so analysis, sampler and parser put them where a text is to be told from all others.
_RESERVED = re.compile("[\0\ud800-\udfff\ue000\ufdd0-\ufdef\U0010f000-\U0010ffff]")
"""NUL, at which engines end a text, surrogates, which no text holds, and the stand-ins of analysis, sampler and parser."""


def check(format: Format) -> None:
    """Raise `FormatError`, naming the field, for the first invariant that `format` breaks."""
    for where, problem in _problems(format):
        raise FormatError(problem, where)


def text_problem(text: str) -> str:
    """Return the reason why `text` cannot be a marker, or "" when it can."""
    if len(text) > MAX_MARKER:
        return f"expected at most {MAX_MARKER} characters, found {len(text)}"
    core = text.strip()
    # Of white space at both ends, the longer run counts.
    if core and len(text) - min(len(text.lstrip()), len(text.rstrip())) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of white space at either end"
    if not core and len(text) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of white space, found {len(text)}"
    found = _RESERVED.search(text)
    return f"the character U+{ord(found.group()):04X} is reserved" if found else ""


def _problems(format: Format) -> Iterator[Problem]:
    for where, text in texts_in(format, "format"):
        if isinstance(text, str):
            problem = _reason_problem(text) if where.endswith(".why") else text_problem(text)
        else:
            problem = f"expected at most {MAX_ITEMS} entries, found {len(text)}" if len(text) > MAX_ITEMS else ""
        if problem:
            yield where, problem
    found = texts_in(format, "format")
    size = sum(len(text) for where, text in found if isinstance(text, str) and not where.endswith(".why"))
    if size > MAX_TEXT:
        yield "format", f"expected markers of at most {MAX_TEXT} characters together, found {size}"
    yield from _turn(format.turn)
    yield from _reasoning(format.reasoning)
    yield from _content(format.content, "format.content")
    if format.content_with_calls is not None:
        yield from _content(format.content_with_calls, "format.content_with_calls")
    tolerated = ((f"format.tolerated[{at}]", tools) for at, tools in enumerate(format.tolerated))
    for where, tools in (("format.tools", format.tools), *tolerated):
        yield from check_tools(tools, where)
        yield from check_syntax(tools, where)
        yield from check_fences(tools, where)
    for at, spelling in enumerate(format.spellings):
        where = f"format.spellings[{at}]"
        if spelling.marker != spelling.marker.strip() or not spelling.marker:
            yield f"{where}.marker", f"expected a marker without white space around it, found {spelling.marker!r}"
        yield from _blank(spelling.others, f"{where}.others")
    yield from _blank(format.ignored, "format.ignored")
    yield from _blank(format.preserved_tokens, "format.preserved_tokens")
    if format.reasoning.holds_calls and format.tools == CallSyntax():
        yield "format.reasoning.holds_calls", "there are no calls that reasoning could hold"
    elif format.reasoning.holds_calls and not is_marked(format.tools) and not format.turn.reasoning_to_tools.strip():
        shown = "expected calls with a marker before the name, which shows them inside reasoning"
        yield "format.reasoning.holds_calls", shown
    yield from check_answer(format.turn, format.reasoning, format.content, format.tools, format.ignored)


# The parts by themselves.


def texts_in(value: Any, where: str) -> Iterator[tuple[str, str | tuple[Any, ...]]]:
    """Yield every text and every list of a format, or of a part, with its path; each list before what is in it."""
    if isinstance(value, StrEnum):
        return
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, tuple):
        yield where, value
        for at, item in enumerate(value):
            yield from texts_in(item, f"{where}[{at}]")
    elif is_dataclass(value):
        for item in fields(value):
            yield from texts_in(getattr(value, item.name), f"{where}.{item.name}")


def _reason_problem(text: str) -> str:
    return f"expected at most {MAX_TEXT} characters, found {len(text)}" if len(text) > MAX_TEXT else ""


def _blank(markers: tuple[str, ...], where: str) -> Iterator[Problem]:
    """Yield the markers of a list that are nothing but white space."""
    for at, marker in enumerate(markers):
        if not marker.strip():
            yield f"{where}[{at}]", f"expected a marker, found {marker!r}"


def _turn(turn: TurnTexts) -> Iterator[Problem]:
    yield from _blank(turn.headers, "format.turn.headers")
    yield from _blank(turn.ends, "format.turn.ends")
    for name in JOINTS:
        if len(getattr(turn, name).strip()) == 1:
            yield f"format.turn.{name}", f"expected white space or a marker, found {getattr(turn, name)!r}"
    if turn.start_to_content.strip():
        yield "format.turn.start_to_content", f"expected white space, found {turn.start_to_content!r}"


def _reasoning(reasoning: Reasoning) -> Iterator[Problem]:
    where, mode = "format.reasoning", reasoning.mode
    if mode is ReasoningMode.NONE:
        if reasoning != Reasoning():
            yield f"{where}.mode", "reasoning is described, and its mode is `none`"
        return
    start, end = reasoning.start.strip(), reasoning.end.strip()
    if not end:
        yield f"{where}.end", f"expected a marker that ends reasoning, found {reasoning.end!r}"
    if mode is ReasoningMode.DELIMITER and reasoning.start:
        yield f"{where}.start", f"expected nothing in mode `delimiter`, found {reasoning.start!r}"
    if mode is not ReasoningMode.DELIMITER and not start:
        yield f"{where}.start", f"expected a marker that begins reasoning, found {reasoning.start!r}"
    if reasoning.empty and not reasoning.closed_in(reasoning.empty):
        yield f"{where}.empty", f"expected a text with {end!r} in it, found {reasoning.empty!r}"


def _content(content: Content, where: str) -> Iterator[Problem]:
    if content.mode is ContentMode.PLAIN:
        if content != Content():
            yield f"{where}.mode", "a wrapper is described, and the mode is `plain`"
        return
    if not content.start.strip():
        yield f"{where}.start", f"expected a marker that begins content, found {content.start!r}"
    if content.end and not content.end.strip():
        yield f"{where}.end", f"expected a marker or nothing, found {content.end!r}"


# Markers against each other.

JOINTS = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")

_FENCE = "```"
_WORDED_FENCE = re.compile(r"```\w")

_TEXTS = ("format.reasoning.start", "format.content.start")
"""The markers after which any text may follow."""

NamedMarker = tuple[str, str]
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
    starts = {where.removesuffix(".start"): core for where, core in parts if where.endswith(".start")}
    # `~~thought~~`: a part may end with the marker that begins it, since the second one ends it.
    twins = {(f"{place}.end", core) for place, core in starts.items()}
    # `<think>so<end><say>Hi<end>`: parts with openers of their own may end alike.
    if {"format.reasoning", "format.content"} <= starts.keys():
        twins.add(("format.content.end", dict(parts).get("format.reasoning.end", "")))
    yield from _doubles([marker for marker in parts if marker not in twins])
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


def _hidden(openers: list[NamedMarker]) -> Iterator[Problem]:
    """Yield what begins with the marker that opens reasoning or content: the rest of it could be their text as well."""
    for where, core in openers:
        # `<a>` opens reasoning and `<a>b` content: after `<a>`, `b` could be the first letter of a thought.
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
    """Yield the texts that close reasoning by a marker of one character alone. Prose has such characters as well."""
    start, end = reasoning.start.strip(), reasoning.end.strip()
    if len(end) != 1 or reasoning.mode is ReasoningMode.DELIMITER:
        return
    for name, text in (("reasoning.empty", reasoning.empty), ("turn.prefill_no_thinking", turn.prefill_no_thinking)):
        if reasoning.closed_in(text) and not text.strip().startswith(start):
            yield f"format.{name}", f"expected {start!r} first, as {end!r} alone is not seen, found {text!r}"


def _wordlike(turn: TurnTexts, reasoning: Reasoning) -> Iterator[Problem]:
    """Yield the places where a word would go on right after an end of reasoning that looks like a word itself.

    Reasoning that ends with `done` and is followed by ` Hello` in one place must not be followed by `Hello` in another.
    """
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
    closing = [(f"{where}.function[{at}]", str(part)) for at, part in enumerate(function) if at > last]
    closers = [
        *([] if tools.envelope else closing),
        (f"{where}.call_end", tools.call_end),
        (f"{where}.section_end", tools.section_end),
    ]
    openers, twins = _openers(tools, where), _twins(_openers(tools, where), closers)
    others = [closer for closer in closers if closer[0] not in twins]
    # Where no marker is before it, a call in JSON begins with its bracket.
    bare = [(f"{where}.function[0]", "{")] if tools.envelope and not tools.call_start.strip() else []
    yield from _doubles(_cores([*openers, *bare, *others, (f"{where}.separator", tools.separator)]))


def _twins(openers: list[NamedMarker], closers: list[NamedMarker]) -> set[str]:
    """Return the places of closers that may equal their opener, e.g. a fence around all calls, or around each call.

    A call that such a marker encloses ends before the next one begins.
    """
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

    A closing fence must have an opening one, and no word after it; otherwise the parser drops it.
    """
    at = tools.function.index(Slot.ARGUMENTS) if Slot.ARGUMENTS in tools.function else 0
    before, after = ("".join(literals(parts)) for parts in (tools.function[:at], tools.function[at:]))
    opened = (tools.section_start + tools.call_start + before).count(_FENCE)
    closing = after + tools.call_end + tools.separator + tools.section_end
    if opened != closing.count(_FENCE) or _WORDED_FENCE.search(closing):
        yield f"{where}.call_end", "expected a Markdown fence without a word for each that is opened, and no other"


def _openers(tools: CallSyntax, where: str) -> list[NamedMarker]:
    """Return the markers that begin calls, the outermost first."""
    first = text_of(*tools.function[:1])
    named = [(f"{where}.section_start", tools.section_start), (f"{where}.call_start", tools.call_start)]
    named += [] if tools.envelope else [(f"{where}.function[0]", first)]
    return [(place, text) for place, text in named if text.strip()]


def _cores(named: Iterable[NamedMarker]) -> list[NamedMarker]:
    """Return the markers without what does not tell them apart, blank ones left out."""
    # `<tool_call>[{` and `<tool_call>` are the same marker: the bracket may be the beginning of the arguments.
    cores = ((where, text.strip().rstrip("[{ \n") or text.strip()) for where, text in named)
    return [(where, core) for where, core in cores if core]


def _doubles(cores: list[NamedMarker]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for where, core in cores:
        if core in seen:
            yield where, f"expected another marker than {seen[core].removeprefix('format.')}, found {core!r}"
        seen.setdefault(core, where)
