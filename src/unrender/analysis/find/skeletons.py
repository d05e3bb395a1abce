"""Finds calls in a rendering, turns them into skeletons, and splits the literals around and inside the skeletons into named parts.

A skeleton contains slots and literals in the order of the text: `<f=find>{"a": 1}</f>` has the skeleton `<f=`, NAME, `>`, ARGUMENTS,
`</f>`. The first functions find the values of a call, then rows of calls, then counters. The other functions assign each literal to a part:
opener, name tag, closers, brackets, id.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from unrender.analysis.ask import NAMES, Spent
from unrender.conversation.messages import SaidCall
from unrender.format import Arguments, CallSyntax, Part, Skeleton, Slot, ToolMode, lexemes
from unrender.format.parts import text_of
from unrender.limits import MAX_MARKER, MAX_PLACES
from unrender.proof.split import common_prefix, common_suffix, is_tag

COUNTER = "\ue000"
"""Placeholder for a counter inside a literal while skeletons are being built."""
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpan:
    """A slot, and the range `text[start:end]` of its value. `owner` is the number of the item that the slot belongs to."""

    start: int
    end: int
    slot: Slot = Slot.ARGUMENTS
    owner: int = 0
    value: Any = None
    """The parsed value if the range contains JSON, otherwise None."""


def json_spans(text: str, opener: str, before: int, spent: Spent) -> Iterator[SlotSpan]:
    """Yield the JSON values in `text`, in order.

    Each value starts before the position `before`, with one of the characters in `opener`. The search stops when its cost exceeds the
    limit.
    """
    for match in islice(re.finditer(f"[{re.escape(opener)}]", text[:before]), MAX_PLACES):
        start = match.start()
        if not spent.search(1):
            return
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            spent.search(error.pos - start)
        except (ValueError, RecursionError):
            spent.search(len(text) - start)
        else:
            spent.search(end - start)
            yield SlotSpan(start=start, end=end, value=value)


def arguments_span(text: str, arguments: Mapping[str, Any], spent: Spent, start: int = 0) -> SlotSpan | None:
    """Return the range of `arguments` in `text`, or None. The arguments may be a JSON object, a JSON string or a Python dictionary."""
    key = next(iter(arguments), None)
    at = text.find(key, start) if key else -1
    if at < 0:
        return None
    spans = [span for span in json_spans(text, "{", at, spent) if span.start >= start and span.value == arguments]
    if spans:
        return spans[-1]
    # Look for the object inside a JSON string, as in `"{\"a\": 1}"`.
    quote = text.rfind('"{', start, at)
    quoted = next(json_spans(text[quote:], '"', 1, spent), None) if quote >= 0 else None
    if quoted and _same(quoted.value, arguments, spent):
        return SlotSpan(start=quote, end=quote + quoted.end)
    # Look for a Python dictionary, such as `{'a': None}`: try each closing brace until the text up to that brace is the dictionary.
    brace = text.rfind("{", start, at)
    for match in islice(re.finditer(r"\}", text[brace:] if brace >= 0 else ""), MAX_PLACES):
        end = brace + match.end()
        if not spent.search(end - brace):
            return None
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            if ast.literal_eval(text[brace:end]) == arguments:
                return SlotSpan(start=brace, end=end)
    return None


def native_span(text: str, call: SaidCall, position: int, spent: Spent) -> SlotSpan | None:
    """Return the range of the JSON object that contains this call's name and arguments, and no other call, or None if there is no such
    object.
    """
    name_at = text.find(call.name, position)
    if name_at < 0:
        return None
    # In `{"calls": [{"name": "f"}, {"name": "g"}]}`, the outer object contains both calls, so it isn't a call itself.
    others = [name for name in NAMES if name != call.name]
    found = None
    for span in json_spans(text, "{", max([name_at, *map(text.find, call.arguments)]), spent):
        holds = partial(_holds, span.value, spent)
        if span.start < position or not holds(call.name) or not holds(dict(call.arguments)) or any(map(holds, others)):
            continue
        # In `{"call": {"name": "f"}}`, the outer object is the call. In `{"calls": [{"name": "f"}]}`, the item of the list is the call.
        if found is None or any(isinstance(item, list) and span.value in item for item in _inside(found.value, spent)):
            found = span
    return found


def _inside(value: Any, spent: Spent) -> Iterator[Any]:
    """Yield a value and all keys and values inside it, until the search limit is reached."""
    todo = [value]
    while todo:
        value = todo.pop()
        yield value
        if isinstance(value, dict | list) and spent.search(len(value)):
            if isinstance(value, dict):
                yield from value
            todo += value.values() if isinstance(value, dict) else value


def _holds(value: Any, spent: Spent, wanted: Any) -> bool:
    return any(_same(item, wanted, spent) for item in _inside(value, spent))


def _same(item: Any, wanted: Any, spent: Spent) -> bool:
    """Return whether `item` equals `wanted`, or is a string that contains `wanted` as JSON."""
    if isinstance(item, str) and isinstance(wanted, Mapping) and spent.search(len(item)):
        with suppress(ValueError, RecursionError):
            item = json.loads(item)
    # Compare types too, because `True == 1` in Python.
    return type(item) is type(wanted) and bool(item == wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Consecutive items, and the literals around the items. Each item extends from its first slot to its last slot."""

    before: str
    items: tuple[Skeleton, ...]
    betweens: tuple[str, ...]
    after: str


