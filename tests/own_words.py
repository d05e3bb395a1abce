"""The answers that a template writes itself, in every shape and after every kind of turn, each with its request.

Rules: an answer is the text that the conversation adds to the prompt. If the history doesn't continue the prompt, no
model writes that text, and the answer is skipped. The request allows the answer: it has the answer's tools, and its
`tool_choice` fits the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from answers import renderings, without_end
from cut_outs import ANSWERS, BEFORE, TOOLS, Said
from engines import Accepts, gbnf, gbnf_reader, installed, lark, lark_reader, structural_tag, tag_reader

from unrender import ChatTemplate, Turn

DIALECTS: dict[str, tuple[str, Callable[[Turn], Any], Callable[[Any], Accepts]]] = {
    "lark": ("llguidance", lark, lark_reader),
    "gbnf": ("xgrammar", gbnf, gbnf_reader),
    "structural tag": ("xgrammar", structural_tag, tag_reader),
}
"""For each dialect, its engine, its writer and its reader."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """An answer as the template writes it, after the prompt that requests it."""

    label: str
    turn: Turn
    text: str


def choices(said: Said) -> Iterator[Any]:
    """Yield each `tool_choice` that allows the answer."""
    yield "auto"
    if not said.calls:
        yield "none"
        return
    if not said.content:
        yield "required"
        if len(said.calls) == 1:
            yield {"type": "function", "function": {"name": said.calls[0][0]}}


def own_words(
    chat: ChatTemplate, *, turns: Mapping[str, Any] = BEFORE, shapes: Mapping[str, Said] = ANSWERS
) -> Iterator[Written]:
    """Yield all answers that a template writes itself and shows in full."""
    settings = (None, True, False) if chat.capabilities.supports_enable_thinking else (None,)
    for place, before in turns.items():
        for shape, said in shapes.items():
            for thinking, tools in product(settings, (TOOLS,) if said.calls else (TOOLS, [])):
                prompt, text = _added(chat, before, said, tools, thinking)
                for choice in choices(said) if tools else ("auto",):
                    switch: dict[str, Any] = {} if thinking is None else {"enable_thinking": thinking}
                    turn = chat.prepare(before, tools=tools, tool_choice=choice, **switch) if text else None
                    if turn is not None and turn.prompt == prompt:
                        label = f"{shape}, {place}, thinking {thinking}, {len(tools)} tools, {choice}"
                        yield Written(label=label, turn=turn, text=without_end(turn, text))


def refused(answers: Iterable[Written]) -> list[tuple[str, str, str]]:
    """Return the answers that each dialect rejects, if its engine is installed."""
    readers: dict[str, dict[str, Accepts]] = {dialect: {} for dialect in DIALECTS}
    found = []
    for answer in answers:
        for dialect, (engine, write, read) in DIALECTS.items():
            if not installed(engine):
                continue
            known, grammar = readers[dialect], write(answer.turn)
            if str(grammar) not in known:
                known[str(grammar)] = read(grammar)
            if not known[str(grammar)](answer.text):
                found.append((answer.label, dialect, answer.text))
    return found


def _added(
    chat: ChatTemplate, before: list[dict[str, Any]], said: Said, tools: list[Any], thinking: bool | None
) -> tuple[str, str]:
    """Return the prompt and the text that an answer adds; "" if it doesn't continue the prompt or isn't complete."""
    asked, full = renderings(chat, before, said.to_openai(), tools, thinking) or ("", "")
    text = full.removeprefix(asked)
    return (asked, text) if full.startswith(asked) and said.shown_in(text) else ("", "")
