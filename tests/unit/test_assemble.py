"""assemble: a Format and a Request become the grammar of one turn."""

from __future__ import annotations

import pytest
from properties.families import COUNTED, FAMILIES, JSON_ENVELOPE, REQUEST, TAGGED, Family

from unrender.assemble import assemble, entry_literals, literals, offered
from unrender.format import Format
from unrender.grammar.nodes import Calls, Choice, Interleave, JsonValue, Literal, Sequence, Tag, Tolerated, walk
from unrender.messages import Request, ToolChoice


def calls_in(format: Format, request: Request) -> list[Calls]:
    return [node for node in walk(assemble(format, request).root) if isinstance(node, Calls)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_calls_are_read_when_they_are_allowed(family: Family) -> None:
    """With tools on offer there are calls in the grammar; without, or forbidden, there are none."""
    format = family.format

    assert calls_in(format, REQUEST)
    assert calls_in(format, Request()) == []
    assert calls_in(format, Request(tools=REQUEST.tools, tool_choice=ToolChoice.NONE)) == []


def test_a_plain_format_is_free_text() -> None:
    """Nothing but content: the root is free text without a marker in it."""
    root = assemble(Format(), Request()).root

    assert isinstance(root, Interleave)
    assert not any(isinstance(node, Literal) and node.text for node in walk(root))


def test_a_response_schema_makes_content_json() -> None:
    """The schema is in the grammar, and calls are not generated beside it."""
    schema = {"type": "object"}
    root = assemble(JSON_ENVELOPE.format, Request(response_schema=schema)).root

    assert JsonValue(schema) in list(walk(root))


def test_other_spellings_are_read_only() -> None:
    """Reasoning in a format with markers is read between them."""
    root = assemble(JSON_ENVELOPE.format, REQUEST).root

    texts = {node.text for node in walk(root) if isinstance(node, Literal)}
    assert {JSON_ENVELOPE.format.reasoning.start, JSON_ENVELOPE.format.reasoning.end} <= texts


def test_a_named_tool_is_the_only_one_offered() -> None:
    """Naming a tool leaves no other; unknown tools stay unknown."""
    named = Request(tools=REQUEST.tools, tool_choice=ToolChoice.NAMED, named_tool="now")

    assert [tool.name for tool in offered(named) or ()] == ["now"]
    assert offered(Request(tools=None)) is None


def test_the_literals_that_begin_calls() -> None:
    """The outermost first: section, call, function."""
    assert entry_literals(COUNTED.format.tools)[:2] == ["<|calls_begin|>", "<|call_begin|>"]
    assert entry_literals(TAGGED.format.tools) == ["<tool_call>\n", "<function="]


def test_literals_are_collected_through_choices() -> None:
    """Texts of literals, inside choices and tolerated parts, in order."""
    nodes = (Literal("a"), Choice((Literal("b"), Tolerated(Literal("c")))), Tag("content", Sequence(())))

    assert literals(nodes) == ["a", "b", "c"]
