"""Renders answers of each shape after a question and after a tool's result, and the text around the answers.

Rules: once `discovery` has found the inputs, all other findings are derived from the records of this module. The records contain only text,
and the functions in `find` take these records. Answers that verify a format are extracted without using that format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unrender.analysis.ask import (
    ALONE,
    CONTENT,
    CONTENT2,
    IDS,
    KEYS,
    NAMES,
    NUMBERS,
    PLAIN_NEEDLE,
    REASONING,
    REASONING_WORD,
    TOLD,
    USER,
    USER2,
    VALUES,
    Prober,
    assistant,
    make_calls,
    own_answers,
    request_of,
    result,
    shapes,
    user,
)
from unrender.conversation.messages import Conversation, Said, SaidCall
from unrender.format import Format, ToolMode
from unrender.limits import MAX_LISTED
from unrender.messages import Request
from unrender.proof import CutOut, cut_out
from unrender.proof.split import is_tag, openers_of

Body = Callable[[str | None], str | None]
"""Function that takes the text after an input, and returns the answer without its header, or None if the text contains no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuations:
    """Texts that a template renders after an input, up to the end of the conversation.

    A text is None if the template rejects the conversation that would show it.
    """

    prompt: str | None = None
    """The generation prompt."""
    prompt_no_thinking: str | None = None
    """Generation prompt with thinking switched off."""
    bare: str | None = None
    """Text after the input, rendered without an answer or a generation prompt."""
    bare_no_thinking: str | None = None
    answers: tuple[str, ...] = ()
    """Answers of every shape that the template supports and renders."""
    no_thinking: str | None = None
    """Answer with content only, with thinking switched off."""
    in_history: str | None = None
    """Answer with reasoning and content, followed by another question."""

    @property
    def is_asked(self) -> bool:
        """True if the template writes a generation prompt after the input."""
        return self.prompt != self.bare or self.prompt_no_thinking != self.bare_no_thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Texts that a template writes around answers, and between turns."""

    question: Continuations
    """Continuations of a user's question."""
    result: Continuations | None = None
    """Continuations of a tool's result, or None if the template doesn't support calls or results."""
    opening: str = ""
    """Text before the first question of a conversation."""
    opening_with_tools: str = ""
    """Text before the first question if tools are offered. Some templates list tools right before a question."""
    content: str | None = None
    """Answer with content only, after the question."""
    followed: str | None = None
    """The answer in `content`, rendered with another question after it."""
    call: str | None = None
    """Answer with one call."""
    call_answered: str | None = None
    """The answer in `call`, rendered with the call's result after it."""
    after_result: tuple[str, ...] = ()
    """Answers with content to a tool's result: one without a call, and one with another call."""


def render_turns(prober: Prober) -> Turns:
    """Render questions, results and answers, and return the texts around the answers."""
    (call,) = make_calls(1)
    takes_results = prober.capabilities.supports_tool_calls and prober.capabilities.supports_tool_role
    called = [user(), assistant(calls=[call]), result(call)]
    again = (assistant(CONTENT, calls=calls) for calls in ((), (call,)) if takes_results)
    after_result = [prober.answer(message, before=called) for message in again]
    content, followed = (prober.answer(assistant(CONTENT), after=after) for after in ([], [user(USER2)]))
    # Render the openings only if the last answer has no end marker, or ends differently from earlier answers, as in `Hi</end>Bye`.
    ends_alike = content and followed and followed.startswith(content) and not content.rstrip().endswith(CONTENT)
    openings = () if ends_alike else (prober.render([user()], tools=tools) or "" for tools in (None, prober.offered))
    opening, opening_with_tools = (text.partition(USER)[0] for text in openings or ("", ""))
    return Turns(
        question=_render_asked(prober, [user()]),
        result=_render_asked(prober, called) if takes_results else None,
        opening=opening,
        opening_with_tools=opening_with_tools,
        content=content,
        followed=followed,
        call=prober.answer(assistant(calls=[call])),
        call_answered=prober.answer(assistant(calls=[call]), after=[result(call)]),
        after_result=tuple(text for text in after_result if text is not None),
    )


_COMPARED = ("content", "reasoned", "call", "reasoned_call", "mixed")
"""Shapes of the answers that are compared to find the header."""


