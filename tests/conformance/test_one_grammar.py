"""One grammar: the parser reads everything that any dialect allows, for every template and request.

Each dialect accepts the template's own renderings, as read by its own engine. Random answers are parsed without a
malformed part and call only allowed tools. Their arguments fit the schema, and they mean what the template writes. All
engines agree on damaged answers. `pytest -m full` checks more of each.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jsonschema
import pytest
from answers import (
    DIALECTS,
    MESSAGES,
    PARAMETERS,
    QUESTION,
    TOOL_SETS,
    all_template_paths,
    template_named,
    template_paths,
    written,
)
from engines import END_TOKEN, Accepts, converted_reader, installed, lark_matcher
from lexing import remainder_of
from meaning import differences
from tables import table

from unrender import Malformed, Message, TemplateError, Turn
from unrender.errors import SchemaWarning
from unrender.parser.prompt_tail import read_prefill

pytestmark = pytest.mark.engine

T: Any = table("test_one_grammar")
REQUESTS: dict[str, dict[str, Any]] = T["REQUESTS"]
VALIDATORS = {name: jsonschema.Draft202012Validator(schema) for name, schema in PARAMETERS.items()}
UNWRITTEN = {
    # The last answer is written as one to be continued, inside reasoning that the prompt starts.
    ("NVIDIA-Nemotron-Nano-v2", "content"),
    ("NVIDIA-Nemotron-Nano-v2", "content and call"),
}
"""Renderings that no model writes, because the template's history differs from its prompt."""

TEMPLATES = pytest.mark.parametrize("name", all_template_paths())
FEW = {"three tools", "some call", "one at a time"}
"""Requests that CI tries on templates that no package contains; `-m full` tries all."""


