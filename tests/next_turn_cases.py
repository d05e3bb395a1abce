"""Test cases of the next turn: answers of all kinds, and the conversations before them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plain_jinja import Message
from tables import table

from unrender import Turn, UnrenderError

THOUGHT, CONTENT, FIRST, SECOND = "Zandrik", "Contrell", "Marvoth", "Quaxlor"
WORDS = (THOUGHT, CONTENT, FIRST, SECOND)
T: Any = table("next_turns")


def tool(name: str, *required: str) -> Message:
    properties = {key: {"type": "string", "description": "d"} for key in required}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


TOOLS: list[Message] = T["TOOLS"]
USER: Message = {"role": "user", "content": "How is the weather in Trondheim?"}
AGAIN: Message = {"role": "user", "content": "And what about Uppsala?"}
USERS: dict[str, list[Message]] = T["USERS"]
CYCLES: list[list[str]] = T["CYCLES"]
"""Kinds of answers of conversations with several turns."""


@dataclass(frozen=True)
class Said:
    """The content of an answer."""

    thought: str = ""
    content: str = ""
    calls: tuple[str, ...] = ()
    """The last word of each call."""

    @classmethod
    def of(cls, *, calls: Sequence[str] = (), **texts: str) -> Said:
        """Return an answer from JSON data."""
        return cls(calls=tuple(calls), **texts)

    @property
    def words(self) -> tuple[str, ...]:
        texts = (self.thought, self.content, *self.calls)
        return tuple(word for text in texts for word in WORDS if word in text)


HOLDS = f"I wonder about {THOUGHT}"
KINDS = {name: Said.of(**said) for name, said in T["KINDS"].items()}
NAMES = ("get_weather", "get_time")


@dataclass(frozen=True)
class Ids:
    """A way of creating call ids."""

    name: str
    make: Callable[[str, int, int], str]
    """Creates an id from the tool's name and the number of the call, in the conversation and in the message."""


STYLES = (
    Ids("nine", lambda name, number, place: f"proof{number:04d}"),
    Ids("running", lambda name, number, place: f"functions.{name}:{number}"),
    Ids("placed", lambda name, number, place: f"functions.{name}:{place}"),
    Ids("counted", lambda name, number, place: f"{number}"),
)


def assistant(said: Said, ids: Sequence[str]) -> Message:
    """Return an answer as a message in OpenAI's form."""
    message: Message = {"role": "assistant", "content": said.content}
    if said.thought:
        message["reasoning_content"] = said.thought
    if said.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(_arguments(name, word))}}
            for id, name, word in zip(ids, NAMES, said.calls, strict=False)
        ]
    return message


def _arguments(name: str, word: str) -> Message:
    return {"city": "Oslo", "town": f"near {word}"} if name == "get_weather" else {"zone": f"of {word}"}


NEWS = "Belvoir"
"""A word in all results with text."""


def result(call: int, ids: Sequence[str], content: Any = None) -> Message:
    """Return the result of an answer's call."""
    words = f"{NEWS} says result {call}." if content is None else content
    return {"role": "tool", "tool_call_id": ids[call], "name": NAMES[call], "content": words}


HISTORIES: dict[str, list[Any]] = {
    name: [Said.of(**item["said"]) if "said" in item else item for item in items]
    for name, items in T["HISTORIES"].items()
}
"""Conversations before the answer: messages, answers, and `result` for the results of the last calls."""


def history(name: str, style: Ids) -> list[Message]:
    """Return a conversation before the answer, with calls numbered from 0."""
    messages: list[Message] = []
    last: list[str] = []
    for item in HISTORIES[name]:
        if isinstance(item, Said):
            last = call_ids(item, style, messages)
            messages.append(assistant(item, last))
        elif isinstance(item, dict):
            messages.append(item)
        else:
            messages += [result(i, last, "It was 3 degrees.") for i in range(len(last))]
    return messages


def call_ids(said: Said, style: Ids, before: Sequence[Message]) -> list[str]:
    """Return ids for the calls of an answer."""
    made = sum(len(message.get("tool_calls", ())) for message in before)
    return [style.make(name, made + i, i) for i, name in enumerate(NAMES[: len(said.calls)])]


