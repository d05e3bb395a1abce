"""Proves a derived format by reading: finds which of the template's own answers are not read as they were meant.

Strategy: an answer is what the conversation with it adds to the prompt, or to as much of the prompt as both have in common.
Nothing of the Format decides where it begins. It is read whole and character by character. What a rendering does not show
in full is not judged, and neither is an answer that the template writes like another one: no reader could tell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrender.analysis.ask.probes import (
    CONTENT,
    EOS,
    IDS,
    KEYS,
    NAMES,
    PLAIN_NEEDLE,
    REASONING,
    USER2,
    ProbeCall,
    Prober,
    assistant,
    make_calls,
    offered_tools,
    result,
    user,
)
from unrender.analysis.find.split import common_prefix
from unrender.format import Format, ReasoningMode
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message, Request, read_tools
from unrender.parser.prompt_tail import prefill
from unrender.parser.streaming import Parser

_REQUEST = Request(tools=read_tools(offered_tools()))
_TEXT_REQUEST = Request(tools=read_tools(offered_tools("string")))
_WORDS = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """What a probe's answer says: its content, reasoning and calls."""

    name: str
    """e.g. `content and a call`."""
    shape: str = ""
    """The field of `Answers` with what the template writes; empty where no field has it."""
    content: str = ""
    reasoning: str = ""
    calls: tuple[ProbeCall, ...] = ()

    def is_in(self, text: str, question: str) -> bool:
        """Return whether `text` shows all needles of the answer, its content once, and not the question."""
        needles = [self.content, self.reasoning]
        for call in self.calls:
            # Only the words of a text: the characters between them may be written in another way.
            needles += [call.name, *call.arguments, *_WORDS.findall(str(list(call.arguments.values())))]
        shown_once = not self.content or text.count(self.content) == 1
        return shown_once and question not in text and all(needle in text for needle in needles)

    @property
    def request(self) -> Request:
        """The request with which the answer is read: its tools, and the types of their arguments."""
        texts = any(isinstance(value, str) for call in self.calls for value in call.arguments.values())
        return _TEXT_REQUEST if texts else _REQUEST

    def is_said_by(self, message: Message) -> bool:
        """Return whether a parsed message says exactly this."""
        return (message.content, message.reasoning) == (self.content, self.reasoning) and self.has_calls_of(message)

    def has_calls_of(self, message: Message) -> bool:
        """Return whether a parsed message makes exactly these calls, and no other one that has died."""
        read = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
        return not message.failed_calls and read == [(call.name, dict(call.arguments)) for call in self.calls]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOut:
    """An answer cut out of a rendering, and the text before it."""

    said: ProbeAnswer
    before: tuple[dict[str, Any], ...]
    """The conversation up to the answer."""
    prompt: str
    """What asks for the answer."""
    start: str
    """The rendering up to the answer."""
    answer: str
    asked: bool
    """The start is the whole prompt, after which the answer comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """An answer that was read as something else than it says."""

    cut_out: CutOut
    message: Message

    @property
    def said(self) -> ProbeAnswer:
        """What the answer really says."""
        return self.cut_out.said

    @property
    def calls_are_wrong(self) -> bool:
        """Whether the calls were misread. The text around them may be wrong without that."""
        return not self.said.has_calls_of(self.message)

    @property
    def reasoning_is_wrong(self) -> bool:
        """Whether the reasoning was misread."""
        return self.message.reasoning != self.said.reasoning


MIXED = "content and a call"
_ONE = make_calls(1)
SAID = (
    ProbeAnswer(name="content", shape="content", content=CONTENT),
    ProbeAnswer(name="reasoning and content", shape="reasoned", content=CONTENT, reasoning=REASONING),
    ProbeAnswer(name="one call", shape="call", calls=_ONE),
    ProbeAnswer(name="two calls", shape="two_calls", calls=make_calls(2)),
    ProbeAnswer(name="three calls", shape="three_calls", calls=make_calls(3, 2)),
    ProbeAnswer(name="a call without arguments", shape="empty_call", calls=make_calls(1, 0)),
    ProbeAnswer(name="reasoning and a call", shape="reasoned_call", reasoning=REASONING, calls=_ONE),
    ProbeAnswer(name=MIXED, shape="mixed", content=CONTENT, calls=_ONE),
    ProbeAnswer(
        name="reasoning, content and a call", shape="reasoned_mixed", content=CONTENT, reasoning=REASONING, calls=_ONE
    ),
)
_TEXTS = (
    f"{PLAIN_NEEDLE} {PLAIN_NEEDLE}",
    f'"{PLAIN_NEEDLE}"',
    f'{PLAIN_NEEDLE} < a && it\'s {{b}} [c], d; \\ "e" (f)',
)
TOLD = ProbeAnswer(
    name="a call with texts",
    calls=(ProbeCall(name=NAMES[0], arguments=dict(zip(KEYS, _TEXTS, strict=True)), id=IDS[0]),),
)
"""A call says more than numbers: words, a text in quotes, and signs that formats are made of."""
_LATER = tuple(said for said in SAID if said.shape in ("content", "reasoned", "call", "mixed"))
"""What is asked for again after other turns."""


def cut_outs(prober: Prober) -> tuple[CutOut, ...]:
    """Render every answer to a question, and the usual ones to a later question or tool result; cut them out."""
    turns: list[tuple[list[dict[str, Any]], Sequence[ProbeAnswer]]] = [
        ([user()], (*SAID, TOLD)),
        ([user(), assistant(CONTENT, REASONING), user(USER2)], _LATER[:1]),
    ]
    if prober.capabilities.supports_tool_calls and prober.capabilities.supports_tool_role:
        turns.append(([user(), assistant(calls=_ONE), result(_ONE[0])], _LATER))
    return tuple(found for before, answers in turns for found in _cut_outs(prober, before, answers))


def _cut_outs(prober: Prober, before: list[dict[str, Any]], answers: Sequence[ProbeAnswer]) -> Iterator[CutOut]:
    prompt = prober.render(before, tools=prober.offered, prompt=True)
    if prompt is None:
        return
    question = str(before[-1]["content"])
    for said in answers:
        messages = [*before, assistant(said.content, said.reasoning, said.calls)]
        full = prober.render(messages, tools=prober.offered)
        if full is None and said.calls:
            full = prober.last_answer(messages)
        if full is None:
            continue
        start = _shared(prompt, full)
        if question in start and said.is_in(full[len(start) :], question):
            answer = full[len(start) :]
            yield CutOut(
                said=said, before=tuple(before), prompt=prompt, start=start, answer=answer, asked=start == prompt
            )


def _shared(prompt: str, full: str) -> str:
    """Return the part of `full` that the prompt has as well: all of it, or what both begin with, white space apart."""
    if full.startswith(prompt):
        return prompt
    # `<bot><think>` is the prompt, and the history has `<bot>Hi`: the answer begins after what both have in common.
    shared = common_prefix([prompt, full])
    # `</u>\n\n<bot>` is the prompt, and the history has `</u>\n<bot>Hi`: an answer does not begin with a missing line break.
    asked, rest = (text[len(shared) :].lstrip() for text in (prompt, full))
    more = common_prefix([asked, rest])
    return full[: len(full) - len(rest) + len(more)] if more.strip() else shared


def refused(format: Format, shown: Sequence[CutOut]) -> Iterator[CutOut]:
    """Yield the answers that are read as they were meant, and that no grammar of the format allows after their prompt."""
    from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- a stored analysis is read without it

    ended = format.ended_by(EOS)
    answers: dict[str, dict[str, CutOut]] = {}
    for cut_out in shown:
        # No model writes what only a history shows; texts and long calls cost more than they show.
        said = cut_out.said
        if cut_out.asked and said.request is _REQUEST and len(said.calls) < 3 and not _ends_in_content(cut_out):
            bare = min(with_and_without_end(ended, cut_out.answer), key=len)
            # An answer that has a header, or goes on after an end, is more than a model writes at once.
            around = (text.strip() for text in (ended.turn.end, *ended.turn.ends, *ended.turn.headers))
            if not any(text and text in bare for text in around):
                answers.setdefault(prefill(ended, cut_out.start), {})[bare.rstrip()] = cut_out
    for begun, texts in answers.items():
        if begun or ended.reasoning.mode is not ReasoningMode.DELIMITER:
            answer = Remainder(format=ended, request=_REQUEST, begun=begun)
            for bare in answer.refused(texts):
                forms = list(with_and_without_end(ended, texts[bare].answer))
                # `Hi\n`: a line break at the end may be the answer's own.
                if len(answer.refused(forms)) == len(forms) and _reads(ended, texts[bare], [texts[bare].answer])[0]:
                    yield texts[bare]


def misread(prober: Prober, format: Format, shown: Sequence[CutOut]) -> tuple[Misread, ...]:
    """Return the answers that are not read as they were meant; answers that no reader could tell apart are left out.

    They are read in the format's own call syntax: tolerated syntaxes would prove nothing about it.
    """
    ended = replace(format.ended_by(EOS), tolerated=())
    return tuple(found for cut_out in shown if (found := _misread(prober, ended, cut_out)))


def _misread(prober: Prober, format: Format, shown: CutOut) -> Misread | None:
    if not shown.asked and not _follows_header(format, shown):
        return None
    # Whole first, then character by character: a stream must not be read otherwise than a text.
    for chunks in ([shown.answer], shown.answer):
        right, message = _reads(format, shown, chunks)
        if not right:
            return None if _written_alike(prober, shown, message) else Misread(cut_out=shown, message=message)
    return None


def _ends_in_content(shown: CutOut) -> bool:
    """Return whether content is after a call: engines end a turn with its calls, so a history alone shows that."""
    said, answer = shown.said, shown.answer
    return bool(said.calls and said.content) and answer.rfind(said.content) > answer.find(said.calls[0].name)


def _reads(format: Format, shown: CutOut, chunks: Iterable[str]) -> tuple[bool, Message]:
    """Return whether the answer is read as it was meant, and as what it is read."""
    # `<bot><think>` is the prompt, and the history has `<bot>so</think>Hi`: only the prompt begins the thought.
    opened, begun = format.reasoning.opened_in, shown.prompt.removeprefix(shown.start)
    unmarked = shown.said.reasoning and opened(begun) and not opened(shown.answer)
    prompt = shown.prompt if unmarked else shown.start
    parser = Parser(format, shown.said.request, prompt=prompt, ids=numbered_id)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    return shown.said.is_said_by(parser.message), parser.message


def with_and_without_end(format: Format, text: str) -> Iterator[str]:
    """Yield the text, and when it ends with the end of a turn, several, or the next header, the text without."""
    yield text
    bare = text
    while (shorter := _without_end(format, bare)) is not None:
        bare = shorter
    if bare != text:
        # `It rains.<end><user>` is read as `It rains.` is: an engine may stop before the end of turn, at it, or after it.
        yield bare


def _without_end(format: Format, text: str) -> str | None:
    # A template that always asks for the next answer writes its header after the end.
    for end in (format.turn.end, *format.turn.ends, *format.turn.headers):
        if end.strip() and text.rstrip().endswith(end.strip()):
            # `Hi\n<end>`, where the end is `\n<end>`: the line break goes with it.
            return text[: text.rindex(end.strip())].removesuffix(end[: len(end) - len(end.lstrip())])
    return None


def _follows_header(format: Format, shown: CutOut) -> bool:
    """Return whether a header ends what is before an answer that does not go on with the prompt, and begins it.

    It does not where only the words of the prompt begin reasoning, which the history does not have.
    """
    if format.reasoning.mode is ReasoningMode.DELIMITER:
        return False
    # `<user>Q</u>[Be brief.]` before `Hi`: what was cut out may not be an answer, as no header is between it and the question.
    begun = shown.start.rpartition(str(shown.before[-1]["content"]))[2]
    return any(header.strip() in begun for header in format.turn.headers)


def _written_alike(prober: Prober, shown: CutOut, message: Message) -> bool:
    """Return whether the template writes what was read just as it writes what was meant; a call read as text is not excused."""
    if message.failed_calls or len(message.tool_calls) != len(shown.said.calls):
        return False
    calls = [
        ProbeCall(name=call.name, arguments=json.loads(call.arguments), id=meant.id)
        for call, meant in zip(message.tool_calls, shown.said.calls, strict=True)
    ]
    # `so Hi` for reasoning `so` and for content `so Hi`: the template itself says both with the same text.
    again = assistant(message.content, message.reasoning, calls)
    return prober.render([*shown.before, again], tools=prober.offered) == shown.start + shown.answer