def find_tokens(text: str, words: Mapping[str, tuple[Slot, int]], covered: Sequence[SlotSpan] = ()) -> list[SlotSpan]:
    """Find all `words` in `text` outside the `covered` spans. Return the spans of the words and the covered spans, in order.

    `words` maps each string to its slot and owner.
    """
    # Try the longest word first, so that `call730011` isn't matched as `call73001` followed by `1`.
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    found = list(covered)
    for match in re.finditer(pattern, text):
        if not any(token.start <= match.start() < token.end for token in covered):
            slot, owner = words[match.group()]
            found.append(SlotSpan(start=match.start(), end=match.end(), slot=slot, owner=owner))
    return sorted(found, key=lambda token: token.start)


def find_row(text: str, calls: Sequence[SaidCall], mode: ToolMode, spent: Spent, entry: Skeleton = ()) -> Row | None:
    """Return the row of `calls` in `text`, or None if a call is missing. `entry` is the skeleton of a tagged argument."""
    wholes: list[SlotSpan] = []
    for owner, call in enumerate(calls):
        position = wholes[-1].end if wholes else 0
        if mode is ToolMode.JSON_NATIVE:
            span = native_span(text, call, position, spent)
        elif mode is ToolMode.TAG_WITH_JSON:
            span = arguments_span(text, call.arguments, spent, position)
        else:
            span = _tagged_span(text, call, entry, position)
        if span is None:
            return None
        wholes.append(replace(span, owner=owner))
    words = {call.name: (Slot.NAME, owner) for owner, call in enumerate(calls)}
    words |= {str(call.id): (Slot.ID, owner) for owner, call in enumerate(calls)}
    if mode is not ToolMode.JSON_NATIVE:
        return make_row(text, find_tokens(text, words, wholes), len(calls))
    texts = [text[whole.start : whole.end] for whole in wholes]
    items = [_native_item(inner, call, words, spent) for inner, call in zip(texts, calls, strict=True)]
    betweens = [text[left.end : right.start] for left, right in itertools.pairwise(wholes)]
    before, after = text[: wholes[0].start], text[wholes[-1].end :]
    return Row(before=before, items=tuple(items), betweens=tuple(betweens), after=after) if all(items) else None


def _tagged_span(text: str, call: SaidCall, entry: Skeleton, position: int) -> SlotSpan | None:
    words = dict.fromkeys(call.arguments, (Slot.KEY, 0))
    words |= {str(value): (Slot.VALUE, 0) for value in call.arguments.values()}
    name_at = text.find(call.name, position)
    inside = [token for token in find_tokens(text, words) if token.start >= max(name_at, position)]
    values = [token.end for token in inside if token.slot is Slot.VALUE]
    if not inside or len(values) < len(call.arguments):
        return None
    last_value = values[len(call.arguments) - 1]
    keys_after_value = entry[entry.index(Slot.VALUE) :].count(Slot.KEY)
    # If the key is repeated after the last value, as in `<a>7</a>`, the repeated key is also part of the arguments.
    ends = [token.end for token in inside if token.start >= last_value and token.slot is Slot.KEY][:keys_after_value]
    prefix, suffix = outer_literals(entry)
    end = (ends or [last_value])[-1] + len(suffix)
    return SlotSpan(start=inside[0].start - len(prefix), end=end)