def subjects(requests: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrise over requests and templates.

    Grammars are compiled once for all tests of a subject, since pytest runs tests with the same subject number in
    sequence. So requests come before templates, and a test of fewer requests takes the first of `REQUESTS`.
    """
    packaged = template_paths()
    cases = [
        pytest.param(
            (name, asked),
            id=f"{asked}-{name}",
            marks=() if name in packaged or asked in FEW else pytest.mark.full,
        )
        for asked, name in itertools.product(requests, all_template_paths())
    ]
    return pytest.mark.parametrize("subjects_of", cases, indirect=True, scope="module")


BOTH_ENGINES = pytest.mark.skipif(
    not (installed("llguidance") and installed("xgrammar")), reason="two engines are compared"
)


@dataclass(frozen=True, eq=False)
class Subject:
    """A template and a request, and the readers of its grammar."""

    name: str
    thinking: bool
    turn: Turn
    readers: dict[str, Accepts]

    @cached_property
    def draw(self) -> Callable[[int], Any]:
        """Return a function that draws the answer of a seed, with its parts."""
        return remainder_of(replace(self.turn, prefill=read_prefill(self.turn.format, self.turn.prompt))).drawer()


def ways(name: str) -> tuple[bool, ...]:
    """Return the thinking settings of a template. Without a switch, there is only one prompt."""
    return (True, False) if template_named(name).capabilities.supports_enable_thinking else (True,)


def prepared(name: str, asked: str, *, thinking: bool = True) -> Turn:
    settings = {**REQUESTS[asked], "tools": TOOL_SETS[REQUESTS[asked]["tools"]]}
    try:
        return template_named(name).prepare(QUESTION, enable_thinking=thinking, **settings)
    except TemplateError as error:
        pytest.skip(f"the template refuses the tools: {error}")


@pytest.fixture(scope="module")
def subjects_of(request: pytest.FixtureRequest) -> list[Subject]:
    """Return a template's subjects, with and without thinking."""
    name, asked = request.param
    return [compiled(name, prepared(name, asked, thinking=way), thinking=way) for way in ways(name)]


def compiled(name: str, turn: Turn, *, thinking: bool) -> Subject:
    with warnings.catch_warnings(action="ignore", category=SchemaWarning):
        readers = {
            dialect: read(write(turn)) for dialect, (engine, write, read) in DIALECTS.items() if installed(engine)
        }
    return Subject(name, thinking, turn, readers)


def renderings(asked: Subject) -> dict[str, str]:
    """Return the template's rendering of each message that this turn allows."""
    request = asked.turn.request
    allowed = {tool.name for tool in request.tools or ()} if request._calls_allowed else set()
    found = {}
    for kind, said in MESSAGES.items():
        if {name for name, _ in said.calls} <= allowed and (asked.name, kind) not in UNWRITTEN:
            found[kind] = written(template_named(asked.name), asked.turn, said, thinking=asked.thinking)
    return {kind: text for kind, text in found.items() if text is not None}


@pytest.mark.few(24)
@subjects(["no tools", "one tool", "three tools"])
def test_what_the_template_writes_is_accepted(subjects_of):
    """Each dialect accepts the template's own rendering of a valid answer."""
    refused = {
        (found.thinking, kind, dialect): text
        for found in subjects_of
        for kind, text in renderings(found).items()
        for dialect, accepts in found.readers.items()
        if not accepts(text)
    }

    assert refused == {}


def trigger_position(turn: Turn, text: str) -> int | None:
    """Return the position where the first trigger matches in an answer."""
    for trigger in turn.constraint("llama.cpp").triggers:
        if trigger.kind == "word" and trigger.value in text:
            return text.index(trigger.value)
        if trigger.kind == "pattern" and (found := re.search(trigger.value, text)):
            return found.start(1)
    return None


@pytest.mark.few(16)
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
@TEMPLATES
def test_triggers_fire_where_a_call_begins(name):
    """Each rendering with a call, and no other, triggers a lazy grammar, which accepts the text from there."""
    for thinking in ways(name):
        turn = prepared(name, "three tools", thinking=thinking)
        if not turn.constraint("llama.cpp").triggers:
            pytest.skip("the template writes no calls")
        accepts = converted_reader(turn.constraint("llama.cpp").grammar)
        texts = renderings(Subject(name, thinking, turn, {}))

        positions = {kind: trigger_position(turn, text) for kind, text in texts.items()}

        assert {kind for kind, at in positions.items() if at is None} == texts.keys() & {"content", "reasoning"}
        assert [kind for kind, at in positions.items() if at is not None and not accepts(texts[kind][at:])] == []


def read_as_accepted(found: Subject, text: str, label: str) -> Message:
    """Return the message of an answer that every dialect accepts and that has no malformed part."""
    message, malformed = read(found.turn, text)
    refused = [dialect for dialect, accepts in found.readers.items() if not accepts(text)]
    assert (malformed, refused) == ([], []), f"{label}: {text!r}"
    return message


def read(turn: Turn, text: str) -> tuple[Message, list[Malformed]]:
    parser = turn.parser()
    events = [*parser.feed(text), *parser.finish()]
    return parser.message, [event for event in events if isinstance(event, Malformed)]


def check_calls(turn: Turn, message: Message) -> None:
    """Check that a message's calls are allowed and complete, and that their arguments fit the schema."""
    names = {"named": [turn.request.named_tool]}.get(turn.request.tool_choice, list(PARAMETERS))
    counts = {"none": (0, 0), "required": (1, 99), "named": (1, 99)}.get(turn.request.tool_choice, (0, 99))
    most = counts[1] if turn.request.parallel_tool_calls else min(counts[1], 1)

    assert counts[0] <= len(message.tool_calls) <= most
    for call in message.tool_calls:
        assert (call.status, call.name in names) == ("complete", True)
        VALIDATORS[call.name].validate(json.loads(call.arguments_json))


def can_call(turn: Turn) -> bool:
    return turn.format.tools.mode != "none" or not turn.request._calls_allowed


def sized(few: int, most: int) -> pytest.MarkDecorator:
    """Return a parameter `count`, the number of texts for each subject in CI and in the full run."""
    return pytest.mark.parametrize("count", [few, pytest.param(most, marks=pytest.mark.full)])


@pytest.mark.few(64)
@sized(2, 200)
@subjects(REQUESTS)
def test_samples_are_read_as_they_were_meant(subjects_of, count):
    """Random answers are accepted by every dialect, parsed without a malformed part, and call as the request allows."""
    for found, seed in itertools.product(subjects_of, range(count)):
        if not can_call(found.turn):
            pytest.skip("the template writes no calls")
        drawn = found.draw(seed)
        message = read_as_accepted(found, drawn.text, f"seed {seed}")
        differing = differences(found.turn.format, drawn, message, found.turn.parser().message)
        assert differing == [], f"seed {seed}: {drawn.text!r}"
        check_calls(found.turn, message)


VALIDATOR = jsonschema.Draft202012Validator(T["SCHEMA"])
RESPONSE = {"type": "json_schema", "json_schema": {"schema": T["SCHEMA"]}}


@pytest.mark.few(20)
@TEMPLATES
def test_a_response_schema_holds_after_reasoning(name):
    """With a response format, every answer's content fits the schema, with or without reasoning before it."""
    for thinking in ways(name):
        turn = template_named(name).prepare(QUESTION, enable_thinking=thinking, response_format=RESPONSE)
        asked = compiled(name, turn, thinking=thinking)
        for seed in range(2):
            message = read_as_accepted(asked, turn.sample(seed), f"seed {seed}")

            assert VALIDATOR.is_valid(json.loads(message.content)), message.content


@pytest.mark.few(24)
@TEMPLATES
def test_an_answer_that_is_begun_goes_on(name):
    """After a prefilled answer, the grammar starts inside the content, and the message contains all of it."""
    begun = [*QUESTION, {"role": "assistant", "content": "Hello wor"}]
    for thinking in ways(name):
        turn = template_named(name).prepare(begun, enable_thinking=thinking, continue_final_message="content")
        asked = compiled(name, turn, thinking=thinking)
        for seed in range(2):
            assert read_as_accepted(asked, turn.sample(seed), f"seed {seed}").content.startswith("Hello wor")


def mutants(text: str, draw: random.Random, count: int) -> Iterator[str]:
    """Yield damaged copies: a stretch removed, doubled or moved, or the end cut off."""
    for _ in range(count if text else 0):
        start = draw.randrange(len(text))
        end = min(len(text), start + draw.choice([1, 1, 2, 5, 20]))
        piece, rest = text[start:end], text[:start] + text[end:]
        at = draw.randrange(len(rest) + 1)
        yield draw.choice([rest, text[:end] + piece + text[end:], rest[:at] + piece + rest[at:], text[:start]])


def begins_at_trigger(turn: Turn, text: str) -> bool:
    """Return whether a text starts with the first marker of a call.

    This is the one intended difference: lazy GBNF accepts such a text, other dialects don't.
    """
    return bool(turn.constraint("llama.cpp").triggers) and text.startswith(turn.format.tools.openers[0].strip())


@pytest.mark.few(120)
@BOTH_ENGINES
@sized(12, 100)
@subjects(REQUESTS)
def test_the_dialects_agree_on_damaged_answers(subjects_of, count):
    """The dialects reject the same damaged answers."""
    for asked in subjects_of:
        draw = random.Random(f"{asked.name} {asked.thinking}")
        differing = []
        for mutant in (mutant for text in renderings(asked).values() for mutant in mutants(text, draw, count)):
            verdicts = {dialect: accepts(mutant) for dialect, accepts in asked.readers.items()}
            if len(set(verdicts.values())) > 1 and not begins_at_trigger(asked.turn, mutant):
                differing.append((mutant, verdicts))

        assert differing == []


WALK = 3000
_LETTERS = "abc xyz 123"


def walk(turn: Turn, seed: int) -> str:
    """Return an answer drawn byte by byte under llguidance's masks, with words, markers and EOS where allowed."""
    with warnings.catch_warnings(action="ignore", category=SchemaWarning):
        matcher = lark_matcher(turn.constraint("llguidance").grammar)
    draw = random.Random(seed)
    fmt = turn.format
    closers = [
        fmt.reasoning.end,
        fmt.content.end,
        fmt.tools.section_end,
        fmt.tools.call_end,
        *fmt.tools.arguments.entry,
    ]
    openers = [fmt.tools.section_start + fmt.tools.call_start, fmt.content.start, *fmt.tools.function]
    words = [*closers, *openers, '"', "}", "]", *_LETTERS]
    taken = b""
    while len(taken) < WALK:
        if matcher.is_accepting() and (matcher.is_stopped() or draw.random() < 0.2):
            return taken.decode()
        word = draw.choice(words).encode()
        allowed = matcher.validate_tokens(list(word))
        if allowed == 0:
            allowed, word = 1, bytes([draw_byte(matcher, draw)])
        matcher.consume_tokens(list(word[:allowed]))
        taken += word[:allowed]
    pytest.skip("the walk did not come to an end")


def draw_byte(matcher: Any, draw: random.Random) -> int:
    """Draw a byte that the mask allows, preferring printable bytes."""
    mask = matcher.compute_logit_bias()
    able = [token for token in range(END_TOKEN) if mask[token]]
    return draw.choice([token for token in able if 32 <= token < 127] or able)


@pytest.mark.few(20)
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
@TEMPLATES
@pytest.mark.parametrize("asked", ["three tools", "some call"])
def test_a_walk_through_the_masks_ends_in_a_message(name, asked):
    """Generation without a model, under llguidance's masks, ends in an answer that can be parsed."""
    turn = prepared(name, asked)
    if not can_call(turn):
        pytest.skip("the template writes no calls")
    text = walk(turn, seed=7)

    message, malformed = read(turn, text)

    assert malformed == [], text
    check_calls(turn, message)
