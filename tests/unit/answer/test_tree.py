"""The tree of an answer for small formats, in a notation of one line, and answers written as text.

The formats are in `tests/corpus/grammars.jsonl`. `'x'` is a literal, `text[a b]` free text without a or b, and `[x]` optional. The parsed
parts have one line each.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from answers import said_in
from cases import cases
from properties.families import COUNTED, FAMILIES, REQUEST, TAGGED, Family
from recipes import ANALYSIS, rows_of

from unrender.answer import Calls, ContentPart, ReasoningPart
from unrender.answer.build import answer_of, names_matter, offered
from unrender.format import Arguments, CallSyntax, Format, Reasoning, ReasoningMode, Slot, TurnTexts
from unrender.nodes import Choice, JsonValue, Literal, Optional, Sequence, Tag, Until, walk
from unrender.parser.prompt_tail import begun_text
from unrender.types import Request, Tool

ROWS = rows_of(ANALYSIS.with_name("grammars.jsonl"))
REQUESTED = ("tool_choice", "named_tool", "parallel_tool_calls", "response_schema", "reasoning_format")


def shown(node):
    """Return a node in the notation of this module."""
    match node:
        case Calls():
            return "one call" if node.maximum == 1 else "calls"
        case Literal(text):
            return repr(text)
        case Until(stops):
            return f"text[{' '.join(stops)}]" if stops else "text"
        case Sequence(parts):
            return " ".join(f"({shown(part)})" if isinstance(part, Choice) else shown(part) for part in parts)
        case Choice(options):
            return " | ".join(map(shown, options))
        case Optional(inner):
            return f"[{shown(inner)}]"
        case Tag(role, inner):
            return f"{role.value}:{shown(inner)}"
        case JsonValue():
            return "json"
    raise AssertionError(node)


def parts_shown(answer):
    """Yield a line for each parsed part, and for each marker between parts."""
    known = [part for part in answer.parts if isinstance(part, ReasoningPart) and not part.declared]
    yield from (part_shown(part) for part in answer.parts if part not in known)
    yield from (f"end {marker.text!r}" for marker in answer.ends)
    yield from (f"dropped {marker.text!r}" for marker in answer.dropped)
    yield from (f"header {marker.text!r}" for marker in answer.headers)
    for marker in answer.joints:
        yield f"joint {marker.text!r}{' before calls' if marker in answer.call_joints else ''}"
    yield from map(part_shown, known)
    yield from ["json"] * answer.json


def part_shown(part):
    """Return a parsed part as a line."""
    match part:
        case ContentPart():
            return f"wrapper {ways(part.open)} to {ways(part.close)}"
        case ReasoningPart():
            known, calls = "" if part.declared else "known ", " with calls" if part.holds_calls else ""
            return f"{known}block {ways(part.open)} to {ways(part.close)}, joint {part.joint!r}{calls}"
        case Calls(leads=leads, ends_turn=ends):
            lines = " on lines" if part.on_lines else ""
            others = tuple(marker.text for marker in part.open.others)
            return f"<calls {part.call_open.text} lead={' or '.join(map(repr, leads))} ends={ends} {others}{lines}>"
    raise AssertionError(part)


def ways(marker):
    return " | ".join(repr(spelling.text) for spelling in marker.spelled or (marker,))


def asked(row):
    """Return the format and the request of a row. A row names its tools."""
    request = Request(
        tools=None if row.get("tools", ()) is None else tuple(Tool(name=name) for name in row.get("tools", ())),
        **{key: row[key] for key in REQUESTED if key in row and key != "tool_choice"},
        tool_choice=row.get("tool_choice", "auto"),
    )
    return Format.from_dict({"version": 1, **row["format"]}), request


@pytest.mark.parametrize("row", [row for row in ROWS if "written" in row], ids=lambda row: row["why"])
def test_what_may_be_written(row):
    """The grammar has every form of an answer, each part after its joint, and free text without markers."""
    assert shown(answer_of(*asked(row)).written) == row["written"]


@pytest.mark.parametrize("row", [row for row in ROWS if "read" in row], ids=lambda row: row["why"])
def test_what_is_read(row):
    """Parsed parts may come in any order in free text, and ignored markers between them are dropped."""
    format, request = asked(row)
    known = [Reasoning(mode=ReasoningMode.TAG_BASED, **markers) for markers in row.get("known", ())]

    assert list(parts_shown(answer_of(format, request, known))) == row["read"]


@pytest.mark.parametrize("row", [row for row in ROWS if "continued" in row], ids=lambda row: row["why"])
def test_text_to_continue(row):
    """Text that precedes continued content if the message has no reasoning."""
    format, request = asked(row)

    assert begun_text("", "Hi", format, request, thinks=False, where="") == row["continued"]


def test_layout_at_both_ends():
    """The tree stores the whitespace before content and before the end of the turn, and whether content is stripped."""
    layout = answer_of(Format(turn=TurnTexts(start_to_content="\n", end="\n\n<end>"), cleans_content=True), Request())
    plain = answer_of(Format(turn=TurnTexts(end="<end>")), Request())

    assert (layout.lead, layout.trail, layout.cleans) == ("\n", "\n\n", True)
    assert (plain.lead, plain.trail, plain.cleans) == ("", "", False)


def calls_in(format: Format, request: Request) -> list[Calls]:
    """Return the allowed calls among the parsed parts and in the grammar."""
    answer = answer_of(format, request)
    return [node for node in (*answer.parts, *walk(answer.written)) if isinstance(node, Calls) and not node.forbidden]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_calls_are_read_when_they_are_allowed(family: Family) -> None:
    """With tools, calls are allowed. Without tools, or with `tool_choice="none"`, they aren't."""
    format = family.format

    assert calls_in(format, REQUEST)
    assert calls_in(format, Request()) == []
    assert calls_in(format, Request(tools=REQUEST.tools, tool_choice="none")) == []


