"""Checks the invariants of a Format. The first violation becomes a `FormatError` that names the field.

Generators yield each check as a path, a flag for failure, and a message. Text lengths and counts are checked first, so later checks process
bounded data. Then each part is checked, and finally conflicts between markers.

Rules:
- A valid Format is parsed, generated and exported without errors. A missing invariant is a bug in this module.
- Each marker either starts a part, ends a part or separates two parts. Two markers with different roles must not have the same text if the
  parser expects both at the same position. Whitespace around markers, and JSON brackets after them, are ignored in this comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from unrender.errors import FormatError
from unrender.format.call_checks import Invariant, check_tools, is_marked, literals
from unrender.format.parts import CallSyntax, Content, ContentMode, Reasoning, ReasoningMode, Slot, TurnTexts, text_of
from unrender.limits import MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_TEXT

if TYPE_CHECKING:
    from unrender.format import Format


# Analysis, sampler and parser use private characters as placeholders, since models don't generate these.
_RESERVED = re.compile("[\0\ud800-\udfff\ue000\ufdd0-\ufdef\U0010f000-\U0010ffff]")
"""Matches NUL, which ends strings in engines, surrogates, which aren't valid in text, and the placeholders."""


def check(format: Format) -> None:
    """Raise `FormatError` for the first invariant that `format` violates, naming the field."""
    for where, wrong, problem in _rows(format):
        if wrong:
            raise FormatError(problem, f"format.{where}" if where else "format")


def text_problem(text: str) -> str:
    """Return the reason why `text` can't be a marker, or "" if it can."""
    if len(text) > MAX_MARKER:
        return f"expected at most {MAX_MARKER} characters, found {len(text)}"
    core = text.strip()
    # Check the longer of the two runs of whitespace at the marker's ends.
    if core and len(text) - min(len(text.lstrip()), len(text.rstrip())) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of whitespace at either end"
    if not core and len(text) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of whitespace, found {len(text)}"
    found = _RESERVED.search(text)
    return f"the character U+{ord(found.group()):04X} is reserved" if found else ""


def _rows(format: Format) -> Iterator[Invariant]:
    size = 0
    for place, text in texts_in(format, ""):
        where = place.removeprefix(".")
        if isinstance(text, tuple):
            yield where, len(text) > MAX_ITEMS, f"expected at most {MAX_ITEMS} entries, found {len(text)}"
        elif where.endswith(".why"):
            yield where, len(text) > MAX_TEXT, f"expected at most {MAX_TEXT} characters, found {len(text)}"
        else:
            problem = text_problem(text)
            yield where, problem, problem
            size += len(text)
    yield "", size > MAX_TEXT, f"expected markers of at most {MAX_TEXT} characters together, found {size}"
    turn, reasoning, tools = format.turn, format.reasoning, format.tools
    for where, text in (*_listed("turn.headers", turn.headers), *_listed("turn.ends", turn.ends)):
        yield where, not text.strip(), f"expected a marker, found {text!r}"
    for where, text in _joints(turn):
        yield where, len(text.strip()) == 1, f"expected whitespace or a marker, found {text!r}"
    layout = turn.start_to_content
    yield "turn.start_to_content", layout.strip(), f"expected whitespace, found {layout!r}"
    yield from _reasoning(reasoning)
    yield from _content(format.content, "content")
    if format.content_with_calls is not None:
        yield from _content(format.content_with_calls, "content_with_calls")
    for where, syntax in (("tools", tools), *((f"tolerated[{at}]", one) for at, one in enumerate(format.tolerated))):
        yield from check_tools(syntax, where)
        yield from _syntax(syntax, where)
    listed = [*_listed("ignored", format.ignored), *_listed("preserved_tokens", format.preserved_tokens)]
    for at, spelling in enumerate(format.spellings):
        blank = spelling.marker != spelling.marker.strip() or not spelling.marker
        expected = f"expected a marker without whitespace around it, found {spelling.marker!r}"
        yield f"spellings[{at}].marker", blank, expected
        listed += _listed(f"spellings[{at}].others", spelling.others)
    for where, text in listed:
        yield where, not text.strip(), f"expected a marker, found {text!r}"
    if reasoning.holds_calls:
        where, shown = "reasoning.holds_calls", is_marked(tools) or turn.reasoning_to_tools.strip()
        yield where, tools == CallSyntax(), "expected a format with calls"
        yield where, not shown, "expected calls with a marker before the name, which shows them inside reasoning"
    yield from _answer(format)


