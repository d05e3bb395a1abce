"""Finds the end of a raw value that has no end marker.

Strategy: a raw value may contain commas and brackets, as in `f(query=cats, dogs (small), limit=5)`. The value ends before one of the
following:

- the separator and the name of the next argument (`, limit=`)
- the closer of the arguments, followed by text that the syntax allows
- the next call or the end of the turn, if the arguments have no closer

In code, such an end counts only if the brackets of the value are balanced. `Brackets` counts them.

The lengths of names and whitespace are limited, so only a short tail of the text remains undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import dropwhile, takewhile

from unrender.format import Part, Slot
from unrender.format.parts import Skeleton, text_of
from unrender.limits import MAX_BLANK, MAX_NAME, MAX_OPTIONS, MAX_PARSED_DEPTH
from unrender.values import Resumable
from unrender.values.finder import NO_NAMES, Finder, OddNames, end_of

_GAP = r"\s{0,64}+"
_NAME = r"[^\W\d][\w.\-]{0,63}+"
_BLANK = r"\s"
_SPACE = re.compile(r"\s*")
_LENGTHS = {_GAP: 64, _NAME: 64, _BLANK: 1}
"""Maps the pieces that are patterns to their maximum lengths. All other pieces are literals."""
_CLOSING = ")]}"
_GLUED = (*_CLOSING, ",", "'", '"')
"""Characters that can't directly follow the closing bracket of all calls."""
END = "the end of the output"
"""Returned by `find` for a value that ends with the output."""


