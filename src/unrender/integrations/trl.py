"""TRL: a tokenizer of any chat template that trainers can read answers with, and masks as columns of a dataset.

TRL reads tool calls by `tokenizer.parse_response`, for templates that it knows, by comparing them with files of its own.
`install` gives a tokenizer one that reads by the format derived from its template.

>>> class Tokenizer:  # any tokenizer of transformers will do
...     chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
...     name_or_path, bos_token, eos_token = "", None, "</>"
...     def decode(self, ids, **options):
...         return "".join(map(chr, ids))
>>> tokenizer = install(Tokenizer())
>>> tokenizer.parse_response([72, 105], prefix="<user>Hello</><assistant>")
{'role': 'assistant', 'content': 'Hi'}
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from unrender import ChatTemplate, ExportError, Message, assistant_mask
from unrender.integrations.rendered import lenient_turn
from unrender.integrations.transformers import AS_WRITTEN, chat_template

_Tokenizer = TypeVar("_Tokenizer")


def install(tokenizer: _Tokenizer, template: ChatTemplate | None = None) -> _Tokenizer:
    """Give a tokenizer a `parse_response` that reads any template's answers, for GRPO and other trainers; return it.

    It takes the same arguments as transformers' own (text or ids, one or a batch, `prefix` with the prompt, `tools`)
    and returns messages whose calls have their arguments as objects. No text raises an error: what cannot be read as a
    call is content. Without `tools`, any name counts as a tool. `response_template` is also set, since trainers look
    for it: to the format's export, or to a mark if the format has none. `template` is by default the tokenizer's own.
    Raises `TemplateError` when there is none.
    """
    found: Any = tokenizer
    read = template or chat_template(found)
    found.parse_response = _Responses(found, read)
    found.response_template = _exported(read)
    return tokenizer


def masked(tokenizer: Any, **template_kwargs: Any) -> Callable[[Mapping[str, Any]], dict[str, list[int]]]:
    """Return a function for `dataset.map` that turns a row's `messages` (and `tools`) into tokens and their mask.

    Its columns, `input_ids` and `assistant_masks`, are those that TRL's SFT takes ready-made, for any template. The
    tokenizer must be a fast one. A call of the function raises `TemplateError` or `MessageError` when the mask is not
    certain.
    """
    template = chat_template(tokenizer)

    def tokenized(row: Mapping[str, Any]) -> dict[str, list[int]]:
        mask = assistant_mask(template, row["messages"], tools=row.get("tools"), **template_kwargs)
        encoded = tokenizer(mask.text, add_special_tokens=False, return_offsets_mapping=True)
        return {
            "input_ids": list(encoded["input_ids"]),
            "assistant_masks": mask.tokens(encoded["offset_mapping"]),
        }

    return tokenized


def _exported(template: ChatTemplate) -> dict[str, Any]:
    try:
        return dict(template.response_template().template)
    except ExportError as error:
        return {"read_by": "unrender", "why": str(error)}


class _Responses:
    """`parse_response` of one tokenizer."""

    def __init__(self, tokenizer: Any, template: ChatTemplate) -> None:
        self._tokenizer = tokenizer
        self._template = template

    def __call__(
        self, response: Any, schema: object = None, *, prefix: Any = None, tools: Sequence[Any] | None = None
    ) -> Any:
        """Return the message that a response means, or the messages of a batch. `schema` is not needed."""
        del schema
        texts, prefixes = self._texts(response), self._texts("" if prefix is None else prefix)
        batch = not isinstance(texts, str)
        rows = texts if isinstance(texts, list) else [texts]
        # One prompt for a batch is the prompt of each: `["a", "b"]` may be two answers to one question.
        before = prefixes if isinstance(prefixes, list) else [prefixes] * len(rows)
        read = [
            _as_trained(lenient_turn(self._template, prompt, tools).parse(text))
            for text, prompt in zip(rows, before, strict=batch)
        ]
        return read if batch else read[0]

    def _texts(self, given: Any) -> str | list[str]:
        """Return a text, or the texts of a batch, of what may be ids, and may be an array."""
        if hasattr(given, "tolist"):
            given = given.tolist()
        if isinstance(given, str):
            return given
        if given and isinstance(given[0], str):
            return list(given)
        if given and not isinstance(given[0], int):
            return [self._decoded(ids) for ids in given]
        return self._decoded(given)

    def _decoded(self, ids: Any) -> str:
        listed = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        return str(self._tokenizer.decode(listed, **AS_WRITTEN))


def _as_trained(message: Message) -> dict[str, Any]:
    """Return the message with arguments as objects, which templates and trainers want."""
    plain: dict[str, Any] = {**message.to_openai()}
    for call in plain.get("tool_calls", ()):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return plain
