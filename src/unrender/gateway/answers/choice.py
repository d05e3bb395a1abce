"""Turns the pieces of one choice into events: parsing, stop texts, token counts and the finish reason.

Rule: work per piece does not grow with what came before. Stop texts are searched only in the content; text that could become one is
buffered, at most as long as the longest.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import unrender
from unrender.gateway.answers.turns import grammar_of
from unrender.gateway.backends.backend import EngineCapabilities, EngineGrammar, Piece
from unrender.gateway.surfaces.surface import Outcome
from unrender.grammar import Role
from unrender.limits import MAX_ITEMS
from unrender.openai import Usage, message_of
from unrender.types import Healing

_HALF = "\ufffd"
"""The character that replaces a part of one."""
_OF_CALLS = (unrender.ToolCallStarted, unrender.ArgumentsText, unrender.ToolCallFinished)


@lru_cache(128)
def _one_of(texts: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of one group that matches any of the texts, the longest first; it matches nothing if there are none."""
    return re.compile(f"({'|'.join(map(re.escape, sorted(texts, key=len, reverse=True)))})" if texts else r"((?!))")


class Choice:
    """One answer as it is generated."""

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
        self.healed: int = 0
        """The number of calls that broke and were healed."""
        self._turn, self._policy = turn, policy
        self._heals = 0 if logprobs or turn.is_continuation else heals
        self._broke: tuple[list[unrender.Event], int] | None = None
        """The unsent events in which a call broke, and the number of tokens in their piece."""
        self.broken: int = 0
        """Number of places that the format does not allow."""
        self.finish_reason: str | None = None
        self.stopped_by: str = ""
        """The stop text that has ended the content."""
        self.full: bool = False
        """The answer has as many calls as one may have."""
        self.usage: Usage | None = None
        """Token counts from the engine."""
        self._texts: list[str] = []
        self._ids_match = True
        """False if the engine sends no ids, or once a special token wasn't in its piece's text."""
        self._stops = _Stops(stop) if stop else None
        self._before: list[unrender.Event] = []
        """The events of a call that the prompt begins and this answer continues."""
        self._skipped = 0
        """Calls that were there before."""
        if turn.is_continuation:
            # Text that was there before is not part of this answer, except a call that is still open: clients need its name.
            begun = [event for event in self.parser.feed("") if isinstance(event, _OF_CALLS)]
            ended = {event.index for event in begun if isinstance(event, unrender.ToolCallFinished)}
            self._before = [event for event in begun if event.index not in ended]
            self._skipped = sum(call.status != "open" for call in self.parser.message.tool_calls)
        # Otherwise the parser's own message says it all, and no event is kept.
        self._own: list[unrender.Event] | None = [] if stop or turn.is_continuation or self._heals else None
        """The events of this answer, where the parser's message holds more than those, or the parser may be replaced."""
        self._held = ""
        self._tokens = 0
        self._thinking = False
        self._reasoned: int | None = None
        """Number of tokens when reasoning ended; None before that."""
        self._length = 0
        self._logprobs: deque[tuple[int, Mapping[str, Any]]] | None = deque() if logprobs else None
        """Tokens that may be content, with the place in the output where each ends."""
        self._early: list[Mapping[str, Any]] = []
        """Tokens that came before their text: the first half of a character has none."""

    @property
    def done(self) -> bool:
        """True when the rest of the engine's output is not needed."""
        return self.full or bool(self.stopped_by)

    @property
    def broke(self) -> bool:
        """True after a call broke that might be healed. `healing` tries that, and `release` returns the events unchanged."""
        return self._broke is not None

    def feed(self, piece: Piece) -> list[unrender.Event]:
        """Take a piece; return the events that are final now."""
        self.finish_reason = piece.finish or self.finish_reason
        # Of an answer that was healed, the engine has counted the last part alone.
        self.usage = None if self.healed else piece.usage or self.usage
        self._tokens += piece.tokens
        if self._logprobs is not None:
            self._early += piece.logprobs
            if piece.text:
                self._place(self._logprobs, piece.text)
        if not piece.text:
            return []
        self._texts.append(piece.text)
        return self._unbroken(list(self._parsed(piece)), piece.tokens)

    def _parsed(self, piece: Piece) -> Iterator[unrender.Event]:
        """Feed a piece to the parser, each special token in it as one, so that a marker in ordinary text is a quotation.

        If the piece's text spells a marker as well, the parser isn't told which of the two is the token. If a special token has no text,
        it isn't told anything from there on.
        """
        first = len(self._texts) == 1
        self._ids_match = self._ids_match and (piece.special is not None or not first)
        if piece.special is None or not self._ids_match:
            yield from self.parser.feed(piece.text)
            return
        if first:
            self.parser._quote_only("\0".join(piece.special.known))
        spelled = _one_of(piece.special.known).split(piece.text)
        self._ids_match = not Counter(piece.special.found) - Counter(spelled[1::2])
        if piece.special.found and (*spelled[1::2],) != piece.special.found:
            yield from self.parser.feed(piece.text)
            return
        # Without a special token in the piece, all of its text is ordinary.
        for at, text in enumerate(spelled if piece.special.found else [piece.text]):
            if text:
                yield from self.parser.feed(text, special=at % 2 == 1)

    def finish(self) -> list[unrender.Event]:
        """End the answer; return the last events."""
        # After a stop text the parser has not seen the end: its last events would be of text that nobody wants.
        return [] if self.stopped_by else self._unbroken(self.parser.finish(self.finish_reason), 0)

    def healing(self, engine: EngineCapabilities) -> tuple[Healing | None, EngineGrammar | None]:
        """Return the continuation of the broken call and its grammar, or None where it can't be healed."""
        self._heals -= 1
        found = self._turn.heal(self.text, finish_reason=self.finish_reason, policy=self._policy)
        return found, grammar_of(found, replace(engine, lazy=False)).grammar if found else None

    def go_on(self, found: Healing) -> None:
        """Prepare for the rest of a healed call: keep the good part of the answer and drop what follows it."""
        kept = self.text[: found.cut]
        self.parser = self._turn.parser(policy=self._policy)
        self._before += _untold(self.parser.feed(kept), self._own or [])
        self._ids_match = False
        self._texts, self._broke, self.finish_reason, self.usage = [kept], None, None, None
        self.healed += 1

    def release(self) -> list[unrender.Event]:
        """Return the events in which a call broke that is not healed."""
        events, tokens = self._broke or ([], 0)
        self._broke = None
        return self._taken(events, tokens)

    def _unbroken(self, events: list[unrender.Event], tokens: int) -> list[unrender.Event]:
        """Return events, or hold them where a call broke in them that may be healed."""
        if self._heals > 0 and any(self._turn._breaks(event, self.parser) for event in events):
            self._broke = (events, tokens)
            return []
        return self._taken(events, tokens)

    @property
    def text(self) -> str:
        """The engine's whole output so far."""
        return "".join(self._texts)

    @property
    def outcome(self) -> Outcome:
        """Message and finish reason of the choice. Read it after `finish`."""
        message: unrender.Message = self.parser.message if self._own is None else message_of(self._own)
        message = replace(message, tool_calls=message.tool_calls[:MAX_ITEMS])
        reason = "stop" if self.stopped_by else self.finish_reason
        return Outcome(message=message, reason=reason, stopped_by=self.stopped_by)

    @property
    def counted(self) -> Usage:
        """The tokens of the choice, by the engine's count if it gives one."""
        usage = self.usage or Usage(prompt_tokens=0, completion_tokens=self._tokens)
        whole = usage.completion_tokens
        # An answer that has thought to its end has no place where reasoning ended.
        reasoned = self._reasoned if self._reasoned is not None else whole if self._thinking else 0
        return replace(usage, reasoning_tokens=min(reasoned, whole))

    def content_logprobs(self) -> list[Mapping[str, Any]]:
        """Return the tokens of content that have become final since the last call."""
        if not self._logprobs or self._logprobs[0][0] > (settled := self.parser._settled):
            return []
        found = []
        spans = self.parser.spans
        ends = [span.end for span in spans]
        # Only what the parser has settled has a role: "<" may still become a marker, whose token no client wants.
        while self._logprobs and self._logprobs[0][0] <= settled:
            end, token = self._logprobs.popleft()
            if spans[bisect_left(ends, end)].role is Role.CONTENT:
                found.append(token)
        return found

    def _place(self, places: deque[tuple[int, Mapping[str, Any]]], text: str) -> None:
        """Note where each token of a text ends; a token that holds only a part of a character ends with the text."""
        tokens, self._early = self._early, []
        at, self._length = self._length, self._length + len(text)
        # Tokens are laid on the text one after the other: "It ", "rains" end at 3 and 8. Where their texts do not add up to
        # the piece, a token was half a character, which the engine writes as a replacement: they all end with the piece.
        whole = sum(len(str(token["token"])) for token in tokens) == len(text)
        if tokens and not whole and all(token.get("bytes") == [*_HALF.encode()] for token in tokens):
            # "👋" of three tokens, each "\ufffd" to an engine that tells no bytes: clients join bytes, so the last one has them all.
            *halves, last = tokens
            tokens = [*({**half, "bytes": []} for half in halves), {**last, "bytes": [*text.encode(errors="replace")]}]
        for token in tokens:
            at = at + len(str(token["token"])) if whole else self._length
            places.append((at, token))

    def _taken(self, events: list[unrender.Event], tokens: int) -> list[unrender.Event]:
        """Return the events of this answer among the parser's, its calls counted from 0, up to a stop text."""
        if self._before:
            events, self._before = [*self._before, *events], []
        if events and self._reasoned is None:
            self._count_reasoning(events, tokens)
        if self._skipped:
            less = self._skipped
            # "call 2" of the parser is call 0 of an answer that goes on after two calls.
            events = [replace(one, index=one.index - less) if isinstance(one, _OF_CALLS) else one for one in events]
        for one in events:
            self.broken += type(one) is unrender.Malformed
            self.full = self.full or (type(one) is unrender.ToolCallFinished and one.index + 1 >= MAX_ITEMS)
        if self.full:
            # An engine may send many tokens at once: what begins after the last call is not of this answer.
            events = [one for one in events if not isinstance(one, _OF_CALLS) or one.index < MAX_ITEMS]
        if self._stops is not None:
            events = [] if self.stopped_by else list(self._up_to_stop(events, self._stops))
        if self._own is not None:
            self._own += events
        return events

    def _count_reasoning(self, events: Sequence[unrender.Event], tokens: int) -> None:
        # Reasoning comes first or not at all. An answer that begins with anything else has no tokens of it; one that has
        # thought until now ends its reasoning with the first event of another kind, so this piece's tokens count as content.
        self._thinking = self._thinking or type(events[0]) is unrender.ReasoningText
        if not self._thinking:
            self._reasoned = 0
        elif type(events[-1]) is not unrender.ReasoningText:
            self._reasoned = self._tokens - tokens

    def _up_to_stop(self, events: Sequence[unrender.Event], stops: _Stops) -> Iterator[unrender.Event]:
        for event in events:
            if isinstance(event, unrender.Malformed):  # says something of the text before, and ends none
                yield event
                continue
            text = self._held + (event.text if isinstance(event, unrender.ContentText) else "")
            at, self.stopped_by = stops.decided(text, more=isinstance(event, unrender.ContentText))
            self._held = text[at:]
            # "One ST" + "OP two" with the stop "STOP": "One " goes out now, "ST" is held, and then never sent.
            if at:
                yield unrender.ContentText(text[:at])
            if self.stopped_by:
                return
            if not isinstance(event, unrender.ContentText):
                yield event


def _untold(events: Iterable[unrender.Event], told: Iterable[unrender.Event]) -> Iterator[unrender.Event]:
    """Yield the events of an answer that is read once more, without what was told of it the first time."""
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
    """Finds the first of some texts in text that grows."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = sorted(stops, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._stops)))

    def decided(self, text: str, *, more: bool) -> tuple[int, str]:
        """Return where `text` is certain to end, and the stop text there; "" where it ends at none.

        Where `more` may come, what could become a stop text is not certain: of "One ST" only "One " is, before "STOP".
        """
        end = len(text)
        # Only the tail can still become one, from a stop text's length before the end on.
        for at in range(max(end - len(self._stops[0]) + 1, 0), end) if more else ():
            if any(len(stop) > end - at and stop.startswith(text[at:]) for stop in self._stops):
                end = at
                break
        found = self._pattern.search(text)
        return (found.start(), found[0]) if found and found.start() <= end else (end, "")
