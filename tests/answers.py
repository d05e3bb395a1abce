"""Answers that a template writes itself: their meaning, their text after all kinds of turns, and how they are read.

Rules: an answer is the text that the conversation adds to the prompt. The derived format doesn't determine where it
starts. A message that the rendering doesn't fully show is skipped. If the history doesn't continue the prompt, no model
writes that text, so `written` returns None, and `cut_outs` reads on from the common prefix.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from engines import Accepts, gbnf, gbnf_reader, installed, lark, lark_reader, structural_tag, tag_reader
from splitting import fed
from tables import table
from vendor import ROOT, all_vendor_templates, vendor_templates

from unrender import ChatTemplate, Message, Turn
from unrender.analysis import Evidence, Shown, shape_context, shape_messages
from unrender.answer.encode import encode_answer
from unrender.format import Format

QUESTION = [{"role": "user", "content": "What about zebra crossings?"}]


T: Any = table("answers")
PLAIN, AWKWARD, NOTHING, OPTIONAL = (T[name] for name in ("PLAIN", "AWKWARD", "NOTHING", "OPTIONAL"))
TOOL_SETS: Mapping[str, list[dict[str, Any]]] = {
    "none": [],
    "one": [PLAIN],
    "optional": [OPTIONAL],
    "three": [PLAIN, AWKWARD, NOTHING],
}
PARAMETERS = {tool["function"]["name"]: tool["function"]["parameters"] for tool in (PLAIN, AWKWARD, NOTHING)}


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

    @classmethod
    def read(cls, message: Message) -> Said:
        """Return the content of a message."""
        calls = tuple((call.name, json.loads(call.arguments_json)) for call in message.tool_calls)
        return cls(message.content, message.reasoning, calls)

    def is_read(self, message: Message) -> bool:
        """Return whether a message equals this answer."""
        return all(call.status == "complete" for call in message.tool_calls) and Said.read(message) == self


MESSAGES = {name: Said.of(**said) for name, said in T["MESSAGES"].items()}
"""Answers that call the tools of the sets."""


def template_paths() -> dict[str, Path]:
    """Return the paths of our own test templates and of the vendors' templates, by name."""
    ours = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
    return {**ours, **vendor_templates()}


def all_template_paths() -> dict[str, Path]:
    """Return the paths of all templates, including those that no package contains."""
    return {**template_paths(), **all_vendor_templates()}


@cache
def template_named(name: str) -> ChatTemplate:
    """Return a template, analysed once."""
    return ChatTemplate.from_file(all_template_paths()[name], bos_token="<s>", eos_token="</s>")


def rendered(
    chat: ChatTemplate, messages: Sequence[Any], tools: Sequence[Any], thinking: bool | None, *, ask: bool
) -> str | None:
    """Return a conversation as the template writes it, with or without a generation prompt; None if it rejects it."""
    context = shape_context(tools, chat.capabilities, thinking=thinking)
    rendering = chat._with_tools.render(
        shape_messages(messages, chat.capabilities), add_generation_prompt=ask, **context
    )
    return rendering.text if rendering.error is None else None


def renderings(
    chat: ChatTemplate, before: Sequence[Any], said: Said, tools: Sequence[Any], thinking: bool | None
) -> tuple[str, str] | None:
    """Return the prompt and the conversation with the answer, both rendered; None if the template rejects either."""
    asked = rendered(chat, before, tools, thinking, ask=True)
    full = rendered(chat, [*before, said.to_openai()], tools, thinking, ask=False)
    return None if asked is None or full is None else (asked, full)


def added(
    chat: ChatTemplate, before: Sequence[Any], said: Said, tools: Sequence[Any], thinking: bool | None
) -> tuple[str, str] | None:
    """Return the prompt and the text that an answer adds; None if it isn't complete or doesn't continue the prompt."""
    asked, full = renderings(chat, before, said, tools, thinking) or ("", "")
    text = full.removeprefix(asked)
    return (asked, text) if asked and full.startswith(asked) and said.shown_in(text) else None


def written(
    chat: ChatTemplate, turn: Turn, said: Said, *, before: Sequence[Any] = QUESTION, thinking: bool | None = None
) -> str | None:
    """Return the text that the template writes after the turn's prompt for an answer, without the end of turn.

    None if it rejects the answer, doesn't show all of it, or doesn't continue the prompt.
    """
    tools = [tool.to_openai() for tool in turn.request.tools or ()]
    prompt, text = added(chat, before, said, tools, thinking) or ("", "")
    return without_end(turn, text) if prompt and prompt == turn.prompt else None


def said_in(format: Format, *, content: str = "", reasoning: str = "", calls: Iterable[Sequence[Any]] = ()) -> str:
    """Return an answer in the syntax of a format. A call is a name, arguments and an id."""
    return encode_answer(format, content=content, reasoning=reasoning, calls=[tuple(call) for call in calls])