# Parts.


def texts_in(value: Any, where: str) -> Iterator[tuple[str, str | tuple[Any, ...]]]:
    """Yield every text and every list of a format or part, with its path. Each list is yielded before its items."""
    if isinstance(value, str):
        if not isinstance(value, StrEnum):
            yield where, value
    elif isinstance(value, tuple):
        yield where, value
        for at, item in enumerate(value):
            yield from texts_in(item, f"{where}[{at}]")
    else:
        # `fields` isn't used, since it builds a list on every call, and analysis checks a dozen formats per template.
        for name in getattr(value, "__dataclass_fields__", ()):
            yield from texts_in(getattr(value, name), f"{where}.{name}")


def _reasoning(reasoning: Reasoning) -> Iterator[Invariant]:
    mode, start, end = reasoning.mode, reasoning.start, reasoning.end
    if mode is ReasoningMode.NONE:
        yield "reasoning.mode", reasoning != Reasoning(), "expected no other fields in mode `none`"
        return
    opened = mode is not ReasoningMode.DELIMITER
    yield "reasoning.end", not end.strip(), f"expected a marker that ends reasoning, found {end!r}"
    yield "reasoning.start", start and not opened, f"expected nothing in mode `delimiter`, found {start!r}"
    expected = f"expected a marker that begins reasoning, found {start!r}"
    yield "reasoning.start", opened and not start.strip(), expected
    unclosed = reasoning.empty and not reasoning.closed_in(reasoning.empty)
    yield "reasoning.empty", unclosed, f"expected a text with {end.strip()!r} in it, found {reasoning.empty!r}"


def _content(content: Content, where: str) -> Iterator[Invariant]:
    if content.mode is ContentMode.PLAIN:
        yield f"{where}.mode", content != Content(), "expected no other fields in mode `plain`"
        return
    start, end = content.start, content.end
    yield f"{where}.start", not start.strip(), f"expected a marker that begins content, found {start!r}"
    yield f"{where}.end", end and not end.strip(), f"expected a marker or nothing, found {end!r}"


# Conflicts between markers.

_FENCE = "```"
_WORDED_FENCE = re.compile(r"```\w")

NamedMarker = tuple[str, str]
"""A marker's path in the Format, and the marker's text."""