def test_a_named_tool_is_the_only_one_offered() -> None:
    """A named tool is the only one offered. If the tools are unknown, they stay unknown."""
    named = Request(tools=REQUEST.tools, tool_choice="named", named_tool="now")

    assert [tool.name for tool in offered(named) or ()] == ["now"]
    assert offered(Request(tools=None)) is None
    assert offered(Request(tools=None, tool_choice="named", named_tool="now")) is None


def test_names_matter_where_a_line_begins_a_call() -> None:
    """Tool names matter if a call is a line without a marker, and its arguments are one object."""
    bare = CallSyntax(function=(Slot.NAME, ":", Slot.ARGUMENTS))
    marked = replace(bare, call_start="<c>", call_end="</c>")
    values = Arguments(start="(", end=")", entry=(Slot.KEY, "=", Slot.VALUE), separator=", ")
    tagged = replace(bare, arguments=values)
    lines, words = TurnTexts(content_to_tools="\n"), TurnTexts(content_to_tools=" ")

    assert names_matter(Format(tools=bare, turn=lines))
    assert names_matter(Format(tools=marked, tolerated=(bare,), turn=lines))
    assert not any(names_matter(Format(tools=syntax, turn=lines)) for syntax in (marked, tagged, CallSyntax()))
    assert not names_matter(Format(tools=bare, turn=words))


def test_the_literals_that_begin_calls() -> None:
    """The outermost opener comes first: section, call, function."""
    assert COUNTED.format.tools.openers[:2] == ["<|calls_begin|>", "<|call_begin|>"]
    assert TAGGED.format.tools.openers == ["<tool_call>\n", "<function="]


@cases
def test_an_answer_is_written(why, format, said, text):
    """The text between two parts is written before each part, and calls and values are written in the format's syntax."""
    assert said_in(Format.from_dict({"version": 1, **format}), **said) == text


def test_a_tuple_is_a_list():
    """A tuple in arguments is written as a list."""
    listed = Format(tools=CallSyntax(function=("<f>", Slot.NAME, ":", Slot.ARGUMENTS), arguments=Arguments()))

    assert said_in(listed, calls=[("f", {"a": (1, (2,))}, "")]) == '<f>f:{"a": [1, [2]]}'
