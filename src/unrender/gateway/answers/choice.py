"""Turns the output of one choice into events, and tracks stop strings, token counts and the finish reason.

Rule: the work per piece doesn't grow with the length of the answer. Stop strings are searched only in content. Text that could become a
stop string is buffered, and the buffer is never longer than the longest stop string.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import unrender
from unrender.explain.nearest import holds_call
from unrender.gateway.answers.turns import grammar_of
from unrender.gateway.backends import EngineCapabilities, EngineGrammar, OutputPiece
from unrender.gateway.surfaces import ChoiceOutcome
from unrender.grammar import Role
from unrender.limits import MAX_ITEMS, MAX_TEXT
from unrender.openai import Usage, message_of
from unrender.parser import breaks
from unrender.token_ids import ChunkParser
from unrender.types import Healing

_HALF = "\ufffd"
"""Replacement character that engines send for part of a character."""
_AFTER = 64
"""Maximum number of pieces to read after a call that will be healed, so that the complete answer is there if healing fails."""
_OF_CALLS = (unrender.ToolCallStarted, unrender.ArgumentsText, unrender.ToolCallFinished)


class ChoiceState:
    """State of one choice during generation."""

    def __init__(
        self,
        turn: unrender.Turn,
        stop: Sequence[str] = (),
        *,
        logprobs: bool = False,
        policy: unrender.Policy | None = None,
        heals: int = 0,
    ) -> None:
        """`heals` is the maximum number of broken calls that are healed."""
        self.parser: unrender.Parser = turn.parser(policy=policy)
        self.healings: list[tuple[str, bool]] = []
        """Tool name of each call that the engine was asked to heal, and whether the healed call is valid."""
        self._turn, self._policy = turn, policy
        self._heals = 0 if logprobs or turn.is_continuation else heals
        self._broke: tuple[list[unrender.Event], int] | None = None
        """Held events with a broken call, and the number of tokens in the piece that they came from."""
        self._after: list[OutputPiece] = []
        """The pieces that followed a call that will be healed."""
        self._healing: tuple[Healing, EngineGrammar] | None = None
        """The continuation of the broken call and its grammar."""
        self._unhealed: dict[str, Any] | None = None
        """The attributes before healing, which are restored if healing fails; None if no healing is in progress."""
        self.resumed: bool = False
        """True if the engine was asked to heal a call."""
        self._finished = False
        self.rewritten: int = 0
        """Number of tokens that the engine generated to heal calls."""
        self.mismatched: list[str] = []
        """Warnings about complete calls whose arguments violate their tool's schema."""
        self.broken: int = 0
        """Number of `Malformed` events."""
        self.finish_reason: str | None = None
        self.stopped_by: str = ""
        """Stop string that ended the content."""
        self.full: bool = False
        """True if the answer has the maximum number of calls."""
        self.usage: Usage | None = None
        """Token counts from the engine."""
        self._ids: list[int] = []
        self._prompt_ids: tuple[int, ...] = ()
        self._scores: list[Mapping[str, Any]] = []
        """Log probabilities of all tokens."""
        self._texts: list[str] = []
        self._chunks: ChunkParser | None = None
        """The parser together with the engine's token ids. None if the engine doesn't send ids, or if a call was healed."""
        self._stops = _Stops(stop) if stop else None
        self._before: list[unrender.Event] = []
        """Events to return first: those of an open call in the prompt, or unsent events of a healed answer."""
        self._skipped = 0
        """Number of finished calls in the message that this answer continues."""
        if turn.is_continuation:
            # Drop text that the prompt already contains, since it isn't part of this answer. An open call is an exception, since clients
            # need its name.
            begun = [event for event in self.parser.feed("") if isinstance(event, _OF_CALLS)]
            ended = {event.index for event in begun if isinstance(event, unrender.ToolCallFinished)}
            self._before = [event for event in begun if event.index not in ended]
            self._skipped = sum(call.status != "open" for call in self.parser.message.tool_calls)
        # Otherwise, the parser's message is the answer, and no events are stored.
        self._own: list[unrender.Event] | None = [] if stop or turn.is_continuation or self._heals else None
        """Events of this answer. They are stored only if the parser's message contains earlier text, too, or if the parser may be replaced.
        """
        self._held = ""
        self._tokens = 0
        self._thinking = False
        self._reasoned: int | None = None
        """Number of tokens when reasoning ended; None until then."""
        self._length = 0
        self._logprobs: deque[tuple[int, Mapping[str, Any]]] | None = deque() if logprobs else None
        """Tokens that may be content, with their end positions in the output."""
        self._early: list[Mapping[str, Any]] = []
        """Tokens whose text hasn't arrived yet, e.g. the first half of a character."""

    @property
    def done(self) -> bool:
        """True if the rest of the engine's output is not needed."""
        return self.full or bool(self.stopped_by) or self._finished or len(self._after) >= _AFTER

    @property
    def broke(self) -> bool:
        """True if a call is broken and might be healed, so that its events are held until `go_on` or `release` is called."""
        return self._broke is not None

    @property
    def just_broke(self) -> bool:
        """True if the last piece broke a call."""
        return self._broke is not None and not self._after

    @property
    def may_be_unread(self) -> bool:
        """True if the answer has no calls, but contains the name of an offered tool."""
        content, request = self.parser.message.content, self._turn.request
        wanting = request._calls_allowed and not self.parser.message.tool_calls and len(content) <= MAX_TEXT
        return wanting and any(name in content for name in request._tool_names)

    def unread(self) -> bool:
        """Return whether the answer has calls if other well-known syntaxes are parsed too."""
        parser = self._turn.parser(policy=replace(self._policy or unrender.Policy(), repair="offered"))
        parser.feed(self.text)
        parser.finish(self.finish_reason)
        return bool(parser.message.tool_calls) or holds_call(self._turn, self.text)

    def feed(self, piece: OutputPiece) -> list[unrender.Event]:
        """Feed a piece to the parser and return the events that are final."""
        if self.broke:
            self._after.append(piece)
            return []
        self.finish_reason = piece.finish or self.finish_reason
        # Ignore the engine's usage for a healed answer, since it covers only the last job.
        self.usage = None if self.resumed else piece.usage or self.usage
        self._tokens += piece.tokens
        self.rewritten += piece.tokens if self.resumed else 0
        self._ids += piece.ids
        self._prompt_ids = self._prompt_ids or piece.prompt_ids
        self._scores += piece.logprobs
        if self._logprobs is not None:
            self._early += piece.logprobs
            if piece.text:
                self._place(self._logprobs, piece.text)
        if not piece.text:
            return []
        self._texts.append(piece.text)
        return self._unbroken(self._parsed(piece), piece.tokens)

    def _parsed(self, piece: OutputPiece) -> list[unrender.Event]:
        """Parse a piece. If the piece's special tokens are known, markers in ordinary text are treated as quotations."""
        if piece.special is not None and len(self._texts) == 1 and not self.resumed:
            self._chunks = ChunkParser(self.parser, piece.special)
        return self.parser.feed(piece.text) if self._chunks is None else self._chunks.feed(piece.text, piece.ids)

    def finish(self) -> list[unrender.Event]:
        """End the answer and return the last events. Later calls return no events."""
        # Drop the parser's last events after a stop string, since they would contain text that is not part of the answer.
        if self.stopped_by or self._finished:
            return []
        self._finished = True
        return self._unbroken(self.parser.finish(self.finish_reason), 0)

    def can_heal(self, engine: EngineCapabilities, limit: int | None) -> bool:
        """Return True if `go_on` can heal the broken call within the token limit. If it can't, call `release`."""
        if self._heals <= 0:
            return False
        self._heals -= 1
        self._healing = None
        return self.heal(engine) and self.fits(limit)

    def heal(self, engine: EngineCapabilities) -> bool:
        """Return True if the broken call can be healed. After the text behind the error was read, its intact arguments are kept, too."""
        reasons = [piece.finish for piece in self._after if piece.finish]
        found = self._turn.heal(
            self._read, finish_reason=reasons[-1] if reasons else self.finish_reason, policy=self._policy
        )
        grammar = grammar_of(found, replace(engine, lazy=False)).grammar if found else None
        if found and grammar:
            self._healing = (found, grammar)
        return self._healing is not None

    def fits(self, limit: int | None) -> bool:
        """Return True if the rest of the broken call fits into the request's token limit."""
        spent = self._tokens + sum(piece.tokens for piece in self._after)
        return limit is None or (self._healing is not None and limit - spent >= max(self._healing[0].shortest, 1))

    def go_on(self) -> tuple[unrender.Turn, EngineGrammar]:
        """Return the turn that continues after the valid part of the broken call, and its grammar. The remaining text is discarded."""
        assert self._healing is not None
        found, grammar = self._healing
        self._tokens += sum(piece.tokens for piece in self._after)
        # If a healed call breaks again, the model's own answer is still the one to restore.
        if self._unhealed is None:
            self._unhealed = vars(self).copy()
            self.healings = [*self.healings, (found.name, False)]
        kept = self._read[: found.cut]
        self.parser = self._turn.parser(policy=self._policy)
        self._before = [*self._before, *_untold(self.parser.feed(kept), self._own or [])]
        self._texts, self._broke, self._after, self._chunks, self._finished = [kept], None, [], None, False
        self.finish_reason = self.usage = None
        self.resumed = True
        return found.turn, grammar

    def release(self) -> list[unrender.Event]:
        """Return the held events of a broken call. If healing has failed, return to the answer as it was before, and end it."""
        failed = self._unhealed
        if failed is not None:
            kept = {name: getattr(self, name) for name in ("_tokens", "rewritten", "healings", "resumed")}
            vars(self).update({**failed, **kept})
        (events, tokens), after = self._broke or ([], 0), self._after
        self._broke, self._after = None, []
        self._heals = 0 if failed is not None or after else self._heals
        found = self._taken(events, tokens)
        for piece in after:
            found += self.feed(
                piece if failed is None else piece._replace(tokens=0)
            )  # `go_on` has counted these tokens
        return found if failed is None else found + self.finish()

    def _unbroken(self, events: list[unrender.Event], tokens: int) -> list[unrender.Event]:
        """Return the events, unless they contain a broken call that may be healed. If they do, hold all of them and return nothing."""
        broke = (self._heals > 0 or self._unhealed is not None) and any(breaks(event, self.parser) for event in events)
        if broke or (self._unhealed is not None and events and not self._obeyed(events)):
            self._broke = (events, tokens)
            return []
        return self._taken(events, tokens)

    def _obeyed(self, events: Sequence[unrender.Event]) -> bool:
        """Return True if the first events of a healed answer end the healed call, and the grammar allows the call's rest."""
        assert self._healing is not None
        ended = next((one.position for one in events if isinstance(one, unrender.ToolCallFinished)), None)
        found = self._healing[0]
        return ended is not None and found.accepts(self.text[found.cut : ended])

    @property
    def text(self) -> str:
        """Engine output so far."""
        return "".join(self._texts)

    @property
    def _read(self) -> str:
        """Engine output so far, with the text after a broken call."""
        return self.text + "".join(piece.text for piece in self._after)

    @property
    def outcome(self) -> ChoiceOutcome:
        """Message and finish reason of the choice. Call `finish` before reading it."""
        message: unrender.Message = self.parser.message if self._own is None else message_of(self._own)
        message = replace(message, tool_calls=message.tool_calls[:MAX_ITEMS])
        reason = "stop" if self.stopped_by else self.finish_reason
        return ChoiceOutcome(
            message=message,
            reason=reason,
            stopped_by=self.stopped_by,
            prompt_ids=self._prompt_ids,
            token_ids=tuple(self._ids),
            logprobs=tuple(self._scores),
        )

    @property
    def counted(self) -> Usage:
        """Token counts of the choice, from the engine if it reports them."""
        usage = self.usage or Usage(prompt_tokens=0, completion_tokens=self._tokens)
        whole = usage.completion_tokens
        # If the answer ended during reasoning, all its tokens are reasoning.
        reasoned = self._reasoned if self._reasoned is not None else whole if self._thinking else 0
        return replace(usage, reasoning_tokens=min(reasoned, whole))

    def content_logprobs(self) -> list[Mapping[str, Any]]:
        """Return the tokens of content that have become final since the last call."""
        if not self._logprobs or self._logprobs[0][0] > (settled := self.parser._settled):
            return []
        found = []
        spans = self.parser.spans
        ends = [span.end for span in spans]
        # Only text that can't change its meaning has a role: "<" may still become a marker, and marker tokens are not content.
        while self._logprobs and self._logprobs[0][0] <= settled:
            end, token = self._logprobs.popleft()
            if spans[bisect_left(ends, end)].role is Role.CONTENT:
                found.append(token)
        return found

    def _place(self, places: deque[tuple[int, Mapping[str, Any]]], text: str) -> None:
        """Record the end position of each token. A token that is only part of a character gets the end of the text."""
        tokens, self._early = self._early, []
        at, self._length = self._length, self._length + len(text)
        # Tokens are placed one after the other: "It ", "rains" end at 3 and 8. If their lengths don't add up to the piece, a token was part
        # of a character, sent as a replacement character. In that case, every token's end position is the end of the piece.
        whole = sum(len(str(token["token"])) for token in tokens) == len(text)
        if tokens and not whole and all(token.get("bytes") == [*_HALF.encode()] for token in tokens):
            # An engine that doesn't report bytes returns "👋" as three tokens, each "\ufffd". Clients join the bytes of all tokens, so
            # assign all bytes of the character to the last token.
            *halves, last = tokens
            tokens = [*({**half, "bytes": []} for half in halves), {**last, "bytes": [*text.encode(errors="replace")]}]
        for token in tokens:
            at = at + len(str(token["token"])) if whole else self._length
            places.append((at, token))

    def _taken(self, events: list[unrender.Event], tokens: int) -> list[unrender.Event]:
        """Return the parser's events up to a stop string, without earlier calls. Calls are counted from 0."""
        # A healed call is sent, so healing has succeeded.
        if events and self._unhealed is not None:
            self._unhealed = None
            self.healings = [*self.healings[:-1], (self.healings[-1][0], True)]
        # Wait for the answer's next events, since events that were sent can't be taken back if healing fails.
        if self._before and events:
            events, self._before = [*self._before, *events], []
        if events and self._reasoned is None:
            self._count_reasoning(events, tokens)
        if self._skipped:
            less = self._skipped
            # Count from this answer's first call: if the answer continues after two calls, the parser's call 2 becomes call 0.
            events = [replace(one, index=one.index - less) if isinstance(one, _OF_CALLS) else one for one in events]
        for one in events:
            self.broken += type(one) is unrender.Malformed
            if isinstance(one, unrender.ToolCallFinished):
                self.full = self.full or one.index + 1 >= MAX_ITEMS
                self._check(one)
        if self.full:
            # An engine may send many tokens at once. Calls after the last allowed one are not part of this answer.
            events = [one for one in events if not isinstance(one, _OF_CALLS) or one.index < MAX_ITEMS]
        if self._stops is not None:
            events = [] if self.stopped_by else list(self._up_to_stop(events, self._stops))
        if self._own is not None:
            self._own += events
        return events

    def _check(self, event: unrender.ToolCallFinished) -> None:
        """Add a warning if a complete call violates its tool's schema."""
        call = self.parser.message.tool_calls[event.index + self._skipped]
        with suppress(unrender.GrammarError):  # an invalid schema can't be used to validate the call
            if event.status == "complete" and call.problems():
                self.mismatched.append(f"tool_calls[{event.index}]: the arguments violate the schema of {call.name!r}")

    def _count_reasoning(self, events: Sequence[unrender.Event], tokens: int) -> None:
        # Reasoning can only be the first part of an answer. An answer that starts with any other event has no reasoning tokens. The first
        # event of another kind ends reasoning, and the tokens of its piece count as content.
        self._thinking = self._thinking or type(events[0]) is unrender.ReasoningText
        if not self._thinking:
            self._reasoned = 0
        elif type(events[-1]) is not unrender.ReasoningText:
            self._reasoned = self._tokens - tokens

    def _up_to_stop(self, events: Sequence[unrender.Event], stops: _Stops) -> Iterator[unrender.Event]:
        for event in events:
            # A Malformed event refers to earlier text, so keep holding `_held`.
            if isinstance(event, unrender.Malformed):
                yield event
                continue
            text = self._held + (event.text if isinstance(event, unrender.ContentText) else "")
            at, self.stopped_by = stops.decided(text, more=isinstance(event, unrender.ContentText))
            self._held = text[at:]
            # "One ST" + "OP two" with the stop string "STOP": "One " is sent now; "ST" is held, and then never sent.
            if at:
                yield unrender.ContentText(text[:at])
            if self.stopped_by:
                return
            if not isinstance(event, unrender.ContentText):
                yield event


