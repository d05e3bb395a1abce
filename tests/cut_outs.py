"""Answers of many shapes, cut out of a template's renderings after many kinds of turns, and read back.

Rules: the answer is the text that the conversation adds to the prompt, or to their common prefix. The derived format
doesn't determine where it starts. A message that the rendering doesn't fully show is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from splitting import fed
from tables import table

from unrender import ChatTemplate, Message
from unrender.analysis import Evidence, Shown, shape_context, shape_messages

T: Any = table("cut_outs")
TOOLS: list[dict[str, Any]] = T["TOOLS"]
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Said:
    """The content of an answer."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()

    @classmethod
    def of(cls, *, calls: Iterable[Call] = (), **texts: str) -> Said:
        """Return an answer from JSON data."""
        return cls(calls=tuple((name, arguments) for name, arguments in calls), **texts)

    def to_openai(self) -> dict[str, Any]:
        """Return the answer as an OpenAI message."""
        calls = [
            {
                "id": f"proof{i:04d}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for i, (name, arguments) in enumerate(self.calls)
        ]
        message = {
            "role": "assistant",
            "content": self.content,
            "reasoning_content": self.reasoning,
            "tool_calls": calls,
        }
        return {key: value for key, value in message.items() if value or key in ("role", "content")}

    def shown_in(self, text: str, asked: str = "") -> bool:
        """Return whether a rendering shows the whole answer. `asked`, the prompt, may contain tool names, too."""
        names = [name for name, _ in self.calls]
        return (
            self.content in text
            and self.reasoning in text
            and all(text.count(name) - asked.count(name) >= names.count(name) for name in names)
        )

    def is_read(self, message: Message) -> bool:
        """Return whether a message equals this answer."""
        calls = [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls]
        whole = all(call.status == "complete" for call in message.tool_calls)
        return (message.content, message.reasoning, calls, whole) == (
            self.content,
            self.reasoning,
            [(name, arguments) for name, arguments in self.calls],
            True,
        )


ANSWERS = {name: Said.of(**said) for name, said in T["ANSWERS"].items()}
USER = {"role": "user", "content": "What about zebra crossings?"}
BEFORE: dict[str, list[dict[str, Any]]] = T["BEFORE"]


def render(chat: ChatTemplate, messages: list[dict[str, Any]], thinking: bool | None, *, ask: bool) -> str | None:
    context = shape_context(TOOLS, chat.capabilities, thinking=thinking)
    shaped = shape_messages(messages, chat.capabilities)
    rendering = chat._with_tools.render(shaped, add_generation_prompt=ask, **context)
    return rendering.text if rendering.error is None else None


def asked(chat: ChatTemplate, before: list[dict[str, Any]], thinking: bool | None) -> tuple[str, int] | None:
    """Return the prompt and the end of its last input; None if the template writes no generation prompt."""
    prompt, bare = (render(chat, before, thinking, ask=ask) for ask in (True, False))
    last = str(before[-1]["content"])
    return None if prompt is None or prompt == bare else (prompt, prompt.rfind(last) + len(last))


def cut(full: str | None, prompt: str, end: int) -> tuple[str, str] | None:
    """Return the prompt and the answer after it, as they appear in the whole conversation."""
    if full is None:
        return None
    left, right = (Shown(what="", text=text) for text in (prompt, full))
    start = Evidence(part="", comparison="", finding="", left=left, right=right).split.prefix
    start = prompt if full.startswith(prompt) else start
    return (start, full[len(start) :]) if len(start) > end else None


def cut_outs(chat: ChatTemplate) -> Iterator[tuple[str, str, str, Said]]:
    """Yield a template's answers after all turns: a label, the prompt, the answer, its meaning.

    If several thinking settings give the same prompt and answer, it's yielded once.
    """
    settings = (None, True, False) if chat.capabilities.supports_enable_thinking else (None,)
    shown = set[tuple[str, tuple[str, str]]]()
    for (turn, before), thinking in product(BEFORE.items(), settings):
        if (prompt := asked(chat, before, thinking)) is None:
            continue
        for shape, said in ANSWERS.items():
            if said.reasoning and thinking is False:
                continue
            found = cut(render(chat, [*before, said.to_openai()], thinking, ask=False), *prompt)
            if found is not None and said.shown_in(found[1]) and (shape, found) not in shown:
                shown.add((shape, found))
                yield f"{shape}, {turn}, thinking {thinking}", *found, said


def read(chat: ChatTemplate, prompt: str, chunks: list[str]) -> Message:
    parser = chat.prepare_rendered(prompt, tools=TOOLS).parser()
    fed(parser, chunks)
    return parser.message


def lost(chat: ChatTemplate) -> dict[str, str]:
    """Return by label the answers that aren't parsed into their meaning, whole or character by character."""
    return {
        label: answer
        for label, prompt, answer, said in cut_outs(chat)
        for chunks in ([answer], list(answer))
        if not said.is_read(read(chat, prompt, chunks))
    }
