"""Reads the input items of Responses into messages in OpenAI's form.

Rule: reasoning, text and calls that follow each other are one message of the assistant, as the template writes it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unrender.gateway.failure import invalid
from unrender.gateway.fields import Fields, wrong
from unrender.gateway.surfaces.tools import custom_arguments
from unrender.limits import MOST_MESSAGES
from unrender.messages.earlier_calls import arguments_text

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


class Items:
    """Reads input items: `messages` are the messages so far, `unheeded` the fields without effect."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.unheeded: list[str] = []
        self.instructions: str | None = None
        self._assistant: dict[str, Any] | None = None
        """The message that more of the assistant's items are added to."""
        self._names: dict[str, str] = {}
        """The ids of calls → the tools' names, which outputs do not say."""

    def read(self, fields: Fields) -> None:
        """Take `instructions` and `input`."""
        self.instructions = fields.text("instructions")
        if self.instructions:
            self.messages.append({"role": "system", "content": self.instructions})
        given = fields.any("input")
        if isinstance(given, str):
            self.messages.append({"role": "user", "content": given})
            return
        if not isinstance(given, list) or len(given) > MOST_MESSAGES:
            raise wrong("input", f"text or a list of at most {MOST_MESSAGES} items", given)
        for i, item in enumerate(given):
            self._item(Fields(item, f"input[{i}]"))

    def _item(self, item: Fields) -> None:
        kind = item.text("type") or "message"
        read = _READERS.get(kind)
        if kind == "item_reference":
            raise invalid(f"{item.where}: items are not stored; send the item itself", param=item.where)
        if read is None:
            self.unheeded.append(f"{item.where} ({kind:.60})")
        else:
            read(self, item)

    def _message(self, item: Fields) -> None:
        role, content = item.word("role", "user", "assistant", "system", "developer"), item.any("content")
        if role is None:
            raise wrong(item.place("role"), "a role", None)
        texts = _texts(content, item.place("content"))
        if role == "assistant":
            self._answer()["content"] += "".join(texts)
            return
        self._assistant = None
        parts = [{"type": "text", "text": text} for text in texts]
        self.messages.append({"role": role, "content": texts[0] if len(texts) == 1 else parts})

    def _answer(self) -> dict[str, Any]:
        """Return the assistant's message that goes on, or a new one."""
        if self._assistant is None:
            self._assistant = {"role": "assistant", "content": ""}
            self.messages.append(self._assistant)
        return self._assistant

    def _reasoning(self, item: Fields) -> None:
        content, summary, opaque = item.any("content"), item.any("summary"), item.text("encrypted_content")
        text = unsealed(opaque) if opaque else None
        if text is None:
            text = "\n".join(_texts(content or summary or [], item.where))
        if opaque and not text:
            self.unheeded.append(item.place("encrypted_content"))
        if text:
            answer = self._answer()
            answer["reasoning_content"] = "\n".join(filter(None, (answer.get("reasoning_content"), text)))

    def _function_call(self, item: Fields) -> None:
        self._call(item, arguments_text(item.any("arguments")))

    def _custom_call(self, item: Fields) -> None:
        self._call(item, custom_arguments(item.text("input") or ""))

    def _call(self, item: Fields, arguments: str) -> None:
        id, name = item.text("call_id") or "", item.text("name")
        if not name:
            raise wrong(item.place("name"), "the tool's name", name)
        self._names[id] = name
        call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        self._answer().setdefault("tool_calls", []).append(call)

    def _output(self, item: Fields) -> None:
        id = item.text("call_id") or ""
        texts = _texts(item.any("output"), item.place("output"))
        name = {"name": self._names[id]} if id in self._names else {}
        self._assistant = None
        self.messages.append({"role": "tool", "content": "\n".join(texts), "tool_call_id": id, **name})


_READERS: Mapping[str, Callable[[Items, Fields], None]] = {
    "message": Items._message,
    "reasoning": Items._reasoning,
    "function_call": Items._function_call,
    "custom_tool_call": Items._custom_call,
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
    return [_text(Fields(part, f"{where}[{i}]")) for i, part in enumerate(content)]


def _text(part: Fields) -> str:
    kind = part.text("type")
    text = part.text("refusal") if kind == "refusal" else part.text("text")
    if text is None or kind not in (*_TEXTS, "refusal"):
        raise wrong(part.place("type"), "text, since prompts are text alone", kind)
    return text
