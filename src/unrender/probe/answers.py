"""Asks an engine one task, and classifies the answer: how its calls are written, whether they are the wanted ones, and what is broken.

Rule: the raw text is parsed three times. With the format's own syntax and without repairs, it shows whether the model follows its template.
With every other known syntax, it shows which one the model uses. With the default policy, it shows what a user of the parser gets.
"""

from __future__ import annotations

import html
import re
import time
import urllib.parse
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from unrender import ChatTemplate, Policy, Turn
from unrender.errors import TemplateWarning
from unrender.explain.hints import HINTS, HintCase
from unrender.explain.nearest import AnswerReading, find_nearest
from unrender.gateway.answers.turns import grammar_of
from unrender.gateway.backends import Backend, EngineError, EngineGrammar, Job
from unrender.machine import numbered_id
from unrender.messages import ToolCall
from unrender.openai import Usage
from unrender.probe.tasks import Task

Kind = Literal["own", "repaired", "other", "broken", "silent", "uninvited", "text", "error"]
"""Result of one answer. The first three have calls: in the template's own syntax, in that syntax with repairs, or in another syntax. "broken"
has a call that can't be parsed, and "silent" has none although one was wanted. "uninvited" has a call although none was wanted, and
"text" has none either. An "error" comes from the engine.
"""
LIMIT = 256
"""Maximum number of tokens of an answer."""
_THINKING = 1024
"""Maximum number of tokens of an answer with reasoning."""


_REPEATED = re.compile(r"(.{1,24}?)\1", re.DOTALL)
_QUOTES = str.maketrans(dict.fromkeys("“”„", '"') | dict.fromkeys("‘’", "'"))
_TOKEN_TEXT = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})


def _mojibake(text: str) -> str:
    with suppress(UnicodeError):
        return text.encode("cp1252").decode()
    return text


def _once(text: str) -> str:
    """Return a text in which every part comes twice with each part once; any other text unchanged."""
    once = _REPEATED.sub(r"\1", text)
    return once if len(once) < 0.6 * len(text) else text


UNDO: Mapping[str, Callable[[str], str]] = {
    "HTML escapes": html.unescape,
    "UTF-8 decoded as another encoding": _mojibake,
    "JSON escapes": lambda text: text.replace('\\"', '"').replace("\\n", "\n").strip('"'),
    "typographic quotes": lambda text: text.translate(_QUOTES),
    "Markdown escapes": lambda text: re.sub(r"\\([_*<>`#\[\]])", r"\1", text),
    "URL escapes": urllib.parse.unquote,
    "tokens of the vocabulary instead of their text": lambda text: text.translate(_TOKEN_TEXT),
    "each part twice": _once,
    "no-break spaces": lambda text: text.replace("\u00a0", " "),
    "spaces between tokens": lambda text: re.sub(r" (?=\W)|(?<=\W) ", "", text),
}
"""Changes that a server may make to an answer, each with the function that undoes the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of the engine, and its classification."""

    task: Task
    turn: Turn
    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    sent: int = 0
    """Number of tokens in the prompt, as the engine's tokenizer counts them. 0 if the engine can't count."""
    unseen: int | None = None
    """Number of generated tokens that aren't in the text. None if unknown."""
    seconds: float = 0.0
    limit: int = LIMIT
    error: str = ""
    status: int | None = None
    """HTTP status of the error."""
    kind: Kind = "error"
    detail: str = ""
    """The repaired, broken or other syntax, or the engine's error."""
    calls: tuple[ToolCall, ...] = ()
    """The calls, in whatever syntax they are written."""
    expected: str = ""
    """The text that a broken call lacks."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Hints of `unrender.explain`, by name."""
    altered: str = ""
    """The change in `UNDO` without which the answer has more calls."""

    @property
    def read(self) -> int:
        """Number of tokens that the engine read in the prompt; 0 if unknown."""
        return (self.usage.prompt_tokens or 0) if self.usage else 0

    @property
    def tokens(self) -> int:
        """Number of generated tokens; 0 if unknown."""
        return (self.usage.completion_tokens or 0) if self.usage else 0

    @property
    def is_cut(self) -> bool:
        """True if a part of the generated tokens didn't arrive."""
        return (self.unseen or 0) > max(4, self.tokens / 6)

    @property
    def right(self) -> bool:
        """True if the calls are the wanted ones."""
        return self.kind in ("own", "repaired", "other", "text") and self.task.right(self.calls)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON data."""
        same = {name: getattr(self, name) for name in ("kind", "detail", "right", "text", "finish", "error")}
        calls = [{"name": call.name, "arguments": call.arguments} for call in self.calls]
        told = {"task": self.task.name, "tools": self.task.count, **self.task.variables}
        return {**told, **same, "calls": calls, "seconds": round(self.seconds, 2)}


def prepared(template: ChatTemplate, task: Task, **more: Any) -> Turn:
    """Return the turn for a task, without warnings about what the template ignores. Raises the errors of `ChatTemplate.prepare`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemplateWarning)
        return template.prepare(task.messages, tools=task.tools or None, **{**task.variables, **more})


def may_think(turn: Turn) -> bool:
    """Return whether the answer to a turn may contain reasoning."""
    return turn.thinking is not False and bool(turn.format.reasoning.end)


async def ask(
    engine: Backend, template: ChatTemplate, task: Task, *, bound: bool = False, limit: int = LIMIT, **more: Any
) -> Answer:
    """Return the engine's answer to a task, at temperature 0. If it's `bound`, a grammar enforces a call of a tool."""
    turn = prepared(template, task, **({"tool_choice": "required"} if bound else {}), **more)
    limit = _THINKING if may_think(turn) else limit
    grammar = grammar_of(turn, engine.capabilities).grammar if bound else None
    return judged(await generated(engine, task, turn, grammar, limit=limit))