@dataclass(frozen=True, kw_only=True)
class Follow:
    """Finds the end of a raw value, with the same interface as `Finder`. `answer.follow` creates instances."""

    in_code: bool
    """True for Python-style calls, in which a value may be an expression or a quoted string."""
    entry: Skeleton
    """The skeleton of one argument."""
    between: str
    """Text between a value and the name of the next argument."""
    closing: tuple[Part, ...]
    """Parts that close the arguments, the call and all calls, in this order."""
    further: tuple[Part, ...]
    """Parts between two calls, parts at the start of a call, and parts of a call's skeleton up to the text after its name."""
    ends: tuple[str, ...] = ()
    """End-of-turn markers."""
    trail: str = ""
    """Whitespace before an end-of-turn marker."""
    names: tuple[str, ...] = ()
    """Allowed argument names; empty if names aren't restricted."""
    keys: tuple[str, ...] = ()
    """Declared argument names that are not plain words."""
    tools: tuple[str, ...] = ()
    """Declared tool names that are not plain words."""
    _named: dict[tuple[tuple[str, ...], ...], Follow] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def closed(self) -> bool:
        """True if a marker ends the arguments or the calls."""
        return any(map(str.strip, map(text_of, self.closing)))

    @cached_property
    def begins(self) -> Finder:
        """Finds the start of a call, which no value contains. Finds nothing if the start of a call may occur in prose."""
        heads = [text.strip() for text in map(text_of, self.further[1:3]) if text.strip()][:1]
        return Finder(head for head in heads if len(head) > 2 and re.search(r"\w\W|\W\w", head))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The strings that no generated value contains. Each end of a value contains one of them, stripped of whitespace."""
        between = self.between.lstrip() or self.between
        # Raw text may contain `<`, so only the names of arguments show where a value ends: in `<a>1<b>2`, the first value ends at `<b>`.
        after = _leading_text(self.entry[self.entry.index(Slot.KEY) + 1 :])
        following = [f"{between}{name}{after}" for name in self.names] if self.names and not self.in_code else []
        # `f(a=1)` ends at `)`. Without such a marker, arguments end at the end of the call, and without that, at the next call or at the
        # end of all calls. Whitespace alone doesn't end arguments, since text may contain line breaks.
        call_close, close = self.closing[-2:]
        ways = (self.closing[:-2][:2], (call_close,), (_leading_text(self.further), close))
        closing = ([text for part in way if (text := text_of(part).strip())] for way in ways)
        return (*(following or filter(None, [between.rstrip() or between])), *next(filter(None, closing), ()))

    def among(self, names: tuple[str, ...], keys: OddNames = NO_NAMES, tools: OddNames = NO_NAMES) -> Follow:
        """Return a finder for arguments with the given `names` (empty: any)."""
        wanted = tuple(found if len(found) <= MAX_OPTIONS else () for found in (names, keys.names, tools.names))
        if wanted == (self.names, self.keys, self.tools):
            return self
        if wanted not in self._named:
            if len(self._named) >= MAX_OPTIONS:
                self._named.clear()
            self._named[wanted] = replace(self, names=wanted[0], keys=wanted[1], tools=wanted[2])
        return self._named[wanted]

    def find(self, text: str, start: int) -> tuple[int, str]:
        """Return the end of the value and the text that ends it, assuming that `text` is complete.

        Returns (-1, "") if the value doesn't end.
        """
        found = self._last.search(text, start)
        return (found.start(), found.group() or END) if found else (-1, "")

    def decided(self, text: str, start: int) -> tuple[int, str]:
        """Return the result of `find` if every continuation of `text` has the same result. Returns (n, "") if the value continues at least
        to position n.
        """
        found = self._ends.search(text, start)
        limit = self._begun_at(text, start)
        # In `cats, li`, the value may end at the comma, so only the text before the comma is certain.
        return (found.start(), found.group()) if found and found.start() <= limit else (limit, "")

    def search(self, text: str, start: int, *, final: bool) -> tuple[int, str]:
        """Return the result of `decided`. If no more text follows (`final`), everything is decided."""
        at, mark = self.find(text, start) if final else self.decided(text, start)
        return (at, mark) if at >= 0 else (len(text), "")

    def goes_on(self, text: str, at: int, *, first: bool, final: bool) -> bool | None:
        """Return whether an argument follows at `at`. Returns None if that depends on the next chunk.

        `first` is True for the first argument of a call.
        """
        # No separator precedes the first argument.
        found = [_read(pieces, text, at) for pieces in (self._firsts if first else self._others)]
        if any(whole for whole, _ in found):
            return True
        return None if not final and any(end == len(text) for _, end in found) else False

    def cut_after(self, text: str, at: int, keys: Iterable[str]) -> bool:
        """Return whether the rest of `text` from `at` on is an incomplete opener for one of the arguments `keys`."""
        entry, rest = self.entry, text[at : at + MAX_NAME + 1].lstrip()
        if self.closed or not rest or len(rest) > MAX_NAME:
            return False
        lead, after = _leading_text(entry).lstrip(), _leading_text(entry[entry.index(Slot.KEY) + 1 :])
        return any((lead + key + after).startswith(rest) for key in keys)

    def ends_in_part(self, text: str, at: int) -> bool:
        """Return whether the rest of `text` from `at` on is an incomplete closer of the arguments and the call."""
        whole = "".join(map(text_of, self.closing)).strip()
        rest = text[at : at + len(whole) + MAX_BLANK]
        closed = rest.strip()
        return at + len(rest) == len(text) and closed not in ("", whole) and whole.startswith(closed)

    def opens_value(self, text: str) -> bool:
        """Return whether a value may start after `text`, e.g. after `f(a=`."""
        before = text_of(self.entry[self.entry.index(Slot.VALUE) - 1])
        return bool(before.strip()) and text.rstrip().endswith(before.rstrip())

    def may_follow(self, text: str, at: int, mark: str, *, final: bool) -> bool | None:
        """Return whether the text after the end of a value, `mark` at `at`, may follow the calls. Return None if more text is needed.

        Code doesn't end at a bracket before another bracket, as in `[f(text=a)], ok)]`. Other text doesn't end at a closer before a word
        or an argument. If closers have lines of their own, the same closer or more text on the line also show that the closer is text.
        """
        end, whole = at + len(mark), self._closing_text
        if self.in_code:
            after = text[end : end + 1] if mark != END else ""
            if mark[-1] not in _CLOSING or not self.closes_arguments(mark):
                return True
            return after not in _GLUED if after else final or None
        closer = whole.strip()
        if not closer or mark.strip() != closer:
            return True
        if (argument := self.goes_on(text, end, first=False, final=final)) is not False:
            return None if argument is None else False
        end = at + len(mark.rstrip())
        place = end_of(_SPACE, text, end, end + MAX_BLANK)
        rest = text[place : place + self._reach]
        marks = [*map(str.strip, self.ends), "".join(map(text_of, self.further[:3])).strip()]
        if not final and place - end < MAX_BLANK and any(it.startswith(rest) for it in (closer, *filter(None, marks))):
            return None
        if not rest or rest.startswith(tuple(filter(None, marks))):
            return True
        breaks = "\n" in _layout(whole) and "\n" not in _layout(mark)
        if rest.startswith(closer):
            return not breaks
        return place > end and not (breaks and "\n" not in text[end:place])

    @cached_property
    def _closing_text(self) -> str:
        """The text that closes the arguments and all calls, with the whitespace between the last value and this text."""
        after_value = _leading_text(self.entry[self.entry.index(Slot.VALUE) + 1 :])
        return (after_value if not after_value.strip() else "") + "".join(map(text_of, self.closing))

    def closes_arguments(self, mark: str) -> bool:
        """Return whether the text that ends a value also closes all arguments."""
        return mark.lstrip().startswith(text_of(self.closing[0]).strip())

    def ends_calls(self, text: str, start: int) -> bool:
        """Return whether `text` ends with the closer of all calls, optionally followed by an end-of-turn marker."""
        return self._last_closing.search(text, start) is not None

    def _begun_at(self, text: str, start: int) -> int:
        """Return the start of a possible end of the value in the tail of `text`.

        Returns the length of `text` if the value can't end in the tail. Earlier text isn't searched again for each value.
        """
        # One search finds all ends that are literals. Ends that contain names or whitespace are matched piece by piece.
        limit = self._literals.undecided_from(text, start)
        at = max(start, len(text) - self._longest)
        # `Rome, Tex` may become `Rome, Texas=`, so the value is certain only up to the comma.
        while (head := self._heads.search(text, at, limit)) is not None:
            if any(_read(pieces, text, head.start())[1] == len(text) for pieces in self._compiled):
                return head.start()
            at = head.start() + 1
        return limit

    @cached_property
    def _reach(self) -> int:
        """Maximum length of a marker that may follow the calls."""
        return max(map(len, ("".join(map(text_of, self.closing)), *self.ends, "".join(map(text_of, self.further[:3])))))

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        # In the expression `a == b`, no argument starts before `==`. The pattern must therefore check the character after `=`.
        following = [_whole(pieces) + ("(?=[^=])" if self.in_code else "") for pieces in self._next_arguments]
        return re.compile("|".join([*following, *map(_whole, self._closings)]))

    @cached_property
    def _last(self) -> re.Pattern[str]:
        # No more text follows, so the closer may be incomplete, e.g. `)` without the `]` that closes all calls.
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
        """Finds ends of a value that are literals."""
        return Finder("".join(pieces) for pieces in self._every_end if not any(piece in _LENGTHS for piece in pieces))

    @cached_property
    def _every_end(self) -> list[list[str]]:
        return [*self._next_arguments, *self._closings]

    @cached_property
    def _patterns(self) -> list[list[str]]:
        """Ends of a value that contain patterns for names or whitespace."""
        return [found for found in self._every_end if any(piece in _LENGTHS for piece in found)]

    @cached_property
    def _compiled(self) -> list[list[re.Pattern[str]]]:
        return _compile(self._patterns)

    @cached_property
    def _others(self) -> list[list[re.Pattern[str]]]:
        # `between` starts with the end of the previous argument, which has already been consumed.
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
        """Maximum length of an end that contains patterns."""
        return max((sum(_LENGTHS.get(piece, len(piece)) for piece in found) for found in self._patterns), default=0)

    @property
    def _after_value(self) -> tuple[Part, ...]:
        """The parts of an argument after its value. None of them is a marker, since this module handles values without an end marker."""
        entry = self.entry
        return entry[entry.index(Slot.VALUE) + 1 :]

    @property
    def _layout_after(self) -> str:
        return _layout(_leading_text(self._after_value))

    def _before_end(self, end: str) -> list[list[str]]:
        """Return the ends of the last value in a turn.

        An end consists of the whitespace after the argument and before the end of the turn, followed by `end`.
        """
        # If the format ends a turn with `city: on\n` and `\t<end>`, engines strip `<end>` and leave `\n\t`.
        layouts = dict.fromkeys((self._layout_after + self.trail, self._layout_after))
        return [found for layout in layouts for found in _after_layout(layout, [end] if end else [])]

    @property
    def _next_arguments(self) -> list[list[str]]:
        return self._arguments_after(self.between)

    def _arguments_after(self, between: str) -> list[list[str]]:
        entry = self.entry
        named = entry[entry.index(Slot.KEY) + 1 : entry.index(Slot.VALUE)]
        following = [self._pieces(between, Slot.KEY, *named, name=name) for name in self._keys]
        # Whitespace that separates the key from the value is required, since otherwise any word in the value might be a name.
        if self.in_code and not named[-1].strip():
            following = [[*pieces, _BLANK] for pieces in following]
        # If two line breaks separate arguments, both are required, because a value may contain single line breaks.
        if not between.strip():
            return [[*between, *pieces] for pieces in following]
        return [found for pieces in following for found in _after_layout(between, pieces)]

    @property
    def _closings(self) -> list[list[str]]:
        """Return the closers of the arguments, each followed by the end of all calls or the start of the next call."""
        further, tools = self.further, ("", *self.tools)
        if not self.closed:
            layout = _layout(_leading_text((*self._after_value, *further)))
            ends = [found for end in self.ends for found in self._before_end(end)]
            return [*([*layout, *self._pieces(*further, name=name)] for name in tools), *ends]
        closing = (*self._after_value, *self.closing[:-1])
        closings = [self._pieces(*closing, self.closing[-1])]
        closings += [self._pieces(*closing, *further, name=name) for name in tools]
        if self.in_code and any(part.strip() for part in self._after_value):
            # No value contains the start of a second call, so `[f(a="x")g(b="y")]` contains two calls.
            closings += [self._pieces(*closing, *further[1:], name=name) for name in tools]
        layout = _leading_text((*closing, self.closing[-1]))
        return [found for pieces in closings for found in _after_layout(layout, pieces)]

    @property
    def _keys(self) -> tuple[str, ...]:
        """The allowed argument names; "" stands for any word."""
        return self.names or (*self.keys, "")

    def _pieces(self, *parts: Part, name: str = "") -> list[str]:
        """Return the patterns of the parts, piece by piece. `name` fills the slot of a name. If `name` is "", any word matches."""
        pieces: list[str] = []
        for part in parts:
            if isinstance(part, Slot):
                gap = [_GAP] if self.in_code or name not in self.names else []
                pieces += [*gap, *(name or (_NAME,))]
                continue
            # Whitespace in Python-style calls is optional, because models write both `f(a=1,b=2)` and `f(a = 1, b = 2)`.
            if self.in_code:
                pieces += [piece for token in re.findall(r"\w+|[^\w\s]", part) for piece in (_GAP, *token)]
            else:
                pieces += part
        return list(dropwhile(lambda piece: piece == _GAP or piece.isspace(), pieces))


@dataclass(slots=True, eq=False)
class Brackets(Resumable):
    """Counts the open brackets in text. A bracket in a quoted string may count or not, as in `f(a=")")` and `don't (stop)`."""

    _open: str = ""
    """The closing brackets of all open brackets, after `_EXCESS` if there was a closing bracket without an opening one."""
    _outside: str = ""
    """The same, without brackets in quoted strings."""
    _quote: str = ""
    """The quotation mark of an open string."""
    _last: str = ""

    @property
    def closed(self) -> bool:
        """True if no bracket is open."""
        return not self._open.strip(_EXCESS) or not (self._quote or self._outside.strip(_EXCESS))

    @property
    def balanced(self) -> bool:
        """True if all brackets are in pairs."""
        return not self._open or not (self._outside or self._quote)

    def passed(self, text: str) -> None:
        """Record `text`."""
        for found in _SIGN.finditer(text):
            sign, before = found.group(), text[found.start() - 1] if found.start() else self._last
            if sign in _QUOTES and before != "\\":
                opens = not self._quote and not before.isalnum()
                self._quote = sign if opens else "" if sign == self._quote else self._quote
            elif sign not in _QUOTES:
                self._open = _with_bracket(self._open, sign)
                self._outside = self._outside if self._quote else _with_bracket(self._outside, sign)
        self._last = text[-1:] or self._last


def is_balanced(text: str) -> bool:
    """Return whether all brackets in `text` are in pairs.

    >>> [is_balanced(text) for text in ("f(x)", "smile :)", "don't (stop)")]
    [True, False, True]
    """
    brackets = Brackets()
    brackets.passed(text)
    return brackets.balanced


_SIGN = re.compile(r"[()\[\]{}'\"]")
_QUOTES = ("'", '"')
_OPENING = {"(": ")", "[": "]", "{": "}"}
_EXCESS = "!"


def _with_bracket(opened: str, sign: str) -> str:
    if sign in _OPENING:
        return (opened + _OPENING[sign])[:MAX_PARSED_DEPTH]
    return opened[:-1] if opened[-1:] == sign else _EXCESS + opened.strip(_EXCESS)


def _leading_text(parts: Iterable[Part]) -> str:
    """Return the text before the first slot."""
    return "".join(str(part) for part in takewhile(lambda part: not isinstance(part, Slot), parts))


def _layout(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def _after_layout(marker: str, pieces: list[str]) -> list[list[str]]:
    """Return the pieces once with all, once with part, and once with none of the marker's leading whitespace, which isn't part of the
    value.
    """
    layout = _layout(marker)
    return [[*layout[at:], *pieces] for at in range(len(layout) + 1)]


def _pattern(piece: str) -> str:
    return piece if piece in _LENGTHS else re.escape(piece)


def _compile(rows: list[list[str]]) -> list[list[re.Pattern[str]]]:
    return [[re.compile(_pattern(piece)) for piece in pieces] for pieces in rows]


def _whole(pieces: Iterable[str]) -> str:
    return "".join(map(_pattern, pieces))


def _read(pieces: Iterable[re.Pattern[str]], text: str, at: int) -> tuple[bool, int]:
    """Return whether all pieces match in order from `at` on, and the end of those that match.

    If that is the end of the text, the text may go on with the rest of the pieces: `, li` is a prefix of `, limit=`.
    """
    for piece in pieces:
        found = piece.match(text, at)
        if found is None:
            return False, at
        at = found.end()
    return True, at
