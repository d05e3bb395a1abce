"""Renders the answers by which a format is proved, and cuts them out of the renderings.

Rules: nothing of the Format decides where an answer begins. What a rendering does not show in full is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from unrender.analysis.ask.probes import (
    ALONE,
    CONTENT,
    REASONING,
    TOLD,
    USER2,
    Prober,
    assistant,
    make_calls,
    own_answers,
    request_of,
    result,
    shapes,
    user,
)
from unrender.conversation.messages import Conversation, Said
from unrender.messages.wire import Request
from unrender.proof.cut import CutOut, cut_out

_WORDS = re.compile(r"\w{4,}")
_LATER = ("content", "reasoned", "call", "mixed")
"""The shapes of what is asked for again after other turns."""


def cut_outs(prober: Prober, request: Request) -> tuple[CutOut, ...]:
    """Render every answer to a question, and the usual ones to a later question or tool result; cut them out.

    They are read with `request`, or with one for texts.
    """
    (call,), own = make_calls(1), own_answers()
    turns: list[tuple[Conversation, Mapping[str, Said]]] = [
        ((user(),), own),
        ((user(), assistant(CONTENT, REASONING), user(USER2)), {ALONE: own[ALONE]}),
    ]
    if prober.capabilities.supports_tool_calls and prober.capabilities.supports_tool_role:
        turns.append(((user(), assistant(calls=[call]), result(call)), dict(shapes()[shape] for shape in _LATER)))
    return tuple(found for before, answers in turns for found in _cut_outs(prober, request, before, answers))


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
    """Return whether `text` shows all needles of an answer, its content once, and not the question."""
    needles = [said.content, said.reasoning]
    for call in said.calls:
        # Only the words of a text: the characters between them may be written in another way.
        needles += [call.name, *call.arguments, *_WORDS.findall(str(list(call.arguments.values())))]
    shown_once = not said.content or text.count(said.content) == 1
    return shown_once and question not in text and all(needle in text for needle in needles)
