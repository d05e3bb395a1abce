"""Answers: an `Ask` → a turn with its grammar → engine jobs → events for a surface.

This module sends one job per choice and yields the frames; read it first. `turns` renders the prompt and builds the grammar in threads, and
validates answers that no grammar constrained. `choice` parses the output of one job. `model` tests which features an engine really supports.

Rule: a job is retried only while the engine has returned nothing. Closing a generator cancels the engine's work.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from unrender import Event
from unrender.gateway.answers.choice import ChoiceState
from unrender.gateway.answers.kept import Shelf
from unrender.gateway.answers.model import UNREAD_CALL, Model
from unrender.gateway.answers.turns import Prepared
from unrender.gateway.backends import EngineError, Job, OutputPiece
from unrender.gateway.failure import CONTEXT_LENGTH, Failure, FailureKind, invalid
from unrender.gateway.surfaces import Ask, Surface
from unrender.limits import MAX_ITEMS
from unrender.openai import Usage

_log = logging.getLogger("unrender.gateway")
_PAUSE = 0.2
"""Delay before a retry, in seconds."""
_TOO_LONG = re.compile(
    r"""max(imum)?\ (context|model|input|prompt|allowed)\ (length|size)  # "This model's maximum context length is 4096 tokens"
    | exceeds?(\ the)?(\ available|\ model's)?\ context\ (size|window|length|limit)
    | context\ (size|window|length)\ has\ been\ exceeded
    | (prompt|input|conversation)\b.{0,80}(?<!\ took)\ too\ long  # "The prompt (total length 9000) is too long to fit into the model"
    | (prompt|input|request)\b.{0,80}\ (longer|greater|larger)\ than\ the\ (model|max|context)
    | (prompt|input)\ length\b.{0,80}\ exceeds?  # "Input length (9000 tokens) exceeds the maximum"
    | expected\ a\ prompt\ of\ at\ most""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches engine errors about a prompt that is too long. Agents that recognize the wording of such an error shorten the conversation."""
_HEALS = 2
"""Maximum number of calls healed per answer."""
_HEALED = "was malformed; the model generated the rest of it again, constrained by a grammar"
_NOT_HEALED = "is malformed, and could not be healed"
_WAITING = 16
"""Maximum number of buffered frames for an answer with several choices."""


@dataclass(slots=True)
class RunningAnswer:
    """One answer with all its choices."""

    ask: Ask
    model: Model
    prepared: Prepared
    surface: Surface
    request_id: str
    headers: Mapping[str, str] = field(default_factory=dict)
    finished: Callable[[Surface], Awaitable[None]] | None = None
    """Callback that receives the finished answer before the last frame is sent."""
    choices: list[ChoiceState] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Kind of each engine error, including errors of retried jobs."""
    unread: int = 0
    """Number of choices with a call in another syntax that wasn't parsed."""
    lacking: bool = False
    """True if a finished choice violates a `tool_choice` or `response_format` that no grammar enforced."""

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames. The first frame is sent with the engine's first piece. Raises `Failure` if the engine fails."""
        wants = self.ask.logprobs is not None
        engine, settings = self.model.capabilities, self.model.settings
        policy = self.prepared.policy(engine, settings)
        bound = engine.dialect and settings.constrain != "never"
        # A healed answer contains text that isn't among the sampled ids.
        healed = settings.heal and bound and policy.tool_calls == "complete" and not self.ask.token_ids
        heals = _HEALS if healed else 0
        self.choices = [
            ChoiceState(self.prepared.turn, self.ask.stop, logprobs=wants, policy=policy, heals=heals)
            for _ in range(self.ask.choices)
        ]
        head = self.surface.begin()
        async with aclosing(self._stream_choice(0) if self.ask.choices == 1 else self._all()) as source:
            async for frame in source:
                # Send the head with the engine's first piece: until then, a failure can still be returned as an HTTP status.
                if head or frame:
                    yield head + frame
                    head = b""
        # Run the callback before the last frame is sent, since a client that has read that frame may request the stored answer.
        last = head + self.surface.finish(self.usage)
        if self.finished is not None:
            await self.finished(self.surface)
        yield last

    @property
    def limit(self) -> int | None:
        """Token limit of the request, or else of the model."""
        return self.ask.limit or self.model.settings.max_tokens

    @property
    def usage(self) -> Usage:
        """Token counts of all choices together. The choices share one prompt, which is counted only once."""
        counted = [choice.counted for choice in self.choices]
        return replace(
            counted[0],
            completion_tokens=sum(usage.completion_tokens for usage in counted),
            reasoning_tokens=sum(usage.reasoning_tokens or 0 for usage in counted),
        )

    def keep(self, shelf: Shelf) -> None:
        """Store the answer for the next request of the conversation."""
        for choice in self.choices:
            self.model.turns.keep(self.prepared, choice.text, choice.outcome, shelf, self.surface.id)

    async def _stream_choice(self, index: int) -> AsyncGenerator[bytes, None]:
        choice = self.choices[index]
        held: list[bytes] = []
        """Frames held until the engine's next piece, which has already been received. So text that arrives together is sent together."""
        job: Job | None = self._job(index)
        last: list[Event] = []
        while job is not None:
            try:
                async with aclosing(self._pieces(job)) as pieces:
                    # An engine's packet often holds several tokens. Their frames are sent in one write, since a write costs more than a
                    # token. After a stop string or the last allowed call, leave the loop: this closes the generator, which stops the
                    # engine.
                    async for piece in pieces:
                        await self._taken(index, piece, held)
                        if choice.done:
                            break
                        if not piece.more:
                            yield b"".join(held)
                            held.clear()
                last = await self._finished(choice)
            except EngineError as error:
                healing, last = choice.resumed, self._released(choice, error)
                if not healing:
                    # Deliver the text received so far before reporting the error.
                    if text := b"".join([*held, self._frames(index, last)]):
                        yield text
                    raise _failure(error) from error
            job = self._rest(index) if choice.broke else None
        yield b"".join([*held, await self._end(index, last)])

    async def _end(self, index: int, last: list[Event]) -> bytes:
        """Return the frames for a choice's last events and for its end."""
        choice = self.choices[index]
        # An engine that is stopped early doesn't report the prompt's token count, and some engines never do. The choices share the prompt,
        # so counting it for the first choice is enough.
        cut_off = tuple(_cut_off(choice, self.ask.limit))
        if choice.usage is None and not index:
            prompt, _ = await self.model.count(self.prepared.turn.prompt)
            choice.usage = replace(choice.counted, prompt_tokens=prompt)
        ending = self.surface.frames(index, last, choice.content_logprobs())
        if choice.may_be_unread and await asyncio.to_thread(choice.unread):
            self._tell_unread()
        outcome = choice.outcome
        lacking = self.prepared.lacking(self.model.capabilities, outcome)
        self.lacking = self.lacking or bool(lacking)
        full = [f"the answer was truncated after {MAX_ITEMS} tool calls"] if choice.full else []
        healed = [f"a call of {name!r} {_HEALED if well else _NOT_HEALED}" for name, well in choice.healings]
        warnings = (*lacking, *full, *cut_off, *choice.mismatched, *healed)
        return ending + self.surface.end(index, replace(outcome, warnings=warnings))

    def _tell_unread(self) -> None:
        """Count an answer with a call that wasn't parsed. The first one of a model is logged."""
        self.unread += 1
        if not self.model.found.unread:
            self.model.found.unread = True
            _log.warning("%s: %s", self.model.name, UNREAD_CALL)

    async def _finished(self, choice: ChoiceState) -> list[Event]:
        """End the choice, and return its last events. The choice holds them if a broken call can be healed."""
        read_on = choice.broke
        if read_on:
            await asyncio.to_thread(choice.heal, self.model.capabilities)
            return [] if choice.fits(self.limit) else [*choice.release(), *choice.finish()]
        last = choice.finish()
        return last if not choice.broke or await self._can_heal(choice) else choice.release()

    def _released(self, choice: ChoiceState, error: EngineError) -> list[Event]:
        """Return the events that remain after an engine's error. If healing failed, these are the rest of the answer without healing."""
        self.errors.append(error.kind)
        healing, last = choice.resumed, choice.release()
        if not healing:
            return last
        _log.warning("request %s: healing failed: %s", self.request_id, error)
        return last + choice.finish()

    def _frames(self, index: int, events: list[Event]) -> bytes:
        return self.surface.frames(index, events, self.choices[index].content_logprobs()) if events else b""

    async def _taken(self, index: int, piece: OutputPiece, held: list[bytes]) -> None:
        """Append the frames of a piece to `held`. If the piece breaks a call that can be healed, the choice holds the call's events."""
        choice = self.choices[index]
        if events := choice.feed(piece):
            held.append(self._frames(index, events))
        elif choice.just_broke and not await self._can_heal(choice):
            held.append(self._frames(index, choice.release()))

    async def _can_heal(self, choice: ChoiceState) -> bool:
        # Use a thread, since parsing the answer again and building its grammar would block the event loop for too long.
        return await asyncio.to_thread(choice.can_heal, self.model.capabilities, self.limit)

    def _rest(self, index: int) -> Job:
        """Return the job that continues after the valid part of a broken call."""
        choice = self.choices[index]
        turn, grammar = choice.go_on()
        job = self._job(index)
        limit = None if job.limit is None else job.limit - choice.counted.completion_tokens
        return replace(job, turn=self.model.sent(turn), grammar=grammar, limit=limit)

    async def _pieces(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Send a job, and yield the pieces of the answer. Raises `EngineError`."""
        started = False
        for left in reversed(range(self.model.settings.attempts)):
            try:
                async with aclosing(self.model.backend.generate(job)) as pieces:
                    async for piece in pieces:
                        started = True
                        yield piece
                return
            except EngineError as error:
                if started or not (left and error.transient):
                    raise
                self.errors.append(error.kind)
            await asyncio.sleep(_PAUSE)

    def _job(self, index: int) -> Job:
        ask = self.ask
        # Give each choice its own id and seed. Some engines treat two jobs with the same id as one job, and with the same seed, all choices
        # would be identical.
        name = self.request_id if ask.choices == 1 else f"{self.request_id}-{index}"
        return Job(
            turn=self.model.sent(self.prepared.turn),
            request_id=name,
            grammar=self.prepared.grammar,
            limit=self.limit,
            sampling=ask.sampling,
            seed=None if ask.seed is None else ask.seed + index,
            logprobs=ask.logprobs,
            headers=self.headers,
            messages=ask.messages,
            wants_ids=ask.token_ids,
        )

    async def _all(self) -> AsyncGenerator[bytes, None]:
        """Yield the frames of several choices as they arrive. An error in one choice ends all of them."""
        # The queue is bounded, so a slow client slows down all of its choices.
        queue: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(_WAITING)
        tasks = [asyncio.create_task(self._into(queue, index)) for index in range(self.ask.choices)]
        try:
            left = len(tasks)
            # None in the queue marks the end of one choice. An exception ends all choices.
            while left:
                item = await queue.get()
                if isinstance(item, BaseException):
                    raise item
                left -= item is None
                yield item or b""
        finally:
            # Wait for the cancelled tasks, so that their engine connections are closed on return.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _into(self, queue: asyncio.Queue[bytes | BaseException | None], index: int) -> None:
        try:
            async with aclosing(self._stream_choice(index)) as frames:
                async for frame in frames:
                    await queue.put(frame)
            await queue.put(None)
        except Exception as error:  # noqa: BLE001 - raised by the reader of the queue
            await queue.put(error)


def _cut_off(choice: ChoiceState, limit: int | None) -> Iterator[str]:
    """Yield a warning if the engine cut the answer off before the request's token limit."""
    if choice.outcome.reason != "length" or choice.usage is None:
        return
    tokens = choice.usage.completion_tokens
    if limit is None:
        yield f"the answer was cut off after {tokens} tokens; set a token limit to allow more"
    elif tokens < limit:
        yield f"the answer was cut off after {tokens} of {limit} tokens, at the end of the engine's context"


def _failure(error: EngineError) -> Failure:
    """Return the error for the client: an invalid request if the engine reports one, otherwise an engine error."""
    # Check the message before the status: some engines report this with 500, others in a stream that began with 200.
    long = _TOO_LONG.search(error.message)
    if long:
        # Agents recognize Anthropic's wording and shorten the conversation. Anthropic's API has no error code, and OpenAI's packages don't
        # show theirs.
        said = f"prompt is too long: input and answer exceed context limit: {error.message}"
        return invalid(said, param="messages", code=CONTEXT_LENGTH)
    if error.status in (400, 413, 422):
        return invalid(f"the engine rejected the request: {error.message}")
    kind = {429: FailureKind.LIMITED, 503: FailureKind.BUSY}.get(error.status or 0, FailureKind.ENGINE)
    return Failure(kind, f"the engine failed: {error.message}", retry_after=error.retry_after or "1")
