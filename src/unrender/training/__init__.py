"""Training on multi-turn conversations: collects the tokens of one conversation in one row.

A `Rollout` keeps sampled ids unchanged, and encodes only the messages between them. `masks` marks the parts of a prompt that the
model wrote, and finds the owner of each text.

Strategy: a conversation is a flat list of stretches of tokens, so it can be copied, pickled and saved as JSON. Branches share the stretches
of their common prefix, and the cost of a turn is proportional to its new tokens. The lists of a row are built on demand.

Rule: sampled ids are never decoded and encoded again, and message text never becomes a special token.

>>> from unrender import ChatTemplate
>>> from unrender.training import Rollout
>>> class Letters:  # any tokenizer of tokenizers or transformers will do
...     added_tokens_decoder = {0: "</>"}
...     def encode(self, text, **options):
...         return [0 if letter == "~" else ord(letter) for letter in text.replace("</>", "~")]
...     def decode(self, ids, **options):
...         return "".join(chr(id) if id else "</>" for id in ids)
>>> template = ChatTemplate.from_string("{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>")
>>> rollout = Rollout(template, Letters(), [{"role": "user", "content": "Hello"}])
>>> rollout.sampled([72, 105, 0]).content
'Hi'
>>> rollout.extend([{"role": "user", "content": "And </>?"}])
>>> rollout.turn.prompt
'<user>Hello</><assistant>Hi</><user>And </>?</><assistant>'
>>> sum(rollout.row().mask), rollout.ids.count(0)
(3, 3)
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, groupby
from typing import Any, NamedTuple, Self

from unrender import ChatTemplate, Message, Policy, RequestError, Turn
from unrender.conversation.tools import read_request
from unrender.errors import ExtendError, TemplateWarning, UnrenderError
from unrender.prompt import AUTHORS, PromptEncoder, flagged
from unrender.signatures import checked, checked_late
from unrender.token_ids import TokenParser
from unrender.training.masks import AssistantMask, assistant_mask
from unrender.types import Media, ParsedAnswer

__all__ = ["AssistantMask", "Rollout", "TrainingRow", "assistant_mask", "extend_all"]


_VERSION = 1
_HOW = ("thoughts", "unfinished", "restate", "policy")
"""Arguments of `Turn.next` that don't change the request."""
_FIRST = -1
"""Message index of tokens that don't belong to a message after the first prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRow:
    """One conversation as a row of a training batch. Each list has one element per token."""

    input_ids: list[int]
    mask: list[int]
    """1 for sampled tokens, 0 for all others."""
    logprobs: list[float] | None
    """Log probabilities of sampled tokens, and 0.0 for other tokens. None if no log probabilities were passed."""
    message_indices: list[int]
    """Index of each token's message; -1 in the first prompt, at the ends of turns, and in generation prompts."""
    body: list[bool]
    """True for each token of a message's own text: sampled tokens, and text of users and tools after the first prompt."""
    prompt_length: int
    """Number of tokens before the first sampled token."""
    turns: list[tuple[int, int]]
    """Start and end of each answer in `input_ids`."""

    @property
    def prompt_ids(self) -> list[int]:
        """Ids of the first prompt."""
        return self.input_ids[: self.prompt_length]

    @property
    def completion_ids(self) -> list[int]:
        """Ids after the first prompt, i.e. the ids of answers and of the messages between them."""
        return self.input_ids[self.prompt_length :]

    def trl(self) -> dict[str, Any]:
        """Return the result of TRL's `rollout_func` for one sample."""
        return self._named("completion_ids", "env_mask", "logprobs")

    def verl(self) -> dict[str, Any]:
        """Return the token fields of verl's `AgentLoopOutput`."""
        return self._named("response_ids", "response_mask", "response_logprobs")

    def _named(self, ids: str, mask: str, logprobs: str) -> dict[str, Any]:
        first = self.prompt_length
        return {
            "prompt_ids": self.prompt_ids,
            ids: self.completion_ids,
            mask: self.mask[first:],
            logprobs: None if self.logprobs is None else self.logprobs[first:],
        }


class _Stretch(NamedTuple):
    """Tokens that were added together."""

    ids: tuple[int, ...]
    runs: tuple[tuple[int, int, bool], ...]
    """Lengths of runs of tokens, each with the index of its message and True if the tokens are a message's own text."""
    said: tuple[Mapping[str, Any], ...] = ()
    """The messages that these tokens encode."""
    begins: bool = False
    """True for a complete prompt, with which a row begins."""
    sampled: bool = False
    reason: str | None = None
    """The engine's finish reason of a sampled answer."""
    logprobs: tuple[float, ...] | None = None

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Self:
        """Return the stretch from the result of `_asdict`, which may have been JSON."""
        logprobs, runs = data["logprobs"], (tuple(run) for run in data["runs"])
        listed = {"ids": tuple(data["ids"]), "runs": tuple(runs), "said": tuple(data["said"])}
        return cls(**{**data, **listed, "logprobs": None if logprobs is None else tuple(logprobs)})


