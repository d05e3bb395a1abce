"""Reads the input items of Responses into messages in OpenAI's form.

Rule: reasoning, text and calls that follow each other are one message of the assistant, as the template writes it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from unrender.gateway.failure import invalid
from unrender.gateway.schema import Object, wrong
from unrender.gateway.surfaces.tools import custom_arguments

_SEALED = "unrender:"
"""What our own encrypted content begins with. It is only encoded: the client may read what the model thought."""


def sealed(reasoning: str) -> str:
    """Encode reasoning as an opaque text that a client sends back; the inverse of `unsealed`."""
    return _SEALED + base64.b64encode(reasoning.encode(errors="surrogatepass")).decode()


def unsealed(text: str) -> str | None:
    """Decode the reasoning in an opaque text; None when the text is not from `sealed`.

    >>> unsealed(sealed("Rain?")), unsealed("gAAAAAB")
    ('Rain?', None)
    """
    if not text.startswith(_SEALED):
        return None
    try:
        return base64.b64decode(text[len(_SEALED) :], validate=True).decode(errors="replace")
    except binascii.Error:
        return None


class Item(Object):
    """An input item, or a part of one's content, of any type."""

    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: Any = None
    summary: Any = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    input: Any = None
    output: Any = None
    text: Any = None
    refusal: Any = None


class Items:
    """Reads input items: `messages` are the messages so far, `unheeded` the fields without effect."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.unheeded: list[str] = []
        self._assistant: dict[str, Any] | None = None
        """The message that more of the assistant's items are added to."""
        self._names: dict[str, str] = {}
        """The ids of calls → the tools' names, which outputs do not say."""

    def read(self, instructions: str | None, given: str | Sequence[Item]) -> None:
        """Take `instructions` and `input`."""
        if instructions:
            self.messages.append({"role": "system", "content": instructions})
        if isinstance(given, str):
            self.messages.append({"role": "user", "content": given})
            return
        for i, item in enumerate(given):
            kind, where = item.type or "message", f"input[{i}]"
            if kind == "item_reference":
                raise invalid(f"{where}: items are not stored; send the item itself", param=where)
            if kind in _READERS:
                _READERS[kind](self, item, where)
            else:
                self.unheeded.append(f"{where} ({kind:.60})")

    def _message(self, item: Item, where: str) -> None:
        if item.role is None:
            raise wrong(f"{where}.role", "a role", None)
        texts = _texts(item.content, f"{where}.content")
        if item.role == "assistant":
            self._answer()["content"] += "".join(texts)
            return
        self._assistant = None
        parts = [{"type": "text", "text": text} for text in texts]
        self.messages.append({"role": item.role, "content": texts[0] if len(texts) == 1 else parts})

    def _answer(self) -> dict[str, Any]:
        """Return the assistant's message that goes on, or a new one."""
        if self._assistant is None:
            self._assistant = {"role": "assistant", "content": ""}
            self.messages.append(self._assistant)
        return self._assistant

    def _reasoning(self, item: Item, where: str) -> None:
        opaque = item.encrypted_content
        text = unsealed(opaque) if opaque else None
        if text is None:
            text = "\n".join(_texts(item.content or item.summary or [], where))
        if opaque and not text:
            self.unheeded.append(f"{where}.encrypted_content")
        if text:
            answer = self._answer()
            answer["reasoning_content"] = "\n".join(filter(None, (answer.get("reasoning_content"), text)))

    def _call(self, item: Item, where: str) -> None:
        arguments = "{}" if item.arguments is None else item.arguments
        if item.type == "custom_tool_call":
            arguments = custom_arguments("".join(_texts(item.input or "", f"{where}.input")))
        if not item.name:
            raise wrong(f"{where}.name", "the tool's name", item.name)
        id = item.call_id or ""
        self._names[id] = item.name
        call = {"id": id, "type": "function", "function": {"name": item.name, "arguments": arguments}}
        self._answer().setdefault("tool_calls", []).append(call)

    def _output(self, item: Item, where: str) -> None:
        id = item.call_id or ""
        texts = _texts(item.output, f"{where}.output")
        name = {"name": self._names[id]} if id in self._names else {}
        self._assistant = None
        self.messages.append({"role": "tool", "content": "\n".join(texts), "tool_call_id": id, **name})


_READERS: Mapping[str, Callable[[Items, Item, str], None]] = {
    "message": Items._message,
    "reasoning": Items._reasoning,
    "function_call": Items._call,
    "custom_tool_call": Items._call,
    "function_call_output": Items._output,
    "custom_tool_call_output": Items._output,
}
_TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")


def _texts(content: Any, where: str) -> Sequence[str]:
    """Return the texts of a content, which is text or a list of parts."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise wrong(where, "text or a list of parts", content)
    return [_text(Item.read(part, f"{where}[{i}]"), f"{where}[{i}]") for i, part in enumerate(content)]


def _text(part: Item, where: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text if part.type in _TEXTS else None
    if not isinstance(text, str):
        raise wrong(f"{where}.type", "text, since prompts are text alone", part.type)
    return text
