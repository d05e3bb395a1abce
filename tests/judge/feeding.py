"""All ways in which a caller can feed a text to a turn's parser.

`WAYS` contains all of them; each must give the same result as `whole`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from judge.outcome import Outcome

from unrender import ArgumentsText, ContentText, Event, Malformed, Parser, ReasoningText, Turn
from unrender.testing import numbered_id
from unrender.token_ids import TokenParser

_MENTIONED = ("an unquoted", "marker of reasoning")
"""Words of the events that report a marker as text: of a quoted call or content, or of reasoning that has no start or no end."""


def is_mention(event: Event) -> bool:
    """Return whether an event reports that a marker is text."""
    return isinstance(event, Malformed) and any(words in event.expected for words in _MENTIONED)


def unreported(outcome: Outcome) -> Outcome:
    """Return the message, and the events that report nothing."""
    said = [event for event in outcome.events if not isinstance(event, Malformed)]
    return Outcome(tuple(_joined(said)), outcome.message, ())


def _parser(turn: Turn) -> Parser:
    return turn.parser(ids=numbered_id)


def _outcome(parser: Parser, events: Sequence[Event]) -> Outcome:
    return Outcome(tuple(_joined(events)), parser.message, parser.spans)


def _joined(events: Sequence[Event]) -> list[Event]:
    found: list[Event] = []
    for event in events:
        both = _as_one(found[-1], event) if found else None
        found[-1:] = [both] if both else [*found[-1:], event]
    return found


def _as_one(one: Event, other: Event) -> Event | None:
    match one, other:
        case ContentText(before), ContentText(after):
            return ContentText(before + after)
        case ReasoningText(before), ReasoningText(after):
            return ReasoningText(before + after)
        case ArgumentsText(call, before), ArgumentsText(index, after) if call == index:
            return ArgumentsText(index, before + after)
    return None


def _fed(parser: Parser, chunks: Sequence[str]) -> list[Event]:
    return [event for chunk in chunks for event in parser.feed(chunk)]


def _chunks(text: str, random: Random) -> list[str]:
    chunks, at = [], 0
    while at < len(text):
        size = random.choice((1, 1, 2, 3, 4, 8, 30))
        chunks.append(text[at : at + size])
        at += size
    return chunks


def whole(turn: Turn, text: str) -> Outcome:
    """Feed the text in one piece."""
    parser = _parser(turn)
    return _outcome(parser, [*parser.feed(text), *parser.finish()])


def _singly(turn: Turn, text: str, _: Random) -> Outcome:
    parser = _parser(turn)
    return _outcome(parser, [*_fed(parser, list(text)), *parser.finish()])


def _randomly(turn: Turn, text: str, random: Random) -> Outcome:
    parser = _parser(turn)
    return _outcome(parser, [*_fed(parser, _chunks(text, random)), *parser.finish()])


def _with_the_end(turn: Turn, text: str, _: Random) -> Outcome:
    parser = _parser(turn)
    return _outcome(parser, parser.finish(text=text))


def _rest_with_the_end(turn: Turn, text: str, random: Random) -> Outcome:
    parser, at = _parser(turn), random.randrange(len(text) + 1)
    return _outcome(parser, [*_fed(parser, _chunks(text[:at], random)), *parser.finish(text=text[at:])])


def _copied(turn: Turn, text: str, random: Random) -> Outcome:
    parser, at = _parser(turn), random.randrange(len(text) + 1)
    before = _fed(parser, _chunks(text[:at], random))
    copy = parser.copy()
    _fed(parser, ["<", *_chunks(text, random)])  # The copy must not depend on what the original reads now.
    return _outcome(copy, [*before, *_fed(copy, _chunks(text[at:], random)), *copy.finish()])


def _restored(turn: Turn, text: str, random: Random) -> Outcome:
    parser, at = _parser(turn), random.randrange(len(text) + 1)
    before = _fed(parser, _chunks(text[:at], random))
    other = turn.restore(json.loads(json.dumps(parser.state())), ids=numbered_id)
    return _outcome(other, [*before, *_fed(other, _chunks(text[at:], random)), *other.finish()])


class Letters:
    """A tokenizer with one token per character, plus the special tokens of a format."""

    def __init__(self, special: Sequence[str]) -> None:
        self.special = sorted({token for token in special if token}, key=lambda token: (-len(token), token))
        options = [*map(re.escape, self.special), "."]
        self._tokens = re.compile("|".join(options), re.DOTALL)

    def encode(self, text: str, spelled: Sequence[range] = ()) -> list[int]:
        """Return the ids, preferring the longest special token, except where it begins in a range of `spelled`."""
        ids: list[int] = []
        for found in self._tokens.finditer(text):
            token = found[0]
            is_token = token in self.special and not any(found.start() in of for of in spelled)
            ids += [(1 << 24) + self.special.index(token)] if is_token else map(ord, token)
        return ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of `ids`."""
        return "".join(self.special[id - (1 << 24)] if id >> 24 else chr(id) for id in ids)


def _as_tokens(turn: Turn, text: str, _: Random) -> Outcome:
    parser, tokenizer = _parser(turn), Letters(turn.format.preserved_tokens)
    special = range(1 << 24, (1 << 24) + len(tokenizer.special))
    reader = TokenParser(parser, tokenizer, special_ids=special)
    # A special token counts where the same text is a mention. So if a text mentions markers, its ids spell all that is read as text.
    read = whole(turn, text)
    spans = read.spans if any(map(is_mention, read.events)) else ()
    spelled = [range(span.start, span.end) for span in spans if span.role.value in ("content", "reasoning")]
    events = [event for id in tokenizer.encode(text, spelled) for event in reader.feed(id)]
    return _outcome(parser, [*events, *reader.finish()])


def _parsed(turn: Turn, text: str, _: Random) -> Outcome:
    """`parse` returns only the message, so the events and spans come from `finish`."""
    parser = _parser(turn)
    events = parser.finish(text=text)
    return replace(_outcome(parser, events), message=turn.parse(text, ids=numbered_id))


WAYS: dict[str, Callable[[Turn, str, Random], Outcome]] = {
    "single characters": _singly,
    "random chunks": _randomly,
    "finish(text)": _with_the_end,
    "the rest with finish(text)": _rest_with_the_end,
    "a copy": _copied,
    "a restored parser": _restored,
    "token ids": _as_tokens,
    "parse": _parsed,
}
