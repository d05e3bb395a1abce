"""Computes the FOLLOW sets of calls: the text that may come after a name, after a value, and after all arguments.

Rule: the parser accepts more than the grammar generates. It matches the end of a value in pieces, with optional whitespace between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from unrender.answer import (
    Calls,
    Element,
    Elements,
    Marker,
    is_distinctive,
    is_phrase,
    literal_of,
    tokens,
    without_fences,
)
from unrender.format import Slot
from unrender.limits import MAX_SMALL, MAX_WORD
from unrender.values.marked_ends import MarkedEnds
from unrender.values.unmarked_ends import Follow

_NAME_KEY = re.compile(r'(\{?"[^"]*")\s*:\s*"$')


# Ends of values.


def open_ends(calls: Calls, ends: Iterable[str] = (), trail: str = "") -> Follow:
    """Return a finder for the ends of values that have no end marker.

    `ends` contains the end-of-turn markers. `trail` is whitespace that may precede an end-of-turn marker.
    """
    arguments, function = calls.arguments, calls.function
    name, at = function.index(Slot.NAME), function.index(Slot.ARGUMENTS)
    after_name: Elements = (arguments.open,) if at == name + 1 else function[name + 1 : name + 2]
    return Follow(
        in_code=arguments.in_code,
        entry=as_skeleton(arguments.entry),
        between=arguments.between,
        closing=as_skeleton((arguments.close, *function[at + 1 :], calls.call_close, calls.close)),
        further=as_skeleton((calls.separator, calls.call_open, *function[: name + 1], *after_name)),
        ends=tuple(sorted(ends)),
        trail=trail,
    )


def as_skeleton(pieces: Iterable[Element]) -> tuple[str | Slot, ...]:
    """Convert markers to text, and leave slots unchanged."""
    return tuple(piece.text if isinstance(piece, Marker) else piece for piece in pieces)


def after_arguments(calls: Calls) -> list[str]:
    """Return the strings that may follow a call's last argument: the end of the call or of all calls, or the next call."""
    begins = calls.call_open.pieces or first_pieces(calls.function[0])
    # If `<|end|>calls<|sep|>` closes calls, but `<|sep|>` also occurs in the markers of arguments, `<|sep|>` alone isn't a closer.
    inside = [literal_of(piece).strip() for piece in (*calls.arguments.entry, *calls.function[: calls.last_slot])]
    closers = [it for it in calls.all_closers if len(it) < 2 or not any(it in text != it for text in inside)]
    # If two markers start with the same piece, as `</|x| call>` and `</|x| value>` do, use the complete marker.
    whole = [marker.core for marker in (*calls.closing, calls.close) if marker and marker.pieces[0] not in closers]
    return [*closers, *without_fences(whole), *without_fences(begins)]


def first_pieces(*parts: Element) -> tuple[str, ...]:
    """Return a tuple with the first piece of the first part, or an empty tuple if that part isn't a marker."""
    return next((part.pieces[:1] for part in parts[:1] if isinstance(part, Marker)), ())


def after_part(calls: Calls, i: int) -> list[str]:
    """Return the strings that may follow slot `i` of a call. Arguments, and meaningless words between parts, may be missing."""
    arguments = calls.arguments
    found: list[str] = []
    for part in calls.function[i + 1 :]:
        if part is Slot.ARGUMENTS:
            found += [text for piece in (arguments.open, *arguments.entry[:1]) for text in first_pieces(piece)]
            found += tokens(arguments.empty or "")[:1]
        else:
            found += tokens(literal_of(part))[:1]
        # A call without arguments may consist of just a tool's name. If arguments are optional, the text after the arguments also ends the
        # name.
        left_out = part is Slot.ARGUMENTS and (arguments.entry or arguments.empty == "")
        if literal_of(part).strip() or (isinstance(part, Slot) and part is not Slot.ANY and not left_out):
            return found
    return [*found, *after_arguments(calls), *calls.separator.pieces[:1]]


def after_entries(calls: Calls) -> list[str]:
    """Return the strings that may follow the last argument if arguments have their own markers."""
    # If no marker closes the arguments, they end at the end of the call or at the start of the next call.
    at = calls.function.index(Slot.ARGUMENTS) + 1
    inside = first_pieces(calls.function[at]) if at < calls.last_slot else ()
    ends = calls.arguments.close.pieces[:1] or (*inside, *after_arguments(calls))
    closing = (calls.arguments.close, *calls.function[at:], calls.call_close, calls.close)
    return [
        *ends,
        *calls.separator.pieces[:1],
        *(["```"] if any("```" in literal_of(piece) for piece in closing) else []),
    ]


def after_value(calls: Calls) -> list[str]:
    """Return the strings that end a raw value, with all, some or none of their leading whitespace."""
    arguments, closer = calls.arguments, calls.arguments.closer
    if closer:
        texts = [closer.lead + text for text in (*(it.core for it in closer.spelled), *after_closer(calls))]
    else:
        # If there is no separator, as in `|>a<x>true|>b<x>1`, a value ends at the text before the next key.
        between = (
            arguments.separator.text if arguments.separator else literal_of(arguments.entry[0]),
            arguments.close.text,
        )
        texts = [*(closer.text + text.rstrip() for text in between if text.strip()), *after_arguments(calls)]
    # Whitespace before the closer, e.g. the line break in `\n</v>`, isn't part of the value and is optional.
    variants = [text[k:] for text in texts for k in range(len(text) - len(text.lstrip()) + 1)]
    return [*variants, *(form for _, form in arguments.codec.escapes)]