def _render_asked(prober: Prober, before: list[Said]) -> Continuations:
    answers = [prober.answer(shapes()[shape][1], before=before) for shape in _COMPARED]
    prompt, off = (prober.answer(None, before=before, prompt=True, thinking=thinking) for thinking in (True, False))
    bare = prober.answer(None, before=before)
    # With thinking off, `</u>` may become `</u><bot><think></think>`. If the prompt still starts with the bare text, the switch doesn't
    # affect that text, so don't render it again.
    unchanged = bool(bare) and bare != prompt and (off or "").startswith(bare or "")
    # If the prompt is `Q<bot>` but the rendering with an answer is just `Q`, the template drops the answer and its header. Leave out such
    # answers.
    unwritten = bare if prompt != bare else None
    return Continuations(
        prompt=prompt,
        prompt_no_thinking=off,
        bare=bare,
        bare_no_thinking=bare if unchanged else prober.answer(None, before=before, thinking=False),
        answers=tuple(text for text in answers if text is not None and text != unwritten),
        no_thinking=prober.answer(assistant(CONTENT), before=before, thinking=False),
        in_history=prober.answer(assistant(CONTENT, REASONING), before=before, after=[user(USER2)]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Text after the header in answers of each shape, or None for a shape that the template doesn't render.

    Unless stated otherwise, each call has one argument.
    """

    content: str | None = None
    content_no_thinking: str | None = None
    """Content with thinking switched off."""
    reasoned: str | None = None
    """Reasoning and content."""
    call: str | None = None
    call_no_thinking: str | None = None
    empty_call: str | None = None
    """Call without arguments."""
    long_call: str | None = None
    """Call with two arguments."""
    two_calls: str | None = None
    three_calls: str | None = None
    """Three calls with two arguments each."""
    reasoned_call: str | None = None
    """Reasoning and a call."""
    mixed: str | None = None
    """Content and a call."""
    reasoned_mixed: str | None = None
    """Reasoning, content and a call."""
    cut: Mapping[str, str | None] = field(default_factory=dict)
    """Maps each possible end marker of reasoning to an answer whose content contains that marker after its first word."""
    instructions: str = ""
    """Text of the prompt before the question, or an empty string unless the prompt starts reasoning in plain words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """Renderings of calls whose arguments have different types, or None where the template rejects the call."""

    kinds: Mapping[str, str | None] = field(default_factory=dict)
    """Maps each JSON type to a call whose only argument has this type."""
    many: Iterable[tuple[Mapping[str, Any], str | None]] = ()
    """Pairs of arguments and the rendered answer with these arguments. Later pairs have fewer arguments, because the template may reject
    some types. Answers are rendered on demand.
    """


ANSWER_KINDS: Mapping[str, Any] = {
    "string": PLAIN_NEEDLE,
    "number": NUMBERS[0],
    "boolean": True,
    "null": None,
    "object": {"ma": 1},
    "array": [1],
}
"""Example value of each JSON type."""


def render_answers(prober: Prober, body: Body, prefill: str) -> Answers:
    """Render an answer of every shape. `prefill` is the start of the answer that prompts already contain."""
    said = {shape: answer for shape, (_, answer) in shapes().items()}
    said["long_call"] = assistant(calls=make_calls(1, 2))
    bodies = {name: body(prober.answer(message)) for name, message in said.items()}
    followed = {"reasoned": CONTENT, "reasoned_call": NAMES[0]}
    is_shown = any(text in (bodies[name] or "").partition(REASONING)[2] for name, text in followed.items())
    return Answers(
        **bodies,
        content_no_thinking=body(prober.answer(assistant(CONTENT), thinking=False)),
        call_no_thinking=body(prober.answer(said["call"], thinking=False)),
        cut={} if is_shown else dict(_render_cut(prober, body)),
        instructions=(prober.render([user()]) or "").partition(USER)[0] if REASONING_WORD.search(prefill) else "",
    )


def _render_cut(prober: Prober, body: Body) -> Iterator[tuple[str, str | None]]:
    """Yield each possible end marker of reasoning, with the rendering of an answer whose content contains the marker.

    Candidates are the template's string constants that look like closers, in any kind of brackets: `</think>`, `«/end»`.
    """
    words = {text for constant in prober.template.facts.string_constants if " " not in (text := constant.strip())}
    marks = {text for text in words if len(text) > 3 and not text[0].isalnum() and not text[-1].isalnum()}
    closers = sorted(text for text in words if (text in marks or is_tag(text)) and openers_of(text))
    for closer in closers[:MAX_LISTED]:
        yield closer, body(prober.answer(assistant(f"{CONTENT2}{closer}{CONTENT}")))


def render_written(prober: Prober, body: Body, *, tagged: bool) -> WrittenCall:
    """Render one call with values of every type. If `tagged` is true, also render each value in a separate call."""

    def written(arguments: Mapping[str, Any]) -> str | None:
        return body(prober.answer(assistant(calls=[SaidCall(name=NAMES[0], arguments=arguments, id=IDS[0])])))

    return WrittenCall(
        kinds={name: written({KEYS[0]: value}) for name, value in ANSWER_KINDS.items()} if tagged else {},
        many=((values, written(values)) for values in _shrinking_values()),
    )


def render_variants(prober: Prober, body: Body, fmt: Format) -> dict[str, str | None]:
    """Map names to renderings of calls that each differ from `Answers.call` in one respect. The result is empty if the format has no calls."""
    if fmt.tools.mode is ToolMode.NONE:
        return {}
    (call,) = make_calls(1)
    key, number = next(iter(call.arguments.items()))
    calls = {
        "other_name": replace(call, name=NAMES[1]),
        "other_id": replace(call, id=IDS[1]),
        "numeral": replace(call, arguments={key: str(number)}),  # Like `call`, but the number is a string.
    }
    if fmt.tools.arguments.entry:
        calls["other_key"] = replace(call, arguments={KEYS[1]: number})
        calls["other_value"] = replace(call, arguments={key: NUMBERS[1]})
    return {name: body(prober.answer(assistant(calls=[call]))) for name, call in calls.items()}


def _shrinking_values() -> list[dict[str, Any]]:
    """Return all argument values, then smaller sets for templates that reject some: without null, without containers, only strings, no
    empty strings.
    """
    # If a template rejects null, as `{% for x in value %}` does, a call with fewer values still shows the notation of these values.
    everything = dict(VALUES)
    no_null = {key: value for key, value in everything.items() if "None" not in str(value)}
    scalars = {key: value for key, value in no_null.items() if not isinstance(value, dict | list)}
    strings = {key: value for key, value in scalars.items() if isinstance(value, str)}
    return [everything, no_null, scalars, strings, {key: value for key, value in strings.items() if value}]


# Answers that verify a format


_WORDS = re.compile(r"\w{4,}")
_LATER = ("content", "reasoned", "call", "mixed")
"""Shapes of answers that are also rendered after a tool's result."""


def cut_outs(prober: Prober, request: Request) -> tuple[CutOut, ...]:
    """Render answers to a first question, a later question and a tool's result, and extract the answers from the renderings.

    All answers will be parsed with `request`, except calls with text arguments, which need different tools.
    """
    (call,), own = make_calls(1), own_answers()
    later = user(), assistant(CONTENT, REASONING), user(USER2)
    found = [*_cut_outs(prober, request, (user(),), own), *_cut_outs(prober, request, later, {ALONE: own[ALONE]})]
    if prober.capabilities.supports_tool_calls and prober.capabilities.supports_tool_role:
        called = user(), assistant(calls=[call]), result(call)
        found += _cut_outs(prober, request, called, dict(shapes()[shape] for shape in _LATER))
    return tuple(found)


def _cut_outs(prober: Prober, request: Request, before: Conversation, answers: Mapping[str, Said]) -> Iterator[CutOut]:
    prompt = prober.render(before, tools=prober.offered, prompt=True)
    if prompt is None:
        return
    for name, said in answers.items():
        full = prober.render([*before, said], tools=prober.offered)
        if full is None and said.calls:
            full = prober.last_answer([*before, said])
        asked = request_of("string") if name == TOLD else request
        found = full and cut_out(said, asked, before, prompt=prompt, whole=full, name=name)
        if found and is_shown(said, found.answer, str(before[-1].content)):
            yield found


def is_shown(said: Said, text: str, question: str) -> bool:
    """Return whether `text` contains all needles of an answer, and its content exactly once, but not the question."""
    needles = [said.content, said.reasoning]
    for call in said.calls:
        # Compare only the words of string arguments, because other characters may be escaped.
        needles += [call.name, *call.arguments, *_WORDS.findall(str(list(call.arguments.values())))]
    shown_once = not said.content or text.count(said.content) == 1
    return shown_once and question not in text and all(needle in text for needle in needles)