def _native_item(text: str, call: SaidCall, words: Mapping[str, tuple[Slot, int]], spent: Spent) -> Skeleton:
    """Return the skeleton of a JSON object that is a call, or an empty skeleton if the arguments aren't one object."""
    span = arguments_span(text, call.arguments, spent)
    if span is None:
        return ()
    tokens = find_tokens(text, words, [span])
    return joined_skeleton([text[: tokens[0].start], *skeleton_of(text, tokens), text[tokens[-1].end :]])


def make_row(text: str, tokens: Sequence[SlotSpan], count: int) -> Row | None:
    """Split `text` into `count` items by the owners of its tokens. Return None if an item is missing or two items are interleaved."""
    groups = [[token for token in tokens if token.owner == owner] for owner in range(count)]
    if not all(groups):
        return None
    bounds = [(group[0].start, group[-1].end) for group in groups]
    # In `f, g: {…} {…}`, both names precede both arguments, so the syntax of a single call is unknown.
    if any(left[1] > right[0] for left, right in itertools.pairwise(bounds)):
        return None
    # In `f(a=1)`, the name isn't part of an argument, so the text before the first argument starts after the name.
    earlier = [token.end for token in tokens if token.end <= bounds[0][0]]
    later = [token.start for token in tokens if token.start >= bounds[-1][1]]
    return Row(
        before=text[max(earlier, default=0) : bounds[0][0]],
        items=tuple(skeleton_of(text, group) for group in groups),
        betweens=tuple(text[left[1] : right[0]] for left, right in itertools.pairwise(bounds)),
        after=text[bounds[-1][1] : min(later, default=len(text))],
    )


def skeleton_of(text: str, tokens: Sequence[SlotSpan]) -> Skeleton:
    """Return the slots and literals from the first token to the last."""
    parts: list[Part] = [tokens[0].slot]
    for token, following in itertools.pairwise(tokens):
        parts += [text[token.end : following.start], following.slot]
    return joined_skeleton(parts)


def joined_skeleton(parts: Iterable[Part]) -> Skeleton:
    """Return a skeleton in which adjacent literals are joined, empty literals are removed, and counters are slots."""
    merged: list[Part] = []
    for part in parts:
        # Split `call \ue000: ` into `call `, the counter and `: `.
        pieces = [part] if isinstance(part, Slot) else re.split(f"({COUNTER})", part)
        for piece in pieces:
            if piece == COUNTER:
                merged.append(Slot.INDEX)
            elif merged and not isinstance(piece, Slot) and not isinstance(merged[-1], Slot):
                merged[-1] = str(merged[-1]) + piece
            elif piece:
                merged.append(piece)
    return tuple(merged)


def mark_counters(row: Row) -> tuple[Row, int | None]:
    """Replace numbers that count the items with `COUNTER`. Return the row, and the first number or None if there is no counter."""
    starts: list[int] = []
    # The text between two calls may contain counters of both calls, like `</c0>, <c1>` in `<c0>f</c0>, <c1>g</c1>`. Mark this text in both
    # directions.
    heads = _mark([row.before, *row.betweens], starts, backwards=True)
    tails = _mark([*heads[1:], row.after], starts, backwards=False)
    alike = len({len(item) for item in row.items}) == 1
    items = _mark_items(row.items, starts) if alike else row.items
    return Row(before=heads[0], items=items, betweens=tuple(tails[:-1]), after=tails[-1]), min(starts, default=None)


def _mark(texts: Sequence[str], starts: list[int], *, backwards: bool) -> list[str]:
    """Replace numbers that increase by one from text to text with `COUNTER`.

    The texts are compared up to the first other difference, from their start or, if `backwards` is true, from their end.
    """
    # The text next to a call is compared first, because text further away may differ: the text before a call from its end, and the text
    # after a call from its start.
    step = -1 if backwards else 1
    rows = [_digits_apart(text)[::step] for text in texts]
    for at, column in enumerate(zip(*rows, strict=False)):
        if _counts(column):
            starts.append(int(column[0]))
            for row in rows:
                row[at] = COUNTER
        elif len(set(column)) > 1:
            break
    return ["".join(row[::step]) for row in rows]


def _mark_items(items: Sequence[Skeleton], starts: list[int]) -> tuple[Skeleton, ...]:
    """Replace numbers that count the items in their literals, e.g. `#1` in the first and `#2` in the second, with `COUNTER`."""
    columns = list[Sequence[Part]]()
    for column in zip(*items, strict=True):
        is_slot = any(isinstance(part, Slot) for part in column)
        columns.append(column if is_slot else _mark(column, starts, backwards=False))
    return tuple(map(joined_skeleton, zip(*columns, strict=True)))


