"""Verifies a format on a template's own answers: extracts the answers from renderings, parses them, and compares the messages.

The input is a template's answers with their renderings. The result is the answers that were misread, and a `Format` without the claims that
these answers refute. `analysis` uses this package to weaken a format, and `verify` uses it to report counterexamples.

This module extracts, parses and compares answers. `claims` weakens a format, `split` compares two renderings.

Rules: a few true claims are better than many claims of which some are false. Every dropped claim is reported. If the template renders two
answers identically, mistaking one for the other isn't an error, because no parser could distinguish
them. Text that might not be an answer is also ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from unrender.conversation.messages import Conversation, Said, SaidCall
from unrender.format import Format, ReasoningMode
from unrender.machine import Malformed, Policy, numbered_id
from unrender.messages import Message, Request, ToolCall
from unrender.nodes import Grammar, Role
from unrender.parser.prompt_tail import read_prefill
from unrender.parser.streaming import Parser
from unrender.proof.split import common_prefix

if TYPE_CHECKING:
    from unrender.dialects.remainder import Remainder


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOut:
    """An answer extracted from a rendering, with the text before it."""

    said: Said
    name: str = ""
    """A description of the answer's parts, e.g. `content and a call`."""
    request: Request
    """The request for parsing the answer. It contains the tools and the types of their arguments."""
    before: Conversation = ()
    """Messages before the answer."""
    prompt: str
    """The rendered prompt before the answer."""
    start: str
    """The part of the rendering before the answer."""
    answer: str
    whole: str = ""
    """The complete rendering, including the answer and the messages after it."""

    @property
    def asked(self) -> bool:
        """True if the text before the answer is the complete prompt."""
        return self.start == self.prompt

    def read_after(self, format: Format) -> str:
        """Return the prompt for parsing the answer."""
        # If the prompt is `<bot><think>` and the history contains `<bot>so</think>Hi`, only the prompt opens reasoning, so the parser needs
        # the complete prompt. Reasoning may also be opened by plain words, as in `<bot>My steps:`.
        opened, begun = format.reasoning.opened_in, self.prompt.removeprefix(self.start)
        begins = begun.strip() if format.reasoning.mode is ReasoningMode.DELIMITER else opened(begun)
        unmarked = self.said.reasoning and begins and not opened(self.answer)
        return self.prompt if unmarked else self.start


def cut_out(
    said: Said, request: Request, before: Conversation, *, prompt: str, whole: str, name: str = "", begun: str = ""
) -> CutOut | None:
    """Extract an answer to the conversation `before` from a rendering. Returns None if the answer doesn't follow the question.

    `begun` is the prompt's prefill. An answer that doesn't continue the prefill starts after the header.
    """
    start = prompt if whole.startswith(prompt) else _shared(prompt.removesuffix(begun), whole)
    if str(before[-1].content) not in start:
        return None
    texts = {"prompt": prompt, "start": start, "answer": whole[len(start) :], "whole": whole}
    return CutOut(said=said, name=name, request=request, before=before, **texts)


def _shared(prompt: str, full: str) -> str:
    """Return the longest prefix of `full` that matches the start of `prompt`, apart from whitespace."""
    if full.startswith(prompt):
        return prompt
    # If the prompt is `<bot><think>` and the history contains `<bot>Hi`, the answer starts after the common text, `<bot>`.
    same = common_prefix([prompt, full])
    # If the prompt is `</u>\n\n<bot>` and the history contains `</u>\n<bot>Hi`, ignore the missing line break: the answer still starts
    # after `<bot>`.
    asked, rest = (text[len(same) :].lstrip() for text in (prompt, full))
    more = common_prefix([asked, rest])
    return full[: len(full) - len(rest) + len(more)] if more.strip() else same


ALL = frozenset((Role.CONTENT, Role.REASONING, Role.CALL))
"""The parts of an answer."""


def as_message(said: Said) -> Message:
    """Return the message that a correct parser would return for an answer."""
    calls = tuple(
        ToolCall(name=call.name, arguments_json=json.dumps(call.arguments, ensure_ascii=False), id=call.id or "")
        for call in said.calls
    )
    return Message(content=said.content, reasoning=said.reasoning, tool_calls=calls)


def said_by(message: Message) -> Said:
    """Return the parts of a message, without failed calls."""
    calls = tuple(SaidCall(name=call.name, arguments=call.arguments, id=call.id) for call in message.tool_calls)
    return Said(role="assistant", content=message.content, reasoning=message.reasoning, calls=calls)


