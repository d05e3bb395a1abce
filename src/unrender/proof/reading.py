"""Reads answers of a template by a format, whole and in pieces, and finds those that are not read as they were meant.

Rules: an answer that the template writes like another one is not judged, since no reader could tell them apart. What a
rendering does not show as an answer is not judged either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from unrender.conversation.messages import Conversation
from unrender.format import Format, ReasoningMode
from unrender.machine.events import Malformed
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message, Request
from unrender.nodes import Grammar, Role
from unrender.parser.prompt_tail import read_prefill
from unrender.parser.streaming import Parser
from unrender.proof.cut import CutOut
from unrender.proof.said import ALL, misread_parts, said_by

if TYPE_CHECKING:
    from unrender.dialects.remainder import Remainder

Writes = Callable[[Conversation], str | None]
"""Renders a conversation; None if the template rejects it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A template's own answers, with the other data that verification needs."""

    shown: tuple[CutOut, ...]
    request: Request
    """The usual request: only answers to it are compared with grammars."""
    eos_token: str
    writes: Writes
    complete: Callable[[Format], Format]
    """Completes a format with parts that no answer shows."""
    is_over: Callable[[], bool]
    """Returns whether the proof must end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """The reading of an answer."""

    message: Message
    begun: str = ""
    """Reasoning text in the prefill, which is in the message but not in the answer."""
    reported: bool = False
    """The parser reported a place that the format does not allow."""

    @property
    def own(self) -> Message:
        """The message without the prefill."""
        return replace(self.message, reasoning=self.message.reasoning.removeprefix(self.begun))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """An answer that was misread."""

    cut_out: CutOut
    message: Message
    parts: frozenset[Role]
    """The parts that were misread."""


def read(
    format: Format, request: Request, prompt: str, chunks: Iterable[str], grammar: Grammar | None = None
) -> ReadAnswer:
    """Read chunks after a prompt, as an answer to a request."""
    parser = Parser(format, request, grammar=grammar, prompt=prompt, ids=numbered_id)
    begun = parser.message.reasoning
    # The parser holds back the line break after `My steps:`, which is the prompt's as well.
    begun += prompt[len(prompt.rstrip()) :] if begun else ""
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events += parser.finish()
    reported = any(isinstance(event, Malformed) for event in events)
    return ReadAnswer(message=parser.message, begun=begun, reported=reported)


def misread(witness: Witness, format: Format) -> tuple[Misread, ...]:
    """Return the answers that are not read as they were meant; answers that no reader could tell apart are left out.

    They are read in the format's own call syntax: tolerated syntaxes would prove nothing about it. They are read whole, since
    every format is read alike at every chunking: that is the parser's to keep, and no claim of a template's.
    """
    ended = replace(format._ended_by(witness.eos_token), tolerated=())
    return tuple(found for shown in witness.shown if (found := _misread(witness, ended, shown)))


def _misread(witness: Witness, format: Format, shown: CutOut) -> Misread | None:
    if not shown.asked and not _follows_header(format, shown):
        return None
    own = read(format, shown.request, shown.read_after(format), [shown.answer]).own
    parts = misread_parts(shown.said, own)
    wrong = parts and not written_alike(witness.writes, shown, own)
    return Misread(cut_out=shown, message=own, parts=parts) if wrong else None


def written_alike(writes: Writes, shown: CutOut, message: Message, excused: Collection[Role] = ALL) -> bool:
    """Return whether the template writes what was read just as it writes what was meant, as far as `excused` parts differ.

    A call that was read as text is not excused, nor white space that a format left in a string, though a template trims it.
    """
    read, meant = said_by(message), shown.said
    if message.failed_calls or not misread_parts(meant, message) <= set(excused):
        return False
    # `<call>f</call>` for one call of `f` and for two: fewer calls may be meant, but not none, and not more.
    if not bool(meant.calls) <= len(read.calls) <= len(meant.calls):
        return False
    pairs = list(zip(read.calls, meant.calls, strict=False))
    if any(_padded(call.arguments, known.arguments) for call, known in pairs):
        return False
    # `so Hi` for reasoning `so` and for content `so Hi`, or `7` for 7 and "7": the template itself says both with one text.
    again = replace(read, calls=tuple(replace(call, id=known.id) for call, known in pairs))
    return writes((*shown.before, again)) == shown.whole


def _padded(found: Any, meant: Any) -> bool:
    """Return whether a string in `found` is one of `meant` with white space around it that a template which trims does not write."""
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
    """Return whether a header ends what is before an answer that does not go on with the prompt, and begins it.

    It does not where only the words of the prompt begin reasoning, which the history does not have.
    """
    if format.reasoning.mode is ReasoningMode.DELIMITER:
        return False
    # `<user>Q</u>[Be brief.]` before `Hi`: what was cut out may not be an answer, as no header is between it and the question.
    begun = shown.start.rpartition(str(shown.before[-1].content))[2]
    return any(header.strip() in begun for header in format.turn.headers)


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


def disallowed(answer: Remainder, ways: Mapping[str, Collection[str]]) -> list[str]:
    """Return the texts that the grammar of an answer allows in none of their ways to be written."""
    refused = set(answer.refused(chain.from_iterable(ways.values())))
    return [text for text, forms in ways.items() if refused.issuperset(forms)]


def refused(witness: Witness, format: Format) -> Iterator[CutOut]:
    """Yield the answers that are read as they were meant, and that no grammar of the format allows after their prompt."""
    from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- a stored analysis is read without it

    ended = format._ended_by(witness.eos_token)
    answers: dict[str, dict[str, CutOut]] = {}
    for shown in witness.shown:
        # No model writes what only a history shows; texts and long calls cost more than they show.
        usual = shown.request is witness.request and len(shown.said.calls) < 3
        if shown.asked and usual and not _ends_in_content(shown):
            bare = min(with_and_without_end(ended, shown.answer), key=len)
            # An answer that has a header, or goes on after an end, is more than a model writes at once.
            around = (text.strip() for text in (ended.turn.end, *ended.turn.ends, *ended.turn.headers))
            if not any(text and text in bare for text in around):
                answers.setdefault(read_prefill(ended, shown.start), {})[bare.rstrip()] = shown
    for begun, texts in answers.items():
        if begun or ended.reasoning.mode is not ReasoningMode.DELIMITER:
            answer = Remainder(format=ended, request=witness.request, prefill=begun)
            # `Hi\n`: a line break at the end may be the answer's own.
            ways = {bare: {bare, *with_and_without_end(ended, shown.answer)} for bare, shown in texts.items()}
            for shown in (texts[bare] for bare in disallowed(answer, ways)):
                found = read(ended, shown.request, shown.read_after(ended), [shown.answer])
                if not misread_parts(shown.said, found.own):
                    yield shown


def _ends_in_content(shown: CutOut) -> bool:
    """Return whether content is after a call: engines end a turn with its calls, so a history alone shows that."""
    said, answer = shown.said, shown.answer
    return bool(said.calls and said.content) and answer.rfind(said.content) > answer.find(said.calls[0].name)
