"""Answers FOLLOW of a call syntax: what may come after a name, after a value, after all arguments.

Rule: what is written is narrower than what is read. `written_stops` never come in a raw value that is written, and the
others end what is read, in pieces between which any white space may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from unrender.format import Arguments, CallSyntax, Containers, Part, Slot
from unrender.format.parts import text_of
from unrender.grammar.assemble import splitter, tokens
from unrender.limits import MAX_SMALL
from unrender.schema.shapes import Object
from unrender.values.unmarked_ends import Follow

_FENCE = re.compile(r"```\w*")
"""A Markdown fence: it may be missing where one is written."""

# After what is written.


def written_stops(syntax: CallSyntax, objects: Iterable[Object]) -> tuple[str, ...]:
    """Return the texts that end a raw value, whose arguments are one of `objects`."""
    # `<a>1</a>`: the value ends at `</a>`. `a=1, b=2`: it ends where the next argument or the call's end begins.
    arguments = syntax.arguments
    after = text_of(*arguments.entry[arguments.entry.index(Slot.VALUE) + 1 :][:1])
    own = (after, after.strip(), *arguments.closers)
    return tuple(
        dict.fromkeys(own if after.strip() else (*_next_arguments(arguments, objects), *_written_after(syntax)))
    )


def closing_tag(arguments: Arguments, key: str, *, counted: bool) -> tuple[str, ...]:
    """Return how the tag of the argument `key` is closed; nothing where its name is in no such tag.

    `<html><b>so</b></html>`: only its own tag ends a value, unless lists and objects are tags as well. With `counted`,
    tags of its own name are counted in it.
    """
    entry, codec = arguments.entry, arguments.codec
    at = entry.index(Slot.VALUE)
    before, after = (text_of(*entry[i : i + 1]) for i in (at + 1, at + 3))
    named = entry[at + 2 : at + 3] == (Slot.KEY,) and before.strip()
    if not named or not codec.strings.unquoted or codec.containers is Containers.XML:
        return ()
    name = key + after.strip()
    opener = (text_of(entry[0]).strip() + name,) if counted else ()
    return tuple(dict.fromkeys((before + name, before.strip() + name, *arguments.closers, *opener)))


def _next_arguments(arguments: Arguments, objects: Iterable[Object]) -> tuple[str, ...]:
    """Return the texts with which another argument may begin, with its name where `objects` know all names."""
    between = arguments.between if arguments.open_ended else arguments.separator
    apart = between.strip() or between
    objects = list(objects)
    names = dict.fromkeys(item.name for shape in objects for item in shape.properties)
    known = arguments.open_ended and not arguments.in_code and not any(shape.extra for shape in objects)
    if not known or not 0 < len(names) <= MAX_SMALL:
        return (apart,) if apart else ()
    # After the value of `<a>1<b>2` comes `<b>`; the bare `<` could as well be a part of raw text.
    after = arguments.entry[arguments.entry.index(Slot.KEY) + 1]
    return tuple(f"{between.lstrip() or between}{name}{text_of(after)}" for name in names)


def _written_after(syntax: CallSyntax) -> tuple[str, ...]:
    """Return the texts that may follow the last argument of a call, without white space around them."""
    # `f(a=1)` ends at `)`, in the skeleton itself; arguments that nothing closes end where the call does, and a call that
    # nothing ends where the next one begins, or at the end of all. Layout alone is no sign: a text may hold a line break.
    function = syntax.function
    further = syntax.separator + syntax.call_start + text_of(*function[:1])
    ways = (
        (syntax.arguments.end, text_of(*function[function.index(Slot.ARGUMENTS) + 1 :][:1])),
        (syntax.call_end,),
        (further, syntax.section_end),
    )
    found = ([text.strip() for text in texts if text.strip()] for texts in ways)
    return tuple(next(filter(None, found), ()))


# After what is read.


def open_ends(syntax: CallSyntax, ends: Iterable[str] = (), trail: str = "") -> Follow:
    """Return what finds the ends of values without an end marker; `ends` are ends of turn, after the layout `trail`."""
    arguments, function = syntax.arguments, syntax.function
    name, at = function.index(Slot.NAME), function.index(Slot.ARGUMENTS)
    after_name = (arguments.start,) if at == name + 1 else function[name + 1 : name + 2]
    return Follow(
        in_code=arguments.in_code,
        entry=arguments.entry,
        between=arguments.between,
        closing=(arguments.end, *function[at + 1 :], syntax.call_end, syntax.section_end),
        further=(syntax.separator, syntax.call_start, *function[: name + 1], *after_name),
        ends=tuple(sorted(ends)),
        trail=trail,
    )


def last_slot(parts: tuple[Part, ...]) -> int:
    """Return the index of the last slot; -1 if there is none."""
    return max((i for i, part in enumerate(parts) if isinstance(part, Slot)), default=-1)


def without_fences(pieces: list[str]) -> list[str]:
    """Return the pieces other than Markdown fences."""
    return [piece for piece in pieces if not _FENCE.fullmatch(piece)]


def call_closers(syntax: CallSyntax, split: Callable[[str], list[str]]) -> list[str]:
    """Return the markers that close one call, in order; `split` cuts literals into pieces."""
    parts = syntax.function
    inside = [] if syntax.envelope else [text_of(part) for part in parts[last_slot(parts) + 1 :]]
    return [token for text in (*inside, syntax.call_end) for token in without_fences(split(text))]


def closing_tokens(syntax: CallSyntax) -> list[str]:
    """Return the markers that close a call and a run of calls, in order."""
    split = splitter(syntax)
    return [*call_closers(syntax, split), *without_fences(split(syntax.section_end))]


def after_arguments(syntax: CallSyntax) -> list[str]:
    """Return what may follow a call's last argument: the end of the call or of all calls, or the next call."""
    split = splitter(syntax)
    begins = split(syntax.call_start) or split(text_of(syntax.function[0]))[:1]
    # Of `<|end|>calls<|sep|>`, the `<|sep|>` alone closes nothing where it ends the markers of arguments as well.
    parts = (*syntax.arguments.entry, *syntax.function[: last_slot(syntax.function)])
    inside = [text_of(part).strip() for part in parts]
    closers = [it for it in closing_tokens(syntax) if len(it) < 2 or not any(it in text != it for text in inside)]
    return [*closers, *without_fences(begins)]