async def generated(
    engine: Backend, task: Task, turn: Turn, grammar: EngineGrammar | None = None, *, limit: int = LIMIT
) -> Answer:
    """Return the engine's unclassified answer to a turn. An error of the engine is part of the answer."""
    job = Job(turn=turn, request_id="unrender-probe", grammar=grammar, limit=limit, sampling={"temperature": 0.0})
    begun, texts, usage, finish = time.monotonic(), list[str](), None, None
    answer = Answer(task=task, turn=turn, limit=limit)
    try:
        answer = replace(answer, sent=await engine.count(turn.prompt) or 0)
        async with aclosing(engine.generate(job)) as pieces:
            async for piece in pieces:
                texts.append(piece.text)
                usage, finish = piece.usage or usage, piece.finish or finish
        text = "".join(texts)
        unseen = None
        if usage is not None and usage.completion_tokens:
            # The end of the turn isn't in the text of most engines, and may be several tokens.
            end = turn.format.turn.end.strip() if finish == "stop" else ""
            seen = await engine.count(text if text.endswith(end) else text + end)
            unseen = usage.completion_tokens - (_seen(texts, usage.completion_tokens) if seen is None else seen)
        spent = time.monotonic() - begun
        return replace(answer, text=text, finish=finish, usage=usage, unseen=unseen, seconds=spent)
    except EngineError as error:
        return replace(answer, error=error.message, status=error.status, seconds=time.monotonic() - begun)


_WORDS = re.compile(r"\w\W+\w")
"""Matches text that is longer than one token."""


def _seen(pieces: Iterable[str], generated: int) -> int:
    """Return the number of tokens in a text that arrived in `pieces`, for engines that can't count. A token has at least one character."""
    shown = [piece for piece in pieces if piece]
    return min(len("".join(shown)), generated) if any(map(_WORDS.search, shown)) else len(shown)


def judged(answer: Answer) -> Answer:
    """Return the answer with its classification."""
    if answer.error:
        return replace(answer, detail=answer.error)
    own = read(answer, repair="none", tolerated=False)
    plain = (own.whole_calls and not own.malformed) or not any(
        tool.name in answer.text for tool in own.turn.request.tools or ()
    )
    nearest, best = (None, own) if plain else find_nearest(own)
    usual = own if plain and own.whole_calls else read(answer)
    case = HintCase(reading=own, nearest=nearest, best=best)
    hints = {name: text for name in (_ALWAYS if plain else _HINTS) for text, _ in HINTS[name](case)}
    found: dict[str, Any] = {
        "hints": hints,
        "altered": _altered(answer, max((own, usual, best), key=lambda it: len(it.whole_calls)).whole_calls),
    }
    # If the format's own markers remain as text, the call is damaged, not in another syntax.
    markers = [marker.strip() for marker in answer.turn.format.tools.markers[:2] if marker.strip()]
    clean = nearest is not None and not any(marker in best.unread for marker in markers)
    if clean and (len(best.whole_calls), -len(best.malformed)) >= (len(usual.whole_calls), -len(usual.malformed)):
        return _kind(answer, "other", best, nearest.name if nearest else "", found)
    if own.whole_calls and not own.malformed:
        return _kind(answer, "own", own, "", found)
    if usual.whole_calls:
        lacks = usual.malformed[0] if usual.malformed else None
        found["expected"] = lacks.expected if lacks and not lacks.text and answer.finish == "stop" else ""
        return _kind(answer, "repaired", usual, (lacks.expected or repr(lacks.text)) if lacks else "", found)
    broken = own.message.failed_calls or own.malformed or hints.keys() & _MEANT
    if broken and answer.task.wanted:
        found["expected"] = next((event.expected for event in own.malformed), "")
        return _kind(answer, "broken", usual, next(iter(hints.values()), found["expected"]), found)
    return _kind(answer, "silent" if answer.task.wanted else "text", usual, "", found)


_MEANT = frozenset(("looks-called", "no-call-syntax", "special-tokens-stripped", "truncated", "unknown-tool"))
"""Hints that show that a call was meant."""
_ALWAYS = ("text-after-end", "reasoning-not-closed")
"""Hints about all answers."""
_HINTS = (*_ALWAYS, *sorted(_MEANT))


def _kind(answer: Answer, kind: Kind, reading: AnswerReading, detail: str, found: Mapping[str, Any]) -> Answer:
    called = kind in ("own", "repaired", "other")
    kind = "uninvited" if called and not answer.task.wanted else kind
    return replace(answer, kind=kind, detail=detail, calls=reading.whole_calls, **found)


def read(
    answer: Answer, text: str | None = None, *, repair: Literal["format", "none"] = "format", tolerated: bool = True
) -> AnswerReading:
    """Return the result of parsing an answer, by default its own text and the default policy.

    If `tolerated` is False, only the format's own call syntax is parsed.
    """
    turn, output = answer.turn, answer.text if text is None else text
    if not tolerated:
        turn = replace(turn, format=replace(turn.format, tolerated=()))
    parser = turn.parser(ids=numbered_id, policy=Policy(repair=repair))
    events = (*parser.feed(output), *parser.finish("length" if answer.finish == "length" else None))
    return AnswerReading(turn=turn, output=output, events=events, spans=parser.spans, message=parser.message)


def _altered(answer: Answer, calls: tuple[ToolCall, ...]) -> str:
    """Return the name of the change without which the answer has more calls than `calls`, or the wanted ones; "" if there is none."""
    for name, undo in UNDO.items():
        if (text := undo(answer.text)) != answer.text and not answer.task.right(calls):
            found = read(answer, text).whole_calls
            if len(found) > len(calls) or answer.task.right(found):
                return name
    return ""
