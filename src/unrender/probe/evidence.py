"""Asks an engine for everything that the causes need: its prompts, its treatment of text and grammars, and its answers to the tasks.

Strategy: what the server does is asked first, with a few tokens each. Then the model gets the tasks, with all numbers of tools in each half
of the time, until the time is up. If the template has no tools, each declared format is tried first, and the best one is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrender import ChatTemplate, Turn, UnrenderError
from unrender.answer.encode import encode_answer
from unrender.format import ToolMode
from unrender.format.declared import declared_formats
from unrender.gateway.answers.model import Findings, only
from unrender.gateway.answers.model import find_features as try_engine
from unrender.gateway.answers.turns import TurnFactory
from unrender.gateway.backends import Backend, EngineError
from unrender.gateway.backends.connection import HttpEngine
from unrender.probe.answers import LIMIT, Answer, ask, generated, may_think, prepared
from unrender.probe.tasks import COUNTS, Task, tasks_with

Told = Callable[[int, int], None]
"""Function that is told the number of finished requests, and of all requests."""
FREE = Task(
    name="free", messages=[{"role": "user", "content": "Make up a sentence about the sea."}], tools=(), variables={}
)
_SAMPLE, _REPEATS = 24, 5
"""Tokens of the answers that are compared with each other, and their number."""
_WORDS = ("spaces", "quick", "foxes")
_SPOKEN = 'Zürich — "<b>x</b> & &lt; y"\n  two  spaces, 12 quick foxes'
"""Text that careless servers change. No model writes these words by itself."""
_SHORT = 4
"""Maximum number of tokens in a prompt of one short word."""
_ABSENT = (404, 405, 501)
"""HTTP status of a path that an engine doesn't have."""
_TRIED = 4
"""Number of tasks for each tool format."""
_BOUND = ("weather", "numbers")
"""Tasks that are repeated under a grammar, with all numbers of tools. The engine has their prompts in its cache."""
_TRIAL = 96
"""Maximum number of tokens of an answer in a tool format that is tried. A call has half as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """A prompt, as the template and as the engine render it."""

    name: str
    ours: str
    theirs: str | None = None
    """None if the engine doesn't show its prompt, or rejects the conversation."""
    error: str = ""
    counts: tuple[int, int] = (0, 0)
    """Numbers of tokens that the engine reads in our prompt, and at its own endpoint; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """An answer of the engine's own Chat Completions endpoint to the request of `answer`."""

    answer: Answer
    calls: Sequence[tuple[str, Any]] = ()
    defect: str = ""
    """A defect in the form of the response."""
    tokens: int = 0
    """Number of tokens in the prompt; 0 if unknown."""
    generated: int = 0
    """Number of tokens in the answer; 0 if unknown."""
    error: str = ""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """Everything that was observed."""

    template: ChatTemplate
    tool_format: str = "auto"
    context: int | None = None
    renderings: list[Rendering] = field(default_factory=list)
    grammar: bool | None = None
    """True if the engine enforces grammars. None if unknown, or if its kind has no grammars."""
    doubled: bool | None = None
    """True if the engine adds a BOS token to a prompt that has one."""
    forced: tuple[str, str] | None = None
    """A text that a grammar enforced, and the text that arrived."""
    end_tokens: int | None = None
    """Number of tokens in the template's special token at the end of a turn. None if unknown, or if the end isn't a special token."""
    touched: str = ""
    """Evidence that an engine without a tokenizer changes prompts."""
    repeats: Sequence[Answer] = ()
    """Answers to the same request."""
    formats: dict[str, list[Answer]] = field(default_factory=dict)
    """Answers by tool format, if the template has no tools."""
    answers: list[Answer] = field(default_factory=list)
    bound: list[Answer] = field(default_factory=list)
    """Answers under a grammar, to tasks that are also in `answers`."""
    served: list[Served] = field(default_factory=list)
    seconds: float = 0.0
    skipped: int = 0
    """Number of tasks for which there was no time."""

    @property
    def calling(self) -> list[Answer]:
        """The answers that should contain calls, without errors."""
        return [answer for answer in self.answers if answer.task.wanted and not answer.error]


async def gather(engine: Backend, template: ChatTemplate, *, seconds: float, told: Told) -> Evidence:
    """Return the evidence about a running engine, gathered in about `seconds`. Raises `EngineError` if the engine doesn't answer at all."""
    begun = time.monotonic()
    found = Evidence(template=template)
    if problem := await engine.ready():
        raise EngineError(problem)
    await _server(engine, found)
    if template.format.tools.mode is ToolMode.NONE and not template.capabilities.supports_tools:
        found.tool_format = await _best_format(engine, found, begun + seconds / 3)
    planned = _planned(template, binds=bool(engine.capabilities.dialect) and found.grammar is not False)
    own: dict[str, Any] = {} if found.tool_format == "auto" else {"tool_format": found.tool_format}
    for done, (task, bound) in enumerate(planned):
        if time.monotonic() - begun > seconds * 0.9:
            found.skipped = sum(not bound for _, bound in planned[done:])
            break
        (found.bound if bound else found.answers).append(await ask(engine, template, task, bound=bound, **own))
        told(done + 1, len(planned))
    called = [answer for answer in found.answers if answer.task.wanted]
    if isinstance(engine, HttpEngine) and found.tool_format == "auto":
        # Of each task, the request with the fewest tools is the quickest.
        quickest_last = sorted(called, key=lambda answer: -answer.task.count)
        clear = {answer.task.name: answer for answer in quickest_last if answer.calls and not answer.task.variables}
        for answer in [*clear.values()] or called[:2]:
            if time.monotonic() < begun + seconds and (own_answer := await _own_answer(engine, answer)):
                found.served.append(own_answer)
    found.seconds = time.monotonic() - begun
    return found


