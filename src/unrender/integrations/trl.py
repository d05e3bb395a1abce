"""TRL: answer parsing for tokenizers with any chat template, and assistant masks as dataset columns.

TRL parses tool calls with `tokenizer.parse_response`, which supports only templates that match TRL's own files. `install` replaces that
method with one that uses the derived format. `rollout_func` creates multi-turn rollouts with append-only prompts.

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

from unrender import ChatTemplate, Message, RequestError, ToolCall
from unrender.errors import ExportError, ExtendError
from unrender.integrations.rendered import lenient_turn
from unrender.integrations.transformers import chat_template
from unrender.token_ids import Detokenizer, PromptEncoder
from unrender.training import Rollout, TrainingRow, assistant_mask

_Tokenizer = TypeVar("_Tokenizer")
_MARK = {"read_by": "unrender"}
"""Placeholder for `response_template` if the format can't be exported."""
Sampled = tuple[Sequence[Sequence[int]], Sequence[Sequence[float]] | None]
"""The token ids of answers, and optionally their log probabilities."""


def install(tokenizer: _Tokenizer, template: ChatTemplate | None = None) -> _Tokenizer:
    """Set a tokenizer's `parse_response` to a parser for its own template's answers, and return the tokenizer.

    `parse_response` takes the same arguments as the method in transformers: text or ids, a single response or a batch, `prefix` with the
    prompt, and `tools`. It returns messages in which the arguments of calls are objects. It never raises on model output, and treats text
    that isn't a valid call as content. Malformed tools raise `ValueError`, which trainers catch. Without `tools`, any name counts as a
    tool.

    GRPO and other trainers check `response_template`. So `install` sets it to the exported format, or to a placeholder that
    `save_pretrained` leaves out. If `tokenizer` is a processor, its tokenizer is also changed. `template` defaults to the tokenizer's own.
    Raises `TemplateError` if there's none.
    """
    given: Any = tokenizer
    inner = getattr(given, "tokenizer", given)
    read = template or chat_template(given if getattr(given, "chat_template", None) else inner)
    exported = _exported(read)
    for found in (given,) if inner is given else (given, inner):
        found.parse_response = _Responses(inner, read)
        found.response_template = exported or _MARK
        if exported is None and hasattr(found, "save_pretrained"):
            found.save_pretrained = _Unmarked(found)
    return tokenizer


