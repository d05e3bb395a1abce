"""Collects a conversation of many turns as tokens: those that were sampled, and those that were said in between.

Strategy: a conversation is a chain of stretches, each linked to the one before it, so branches share what they have in common and a
turn costs what it adds. Lists are made when they are asked for.
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
    """One conversation as a row of a training batch; its lists have one element for each token."""

    input_ids: list[int]
    mask: list[int]
    """1 for what was sampled, 0 for what was not."""
    logprobs: list[float] | None
    """Log probabilities of what was sampled, and 0.0 for what was not; None if none were given."""
    message_indices: list[int]
    """The message of the conversation that a token belongs to; -1 in the first prompt, at the ends of turns, and in generation prompts."""
    body: list[bool]
    """For each token, True if it is a message's own words: all that was sampled, and what was said by users and tools after the first prompt."""
    prompt_length: int
    """The number of tokens before the first that was sampled."""

    @property
    def prompt_ids(self) -> list[int]:
        """The first prompt."""
        return self.input_ids[: self.prompt_length]

    @property
    def completion_ids(self) -> list[int]:
        """All that follows the first prompt: answers, and what was said in between."""
        return self.input_ids[self.prompt_length :]

    def trl(self) -> dict[str, Any]:
        """Return what a `rollout_func` of TRL returns for one sample."""
        return self._named("completion_ids", "env_mask", "logprobs")

    def verl(self) -> dict[str, Any]:
        """Return the fields of verl's `AgentLoopOutput` for tokens."""
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
    """Tokens that came at once, after those of another stretch."""

    ids: tuple[int, ...]
    messages: tuple[int, ...]
    body: tuple[bool, ...]
    said: tuple[Mapping[str, Any], ...]
    """The messages that these tokens are."""
    before: _Stretch | None
    count: int
    """Messages up to and with this stretch."""
    sampled: bool = False
    logprobs: tuple[float, ...] | None = None


class Rollout:
    """A conversation between a model, tools and users, as the tokens that were sampled and those that were not.

    `tokenizer` is one of transformers or tokenizers, or a `PromptEncoder` that several rollouts share. `settings` are those of
    `ChatTemplate.prepare`. Raises `TokenizerError` when the tokenizer cannot tell special tokens, or cannot encode a message without
    making one of its words a special token; otherwise what `prepare` raises. No argument is changed.
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
        """Encodes what is said."""
        self.turn: Turn = template.prepare(messages, tools=tools, **settings)
        """The turn that is to be answered next, or is answered by what was sampled last."""
        pieces = _first_pieces(template, self.encoder, self.turn, messages, tools=tools, **settings)
        ids = tuple(self.encoder.prompt(pieces).ids)
        self._last = _Stretch(ids, (-1,) * len(ids), (False,) * len(ids), tuple(messages), None, len(messages))

    @property
    def ids(self) -> list[int]:
        """All ids so far, as a new list: the prompt for an engine."""
        return [id for stretch in self._stretches() for id in stretch.ids]

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The conversation so far, in OpenAI's form; answers as they were read."""
        return [message for stretch in self._stretches() for message in stretch.said]

    def sampled(self, ids: Iterable[int], logprobs: Iterable[float] | None = None) -> Message:
        """Take the ids that a model sampled for an answer, its stop token included; return the message that they mean.

        The ids are kept as they are. No ids are an empty answer. `logprobs` are one for each id, for all answers or for none. Raises
        `RequestError` when they are not, and when the last answer was not extended.
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
        """Append what is said after the answer: results of its calls, users, system messages.

        Only this is encoded. `changes` are those of `Turn.next`: `thoughts`, `unfinished`, `tool_choice`, variables of the template.
        Raises what `Turn.next` raises, and `TokenizerError`; then nothing has changed. Raises `RequestError` when nothing was sampled
        since the last messages.
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
        """Return the conversation as one row: what was sampled has mask 1, all else 0."""
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
        """Return a branch: it goes on from here on its own, and shares what there is so far."""
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
    """Return the pieces of the first prompt; one, where no message spells a special token."""
    if not any(encoder.spelled(text) for _, text in texts_of(messages)):
        return [(turn.prompt, False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemplateWarning)  # `prepare` gave each before.
        return attributed_prompt(template, messages, **settings).pieces(encoder, messages)
