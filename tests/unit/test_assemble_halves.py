"""assemble: what may be written and what is read, for small formats, in a notation of one line.

The formats are in `tests/corpus/grammars.jsonl`. `'x'` is a literal, `text[a b]` free text without a or b, `[x]` what may be left out; what is read is one line for each part.
"""

from __future__ import annotations

import pytest
from properties.families import FAMILIES, REQUEST
from recipes import ANALYSIS, rows_of

from unrender import Request, Tool, ToolChoice
from unrender.format import (
    Format,
    Reasoning,
    ReasoningMode,
    TurnTexts,
)
from unrender.grammar.assemble import Block, Dropped, EndOfTurn, Header, Joint, JsonAnswer, Wrapper, answer_grammar
from unrender.nodes import (
    Calls,
    Choice,
    JsonValue,
    Literal,
    Optional,
    Sequence,
    Tag,
    Until,
    walk,
)
from unrender.parser.prompt_tail import begun_text

ROWS = rows_of(ANALYSIS.with_name("grammars.jsonl"))
REQUESTED = ("tool_choice", "named_tool", "parallel_tool_calls", "response_schema", "reasoning_format")


def shown(node):
    """Return a node in the notation above."""
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


def part_shown(part):
    """Return a part of what is read as a line."""
    match part:
        case EndOfTurn(text):
            return f"end {text!r}"
        case Dropped(text):
            return f"dropped {text!r}"
        case Header(text):
            return f"header {text!r}"
        case Joint(text, before_calls):
            return f"joint {text!r}{' before calls' if before_calls else ''}"
        case Wrapper():
            return f"wrapper {ways(part.opens)} to {ways(part.closes)}"
        case Block():
            known, calls = "" if part.declared else "known ", " with calls" if part.holds_calls else ""
            return f"{known}block {ways(part.opens)} to {ways(part.closes)}, joint {part.joint!r}{calls}"
        case JsonAnswer():
            return "json"
        case Calls(syntax=syntax, leads=leads, ends_turn=ends, spellings=spellings):
            lines = " on lines" if part.on_lines else ""
            return f"<calls {syntax.call_start} lead={' or '.join(map(repr, leads))} ends={ends} {spellings} max={part.maximum}{lines}>"
    raise AssertionError(part)


def ways(texts):
    return " | ".join(map(repr, texts))


def asked(row):
    """Return the format and the request of a row, whose tools are names."""
    request = Request(
        tools=None if row.get("tools", ()) is None else tuple(Tool(name=name) for name in row.get("tools", ())),
        **{key: row[key] for key in REQUESTED if key in row and key != "tool_choice"},
        tool_choice=ToolChoice(row.get("tool_choice", "auto")),
    )
    return Format.from_dict({"version": 1, **row["format"]}), request


@pytest.mark.parametrize("row", [row for row in ROWS if "written" in row], ids=lambda row: row["why"])
def test_what_may_be_written(row):
    """The generated half: every way to answer, each part after its joint, and no marker in free text."""
    assert shown(answer_grammar(*asked(row)).writes.root) == row["written"]


@pytest.mark.parametrize("row", [row for row in ROWS if "read" in row], ids=lambda row: row["why"])
def test_what_is_read(row):
    """The other half: the parts that are in free text, in any order, and what is dropped between them."""
    format, request = asked(row)
    known = [Reasoning(mode=ReasoningMode.TAG_BASED, **markers) for markers in row.get("known", ())]

    assert [part_shown(part) for part in answer_grammar(format, request, known).reads.parts] == row["read"]


@pytest.mark.parametrize("row", [row for row in ROWS if "continued" in row], ids=lambda row: row["why"])
def test_text_to_continue(row):
    """What comes before content that goes on, where the message has no thought."""
    format, request = asked(row)

    assert begun_text("", "Hi", format, request, thinks=False, where="") == row["continued"]


KNOWN = [(family.name, family.format, REQUEST) for family in FAMILIES]
# What a prompt writes for no thought may have any words in it, also between two closers.
KNOWN += [(row["why"], *asked(row)) for row in ROWS if not row["why"].startswith("Words for no reasoning")]


@pytest.mark.parametrize(("format", "request_"), [made[1:] for made in KNOWN], ids=[made[0] for made in KNOWN])
def test_each_written_literal_is_known_to_the_reader(format, request_):
    """Layout apart, what is written is made of markers that are read: of parts, ends, headers, joints, and of what is dropped."""
    grammar = answer_grammar(format, request_)
    known = [grammar.reads.header, format.opening]
    for part in grammar.reads.parts:
        known += [getattr(part, "text", ""), *getattr(part, "opens", ()), *getattr(part, "closes", ())]

    for node in walk(grammar.writes.root):
        rest = node.text if isinstance(node, Literal) else ""
        for marker in sorted(filter(None, map(str.strip, known)), key=len, reverse=True):
            rest = rest.replace(marker, "")
        assert not rest.strip(), node


def test_layout_at_both_ends():
    """Layout before content and before the end of the turn is known, and whether content is cleaned."""
    layout = answer_grammar(
        Format(turn=TurnTexts(start_to_content="\n", end="\n\n<end>"), cleans_content=True), Request()
    ).reads
    plain = answer_grammar(Format(turn=TurnTexts(end="<end>")), Request()).reads

    assert (layout.lead, layout.trail, layout.cleans) == ("\n", "\n\n", True)
    assert (plain.lead, plain.trail, plain.cleans) == ("", "", False)
