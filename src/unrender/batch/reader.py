"""Reads columns of recorded answers into columns of their meaning, for any engine that hands out batches.

Strategy: what a worker is sent is plain data, the derived format among it, so that no worker analyses a template; parsers
are built where they are used, when they are first used.

>>> reader = Reader(ChatTemplate.from_string("{{ messages[-1].content }}"))
>>> reader({"text": ["Hello"]})["content"]
['Hello']
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from unrender import CallStatus, ChatTemplate, Message, MessageError, Policy, UnrenderError
from unrender.batch.columns import Batch, Kind, opened
from unrender.batch.rows import Reading, Row, RowReader, unreadable
from unrender.format import Format

Nested = Literal["json", "structs"]
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for each row.
_QUESTION = [{"role": "user", "content": "Hello"}]
"""What an answer is taken to answer where its row does not show it."""


class Reader:
    """Reads batches of recorded answers: `datasets.map(reader, batched=True)`, Ray Data's `map_batches(reader)`, and others.

    `source` is a template, a format, or what `ChatTemplate.from_pretrained` takes. `tools` are those of every row that has
    none of its own; None when they are not known: then any name is a tool's. `begun` is what the generation prompt has
    written of each answer where a row does not show it; by default what the template's own writes.

    These name the columns that are read, where the batch has them:

    - `text`: the answer as the model wrote it, with its special tokens. In a row without it, it is the last of `messages`.
    - `prompt`: the rendered prompt, or its tail, which shows whether reasoning is open; a list in it counts as `messages`.
    - `messages`: the conversation, as a list or as JSON. It is rendered for each row, which costs more than reading.
    - `tools_column`: the row's tools, as a list or as JSON; `finish_reason`: the engine's own.

    A batch comes back with these columns added, their names after `prefix`: `content` and `reasoning`; `tool_calls`, the
    complete calls in OpenAI's form; `status`, see `Status`; and `warnings`, sentences. Calls and warnings are lists as JSON
    text, so that every batch has the same types; with `nested="structs"` they are lists, calls as structs of `id`, `name`
    and `arguments` (JSON text). Ids of calls are made from the text of the answer, so they are the same in every run.

    Raises `MessageError` for malformed `tools`, `TemplateError` where no template is found. No row makes it
    raise: one that cannot be read has the status "unreadable", and its warning says why. `template_kwargs` are the
    template's own variables, for rows with messages.
    """

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
        nested: Nested = "json",
        prefix: str = "",
        begun: str | None = None,
        policy: Policy | None = None,
        **template_kwargs: Any,
    ) -> None:
        if nested not in _NESTED:
            raise MessageError(f"nested: expected one of {sorted(_NESTED)}, found {nested!r}")
        self._template, self._format = _loaded(source)
        self._tools = None if tools is None else _plain_tools(tools)
        self._columns = {
            "text": text,
            "prompt": prompt,
            "messages": messages,
            "tools": tools_column,
            "finish_reason": finish_reason,
        }
        self._nested = nested
        self._prefix = prefix
        self._begun = begun
        self._policy = policy
        self._variables = template_kwargs
        self._rows: RowReader | None = None

    @property
    def format(self) -> Format:
        """How answers are read: as given, or derived from the template."""
        if self._format is None:
            assert self._template is not None
            self._format = self._template.format.ended_by(self._template.loaded.eos_token)
        return self._format

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read, where a batch has them."""
        return tuple(self._columns.values())

    def described(self) -> list[Any]:
        """Return everything that decides what rows mean, as plain data."""
        said = [self._tools, self._columns, self.begun, self._policy, self._variables]
        return [self.format.to_json(indent=None), *said]

    @property
    def begun(self) -> str:
        """The beginning that the generation prompt has written of an answer, used for rows that do not show it."""
        if self._begun is None:
            self._begun = self._usual_beginning()
        return self._begun

    def _usual_beginning(self) -> str:
        if self._template is None:
            return self.format.turn.prefill
        return self._template.prepare(_QUESTION, tools=self._tools or None, **self._variables).begun

    def __call__(self, batch: Any) -> Any:
        """Return the batch with the columns added, in the form in which it came.

        It is a mapping of columns (lists or numpy's arrays), a list of mappings, a `Table` or `RecordBatch` of pyarrow, or
        a `DataFrame` of pandas or polars. Raises `MessageError` for anything else.
        """
        given = opened(batch)
        readings = [self.read(record) for record in self._records(given)]
        calls, write_calls, warnings, write_warnings = _NESTED[self._nested]
        columns = {
            "content": (Kind.TEXT, [reading.message.content for reading in readings]),
            "reasoning": (Kind.TEXT, [reading.message.reasoning for reading in readings]),
            "tool_calls": (calls, [write_calls(reading.message) for reading in readings]),
            "status": (Kind.TEXT, [reading.status.value for reading in readings]),
            "warnings": (warnings, [write_warnings(reading.warnings) for reading in readings]),
        }
        return given.extended({self._prefix + name: column for name, column in columns.items()})

    def read(self, record: Mapping[str, Any]) -> Reading:
        """Return what one row means: its values by column name. Raises nothing."""
        try:
            return self._reader().read(_row({role: record.get(name) for role, name in self._columns.items()}))
        except UnrenderError as error:
            return unreadable(str(error))
        except Exception as error:  # noqa: BLE001 - one row must not end the work on millions of others
            return unreadable(f"{type(error).__name__}: {error}; this is a defect of unrender, please report it")

    def _records(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Yield the values of each row, of the columns that are read."""
        columns = {name: batch.column(name) for name in self._columns.values()}
        found = {name: values for name, values in columns.items() if values is not None}
        if not found:
            yield from ({} for _ in range(batch.rows))
        for values in zip(*found.values(), strict=True):
            yield dict(zip(found, values, strict=True))

    def _reader(self) -> RowReader:
        if self._rows is None:
            self._rows = RowReader(
                self.format,
                template=self._template,
                tools=self._tools,
                begun=self.begun,
                policy=self._policy,
                variables=self._variables,
            )
        return self._rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_format": self.format, "_begun": self.begun, "_rows": None}


def _plain_tools(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return tools of any form in OpenAI's, which every worker can be sent."""
    turn = ChatTemplate.from_string("", format=Format()).turn(tools=tools)
    return [tool.to_openai() for tool in turn.request.tools or ()]


def _loaded(source: Any) -> tuple[ChatTemplate | None, Format | None]:
    if isinstance(source, Format):
        return None, source
    template = source if isinstance(source, ChatTemplate) else ChatTemplate.from_pretrained(source)
    if template.grammar is not None:
        raise MessageError("a reader reads by a format; this template has a grammar made by hand")
    return template, None


def _row(values: dict[str, Any]) -> Row:
    """Return a row whose values are what they must be. Raises `MessageError`, naming the column's role, else."""
    messages, prompt, text = _conversation(values["messages"]), values["prompt"], values["text"]
    if isinstance(prompt, list | tuple):
        messages, prompt = _conversation(prompt), None
    if _missing(text) and messages:
        # Datasets keep the answer as the last message, e.g. `[{"role": "user", …}, {"role": "assistant", "content": "<think>…"}]`.
        *messages, last = messages
        text = last.get("content") if isinstance(last, Mapping) and last.get("role") == "assistant" else None
    if not isinstance(text, str):
        raise MessageError(
            f"text: expected the answer's text, found {'nothing' if _missing(text) else repr(text)[:80]}"
        )
    if not _missing(prompt) and not isinstance(prompt, str):
        raise MessageError(f"prompt: expected text, found {type(prompt).__name__}")
    tools, reason = values["tools"], values["finish_reason"]
    return Row(
        text=text,
        prompt=None if _missing(prompt) else prompt,
        messages=messages or None,
        tools=None if _missing(tools) else tools,
        finish_reason=reason if isinstance(reason, str) else None,
    )


def _missing(value: Any) -> bool:
    """Return whether a table has nothing here: None, or the number that pandas writes for it."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - what only NaN does


def _conversation(value: Any) -> list[Any]:
    """Return messages that came as a list, an array or JSON text, without the empty fields that tables fill in."""
    if _missing(value):
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise MessageError(f"messages: expected a list or JSON, found text that is not JSON: {error}") from None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise MessageError(f"messages: expected a list, found {type(value).__name__}")
    return [_filled(message) for message in value]


def _filled(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return message
    return {name: value for name, value in message.items() if value is not None or name == "content"}


def _json_calls(message: Message) -> str:
    if not message.tool_calls:
        return "[]"
    return _encode(message.to_openai().get("tool_calls", []))


def struct_calls(message: Message) -> list[dict[str, str]]:
    """Return the complete calls as structs of texts."""
    return [
        {"id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
        if call.status is CallStatus.COMPLETE
    ]


def _json_warnings(warnings: Sequence[str]) -> str:
    return _encode(warnings) if warnings else "[]"


_NESTED: Mapping[str, tuple[Kind, Callable[[Message], Any], Kind, Callable[[Sequence[str]], Any]]] = {
    "json": (Kind.TEXT, _json_calls, Kind.TEXT, _json_warnings),
    "structs": (Kind.CALLS, struct_calls, Kind.TEXTS, list),
}