def after_part(syntax: CallSyntax, i: int) -> list[str]:
    """Return what may follow the slot at `i` of a call; words that say nothing and arguments may be left out."""
    arguments = syntax.arguments
    found: list[str] = []
    for part in syntax.function[i + 1 :]:
        if part is Slot.ARGUMENTS:
            texts = (arguments.start, *map(text_of, arguments.entry[:1]), arguments.when_empty or "")
            found += [token for text in texts for token in tokens(text)[:1]]
        elif part is not Slot.ANY:
            found += tokens(text_of(part))[:1]
        # `now` alone may be a whole call: where arguments may be missing, what follows them ends the name.
        left_out = part is Slot.ARGUMENTS and (arguments.entry or arguments.when_empty == "")
        if text_of(part).strip() or (isinstance(part, Slot) and part is not Slot.ANY and not left_out):
            return found
    return [*found, *after_arguments(syntax), *tokens(syntax.separator)[:1]]


def after_entries(syntax: CallSyntax) -> list[str]:
    """Return what may follow the last of arguments that have markers of their own."""
    # Where nothing closes the arguments, what closes the call does, or what begins the next one.
    parts = syntax.function
    at = parts.index(Slot.ARGUMENTS) + 1
    inside = tokens(text_of(parts[at]))[:1] if at < last_slot(parts) else []
    ends = tokens(syntax.arguments.end)[:1] or [*inside, *after_arguments(syntax)]
    closing = (syntax.arguments.end, *map(text_of, parts[at:]), syntax.call_end, syntax.section_end)
    return [*ends, *tokens(syntax.separator)[:1], *(["```"] if any("```" in text for text in closing) else [])]


def after_value(syntax: CallSyntax) -> list[str]:
    """Return what ends a raw value, with ever less of the white space before it."""
    arguments, entry = syntax.arguments, syntax.arguments.entry
    suffix = text_of(*entry[entry.index(Slot.VALUE) + 1 :][:1])
    core = suffix.strip()
    lead = suffix[: suffix.index(core)] if core else suffix
    if core:
        texts = [lead + text for text in (core, *arguments.closers, *after_closer(syntax))]
    else:
        # `|>a<x>true|>b<x>1`: where nothing separates arguments, the text before the next one's key shows that a value is over.
        separator = arguments.separator
        between = (separator if separator.strip() else text_of(entry[0]), arguments.end)
        texts = [*(lead + text.rstrip() for text in between if text.strip()), *after_arguments(syntax)]
    # `\n</v>`, `</v>`: the line break before the closer is not part of the value, where it is there.
    variants = [text[k:] for text in texts for k in range(len(text) - len(text.lstrip()) + 1)]
    return [*variants, *(form for _, form in arguments.codec.escapes)]


def after_closer(syntax: CallSyntax) -> tuple[str, ...]:
    """Return a function's end and its call's end together: so much closing that it is not an argument's text."""
    function = text_of(syntax.function[-1]).strip()
    whole = (function + syntax.call_end).strip()
    return (whole,) if function and whole != function else ()