def _digits_apart(text: str) -> list[str]:
    """Split `text` into numbers and single characters. Larger pieces could hide a counter inside a tag."""
    return re.findall(r"\d+|\D", text)


def _counts(column: Sequence[str]) -> bool:
    # `0`, `1`, `2` is a counter, but `7`, `7` isn't. Accept only ASCII digits, because `int` rejects digits such as `²`.
    numbers = [int(cell) for cell in column if cell.isascii() and cell.isdigit()]
    steps = {right - left for left, right in itertools.pairwise(numbers)}
    return len(numbers) == len(column) and steps == {1}


_BRACKETS = {"{": "}", "(": ")", "[": "]"}
# Matches the end of an open tag with the name as an attribute: `<call id=1 name="`.
_ATTRIBUTE = re.compile(r"\S+(?:\s+[\w:.-]+=\S*)*\s+[\w:.-]+=[\"']?$")
# Matches an open tag or bracket that ends right before the name: `<function=`.
_OPEN_TAG = re.compile(r"(?:<+[^<>]*|\[+[^\[\]]*)$")
_NAMESPACE = re.compile(r"[\w.]*")


def split_opener(text: str) -> tuple[str, str]:
    """Split the text before a name into the call's opener and the tag that contains the name."""
    line = text.rpartition("\n")[2]
    match = None if len(line) > MAX_MARKER else _ATTRIBUTE.search(line) or _OPEN_TAG.search(line)
    if match:
        at = len(text) - len(line) + match.start()
        return text[:at], text[at:]
    # If the name isn't inside a tag, complete tags and whitespace are the opener, and the rest is part of the function: `<call>\nrun: f`
    # has the opener `<call>\n` and the function `run: `.
    parts = lexemes(text)
    first = next((i for i, part in enumerate(parts) if is_tag(part)), 0)
    while first < len(parts) and (is_tag(parts[first]) or parts[first].isspace()):
        first += 1
    return "".join(parts[:first]), "".join(parts[first:])


def split_closer(text: str, call_start: str) -> tuple[str, str]:
    """Split the text after the arguments into the function's closers and the call's closers.

    The call's closers are as many markers as its opener has.
    """
    # In `<call>` … `</f></call>`, the call has one opener, so only the last marker, `</call>`, closes the call. `</f>` closes the function.
    size = sum(map(is_tag, lexemes(call_start)))
    parts = lexemes(text)
    tags = [i for i, part in enumerate(parts) if is_tag(part)]
    if not size or not tags:
        return text, ""
    first = tags[-min(size, len(tags))]
    # The closers include the whitespace before them, e.g. the line break in `}\n</call>`.
    while first > 0 and parts[first - 1].isspace():
        first -= 1
    return "".join(parts[:first]), "".join(parts[first:])


def move_brackets(function: Skeleton, arguments: Arguments) -> tuple[Skeleton, Arguments]:
    """Move brackets around the arguments, as in `f(…)`, from the call's skeleton into `arguments`."""
    if not arguments.entry:
        return function, arguments
    at = function.index(Slot.ARGUMENTS)
    # In `f(` … `)`, the brackets are part of the arguments, because a call without arguments is `f()`.
    left = outer_literals(function[:at])[1] if at else ""
    right = literal_after(function, Slot.ARGUMENTS)
    closer = _BRACKETS.get(left[-1:], "")
    if not closer or not right.startswith(closer):
        return function, arguments
    parts = [*function[: at - 1], left[:-1], Slot.ARGUMENTS, right[1:], *function[at + 2 :]]
    return joined_skeleton(parts), replace(arguments, start=left[-1], end=closer)


