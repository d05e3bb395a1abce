"""Splits the literals around a call into its named parts: opener, name tag, closers, brackets, id."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile

from unrender.analysis.find.split import is_tag, lexemes
from unrender.analysis.find.tokens import merge
from unrender.format import Arguments, CallSyntax, Skeleton, Slot, ToolMode
from unrender.limits import LONGEST_ATTRIBUTE_LINE

_BRACKETS = {"{": "}", "(": ")", "[": "]"}
_ATTRIBUTE = re.compile(r"\S+(?:\s+[\w:.-]+=\S*)*\s+[\w:.-]+=[\"']?$")
_OPEN_TAG = re.compile(r"(?:<+[^<>]*|\[+[^\[\]]*)$")
_NAMESPACE = re.compile(r"[\w.]*")


def split_opener(text: str) -> tuple[str, str]:
    """Split what is before a name into the call's opener and the tag that holds the name."""
    line = text.rpartition("\n")[2]
    match = None if len(line) > LONGEST_ATTRIBUTE_LINE else _ATTRIBUTE.search(line) or _OPEN_TAG.search(line)
    if match:
        at = len(text) - len(line) + match.start()
        return text[:at], text[at:]
    parts = lexemes(text)
    first = next((i for i, part in enumerate(parts) if is_tag(part)), 0)
    while first < len(parts) and (is_tag(parts[first]) or parts[first].isspace()):
        first += 1
    return "".join(parts[:first]), "".join(parts[first:])


def split_closer(text: str, call_start: str) -> tuple[str, str]:
    """Split what follows arguments: the call is closed by as many markers as its opener has."""
    size = sum(map(is_tag, lexemes(call_start)))
    parts = lexemes(text)
    tags = [i for i, part in enumerate(parts) if is_tag(part)]
    if not size or not tags:
        return text, ""
    first = tags[-min(size, len(tags))]
    while first > 0 and parts[first - 1].isspace():
        first -= 1
    return "".join(parts[:first]), "".join(parts[first:])


def move_brackets(function: Skeleton, arguments: Arguments) -> tuple[Skeleton, Arguments]:
    """Move brackets around the arguments, as in `f(…)`, from the call's skeleton into `arguments`."""
    if not arguments.entry:
        return function, arguments
    at = function.index(Slot.ARGUMENTS)
    left = outer_literals(function[:at])[1] if at else ""
    right = literal_after(function, Slot.ARGUMENTS)
    closer = _BRACKETS.get(left[-1:], "")
    if not closer or not right.startswith(closer):
        return function, arguments
    parts = [*function[: at - 1], left[:-1], Slot.ARGUMENTS, right[1:], *function[at + 2 :]]
    return merge(parts), replace(arguments, start=left[-1], end=closer)


def close_quotes(function: Skeleton, arguments: Arguments) -> tuple[Skeleton, Arguments]:
    """Move a quote that opens before each value to the value's other end: `" KEY="VALUE` in a row is ` KEY="VALUE"`."""
    entry, at = arguments.entry, function.index(Slot.ARGUMENTS)
    right = literal_after(function, Slot.ARGUMENTS)
    first, opener = str(entry[0]) if entry else "", str(entry[-2]) if len(entry) > 1 else ""
    quote = first[:1]
    if not quote or quote not in "\"'" or entry[-1] is not Slot.VALUE or not opener.endswith(quote):
        return function, arguments
    if arguments.separator or not right.startswith(quote):
        return function, arguments
    turned = [part for part in (first[1:], *entry[1:], quote) if part]
    return merge([*function[:at], quote, Slot.ARGUMENTS, right[1:], *function[at + 2 :]]), replace(
        arguments, entry=tuple(turned)
    )