def _answer(format: Format) -> Iterator[Invariant]:
    """Yield the checks for markers of the answer's parts, and for ignored markers, that the parser couldn't distinguish."""
    turn, reasoning, content = format.turn, format.reasoning, format.content
    calls, headers = _cores(_openers(format.tools, "tools")), _cores(_listed("turn.headers", turn.headers))
    edges = [("reasoning.start", reasoning.start), ("reasoning.end", reasoning.end)]
    edges += [("content.start", content.start), ("content.end", content.end)]
    parts = [*_cores(edges), *calls]
    ends, ignored = _listed("turn.ends", turn.ends), _listed("ignored", format.ignored)
    dropped = [*_cores([("turn.end", turn.end)]), *headers, *_cores([*ends, *ignored])]
    starts = {where.removesuffix(".start"): core for where, core in parts if where.endswith(".start")}
    # The start and end markers of a part may be the same, as in `~~thought~~`.
    twins = {(f"{place}.end", core) for place, core in starts.items()}
    # Two parts with start markers may share their end marker, as in `<think>so<end><say>Hi<end>`.
    if {"reasoning", "content"} <= starts.keys():
        twins.add(("content.end", dict(parts).get("reasoning.end", "")))
    yield from _doubles([marker for marker in parts if marker not in twins])
    openers = [(where, core) for where, core in parts if not where.endswith(".end")]
    for where, core in openers:
        # One start marker must not be a prefix of another: if `<a>` starts reasoning and `<a>b` starts content, `b` could be the first
        # letter of the reasoning.
        for other, text in openers if where in ("reasoning.start", "content.start") else ():
            longer = text != core and text.startswith(core)
            yield other, longer, f"expected a marker that does not begin with {core!r} of {where}, found {text!r}"
    if reasoning.mode is ReasoningMode.DELIMITER:
        for other, text in (*parts, *dropped, *_cores(_joints(turn))):
            yield "turn.prefill", text in turn.prefill, f"expected words without the marker {text!r} of format.{other}"
    yield from _prefills(
        turn, reasoning, [one for one in calls if not content.start.strip().startswith(one[1])], headers
    )
    yield from _wordlike(turn, reasoning)
    for where, core in openers:
        for other, text in dropped:
            yield other, core == text, f"expected another marker than {where}, found {text!r}"


def _prefills(
    turn: TurnTexts, reasoning: Reasoning, calls: list[NamedMarker], headers: list[NamedMarker]
) -> Iterator[Invariant]:
    """Yield the checks of the prefill.

    A prefill must not start a call, because no other answer would be possible. It must not contain a header. If the format declares that
    the prompt opens reasoning, the prefill must do so.
    """
    start, end = reasoning.start.strip(), reasoning.end.strip()
    prompts = (("turn.prefill", turn.prefill), ("turn.prefill_no_thinking", turn.prefill_no_thinking))
    for name, text in prompts:
        for where, core in calls:
            begun = text.strip().endswith(core)
            yield name, begun, f"expected words that do not end with {core!r} of {where}, found {text!r}"
    for name, text in prompts:
        for where, core in headers:
            yield name, core in text, f"expected words without the marker {core!r} of {where}"
    opens = reasoning.mode in (ReasoningMode.FORCED_OPEN, ReasoningMode.FORCED_CLOSED) and turn.prefill.strip()
    unopened = opens and start not in turn.prefill
    yield "turn.prefill", unopened, f"expected {start!r} of reasoning.start, found {turn.prefill!r}"
    # A single character may occur in prose, so it closes reasoning only if the start marker precedes it.
    alone = len(end) == 1 and reasoning.mode is not ReasoningMode.DELIMITER
    for name, text in (("reasoning.empty", reasoning.empty), prompts[1]):
        closes = alone and reasoning.closed_in(text) and not text.strip().startswith(start)
        yield name, closes, f"expected {start!r} first, as {end!r} alone isn't recognized, found {text!r}"


def _wordlike(turn: TurnTexts, reasoning: Reasoning) -> Iterator[Invariant]:
    """Yield an error if a word could directly follow an end marker that ends in a letter.

    If the text after the end marker `done` starts with a space in one case, e.g. ` Hello`, it must start with one in all cases.
    """
    end, core = reasoning.end, reasoning.end.strip()
    if not core[-1:].isalnum():
        return
    layout = end[len(end.rstrip()) :]
    joints = {f"turn.{name}": layout + getattr(turn, name) for name in ("reasoning_to_content", "reasoning_to_tools")}
    # The text between reasoning and content also follows the empty form of reasoning, but a prefill already contains the text after its end
    # marker.
    empty = {"reasoning.empty": reasoning.empty + turn.reasoning_to_content if reasoning.empty else ""}
    empty["turn.prefill_no_thinking"] = turn.prefill_no_thinking
    joints |= {name: text.rpartition(core)[2] for name, text in empty.items() if core in text}
    if reasoning.unseen:
        joints["reasoning.unseen"] = layout
    spaced = any(text[:1].isspace() for text in joints.values())
    for name, text in joints.items():
        yield name, spaced and not text, f"expected whitespace after {core!r}, as it ends in a letter"


