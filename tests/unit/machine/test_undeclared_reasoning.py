"""Reasoning after templates that never mention it: well-known markers at the start of an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from properties.families import JSON_ENVELOPE, REQUEST, TOOLS
from properties.invariants import check, check_copies, check_strict
from stepping import machine_at, step

from unrender.format import Content, ContentMode, Format, Reasoning, ReasoningMode
from unrender.formats import known_reasoning
from unrender.machine.events import ContentText, Malformed
from unrender.machine.policy import Policy, UndeclaredReasoning
from unrender.machine.undeclared_reasoning import CloseUndeclared, OpenUndeclared
from unrender.messages.wire import Message, Request
from unrender.parser.streaming import Parser
from unrender.values.finder import Finder

PLAIN = Format(turn=JSON_ENVELOPE.format.turn, tools=JSON_ENVELOPE.format.tools)
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def parser(policy: Policy | None = None, *, format: Format = PLAIN, prompt: str = "") -> Parser:
    return Parser(format, REQUEST, prompt=prompt, policy=policy)


def read(text: str, *, format: Format = PLAIN, prompt: str = "") -> Message:
    return check(lambda: parser(format=format, prompt=prompt), text)


@pytest.mark.parametrize("markers", known_reasoning(), ids=lambda markers: markers.start.strip())
def test_known_markers_at_the_start_are_reasoning(markers: Reasoning) -> None:
    """With and without layout, white space before it, calls after it; each opener has its own closer."""
    start, end = markers.start, markers.end
    for text in (f"{start}So.{end}\n\nHi", f" \n{start.strip()}So.{end.strip()}Hi"):
        message = read(text)
        assert (message.reasoning, message.content) == ("So.", "Hi")

    message = read(f"{start}So.{end}\n\n{CALL}")
    assert (message.reasoning, message.content, len(message.tool_calls)) == ("So.", "", 1)


@pytest.mark.parametrize(("blank", "waits"), [(0, True), (63, True), (64, False)])
def test_white_space_before_a_marker_is_bounded(blank: int, waits: bool) -> None:
    """After so much of it the answer has begun."""
    instruction = OpenUndeclared(Finder(("<think>",)), {"<think>": 20}, 30)
    machine = machine_at("~" + " " * blank, at=1)
    marked = machine_at("~" + " " * blank + "<think>So", at=1)

    assert step(instruction, machine) == ("waits" if waits else "to 30")
    assert step(instruction, marked) == ("to 20" if blank <= 64 else "to 30")
    assert marked.mentioned
    assert marked.events == [
        Malformed("<think>", 1 + blank, "an answer without reasoning, or one that begins as the format has it")
    ]


@pytest.mark.parametrize(
    ("text", "final", "mentioned", "outcome"),
    [
        ("</think>", False, False, "waits"),
        ("</think>", True, False, "on"),
        ("</think>\n", False, False, "on"),
        ("</think> ", False, False, "to 30"),
        ("</think>\n", False, True, "to 30"),
        ("</think>", False, True, "to 30"),
    ],
)
def test_a_closer_counts_where_it_ends_a_line(text: str, final: bool, mentioned: bool, outcome: str) -> None:
    """And was not mentioned before; else it is content."""
    machine = machine_at("~" + text, at=1, final=final, mentioned=mentioned)

    assert step(CloseUndeclared(8, 30), machine) == outcome
    assert machine.mentioned is (mentioned or outcome != "waits")
    assert [event for event in machine.events if isinstance(event, ContentText)] == (
        [ContentText("</think>")] if outcome == "to 30" else []
    )
    assert machine.answered is (outcome == "to 30")


def test_it_is_reported_once() -> None:
    """A `Malformed` event says what was met, and the reasoning streams."""
    reading = parser()
    events = [event for character in "<think>So." for event in reading.feed(character)]

    assert [event.text for event in events if isinstance(event, Malformed)] == ["<think>"]
    assert reading.message.reasoning == "So."


def test_the_prompt_may_have_opened_it() -> None:
    """What the prompt has begun is the answer's start."""
    assert read("So.</think>Hi", prompt="<|start|>assistant\n<think>\n").reasoning == "So."
    assert read("Hi", prompt="<|start|>assistant\n<think>\n\n</think>\n\n") == Message(content="Hi")


