"""Finds the triggers of lazy grammars: texts that show an engine that a tool call starts.

Rules: a trigger is the outermost literal with which the primary call syntax begins; of a literal that begins with a special
token, that token alone, so that a misspelt name after it still wakes the grammar; where the literal is ordinary text, all
up to and with the name of a tool. It is a plain word only where it cannot be in reasoning, or where calls are
there; otherwise it is a pattern that the whole output so far must match, whose first group is the call's beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from unrender.answer.build import own_calls
from unrender.answer.literals import TOKEN, is_phrase
from unrender.answer.nodes import Calls, literal_of
from unrender.format import Format, ReasoningMode, Slot
from unrender.messages.wire import Request, Tool

_ANY = r"[\s\S]*?"


TriggerKind = Literal["word", "pattern"]
"""The kind of a trigger.

"word" is a text that can occur anywhere. "pattern" is an ECMAScript regular expression that must match from the start of the output; the
grammar starts at its first group.
"""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A text or pattern that activates a lazy grammar at the start of a call. Text before it isn't constrained."""

    kind: TriggerKind
    value: str


def triggers_of(format: Format, request: Request, prefill: str = "") -> tuple[Trigger, ...]:
    """Return the triggers of a lazy grammar; none when there are no calls, or when the grammar holds from the start.

    `prefill` is the part of the answer that the prompt already contains.
    """
    lazy = request.tool_choice == "auto" and request._calls_allowed and request.response_schema is None
    calls = own_calls(format)
    if not lazy or calls is None or not calls.openers:
        return ()
    opener = calls.openers[0].core
    called = _before_name(calls, opener) + _names(calls, request.tools or ())
    # The prompt may end in `>>>`, the opener: then `f` and what follows a name comes first, and a next call with `>>>`.
    found: list[Trigger] = []
    if prefill.endswith(opener):
        found.append(Trigger("pattern", f"^({called})"))
    before = _before(format, prefill)
    marker = _marker(opener, format)
    if marker and not before:
        return (*found, Trigger("word", marker))
    sign = re.escape(marker) if marker else re.escape(opener) + called
    # Text in which no reasoning is opened.
    start = "" if format.reasoning.holds_calls else format.reasoning.start.strip()
    unopened = f"(?:(?!{re.escape(start)})[\\s\\S])*?" if start else _ANY
    return (*found, Trigger("pattern", f"^{before}{unopened}({sign})"))


def _marker(opener: str, format: Format) -> str:
    """Return what of `opener` is not ordinary text, and no beginning of just any JSON: a token, or all of it; else "".

    What other parts of an answer are written with as well tells nothing by itself.
    """
    wrappers = [text for wrapper in format._wrappers for text in (wrapper.start, wrapper.end)]
    others = [format.reasoning.start, format.reasoning.end, *wrappers]
    # `<|calls|>[` is known by the token `<|calls|>`, `→ call` by all of it; `[`, `call:` and `{"name": "` may be in any prose.
    token = TOKEN.match(opener)
    signs = (token.group() if token else "", opener if is_phrase(opener) else "")
    return next((sign for sign in signs if sign and not any(sign in text for text in others)), "")


def _before_name(calls: Calls, opener: str) -> str:
    """Return a pattern for the text between the start marker and the tool's name."""
    return re.escape("".join(marker.text for marker in calls.openers).lstrip().removeprefix(opener))


def _names(calls: Calls, tools: Iterable[Tool]) -> str:
    """Return the pattern of the tools' names, if a call begins with the name."""
    parts = calls.function[0 if calls.function[0] is Slot.NAME else 1 :]
    if parts[:1] != (Slot.NAME,):
        return ""
    # `f` alone would fire in `for example`: the first character after the name belongs to the sign.
    after_name = literal_of(*parts[1:2])
    return f"(?:{'|'.join(re.escape(tool.name) for tool in tools)}){re.escape(after_name[:1])}"


def _before(format: Format, prefill: str) -> str:
    """Return the pattern of reasoning that must have ended before a call counts."""
    reasoning = format.reasoning
    end, start = reasoning.end.strip(), reasoning.start.strip()
    if not end or reasoning.mode is ReasoningMode.NONE or reasoning.holds_calls:
        return ""
    # `I could <call>` is only a thought: with `<think>` open, the pattern is `^[\s\S]*?</think>`, then the call.
    ended = f"{_ANY}{re.escape(end)}"
    opened = bool(start) and start in prefill and not reasoning.closed_in(prefill)
    if opened:
        return ended
    return f"(?:\\s*{re.escape(start)}{ended})?" if start else f"(?:{ended})?"