def _untold(events: Iterable[unrender.Event], told: Iterable[unrender.Event]) -> Iterator[unrender.Event]:
    """Yield the events of an answer that is parsed again, without the events that were already sent."""
    left = dict.fromkeys((unrender.ContentText, unrender.ReasoningText), 0)
    calls = 0
    for one in told:
        calls += isinstance(one, unrender.ToolCallFinished)
        if isinstance(one, unrender.ContentText | unrender.ReasoningText):
            left[type(one)] += len(one.text)
    for one in events:
        if isinstance(one, unrender.ContentText | unrender.ReasoningText):
            kind, skipped = type(one), min(left[type(one)], len(one.text))
            left[kind] -= skipped
            if skipped < len(one.text):
                yield kind(one.text[skipped:])
        elif isinstance(one, _OF_CALLS) and one.index >= calls:
            yield one


class _Stops:
    """Finds the first stop string in streamed text."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = sorted(stops, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._stops)))

    def decided(self, text: str, *, more: bool) -> tuple[int, str]:
        """Return the position up to which the text is final, and the stop string at that position, or "" if there is none.

        If `more` text may follow, the start of a possible stop string isn't final: with "STOP", only "One " of "One ST" is final.
        """
        end = len(text)
        # Only the end of the text can be an incomplete stop string.
        for at in range(max(end - len(self._stops[0]) + 1, 0), end) if more else ():
            if any(len(stop) > end - at and stop.startswith(text[at:]) for stop in self._stops):
                end = at
                break
        found = self._pattern.search(text)
        return (found.start(), found[0]) if found and found.start() <= end else (end, "")
