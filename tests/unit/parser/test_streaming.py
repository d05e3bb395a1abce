"""The parser as callers see it: chunks, expected texts, special tokens and quoted ones."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from properties.families import JSON_ENVELOPE, REQUEST, TAGGED
from rows import FORMATS
from splitting import fed, merged

from unrender import (
    ChatTemplate,
    ContentText,
    Event,
    GrammarError,
    MessageFinished,
    ParseError,
    Parser,
    Policy,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender import grammar as c
from unrender.errors import RequestError, StateError
from unrender.grammar import Grammar, content, until
from unrender.parser.prompt_tail import read_prefill
from unrender.testing import numbered_id
from unrender.types import Request, Span, Tool

CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


@cases
def test_each_chunk_has_its_events(
    why: str, format: str, given: dict[str, Any], chunks: list[tuple[str | None, bool | None, str]]
) -> None:
    """A chunk is a text, whether it is special, and its events. Without a text, the answer ends."""
    policy, (known, grammar) = Policy(**given.get("policy", {})), FORMATS[format]
    parser = Parser(known, REQUEST, grammar=grammar, ids=numbered_id, **{**given, "policy": policy})

    assert [
        repr(parser.finish() if text is None else parser.feed(text, special=special)) for text, special, _ in chunks
    ] == [events for *_, events in chunks]


@cases
def test_the_prefill_follows_a_header_at_the_end(prompt: str, written: str) -> None:
    """The last header counts. Without one, an open reasoning marker at the very end counts."""
    assert read_prefill(JSON_ENVELOPE.format, prompt) == written


def test_strict_errors_show_the_text() -> None:
    """The error of a strict parser contains the surrounding text."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, strict=True)

    with pytest.raises(ParseError) as raised:
        parser.feed('Hi <tool_call>{"name": "nope"}')

    assert "<tool_call>" in raised.value.context


HAND_MADE = Grammar(
    c.sequence(
        c.content(c.until("!")),
        c.zero_or_more(
            c.tool_call(c.sequence("!", c.name(c.chars("a-z", 1, None)), " ", c.cut(), c.arguments(c.json_value())))
        ),
    )
)
ANSWER = "Look: !now {}!now {}"


def handmade(**options: Any) -> Parser:
    return Parser(JSON_ENVELOPE.format, REQUEST, grammar=HAND_MADE, **options)


def moved(parser: Parser, **options: Any) -> Parser:
    """Return the parser restored from its JSON state, as in another process."""
    state = json.loads(json.dumps(parser.state()))
    return Parser._restored(parser._format, parser._machine.request, state, grammar=parser._grammar, **options)


def marked(position: int, name: str) -> str:
    return f"{name}/{position}"


@pytest.mark.parametrize("make", [handmade, lambda **options: Parser(JSON_ENVELOPE.format, REQUEST, **options)])
def test_a_parser_can_be_kept_at_any_place(make: Any) -> None:
    """As JSON, as a pickle and as a copy, a parser continues like the original, with its policy and special tokens."""
    text = ANSWER if make is handmade else f"<think>\nHm.\n</think>\n\nLook: <b>\n{CALL}\n{CALL}"
    policy = Policy(unknown_tools="call", tool_calls="streamed")
    for at in range(0, len(text), 5):
        parser = make(ids=marked, policy=policy, special_tokens=("<b>",), known_ids=("x", "y"))
        parser.feed(text[:at])
        others = [moved(parser, ids=marked), pickle.loads(pickle.dumps(parser)), parser.copy()]
        expected = outcome(parser, text[at:])
        for other in others:
            assert other._machine.policy == policy
            assert other._quoter.tokens == ("<b>",)
            assert outcome(other, text[at:]) == expected


def outcome(parser: Parser, rest: str) -> tuple[list[Event], Any, tuple[Span, ...], int]:
    events = [*(event for character in rest for event in parser.feed(character)), *parser.finish()]
    return merged(events), parser.message, parser.spans, parser._settled


@pytest.mark.parametrize("make", [handmade, lambda **options: Parser(JSON_ENVELOPE.format, REQUEST, **options)])
def test_calls_of_a_copy_may_have_ids_of_their_own(make: Any) -> None:
    """Later calls of a copy use its own `ids`. By default, they use those of the original."""
    calls = ("!now {}", "!now {}") if make is handmade else (CALL, CALL)
    parser = make(ids=marked)
    parser.feed(calls[0])
    copy, other, restored = parser.copy(ids=numbered_id), parser.copy(), moved(parser, ids=numbered_id)
    for one in (parser, copy, other, restored):
        fed(one, [calls[1]])

    assert [[call.id for call in one.message.tool_calls] for one in (parser, copy, other, restored)] == [
        ["now/0", "now/1"],
        ["now/0", "call00001"],
        ["now/0", "now/1"],
        ["now/0", "call00001"],
    ]


