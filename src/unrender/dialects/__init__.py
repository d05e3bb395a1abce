"""Writes the rest of an answer as a grammar in an engine's dialect.

The input is a format, a request and the prefill. The output is GBNF, Lark, a structural tag, or a random sample. Start with the class
`Remainder` in `remainder`, which has a method for each of these outputs. This module defines a grammar with the settings that
its engine needs, and finds the triggers of lazy grammars: strings that show an engine the start of a tool call.

Each dialect expands the grammar, lowers it to context-free rules (`context_free`), and writes these rules in its own syntax. The rules
consist of literals, characters, sequences, choices and repetitions, with `Stopped` only at the top level of a rule. `stops` finds the first
stop after free text, and `lexer_conflicts` rewrites alternatives that a lexer would confuse. Lowering is exact, and the number of rules is
linear in the source: continuations are never copied into the rules that lead to them.

Rules: a dialect never allows text that the grammar doesn't allow. Schema keywords that a dialect can't enforce are reported as
`Unsupported`. If a dialect can't express part of a grammar, it raises `GrammarError`.

Rules of triggers:

- A trigger is the first literal of the primary call syntax.
- If the literal starts with a special token, only the token is the trigger. A misspelled name after the token still activates the grammar.
- If the literal is ordinary text, the trigger is the text up to and including a tool name.
- A trigger is a word, which may occur anywhere in the output, if no reasoning can precede the call or if reasoning may contain calls.
- All other triggers are patterns that must match the output from its start. The pattern's first group is the start of the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from unrender.answer import TOKEN, Calls, is_phrase, literal_of
from unrender.answer.build import own_calls
from unrender.format import Format, ReasoningMode, Slot
from unrender.messages import Request, Tool

_ANY = r"[\s\S]*?"


TriggerKind = Literal["word", "pattern"]
"""The kind of a trigger.

"word" is a string that activates the grammar anywhere in the output. "pattern" is an ECMAScript regular expression that must match from the
start of the output. The grammar then starts at the expression's first group.
"""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A string or pattern that activates a lazy grammar at the start of a call. Text before the call isn't constrained."""

    kind: TriggerKind
    value: str


def triggers_of(format: Format, request: Request, prefill: str = "") -> tuple[Trigger, ...]:
    """Return the triggers of a lazy grammar. Returns an empty tuple if the answer contains no calls, or if the grammar applies from the
    start.

    `prefill` is the part of the answer that the prompt already contains.
    """
    lazy = request.tool_choice == "auto" and request._calls_allowed and request.response_schema is None
    calls = own_calls(format)
    if not lazy or calls is None or not calls.openers:
        return ()
    opener = calls.openers[0].core
    called = _before_name(calls, opener) + _names(calls, request.tools or ())
    # The prompt may end with the opener `>>>`. The first call in the answer then starts with its name `f`, and only later calls start with
    # `>>>`.
    found: list[Trigger] = []
    if prefill.endswith(opener):
        found.append(Trigger("pattern", f"^({called})"))
    before = _before(format, prefill)
    marker = _marker(opener, format)
    if marker and not before:
        return (*found, Trigger("word", marker))
    sign = re.escape(marker) if marker else re.escape(opener) + called
    # Unless reasoning may contain calls, the text before the call must not open reasoning.
    start = "" if format.reasoning.holds_calls else format.reasoning.start.strip()
    unopened = f"(?:(?!{re.escape(start)})[\\s\\S])*?" if start else _ANY
    return (*found, Trigger("pattern", f"^{before}{unopened}({sign})"))


def _marker(opener: str, format: Format) -> str:
    """Return the part of `opener` that identifies a call, which is a special token or the complete opener. Returns "" if no part identifies
    a call.

    Ordinary text, the start of any JSON, and text of other parts of an answer don't identify a call.
    """
    wrappers = [text for wrapper in format._wrappers for text in (wrapper.start, wrapper.end)]
    others = [format.reasoning.start, format.reasoning.end, *wrappers]
    # The token identifies `<|calls|>[`, and the complete string identifies `→ call`. `[`, `call:` and `{"name": "` may occur in any text.
    token = TOKEN.match(opener)
    signs = (token.group() if token else "", opener if is_phrase(opener) else "")
    return next((sign for sign in signs if sign and not any(sign in text for text in others)), "")


def _before_name(calls: Calls, opener: str) -> str:
    """Return a pattern for the text between the start marker and the tool's name."""
    return re.escape("".join(marker.text for marker in calls.openers).lstrip().removeprefix(opener))


def _names(calls: Calls, tools: Iterable[Tool]) -> str:
    """Return a pattern for the tools' names, or "" if the name isn't the first part of a call."""
    parts = calls.function[0 if calls.function[0] is Slot.NAME else 1 :]
    if parts[:1] != (Slot.NAME,):
        return ""
    # The name `f` alone would match in `for example`, so the trigger includes the first character after the name.
    after_name = literal_of(*parts[1:2])
    return f"(?:{'|'.join(re.escape(tool.name) for tool in tools)}){re.escape(after_name[:1])}"


def _before(format: Format, prefill: str) -> str:
    """Return a pattern for reasoning that must end before a call can start."""
    reasoning = format.reasoning
    end, start = reasoning.end.strip(), reasoning.start.strip()
    if not end or reasoning.mode is ReasoningMode.NONE or reasoning.holds_calls:
        return ""
    # Reasoning may contain `<call>`. So if the prompt has opened `<think>`, the pattern is `^[\s\S]*?</think>`, followed by the call.
    ended = f"{_ANY}{re.escape(end)}"
    opened = bool(start) and start in prefill and not reasoning.closed_in(prefill)
    if opened:
        return ended
    return f"(?:\\s*{re.escape(start)}{ended})?" if start else f"(?:{ended})?"


Engine = Literal["llama.cpp", "llguidance", "sglang", "vllm", "xgrammar"]
"""An engine, or a library that engines use for constrained decoding."""


class Dialect(StrEnum):
    """A grammar language that engines support: GBNF, Lark or structural tags."""

    GBNF = "gbnf"
    LARK = "lark"
    STRUCTURAL_TAG = "structural_tag"


DIALECT_OF: Mapping[str, Dialect] = {
    "llama.cpp": Dialect.GBNF,
    "llguidance": Dialect.LARK,
    "sglang": Dialect.STRUCTURAL_TAG,
    "vllm": Dialect.STRUCTURAL_TAG,
    "xgrammar": Dialect.STRUCTURAL_TAG,
}
"""The dialect of each engine."""
ENGINE_OF: Mapping[str, Engine] = {"gbnf": "llama.cpp", "lark": "llguidance", "structural_tag": "xgrammar"}
"""Maps each dialect to one engine that uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """The grammar of an answer in an engine's dialect, with the settings that the engine needs."""

    grammar: str
    """The grammar: GBNF for llama.cpp, Lark for llguidance, and a structural tag as JSON for all other engines."""
    triggers: tuple[Trigger, ...] = ()
    """The triggers of a lazy grammar, for llama.cpp. Empty if the grammar isn't lazy, i.e. applies from the first token."""
    stop: tuple[str, ...] = ()
    """Strings at which generation should end, as in `Turn.stop`."""
    preserved_tokens: tuple[str, ...] = ()
    """Special tokens that the engine must not strip from the output, as in `Turn.preserved_tokens`."""