def lead_layout(tools: CallSyntax) -> CallSyntax:
    """Move white space after a value that has no closer: to the next argument, and to the end of the arguments."""
    function, arguments = tools.function, tools.arguments
    at, entry = function.index(Slot.ARGUMENTS), arguments.entry
    if not at or not entry or isinstance(entry[-1], Slot):
        return tools
    layout, left = entry[-1], outer_literals(function[:at])[1]
    texts = [part for part in function[at:] if not isinstance(part, Slot)]
    closed = any(text.strip() for text in (arguments.end, *texts, tools.call_end))
    if not layout.isspace() or arguments.start or not left.endswith(layout) or left == layout:
        return tools
    if not arguments.open_ended and closed:
        return tools
    after_arguments = layout if closed else ""
    parts = [*function[: at - 1], left.removesuffix(layout), Slot.ARGUMENTS, after_arguments, *function[at + 1 :]]
    return replace(
        tools,
        function=merge(parts),
        arguments=replace(arguments, entry=merge([layout, *entry[:-1]])),
        call_end=tools.call_end if after_arguments else layout + tools.call_end,
    )


def left_out(tools: CallSyntax, before: str, after: str, empty: str) -> CallSyntax | None:
    """Return the syntax that leaves out more than the arguments when a call has none; None when nothing shows one.

    `before` and `after` are the texts around the arguments in an answer with one call: `before` up to and including the
    name, `after` to the end. `empty` is what follows the name of a call without arguments.
    """
    function, arguments = tools.function, tools.arguments
    at = function.index(Slot.ARGUMENTS)
    close = arguments.end + "".join(str(part) for part in function[at + 1 :]) + tools.call_end
    if Slot.NAME not in function[max(at - 2, 0) : at] or any(isinstance(part, Slot) for part in function[at + 1 :]):
        return None
    kept = "".join(_shared_lexemes(lexemes(before), lexemes(empty)))
    rest = lexemes(empty[len(kept) :])
    ending = "".join(reversed(_shared_lexemes(lexemes(after)[::-1], rest[::-1])))
    end = after[: len(after) - len(ending)]
    start = before[len(kept) :]
    if not start + end or not close.startswith(end) or not after.startswith(close):
        return None
    after_end, inside = close[len(end) :], len(close) - len(tools.call_end)
    right = after_end[: max(inside - len(end), 0)]
    instead = "".join(rest)
    return replace(
        tools,
        function=merge([*function[: function.index(Slot.NAME) + 1], kept, Slot.ARGUMENTS, right]),
        call_end=after_end[len(right) :],
        arguments=replace(arguments, start=start, end=end, when_empty=instead[: len(instead) - len(ending)]),
    )


def _shared_lexemes(left: list[str], right: list[str]) -> list[str]:
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))]


def id_parts(tools: CallSyntax) -> tuple[int, int] | None:
    """Return where the call's id starts and ends in the function's skeleton; None when the name is not part of it.

    A name joined to a counter by punctuation is an id, with the namespace before it: `functions.f:0`.
    """
    if tools.mode is ToolMode.JSON_NATIVE or Slot.NAME not in tools.function or Slot.INDEX not in tools.function:
        return None
    name, index = tools.function.index(Slot.NAME), tools.function.index(Slot.INDEX)
    if index - name != 2 or len(str(tools.function[name + 1])) > 1:
        return None
    before = tools.function[name - 1] if name else ""
    joined = not isinstance(before, Slot) and bool(before) and _NAMESPACE.fullmatch(before)
    return (name - 1 if joined else name, index + 1)


def outer_literals(skeleton: Skeleton) -> tuple[str, str]:
    """Return the literals at both ends of a skeleton."""
    first, last = skeleton[0], skeleton[-1]
    return "" if isinstance(first, Slot) else first, "" if isinstance(last, Slot) else last


def literal_after(skeleton: Skeleton, slot: Slot) -> str:
    """Return the literal right after `slot`, or nothing."""
    at = skeleton.index(slot) + 1
    part = skeleton[at] if at < len(skeleton) else ""
    return "" if isinstance(part, Slot) else part
