"""Compiles the arguments of one call syntax into straight-line code.

Rules: white space is flexible; beside raw values it is taken only as far as the format writes it. A Markdown fence may
be wherever a JSON value begins.
"""

from __future__ import annotations

from unrender.format import Arguments, CallSyntax, Containers, Part, Slot
from unrender.machine.arguments import (
    CloseArguments,
    CloseValue,
    Entries,
    JsonArguments,
    NoArguments,
    Value,
    literal_style,
)
from unrender.machine.compile.code import Code
from unrender.machine.compile.literals import (
    before_object,
    last_slot,
    literal_code,
    text_of,
    tokens,
    what_follows_arguments,
)
from unrender.machine.instructions import Jump, Lit, Soft, Space
from unrender.machine.interpreter import Instruction
from unrender.machine.slots import ReadKey, ReadWord, RepeatKey
from unrender.values.finder import Finder
from unrender.values.notations import notation_of
from unrender.values.scanner import LiteralStyle
from unrender.values.unmarked_ends import Follow
from unrender.values.xml import TagStyle


class ArgumentCode:
    """Compiles the arguments of `syntax` into `code`; `ends` are the texts that end a turn."""

    def __init__(self, code: Code, syntax: CallSyntax, ends: frozenset[str]) -> None:
        self.code = code
        self.syntax = syntax
        self.arguments: Arguments = syntax.arguments
        self.ends = ends

    def compile(self) -> None:
        """Emit the code that reads all arguments, or the text written when there are none."""
        arguments, empty = self.arguments, self.arguments.when_empty
        if empty is None:
            self._read_arguments()
            return
        none = self.code.reserve()
        self._read_arguments()
        first = arguments.start if arguments.start.strip() else "".join(map(text_of, arguments.entry[:1]))
        begins = tokens(first)[:1] or ([] if arguments.entry else ["{", '"'])
        self.code.put(none, NoArguments(empty.strip(), Finder(begins), len(self.code)))

    def _read_arguments(self) -> None:
        if self.arguments.entry:
            self._read_entries()
        else:
            self._read_object()

    def _read_object(self) -> None:
        arguments = self.arguments
        strict = self.syntax.whole and notation_of(arguments.codec).is_json
        opened = [*literal_code(self.syntax, arguments.start), *before_object()] if arguments.start.strip() else []
        read = JsonArguments(LiteralStyle(strict=strict, loose_keys=not strict))
        self.code.emit(*opened, read, *literal_code(self.syntax, arguments.end))

    def _read_entries(self) -> None:
        arguments = self.arguments
        self.code.emit(*literal_code(self.syntax, arguments.start))
        between = self.code.reserve()
        entry = self._entry(between)
        done = self.code.emit(CloseArguments(bool(arguments.end.strip())), *literal_code(self.syntax, arguments.end))
        opener = (tokens(text_of(arguments.entry[0])) or [""])[0]
        separator = arguments.separator.strip()
        ends = tokens(arguments.end)[:1] or [*self._after_arguments(), *what_follows_arguments(self.syntax)]
        further_call = tokens(self.syntax.separator)[:1]
        follow = Follow(self.syntax, tuple(sorted(self.ends)))
        marks = Finder([opener, *ends, *further_call, *follow.fences])
        further = None if follow.closed or opener else follow
        self.code.put(between, Entries(entry, done, opener, separator, marks, follow.closed, further))

    def _after_arguments(self) -> list[str]:
        """What follows the arguments where more slots come after them, as in `</NAME>`."""
        parts = self.syntax.function
        at = parts.index(Slot.ARGUMENTS) + 1
        return tokens(text_of(parts[at]))[:1] if at < last_slot(parts) else []

    def _entry(self, between: int) -> int:
        """Emit the code of one argument and return where it begins; after it, `between` goes on."""
        start = len(self.code)
        entry = self.arguments.entry
        raw = notation_of(self.arguments.codec).unquoted
        for i, part in enumerate(entry):
            if part is Slot.KEY:
                again = Slot.KEY in entry[:i]
                key = RepeatKey() if again else ReadKey(_stops(entry, i), isinstance(entry[0], Slot))
                self.code.emit(key)
            elif part is Slot.VALUE:
                self.code.emit(self._value(i))
            elif isinstance(part, Slot):
                words = tuple(word for _, word in self.arguments.codec.types) if part is Slot.TYPE else ()
                self.code.emit(ReadWord(part, _stops(entry, i), tuple(dict.fromkeys(words))))
            else:
                self.code.emit(*self._entry_literal(entry, i, part, raw))
        self.code.emit(Jump(between))
        return start

    def _entry_literal(self, entry: tuple[Part, ...], i: int, text: str, raw: bool) -> list[Instruction]:
        """A literal of an argument; beside a raw value its white space is taken exactly."""
        core = text.strip()
        before = raw and entry[i + 1 : i + 2] == (Slot.VALUE,)
        if raw and i > 0 and entry[i - 1] is Slot.VALUE:
            layout = Soft(text[: len(text) - len(text.lstrip())])
            return [layout, CloseValue(core, tuple(self._whole_closers()))]
        found: list[Instruction] = []
        for token in tokens(core):
            found += [Space(), Lit(token)]
        if before:
            found.append(Soft(text[len(text.rstrip()) :] if core else text))
        elif text[-1:].isspace() and entry[i + 1 : i + 2] != (Slot.VALUE,):
            found.append(Space())
        return found

    def _value(self, i: int) -> Value:
        arguments, entry = self.arguments, self.arguments.entry
        if Follow.needed(self.syntax):
            return _read_value(arguments, Follow(self.syntax, tuple(sorted(self.ends))))
        suffix = text_of(entry[i + 1]) if i + 1 < len(entry) else ""
        core = suffix.strip()
        lead = suffix[: suffix.index(core)]
        closers = [lead + text for text in (core, *self._whole_closers())]
        texts = closers if core else self._ends_of_value(suffix)
        variants = [text[k:] for text in texts for k in range(len(text) - len(text.lstrip()) + 1)]
        return _read_value(arguments, Finder(variants), _tags(arguments, i))

    def _ends_of_value(self, layout: str) -> list[str]:
        """What follows a value that has only `layout` of its own after it: its white space is not a part of the value."""
        texts = (self.arguments.separator, self.arguments.end)
        between = [layout + text.rstrip() for text in texts if text.strip()]
        return [*between, *what_follows_arguments(self.syntax)]

    def _whole_closers(self) -> list[str]:
        """A function's end and its call's end together: so much closing that it is not an argument's text."""
        function = text_of(self.syntax.function[-1]).strip()
        whole = (function + self.syntax.call_end).strip()
        return [whole] if function and whole != function else []


