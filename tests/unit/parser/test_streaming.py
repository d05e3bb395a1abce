"""The parser as callers see it."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from properties.families import ARRAY, COUNTED, JSON_ENVELOPE, REQUEST, TAGGED
from splitting import fed, merged, splits

from unrender import (
    ContentText,
    Event,
    GrammarError,
    MessageFinished,
    ParseError,
    Parser,
    Policy,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
    Turn,
)
from unrender import grammar as c
from unrender.errors import RequestError, StateError
from unrender.format import Format, Reasoning, ReasoningMode, Spelling, TurnTexts
from unrender.grammar import Grammar
from unrender.parser.prompt_tail import read_prefill
from unrender.testing import numbered_id
from unrender.types import Request, Span

CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def test_reasoning_that_the_prompt_has_opened_is_open() -> None:
    """Text after the assistant's header in the prompt counts as written, and determines where reading starts."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, prompt="<|start|>user\nHi<|end|>\n<|start|>assistant\n<think>\n")

    assert parser.feed("so\n</think>\n\nHi") == [ReasoningText("so"), ContentText("Hi")]


def test_a_prefilled_answer_is_part_of_the_message() -> None:
    """Text that is already in the prompt comes first, and spans count from the start of the output."""
    parser = Parser(ARRAY.format, REQUEST, prompt="<|begin|>\nHere are my steps:\n")
    fed(parser, ["one\n[BEGIN ANSWER]\nTwo"])

    assert parser.message.reasoning == "Here are my steps:\none"
    assert parser.spans[0].start == 0
    assert parser.spans[-1].end == len("one\n[BEGIN ANSWER]\nTwo")


@pytest.mark.parametrize("tools", ["content", "call"])
def test_each_call_is_finished_at_its_own_end_marker(tools: Any) -> None:
    """Section markers aren't names of unknown tools, so the first call doesn't wait for the end of the answer."""
    format = COUNTED.format
    call = "<|call_begin|>functions.now:{}<|args_begin|>{{}}<|call_end|>"
    text = f"<|calls_begin|>{call.format(0)}{call.format(1)}<|calls_end|>"
    parser = Parser(format, REQUEST, policy=Policy(unknown_tools=tools))

    ends = [
        at
        for at, character in enumerate(text, 1)
        for event in parser.feed(character)
        if type(event) is ToolCallFinished
    ]

    assert [text[:at].count("<|call_end|>") for at in ends] == [1, 2]


@cases
def test_the_prefill_follows_a_header_at_the_end(prompt: str, written: str) -> None:
    """The last header counts. Without one, an open reasoning marker at the very end counts."""
    assert read_prefill(JSON_ENVELOPE.format, prompt) == written


def test_spans_say_what_each_character_is() -> None:
    """Spans cover text, markers, names, arguments and layout without a gap."""
    output = f"Hi\n{CALL}"
    parser = Parser(JSON_ENVELOPE.format, REQUEST, ids=numbered_id)
    fed(parser, [output])

    roles = {(span.role.value, output[span.start : span.end]) for span in parser.spans}
    assert {("content", "Hi"), ("name", "now"), ("argument", "{}"), ("marker", "</tool_call>")} <= roles
    assert isinstance(parser.spans[0], Span)


def test_spans_that_may_be_undone_are_not_shown() -> None:
    """A marker has no span while it may still turn out to be text."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, ids=numbered_id)
    parser.feed("Hi <tool_call>")

    assert parser.spans[-1].end <= len("Hi ")


@pytest.mark.parametrize("request_", [Request(), Request(tools=REQUEST.tools, tool_choice="none")])
def test_without_tools_a_call_is_content(request_: Request) -> None:
    """If no call is allowed, its text is content, byte for byte."""
    parser = Parser(JSON_ENVELOPE.format, request_)
    fed(parser, [CALL])

    assert parser.message.content == CALL


def test_the_end_comes_once() -> None:
    """A second `finish` returns nothing, and text after the end is an error."""
    parser = Parser(Format(), Request())

    assert parser.finish() == [MessageFinished()]
    assert parser.finish() == []
    with pytest.raises(ValueError, match="after finish"):
        parser.feed("x")


def test_strict_errors_say_where_and_what() -> None:
    """A strict parser raises with the position, the expected text, and the surrounding text."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, strict=True)

    with pytest.raises(ParseError) as raised:
        parser.feed('Hi <tool_call>{"name": "nope"}')

    assert raised.value.position == len("Hi ")
    assert raised.value.expected == "the name of one of the tools"
    assert "<tool_call>" in raised.value.context


def test_words_with_which_the_prompt_closes_reasoning_are_not_the_models():
    """A closed block of reasoning in the prompt isn't part of the message, unless the answer is continued."""
    closed = "<think>I answer at once.</think>\n"
    reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>")
    turn = TurnTexts(headers=("<a>",), prefill_no_thinking=closed, reasoning_to_content="\n")
    format = Format(turn=turn, reasoning=reasoning)
    prefill = Parser(format, Request(), prompt="<a>" + closed)
    continued = Parser(format, Request(), prefill="<think>Hm.</think>\nWe", is_continuation=True)

    fed(prefill, ["Hi"])

    assert (prefill.message.reasoning, prefill.message.content) == ("", "Hi")
    assert (continued.message.reasoning, continued.message.content) == ("Hm.", "We")


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


