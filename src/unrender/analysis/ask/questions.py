"""Records what a template writes after a question and after a tool's result: prompts and whole answers.

Rules: this module and `answers` are the only ones that render once `discovery` knows the inputs. What they return are
records of texts, and everything else of the analysis is a function of such records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unrender.analysis.ask.probes import (
    CONTENT,
    REASONING,
    USER,
    USER2,
    Message,
    Prober,
    assistant,
    make_calls,
    result,
    user,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a template writes after one input, up to the end of the conversation. None means that it refuses."""

    prompt: str | None = None
    """The generation prompt."""
    prompt_no_thinking: str | None = None
    """The same, with thinking switched off."""
    bare: str | None = None
    """What follows the input when there is neither an answer nor a generation prompt."""
    bare_no_thinking: str | None = None
    answers: tuple[str, ...] = ()
    """Answers of every shape that the template does not refuse."""
    no_thinking: str | None = None
    """An answer of content alone, with thinking switched off."""
    in_history: str | None = None
    """An answer of reasoning and content, with another question after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What a template writes around answers, and where one turn follows another."""

    question: Asked
    """After a user's question."""
    result: Asked | None = None
    """After a tool's result; None where the template takes no calls or no results."""
    opening: str = ""
    """What is before a conversation's first question."""
    opening_with_tools: str = ""
    """The same where tools are offered: some templates show them right before a question."""
    content: str | None = None
    """An answer of content alone, after the question."""
    followed: str | None = None
    """The same answer, with another question after it."""
    call: str | None = None
    """An answer of one call."""
    call_answered: str | None = None
    """The same answer, with the call's result after it."""
    after_result: tuple[str, ...] = ()
    """Answers of content to a tool's result, without and with another call."""


def render_turns(prober: Prober) -> Turns:
    """Render questions, results and answers, and return what follows each."""
    (call,) = make_calls(1)
    takes_results = prober.capabilities.supports_tool_calls and prober.capabilities.supports_tool_role
    called = [user(), assistant(calls=[call]), result(call)]
    again = (assistant(CONTENT, calls=calls) for calls in ((), (call,)) if takes_results)
    after_result = [prober.answer(message, before=called) for message in again]
    content, followed = (prober.answer(assistant(CONTENT), after=after) for after in ([], [user(USER2)]))
    return Turns(
        question=_render_asked(prober, [user()]),
        result=_render_asked(prober, called) if takes_results else None,
        opening=_render_opening(prober, content, followed, tools=None),
        opening_with_tools=_render_opening(prober, content, followed, tools=prober.offered),
        content=content,
        followed=followed,
        call=prober.answer(assistant(calls=[call])),
        call_answered=prober.answer(assistant(calls=[call]), after=[result(call)]),
        after_result=tuple(text for text in after_result if text is not None),
    )


def _render_asked(prober: Prober, before: list[Message]) -> Asked:
    calls = make_calls(1)
    shapes = [
        assistant(CONTENT),
        assistant(CONTENT, REASONING),
        assistant(calls=calls),
        assistant("", REASONING, calls),
        assistant(CONTENT, calls=calls),
    ]
    answers = [prober.answer(shape, before=before) for shape in shapes]
    prompt, prompt_no_thinking = (
        prober.answer(None, before=before, prompt=True, thinking=thinking) for thinking in (True, False)
    )
    bare = prober.answer(None, before=before)
    # A prompt that goes on from it with thinking off shows that the switch leaves the input as it is: no rendering is needed.
    unchanged = bool(bare) and bare != prompt and (prompt_no_thinking or "").startswith(bare or "")
    return Asked(
        prompt=prompt,
        prompt_no_thinking=prompt_no_thinking,
        bare=bare,
        bare_no_thinking=bare if unchanged else prober.answer(None, before=before, thinking=False),
        answers=tuple(text for text in answers if text is not None),
        no_thinking=prober.answer(assistant(CONTENT), before=before, thinking=False),
        in_history=prober.answer(assistant(CONTENT, REASONING), before=before, after=[user(USER2)]),
    )


def _render_opening(prober: Prober, content: str | None, followed: str | None, *, tools: list[Any] | None) -> str:
    """Return what is before the first question; nothing where an answer ends alike in every place, and needs none."""
    ends_alike = content and followed and followed.startswith(content) and not content.rstrip().endswith(CONTENT)
    return "" if ends_alike else (prober.render([user()], tools=tools) or "").partition(USER)[0]
