"""A judge of a parsed text: text that is lost, doubled, or read differently when fed differently.

The judge shares no code with parser, spans and machine. It uses only what every caller sees (events, message, spans)
and the Format as data. Its laws hold for every Format, every text and every way of feeding:

- spans cover the text without gap or overlap, to its end;
- the text under spans of content is the message's content, and the same for reasoning;
- text that couldn't be read is in the content, in a failed call, or in a report;
- spans of markers contain only words that the Format declares, and spans of layout only whitespace;
- the text under a complete call's spans of arguments is in its arguments, which are one JSON object (`arguments`);
- events add up to the message, and every way of feeding gives the same result (`feeding`).

The exceptions have names: `OPTIONAL`, `PASSED_OVER`, `REPORTED`, and `SAME` in `arguments`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from random import Random
from typing import Any

from judge.arguments import argued, named
from judge.feeding import WAYS, is_mention, unreported, whole
from judge.outcome import Outcome, expect, syntaxes

from unrender import ChatTemplate, ContentText, Malformed, ReasoningText, Turn
from unrender.format import Format, Slot
from unrender.format.declared import known_reasoning

OPTIONAL = frozenset(("malformed",))
"""Roles of text that may be content or be left out. Only a Format that cleans its content has them."""
PASSED_OVER = re.compile(r"""(?:"[^"\\]{0,200}"|'[^'\\]{0,200}'|\w+)\s*:\s*""")
"""The name of an envelope's field. If the parser has no use for its value, both are skipped."""
REPORTED = "another"
"""A word in the event for a repeated field, which is skipped with its value."""
_VALUE = re.compile(r"""(?s)"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[-+\w.]+|[\[{](?:"(?:[^"\\]|\\.)*"|[^\[\]{}"])*[\]}]""")
"""A text, a word or a flat list, whether it's JSON or not."""
_WORD = re.compile(r"\w+|[^\w\s]")
_JSON = frozenset("{}[]\":,'")
_FENCE = re.compile(r"```\w*")


def turn_of(format: Format, prompt: str, tools: Sequence[dict[str, Any]] | None) -> Turn:
    """Return a turn of any Format whose prompt ends in `prompt`."""
    template = ChatTemplate.from_string("{{ messages[-1].content }}", format=format)
    return template.prepare([{"role": "user", "content": prompt}], tools=tools)


def check_judged(turn: Turn, text: str, seed: int) -> Outcome:
    """Return the reading of the text. Raises `Lost` for the first broken law."""
    outcome = whole(turn, text)
    covered(outcome, text)
    accounted(turn, outcome, text)
    marked(turn.format, outcome, text)
    argued(turn.format, outcome, text)
    named(outcome, text)
    reported = [event for event in outcome.events if isinstance(event, Malformed) and not event.ends_reasoning]
    mentions = [*map(is_mention, reported)]
    for name, way in WAYS.items():
        # As a token, a marker inside a damaged call ends the call elsewhere.
        if name == "token ids" and any(mentions) and not all(mentions):
            continue
        found = way(turn, text, Random(seed))
        # Spelled in ordinary tokens, a mentioned marker is no marker at all. So what is reported differs, and what is said doesn't.
        if name == "token ids" and any(mentions):
            same(name, unreported(outcome), unreported(found))
        else:
            same(name, outcome, found)
    return outcome


def same(way: str, expected: Outcome, found: Outcome) -> None:
    """Expect the same outcome."""
    for part in ("message", "spans", "events"):
        one, other = getattr(expected, part), getattr(found, part)
        expect(f"{way}: other {part}", one == other, one, other)


def covered(outcome: Outcome, text: str) -> None:
    """Expect the spans to cover the whole text."""
    at = 0
    for span in outcome.spans:
        expect("a gap or an overlap", span.start == at < span.end, at, span)
        at = span.end
    expect("spans that end too early", at == len(text), at, len(text))


