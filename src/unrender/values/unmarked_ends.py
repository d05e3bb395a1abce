"""Finds the end of a raw value that has no end marker of its own.

Strategy: such a value may hold commas and brackets, as in `f(query=cats, dogs (small), limit=5)`. It ends where the text
goes on as the syntax says:

- with what is between two arguments, and the name of the next one (`, limit=`);
- with what closes the arguments, and what may follow that;
- where nothing closes them, with the next call or the end of the turn.

Names and white space are bounded in length, so only a short tail may still be such an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import dropwhile, takewhile

from unrender.format import Part, Slot
from unrender.format.parts import Skeleton, text_of
from unrender.limits import MAX_BLANK, MAX_NAME, MAX_OPTIONS
from unrender.values.declared import NO_NAMES, OddNames
from unrender.values.finder import Finder

_GAP = r"\s{0,64}+"
_NAME = r"[^\W\d][\w.\-]{0,63}+"
_BLANK = r"\s"
_LENGTHS = {_GAP: 64, _NAME: 64, _BLANK: 1}
"""The pieces of what may follow that are patterns, with the characters that they may have; others are literal text."""
END = "the end of the output"
"""The end of a value that nothing follows."""


@dataclass(frozen=True, kw_only=True)
class Follow:
    """Finds the end of a raw value; it has the interface of `Finder`. `answer.follow` makes it."""

    in_code: bool
    """A value may be an expression, or a string in quotes."""
    entry: Skeleton
    """One argument."""
    between: str
    """The text between a value and the name of the next argument."""
    closing: tuple[Part, ...]
    """The parts that close the arguments, then the call, and then all calls."""
    further: tuple[Part, ...]
    """The parts between two calls, those that begin a call, and its skeleton up to what follows its name."""
    ends: tuple[str, ...] = ()
    """Ends of turn."""
    trail: str = ""
    """The layout before an end of turn."""
    names: tuple[str, ...] = ()
    """The names that an argument may have; empty for any word."""
    keys: tuple[str, ...] = ()
    """Names of arguments that count though they are no words."""
    tools: tuple[str, ...] = ()
    """Names of tools that count though they are no words."""
    _named: dict[tuple[tuple[str, ...], ...], Follow] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def closed(self) -> bool:
        """True if a marker ends the arguments or the calls."""
        return any(map(str.strip, map(text_of, self.closing)))

    @cached_property
    def begins(self) -> Finder:
        """The text that begins a call, where prose does not write that: no value holds it."""
        heads = [text.strip() for text in map(text_of, self.further[1:3]) if text.strip()][:1]
        return Finder(head for head in heads if len(head) > 2 and re.search(r"\w\W|\W\w", head))

    def among(self, names: tuple[str, ...], keys: OddNames = NO_NAMES, tools: OddNames = NO_NAMES) -> Follow:
        """Return a finder for arguments with these names, empty for any; in code, an argument may have any name."""
        wanted = tuple(
            found if len(found) <= MAX_OPTIONS else ()
            for found in (() if self.in_code else names, keys.names, tools.names)
        )
        if wanted == (self.names, self.keys, self.tools):
            return self
        if wanted not in self._named:
            if len(self._named) >= MAX_OPTIONS:
                self._named.clear()
            self._named[wanted] = replace(self, names=wanted[0], keys=wanted[1], tools=wanted[2])
        return self._named[wanted]

    def find(self, text: str, start: int) -> tuple[int, str]:
        """Return the end of the value, and the text that ends it, if no more text comes; else (-1, "")."""
        found = self._last.search(text, start)
        return (found.start(), found.group() or END) if found else (-1, "")

    def decided(self, text: str, start: int) -> tuple[int, str]:
        """Return the same for every continuation of `text`.

        It returns (n, "") if the value continues at least to n.
        """
        found = self._ends.search(text, start)
        limit = self._begun_at(text, start)
        # In `cats, li` the end may already have begun at the comma: the value is certain up to there, and no further.
        return (found.start(), found.group()) if found and found.start() <= limit else (limit, "")

    def goes_on(self, text: str, at: int, *, first: bool, final: bool) -> bool | None:
        """Return whether an argument follows at `at`; None when that depends on text to come.

        `first` means that it would be the first argument.
        """
        # What is between two arguments is not there before the first one.
        following = self._firsts if first else self._others
        if any(_matches(pieces, text, at) for pieces in following):
            return True
        return None if not final and any(_begins(pieces, text, at) for pieces in following) else False

    def cut_after(self, text: str, at: int, keys: Iterable[str]) -> bool:
        """Return whether all that is left of the output at `at` is a part of the opener of an argument of `keys`."""
        entry, rest = self.entry, text[at : at + MAX_NAME + 1].lstrip()
        if self.closed or not rest or len(rest) > MAX_NAME:
            return False
        lead, after = _leading_text(entry).lstrip(), _leading_text(entry[entry.index(Slot.KEY) + 1 :])
        return any((lead + key + after).startswith(rest) for key in keys)

    def ends_in_part(self, text: str, at: int) -> bool:
        """Return whether the output ends, at `at`, in only the first part of what closes the arguments and the call."""
        whole = "".join(map(text_of, self.closing)).strip()
        rest = text[at : at + len(whole) + MAX_BLANK]
        closed = rest.strip()
        return at + len(rest) == len(text) and closed not in ("", whole) and whole.startswith(closed)

    def opens_value(self, text: str) -> bool:
        """Return whether a value may begin after `text`, as after `f(a=`."""
        before = text_of(self.entry[self.entry.index(Slot.VALUE) - 1])
        return bool(before.strip()) and text.rstrip().endswith(before.rstrip())

    def closes_arguments(self, mark: str) -> bool:
        """Return whether a text that ends a value closes all arguments with it."""
        return mark.lstrip().startswith(text_of(self.closing[0]).strip())

    def ends_calls(self, text: str, start: int) -> bool:
        """Return whether `text` ends with what closes all calls, after which the turn may end."""
        return self._last_closing.search(text, start) is not None

    def _begun_at(self, text: str, start: int) -> int:
        """Return where the tail of `text` may begin what follows the value; its length where it does not.

        What is begun at the end of the text lies near it: what comes before is not searched again for each value.
        """
        # Literal ends are found by one search. Only those with a free name or space in them are matched piece by piece.
        limit = self._literals.undecided_from(text, start)
        at = max(start, len(text) - self._longest)
        # `Rome, Tex` may go on as `, Texas=`: the value is certain up to the comma.
        while (head := self._heads.search(text, at, limit)) is not None:
            if any(_begins(pieces, text, head.start()) for pieces in self._compiled):
                return head.start()
            at = head.start() + 1
        return limit

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        # `a == b` is an expression: no argument begins before `==`. The sign after `=` has to be there to know.
        following = [_whole(pieces) + ("(?=[^=])" if self.in_code else "") for pieces in self._next_arguments]
        return re.compile("|".join([*following, *map(_whole, self._closings)]))

    @cached_property
    def _last(self) -> re.Pattern[str]:
        # No more text comes, so a closer may be there in part: `)` without the `]` that ends the run of calls.
        end = text_of(self.closing[0])
        following = [_whole(pieces) + ("(?!=)" if self.in_code else "") for pieces in self._next_arguments]
        closed = [_whole(pieces) + r"\s*\Z" for pieces in _after_layout(end, [end.strip()]) if end.strip()]
        closed += [] if self.closed else [_whole(pieces) + r"\Z" for pieces in self._before_end("")]
        return re.compile("|".join([*following, *map(_whole, self._closings), *closed]))

    @cached_property
    def _last_closing(self) -> re.Pattern[str]:
        closing = _whole(self._pieces(*self._after_value, *self.closing))
        ends = "|".join(re.escape(end.strip()) for end in self.ends)
        return re.compile(rf"{closing}\s*(?:(?:{ends})\s*)?\Z" if self.closed else r"(?!)")

    @cached_property
    def _literals(self) -> Finder:
        """Texts that may follow, as far as each is always the same."""
        every = (*self._next_arguments, *self._closings)
        return Finder("".join(pieces) for pieces in every if not any(piece in _LENGTHS for piece in pieces))

    @cached_property
    def _patterns(self) -> list[list[str]]:
        """Patterns that may follow: white space and names are free in them."""
        return [
            found for found in (*self._next_arguments, *self._closings) if any(piece in _LENGTHS for piece in found)
        ]

    @cached_property
    def _compiled(self) -> list[list[re.Pattern[str]]]:
        return _compile(self._patterns)

    @cached_property
    def _others(self) -> list[list[re.Pattern[str]]]:
        # What the argument ends with has been taken: `between` begins with it.
        return _compile(self._arguments_after(self.between.removeprefix(self._layout_after)))

    @cached_property
    def _firsts(self) -> list[list[re.Pattern[str]]]:
        entry = self.entry
        return _compile([[_GAP, *self._pieces(*entry[: entry.index(Slot.VALUE)], name=name)] for name in self._keys])

    @cached_property
    def _heads(self) -> re.Pattern[str]:
        return re.compile("|".join(_pattern(pieces[0]) for pieces in self._patterns) or r"(?!)")

    @cached_property
    def _longest(self) -> int:
        """Characters that a beginning of what may follow has at most, where it is not the same text always."""
        return max((sum(_LENGTHS.get(piece, len(piece)) for piece in found) for found in self._patterns), default=0)

    @property
    def _after_value(self) -> tuple[Part, ...]:
        """The text that an argument ends with: at most white space, or the value would have a marker of its own."""
        entry = self.entry
        return entry[entry.index(Slot.VALUE) + 1 :]

    @property
    def _layout_after(self) -> str:
        return _layout(_leading_text(self._after_value))

    def _before_end(self, end: str) -> list[list[str]]:
        """Return what ends the last value where the turn ends: the layout of an argument, and of the end after it."""
        # `city: on\n` and the end `\t<end>`: engines strip `<end>`, and `\n\t` is left.
        layouts = dict.fromkeys((self._layout_after + self.trail, self._layout_after))
        return [found for layout in layouts for found in _after_layout(layout, [end] if end else [])]

    @property
    def _next_arguments(self) -> list[list[str]]:
        return self._arguments_after(self.between)

    def _arguments_after(self, between: str) -> list[list[str]]:
        entry = self.entry
        named = entry[entry.index(Slot.KEY) + 1 : entry.index(Slot.VALUE)]
        following = [self._pieces(between, Slot.KEY, *named, name=name) for name in self._keys]
        # Where white space alone is between key and value, it has to be there: any word might be a name otherwise.
        if self.in_code and not named[-1].strip():
            following = [[*pieces, _BLANK] for pieces in following]
        # Layout between arguments has to be there whole: a value may hold one line break of two.
        if not between.strip():
            return [[*between, *pieces] for pieces in following]
        return [found for pieces in following for found in _after_layout(between, pieces)]

    @property
    def _closings(self) -> list[list[str]]:
        """Texts that close the arguments, with what closes the run of calls, or begins the next one."""
        further, tools = self.further, ("", *self.tools)
        if not self.closed:
            layout = _layout(_leading_text((*self._after_value, *further)))
            ends = [found for end in self.ends for found in self._before_end(end)]
            return [*([*layout, *self._pieces(*further, name=name)] for name in tools), *ends]
        closing = (*self._after_value, *self.closing[:-1])
        closings = [self._pieces(*closing, self.closing[-1])]
        closings += [self._pieces(*closing, *further, name=name) for name in tools]
        if self.in_code and any(part.strip() for part in self._after_value):
            # `[f(a="x")g(b="y")]`: a value holds no second call.
            closings += [self._pieces(*closing, *further[1:], name=name) for name in tools]
        layout = _leading_text((*closing, self.closing[-1]))
        return [found for pieces in closings for found in _after_layout(layout, pieces)]

    @property
    def _keys(self) -> tuple[str, ...]:
        """The names that an argument may have, with "" for any word."""
        return self.names or (*self.keys, "")

    def _pieces(self, *parts: Part, name: str = "") -> list[str]:
        """Return the patterns of the parts, piece by piece, with `name` for the name in them; "" is any word.

        In code, white space between words is free.
        """
        pieces: list[str] = []
        for part in parts:
            if isinstance(part, Slot):
                pieces += name if name in self.names else [_GAP, *(name or (_NAME,))]
                continue
            # Models write `f(a=1,b=2)` and `f(a = 1, b = 2)`: in code, white space is free.
            if self.in_code:
                pieces += [piece for token in re.findall(r"\w+|[^\w\s]", part) for piece in (_GAP, *token)]
            else:
                pieces += part
        return list(dropwhile(lambda piece: piece == _GAP or piece.isspace(), pieces))


def _leading_text(parts: Iterable[Part]) -> str:
    """Return the text with which the parts begin, up to the first slot."""
    return "".join(str(part) for part in takewhile(lambda part: not isinstance(part, Slot), parts))


def _layout(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _after_layout(marker: str, pieces: list[str]) -> list[list[str]]:
    """Return the pieces after ever less of the white space with which the marker begins: it is not a part of the value."""
    layout = _layout(marker)
    return [[*layout[at:], *pieces] for at in range(len(layout) + 1)]


def _pattern(piece: str) -> str:
    return piece if piece in _LENGTHS else re.escape(piece)


def _compile(rows: list[list[str]]) -> list[list[re.Pattern[str]]]:
    return [[re.compile(_pattern(piece)) for piece in pieces] for pieces in rows]


def _whole(pieces: Iterable[str]) -> str:
    return "".join(map(_pattern, pieces))


def _matches(pieces: Iterable[re.Pattern[str]], text: str, at: int) -> bool:
    for piece in pieces:
        found = piece.match(text, at)
        if found is None:
            return False
        at = found.end()
    return True


def _begins(pieces: Iterable[re.Pattern[str]], text: str, at: int) -> bool:
    """Return whether the text from `at` on is a beginning of the pieces."""
    for piece in pieces:
        found = piece.match(text, at)
        # Pieces are single characters, names and gaps. Where the text ends in one, all before it has matched:
        # `, li`.
        if found is None or found.end() == len(text):
            return found is not None or at == len(text)
        at = found.end()
    return False
