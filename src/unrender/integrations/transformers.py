"""transformers: a tokenizer's template into turns, and what `generate` gives into messages, whole or as it streams.

>>> from unrender import ChatTemplate
>>> turn = ChatTemplate.from_string("{{ messages[-1].content }}|").prepare([{"role": "user", "content": "Hello"}])
>>> class Tokenizer:  # any tokenizer of the library will do
...     pad_token_id = 0
...     def decode(self, ids, **options):
...         return "".join(map(chr, ids))
>>> read_ids(turn, Tokenizer(), [72, 105, 0, 0]).content
'Hi'
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from unrender.chat_template import ChatTemplate
from unrender.errors import TemplateError
from unrender.messages import Message
from unrender.parsing.events import Event
from unrender.parsing.parser import Parser
from unrender.template.loading import LoadedTemplates
from unrender.turn import Turn

_AS_WRITTEN = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
"""How output has to be decoded: markers are special tokens, and every space counts."""


class Decodes(Protocol):
    """What is used of a tokenizer to read output."""

    pad_token_id: int | None

    def decode(self, ids: Sequence[int], **options: Any) -> str: ...


class Tokenizer(Decodes, Protocol):
    """What is used of a tokenizer to find its template; its tokens may be None."""

    name_or_path: str
    chat_template: str | Mapping[str, str] | None
    bos_token: Any
    eos_token: Any


def chat_template(tokenizer: Tokenizer) -> ChatTemplate:
    """Return the tokenizer's chat template with its tokens. Raises `TemplateError` when it has none."""
    sources = tokenizer.chat_template
    if not sources:
        raise TemplateError(f"{tokenizer.name_or_path or 'the tokenizer'}: expected a chat_template, found none")
    return ChatTemplate(
        LoadedTemplates(
            sources={"default": sources} if isinstance(sources, str) else dict(sources),
            bos_token=str(tokenizer.bos_token or ""),
            eos_token=str(tokenizer.eos_token or ""),
            origin=tokenizer.name_or_path,
        )
    )


def read_ids(turn: Turn, tokenizer: Decodes, ids: Sequence[int], *, finish_reason: str | None = None) -> Message:
    """Return the message that generated ids mean.

    `ids` is one sequence of what `generate` returned, without the prompt: `output[0][inputs["input_ids"].shape[1]:]`.
    Padding after it is not read. With `finish_reason="length"` an unclosed call
    counts as truncated. Raises nothing on account of the text.
    """
    parser = turn.parser()
    parser.feed(tokenizer.decode(_unpadded(ids, tokenizer.pad_token_id), **_AS_WRITTEN))
    parser.finish(finish_reason)
    return parser.message


def _unpadded(ids: Sequence[int], pad: int | None) -> list[int]:
    kept = [int(token) for token in ids]
    while kept and kept[-1] == pad:
        kept.pop()
    return kept


def streamer(turn: Turn, tokenizer: Decodes, on_events: Callable[[list[Event]], None]) -> Any:
    """Return a streamer for `generate(streamer=…)` that calls `on_events` with the events as they become final.

    It is transformers' own `TextStreamer`, so text comes word by word; its `parser` has the message so far. For one
    sequence at a time, without beams. Needs transformers to be installed.
    """
    base = importlib.import_module("transformers").TextStreamer

    class EventStreamer(base):  # type: ignore[misc, valid-type]
        """Feeds a parser with the text of each token."""

        def __init__(self) -> None:
            super().__init__(tokenizer, skip_prompt=True, **_AS_WRITTEN)
            self.parser: Parser = turn.parser()

        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            """Take text that will not change any more."""
            events = self.parser.feed(text) if text else []
            if stream_end:
                events += self.parser.finish()
            if events:
                on_events(events)

    return EventStreamer()
