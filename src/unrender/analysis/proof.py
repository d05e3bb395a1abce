"""Proves a derived format by writing: each answer is written again from the format and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from unrender.analysis.answers import Answers
from unrender.analysis.readback import MIXED, SAID, Said
from unrender.analysis.turn import Frame, until_sentinel
from unrender.format import Format, ToolMode
from unrender.grammar.encode import encode_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """An answer that the format does not reproduce."""

    shape: str
    """What the answer consists of, e.g. `content and calls`."""
    rendered: str
    rebuilt: str

    def __str__(self) -> str:
        return f"{self.shape}: rendered as {self.rendered!r:.200}, understood as {self.rebuilt!r:.200}"


_WRITTEN: Mapping[str, str] = {
    "content": "content",
    "reasoning and content": "reasoned",
    "one call": "call",
    "two calls": "two_calls",
    "three calls": "three_calls",
    "a call without arguments": "empty_call",
    "reasoning and a call": "reasoned_call",
    MIXED: "mixed",
    "reasoning, content and a call": "reasoned_mixed",
}
"""By what an answer says: the field of `Answers` that holds what the template writes."""


def find_doubts(answers: Answers, frame: Frame, fmt: Format) -> tuple[Doubt, ...]:
    """Return the shapes that the template renders and the format does not reproduce, white space apart."""
    return tuple(_doubts(answers, frame, fmt))


def _doubts(answers: Answers, frame: Frame, fmt: Format) -> Iterator[Doubt]:
    for said in SAID:
        body = getattr(answers, _WRITTEN[said.name])
        if body is None or not _shows(body, said):
            continue
        body = until_sentinel(body).removesuffix(frame.appended)
        made = [(call.name, call.arguments, call.id) for call in said.calls]
        rebuilt = encode_answer(fmt, content=said.content, reasoning=said.reasoning, calls=made)
        # Some templates write the empty form of reasoning before one part only; readers take it as optional.
        options = (rebuilt, rebuilt.removeprefix(fmt.reasoning.empty))
        ends = ("", fmt.turn.end, *fmt.turn.ends)
        if _squeeze(body) not in [_squeeze(option + end) for option in options for end in ends]:
            yield Doubt(shape=said.name, rendered=body, rebuilt=rebuilt)


def _shows(body: str, said: Said) -> bool:
    return all(part in body for part in (said.content, said.reasoning, *(call.name for call in said.calls)))


def _squeeze(text: str) -> str:
    return "".join(text.split())


def calls_are_refuted(doubts: Sequence[Doubt], fmt: Format) -> bool:
    """Return whether neither one call nor two can be written again: the derived syntax is then worthless."""
    refuted = {doubt.shape for doubt in doubts}
    needed = {"one call", "two calls"} if fmt.tools.parallel else {"one call"}
    return fmt.tools.mode is not ToolMode.NONE and needed <= refuted
