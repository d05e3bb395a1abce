"""Generates example answers that a sensible model might write, without a model.

Strategy: first choose the message, which is either a call of each tool that the question needs, or a short text. Then sample answers from a
grammar for that message, and replace the random text in these answers with the message's text. Return the first answer that the turn's
parser parses into the message. `values` generates arguments that match the schemas.

Rules: the same turn, conversation and seed give the same answer. If no answer matches the message, a random answer is sampled instead, as
in `Turn.sample`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from unrender.errors import GrammarError, ParseError
from unrender.examples.values import example_value, words_of
from unrender.limits import MAX_LISTED, MAX_SHOWN
from unrender.messages import Message, Request, Tool, ToolChoice
from unrender.nodes import Role
from unrender.signatures import checked
from unrender.turn import Turn

__all__ = ["example_answer"]


_OPENINGS = (
    "This answer is made up: no model is running.",
    "No model is running, so this answer is made up.",
    "Here is a made-up answer, since no model is running.",
)
_COMMON = frozenset(
    words_of(
        "about also call called calls could does find from function give given have into list make more need name number please "
        "provide return returns show some string tell that their them then there these this tool type used user uses using value "
        "want were what when where which will with would your"
    )
)
"""Common words, which don't help to identify a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A made-up message with optional reasoning."""

    content: str = ""
    value: Any = None
    """The content's value if the content is JSON, otherwise None."""
    calls: tuple[tuple[str, Any], ...] = ()
    """The names and arguments of the calls."""
    thought: str = ""


@checked
def example_answer(turn: Turn, messages: Sequence[Mapping[str, Any]] = (), seed: int = 0) -> str:
    """Return an answer that a sensible model might write. `seed` varies the wording.

    The answer calls each offered tool that the last question in `messages` names, or else the one whose description shares a word with the
    question. If tools have returned results, the answer repeats them. The answer contains reasoning only if thinking is on. Raises
    `GrammarError` as `Turn.sample` does.
    """
    question, done = _asked(messages)
    # The prompt may contain lone surrogates, which can't be encoded, so replace them.
    draw = random.Random(f"{seed} {turn.prompt}".encode(errors="replace"))  # noqa: S311 - not secret
    # A GrammarError means that a schema has no examples, or that the format can't express a name.
    with suppress(GrammarError):
        for plan in _plans(turn, question, done, draw):
            text = _written(turn, plan)
            if text is not None:
                return text
    return turn.sample(seed)


def _asked(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[tuple[str, str]]]:
    """Return the last question, and the name and result of each call after it. The result of an unanswered call is ""."""
    last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    names: dict[str, str] = {}
    results: dict[str, str] = {}
    for i, message in enumerate(messages[last + 1 :]):
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            names[str(call.get("id") or len(names))] = str(function.get("name", ""))
        if message.get("role") in ("tool", "function"):
            results[str(message.get("tool_call_id") or i)] = _text(message.get("content"))
    said = [results.pop(id, "") for id in names]
    left = iter(results.values())
    done = [(name, text or next(left, "")) for name, text in zip(names.values(), said, strict=True)]
    question = _text(messages[last].get("content")) if last >= 0 else ""
    return question.encode(errors="replace").decode(), done


def _text(content: Any) -> str:
    """Return a message's content as text. The content may be a string, a list of parts, or data."""
    if isinstance(content, str) or content is None:
        return content or ""
    if isinstance(content, list | tuple) and all(isinstance(part, Mapping) and "type" in part for part in content):
        return " ".join(str(part.get("text") or "") for part in content).strip()
    return json.dumps(content, default=str)


def _plans(turn: Turn, question: str, done: list[tuple[str, str]], draw: random.Random) -> Iterator[_Plan]:
    """Yield sensible messages for an answer, the best one first."""
    request = turn.request
    asked = _wanted(turn, question, [name for name, _ in done])
    if asked:
        calls = [(tool.name, example_value(tool.parameters, question=question)) for tool in asked]
        plain = [(tool.name, example_value(tool.parameters)) for tool in asked]
        thought = f"The question asks for {' and '.join(name for name, _ in calls)}."
        for found in (calls, calls[:1], plain[:1]):
            yield _Plan(calls=tuple(found), thought=thought)
        return
    thought = "The result is there, so I can answer." if done else "This question is easy, so I can answer at once."
    if request.response_schema is not None:
        value = example_value(request.response_schema, name="answer", question=question)
        yield _Plan(value=value, content=json.dumps(value, ensure_ascii=False), thought=thought)
        return
    opening = draw.choice(_OPENINGS)
    for content in _contents(request.tools if request._calls_allowed else (), question, done):
        yield _Plan(content=f"{opening} {content}".strip(), thought=thought)


def _contents(tools: Sequence[Tool] | None, question: str, done: list[tuple[str, str]]) -> Iterator[str]:
    """Yield possible contents of an answer without calls, the best one first."""
    results = [f"{name} returned {_plainly(text)}." for name, text in done if _plainly(text)]
    if results:
        yield " ".join(results)
    elif tools and not done:
        yield f"No tool fits the question; name one to see it called, such as {tools[0].name}."
    elif _plainly(question):
        yield f"You wrote {_plainly(question)}."
    yield ""


