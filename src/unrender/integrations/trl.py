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

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar, get_args

from unrender import ChatTemplate, Message, Policy, RequestError, ToolCall
from unrender.errors import ExportError, ExtendError
from unrender.integrations.rendered import AGENT_POLICY, lenient_turn
from unrender.integrations.transformers import chat_template
from unrender.prompt import Detokenizer, PromptEncoder
from unrender.training import Rollout, TrainingRow, assistant_mask

_Tokenizer = TypeVar("_Tokenizer")
_T = TypeVar("_T")
Errors = Literal["results", "user", "end"]
"""Reaction to a failed call: a result with the error, a user message with the error, or the end of the conversation."""
_MARK = {"read_by": "unrender"}
"""Placeholder for `response_template` if the format can't be exported."""
_MESSAGES = 'e.g. `dataset.map(lambda row: {"messages": row["prompt"] + row["completion"]})`'
"""Way to get the column that `masked` needs."""
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
    one. The function raises `RequestError` for a row without `messages`, and `TemplateError` or `RequestError` if the mask is ambiguous.
    """
    template = chat_template(tokenizer)

    def tokenized(row: Mapping[str, Any]) -> dict[str, list[int]]:
        if "messages" not in row:
            raise RequestError(f"messages: expected a column with this name, found {[*row]}; {_MESSAGES}")
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
    respond: Callable[[Message], Any] | None = None,
    generate: Callable[[Sequence[list[int]], Any], Sampled] | None = None,
    template: ChatTemplate | None = None,
    turns: int = 8,
    errors: Errors = "results",
    policy: Policy | None = None,
    **settings: Any,
) -> Callable[[Sequence[Any], Any], dict[str, Any]]:
    """Return a `rollout_func` for `GRPOTrainer`. Each multi-turn conversation becomes one row of sampled ids.

    `tools` are functions that the model can call, which may be async. Pass them to `rollout_func`, not to the trainer. The calls of a batch
    run side by side: async functions in one event loop, other functions in threads. `respond` returns the messages after an answer, or none
    to end the conversation; it may be async too. By default, it returns the results of the tools.

    `errors` decides what follows a failed call or a call of an unknown tool. With "results", the call has a result with the error. With
    "user", a user message contains the error. With "end", the conversation ends. It always ends at a call that was cut off. `policy` is used to parse answers. By default, failed and
    unknown calls are returned as calls, not as content.

    `generate` samples answers to tokenized prompts. By default, the trainer generates the answers. `template` defaults to the tokenizer's
    own. `settings` are arguments of `ChatTemplate.prepare`; `chat_template_kwargs` defaults to the trainer's. A conversation ends after
    `turns` answers, at the trainer's `max_completion_length`, or if no further prompt can be appended.

    The result has three columns for reward functions: `conversation` contains the messages after the prompt, `ended` the reason why the
    conversation ended ("answered", "turns", "length", "error" or "not_extended"), and `answers` the start and end of each answer in the
    completion's ids. Pass `conversation` to a reward instead of TRL's `completions`, in which all turns are parsed as a single answer.
    """
    if errors not in get_args(Errors):
        raise RequestError(f"errors: expected one of {', '.join(get_args(Errors))}, found {errors!r:.60}")
    named = {function.__name__: function for function in tools}
    asked = {"tools": list(tools) or None, "policy": policy or AGENT_POLICY, **settings}
    sample = generate or _by_trainer

    def following(messages: Sequence[Message]) -> list[Sequence[Mapping[str, Any]]]:
        return _run(_all(messages, respond or (lambda message: _results(message, named, errors))))

    def rollouts(prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        used, encoder = template or chat_template(tokenizer), PromptEncoder(tokenizer)
        variables = {"chat_template_kwargs": _template_kwargs(trainer)}
        made = [Rollout(used, encoder, prompt, **{**variables, **asked}) for prompt in prompts]
        longest = [len(rollout.ids) + trainer.max_completion_length for rollout in made]
        ended = ["turns"] * len(made)
        running = list(range(len(made)))
        for turn in range(turns):
            ids, logprobs = sample([made[number].ids for number in running], trainer)
            messages = [
                made[number].sampled(ids[place], None if logprobs is None else logprobs[place])
                for place, number in enumerate(running)
            ]
            if turn + 1 == turns:
                break
            for number, message, new in zip(running, messages, following(messages), strict=True):
                made[number], ended[number] = _extended(made[number], message, new, longest[number])
            running = [number for number in running if not ended[number]]
            if not running:
                break
        conversations = [rollout.messages[len(prompt) :] for rollout, prompt in zip(made, prompts, strict=True)]
        for_rewards = {"conversation": conversations, "ended": [why or "turns" for why in ended]}
        return {**_columns([rollout.row() for rollout in made], trainer.max_completion_length), **for_rewards}

    return rollouts


def _template_kwargs(trainer: Any) -> dict[str, Any] | None:
    """Return the variables of the template in the trainer's configuration."""
    owners = (trainer, getattr(trainer, "args", None))
    return next((found for owner in owners if (found := getattr(owner, "chat_template_kwargs", None))), None)