def masked(tokenizer: Any, **template_kwargs: Any) -> Callable[[Mapping[str, Any]], dict[str, list[int]]]:
    """Return a function for `dataset.map` that converts a row's `messages` (and `tools`) into tokens and their mask.

    TRL's SFT trainer uses the columns `input_ids` and `assistant_masks` directly. Any template is supported. The tokenizer must be a fast
    one. The function raises `TemplateError` or `RequestError` if the mask is ambiguous.
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


def rollout_func(
    tools: Sequence[Callable[..., Any]] = (),
    *,
    respond: Callable[[Message], Sequence[Mapping[str, Any]]] | None = None,
    generate: Callable[[Sequence[list[int]], Any], Sampled] | None = None,
    template: ChatTemplate | None = None,
    turns: int = 8,
    **settings: Any,
) -> Callable[[Sequence[Any], Any], dict[str, Any]]:
    """Return a `rollout_func` for `GRPOTrainer`. Each multi-turn conversation becomes one row of sampled ids.

    `tools` are functions that the model can call. Pass them to `rollout_func`, not to the trainer. `respond` returns the messages after an
    answer, or none to end the conversation. By default, it returns the results of the tools. `generate` samples answers to tokenized
    prompts. By default, the trainer generates the answers. `template` defaults to the tokenizer's own, and `settings` are arguments of
    `ChatTemplate.prepare`. A conversation ends after `turns` answers, at the trainer's `max_completion_length`, or if no further prompt can
    be appended.
    """
    named = {function.__name__: function for function in tools}
    said = respond or (lambda message: [_result(call, named[call.name]) for call in message.tool_calls])
    sample = generate or _by_trainer

    def rollouts(prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        used, encoder = template or chat_template(tokenizer), PromptEncoder(tokenizer)
        made = [Rollout(used, encoder, prompt, tools=list(tools) or None, **settings) for prompt in prompts]
        longest = [len(rollout.ids) + trainer.max_completion_length for rollout in made]
        running = list(range(len(made)))
        for turn in range(turns):
            ids, logprobs = sample([made[number].ids for number in running], trainer)
            ended = []
            for place, number in enumerate(running):
                message = made[number].sampled(ids[place], None if logprobs is None else logprobs[place])
                following = None if turn + 1 == turns else _extended(made[number], said(message), longest[number])
                made[number] = following or made[number]
                ended += [] if following else [number]
            running = [number for number in running if number not in ended]
            if not running:
                break
        return _columns([rollout.row() for rollout in made], trainer.max_completion_length)

    return rollouts


def _extended(rollout: Rollout, messages: Sequence[Mapping[str, Any]], longest: int) -> Rollout | None:
    """Return an extended copy of the rollout.

    Returns None if there are no messages, if the rollout can't be extended, or if no token is left for an answer.
    """
    longer = rollout.fork()
    try:
        if messages:
            longer.extend(messages)
    except ExtendError:
        return None
    return longer if messages and len(longer.ids) < longest else None


def _columns(rows: Sequence[TrainingRow], longest: int) -> dict[str, Any]:
    """Return the columns for TRL, truncated to `max_completion_length`."""
    named = [row.trl() for row in rows]
    columns = {
        name: [row[name] if name == "prompt_ids" or row[name] is None else row[name][:longest] for row in named]
        for name in named[0]
    }
    return {**columns, "logprobs": None} if None in columns["logprobs"] else columns


def _exported(template: ChatTemplate) -> dict[str, Any] | None:
    try:
        return dict(template.response_template().template)
    except ExportError:
        return None


class _Unmarked:
    """A `save_pretrained` that leaves out the placeholder `response_template`, which no library could read."""

    def __init__(self, saved: Any) -> None:
        self._saved = saved

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the original `save_pretrained`."""
        inner = getattr(self._saved, "tokenizer", self._saved)
        marked = [found for found in (self._saved, inner) if getattr(found, "response_template", None) == _MARK]
        for found in marked:
            found.response_template = None
        try:
            return type(self._saved).save_pretrained(self._saved, *args, **options)
        finally:
            for found in marked:
                found.response_template = dict(_MARK)


class _Responses:
    """Implementation of a tokenizer's `parse_response`."""

    def __init__(self, tokenizer: Any, template: ChatTemplate) -> None:
        self._decoded = Detokenizer(tokenizer)
        self._template = template

    def __call__(
        self, response: Any, schema: object = None, *, prefix: Any = None, tools: Sequence[Any] | None = None
    ) -> Any:
        """Return the message of a response, or a list of messages for a batch. `schema` is ignored."""
        del schema
        texts, prefixes = self._texts(response), self._texts("" if prefix is None else prefix)
        batch = not isinstance(texts, str)
        rows = texts if isinstance(texts, list) else [texts]
        # A single prompt applies to all responses of a batch. For example, `["a", "b"]` may be two answers to one question.
        before = prefixes if isinstance(prefixes, list) else [prefixes] * len(rows)
        try:
            turns = [lenient_turn(self._template, prompt, tools) for prompt in before]
        except RequestError as error:
            raise ValueError(str(error)) from error
        read = [_as_trained(turn.parse(text)) for turn, text in zip(turns, rows, strict=batch)]
        return read if batch else read[0]

    def _texts(self, given: Any) -> Any:
        """Return the text of a response, or a list of strings for a batch. `given` is text, ids or arrays of ids, or a list of these."""
        given = given.tolist() if hasattr(given, "tolist") else given
        if isinstance(given, str):
            return given
        if given and not isinstance(given[0], int):
            return [self._texts(one) for one in given]
        return self._decoded.text(list(given))


def _as_trained(message: Message) -> dict[str, Any]:
    """Return the message as a dict in which arguments are objects."""
    plain: dict[str, Any] = {**message.to_openai()}
    for call in plain.get("tool_calls", ()):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return plain


def _by_trainer(prompts: Sequence[list[int]], trainer: Any) -> Sampled:
    ids, logprobs = trainer._generate_single_turn(prompts, None, {}, 1)
    return ids, logprobs


def _result(call: ToolCall, function: Callable[..., Any]) -> dict[str, Any]:
    """Call a tool, and return its result or exception as a message."""
    try:
        result = function(**json.loads(call.arguments_json))
    except Exception as error:  # noqa: BLE001 - the model gets the error as a result
        result = {"error": f"{type(error).__name__}: {error}"}
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    return {**call.result(text), "name": call.name}