def _plainly(text: str) -> str:
    """Return the text without characters that may be part of markers."""
    kept = " ".join(re.sub(r"[^\w\s.,'°%/-]", " ", text).split())
    return kept[:MAX_SHOWN].strip(" .,")


def _wanted(turn: Turn, question: str, called: list[str]) -> list[Tool]:
    """Return the tools to call now, in the order in which the question names them."""
    request = turn.request
    tools = (request.tools or ()) if request._calls_allowed else ()
    if request.tool_choice == "named":
        return [tool for tool in tools if tool.name == request.named_tool]
    places = {tool.name: _place(tool.name, question) for tool in tools}
    named = sorted((tool for tool in tools if places[tool.name] >= 0), key=lambda tool: places[tool.name])
    wanted = [tool for tool in named or _fitting(tools, question) if tool.name not in called]
    if not wanted and request.tool_choice == "required":
        wanted = (named or _fitting(tools, question) or list(tools))[:1]
    return wanted[:1] if request._one_call else wanted


def _place(name: str, question: str) -> int:
    """Return the position of a tool's name in a question. The question may also contain the name as separate words. Returns -1 if the name
    isn't found.
    """
    words = r"\W*".join(map(re.escape, words_of(name)))
    found = re.search(rf"(?<!\w)(?:{re.escape(name)}{'|' + words if words else ''})(?!\w)", question, re.IGNORECASE)
    return found.start() if found else -1


def _fitting(tools: Sequence[Tool], question: str) -> list[Tool]:
    """Return a list with the tool that shares the most words with the question. The list is empty if no tool shares any word with it."""
    asked = _roots(question)
    shared = {tool.name: len(asked & _roots(_described(tool))) for tool in tools}
    best = max(tools, key=lambda tool: shared[tool.name], default=None)
    return [best] if best and shared[best.name] else []


def _described(tool: Tool) -> str:
    """Return the words that describe a tool: its name, its description, and its parameters' names and allowed values."""
    properties = tool.parameters.get("properties") if isinstance(tool.parameters, Mapping) else None
    known = properties if isinstance(properties, Mapping) else {}
    values = [value for one in known.values() if isinstance(one, Mapping) for value in one.get("enum") or ()]
    return " ".join((*words_of(tool.name), tool.description, *map(" ".join, map(words_of, known)), *map(str, values)))


def _roots(text: str) -> set[str]:
    """Return the stems of the significant words in a text. For example, `rain` and `raining` have the same stem."""
    return {word[:5] for word in re.findall(r"\w{4,}", text.lower()) if word not in _COMMON}


def _written(turn: Turn, plan: _Plan) -> str | None:
    """Return an answer that the turn's parser parses into the planned message, or None if no such answer is sampled."""
    narrowed = replace(turn, request=_narrowed(turn, plan))
    begun, kept = turn.parse(""), None
    for drawn in islice(narrowed._samples(), MAX_LISTED):
        text, parser = _reworded(narrowed, drawn, plan), turn.parser(strict=True)
        try:
            parser.finish(text=text)
        except ParseError:
            continue
        if _means(parser.message, plan, begun):
            if bool(parser.message.reasoning.strip()) == (turn.thinking is True):
                return text
            kept = kept or text
    return kept


def _narrowed(turn: Turn, plan: _Plan) -> Request:
    """Return a request that allows only the planned message."""
    request = turn.request
    if not plan.calls:
        schema = None if plan.value is None else {"const": plan.value}
        return replace(request, tool_choice="none", named_tool="", response_schema=schema)
    tools = []
    for name, arguments in plan.calls:
        properties = {key: {"const": value} for key, value in arguments.items()}
        exact = {"type": "object", "properties": properties, "required": list(arguments), "additionalProperties": False}
        tools.append(Tool(name=name, parameters=exact))
    several = len(tools) > 1
    choice: ToolChoice = "required" if several else "named"
    named = "" if several else tools[0].name
    return replace(request, tools=tuple(tools), tool_choice=choice, named_tool=named, parallel_tool_calls=several)


def _reworded(turn: Turn, text: str, plan: _Plan) -> str:
    """Return a sampled text with its random words replaced. The first span of each role is replaced with the message's own text."""
    parser = turn.parser()
    parser.finish(text=text)
    words = {Role.REASONING: plan.thought, Role.CONTENT: plan.content}
    pieces = []
    for span in parser.spans:
        piece = text[span.start : span.end]
        if span.role is Role.ARGUMENT and piece[:1] == "{" and _json(piece) is not None:
            piece = json.dumps(_json(piece), ensure_ascii=False)  # Normalize the whitespace in the JSON.
        pieces.append(words.get(span.role, piece))
        if span.role in words:
            words[span.role] = ""
    return "".join(pieces)


def _means(message: Message, plan: _Plan, begun: Message) -> bool:
    """Return whether a message matches the plan. Text from the prefill is ignored in this comparison."""
    content = message.content.removeprefix(begun.content).strip()
    said = content == plan.content if plan.value is None else _json(content) == plan.value
    calls = tuple((call.name, _json(call.arguments_json)) for call in message.tool_calls)
    thought = message.reasoning.removeprefix(begun.reasoning).strip()
    return said and calls == plan.calls and thought in ("", plan.thought)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