def test_a_parser_that_has_finished_is_finished_after_a_journey() -> None:
    """A finished parser is still finished after restoring, with its finish reason."""
    for make in (handmade, lambda: Parser(JSON_ENVELOPE.format, REQUEST)):
        parser = make()
        parser.feed('!now {"a' if make is handmade else CALL[:-14])
        parser.finish("length")
        again = moved(parser)

        assert (again.finish(), again.message, again.spans) == ([], parser.message, parser.spans)
        assert again.state() == parser.state()
        stopped = make()
        stopped.finish()
        assert moved(stopped).state() == stopped.state()
        assert [call.status for call in again.message.failed_calls] == ["truncated"]
        with pytest.raises(ValueError, match="after finish"):
            again.feed("x")


def test_what_a_hand_made_state_says_must_be_what_its_text_says() -> None:
    """A state is rejected if the grammar or a strict parser doesn't accept its text."""
    state = handmade(strict=True).state()
    for changes, message in (
        ({"fed": [{"kind": "unknown", "text": "!now ;"}]}, r"state\.fed: expected text that the parser accepts"),
        ({"prefill": "!then "}, r"state\.fed: expected text that the parser accepts"),
        (
            {"fed": [{"kind": "unknown", "text": "Hi"}]},
            r"state\.message: expected [0-9a-f]{32}, the digest of the parsed message",
        ),
    ):
        with pytest.raises(StateError, match=message):
            Parser._restored(JSON_ENVELOPE.format, REQUEST, {**state, **changes}, grammar=HAND_MADE)


def test_the_prompt_may_have_begun_a_hand_made_answer() -> None:
    """The prefill is content only if the answer is continued. A prefill that doesn't fit the grammar is an error."""
    given, continued = handmade(prefill="Look"), handmade(prefill="Look", is_continuation=True)
    for parser in (given, continued):
        for again in (moved(parser), parser):
            fed(again, [": !now {}"])
            assert again.spans[0].start == 0
            assert len(again.message.tool_calls) == 1

    assert (given.message.content, continued.message.content) == (": ", "Look: ")
    with pytest.raises(GrammarError, match="the prompt begins the answer with '!then '"):
        handmade(prefill="!then ")


def test_text_that_is_held_back_is_not_lost() -> None:
    """A possible start of a marker waits for more text, also in copies and saved parsers, and is returned once."""
    waiting = Parser(JSON_ENVELOPE.format, REQUEST)
    assert [waiting.feed(text) for text in ("a", "<", "t", "h")] == [[ContentText("a")], [], [], []]
    for rest, whole in ((" b", "a < b"), ("think", "a <think"), ("", "a <")):
        parser = Parser(JSON_ENVELOPE.format, REQUEST)
        assert parser.feed("a") == [ContentText("a")]
        assert parser.feed(" <") == [ContentText(" ")]
        for one in (parser.copy(), moved(parser), parser, parser.copy()):
            said = [*one.feed(rest), *one.finish()] if one is not parser else one.feed("")
            if one is not parser:
                assert "".join(event.text for event in said if isinstance(event, ContentText)) == whole[2:]
                assert one.message.content == whole


def test_the_last_text_may_come_with_the_end() -> None:
    """Text passed to `finish` is read like text that was fed before."""
    for make in (handmade, lambda: Parser(JSON_ENVELOPE.format, REQUEST)):
        apart, at_once, after = make(), make(), make()
        expected = [*apart.feed("Hi there"), *apart.finish()]
        assert merged(at_once.finish(text="Hi there")) == merged(expected)
        assert after.finish() == [MessageFinished()]
        with pytest.raises(ValueError, match="after finish"):
            after.finish(text="x")
        with pytest.raises(RequestError, match="text: expected text, found b"):
            make().finish(text=b"x")
    cut = Parser(TAGGED.format, REQUEST)
    cut.finish("length", text="<function=now>\n<parameter=city>\nRome\n</parameter>\n")
    assert [call.status for call in cut.message.failed_calls] == ["truncated"]


def test_the_token_limit_cuts_off_nothing_but_the_end() -> None:
    """A damaged call that ends before the limit is repaired, even if all text is passed to `finish`."""
    text = CALL.replace(", ", "</call>, ") + " Done."
    apart, at_once = (Parser(JSON_ENVELOPE.format, REQUEST, ids=numbered_id) for _ in range(2))
    expected = [*apart.feed(text), *apart.finish("length")]
    assert merged(at_once.finish("length", text=text)) == merged(expected)
    assert [call.name for call in apart.message.tool_calls] == ["now"]