@checked
class Rollout:
    """A conversation between a model, tools and users, stored as tokens.

    `tokenizer` is a tokenizer of transformers or tokenizers, or a `PromptEncoder` that several rollouts share. `policy` is used to parse the
    answers. Special tokens in messages are encoded as ordinary text, except in messages with one of the `special_roles`. `settings` are
    arguments of `ChatTemplate.prepare`. Raises the same errors as `prepare`. Raises `TokenizerError` if the tokenizer doesn't list its
    special tokens, or can't encode a message as ordinary text. Arguments are never modified.

    You can copy a rollout, pickle it, and save it as JSON with `to_dict`. A pickle contains the template, but not the tokenizer: pass it to
    `attach` before you add messages.
    """

    def __init__(
        self,
        template: ChatTemplate,
        tokenizer: Any,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        policy: Policy | None = None,
        special_roles: Collection[str] = AUTHORS,
        **settings: Any,
    ) -> None:
        self.policy: Policy = policy or Policy()
        """The policy with which answers are parsed."""
        self._asked: dict[str, Any] = {
            "tools": [*read_request(tools)[0].plain] or None,
            "markers": "encode",
            **settings,
        }
        self._roles = tuple(special_roles)
        self._template: ChatTemplate | bytes = template
        """The template, or its pickle, which is loaded only if it's needed."""
        self._encoder: PromptEncoder | None = None
        self._turn: Turn | None = None
        self._saved: Mapping[str, Any] = {}
        """Fields of the turn, from which it's restored if it's needed."""
        self._answer: ParsedAnswer | None = None
        self._stretches: list[_Stretch] = []
        self._count = 0
        """Number of messages."""
        self.attach(tokenizer)
        self._render(messages, messages)

    @property
    def encoder(self) -> PromptEncoder:
        """Encoder for the prompt and messages. Raises `RequestError` for a rollout that was loaded without a tokenizer."""
        if self._encoder is None:
            raise RequestError("expected a tokenizer, found none in a loaded rollout; pass one to attach(…)")
        return self._encoder

    @property
    def turn(self) -> Turn:
        """The turn that will be answered next, or the last answered turn."""
        if self._turn is None:
            messages = self.messages[: -1 if self._stretches[-1].sampled else None]
            first = messages[: len(self._stretches[0].said)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TemplateWarning)  # The first `prepare` already issued these warnings.
                turn = self._loaded().prepare(first, **self._asked)
            saved = {**self._saved, "media": tuple(Media(**item) for item in self._saved["media"])}
            self._turn = turn._resumed(messages, **{**saved, "known_ids": tuple(saved["known_ids"])})
        return self._turn

    @property
    def ids(self) -> list[int]:
        """All ids of the current prompt and its answers, as a new list that can be passed to an engine as the prompt."""
        return [id for stretch in self._rows()[-1] for id in stretch.ids]

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The conversation so far, in OpenAI's format, with the parsed answers."""
        return [message for stretch in self._stretches for message in stretch.said]

    @property
    def media(self) -> tuple[Media, ...]:
        """The images, sounds, videos and files of the conversation. Their placeholders are in the prompt as the template writes them."""
        return self.turn.media

    def attach(self, tokenizer: Any) -> None:
        """Set the tokenizer of a rollout that was loaded without one."""
        self._encoder = tokenizer if isinstance(tokenizer, PromptEncoder) else PromptEncoder(tokenizer)

    @checked_late
    def sampled(
        self, ids: Iterable[int], logprobs: Iterable[float] | None = None, *, finish_reason: str | None = None
    ) -> Message:
        """Add the sampled ids of an answer, including its stop token, and return the parsed message.

        The ids are kept unchanged. An empty list is an empty answer. Pass `logprobs`, one per id, for all answers or for none.
        `finish_reason` is as in `Parser.finish`. Raises `RequestError` if `logprobs` doesn't follow this rule, or if `extend` wasn't called
        after the last answer.
        """
        if self._stretches[-1].sampled:
            raise RequestError("sampled: expected extend(…) after an answer, found another answer")
        taken = tuple(int(id) for id in ids)
        given = None if logprobs is None else tuple(float(value) for value in logprobs)
        if given is not None and len(given) != len(taken):
            raise RequestError(f"logprobs: expected one for each of {len(taken)} ids, found {len(given)}")
        earlier = next((stretch for stretch in reversed(self._stretches) if stretch.sampled), None)
        if earlier is not None and (earlier.logprobs is None) is not (given is None):
            raise RequestError("logprobs: expected them for all answers, or for none")
        answer = self._parsed(taken, finish_reason)
        message = answer.parser.message
        self._add(
            _Stretch(
                ids=taken,
                runs=((len(taken), self._count, True),),
                said=({**message.to_openai()},),
                sampled=True,
                reason=finish_reason,
                logprobs=given,
            )
        )
        self._answer = answer
        return message

    @checked
    def extend(self, messages: Sequence[Any], *, split: bool = False, **changes: Any) -> None:
        """Append messages after the answer: tool results, user messages, system messages.

        Only the new messages are encoded. Failed calls may have results too. `changes` are arguments of `Turn.next`: `thoughts`,
        `unfinished`, `tool_choice` and template variables. With `split`, the complete conversation is rendered anew where the prompt can't
        be extended, e.g. because the template drops earlier reasoning (`thoughts="template"`). The new prompt begins another row.

        Also raises `TokenizerError` and the errors of `Turn.next`. Raises `RequestError` if no answer was sampled since messages were last
        added. An error leaves the rollout unchanged.
        """
        last = self._stretches[-1]
        if not last.sampled:
            raise RequestError("extend: expected sampled(…) first, found no answer; an empty one is sampled([])")
        # After loading, the answer is parsed again, so its calls have other ids than the message.
        answer = self._answer or replace(self._parsed(last.ids, last.reason), foreign_ids=True)
        try:
            turn = self.turn.next(answer, messages, **changes)
            pieces = turn.appended
        except ExtendError:
            if not split:
                raise
            self._render([*self.messages, *messages], messages)
            return
        parts = flagged(pieces, self._roles)
        if turn.marked and turn._source:
            encoded = self.encoder._with_markers(parts, turn._source.known_markers, whole=False)
        else:
            encoded = self.encoder.continuation(parts)
        first = self._count
        marks = [(_FIRST if piece.message is None else first + piece.message, piece.body) for piece in pieces]
        runs = ((len([*ids]), *mark) for mark, ids in groupby(marks[piece] for piece in encoded.pieces))
        self._add(_Stretch(ids=tuple(encoded.ids), runs=tuple(runs), said=tuple(messages)))
        self._turn, self._answer = turn, None
        self._asked.update({name: value for name, value in changes.items() if name not in _HOW})

    def row(self) -> TrainingRow:
        """Return the conversation as one row. The row's mask is 1 for sampled tokens and 0 for others.

        Raises `RequestError` if the conversation was rendered anew, so that it has several rows.
        """
        rows = self.split()
        if len(rows) > 1:
            raise RequestError(f"row: expected a conversation with one prompt, found {len(rows)} prompts; use split()")
        return rows[0]

    def split(self) -> list[TrainingRow]:
        """Return the conversation as rows: one for each prompt that was rendered, with the tokens that were added to this prompt."""
        known = any(stretch.logprobs is not None for stretch in self._stretches)
        return [_row(stretches, known=known) for stretches in self._rows()]

    def fork(self) -> Self:
        """Return an independent branch that shares all tokens so far."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._stretches, other._asked = self._stretches.copy(), self._asked.copy()
        return other

    __copy__ = fork

    def __deepcopy__(self, _: Any) -> Self:
        return self.fork()

    def to_dict(self) -> dict[str, Any]:
        """Return the rollout as JSON data, without the template and the tokenizer. `from_dict` reads it back.

        The messages and settings that you passed must be JSON data.
        """
        turn = self._turn
        saved = (
            self._saved
            if turn is None
            else {
                "prompt": turn.prompt,
                "prefill": turn.prefill,
                "known_ids": list(turn.known_ids),
                "media": [asdict(item) for item in turn.media],
            }
        )
        return {
            "version": _VERSION,
            "settings": self._asked,
            "policy": asdict(self.policy),
            "special_roles": list(self._roles),
            "turn": dict(saved),
            "stretches": [stretch._asdict() for stretch in self._stretches],
        }

    @classmethod
    @checked
    def from_dict(cls, data: Mapping[str, Any], template: ChatTemplate, tokenizer: Any = None) -> Self:
        """Return the rollout that `to_dict` returned, with its template. The tokenizer is needed only to add messages.

        Raises `RequestError` if the data is of another version or incomplete.
        """
        if data.get("version") != _VERSION:
            raise RequestError(f"version: expected {_VERSION}, from Rollout.to_dict, found {data.get('version')!r:.60}")
        made = object.__new__(cls)
        made._restore(data, template)
        if tokenizer is not None:
            made.attach(tokenizer)
        return made

    def __getstate__(self) -> dict[str, Any]:
        template = self._template if isinstance(self._template, bytes) else pickle.dumps(self._template)
        # Stretches are pickled as they are, since a copy of each as a dict takes longer than pickling it.
        return {**self.to_dict(), "stretches": self._stretches, "template": template}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._restore({**state, "stretches": ()}, state["template"])
        self._stretches = list(state["stretches"])
        self._count = len(self.messages)

    def _restore(self, data: Mapping[str, Any], template: ChatTemplate | bytes) -> None:
        try:
            self.policy, self._asked = Policy(**data["policy"]), dict(data["settings"])
            self._roles, self._saved = tuple(data["special_roles"]), dict(data["turn"])
            self._stretches = [_Stretch.restored(item) for item in data["stretches"]]
            self._count = len(self.messages)
        except (KeyError, TypeError) as error:
            raise RequestError(
                f"expected the data of Rollout.to_dict, found a wrong or missing field: {error}"
            ) from error
        self._template, self._encoder, self._turn, self._answer = template, None, None, None

    def _add(self, stretch: _Stretch) -> None:
        self._stretches.append(stretch)
        self._count += len(stretch.said)

    def _rows(self) -> list[list[_Stretch]]:
        rows: list[list[_Stretch]] = []
        for stretch in self._stretches:
            rows += [[]] if stretch.begins else []
            rows[-1].append(stretch)
        return rows

    def _parsed(self, ids: Sequence[int], finish_reason: str | None) -> ParsedAnswer:
        encoder, parser = self.encoder, self.turn.parser(policy=self.policy)
        reader = TokenParser(parser, encoder.tokenizer, special_ids=encoder.special_ids)
        reader.feed(ids)
        reader.finish(finish_reason)
        return reader.answer

    def _render(self, messages: Sequence[Any], said: Sequence[Any]) -> None:
        """Begin a row with the prompt for `messages`, of which `said` are new."""
        turn = self._loaded().prepare(messages, **self._asked)
        ids = tuple(turn.encode(self.encoder, special_roles=self._roles))
        self._add(_Stretch(ids=ids, runs=((len(ids), _FIRST, False),), said=tuple(said), begins=True))
        self._turn, self._answer = turn, None

    def _loaded(self) -> ChatTemplate:
        template = self._template
        if isinstance(template, bytes):
            self._template = template = pickle.loads(template)  # noqa: S301 -- part of a pickle that the caller has loaded
        return template


@checked
def extend_all(
    rollouts: Sequence[Rollout], messages: Sequence[Sequence[Any]], **options: Any
) -> list[UnrenderError | None]:
    """Append messages to the rollouts of a batch. Return None or the error for each rollout.

    `messages` has the messages of each rollout. A rollout without messages is left unchanged, and so is one with an error. `options` are
    arguments of `Rollout.extend`. Raises `RequestError` if an item isn't a rollout, or if the batch and its messages differ in length.
    """
    for index, rollout in enumerate(rollouts):
        if not isinstance(rollout, Rollout):
            raise RequestError(f"rollouts[{index}]: expected a Rollout, found {rollout!r:.60}")
    if len(rollouts) != len(messages):
        raise RequestError(f"messages: expected a list for each of {len(rollouts)} rollouts, found {len(messages)}")
    errors: list[UnrenderError | None] = []
    for rollout, new in zip(rollouts, messages, strict=True):
        try:
            if new:
                rollout.extend(new, **options)
            errors.append(None)
        except UnrenderError as error:
            errors.append(error)
    return errors


def _row(stretches: Sequence[_Stretch], *, known: bool) -> TrainingRow:
    runs = [run for stretch in stretches for run in stretch.runs]
    ends = accumulate(len(stretch.ids) for stretch in stretches)
    return TrainingRow(
        input_ids=[id for stretch in stretches for id in stretch.ids],
        mask=[int(stretch.sampled) for stretch in stretches for _ in stretch.ids],
        logprobs=[p for stretch in stretches for p in stretch.logprobs or (0.0,) * len(stretch.ids)] if known else None,
        message_indices=[message for length, message, _ in runs for _ in range(length)],
        body=[body for length, _, body in runs for _ in range(length)],
        prompt_length=len(stretches[0].ids),
        turns=[(end - len(stretch.ids), end) for stretch, end in zip(stretches, ends, strict=True) if stretch.sampled],
    )