def misread_parts(meant: Said, message: Message) -> frozenset[Role]:
    """Return the parts in which a message differs from the intended answer. A failed call is always a difference.

    The order of arguments is ignored, because some templates sort them.
    """
    parts = {
        Role.CONTENT: message.content != meant.content,
        Role.REASONING: message.reasoning != meant.reasoning,
        Role.CALL: bool(message.failed_calls) or _calls(meant) != _calls(said_by(message)),
    }
    return frozenset(part for part, differs in parts.items() if differs)


def _calls(said: Said) -> list[Any]:
    # Compare as JSON, because `1`, `1.0` and `true` are equal in Python.
    return [(call.name, json.dumps(call.arguments, sort_keys=True)) for call in said.calls]


Writes = Callable[[Conversation], str | None]
"""Function that renders a conversation; None if the template rejects it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A template's own answers, with the other data that verification needs."""

    shown: tuple[CutOut, ...]
    request: Request
    """The request that most answers respond to. Only answers to this request are checked against grammars."""
    eos_token: str
    writes: Writes
    complete: Callable[[Format], Format]
    """Function that adds parts to a format that can't be determined from answers, such as declared formats."""
    is_over: Callable[[], bool]
    """Function that returns True if verification must stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """The result of parsing an answer."""

    message: Message
    begun: str = ""
    """The reasoning text in the prefill. This text is part of the message, but not of the answer."""
    reported: bool = False
    """True if the parser reported text that the format doesn't allow."""
    split: bool = False
    """True if reasoning was only found by its end marker."""

    @property
    def own(self) -> Message:
        """The message without the prefill's text."""
        return replace(self.message, reasoning=self.message.reasoning.removeprefix(self.begun))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """An answer that was misread."""

    cut_out: CutOut
    message: Message
    parts: frozenset[Role]
    """The parts that were misread."""


def read(
    format: Format,
    request: Request,
    prompt: str,
    chunks: Iterable[str],
    grammar: Grammar | None = None,
    policy: Policy | None = None,
) -> ReadAnswer:
    """Parse chunks after a prompt as an answer to a request."""
    parser = Parser(format, request, grammar=grammar, prompt=prompt, policy=policy, ids=numbered_id)
    begun = parser.message.reasoning
    # The parser holds back the prompt's trailing whitespace, e.g. the line break after `My steps:`. Add it to the prefill's reasoning.
    begun += prompt[len(prompt.rstrip()) :] if begun else ""
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events += parser.finish()
    reports = [event for event in events if isinstance(event, Malformed)]
    split = any(report.ends_reasoning for report in reports)
    return ReadAnswer(message=parser.message, begun=begun, reported=bool(reports), split=split)


def misread(witness: Witness, format: Format) -> tuple[Misread, ...]:
    """Return the answers that are misread, except those that no parser could read correctly.

    Answers are parsed with the format's own call syntax only, because tolerated syntaxes would prove nothing about it. Each is parsed in
    one piece, because results never depend on how the text is split into chunks.
    """
    ended = format._ended_by(witness.eos_token)._with(tolerated=())
    return tuple(found for shown in witness.shown if (found := _misread(witness, ended, shown)))


def _misread(witness: Witness, format: Format, shown: CutOut) -> Misread | None:
    if not shown.asked and not _follows_header(format, shown):
        return None
    # A repair, or reading another syntax, would hide an error in the format.
    own = read(format, shown.request, shown.read_after(format), [shown.answer], policy=Policy(repair="none")).own
    parts = misread_parts(shown.said, own)
    wrong = parts and not written_alike(witness.writes, shown, own)
    return Misread(cut_out=shown, message=own, parts=parts) if wrong else None


def written_alike(writes: Writes, shown: CutOut, message: Message, excused: Collection[Role] = ALL) -> bool:
    """Return whether the template renders the parsed message exactly like the intended one. Only `excused` parts may differ.

    A call that was parsed as text is never excused. If the template trims strings, surrounding whitespace that the parser added to a
    string isn't excused either.
    """
    read, meant = said_by(message), shown.said
    if message.failed_calls or not misread_parts(meant, message) <= set(excused):
        return False
    # If the template renders one call of `f` and two calls of `f` identically, reading one instead of two is excused. Reading no call, or
    # more calls than intended, is never excused.
    if not bool(meant.calls) <= len(read.calls) <= len(meant.calls):
        return False
    pairs = list(zip(read.calls, meant.calls, strict=False))
    if any(_padded(call.arguments, known.arguments) for call, known in pairs):
        return False
    # The template may render different messages identically, e.g. the string "7" and the number 7.
    again = replace(read, calls=tuple(replace(call, id=known.id) for call, known in pairs))
    return writes((*shown.before, again)) == shown.whole


