"""Answers for the grammar tests: tools with simple and difficult schemas, and renderings of messages by a template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tables import table
from vendor import ROOT, all_vendor_templates, vendor_templates

from unrender import ChatTemplate, Turn
from unrender.analysis import shape_context, shape_messages
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


MESSAGES: Mapping[str, dict[str, Any]] = T["MESSAGES"]


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


def written(template: ChatTemplate, turn: Turn, message: Mapping[str, Any], **settings: Any) -> str | None:
    """Return the text that the template writes after the turn's prompt for a message, without the end of turn.

    None if it rejects the message, doesn't show all of it, or doesn't continue the prompt.
    """
    tools = [tool.to_openai() for tool in turn.request.tools or ()]
    conversation = [*QUESTION, {"role": "assistant", **message}]
    context = shape_context(tools, template.capabilities, thinking=settings.get("enable_thinking"))
    rendering = template._with_tools.render(
        shape_messages(conversation, template.capabilities), add_generation_prompt=False, **context
    )
    if rendering.error or not rendering.text.startswith(turn.prompt):
        return None
    text = without_end(turn, rendering.text[len(turn.prompt) :])
    names = [call["function"]["name"] for call in message.get("tool_calls", [])]
    parts = [message["content"], message.get("reasoning_content", ""), *names]
    return text if all(part in text for part in parts) else None


def renderings(
    chat: ChatTemplate, before: Sequence[Any], answer: Mapping[str, Any], tools: Sequence[Any], thinking: bool | None
) -> tuple[str, str] | None:
    """Return the prompt and the conversation with the answer, both rendered; None if the template rejects either."""
    context = shape_context(tools, chat.capabilities, thinking=thinking)
    asked, full = (
        chat._with_tools.render(shape_messages(messages, chat.capabilities), add_generation_prompt=ask, **context)
        for messages, ask in ((before, True), ([*before, answer], False))
    )
    return (asked.text, full.text) if asked.error is None and full.error is None else None


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