def accounted(turn: Turn, outcome: Outcome, text: str) -> None:
    """Expect content and reasoning to equal the text under their spans, and the sum of their events."""
    message, format = outcome.message, turn.format
    ends = [event.text for event in outcome.events if isinstance(event, Malformed) and event.ends_reasoning]
    for role, kind, said in (
        ("content", ContentText, message.content),
        ("reasoning", ReasoningText, message.reasoning),
    ):
        given = "".join(event.text for event in outcome.events if isinstance(event, kind))
        streamed = said
        # Reasoning whose start marker is missing was streamed as content, including its end marker.
        if ends:
            later = "".join(event.text for event in outcome.events if isinstance(event, ReasoningText))
            first = message.reasoning.removesuffix(later)
            streamed = first + ends[0] + message.content if role == "content" else message.reasoning[len(first) :]
        expect(f"events that do not add up to the {role}", given == streamed, given, streamed)
        under = [(span.role.value, text[span.start : span.end]) for span in outcome.spans]
        options = OPTIONAL if format.cleans_content and role == "content" else frozenset()
        expected = [
            re.escape(piece) if of == role else f"(?:{re.escape(piece)})?"
            for of, piece in under
            if of == role or of in options
        ]
        found = re.fullmatch("".join(["(.*?)", *expected]), said, re.DOTALL)
        begun = turn.prefill if role == "reasoning" else ""  # The text doesn't contain the prefill.
        expect(f"{role} that is not the text under its spans", bool(found and found.group(1) in begun), said, under)
    for role in () if format.cleans_content else OPTIONAL:
        for piece in outcome.under(text, role):
            expect("text that is left out", not _left_out(piece, outcome), piece, outcome.spans)
    blank = "".join(outcome.under(text, "layout"))
    expect("layout that is not whitespace", not blank.strip(), blank)


def _left_out(piece: str, outcome: Outcome) -> str:
    """Return the part of a text that neither a failed call nor a report contains."""
    reported = [event.text for event in outcome.events if isinstance(event, Malformed)]
    # The longest first: a report of `<` must not remove the start of `</tool_c>`, which has its own report.
    for kept in sorted((*(call.text for call in outcome.message.failed_calls), *reported), key=len, reverse=True):
        piece = piece.replace(kept, "", 1)
    return piece.strip()


def marked(format: Format, outcome: Outcome, text: str) -> None:
    """Expect markers to consist of words that the Format declares, JSON's punctuation, names and ids."""
    if any(REPORTED in event.expected for event in outcome.events if isinstance(event, Malformed)):
        return
    names = (*outcome.under(text, "name"), *outcome.under(text, "id"))
    allowed = words(format).union(*map(_WORD.findall, names))
    if any(syntax.envelope for syntax in syntaxes(format)):
        text = _without_fields(outcome, text)
    for span in outcome.spans if not _free_words(format) else ():
        if span.role.value == "marker":
            piece = _FENCE.sub("", text[span.start : span.end])
            unknown = [word for word in _WORD.findall(piece) if not _made_of(word, allowed)]
            expect("a marker that the Format does not declare", not unknown, unknown, piece)


def _made_of(word: str, allowed: frozenset[str]) -> bool:
    """Return whether a word is an allowed word or a sequence of them: two markers may be adjacent."""
    ends = [0]
    for end in range(1, len(word) + 1):
        if any(word[start:end] in allowed for start in ends):
            ends.append(end)
    return ends[-1] == len(word)


def _without_fields(outcome: Outcome, text: str) -> str:
    """Return the text with blanks for each extra field of an envelope under markers, including its value."""
    for start, stop in _runs(outcome):
        found = PASSED_OVER.search(text, start, stop)
        while found:
            value = _VALUE.match(text, found.end(), stop)
            end = value.end() if value else found.end()
            with suppress(ValueError, RecursionError):
                end = json.JSONDecoder(strict=False).raw_decode(text[:stop], found.end())[1]
            text = text[: found.start()] + " " * (end - found.start()) + text[end:]
            found = PASSED_OVER.search(text, end, stop)
    return text


def _runs(outcome: Outcome) -> Iterator[tuple[int, int]]:
    """Yield the ranges of markers and the layout between them."""
    start = 0
    for span in outcome.spans:
        if span.role.value not in ("marker", "layout"):
            yield start, span.start
            start = span.end
    yield start, outcome.spans[-1].end if outcome.spans else 0


def _free_words(format: Format) -> bool:
    """Return whether a call may contain words without a meaning, in `ANY` and `TYPE` slots."""
    parts = [part for syntax in syntaxes(format) for part in (*syntax.function, *syntax.arguments.entry)]
    return Slot.ANY in parts or Slot.TYPE in parts


@lru_cache(maxsize=512)
def words(format: Format) -> frozenset[str]:
    """Return the words and the punctuation in all texts of a Format."""
    known = [marker for pair in known_reasoning() for marker in (pair.start, pair.end)]
    texts = [*_texts(format.to_dict()), *(known if format.undeclared_reasoning else ())]
    return frozenset(word for text in texts for word in _WORD.findall(text)) | _JSON | {"CDATA", "function", "type"}


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _texts(item)