def _syntax(tools: CallSyntax, where: str) -> Iterator[Invariant]:
    """Yield the checks for markers that start a call but also end or separate calls, and for Markdown fences."""
    function = tools.function
    last = max((at for at, part in enumerate(function) if isinstance(part, Slot)), default=-1)
    closing = [(f"{where}.function[{at}]", str(part)) for at, part in enumerate(function) if at > last]
    closers = [] if tools.envelope else closing
    closers += [(f"{where}.call_end", tools.call_end), (f"{where}.section_end", tools.section_end)]
    openers, twins = _openers(tools, where), _twins(_openers(tools, where), closers)
    others = [closer for closer in closers if closer[0] not in twins]
    # Without a start marker, a JSON call starts with its bracket.
    bare = [(f"{where}.function[0]", "{")] if tools.envelope and not tools.call_start.strip() else []
    yield from _doubles(_cores([*openers, *bare, *others, (f"{where}.separator", tools.separator)]))
    # A closing fence needs an opening fence, and must not be followed by a word. Otherwise the parser drops the fence.
    at = function.index(Slot.ARGUMENTS) if function else 0
    before, after = ("".join(literals(parts)) for parts in (function[:at], function[at:]))
    opened = (tools.section_start + tools.call_start + before).count(_FENCE)
    end = after + tools.call_end + tools.separator + tools.section_end
    wrong = opened != end.count(_FENCE) or _WORDED_FENCE.search(end)
    expected = "expected one closing Markdown fence, without a word, for each opening one"
    yield f"{where}.call_end", wrong, expected


def _twins(openers: list[NamedMarker], closers: list[NamedMarker]) -> set[str]:
    """Return the paths of end markers that may equal their start marker, e.g. fences around all calls or each call.

    A call between such markers ends before the next one starts.
    """
    begins, ends = dict(_cores(openers)), dict(_cores(closers))
    sections = [place for place in begins if place.endswith(".section_start")]
    pairs = {(place, place.replace("_start", "_end")) for place in sections}
    one = [place for place in begins if place not in sections]
    last = [place for place in ends if not place.endswith(".section_end")]
    pairs |= {(one[0], last[-1]), (one[-1], last[0])} if one and last else set()
    return {end for begin, end in pairs if ends.get(end) == begins[begin]}


def _openers(tools: CallSyntax, where: str) -> list[NamedMarker]:
    """Return the markers that start calls, outermost first."""
    first = "" if tools.envelope else text_of(*tools.function[:1])
    named = [(f"{where}.section_start", tools.section_start), (f"{where}.call_start", tools.call_start)]
    return [(place, text) for place, text in (*named, (f"{where}.function[0]", first)) if text.strip()]


def _joints(turn: TurnTexts) -> list[NamedMarker]:
    names = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")
    return [(f"turn.{name}", getattr(turn, name)) for name in names]


def _listed(where: str, markers: Iterable[str]) -> list[NamedMarker]:
    return [(f"{where}[{at}]", text) for at, text in enumerate(markers)]


def _cores(named: Iterable[NamedMarker]) -> list[NamedMarker]:
    """Return the non-blank markers without surrounding whitespace and trailing brackets."""
    # `<tool_call>[{` and `<tool_call>` are the same marker, because the bracket may be the start of the arguments.
    cores = ((where, text.strip().rstrip("[{ \n") or text.strip()) for where, text in named)
    return [(where, core) for where, core in cores if core]


def _doubles(cores: list[NamedMarker]) -> Iterator[Invariant]:
    seen: dict[str, str] = {}
    for where, core in cores:
        yield where, core in seen, f"expected another marker than {seen.setdefault(core, where)}, found {core!r}"
