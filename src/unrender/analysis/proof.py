"""A derived format and its template in, doubts out: each probe's answer is written again from the format and compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unrender.analysis.probes import CONTENT, REASONING, Call, Prober, assistant, make_calls
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    name: str
    content: str = ""
    reasoning: str = ""
    calls: Sequence[Call] = ()


MIXED = "content and a call"
_SHAPES = (
    _Shape(name="content", content=CONTENT),
    _Shape(name="reasoning and content", content=CONTENT, reasoning=REASONING),
    _Shape(name="one call", calls=make_calls(1)),
    _Shape(name="two calls", calls=make_calls(2)),
    _Shape(name="three calls", calls=make_calls(3, 2)),
    _Shape(name="a call without arguments", calls=make_calls(1, 0)),
    _Shape(name="reasoning and a call", reasoning=REASONING, calls=make_calls(1)),
    _Shape(name=MIXED, content=CONTENT, calls=make_calls(1)),
    _Shape(name="reasoning, content and a call", content=CONTENT, reasoning=REASONING, calls=make_calls(1)),
)


def find_doubts(prober: Prober, frame: Frame, fmt: Format) -> tuple[Doubt, ...]:
    """Return the shapes that the template renders and the format does not reproduce, white space apart."""
    return tuple(_doubts(prober, frame, fmt))


def _doubts(prober: Prober, frame: Frame, fmt: Format) -> Iterator[Doubt]:
    for shape in _SHAPES:
        body = frame.body(prober.answer(assistant(shape.content, shape.reasoning, shape.calls)))
        if body is None or not _shows(body, shape):
            continue
        body = until_sentinel(body).removesuffix(frame.appended)
        calls = [(call.name, call.arguments, call.id) for call in shape.calls]
        rebuilt = encode_answer(fmt, content=shape.content, reasoning=shape.reasoning, calls=calls)
        # Some templates write the empty form of reasoning before one part only; readers take it as optional.
        options = (rebuilt, rebuilt.removeprefix(fmt.reasoning.empty))
        ends = ("", fmt.turn.end, *fmt.turn.ends)
        if _squeeze(body) not in [_squeeze(option + end) for option in options for end in ends]:
            yield Doubt(shape=shape.name, rendered=body, rebuilt=rebuilt)


def _shows(body: str, shape: _Shape) -> bool:
    parts = [shape.content, shape.reasoning, *(call.name for call in shape.calls)]
    return all(part in body for part in parts)


def _squeeze(text: str) -> str:
    return "".join(text.split())


def calls_are_refuted(doubts: Sequence[Doubt], fmt: Format) -> bool:
    """Tell whether not even a bare call, or two, can be written again: then the derived syntax is worth nothing."""
    refuted = {doubt.shape for doubt in doubts}
    needed = {"one call", "two calls"} if fmt.tools.parallel else {"one call"}
    return fmt.tools.mode is not ToolMode.NONE and needed <= refuted
