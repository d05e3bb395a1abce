"""The texts that may come next at each place of an answer, in the format's words."""

from __future__ import annotations

import pytest
from cases import cases

from unrender import ChatTemplate, ParseError, Parser
from unrender.grammar import Grammar, content, until
from unrender.types import Request, Tool

JSON_TAGS = "tests/templates/json-tags.jinja"
REQUEST = Request(tools=(Tool(name="now", parameters={"properties": {"zone": {"type": "string"}}}),))


def parser_after(template: str, text: str, *, strict: bool = False) -> Parser:
    """Return a parser of the template's format after feeding `text`."""
    parser = Parser(ChatTemplate.from_file(template).format, REQUEST, strict=strict)
    parser.feed(text)
    return parser


@cases
def test_inside_a_call(template: str, text: str, expected: list[str]) -> None:
    """A possible call may still turn out to be text. Later, its next marker, name or value is expected."""
    found = parser_after(template, text).expected()

    assert " or ".join(found) == " or ".join(expected)


def test_in_free_text() -> None:
    """In free text, any character and each marker that would end the text are expected."""
    found = parser_after(JSON_TAGS, "Hello").expected()

    assert found[0] == "text"
    assert {"'<tool_call>'", "'<|end|>'"} <= set(found)


def test_in_reasoning() -> None:
    """In reasoning, text and the closing marker are expected."""
    found = parser_after(JSON_TAGS, "<think>\nRain").expected()

    assert found[0] == "reasoning"
    assert "'</think>'" in found


def test_a_strict_parser_wants_the_same() -> None:
    """A strict parser's `expected` equals that of the `ParseError` for any other text."""
    parser = parser_after(JSON_TAGS, '<tool_call>\n{"name": "now", "arguments": {}}', strict=True)
    (expected,) = parser.expected()

    with pytest.raises(ParseError) as raised:
        parser.feed("!")

    assert raised.value.expected == expected


def test_asking_changes_nothing() -> None:
    """Calling `expected` after each character doesn't change the result."""
    text = 'Hi<tool_call>\n{"name": "now", "arguments": {"zone": "CET"}}\n</tool_call>'
    asked = parser_after(JSON_TAGS, "")
    for character in text:
        asked.feed(character)
        assert asked.expected()
    asked.finish()
    plain = parser_after(JSON_TAGS, text)
    plain.finish()

    assert [(call.name, call.arguments_json) for call in asked.message.tool_calls] == [
        (call.name, call.arguments_json) for call in plain.message.tool_calls
    ]
    assert asked.message.content == plain.message.content == "Hi"


def test_nothing_may_come_after_the_end() -> None:
    """A finished parser expects nothing."""
    parser = parser_after(JSON_TAGS, "Hello")
    parser.finish()

    assert parser.expected() == ()


def test_a_grammar_made_by_hand_says_it_as_well() -> None:
    """A parser with a handwritten grammar returns the expected texts, too."""
    format = ChatTemplate.from_file(JSON_TAGS).format
    grammar = Grammar(content(until("<stop>")))

    parser = Parser(format, Request(), grammar=grammar)

    assert parser.expected() == ("text", "'<|end|>'", "'<stop>'")
    parser.finish()
    assert parser.expected() == ()