def after_closer(calls: Calls) -> tuple[str, ...]:
    """Return the end of the function and the end of the call as one string. This string is long enough not to occur in a value by chance."""
    function = literal_of(calls.function[-1]).strip()
    whole = (function + calls.call_close.text).strip()
    return (whole,) if function and whole != function else ()


# Start of a call.


def call_signs(calls: Calls) -> Iterator[str]:
    """Yield the strings that identify a call: markers, or markers together with a tool's name."""
    chain, names = calls.openers, [tool.name for tool in calls.tools or ()]
    if not chain:
        after_name = literal_of(calls.function[1]) + _begins_arguments(calls)
        yield from (name + after_name for name in names if calls.function[0] is Slot.NAME)
        return
    heads = ["{" if calls.envelope and marker is calls.function[0] else marker.pieces[0] for marker in chain]
    shown = [calls.shows(head, outermost=not at) for at, head in enumerate(heads)]
    for marker in (marker for marker, alone in zip(chain, shown, strict=True) if alone):
        yield from (spelling.pieces[0].rstrip("[{") for spelling in marker.spelled)
    if all(alone or (at and not is_distinctive(heads[at])) for at, alone in enumerate(shown)):
        return  # No other marker can start a call.
    hidden = dict.fromkeys(head for head, alone in zip(heads, shown, strict=True) if not alone)
    said = [head for head in hidden if is_distinctive(head) and not head.startswith("```")]
    # `Action:\n[` occurs only in this format, so it identifies a call. `{"name": "` and `Action:` also occur in prose, so they identify a
    # call only together with a tool's name.
    if calls.own and not shown[0] and is_phrase(chain[0].core):
        yield chain[0].core
    elif not said or not calls.envelope:
        yield from _named(calls, chain, names)
    # Whitespace is allowed before the JSON in `[TOOL_CALLS][{...}`.
    if calls.envelope:
        yield from (head + space + bracket for head in said for space in ("", " ", "\n") for bracket in "[{")


def _named(calls: Calls, chain: list[Marker], names: list[str]) -> Iterator[str]:
    """Yield the text immediately before each tool's name, together with the name, e.g. `<function=now` or `{"name": "now"`."""
    # Limit the total length of all names, since the automaton has a state for each character.
    cut = MAX_SMALL // max(1, len(names))
    at = calls.function.index(Slot.NAME) if Slot.NAME in calls.function else 0
    before = literal_of(calls.function[at - 1]) if at else ""
    if calls.envelope and (key := _NAME_KEY.search(before)):
        yield from (key[1] + space + '"' + f'{name}"'[:cut] for space in (": ", ":") for name in names or [""])
    elif at > 1:
        yield "".join(marker.text for marker in chain)
    else:
        before = before.lstrip() or chain[-1].text.lstrip()
        yield from (before + name[: max(cut, 1)] for name in names or [""])


def _begins_arguments(calls: Calls) -> str:
    """Return the text at the start of the arguments. Returns "" if more than two parts of a call precede the arguments."""
    arguments = calls.arguments
    # A call starts with a name and the start of its arguments, as in `f({` or `f(a=`. A name and a parenthesis alone may also occur in
    # prose.
    if Slot.ARGUMENTS not in calls.function[:3]:
        return ""
    return arguments.open.text if arguments.entry or arguments.open.text else "{"


# Arguments outside of their call.


@dataclass(frozen=True)
class ArgumentMarkers:
    """Finds arguments by the markers that only arguments contain."""

    opener: str
    """The first piece of an argument's start marker."""
    after_key: str
    """Text after the name of an argument."""
    value: MarkedEnds | None
    """The markers of values, if values have end markers."""

    def of(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the start markers of the arguments `keys`, and the end marker of a value."""
        closers = self.value.close if self.value and not self.value.named else ()
        heads = (self.opener + key + self.after_key for key in keys) if self.opener or self.after_key else ()
        return tuple(filter(is_distinctive, (*closers, *heads)))

    def key_at_end(self, text: str) -> str:
        """Return the name of the argument with which `text` ends, or "" if there is none. The end of the argument may be missing."""
        head, pattern = self._pattern
        at = text.rfind(head) if head else -1
        found = pattern.match(text, at) if at >= 0 else None
        if not found:
            return ""
        # An argument without its end starts a line, unlike a marker that is mentioned in a sentence.
        ended = found.lastgroup != "key" or not text[found.end("key") + len(self.after_key) :].strip()
        return found["key"] if ended or not text[:at].rpartition("\n")[2].strip() else ""

    @cached_property
    def _pattern(self) -> tuple[str, re.Pattern[str]]:
        """The start of a pattern, and the pattern, which matches an argument at the end of a text, or its end tag with its name."""
        value, key = self.value, rf"(?P<key>[^\s<>]{{1,{MAX_WORD}}}?)"
        if value is None or not (value.named or is_distinctive(self.opener)):
            return "", re.compile("")
        close, *rest = map(re.escape, value.close)
        if value.named:
            return value.close[0], re.compile(rf"{close}{key}(?P<end>{rest[0]})\s*\Z")
        start = rf"{re.escape(self.opener)}{key}{re.escape(self.after_key)}"
        return self.opener, re.compile(rf"{start}(?:(?P<end>.*{close}\s*\Z)|(?!.*{close}))", re.DOTALL)
