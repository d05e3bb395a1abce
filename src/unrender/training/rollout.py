"""Collects the tokens of a multi-turn conversation: sampled tokens, and the tokens of the messages between them.

Strategy: a conversation is a linked list of segments. Branches share their common prefix, and the cost of a turn is proportional to its new
tokens. Lists are built on demand.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender import ChatTemplate, Message, RequestError, Turn
from unrender.errors import TemplateWarning
from unrender.token_ids import Detokenizer, PromptEncoder, TokenParser
from unrender.training.attribution import attributed_prompt, texts_of


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


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """Tokens that were added together, with a link to the segment before them."""

    ids: tuple[int, ...]
    messages: tuple[int, ...]
    body: tuple[bool, ...]
    said: tuple[Mapping[str, Any], ...]
    """The messages that these tokens encode."""
    before: _Stretch | None
    count: int
    """Number of messages up to the end of these tokens."""
    sampled: bool = False
    logprobs: tuple[float, ...] | None = None


class Rollout:
    """A conversation between a model, tools and users, stored as tokens.

    `tokenizer` is a tokenizer of transformers or tokenizers, or a `PromptEncoder` that several rollouts share. `settings` are arguments of
    `ChatTemplate.prepare`. Raises the same errors as `prepare`. Raises `TokenizerError` if the tokenizer doesn't list its special tokens,
    or can't encode a message as ordinary text. Arguments are never modified.
    """

    def __init__(
        self,
        template: ChatTemplate,
        tokenizer: Any,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        **settings: Any,
    ) -> None:
        self.encoder: PromptEncoder = tokenizer if isinstance(tokenizer, PromptEncoder) else PromptEncoder(tokenizer)
        """Encoder for the prompt and messages."""
        self.turn: Turn = template.prepare(messages, tools=tools, **settings)
        """The turn that will be answered next, or the last answered turn."""
        pieces = _first_pieces(template, self.encoder, self.turn, messages, tools=tools, **settings)
        ids = tuple(self.encoder.prompt(pieces).ids)
        self._last = _Stretch(ids, (-1,) * len(ids), (False,) * len(ids), tuple(messages), None, len(messages))

    @property
    def ids(self) -> list[int]:
        """All ids so far, as a new list that can be passed to an engine as the prompt."""
        return [id for stretch in self._stretches() for id in stretch.ids]

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The conversation so far, in OpenAI's format, with the parsed answers."""
        return [message for stretch in self._stretches() for message in stretch.said]

    def sampled(self, ids: Iterable[int], logprobs: Iterable[float] | None = None) -> Message:
        """Add the sampled ids of an answer, including its stop token, and return the parsed message.

        The ids are kept unchanged. An empty list is an empty answer. Pass `logprobs`, one per id, for all answers or for none. Raises
        `RequestError` if `logprobs` doesn't follow this rule, or if `extend` wasn't called after the last answer.
        """
        if self._last.sampled:
            raise RequestError("sampled: expected extend(…) after an answer, found another answer")
        taken = tuple(int(id) for id in ids)
        given = None if logprobs is None else tuple(float(value) for value in logprobs)
        if given is not None and len(given) != len(taken):
            raise RequestError(f"logprobs: expected one for each of {len(taken)} ids, found {len(given)}")
        earlier = next((stretch for stretch in self._backwards() if stretch.sampled), None)
        if earlier is not None and (earlier.logprobs is None) is not (given is None):
            raise RequestError("logprobs: expected them for all answers, or for none")
        reader = TokenParser(self.turn.parser(), self.encoder.tokenizer, special_ids=self.encoder.special_ids)
        reader.feed(taken)
        reader.finish()
        message = reader.message
        number = self._last.count
        self._last = _Stretch(
            ids=taken,
            messages=(number,) * len(taken),
            body=(True,) * len(taken),
            said=({**message.to_openai()},),
            before=self._last,
            count=number + 1,
            sampled=True,
            logprobs=given,
        )
        return message

    def extend(self, messages: Sequence[Any], **changes: Any) -> None:
        """Append messages after the answer: tool results, user messages, system messages.

        Only the new messages are encoded. `changes` are arguments of `Turn.next`: `thoughts`, `unfinished`, `tool_choice` and template
        variables. Also raises `TokenizerError` and the errors of `Turn.next`. Raises `RequestError` if no answer was sampled since messages
        were last added. An error leaves the rollout unchanged.
        """
        if not self._last.sampled:
            raise RequestError("extend: expected sampled(…) first, found no answer; an empty one is sampled([])")
        answer = Detokenizer(self.encoder.tokenizer).text(self._last.ids)
        turn = self.turn.next(answer, messages, **changes)
        pieces = turn.appended
        encoded = self.encoder.continuation([(piece.text, piece.body) for piece in pieces])
        first = self._last.count
        numbers = [-1 if piece.message is None else first + piece.message for piece in pieces]
        self._last = _Stretch(
            ids=tuple(encoded.ids),
            messages=tuple(numbers[piece] for piece in encoded.pieces),
            body=tuple(pieces[piece].body for piece in encoded.pieces),
            said=tuple(messages),
            before=self._last,
            count=first + len(messages),
        )
        self.turn = turn

    def row(self) -> TrainingRow:
        """Return the conversation as one row. The row's mask is 1 for sampled tokens and 0 for others."""
        stretches = list(self._stretches())
        answers = [stretch for stretch in stretches if stretch.sampled]
        known = any(stretch.logprobs is not None for stretch in answers)
        return TrainingRow(
            input_ids=[id for stretch in stretches for id in stretch.ids],
            mask=[int(stretch.sampled) for stretch in stretches for _ in stretch.ids],
            logprobs=[p for stretch in stretches for p in stretch.logprobs or (0.0,) * len(stretch.ids)]
            if known
            else None,
            message_indices=[index for stretch in stretches for index in stretch.messages],
            body=[body for stretch in stretches for body in stretch.body],
            prompt_length=len(stretches[0].ids),
        )

    def fork(self) -> Rollout:
        """Return an independent branch that shares all tokens so far."""
        other = object.__new__(Rollout)
        other.encoder, other.turn, other._last = self.encoder, self.turn, self._last
        return other

    def _stretches(self) -> Iterator[_Stretch]:
        return reversed(list(self._backwards()))

    def _backwards(self) -> Iterator[_Stretch]:
        stretch: _Stretch | None = self._last
        while stretch is not None:
            yield stretch
            stretch = stretch.before


def _first_pieces(
    template: ChatTemplate, encoder: PromptEncoder, turn: Turn, messages: Sequence[Any], **settings: Any
) -> list[tuple[str, bool]]:
    """Return the pieces of the first prompt. If no message contains the text of a special token, the prompt is a single piece."""
    if not any(encoder.spelled(text) for _, text in texts_of(messages)):
        return [(turn.prompt, False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemplateWarning)  # `prepare` already issued these warnings.
        return attributed_prompt(template, messages, **settings).pieces(encoder, messages)