# Cases.


@dataclass(frozen=True, kw_only=True)
class Case:
    """An answer, new messages, and the text that must be appended."""

    label: str
    before: Sequence[Message]
    answer: str = ""
    new: Sequence[Message]
    tools: Any = None
    right: tuple[str, ...] = ()
    """The texts that may be appended; none if the case must be refused."""
    reasons: tuple[str, ...] = ()
    """The allowed reasons of a refusal; any if empty."""
    may_refuse: bool = False
    """If true, a refusal is right, too."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `turn.next`."""
    switched: Mapping[str, Any] = field(default_factory=dict)
    """Variables that change in the next turn."""
    prompt: str | None = None
    """The prompt of a turn without messages."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case."""

    word: str
    """right, refused, wrong, pieces (they don't match the messages), or accepted (a case that must be refused)."""
    case: Case
    got: str = ""
    why: str = ""

    def __str__(self) -> str:
        lines = [f"{self.word}: {self.case.label}", f"   answer   {self.case.answer!r}"]
        if self.case.right and self.word != "refused":
            expected = self.case.right[0]
            same = next((i for i, (a, b) in enumerate(zip(expected, self.got, strict=False)) if a != b), None)
            at = max(0, (min(len(expected), len(self.got)) if same is None else same) - 40)
            lines += [f"   expected {'…' if at else ''}{expected[at : at + 160]!r}"]
            lines += [f"   got      {'…' if at else ''}{self.got[at : at + 160]!r}"]
        elif self.got:
            lines.append(f"   got      {self.got[:200]!r}")
        return "\n".join([*lines, *([f"   because  {self.why[:300]}"] if self.why else [])])


def liberties(answer: str) -> Iterator[tuple[str, str]]:
    """Yield variations that models write instead of the template's text."""
    if re.search(r'": "', answer):
        yield "compact JSON", re.sub(r'": "', '":"', answer)
    elif re.search(r'":"', answer):
        yield "loose JSON", re.sub(r'":"', '": "', answer)
    if HOLDS in answer:
        yield "blank lines in a thought", answer.replace(HOLDS, f"\n{HOLDS}\n\nSo\n", 1)


def without(message: Message, *names: str) -> Message:
    return {name: value for name, value in message.items() if name not in names}


def verdict_of(turn: Turn, case: Case, new: Turn) -> Verdict:
    start = turn.prompt + case.answer
    if not new.prompt.startswith(start):
        return Verdict("wrong", case, got=new.prompt[-200:], why="the prompt does not begin with the last one")
    got = new.prompt[len(start) :]
    if not case.right:
        return Verdict("accepted", case, got=got)
    if got not in case.right:
        return Verdict("wrong", case, got=got)
    why = _pieces_differ(case, got, getattr(new, "appended", None))
    return Verdict("pieces" if why else "right", case, got=got, why=why)


def refusal_of(case: Case, error: Exception) -> Verdict:
    """Return the verdict on an error: a valid refusal or a fault."""
    reason = getattr(error, "reason", None)
    why = f"{type(error).__name__} {reason}: {error}"
    if not case.right or case.may_refuse:
        fits = isinstance(error, UnrenderError) and (case.may_refuse or not case.reasons or reason in case.reasons)
        return Verdict("right" if fits else "raised", case, why=why)
    return Verdict("refused" if reason is not None else "raised", case, why=why)


def _pieces_differ(case: Case, got: str, pieces: Any) -> str:
    """Return a description of the appended pieces that don't match the text or the messages; "" if all match."""
    if pieces is None:
        return ""
    if "".join(piece.text for piece in pieces) != got:
        return "the pieces are another text"
    for i, message in enumerate(case.new):
        content = message["content"]
        if not isinstance(content, str) or len(content.strip()) < 4 or content.strip() not in got:
            continue
        body = "".join(piece.text for piece in pieces if piece.message == i and piece.body)
        if body.strip() != content.strip():
            return f"message {i} has the body {body!r:.120}"
    return ""
