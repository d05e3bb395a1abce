"""Views of a `Calls` node for the parser: the markers to look for, and the texts that may end each part of a call.

The grammar of a call (`grammar.call_rules`) and the parser use the same node. Everything that the parser derives from it is in this module.
Each view is computed once and cached, since all answers in one format and request share a view.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from unrender.answer import (
    Answer,
    ArgumentsPart,
    Calls,
    Marker,
    Opening,
    is_distinctive,
    is_sign,
    literal_of,
    pieces_of,
    tokens,
    without_fences,
)
from unrender.answer.follow import (
    ArgumentMarkers,
    after_closer,
    after_entries,
    after_part,
    after_value,
    first_pieces,
    open_ends,
)
from unrender.format import Containers, Slot
from unrender.limits import MAX_SMALL
from unrender.values.doubts import Doubts
from unrender.values.finder import Finder, torn_head
from unrender.values.marked_ends import MarkedEnds
from unrender.values.notations import literal_style, notation_of
from unrender.values.raw import TagStyle
from unrender.values.scanner import LiteralStyle
from unrender.values.unmarked_ends import Follow

BACKQUOTES = "```"
_WORD_PREFIX = re.compile(r"\w+[.:/]")
_TAG_HEAD = re.compile(r"[^\s<>/][^<>]*$")
_TAG_ENDS = (">", '">', "'>")
_WRITTEN_KEY = re.compile(r'"([^"]+)"\s*:')
_BRACKETS = re.compile(r"[\[({]+")
MARKER_WORDS = re.compile(r"[^\W\d][\w.-]*")
ATTRIBUTE = re.compile(r"<([^\s<>=\"'/]+)(?:\s+\w+)?\s*=\s*[\"']?$")
"""Matches the start of a tag that contains a name, such as `<function=` or `<invoke name="`."""
_LEAST_PART = 2
"""A part of a marker must be longer than this to be recognized."""
_NAME = r"[\w.:/-]{1,128}?"
_OBJECT_HEAD = rf'\{{\s*"(?:[\w-]{{1,64}}"\s*:\s*")?(?P<name>{_NAME})"'
"""Matches the start of a JSON object that is a call. The name may be the value of the object's first field, or the first key."""
_HEAD_WORDS = frozenset(("function", "functions", "name", "invoke", "call", "tool", "to"))
"""Words that may separate the start marker of a call from the tool name."""


@dataclass(frozen=True, slots=True)
class KeyView:
    """The surroundings of an argument's name."""

    stops: Finder
    bare: bool
    """True if whitespace and brackets also end the name."""
    opener: str
    """The marker before the name, which models sometimes repeat."""
    heads: tuple[str, ...]
    """Prefixes of the format's markers. Only declared names may contain such a prefix."""
    closing: str
    """Prefix that turns a name into a closing tag, such as `/` in `</city>`. Undeclared names can't start with this prefix."""