def _padded(found: Any, meant: Any) -> bool:
    """Return whether the surrounding whitespace of a string differs between `found` and `meant`.

    A string in `found` without surrounding whitespace is accepted, because a template may trim strings.
    """
    match found, meant:
        case str(), str():
            return found.strip() == meant.strip() and found not in (meant, meant.strip())
        case dict(), dict():
            return any(_padded(found[key], meant[key]) for key in found.keys() & meant.keys())
        case list(), list():
            return any(_padded(one, other) for one, other in zip(found, meant, strict=False))
        case _:
            return False


def _follows_header(format: Format, shown: CutOut) -> bool:
    """Return whether a header precedes an answer that doesn't continue the prompt.

    False if reasoning is opened only by plain words of the prompt, because the history doesn't contain these words.
    """
    if format.reasoning.mode is ReasoningMode.DELIMITER:
        return False
    # In `<user>Q</u>[Be brief.]Hi`, no header follows the question, so `Hi` may not be an answer.
    begun = shown.start.rpartition(str(shown.before[-1].content))[2]
    return any(header.strip() in begun for header in format.turn.headers)


def with_and_without_end(format: Format, text: str) -> Iterator[str]:
    """Yield the text. If it ends with an end of turn or the next header, also yield the text without that ending."""
    yield text
    bare = text
    while (shorter := _without_end(format, bare)) is not None:
        bare = shorter
    if bare != text:
        # Yield both `It rains.` and `It rains.<end><user>`, because engines may stop before, at or after the end of turn.
        yield bare


def _without_end(format: Format, text: str) -> str | None:
    # Remove headers too: a template that always adds a generation prompt writes a header after the end of turn.
    for end in (format.turn.end, *format.turn.ends, *format.turn.headers):
        if end.strip() and text.rstrip().endswith(end.strip()):
            # If the end is `\n<end>`, also remove the line break in `Hi\n<end>`.
            return text[: text.rindex(end.strip())].removesuffix(end[: len(end) - len(end.lstrip())])
    return None


def disallowed(answer: Remainder, ways: Mapping[str, Collection[str]]) -> list[str]:
    """Return the keys of `ways` whose texts are all rejected by the answer's grammar."""
    refused = set(answer.refused(chain.from_iterable(ways.values())))
    return [text for text, forms in ways.items() if refused.issuperset(forms)]


def refused(witness: Witness, format: Format) -> Iterator[CutOut]:
    """Yield the answers that are parsed correctly but not allowed by the format's grammar."""
    from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- a stored analysis is read without it

    ended = format._ended_by(witness.eos_token)
    answers: dict[str, dict[str, CutOut]] = {}
    for shown in witness.shown:
        # Skip answers that occur only in a history, because models never write them. Also skip answers with text arguments or more than two
        # calls, because they take too long to check.
        usual = shown.request is witness.request and len(shown.said.calls) < 3
        if shown.asked and usual and not _ends_in_content(shown):
            bare = min(with_and_without_end(ended, shown.answer), key=len)
            # Skip text that contains a header or an end of turn, because a model doesn't write these within an answer.
            around = (text.strip() for text in (ended.turn.end, *ended.turn.ends, *ended.turn.headers))
            if not any(text and text in bare for text in around):
                answers.setdefault(read_prefill(ended, shown.start), {})[bare.rstrip()] = shown
    for begun, texts in answers.items():
        if begun or ended.reasoning.mode is not ReasoningMode.DELIMITER:
            answer = Remainder(format=ended, request=witness.request, prefill=begun)
            # Check `Hi\n` with and without the line break, which may be part of the answer.
            ways = {bare: {bare, *with_and_without_end(ended, shown.answer)} for bare, shown in texts.items()}
            for shown in (texts[bare] for bare in disallowed(answer, ways)):
                found = read(ended, shown.request, shown.read_after(ended), [shown.answer])
                if not misread_parts(shown.said, found.own):
                    yield shown


def _ends_in_content(shown: CutOut) -> bool:
    """Return whether content follows a call. Engines end a turn after its calls, so such content occurs only in a history."""
    said, answer = shown.said, shown.answer
    return bool(said.calls and said.content) and answer.rfind(said.content) > answer.find(said.calls[0].name)
