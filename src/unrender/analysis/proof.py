"""A derived format and the template's answers in, doubts out: each answer is written again from the format and compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unrender.analysis.answers import Answers
from unrender.analysis.probes import CONTENT, REASONING, Call, make_calls
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    name: str
    answer: str
    """The field of `Answers` that holds what the template writes."""
    content: bool = False
    reasoning: bool = False
    calls: tuple[int, int] = (0, 0)
    """How many, and of how many arguments each."""


MIXED = "content and a call"
_SHAPES = (
    _Shape(name="content", answer="content", content=True),
    _Shape(name="reasoning and content", answer="reasoned", content=True, reasoning=True),
    _Shape(name="one call", answer="call", calls=(1, 1)),
    _Shape(name="two calls", answer="two_calls", calls=(2, 1)),
    _Shape(name="three calls", answer="three_calls", calls=(3, 2)),
    _Shape(name="a call without arguments", answer="empty_call", calls=(1, 0)),
    _Shape(name="reasoning and a call", answer="reasoned_call", reasoning=True, calls=(1, 1)),
    _Shape(name=MIXED, answer="mixed", content=True, calls=(1, 1)),
    _Shape(name="reasoning, content and a call", answer="reasoned_mixed", content=True, reasoning=True, calls=(1, 1)),
)


def find_doubts(answers: Answers, frame: Frame, fmt: Format) -> tuple[Doubt, ...]:
    """Return the shapes that the template renders and the format does not reproduce, white space apart."""
    return tuple(_doubts(answers, frame, fmt))


def _doubts(answers: Answers, frame: Frame, fmt: Format) -> Iterator[Doubt]:
    for shape in _SHAPES:
        body = getattr(answers, shape.answer)
        content, reasoning = CONTENT if shape.content else "", REASONING if shape.reasoning else ""
        calls = make_calls(*shape.calls)
        if body is None or not _shows(body, content, reasoning, calls):
            continue
        body = until_sentinel(body).removesuffix(frame.appended)
        made = [(call.name, call.arguments, call.id) for call in calls]
        rebuilt = encode_answer(fmt, content=content, reasoning=reasoning, calls=made)
        # Some templates write the empty form of reasoning before one part only; readers take it as optional.
        options = (rebuilt, rebuilt.removeprefix(fmt.reasoning.empty))
        ends = ("", fmt.turn.end, *fmt.turn.ends)
        if _squeeze(body) not in [_squeeze(option + end) for option in options for end in ends]:
            yield Doubt(shape=shape.name, rendered=body, rebuilt=rebuilt)


def _shows(body: str, content: str, reasoning: str, calls: Sequence[Call]) -> bool:
    return all(part in body for part in (content, reasoning, *(call.name for call in calls)))


def _squeeze(text: str) -> str:
    return "".join(text.split())


def calls_are_refuted(doubts: Sequence[Doubt], fmt: Format) -> bool:
    """Return whether not even a bare call, or two, can be written again: then the derived syntax is worth nothing."""
    refuted = {doubt.shape for doubt in doubts}
    needed = {"one call", "two calls"} if fmt.tools.parallel else {"one call"}
    return fmt.tools.mode is not ToolMode.NONE and needed <= refuted