@pytest.mark.parametrize(
    "text",
    [
        "Write <think> and\n</think>\n around it.",
        "Hi <think>So.</think>",
        "<thin ice>",
        "In line: </think> is a closer.",
        "<think",
        "```\n<think>\nSo.\n</think>\n```\nThat is </think>\n",
    ],
)
def test_anywhere_else_markers_are_content(text: str) -> None:
    """What mentions a marker, or shows an example of one, is content, every character of it."""
    assert read(text) == Message(content=text)


@pytest.mark.parametrize("text", ["So.\n</think>\n\nHi", "</think>\n\nHi"])
def test_a_closer_without_opener_is_dropped_once(text: str) -> None:
    """What is before it is out as content already; the closer says nothing any more."""
    reading = parser()
    events = reading.feed(text) + reading.finish()

    assert read(text).content == text.replace("</think>\n\n", "")
    assert [event.text for event in events if isinstance(event, Malformed)] == ["</think>"]


def test_an_opener_cut_short_opens_the_formats_own_reasoning() -> None:
    """Where a format's opener is a token and a word, the token alone opens the block at the start of an answer."""
    own = Reasoning(mode=ReasoningMode.TAG_BASED, start="<|channel>thought\n", end="\n<channel|>")
    format = Format(reasoning=own)

    for opener in ("<|channel>thought", "<|channel>", "<|channel><|channel>thought", "<|channel><|channel>"):
        text = f"{opener}\nSo.\n<channel|>Hi"
        message = read(text, format=format)
        assert (message.reasoning, message.content) == ("So.", "Hi")
    assert read("<think>So.</think>", format=format).content == "<think>So.</think>"


def test_calls_inside_it_are_thoughts_unless_it_stays_open() -> None:
    """As in declared reasoning: a call that is followed by more is the model thinking aloud."""
    assert read(f"<think>\nSo {CALL} no.\n</think>\n\nHi").tool_calls == ()
    assert len(read(f"<think>\nSo {CALL}").tool_calls) == 1


def test_it_can_be_left_in_the_content() -> None:
    """By policy, by the format, or by the request's reasoning format everything is content."""
    text = "<think>So.</think>\n\nHi"
    left = Policy(undeclared_reasoning=UndeclaredReasoning.CONTENT)
    silent = Format(undeclared_reasoning=False)
    requested = Request(tools=TOOLS, reasoning_format="none")

    assert check(lambda: parser(left), text) == Message(content=text)
    assert check(lambda: parser(left), "a\n</think>\nb") == Message(content="a\n</think>\nb")
    assert read(text, format=silent) == Message(content=text)
    assert check(lambda: Parser(PLAIN, requested), text) == Message(content=text)


def test_copies_and_strict_parsers() -> None:
    """A copy made anywhere reads on; a strict parser refuses the marker."""
    text = f"<think>\nSo.\n</think>\n\nHi\n{CALL}"

    check_copies(parser, text, list(range(0, len(text), 3)))
    check_strict(lambda: Parser(PLAIN, REQUEST, strict=True), text)


def test_an_opener_of_the_formats_own_calls_or_content_is_not_undeclared() -> None:
    """What the format begins another part with begins that part, whatever other models open with it."""
    tools = replace(PLAIN.tools, section_start="<think>\n", section_end="\n</think>")
    wrapped = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<think>", end="</think>")

    message = read(f"<think>\n{CALL}\n</think>", format=replace(PLAIN, tools=tools))
    assert (message.reasoning, message.content, len(message.tool_calls)) == ("", "", 1)
    assert read("<think>So.</think>", format=replace(PLAIN, content=wrapped)) == Message(content="So.")