def without_end(turn: Turn, text: str) -> str:
    """Remove the end of turn, and the next generation prompt if the template always writes one."""
    header = max((turn.prompt.rfind(header.strip()) for header in turn.format.turn.headers), default=-1)
    text = text.removesuffix(turn.prompt[header:]) if header >= 0 else text
    ends = [turn.format.turn.end, *turn.format.turn.ends]
    closing = [end.strip() for end in (*ends, *turn.format.turn.headers) if end.strip()]
    bare = text
    while found := next((mark for mark in closing if bare.rstrip().endswith(mark)), ""):
        bare = bare.rstrip().removesuffix(found)
    layouts = [end[: len(end) - len(end.lstrip())] for end in ends]
    return text if bare == text else bare.removesuffix(max(layouts, key=len))


TOOLS: list[dict[str, Any]] = T["TOOLS"]
ANSWERS = {name: Said.of(**said) for name, said in T["ANSWERS"].items()}
"""Answers of all shapes, with calls of these tools."""
BEFORE: dict[str, list[dict[str, Any]]] = T["BEFORE"]
"""Conversations that end in all kinds of turns."""


def settings(chat: ChatTemplate) -> tuple[bool | None, ...]:
    """Return the thinking settings of a template."""
    return (None, True, False) if chat.capabilities.supports_enable_thinking else (None,)


def cut(prompt: str, full: str, last: str) -> tuple[str, str] | None:
    """Return the prompt and the answer after it, as they appear in the whole conversation.

    None if the answer would start before the end of the prompt's last input.
    """
    left, right = (Shown(what="", text=text) for text in (prompt, full))
    start = Evidence(part="", comparison="", finding="", left=left, right=right).split.prefix
    start = prompt if full.startswith(prompt) else start
    return (start, full[len(start) :]) if len(start) > prompt.rfind(last) + len(last) else None


def cut_outs(chat: ChatTemplate) -> Iterator[tuple[str, str, str, Said]]:
    """Yield a template's answers after all turns: a label, the prompt, the answer, its meaning.

    If several thinking settings give the same prompt and answer, it's yielded once. A template without a generation
    prompt has none.
    """
    shown = set[tuple[str, tuple[str, str]]]()
    for (turn, before), thinking in product(BEFORE.items(), settings(chat)):
        bare, prompt = (rendered(chat, before, TOOLS, thinking, ask=ask) for ask in (False, True))
        for shape, said in ANSWERS.items() if prompt != bare else ():
            full = rendered(chat, [*before, said.to_openai()], TOOLS, thinking, ask=False)
            if prompt is None or full is None or (said.reasoning and thinking is False):
                continue
            found = cut(prompt, full, str(before[-1]["content"]))
            if found is not None and said.shown_in(found[1]) and (shape, found) not in shown:
                shown.add((shape, found))
                yield f"{shape}, {turn}, thinking {thinking}", *found, said


DIALECTS: dict[str, tuple[str, Callable[[Turn], Any], Callable[[Any], Accepts]]] = {
    "lark": ("llguidance", lark, lark_reader),
    "gbnf": ("xgrammar", gbnf, gbnf_reader),
    "structural tag": ("xgrammar", structural_tag, tag_reader),
}
"""For each dialect, its engine, its writer and its reader."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """An answer as the template writes it, after the prompt that requests it."""

    label: str
    turn: Turn
    text: str


def choices(said: Said) -> Iterator[Any]:
    """Yield each `tool_choice` that allows the answer."""
    yield "auto"
    if not said.calls:
        yield "none"
        return
    if not said.content:
        yield "required"
        if len(said.calls) == 1:
            yield {"type": "function", "function": {"name": said.calls[0][0]}}


def own_words(
    chat: ChatTemplate, *, turns: Mapping[str, Any] = BEFORE, shapes: Mapping[str, Said] = ANSWERS
) -> Iterator[Written]:
    """Yield all answers that a template writes itself and shows in full."""
    for (place, before), (shape, said), thinking in product(turns.items(), shapes.items(), settings(chat)):
        switch: dict[str, Any] = {} if thinking is None else {"enable_thinking": thinking}
        for tools in (TOOLS,) if said.calls else (TOOLS, []):
            prompt, text = added(chat, before, said, tools, thinking) or ("", "")
            for choice in choices(said) if tools else ("auto",):
                turn = chat.prepare(before, tools=tools, tool_choice=choice, **switch) if text else None
                if turn is not None and turn.prompt == prompt:
                    label = f"{shape}, {place}, thinking {thinking}, {len(tools)} tools, {choice}"
                    yield Written(label=label, turn=turn, text=without_end(turn, text))


def refused(answers: Iterable[Written]) -> list[tuple[str, str, str]]:
    """Return the answers that each dialect rejects, if its engine is installed."""
    readers: dict[str, dict[str, Accepts]] = {dialect: {} for dialect in DIALECTS}
    found = []
    for answer in answers:
        for dialect, (engine, write, read) in DIALECTS.items():
            if not installed(engine):
                continue
            known, grammar = readers[dialect], write(answer.turn)
            if str(grammar) not in known:
                known[str(grammar)] = read(grammar)
            if not known[str(grammar)](answer.text):
                found.append((answer.label, dialect, answer.text))
    return found


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
