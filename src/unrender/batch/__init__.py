"""Parses recorded answers in bulk into columns, for dataframe libraries and data engines.

A `Reader` takes a mapping of columns, and returns the same columns together with those of the parsed messages.

Strategy: a pickled reader is plain data and includes the derived format, so workers don't analyse templates. Parsers depend only on tools
and prefill, and most answers share these with other answers. Each worker creates one parser for each combination of tools and prefill, and
copies the parser for every answer.

Rules: invalid rows never raise an exception. A row that can't be read gets a status and a reason. Files and processes are left to the data
engine.

>>> reader = Reader(ChatTemplate.from_string("{{ messages[-1].content }}"))
>>> reader({"text": ["Hello"]})["content"]
['Hello']
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, partial
from hashlib import blake2b
from os import PathLike
from typing import Any

from unrender import ChatTemplate, Malformed, Message, Parser, Policy, RequestError, Turn, UnrenderError
from unrender.chat_template import as_template
from unrender.conversation.salvage import detect_format, rescue
from unrender.format import Format
from unrender.limits import MAX_CONTEXT, MAX_SHOWN_ITEMS
from unrender.parser.prompt_tail import read_prefill
from unrender.prompt import Detokenizer
from unrender.signatures import checked, did_you_mean
from unrender.token_ids import ChunkParser, TokenParser, special_texts_of
from unrender.types import Request

__all__ = ["Reader", "Status", "detect_format", "rescue"]


_QUOTED = 80
"""Maximum number of characters of the model's text that a warning quotes."""


class Status(StrEnum):
    """Outcome of parsing an answer."""

    COMPLETE = "complete"
    """The whole answer was parsed, possibly with tolerated deviations."""
    TRUNCATED = "truncated"
    """The answer ends inside a call, or the engine's finish reason is `length`."""
    MALFORMED = "malformed"
    """Part of the answer doesn't match the format; the rest was parsed."""
    UNREADABLE = "unreadable"
    """The row has no answer, or its tools or messages are invalid; nothing was parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRow:
    """A recorded answer, with the known parts of its request."""

    text: str | None
    """The answer; None if only its token ids are known."""
    prompt: str | None = None
    """The rendered prompt, or its end; None if it isn't known."""
    messages: Sequence[Any] | None = None
    """The conversation before the answer; None if it isn't known."""
    tools: Any = None
    """Tools in any form that `prepare` accepts, or as JSON text; None for the reader's default tools."""
    finish_reason: str | None = None
    token_ids: Sequence[int] | None = None
    """The answer's token ids; None if they aren't known."""


def row_of(values: dict[str, Any]) -> RecordedRow:
    """Validate a row and return it. Raises `RequestError` if the row is invalid. The error names the invalid field."""
    messages, prompt, text = _conversation(values["messages"]), values["prompt"], values["text"]
    if isinstance(prompt, list | tuple):
        messages, prompt = _conversation(prompt), None
    if _missing(text) and messages:
        # If there is no text column, the last message is the answer, e.g. `[{"role": "user", …}, {"role": "assistant", "content":
        # "<think>…"}]`.
        *messages, last = messages
        text = last.get("content") if isinstance(last, Mapping) and last.get("role") == "assistant" else None
    ids = _token_ids(values["token_ids"])
    if not isinstance(text, str) and not (_missing(text) and ids is not None):
        found = "nothing" if _missing(text) else repr(text)[:80]
        raise RequestError(f"text: expected the answer's text, found {found}")
    if not _missing(prompt) and not isinstance(prompt, str):
        raise RequestError(f"prompt: expected text, found {type(prompt).__name__}")
    tools, reason = values["tools"], values["finish_reason"]
    return RecordedRow(
        text=None if _missing(text) else text,
        prompt=None if _missing(prompt) else prompt,
        messages=messages or None,
        tools=None if _missing(tools) else tools,
        finish_reason=reason if isinstance(reason, str) else None,
        token_ids=ids,
    )


def _token_ids(value: Any) -> Sequence[int] | None:
    if _missing(value):
        return None
    ids = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(ids, list | tuple) or not all(type(id) is int for id in ids):
        raise RequestError(f"token_ids: expected a list of integers, found {value!r:.80}")
    return ids