@pytest.mark.parametrize("prefill", ["", " ", "\n\n"])
def test_layout_that_was_begun_is_not_part_of_the_answer(prefill: str) -> None:
    """Layout in the prefill isn't part of the answer, even if it's continued."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, prefill=prefill, is_continuation=True)
    fed(parser, ["Hi"])

    assert (parser.message.content, parser.spans) == ("Hi", (Span(parser.spans[0].role, 0, 2),))


def test_a_continued_answer_is_part_of_the_message() -> None:
    """The events of the continued text come with the first fed text."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, prefill="Well, ", is_continuation=True)
    assert parser.message.content == "Well, "
    assert parser.feed("Hi") == [ContentText("Well, "), ContentText("Hi")]
    assert parser.feed("!") == [ContentText("!")]


HEADED = Format.from_json(
    """{"version": 2,
    "turn": {"headers": ["<|start|>"], "end": "<|return|>", "reasoning_to_content": "<|start|>", "content_to_tools": "<|end|><|start|>"},
    "reasoning": {"mode": "tag_based", "start": "<|think|>", "end": "<|end|>"},
    "content": {"mode": "always_wrapped", "start": "<|final|>"},
    "tools": {"separator": "<|start|>", "function": ["<|to|>", {"slot": "name"}, "<|json|>", {"slot": "arguments"}, "<|call|>"]}}"""
)
"""A format in which the end marker of reasoning is the start of another marker."""


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<|think|>Hm.<|end|><|start|><|think|>Hm.<|end|><|start|><|final|>Yes.<|return|>", "Hm.Hm.", "Yes."),
        ("<|think|>Hm.<|end|><|start|><|think|>Hm.<|final|>Yes.<|return|>", "Hm.", "<|think|>Hm.Yes."),
    ],
)
def test_second_thought_ends_at_a_longer_marker(text: str, reasoning: str, content: str) -> None:
    """A marker that contains the end marker of reasoning ends a second thought. Without an end marker, its start marker is text."""
    for pieces in ([text], list(text)):
        parser = Parser(HEADED, Request())
        fed(parser, pieces)

        assert (parser.message.reasoning, parser.message.content) == (reasoning, content)


def test_text_that_is_held_back_is_not_lost() -> None:
    """A possible start of a marker waits for more text, also in copies and saved parsers, and is returned once."""
    waiting = Parser(JSON_ENVELOPE.format, REQUEST)
    assert [waiting.feed(text) for text in ("a", "<", "t", "h")] == [[ContentText("a")], [], [], []]
    for rest, content in ((" b", "a < b"), ("think", "a <think"), ("", "a <")):
        parser = Parser(JSON_ENVELOPE.format, REQUEST)
        assert parser.feed("a") == [ContentText("a")]
        assert parser.feed(" <") == [ContentText(" ")]
        for one in (parser.copy(), moved(parser), parser, parser.copy()):
            said = [*one.feed(rest), *one.finish()] if one is not parser else one.feed("")
            if one is not parser:
                assert "".join(event.text for event in said if isinstance(event, ContentText)) == content[2:]
                assert one.message.content == content


def test_the_text_of_a_call_that_dies_is_kept_as_it_came() -> None:
    """A failed call's text includes text from the fast path and text held back, each character once."""
    pieces = ["<function=now>\n<parameter=city>\nRo", "me and", "\n", "\n", "</par", "ty", "\n</pa"]
    for size in range(1, len(pieces) + 1):
        parser = Parser(TAGGED.format, REQUEST)
        fed(parser, pieces[:size])

        assert [call.status for call in parser.message.failed_calls] == ["truncated"]
        assert parser.message.content == "".join(pieces[:size])


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


def test_marker_before_each_call_has_other_spellings() -> None:
    """Each other spelling of the marker starts a call for every chunking, but no grammar writes it."""
    other = Spelling(marker="<tool_call>", others=("<tool_use>",))
    turn = Turn(prompt="", format=replace(JSON_ENVELOPE.format, spellings=(other,)), request=REQUEST)
    text = CALL.replace("<tool_call>", "<tool_use>")
    for chunks in splits(f"Hi {text}"):
        parser = turn.parser()
        fed(parser, chunks)
        assert (parser.message.content, [call.name for call in parser.message.tool_calls]) == ("Hi ", ["now"])
    assert "<tool_use>" not in turn.constraint("llama.cpp").grammar


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


def test_what_may_come_and_what_reads_it() -> None:
    """Calling `expected` changes nothing."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, policy=Policy(tool_calls="streamed"))
    parser.feed("Hi. <tool_call>")
    expected = parser.expected()
    assert "'{'" in expected[0]
    assert parser.expected() == expected
    assert parser._machine.program is Parser(JSON_ENVELOPE.format, REQUEST)._machine.program

    assert any(isinstance(event, ToolCallStarted) for event in parser.feed('{"name": "now", "arguments": {}}'))


def test_words_that_begin_reasoning_are_the_prompts() -> None:
    """Without these words in the prompt, the answer starts with content. Without a prompt, reasoning is open."""
    without = Parser(ARRAY.format, REQUEST, prompt="<|begin|>\n")
    unknown = Parser(ARRAY.format, REQUEST)

    for one in (moved(without), without):
        assert one.feed("Hi there") == [ContentText("Hi there")]
    for one in (moved(unknown), unknown):
        assert one.feed("Hi there") == [ReasoningText("Hi there")]


def test_a_strict_parser_that_has_raised_cannot_be_restored() -> None:
    """The restored parser would reject the same text again."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, strict=True)
    with pytest.raises(ParseError):
        parser.feed('<tool_call>\n{"name": "now", ;')

    with pytest.raises(StateError, match=r"state\.fed: expected text that the parser accepts: "):
        moved(parser)