def test_calls_begin_and_end_at_positions_of_the_text() -> None:
    """The positions are the first character of the first marker, and the one after the last marker."""
    events = Parser(JSON_ENVELOPE.format, REQUEST).finish(text=f"Hi {CALL}\nBye")
    started, ended = (event for event in events if isinstance(event, ToolCallStarted | ToolCallFinished))
    assert f"Hi {CALL}"[started.position : ended.position] == CALL


def test_what_is_settled_is_the_models() -> None:
    """At first nothing is settled, whatever the prompt contains."""
    new, prefill = Parser(JSON_ENVELOPE.format, REQUEST), Parser(JSON_ENVELOPE.format, REQUEST, prefill="<think>\n")
    assert (new._settled, prefill._settled, new._steps > 0, new.spans, prefill.spans) == (0, 0, True, (), ())
    prefill.feed("Hi")
    assert prefill._settled == 2


def test_most_text_takes_no_instruction() -> None:
    """Text on the fast path counts as one step each time it's accounted for. Positions are the same."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST)
    parser.feed("Hi")
    before = parser._steps
    for _ in range(100):
        parser.feed(" there")

    assert parser._steps == before + 1
    assert parser._settled == 2 + 600
    assert parser.spans == (Span(parser.spans[0].role, 0, 602),)
    assert parser.message.content == "Hi" + " there" * 100


def test_what_special_text_and_ordinary_text_are() -> None:
    """If the caller marks special text, a marker in ordinary text is text. Format or caller list the tokens."""
    tokens = replace(JSON_ENVELOPE.format, preserved_tokens=("<think>",))
    parser = Parser(tokens, REQUEST)
    parser.feed("<thi", special=False)
    assert parser.feed("nk>", special=False) == [ContentText("<think>")]
    parser.feed("</th", special=False)
    events = parser.feed("<tool_call>", special=True)
    other = Parser(tokens, REQUEST, special_tokens=())
    other.feed("<think>\nHm.", special=False)

    assert events == [ContentText("</th")]
    assert other.message.reasoning == "Hm."


def test_a_required_call_counts_in_ordinary_tokens() -> None:
    """The grammar of a required call lets a model spell its markers in ordinary tokens, so they count. Otherwise they are text."""
    output = '<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call>'
    required, usual = (
        Parser(JSON_ENVELOPE.format, replace(REQUEST, tool_choice=choice), special_tokens=("<tool_call>",))
        for choice in ("required", "auto")
    )
    for parser in (required, usual):
        parser.feed(output, special=False)
        parser.finish()

    assert [call.name for call in required.message.tool_calls] == ["get_weather"]
    assert usual.message.content == output


def test_a_strict_parser_that_has_raised_cannot_be_restored() -> None:
    """The restored parser would reject the same text again."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, strict=True)
    with pytest.raises(ParseError):
        parser.feed('<tool_call>\n{"name": "now", ;')

    with pytest.raises(StateError, match=r"state\.fed: expected text that the parser accepts: "):
        moved(parser)


JSON_TAGS = "tests/templates/json-tags.jinja"
ZONED = Request(tools=(Tool(name="now", parameters={"properties": {"zone": {"type": "string"}}}),))


def parser_after(template: str, text: str, *, strict: bool = False) -> Parser:
    """Return a parser of the template's format after feeding `text`."""
    parser = Parser(ChatTemplate.from_file(template).format, ZONED, strict=strict)
    parser.feed(text)
    return parser


@cases
def test_inside_a_call(template: str, text: str, expected: list[str]) -> None:
    """A possible call may still turn out to be text. Later, its next marker, name or value is expected."""
    found = parser_after(template, text).expected()

    assert " or ".join(found) == " or ".join(expected)


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


def test_a_grammar_made_by_hand_says_it_as_well() -> None:
    """A parser with a handwritten grammar returns the expected texts, too."""
    format = ChatTemplate.from_file(JSON_TAGS).format
    grammar = Grammar(content(until("<stop>")))

    parser = Parser(format, Request(), grammar=grammar)

    assert parser.expected() == ("text", "'<|end|>'", "'<stop>'")
    parser.finish()
    assert parser.expected() == ()


def test_copies_are_independent() -> None:
    """A copy continues from the same state, including quoted tokens."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, special_tokens=("<tool_call>",))
    parser.feed("<tool_", special=False)
    twin = parser.copy()
    twin.feed("call>", special=False)
    twin.finish()
    parser.finish()

    assert (parser.message.content, twin.message.content) == ("<tool_", "<tool_call>")