def _missing(value: Any) -> bool:
    """Return whether a table cell is empty: None or pandas' NaN."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - what only NaN does


def _conversation(value: Any) -> list[Any]:
    """Return the messages in a list, an array or JSON text, without the empty fields that tables add."""
    if _missing(value):
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"messages: expected a list or JSON, found text that is not JSON: {error}") from None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise RequestError(f"messages: expected a list, found {type(value).__name__}")
    return [
        {name: item for name, item in message.items() if item is not None or name == "content"}
        if isinstance(message, Mapping)
        else message
        for message in value
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReading:
    """The message parsed from one row, with its status."""

    message: Message = field(default_factory=Message)
    status: Status = Status.COMPLETE
    warnings: tuple[str, ...] = ()
    """Reasons for the status. Each warning gives a position with the expected and the actual text, or names a failed call."""


def unreadable(reason: str) -> RowReading:
    """Return the result for a row that can't be read."""
    return RowReading(status=Status.UNREADABLE, warnings=(reason,))


def reading_of(message: Message, broken: Sequence[Malformed], finish_reason: str | None) -> RowReading:
    """Return the result for a parsed row. `broken` lists the parts of the answer that don't match the format."""
    failed = message.failed_calls
    if not broken and not failed:
        status = Status.TRUNCATED if finish_reason == "length" else Status.COMPLETE
        return RowReading(message=message, status=status)
    cut_off = finish_reason == "length" or any(call.status == "truncated" for call in failed)
    told = [_told(event) for event in broken[:MAX_SHOWN_ITEMS]]
    told += [f"the call of {call.name[:_QUOTED]!r} is {call.status}" for call in failed[:MAX_SHOWN_ITEMS] if call.name]
    return RowReading(
        message=message,
        status=Status.TRUNCATED if cut_off else Status.MALFORMED,
        warnings=tuple(told[:MAX_SHOWN_ITEMS]),
    )


def _told(event: Malformed) -> str:
    met = f", found {event.text[:_QUOTED]!r}" if event.text else ""
    return f"character {event.position}: expected {event.expected}{met}"


# Share one encoder, since `json.dumps` would create an encoder for each row.
_encode = json.JSONEncoder(ensure_ascii=False).encode
_PARSERS = 1_000
"""Maximum number of cached parsers. There is one for each combination of tools and prefill."""
_QUESTION = [{"role": "user", "content": "Hello"}]
"""Default conversation for rows without one."""