class CallView:
    """The views of one call syntax of `answer`. Without `answer`, the markers that end a turn aren't known."""

    def __init__(self, calls: Calls, answer: Answer | None = None) -> None:
        self.written: Calls = calls
        self.calls: Calls = calls.with_commas
        self.arguments: ArgumentsPart = self.calls.arguments
        ends, dropped = (answer.ends, answer.dropped) if answer else ((), ())
        self.over: tuple[str, ...] = tuple(marker.core for marker in ends)
        self.ends: frozenset[str] = frozenset((*self.over, *(marker.core for marker in dropped)))
        """Markers that end a turn, or that have no meaning."""
        self.trail: str = answer.trail if answer else ""
        self.marked: bool = any((calls.open, calls.call_open, calls.head))

    # The start of a run of calls.

    def openings(self) -> Iterator[Opening]:
        """Yield the places at which a run of calls may start, outermost first."""
        calls = self.calls
        # If `<calls>` is missing, `<call>` starts a run of calls too. If both are missing, a later marker such as `<function=` identifies
        # the call.
        levels = [
            (calls.open, (calls.open,), False, False),
            (calls.call_open, (), False, bool(calls.open)),
            (calls.head, (), True, True),
            *((other, (other,), False, False) for other in calls.open.others),
            *((other, (other,), True, False) for other in calls.call_open.others),
        ]
        for i, (marker, before, inside, loose) in enumerate(level for level in levels if level[0]):
            opener = marker.pieces[0]
            # An inner start marker counts only if it doesn't occur in prose. For example, `{` alone doesn't start a call.
            strong = is_distinctive(opener)
            if i and not strong:
                continue
            outermost = i == 0 or marker in (calls.open or calls.call_open).others
            alone, weak = calls.shows(opener, outermost=outermost), bool(_BRACKETS.fullmatch(opener))
            for lead in calls.leads:
                yield Opening(opener, lead + marker.lead, before, inside, loose, strong=strong, alone=alone, weak=weak)
        # Ignore empty blocks in another format's syntax, because they are usually mentioned in prose.
        if calls.own or calls.cleans:
            yield from self.empty_blocks(calls.leads)

    def empty_blocks(self, leads: tuple[str, ...] = ("",)) -> Iterator[Opening]:
        """Yield the empty calls and sections. `functools[]` counts as an empty section, but `[]` doesn't."""
        calls = self.calls
        call, single = (calls.call_open, calls.call_close), bool(calls.call_open and calls.call_close)
        blocks: list[tuple[Marker, ...]] = [call] if single else []
        if calls.open and calls.close:
            around = (calls.open, *call, *([calls.close] if calls.forbidden else []))
            blocks += [(calls.open, calls.close), *([around] if single else [])]
        for markers in blocks:
            # Skip ambiguous blocks. For example, a block that consists only of fences matches any text, because fences are optional. A
            # block of fences and `Action:` is also ambiguous, because it may match a single word.
            if is_sign("".join(piece for marker in markers for piece in without_fences(marker.pieces))):
                first = markers[0]
                yield from (Opening(first.pieces[0], lead + first.lead, markers, empty=True) for lead in leads)

    def lines(self) -> Iterator[str]:
        """Yield the texts at which a call without markers may start after content: a line break and a tool name."""
        calls = self.calls
        if not self.marked and calls.on_lines:
            for lead in calls.leads:
                breaks = [lead[at:] for at in range(len(lead)) if "\n" in lead[at:]]
                yield from (before + tool.name for before in breaks for tool in calls.tools or ())

    # The parts of a call.

    def optional(self, piece: str) -> bool:
        """Return whether a piece of a marker may be missing, because the brackets of a list are optional around a single call."""
        return piece == "[" and self.calls.envelope is not None and not self.calls.whole

    def stops(self, i: int) -> Finder:
        """Return a finder for the texts that may follow part `i` of a call."""
        return self._stops[i]

    @cached_property
    def _stops(self) -> tuple[Finder, ...]:
        parts = self.calls.function
        return tuple(
            Finder([*after_part(self.calls, i), *(["/>"] if self.is_tag_end(i + 1) else [])])
            for i in range(self.calls.last_slot + 1)
            if parts
        )

    def is_tag_end(self, i: int) -> bool:
        """Return whether the literal at `i` ends a tag that contains the tool name and precedes the arguments."""
        parts = self.calls.function
        if i < 2 or (parts[i - 1 : i], parts[i + 1 : i + 2]) != ((Slot.NAME,), (Slot.ARGUMENTS,)):
            return False
        opened = literal_of(parts[i - 2]).rpartition("<")[2]
        return _TAG_HEAD.match(opened) is not None and literal_of(parts[i]).strip() in _TAG_ENDS

    @cached_property
    def after_tag(self) -> Finder:
        """Start markers of arguments, which can't follow a self-closing tag."""
        at = self.calls.function.index(Slot.NAME) + 1
        return Finder(filter(None, ("{", self.arguments.open.core, *after_part(self.calls, at)[:1])))

    def may_be_missing(self, i: int) -> bool:
        """Return whether a prefix of the name, such as `functions.`, is optional because another marker identifies the call."""
        parts, opened = self.calls.function, self.calls.open or self.calls.call_open
        prefix = _WORD_PREFIX.fullmatch(literal_of(parts[i]).strip())
        return i == 0 and bool(opened) and parts[1:2] == (Slot.NAME,) and bool(prefix)

    def spaced(self, i: int) -> bool:
        """Return whether whitespace is next to slot `i`."""
        parts = self.calls.function
        before, after = literal_of(parts[i - 1])[-1:] if i else "", literal_of(*parts[i + 1 : i + 2])[:1]
        return before.isspace() or after.isspace()

    @cached_property
    def barred(self) -> Finder:
        """Markers that skipped words can't contain, because the markers belong to another call."""
        calls = self.calls
        around = (calls.open, calls.call_open, calls.call_close, calls.close)
        return Finder(piece for marker in around for piece in marker.pieces if is_distinctive(piece))

    @cached_property
    def before_object(self) -> list[str]:
        """The markers of a call that is one object. Brackets alone aren't included."""
        return [piece for piece in (*self.calls.open.pieces, *self.calls.call_open.pieces) if len(piece) > 1]

    @cached_property
    def known(self) -> frozenset[str]:
        """The JSON keys that the format writes, except the keys of the name and the arguments."""
        envelope = self.calls.envelope
        texts = map(literal_of, self.calls.function)
        written = {json.loads(f'"{key}"') for text in texts for key in _WRITTEN_KEY.findall(text)}
        return frozenset(written - {*envelope.name_field[-1:], *envelope.args_field[-1:]}) if envelope else frozenset()

    @cached_property
    def object_ends(self) -> Finder:
        """End markers of the call, which also end an object without a closing brace."""
        return Finder(() if self.calls.whole else (end for end in self.calls.all_closers if len(end) > 1))

    @cached_property
    def object_style(self) -> LiteralStyle:
        """The notation of arguments that are one object. Calls that must be complete are read strictly."""
        strict = self.calls.whole and (self.calls.envelope is not None or notation_of(self.arguments.codec).is_json)
        return LiteralStyle(strict=strict, loose_keys=not strict)

    # Arguments.

    @cached_property
    def empty(self) -> tuple[str, Finder] | None:
        """The text that stands for empty arguments, and a finder for the start markers of arguments. None if there is no such text."""
        arguments = self.arguments
        first = arguments.open.pieces if arguments.open else first_pieces(*arguments.entry[:1])
        begins = [*first[:1]] or ([] if arguments.entry else ["{", '"'])
        # In `f with a = 1;` and `f with ;`, only the text after `with` shows whether there are any arguments.
        if arguments.empty is None or not (arguments.empty.strip() or begins):
            return None
        return arguments.empty.strip(), Finder(begins)

    @cached_property
    def follow(self) -> Follow:
        """Finder for the end of a value that has no end marker of its own."""
        return open_ends(self.calls, self.ends, self.trail)

    @cached_property
    def opener(self) -> str:
        """The first piece of each argument's start marker. Empty if arguments start with their name."""
        return "".join(first_pieces(*self.arguments.entry[:1]))

    @cached_property
    def doubled(self) -> frozenset[str]:
        """End markers of values, which models sometimes repeat. A marker that also starts an argument isn't included."""
        return frozenset(self.values.closers if self.values else ()) - {self.opener}

    @cached_property
    def entry_marks(self) -> Finder:
        """Finder for the start marker of an argument, and for all markers that may end the arguments."""
        return Finder([self.opener, *after_entries(self.calls), *(self.values.closers if self.values else ())])

    @cached_property
    def after_key(self) -> str:
        """Text after the name of an argument. Empty if arguments have no markers of their own."""
        entry = self.arguments.entry
        return "".join(first_pieces(entry[entry.index(Slot.KEY) + 1])) if entry else ""

    @cached_property
    def argument_markers(self) -> ArgumentMarkers:
        """Markers that only arguments contain."""
        return ArgumentMarkers(self.opener, self.after_key, self.values)

    def entry_stops(self, i: int) -> Finder:
        """Return a finder for the text after slot `i` of an argument."""
        return self._entry_stops[i]

    @cached_property
    def _entry_stops(self) -> tuple[Finder, ...]:
        entry = self.arguments.entry
        after = (next((it.pieces for it in entry[i + 1 :] if isinstance(it, Marker)), ()) for i in range(len(entry)))
        return tuple(Finder(pieces[:1] or (" ", "\n")) for pieces in after)

    @cached_property
    def key(self) -> KeyView:
        """The surroundings of an argument's name."""
        calls, arguments, entry = self.calls, self.arguments, self.arguments.entry
        i = entry.index(Slot.KEY)
        call = (calls.open, calls.call_open, *calls.function, calls.call_close, calls.close)
        pieces = pieces_of((*call, arguments.open, *entry, arguments.close))
        markers = [piece for piece in pieces if not isinstance(piece, Slot) and is_distinctive(piece)]
        heads = tuple(dict.fromkeys(torn_head(marker) or marker for marker in markers))
        opener = "".join(tokens(literal_of(entry[i - 1]))[-1:]) if i else ""
        named = self.values if self.values and self.values.named else None
        closing = named.close[0].removeprefix(literal_of(entry[0]).strip()) if named else ""
        heads = (*heads, named.close[0]) if named else heads
        bare = isinstance(entry[0], Slot)
        return KeyView(self.entry_stops(i), bare, opener if opener in markers else "", heads, closing)

    @cached_property
    def type_words(self) -> tuple[str, ...]:
        """Words that are accepted as types."""
        return tuple(dict.fromkeys(word for _, word in self.arguments.codec.types))

    @cached_property
    def after_closer(self) -> tuple[str, ...]:
        """Text that shows that only the end marker of the last value is missing, as in `Rome</f></call>`."""
        return after_closer(self.calls)

    # Values.

    @cached_property
    def tags(self) -> TagStyle | None:
        """The style of tags that are named after the argument, as in `<city>…</city>`. None if the syntax has no such tags."""
        arguments, entry, codec = self.arguments, self.arguments.entry, self.arguments.codec
        i = entry.index(Slot.VALUE)
        # A quoted value such as `"Rome"` ends at its quotation mark, so it needs no closing tag.
        by_itself = not codec.strings.unquoted and codec.containers is not Containers.XML
        # The repeated name must be inside a closing tag. In `a=1/a, b=2/b`, the name ends the argument.
        if Slot.KEY not in entry[i + 1 : -1] or by_itself:
            return None
        again = entry.index(Slot.KEY, i + 1)
        before = literal_of(entry[again - 1])
        return TagStyle(
            literal_of(entry[0]).strip(),
            before.strip(),
            literal_of(entry[again + 1]).strip(),
            arguments.codec.item_tag,
            space=before[: before.index(before.strip())] if not arguments.codec.item_tag else "",
        )

    @cached_property
    def suffix(self) -> Finder | Follow:
        """Text that ends a raw value."""
        return self.follow if self.arguments.open_ended else Finder(after_value(self.calls))

    @cached_property
    def style(self) -> LiteralStyle:
        """The notation of values that need no end marker because they have their own delimiters."""
        arguments = self.arguments
        # Without a marker before the name, a name and the text after it show that a quoted value has ended, as in `a="1" b="2"`.
        spaced = arguments.entry[0] is Slot.KEY and not arguments.between.strip()
        return literal_style(
            arguments.codec,
            self.suffix,
            after_key=literal_of(arguments.entry[1]) if spaced else "",
            in_code=arguments.in_code and arguments.close.core == ")",
        )

    @cached_property
    def values(self) -> MarkedEnds | None:
        """The finder for the end markers of raw values. None if raw values have no end markers."""
        calls, arguments, entry, closer = self.calls, self.arguments, self.arguments.entry, self.arguments.closer
        if not entry:
            return None
        i = entry.index(Slot.VALUE)
        unquoted = notation_of(arguments.codec).unquoted or arguments.codec.containers is Containers.XML
        if not closer or not unquoted or arguments.open_ended:
            return None
        tags, separator, function = self.tags, arguments.separator, calls.function
        last = literal_of(entry[-1]) if tags else closer.text
        head = literal_of(entry[0])
        between = "" if separator else separator.text + head[: len(head) - len(head.lstrip())]
        following = separator.pieces[:1] if separator else first_pieces(entry[0])
        return MarkedEnds(
            close=(tags.close, tags.end) if tags else tuple(it.core for it in closer.spelled),
            named=tags is not None,
            lead=closer.lead,
            trail=last[len(last.rstrip()) :] + between,
            opener=pieces_of(entry[:i]),
            separator=separator.text if separator else "",
            followers=tuple(dict.fromkeys((*following, *after_entries(calls)))),
            call_close=pieces_of((arguments.close, *function[function.index(Slot.ARGUMENTS) + 1 :], calls.call_close)),
            section_end=calls.close.pieces,
            call_open=tuple(map(str, pieces_of((calls.call_open, *function[: function.index(Slot.NAME)])))),
            turn_ends=tuple(sorted(self.ends)),
            escapes=tuple(form for _, form in arguments.codec.escapes),
            open_ended=not self.follow.closed or not following,
        )

    @cached_property
    def doubts(self) -> Doubts | None:
        """The strings that values can't contain. None if the values have their own delimiters."""
        calls, arguments, codec, entry = self.calls, self.arguments, self.arguments.codec, self.arguments.entry
        notation, tags, i = notation_of(codec), self.tags, entry.index(Slot.VALUE)
        if not notation.unquoted and not notation.verbatim and codec.containers is not Containers.XML:
            return None
        before = literal_of(entry[i - 1]) if i else ""
        call = "".join(tokens(calls.call_open.text)[:1] or tokens(literal_of(calls.function[0]))[:1])
        return Doubts.of(
            literal_of(entry[0]),
            before,
            tags.close if tags else arguments.closer.text,
            call if is_distinctive(call) else "",
            cdata=codec.cdata,
            nested=tags is not None and bool(tags.item),
            between=arguments.separator.text if arguments.in_code else "",
            equals=before + codec.string_open,
            quote=codec.string_close if len(codec.string_close) == 1 and not codec.escapes else "",
        )

    @cached_property
    def hides_ends(self) -> bool:
        """True if a string can contain the text that ends it, because strings have neither escapes nor an end marker."""
        arguments = self.arguments
        by_itself = not arguments.entry or self.doubts is None or self.values is not None
        return not by_itself and not arguments.codec.escapes

    @cached_property
    def hides_closers(self) -> bool:
        """True if a quoted string can contain the end marker of its call. Raw text is checked by `Follow`."""
        return self.hides_ends and not self.raw and bool(self.section)

    def excluded(self, key: str, names: tuple[str, ...], *, counted: bool) -> tuple[str, ...]:
        """Return the strings that no generated value of the argument `key` contains.

        They come from the parser's own finders: the texts at which a value ends, and the texts for which `doubts` rejects it. `key` is ""
        for any name. `names` contains the names of all arguments, or none if others are allowed. If `counted` is True, the parser counts
        nested tags with the argument's name, so the opening tag is excluded too.
        """
        rejected = self.doubts.excluded(closed=bool(self.arguments.closer)) if self.doubts else ()
        if self.values is None:
            ends = self.follow.among(names if len(names) <= MAX_SMALL else ()).written
        elif self.tags is None:
            ends = (self.arguments.closer.text, *self.values.closers)
        elif self.tags.item:  # Values may be tags, too, so text contains no closing tag at all.
            ends = (self.tags.close,)
        else:
            (closer,) = self.values.of(key, ()).closers
            opener = (self.tags.open + key + self.tags.end,) if counted else ()
            ends = (self.tags.space + closer, closer, *opener)
        return tuple(dict.fromkeys((*ends, *rejected)))

    # The end of a call.

    @cached_property
    def _next(self) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        """The start marker of the next call, the end markers of a call, and those of a run of calls."""
        calls = self.calls
        marker = calls.call_open or calls.head
        opener, *_ = marker.pieces or ("",)
        if opener and opener in calls.all_closers:
            # Don't split markers that share a word into pieces. For example, `[Tool Call]` and `[Tool Call End]` start with the same word.
            whole = [[it.core for it in markers if it] for markers in (calls.closing, (calls.close,))]
            return marker.core, tuple(without_fences(whole[0])), tuple(without_fences(whole[1]))
        return opener, tuple(calls.closers), tuple(without_fences(calls.close.pieces))

    @cached_property
    def closers(self) -> tuple[str, ...]:
        """End markers of a call, in order."""
        return self._next[1]

    @cached_property
    def section(self) -> tuple[str, ...]:
        """End markers after the last call, in order."""
        return self._next[2]

    @cached_property
    def call_openers(self) -> tuple[str, ...]:
        """The start marker of a further call in a run. Empty if calls are found one by one in the free text."""
        calls, opener = self.calls, self._next[0]
        # Complete calls with a marker, but without a section or separator, are found one by one in the free text.
        chained = bool(calls.separator or self.section or not calls.whole or calls.sibling or not self.marked)
        named = calls.function[:1] == (Slot.NAME,)
        return (opener,) if chained and (opener or calls.separator or named) else ()

    @cached_property
    def excess(self) -> frozenset[str]:
        """Closing brackets, which models sometimes repeat before an end marker."""
        bracketed = not self.arguments.entry or self.arguments.close.core[-1:] in tuple(")}]")
        return frozenset("}]" if bracketed and not self.calls.whole else "")

    @cached_property
    def marks(self) -> Finder:
        """Finder for everything that may follow a call."""
        # Search for the start marker even if no call may follow. Otherwise, a part of the start marker might match as an end marker.
        opener, closers, section = self._next
        return Finder([*closers, *section, opener, self.calls.separator.core, BACKQUOTES, *self.excess])

    @cached_property
    def after(self) -> str:
        """Whitespace that the format writes after the last call. It may be missing."""
        calls = self.calls
        ends = calls.close.text or calls.call_close.text or literal_of(calls.function[-1])
        return ends[len(ends.rstrip()) :]

    @cached_property
    def stripped(self) -> frozenset[str]:
        """End markers of a call that also end the turn, so that engines strip them."""
        return self.ends & {*self.closers, *self.section}

    @cached_property
    def turn_ends(self) -> Finder:
        """Finder for the markers that end a turn."""
        return Finder(self.ends)

    @cached_property
    def broken_ends(self) -> Finder:
        """Finder for the markers at which a broken call ends: its end markers, and start markers of calls."""
        opener, closers, section = self._next
        return Finder(text for text in (*closers, *section, opener) if len(text) > 1)

    @cached_property
    def refused_ends(self) -> Finder:
        """Finder for the markers at which a call's text ends if that text is content. Empty if calls have no end markers."""
        calls, ends = self.calls, self.unclear_ends.literals
        heads = (piece for marker in (calls.open, calls.call_open, calls.head) for piece in marker.pieces[:1])
        return Finder((*ends, *filter(is_distinctive, heads)) if ends else ())

    @cached_property
    def unclear_ends(self) -> Finder:
        """Like `refused_ends`, for a call with several readings. A start marker inside this call may be part of a value."""
        closing = list(filter(is_distinctive, self.calls.all_closers))
        ends = (*self.over, *(self.trail + text for text in self.over))
        return Finder((*closing, BACKQUOTES, *ends) if closing else ())

    @property
    def unmarked(self) -> bool:
        """True if only a tool name indicates a call. Arguments in brackets would show that the text is a call."""
        return not self.marked and not self.calls.arguments.entry

    # Damaged calls.

    @cached_property
    def mendable(self) -> bool:
        """True if damaged calls can be repaired."""
        calls, arguments = self.calls, self.arguments
        # Raw arguments on lines of their own, such as `city: Paris`, are separated only by whitespace, so they can't be repaired.
        raw = self.raw and (arguments.open_ended or not literal_of(arguments.entry[0]).strip())
        return not calls.whole and self.marked and not raw

    @cached_property
    def raw(self) -> bool:
        """True if arguments have raw values, without delimiters of their own."""
        return bool(self.arguments.entry) and notation_of(self.arguments.codec).unquoted

    @cached_property
    def markers(self) -> tuple[Marker, ...]:
        """All markers in the syntax of a call."""
        calls, arguments = self.calls, self.arguments
        every = (calls.open, calls.call_open, *calls.function, arguments.open, *arguments.entry, arguments.close)
        every = (*every, calls.call_close, calls.close)
        return tuple(part for part in every if isinstance(part, Marker) and part)

    @cached_property
    def single(self) -> frozenset[str]:
        """Pieces of markers that occur only once in a call, so that a second occurrence is a repetition."""
        every = "\n".join(marker.text for marker in self.markers)
        pieces = (piece for marker in self.markers for piece in marker.pieces)
        return frozenset(piece for piece in pieces if is_distinctive(piece) and every.count(piece) == 1)

    @cached_property
    def shown(self) -> frozenset[str]:
        """Markers and parts of markers that values of a damaged call can't contain."""
        return self.single | {marker.core for marker in self.markers if is_distinctive(marker.core)}

    @cached_property
    def last_ends(self) -> tuple[str, ...]:
        """End markers that may follow the last argument of a call."""
        closers = dict.fromkeys((self.arguments.close.core, *self.calls.all_closers))
        return tuple(filter(is_distinctive, closers))

    @cached_property
    def stray(self) -> re.Pattern[str]:
        """Matches closing brackets and closing tags of other formats before an end marker of the call."""
        own = "|".join(map(re.escape, self.last_ends))
        return re.compile(rf"(?:\s*(?!{own})(?:</[^<>\s]{{1,64}}>|[}}\]]))+(?=\s*(?:{own}))" if own else r"(?!)")

    def torn(self, text: str, closer: str) -> bool:
        """Return whether `text`, at the end of the output, is a prefix of the end marker `closer` and of no other marker."""
        others = (marker.core for marker in self.markers if marker.core != closer)
        begun = len(text) > _LEAST_PART and closer.startswith(text)
        return self.mendable and begun and not any(other.startswith(text) for other in others)

    @cached_property
    def opening_words(self) -> frozenset[str]:
        """Words in the markers before the tool name."""
        calls = self.calls
        opening = (calls.open, calls.call_open, *calls.function[: calls.function.index(Slot.NAME)])
        return _HEAD_WORDS | {word for part in opening for word in MARKER_WORDS.findall(literal_of(part))}

    @property
    def other_opener(self) -> str:
        """Other spelling of the tag that starts a call, such as `<function name=` for `<function=`. "" if there is none."""
        tag = ATTRIBUTE.search(self.calls.head.core) if self.mendable else None
        return "" if not tag or " " in tag.group() else f"{self.calls.head.core[: tag.end(1)]} name="

    @cached_property
    def named_head(self) -> re.Pattern[str]:
        """Matches the start of a call, up to its name. The group `open` is the text before the name."""
        function, opener = self.calls.function, re.escape(self.calls.call_open.core)
        if self.calls.envelope:
            return re.compile(rf"(?P<open>(?:{opener})?)\s*{_OBJECT_HEAD}")
        at = function.index(Slot.NAME)
        around = (function[at - 1 : at], function[at + 1 : at + 2])
        before, after = ("".join(part.core for part in parts if isinstance(part, Marker)) for parts in around)
        shown = is_distinctive(before) or is_distinctive(after)
        head = rf"(?P<open>(?:{opener})?\s*{re.escape(before)})(?P<name>{_NAME}){re.escape(after)}"
        return re.compile(head if shown else r"(?!)(?P<open>)(?P<name>)")

    @cached_property
    def mended_style(self) -> LiteralStyle:
        """The notation of the values of a damaged call, if values have their own delimiters."""
        return literal_style(self.arguments.codec, Finder(after_value(self.calls)))
