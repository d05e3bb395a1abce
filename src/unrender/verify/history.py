"""Checks a template's history: does each prompt begin with the prompt and the answer before it?

Rules: this is about the template, not about the format: caches and training want it, parsing does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from unrender.verify.axes import NAMES, Answer, call_id
from unrender.verify.judge import finding
from unrender.verify.report import CapabilityFinding, Counterexample
from unrender.verify.shown import Subject, show

_CALL = (NAMES[0], {"text": "Rome"})
_NEXT = ({"role": "user", "content": "And unicorns?"},)
_RESULT = ({"role": "tool", "tool_call_id": call_id(0), "content": "It is 7 degrees."},)

_TURNS: Mapping[str, tuple[Answer, Sequence[Mapping[str, Any]]]] = MappingProxyType(
    {
        "content, then a question": (Answer(content="They are striped."), _NEXT),
        "reasoning, then a question": (Answer(content="They are striped.", reasoning="Animals."), _NEXT),
        "call, then its result": (Answer(calls=(_CALL,)), _RESULT),
        "reasoning and call, then its result": (Answer(reasoning="Animals.", calls=(_CALL,)), _RESULT),
    }
)


def check_history(subject: Subject) -> Iterator[CapabilityFinding]:
    """Yield for each kind of turn whether the next prompt begins with the last prompt and the answer to it."""
    for capability, (answer, following) in _TURNS.items():
        shown = show(subject, answer)
        later = subject.prompt_after(answer.to_openai(), *following) if shown else None
        if shown is None or later is None or subject.prompt is None:
            yield finding(capability, [])
        else:
            before = [subject.prompt, (shown.begun + shown.text).rstrip()]
            yield finding(capability, [_cut_off(shown.text, text, later) for text in before])


def _cut_off(answer: str, before: str, later: str) -> Counterexample | None:
    if later.startswith(before):
        return None
    return Counterexample(answer=answer, expected=before, found=later[: len(before)], chunking="whole")