class Reader:
    """Parses batches of recorded answers: `datasets.map(reader, batched=True)`, Ray Data's `map_batches(reader)`, and others.

    `source` is a template, a format, or an argument of `ChatTemplate.from_pretrained`. `tools` are the default tools, for rows without
    their own. If `tools` is None, any name counts as a tool. `prefill` is the start of the answer that is already part of the prompt, e.g.
    `<think>`. This prefill is used for rows without a prompt. The default is the prefill of the template's generation prompt. `tokenizer` is
    from transformers or tokenizers.

    These arguments name the columns to read, if the batch has them:

    - `text`: the answer as the model wrote it, with its special tokens. Without this column, the last of `messages` is the answer.
    - `prompt`: the rendered prompt, or its end, which shows whether reasoning is open. A prompt that is a list is treated as `messages`.
    - `messages`: the conversation, as a list or as JSON. The conversation is rendered for each row, which takes longer than parsing.
    - `tools_column`: the row's tools, as a list or as JSON.
    - `finish_reason`: the engine's finish reason.
    - `token_ids`: the answer's token ids, as a list. With a `tokenizer`, the ids show which markers of the answer are special tokens, so a
      marker in ordinary text is a quotation. A row with ids needs no text.

    The returned batch has these additional columns, with names prefixed by `prefix`:

    - `content` and `reasoning`: the message's content and reasoning, as text.
    - `tool_calls`: the complete calls in OpenAI's format.
    - `status`: a `Status`.
    - `warnings`: the reasons for the status.

    Calls and warnings are JSON text, so that every batch has the same column types. Call ids are computed from the text of the answer, so
    they don't change between runs.

    Raises `RequestError` for malformed `tools`, and `TemplateError` if no template is found. Rows never raise: a row that can't be read has
    the status "unreadable", and a warning gives the reason. `template_kwargs` are template variables for rendering rows that have messages.
    """

    @checked
    def __init__(
        self,
        source: ChatTemplate | Format | str | PathLike[str],
        *,
        tools: Sequence[Any] | None = None,
        text: str = "text",
        prompt: str = "prompt",
        messages: str = "messages",
        tools_column: str = "tools",
        finish_reason: str = "finish_reason",
        token_ids: str = "token_ids",  # noqa: S107 - the name of a column
        tokenizer: Any = None,
        prefix: str = "",
        prefill: str | None = None,
        policy: Policy | None = None,
        **template_kwargs: Any,
    ) -> None:
        self._template, self._format = _loaded(source)
        # Workers get the tools in OpenAI's form.
        self._tools = None if tools is None else [tool.to_openai() for tool in _request(tools).tools or ()]
        self._columns = {"text": text, "prompt": prompt, "messages": messages}
        self._columns |= {"tools": tools_column, "finish_reason": finish_reason, "token_ids": token_ids}
        self._tokenizer = tokenizer
        self._prefix = prefix
        self._begun = prefill
        self._policy = policy
        self._variables = template_kwargs
        if template_kwargs:
            if self._template is None:
                said = f"{next(iter(template_kwargs))}: a format has no variables; pass a template to the reader"
                raise RequestError(said)
            self._question(self._template)  # Report misspelled names at once.
        self._parsers: dict[Any, Parser] = {}

    @property
    def format(self) -> Format:
        """Format of the answers: the one passed to the reader, or the one derived from the template."""
        if self._format is None:
            assert self._template is not None
            self._format = self._template.format._ended_by(self._template._loaded.eos_token)
        return self._format

    @property
    def prefill(self) -> str:
        """Prefill for rows without a prompt."""
        if self._begun is None and self._template is not None:
            self._begun = self._question(self._template).prefill
        elif self._begun is None:
            self._begun = self.format.turn.prefill
        return self._begun

    def _question(self, template: ChatTemplate) -> Turn:
        """Return the turn for a single question."""
        return template.prepare(_QUESTION, tools=self._tools or None, **self._variables)

    @checked
    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of the batch and the additional columns, which replace columns of the same name.

        Columns are lists or numpy arrays of the same length. The additional columns are lists of strings without lone surrogates, which Arrow
        couldn't store. Raises `RequestError` if the batch isn't a mapping, or has no column with answers.
        """
        ids = {self._columns["token_ids"]} if self._tokenizer else set()
        if not {self._columns["text"], self._columns["messages"], *ids} & batch.keys():
            expected = f"expected a column {self._columns['text']!r} or {self._columns['messages']!r}"
            near = did_you_mean(self._columns["text"], batch)
            raise RequestError(f"batch: {expected}, found {list(batch)!r:.80}{near or '; name it with text=…'}")
        readings = [self.read(record) for record in self._records(batch)]
        messages = [reading.message for reading in readings]
        columns = {
            "content": [message.content for message in messages],
            "reasoning": [message.reasoning for message in messages],
            "tool_calls": [
                _encode(message.to_openai()["tool_calls"]) if message.tool_calls else "[]" for message in messages
            ],
            "status": [reading.status.value for reading in readings],
            "warnings": [_encode(reading.warnings) for reading in readings],
        }
        return {**batch, **{self._prefix + name: list(map(_whole, column)) for name, column in columns.items()}}

    @checked
    def read(self, record: Mapping[str, Any]) -> RowReading:
        """Parse one row, a mapping from column names to values. Never raises."""
        try:
            return self._read(row_of({role: record.get(name) for role, name in self._columns.items()}))
        except UnrenderError as error:
            return unreadable(str(error))
        except Exception as error:  # noqa: BLE001 - one row must not end the work on millions of others
            return unreadable(f"{type(error).__name__}: {error}; this is a defect of unrender, please report it")

    def _records(self, batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the values of each row by column name. Only the columns that the reader uses are included."""
        columns = {name: batch[name] for name in self._columns.values() if name in batch}
        # Rows of numpy arrays would contain numpy's types.
        found = {name: values.tolist() if hasattr(values, "tolist") else values for name, values in columns.items()}
        for row in range(max(map(len, batch.values()), default=0)):
            yield {name: values[row] for name, values in found.items()}

    def _read(self, row: RecordedRow) -> RowReading:
        """Parse a row. Raises `RequestError` or `TemplateError` if the row's request is malformed."""
        if self._tokenizer is None and row.text is None:
            raise RequestError("token_ids: a row without text needs a tokenizer; pass one to the reader")
        ids = row.token_ids if self._tokenizer else None
        text = Detokenizer(self._tokenizer).text(ids or ()) if row.text is None else row.text
        parser = self._parser(row, text)
        if ids is None:
            events = parser.finish(row.finish_reason, text=text)
        elif row.text is None:
            tokens = TokenParser(parser, self._tokenizer)
            events = [*tokens.feed(ids), *tokens.finish(row.finish_reason)]
        else:
            chunks = ChunkParser(parser, special_texts_of(self._tokenizer), self._tokenizer)
            events = [*chunks.feed(text, ids), *chunks.finish(row.finish_reason)]
        broken = [event for event in events if type(event) is Malformed]
        return reading_of(parser.message, broken, row.finish_reason)

    def _parser(self, row: RecordedRow, text: str) -> Parser:
        # Don't generate ids if the model writes its own.
        ids = None if self.format.tools.id_parts is not None else partial(_id, text)
        if row.messages is not None:
            return self._rendered(row, row.messages).parser(policy=self._policy, ids=ids)
        # Only the end of a long prompt is needed, because it shows whether reasoning is open: `…<bot><think>\n`. Most rows have the same
        # prefill.
        prefill = self.prefill if row.prompt is None else read_prefill(self.format, row.prompt[-MAX_CONTEXT:])
        key = (_tools_key(row.tools), prefill, row.prompt is None)
        # Reuse parsers: copying one is much cheaper than creating one, and thousands of rows share their tools.
        parser = self._parsers.get(key)
        if parser is None:
            request = _request(self._tools_of(row))
            turn = Turn(prompt=row.prompt or "", request=request, format=self.format, prefill=prefill)
            parser = turn.parser(policy=self._policy)
            if key[0] is not None:  # Parsers aren't cached for tools without a cache key, such as Python functions.
                if len(self._parsers) == _PARSERS:
                    self._parsers.clear()
                self._parsers[key] = parser
        return parser.copy(ids=ids)

    def _rendered(self, row: RecordedRow, messages: Sequence[Any]) -> Turn:
        if self._template is None:
            raise RequestError(
                "messages: a format can't render a prompt; pass a template to the reader, or add prompts to the rows"
            )
        tools = self._tools_of(row)
        turn = self._template.prepare(messages, tools=tools, **self._variables)
        return replace(turn, request=replace(turn.request, tools=_request(tools).tools))

    def _tools_of(self, row: RecordedRow) -> Any:
        if row.tools is None:
            return self._tools
        return _json_tools(row.tools) if isinstance(row.tools, str) else row.tools

    def __getstate__(self) -> dict[str, Any]:
        # Compute the format and the prefill before pickling, so that workers don't have to analyse or render a template.
        return {**self.__dict__, "_format": self.format, "_begun": self.prefill, "_parsers": {}}