def _stops(entry: tuple[Part, ...], i: int) -> Finder:
    following = next((part for part in entry[i + 1 :] if not isinstance(part, Slot)), "")
    return Finder(tokens(following)[:1] or (" ", "\n"))


def _read_value(arguments: Arguments, suffix: Finder | Follow, tags: TagStyle | None = None) -> Value:
    codec = arguments.codec
    return Value(
        codec,
        suffix,
        literal_style(codec, suffix, in_code=arguments.in_code and arguments.end.strip() == ")"),
        tags,
    )


def _tags(arguments: Arguments, i: int) -> TagStyle | None:
    """Return how the tags are written when the argument's name is the tag's: `<city>…</city>`."""
    entry = arguments.entry
    by_itself = not arguments.codec.strings.unquoted and arguments.codec.containers is not Containers.XML
    if Slot.KEY not in entry[i + 1 :] or by_itself:
        return None
    again = entry.index(Slot.KEY, i + 1)
    opens = text_of(entry[0]).strip()
    before = text_of(entry[again - 1])
    closes = before.strip()
    return TagStyle(
        opens,
        closes,
        text_of(entry[again + 1]).strip(),
        arguments.codec.item_tag,
        space=before[: before.index(closes)] if not arguments.codec.item_tag else "",
    )
