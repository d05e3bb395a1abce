"""Messages in OpenAI's form or a template's own form, rendered by Jinja alone, without unrender."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
import jinja2.sandbox

Message = dict[str, Any]


def compiled(source: str, now: datetime) -> jinja2.Template:
    """Return a template in a sandbox as transformers documents it, with its options and functions."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals.update(raise_exception=_raise, strftime_now=now.strftime)
    # The training tags, which transformers reads with its own extension, write nothing.
    return environment.from_string(re.sub(r"\b(end)?generation(?= *-?%})", "set generation = 0", source))


class Renderer:
    """A template that renders without errors or returns None."""

    def __init__(self, source: str, *, bos: str = "<s>", eos: str = "</s>") -> None:
        self.source, self.eos = source, eos
        self._template = compiled(source, datetime.now())  # noqa: DTZ005
        self._tokens = {"bos_token": bos, "eos_token": eos}

    def render(self, messages: Sequence[Message], tools: Any, *, ask: bool, **variables: Any) -> str | None:
        """Return the rendering; None if the template raises an error."""
        given = json.loads(json.dumps({"messages": messages, "tools": tools}))
        try:
            return self._template.render(
                **self._tokens, documents=None, add_generation_prompt=ask, **(variables | given)
            )
        except Exception:  # noqa: BLE001 -- templates are programs, and fail as programs do
            return None


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


@dataclass(frozen=True)
class Shape:
    """A form of messages."""

    arguments: Callable[[Any], Any] = dict
    empty: str | None = ""
    thought: str = "reasoning_content"
    marks: tuple[str, str, str] = ("", "", "")
    """Markers around reasoning in the content and between them, for a template without a field for reasoning."""
    parts: bool = False
    bare_tools: bool = False
    result_parts: bool = False
    result_role: str = "tool"

    def tools(self, tools: Sequence[Message] | None) -> Any:
        return [tool["function"] for tool in tools] if self.bare_tools and tools else tools

    def messages(self, messages: Sequence[Message]) -> list[Message]:
        return [self._message(message) for message in messages]

    def _message(self, message: Message) -> Message:
        found = dict(message)
        if thought := found.pop("reasoning_content", ""):
            self._think(found, thought)
        if calls := found.get("tool_calls"):
            found["content"] = found["content"] or self.empty
            found["tool_calls"] = [call | {"function": self._function(call["function"])} for call in calls]
        if found["role"] == "tool":
            found["role"] = self.result_role
            if not isinstance(found["content"], str):
                found["content"] = json.dumps(found["content"], ensure_ascii=False)
        parts = self.result_parts if message["role"] == "tool" else self.parts
        if parts and isinstance(found["content"], str):
            found["content"] = [{"type": "text", "text": found["content"]}]
        return found

    def _function(self, function: Message) -> Message:
        return function | {"arguments": self.arguments(json.loads(function["arguments"]))}

    def _think(self, found: Message, thought: str) -> None:
        if self.thought == "content":
            start, end, joint = self.marks
            found["content"] = f"{start}{thought}{end}{joint if found['content'] else ''}{found['content']}"
        else:
            found[self.thought] = thought


AXES: dict[str, tuple[Any, ...]] = {
    "thought": ("reasoning_content", "reasoning", "thinking", "thought"),
    "arguments": (dict, lambda value: json.dumps(value, ensure_ascii=False)),
    "empty": ("", None),
    "result_role": ("tool", "ipython", "function"),
    "parts": (False, True),
    "result_parts": (False, True),
    "bare_tools": (False, True),
}