def _extended(
    rollout: Rollout, message: Message, new: Sequence[Mapping[str, Any]], longest: int
) -> tuple[Rollout, str]:
    """Return an extended copy of the rollout and "", or the rollout and the reason why the conversation ends."""
    if not new:
        return rollout, "length" if _is_cut_off(message) else "error" if _failed(message) else "answered"
    longer = rollout.fork()
    try:
        longer.extend(new)
    except ExtendError:
        return rollout, "not_extended"
    return (longer, "") if len(longer.ids) < longest else (rollout, "length")


def _columns(rows: Sequence[TrainingRow], longest: int) -> dict[str, Any]:
    """Return the columns for TRL, truncated to `max_completion_length`."""
    named = [row.trl() for row in rows]
    columns = {
        name: [row[name] if name == "prompt_ids" or row[name] is None else row[name][:longest] for row in named]
        for name in named[0]
    }
    # A conversation may be cut at the longest completion.
    columns["answers"] = [
        [(min(start - row.prompt_length, longest), min(end - row.prompt_length, longest)) for start, end in row.turns]
        for row in rows
    ]
    return {**columns, "logprobs": None} if None in columns["logprobs"] else columns


async def _all(messages: Sequence[Message], respond: Callable[[Message], Any]) -> list[Sequence[Mapping[str, Any]]]:
    """Return the messages after each answer. `respond` may be async."""

    async def following(message: Message) -> Sequence[Mapping[str, Any]]:
        found = respond(message)
        return (await found if inspect.isawaitable(found) else found) or ()

    return await asyncio.gather(*map(following, messages))


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run async work to its end, in a thread of its own, since a notebook's thread already has a running event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _is_cut_off(message: Message) -> bool:
    return any(call.status == "truncated" for call in (*message.tool_calls, *message.failed_calls))


def _failed(message: Message) -> list[ToolCall]:
    """Return the failed and unknown calls of a message, each once."""
    calls = (call for call in message.tool_calls if call.status != "complete" or not call.offered)
    return list(dict.fromkeys((*calls, *message.failed_calls)))


async def _results(message: Message, named: Mapping[str, Callable[..., Any]], errors: Errors) -> list[dict[str, Any]]:
    """Return the results of the answer's calls, and the errors of failed calls."""
    failed = _failed(message)
    # The token limit may have cut off a call, which says nothing about the model.
    if _is_cut_off(message) or (failed and errors == "end"):
        return []
    good = [call for call in message.tool_calls if call not in failed]
    results = list(await asyncio.gather(*(_result(call, named[call.name]) for call in good)))
    problems = [(call, {"error": _problem(call, named)}) for call in failed]
    if errors == "results":
        return [*results, *(_as_result(call, problem) for call, problem in problems)]
    return [*results, *({"role": "user", "content": _as_text(problem)} for _, problem in problems)]


def _problem(call: ToolCall, named: Mapping[str, Any]) -> str:
    if call.name and not call.offered:
        return f"unknown tool {call.name!r:.100}; expected one of {sorted(named)}"
    return f"the call of {call.name!r:.100} could not be parsed: it is {call.status}"


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


async def _result(call: ToolCall, function: Callable[..., Any]) -> dict[str, Any]:
    """Call a tool, and return its result or exception as a message."""
    try:
        result = await asyncio.to_thread(function, **json.loads(call.arguments_json))
        result = await result if inspect.isawaitable(result) else result
    except Exception as error:  # noqa: BLE001 - the model gets the error as a result
        result = {"error": f"{type(error).__name__}: {error}"}
    return _as_result(call, result)


def _as_result(call: ToolCall, result: Any) -> dict[str, Any]:
    return {**call.result(_as_text(result)), "name": call.name}


def _as_text(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