def _planned(template: ChatTemplate, *, binds: bool) -> list[tuple[Task, bool]]:
    """Return all tasks, each with whether a grammar enforces a call.

    One half has more and more tools, and the other half fewer and fewer, so that an engine with a cache reads each tool once.
    """
    asked = [(at % 2, count, task, False) for count in COUNTS for at, task in enumerate(tasks_with(count))]
    if switch := thinking_switch(template):
        asked += [(1, 5, task, False) for task in tasks_with(5, switch)]
    asked += [(1, count, it, True) for count in COUNTS for it in tasks_with(count) if binds and it.name in _BOUND]
    return [(task, bound) for _, _, task, bound in sorted(asked, key=lambda it: (it[0], -it[1] if it[0] else it[1]))]


def thinking_switch(template: ChatTemplate) -> Mapping[str, Any]:
    """Return the variable that turns off thinking; empty if the template has none."""
    task = next(tasks_with(1))
    try:
        on, off = (prepared(template, task, enable_thinking=value).prompt for value in (True, False))
    except UnrenderError:
        return {}
    return {"enable_thinking": False} if on != off else {}


# The server.


async def _server(engine: Backend, found: Evidence) -> None:
    """Look at what the server does to prompts and answers."""
    template, tried = found.template, Findings()
    if isinstance(engine, HttpEngine):
        try:
            found.context = await engine.context()
        except EngineError:
            found.context = None
        found.renderings = [it async for it in _renderings(engine, template)]
    await try_engine(TurnFactory(template=template), engine, tried)
    found.grammar, found.doubled = tried.grammar, tried.adds_bos
    turn, end = prepared(template, FREE), template.format.turn.end.strip()
    found.end_tokens = await engine.count(end) if end in template.format.preserved_tokens else None
    again = [await generated(engine, FREE, turn, limit=_SAMPLE) for _ in range(_REPEATS)]
    found.repeats = [answer for answer in again if not answer.error]
    found.touched = await _touched(engine, turn)
    found.forced = await _forced(engine, template)
    if found.forced and any(word in found.forced[1].casefold() for word in _WORDS):
        found.grammar = True  # it has an effect, but its text was changed
    elif not found.grammar:
        found.forced = None


async def _touched(engine: Backend, turn: Turn) -> str:
    """Return the evidence that an engine changes prompts, from the numbers of tokens that it reads."""
    # Several lines aren't one token, even together with the character before them.
    bare = turn.prompt.rstrip()
    texts = ("Hi", bare, f"{bare}\n \n \n \n")
    if await engine.count(bare) is not None:
        return ""  # each prompt is counted
    answers = [await generated(engine, FREE, replace(turn, prompt=text), limit=1) for text in texts]
    short, trimmed, longer = (answer.read for answer in answers)
    if short > _SHORT:
        return f"the engine reads {short} tokens in the prompt {texts[0]!r}"
    trims = trimmed == longer > 0 and bare != turn.prompt
    return "whitespace at the end of a prompt doesn't change the number of tokens" if trims else ""


async def _forced(engine: Backend, template: ChatTemplate) -> tuple[str, str] | None:
    """Return a call as the template writes it, and what arrives if a grammar enforces exactly this text."""
    task = next(tasks_with(5))
    turn = prepared(template, task)
    call = ("post_message", {"channel": "a", "text": _SPOKEN}, "call00001")
    thought = "I post it." if may_think(turn) else ""
    written = encode_answer(turn.format, reasoning=thought, calls=[call]).removeprefix(turn.prefill)
    sent = f"\n{written or _SPOKEN}\n"
    grammar = only(engine.capabilities.dialect, sent)
    if grammar is None:
        return None
    answer = await generated(engine, task, turn, grammar, limit=LIMIT)
    for end in turn.stop:
        answer = replace(answer, text=answer.text.removesuffix(end))
    return None if answer.error or answer.finish == "length" else (sent, answer.text)


