"""TRL: a tokenizer of any chat template that trainers can read answers with, and masks as columns of a dataset.

`rollout_func` makes rollouts of many turns, whose prompts only grow. TRL reads tool calls by `tokenizer.parse_response`, for templates that it knows, by comparing them with files of its own.
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

from unrender import ChatTemplate, Message, RequestError
from unrender.errors import ExportError, ExtendError
from unrender.integrations.rendered import lenient_turn
from unrender.integrations.transformers import AS_WRITTEN, chat_template
from unrender.token_ids import PromptEncoder
from unrender.training import Rollout, TrainingRow, assistant_mask

_Tokenizer = TypeVar("_Tokenizer")
_MARK = {"read_by": "unrender"}
"""The `response_template` of a tokenizer whose format cannot be exported."""
Sampled = tuple[Sequence[Sequence[int]], Sequence[Sequence[float]] | None]
"""The ids of answers, and their log probabilities if there are any."""


def install(tokenizer: _Tokenizer, template: ChatTemplate | None = None) -> _Tokenizer:
    """Give a tokenizer a `parse_response` that reads any template's answers, for GRPO and other trainers; return it.

    It takes the same arguments as transformers' own (text or ids, one or a batch, `prefix` with the prompt, `tools`)
    and returns messages whose calls have their arguments as objects. No text raises an error: what cannot be read as a
    call is content; tools that cannot be read raise `ValueError`, which trainers catch. Without `tools`, any name counts as a
    tool. `response_template` is also set, since trainers look for it: to the format's export, or to a mark if the format has none,
    which `save_pretrained` leaves out. Of a processor, its tokenizer is given the same. `template` is by default the tokenizer's own.
    Raises `TemplateError` when there is none.
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
    """Return a function for `dataset.map` that turns a row's `messages` (and `tools`) into tokens and their mask.

    Its columns, `input_ids` and `assistant_masks`, are those that TRL's SFT takes ready-made, for any template. The
    tokenizer must be a fast one. A call of the function raises `TemplateError` or `RequestError` when the mask is not
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


def rollout_func(
    tools: Sequence[Callable[..., Any]] = (),
    *,
    respond: Callable[[Message], Sequence[Mapping[str, Any]]] | None = None,
    generate: Callable[[Sequence[list[int]], Any], Sampled] | None = None,
    template: ChatTemplate | None = None,
    turns: int = 8,
    **settings: Any,
) -> Callable[[Sequence[Any], Any], dict[str, Any]]:
    """Return a `rollout_func` for `GRPOTrainer`: conversations of many turns, each of them one row of the ids that were sampled.

    `tools` are functions that are offered and called; give them here, and none to the trainer. `respond` returns what is said after
    an answer, nothing to end; by default the results of the tools. `generate` samples answers to prompts of ids; by default the
    trainer does. `template` is by default the tokenizer's own, and `settings` are those of `ChatTemplate.prepare`. A conversation ends
    after `turns` answers, at the trainer's `max_completion_length`, and where its prompt cannot be extended.
    """
    said = respond or (lambda message: _results(message, tools))
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
    """Return a longer conversation; None where nothing is said, it cannot be extended, or no token is left for an answer."""
    longer = rollout.fork()
    try:
        if messages:
            longer.extend(messages)
    except ExtendError:
        return None
    return longer if messages and len(longer.ids) < longest else None


def _columns(rows: Sequence[TrainingRow], longest: int) -> dict[str, Any]:
    """Return what TRL wants of all rows, without what is longer than its `max_completion_length`."""
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
    """`save_pretrained` of one tokenizer or processor, without the mark: in a checkpoint no library could read it."""

    def __init__(self, saved: Any) -> None:
        self._saved = saved

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Save as the class of the tokenizer does."""
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
        try:
            turns = [lenient_turn(self._template, prompt, tools) for prompt in before]
        except RequestError as error:
            raise ValueError(str(error)) from error
        read = [_as_trained(turn.parse(text)) for turn, text in zip(turns, rows, strict=batch)]
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


def _by_trainer(prompts: Sequence[list[int]], trainer: Any) -> Sampled:
    ids, logprobs = trainer._generate_single_turn(prompts, None, {}, 1)
    return ids, logprobs


def _results(message: Message, tools: Sequence[Callable[..., Any]]) -> list[dict[str, Any]]:
    """Call the functions; return their results, or what they raised, as messages."""
    named = {function.__name__: function for function in tools}
    return [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "name": call.name,
            "content": _called(named[call.name], call.arguments_json),
        }
        for call in message.tool_calls
    ]


def _called(function: Callable[..., Any], arguments: str) -> str:
    try:
        result = function(**json.loads(arguments))
    except Exception as error:  # noqa: BLE001 - the model has to see what its call did
        result = {"error": f"{type(error).__name__}: {error}"}
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