def close_quotes(function: Skeleton, arguments: Arguments) -> tuple[Skeleton, Arguments]:
    """Move the quotation mark before each argument to the argument's end: `" KEY="VALUE` becomes ` KEY="VALUE"`."""
    entry, at = arguments.entry, function.index(Slot.ARGUMENTS)
    right = literal_after(function, Slot.ARGUMENTS)
    first, opener = str(entry[0]) if entry else "", str(entry[-2]) if len(entry) > 1 else ""
    quote = first[:1]
    is_quote = quote and quote in "\"'" and entry[-1] is Slot.VALUE and opener.endswith(quote)
    if not is_quote or arguments.separator or not right.startswith(quote):
        return function, arguments
    # In `<call is="f" a="1" b="2"/>`, comparing arguments assigns the `"` that ends a value to the next argument. Move the quotation mark
    # back.
    turned = joined_skeleton([*function[:at], quote, Slot.ARGUMENTS, right[1:], *function[at + 2 :]])
    return turned, replace(arguments, entry=joined_skeleton([first[1:], *entry[1:], quote]))


def lead_layout(tools: CallSyntax) -> CallSyntax:
    """Move the whitespace after values without a closer to the start of the next argument, and to the end of the arguments."""
    function, arguments = tools.function, tools.arguments
    at, entry = function.index(Slot.ARGUMENTS), arguments.entry
    if not at or not entry or isinstance(entry[-1], Slot):
        return tools
    # In `f\na: 1\nb: 2\n`, the line break after each value becomes the start of the next argument, or the end of the arguments.
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
        function=joined_skeleton(parts),
        arguments=replace(arguments, entry=joined_skeleton([layout, *entry[:-1]])),
        call_end=tools.call_end if after_arguments else layout + tools.call_end,
    )


def left_out(tools: CallSyntax, before: str, after: str, empty: str) -> CallSyntax | None:
    """Return the syntax of calls that omit the text around empty arguments, or None if the renderings don't show this.

    `before` is the text between the name and the arguments of a call. `after` is the text from the end of the arguments to the end of the
    answer. `empty` is the text after the name of a call without arguments.
    """
    function, arguments = tools.function, tools.arguments
    at = function.index(Slot.ARGUMENTS)
    close = arguments.end + "".join(str(part) for part in function[at + 1 :]) + tools.call_end
    if Slot.NAME not in function[max(at - 2, 0) : at] or any(isinstance(part, Slot) for part in function[at + 1 :]):
        return None
    # For example, a call is `f><args>{"a": 1}</args></f>`, or `f></f>` without arguments. Then `before` is `><args>`, `after` is
    # `</args></f>`, and `empty` is `></f>`. The call always contains `>`, and omits `<args>` and `</args>` together with the arguments.
    kept = common_prefix([before, empty])
    rest = empty[len(kept) :]
    ending = common_suffix([after, rest])
    end = after[: len(after) - len(ending)]
    start = before[len(kept) :]
    if not start + end or not close.startswith(end) or not after.startswith(close):
        return None
    after_end, inside = close[len(end) :], len(close) - len(tools.call_end)
    right = after_end[: max(inside - len(end), 0)]
    return replace(
        tools,
        function=joined_skeleton([*function[: function.index(Slot.NAME) + 1], kept, Slot.ARGUMENTS, right]),
        call_end=after_end[len(right) :],
        arguments=replace(arguments, start=start, end=end, when_empty=rest[: len(rest) - len(ending)]),
    )


def id_parts(tools: CallSyntax) -> tuple[int, int] | None:
    """Return the range of the call's id in the function's skeleton, or None if the id doesn't contain the name.

    An id consists of a name and a counter that are joined by one punctuation character: `functions.f:0`. The namespace before the name is
    part of the id.
    """
    if tools.mode is ToolMode.JSON_NATIVE or Slot.NAME not in tools.function or Slot.INDEX not in tools.function:
        return None
    # Accept exactly one character between name and counter, as in `functions.f:0`. In `f::0` and `f{…}:0`, name and counter are separate
    # parts.
    name, index = tools.function.index(Slot.NAME), tools.function.index(Slot.INDEX)
    if index - name != 2 or len(str(tools.function[name + 1])) > 1:
        return None
    before = tools.function[name - 1] if name else ""
    joined = not isinstance(before, Slot) and bool(before) and _NAMESPACE.fullmatch(before)
    return (name - 1 if joined else name, index + 1)


def outer_literals(skeleton: Skeleton) -> tuple[str, str]:
    """Return the literals at both ends of a skeleton. If the skeleton starts or ends with a slot, the literal at that end is empty."""
    return text_of(skeleton[0]), text_of(skeleton[-1])


def literal_after(skeleton: Skeleton, slot: Slot) -> str:
    """Return the literal after `slot`, or an empty string if there is none."""
    at = skeleton.index(slot) + 1
    return text_of(*skeleton[at : at + 1])