async def _renderings(engine: HttpEngine, template: ChatTemplate) -> Any:
    """Yield the renderings of a few conversations, if the engine shows its prompts."""
    bos, switch = template._with_tools.bos_token, thinking_switch(template)
    asked = {task.name: task for task in tasks_with(5)}
    plain = {"without tools": FREE, "with tools": asked["weather"], "with a tool result": asked["result"]}
    system = {"role": "system", "content": "Answer in one word."}
    shown = {**plain, "with a system message": replace(FREE, messages=[system, *FREE.messages])}
    if switch.keys() <= template.variables.keys() and switch:
        shown["without thinking"] = replace(asked["weather"], variables=switch)
    for name, task in shown.items():
        try:
            turn = prepared(template, task)
        except UnrenderError:
            continue
        if turn.tool_prompt or turn.warnings:
            continue  # `prepare` changes what the template can't render, and engines don't
        theirs = None
        try:
            theirs = await engine.rendered(_body(task))
        except EngineError as error:
            # An engine without this path, or without a template, responds with 404.
            if error.status not in (None, 404):
                yield Rendering(name=name, ours=turn.prompt, error=error.message)
        if theirs is not None:
            yield Rendering(name=name, ours=turn.prompt.removeprefix(bos), theirs=theirs.removeprefix(bos))
        else:
            yield await _counted(engine, template, name, task)


async def _counted(engine: Any, template: ChatTemplate, name: str, task: Task) -> Rendering:
    """Return the numbers of tokens that the engine reads of a conversation, since it doesn't show its prompt."""
    answer = await generated(engine, task, prepared(template, task), limit=1)
    own = await _own_answer(engine, answer)
    error, counts = (own.error, (answer.read, own.tokens)) if own else ("", (answer.read, 0))
    return Rendering(name=name, ours=answer.turn.prompt, error=error, counts=counts)


def _body(task: Task) -> dict[str, Any]:
    """Return the request of a task for the engine's own endpoints."""
    tools = {"tools": list(task.tools)} if task.tools else {}
    variables = {"chat_template_kwargs": dict(task.variables)} if task.variables else {}
    return {"messages": list(task.messages), **tools, **variables}


# The model.


async def _best_format(engine: Backend, found: Evidence, until: float) -> str:
    """Try each declared tool format, and return the name of the one in which most calls are right; "auto" if there are none."""
    asked = [task for task in tasks_with(5) if task.wish == "one"][:_TRIED]
    named = [it.name for it in declared_formats() if it.format.tools.mode is not ToolMode.NONE]
    # Each syntax gets one task first, since there may be no time for more.
    for tasks in (asked[:1], asked[1:]):
        # The syntaxes with a call come first, and then the default.
        for name in sorted(named, key=lambda name: (not _calls(found, name), name != "tool-call-json")):
            for task in tasks:
                # A model that writes no call in two answers doesn't know the syntax.
                tried = len(found.formats.get(name, ()))
                if time.monotonic() < until and (tried != _TRIED / 2 or _calls(found, name)):
                    answer = await ask(engine, found.template, task, limit=_TRIAL, tool_format=name)
                    found.formats.setdefault(name, []).append(answer)
    best = max(found.formats, key=lambda name: format_rank(found.formats[name]), default="auto")
    return best if _calls(found, best) else "auto"


def _calls(found: Evidence, name: str) -> bool:
    """Return whether the model wrote a call in a tool format."""
    return any(answer.calls for answer in found.formats.get(name, ()))


def format_rank(answers: Iterable[Answer]) -> tuple[int, int]:
    """Return a sort key of a tool format: the right answers, and then those with calls in this format."""
    answers = list(answers)
    return sum(answer.right for answer in answers), sum(answer.kind == "own" for answer in answers)


async def _own_answer(engine: HttpEngine, answer: Answer) -> Served | None:
    """Return the answer of the engine's own endpoint to a request; None if it has no endpoint."""
    limits = {"temperature": 0, "max_tokens": answer.limit}
    try:
        said = await engine.chat({**_body(answer.task), **limits})
        choice = said.listed("choices")[0]
        message = choice.get("message") or {}
        calls = [(it["function"]["name"], it["function"]["arguments"]) for it in message.get("tool_calls") or ()]
        defect = _defect(choice, message, answer)
    except EngineError as error:
        return None if error.status in _ABSENT else Served(answer=answer, error=error.message)
    except (IndexError, KeyError, TypeError, AttributeError):
        return Served(answer=answer, error="the response isn't a chat completion")
    read, generated = (said.number("usage", f"{kind}_tokens") for kind in ("prompt", "completion"))
    return Served(answer=answer, calls=calls, defect=defect, tokens=read, generated=generated)


def _defect(choice: Mapping[str, Any], message: Mapping[str, Any], answer: Answer) -> str:
    """Return the defect in the form of a message, or "" if clients can use it."""
    calls, format = message.get("tool_calls") or (), answer.turn.format
    ids, content = [call.get("id") for call in calls], str(message.get("content") or "")
    markers = [text for text in (*format.tools.markers[:2], format.reasoning.end) if text.strip()]
    left = next((text.strip() for text in markers if text.strip() in content), "")
    defects = {
        "the arguments aren't text": any(not isinstance(call["function"]["arguments"], str) for call in calls),
        "a call has no id": not all(ids),
        "two calls have the same id": len(set(map(str, ids))) < len(ids),
        "the finish reason of calls is 'stop'": bool(calls) and choice.get("finish_reason") == "stop",
        f"the content has the marker {left!r}": bool(left),
    }
    return next((name for name, found in defects.items() if found), "")
