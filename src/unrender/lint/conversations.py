"""Defines ordinary conversations in OpenAI's format, their renderings, and the symptom of a mistake.

Rules: a word like ZEBRA occurs only once in a conversation, so it identifies the position of its message in the rendering.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from unrender.analysis import Capabilities, shape_context, shape_messages
from unrender.chat_template import ChatTemplate
from unrender.conversation.variables import DATE
from unrender.format import Format
from unrender.rendering import FunctionTemplate, Rendering, Template
from unrender.verify.renditions import proof_tool

OpenAIMessage = Mapping[str, Any]
Messages = Sequence[OpenAIMessage]

_BOS = "⟨BOS⟩"
_AROUND = 60
"""Number of characters shown before and after an excerpt of a rendering."""
QUESTION, AGAIN = "Tell me about ZEBRAS.", "And about YAKS?"
ANSWER, THOUGHT, INSTRUCTIONS, RESULT = "They are STRIPED.", "The user likes ANIMALS.", "Be BRIEF.", "GRASSLAND"
CITY = "NAIROBI"

USER: OpenAIMessage = {"role": "user", "content": QUESTION}
NEXT_USER: OpenAIMessage = {"role": "user", "content": AGAIN}
SYSTEM: OpenAIMessage = {"role": "system", "content": INSTRUCTIONS}
ASSISTANT: OpenAIMessage = {"role": "assistant", "content": ANSWER}

FIRST, SECOND = "find_animal", "draw_animal"
_CITY = {"city": {"type": "string", "description": "A city."}}
TOOLS = tuple(proof_tool(name, _CITY, required=["city"]) for name in (FIRST, SECOND))


def calling(*names: str, objects: bool = False, **fields: Any) -> OpenAIMessage:
    """Return an assistant message with calls of `names`.

    Arguments are JSON text, as in OpenAI's API. With `objects=True`, arguments are objects, as in the Transformers documentation.
    """
    given = {"city": CITY}
    functions = [{"name": name, "arguments": given if objects else json.dumps(given)} for name in names]
    calls = [{"id": f"call{i:05}", "type": "function", "function": function} for i, function in enumerate(functions)]
    return {"role": "assistant", "content": "", "tool_calls": calls, **fields}


def tool_result(index: int = 0) -> OpenAIMessage:
    """Return the result of the call at `index`."""
    name = (FIRST, SECOND)[index]
    return {"role": "tool", "tool_call_id": f"call{index:05}", "name": name, "content": RESULT}


@dataclass(frozen=True)
class Subject:
    """The template under test, with its analysis."""

    chat: ChatTemplate
    template: Template
    format: Format
    capabilities: Capabilities

    def raw(self, messages: Messages, tools: Sequence[Any] = (), **context: Any) -> Rendering:
        """Render a prompt from unchanged messages, as servers do."""
        return self._render(messages, tools, add_generation_prompt=True, **context)

    def unaided(self, messages: Messages, tools: Sequence[Any] = ()) -> Rendering:
        """Render a prompt as `raw` does, but of all required variables, set only the date."""
        required = tuple(pair for pair in self.capabilities.required_context if DATE.fullmatch(pair[0]))
        variables = shape_context(tools, replace(self.capabilities, required_context=required))
        return self.template.render(messages, **{"add_generation_prompt": True, **variables})

    def prompt(self, messages: Messages, tools: Sequence[Any] = (), **context: Any) -> Rendering:
        """Render a prompt from messages in the form that the template needs."""
        return self._render(self._shaped(messages), tools, add_generation_prompt=True, **context)

    def history(self, messages: Messages, tools: Sequence[Any] = (), **context: Any) -> Rendering:
        """Render messages in the form that the template needs, without a generation prompt."""
        return self._render(self._shaped(messages), tools, add_generation_prompt=False, **context)

    def bos_in(self, messages: Messages) -> tuple[str, str]:
        """Return a prompt and its beginning-of-sequence token, which is `bos_token` unless the template sets that variable itself."""
        given = {"bos_token": _BOS}
        text = self.prompt(messages, **given).text
        if isinstance(self.template, FunctionTemplate) or "bos_token" not in self.template.facts.sets:
            return text, _BOS
        # Render `bos_token` to get its final value, which the template may change, e.g. with `{% set bos_token = '<s>' %}`.
        telling = Template(f"{self.template.source}{_BOS}{{{{ bos_token }}}}", eos_token=self.template.eos_token)
        written = replace(self, template=telling).prompt(messages, **given).text
        return text, written.rpartition(_BOS)[2]

    @cached_property
    def writes_messages(self) -> bool:
        """True if a question is in the prompt."""
        return QUESTION in self.prompt([USER]).text

    @cached_property
    def takes_tools(self) -> bool:
        """True if the names of the tools are in the prompt."""
        return FIRST in self.prompt([USER], TOOLS).text

    @cached_property
    def writes_calls(self) -> bool:
        """True if calls are in the history."""
        return FIRST in self.history([USER, calling(FIRST)]).text

    @cached_property
    def writes_reasoning(self) -> bool:
        """True if the reasoning of the last answer is in the history."""
        # Only the last answer is tested, because many templates drop all other reasoning on purpose.
        return THOUGHT in self.history([USER, {**ASSISTANT, "reasoning_content": THOUGHT}], **self.thinking).text

    @cached_property
    def writes_reasoning_with_calls(self) -> bool:
        """True if the reasoning before calls is in the history when the calls are the last message."""
        return THOUGHT in self.history([USER, calling(FIRST, reasoning_content=THOUGHT)], TOOLS, **self.thinking).text

    @property
    def thinking(self) -> dict[str, Any]:
        """Variables that turn thinking on."""
        return dict(self.capabilities.thinking_on)

    def _shaped(self, messages: Messages) -> list[dict[str, Any]]:
        return shape_messages(messages, self.capabilities)

    def _render(self, messages: Messages, tools: Sequence[Any], **context: Any) -> Rendering:
        variables = shape_context(tools, self.capabilities) | context
        return self.template.render(messages, **variables)


@dataclass(frozen=True, slots=True)
class Symptom:
    """The evidence of a mistake in a template."""

    text: str
    messages: Messages
    excerpt: str = ""
    """The relevant part of the rendering."""
    line: int | None = None
    """The template line at which rendering failed, or None if it didn't fail."""


def last_use(text: str, word: str) -> str:
    """Return the last occurrence of `word` in a rendering, with the text around it."""
    at = text.rfind(word)
    return around(text, max(at, 0), at + len(word))


def around(text: str, start: int, end: int) -> str:
    """Return `text[start:end]` with the text around it."""
    left, right = max(start - _AROUND, 0), min(end + _AROUND, len(text))
    return ("…" if left else "") + text[left:right] + ("…" if right < len(text) else "")