def _request(tools: Any) -> Request:
    """Return a request with the given tools. If `tools` is None, any name counts as a tool, unlike in `prepare`."""
    if tools is None:
        return Request(tools=None)
    return _bare().prepare_rendered(tools=tools).request


@cache
def _bare() -> ChatTemplate:
    """Return a template that is used only to convert tools."""
    return ChatTemplate.from_string("", format=Format())


def _loaded(source: Any) -> tuple[ChatTemplate | None, Format | None]:
    if isinstance(source, Format):
        return None, source
    template = as_template(source)
    if template._grammar is not None:
        raise RequestError("expected a template with a format, found one with a handwritten grammar")
    return template, None


def _whole(text: str) -> str:
    """Replace lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _id(text: str, position: int, _name: str) -> str:
    """Return an id computed from an answer's text and a call's position. The id doesn't change between runs."""
    digest = blake2b(text.encode(errors="surrogatepass"), salt=position.to_bytes(16, "big"))
    return digest.hexdigest()[:9]  # Some templates require ids of exactly nine letters and digits.


def _tools_key(tools: Any) -> str | None:
    """Return a cache key that identifies the tools. Returns None if there is no such key, e.g. for Python functions."""
    if tools is None or isinstance(tools, str):
        return tools or ""
    try:
        return json.dumps(tools)
    except (TypeError, ValueError, RecursionError):
        return None


def _json_tools(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"tools: expected JSON: {error}") from None
