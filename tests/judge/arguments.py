"""A check that the arguments of complete calls contain everything written for them.

It reads the text under spans of arguments independently of the parser. JSON is compared as values; otherwise each word
of the text must occur in the arguments, in order. `SAME` maps words of the text to their JSON spelling. The text that a
Format writes for no arguments (`when_empty`) is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from html import unescape
from typing import Any

from judge.outcome import Outcome, expect, syntaxes

from unrender import ArgumentsText, Malformed, Message, ToolCall, ToolCallStarted
from unrender.format import Arguments, Containers, Format, Slot

SAME = {"True": "true", "False": "false", "None": "null", "NaN": "null", "undefined": "null"}
"""Words of the text, and how JSON spells them in arguments."""


def argued(format: Format, outcome: Outcome, text: str) -> None:
    """Expect each complete call to have one JSON object that contains the text under its spans of arguments."""
    calls = calls_under_spans(outcome.message)
    for call in calls:
        expect("arguments that are not one JSON object", _is_object(call.arguments_json), call)
    for index, call in enumerate(outcome.message.tool_calls):
        given = [event.text for event in outcome.events if isinstance(event, ArgumentsText) and event.index == index]
        expect("events that do not add up to the arguments", "".join(given) == call.arguments_json, given, call)
    started = [event.index for event in outcome.events if isinstance(event, ToolCallStarted)]
    expect("calls that are not told of", started == list(range(len(outcome.message.tool_calls))), started)
    nothing = {(syntax.arguments.when_empty or "").strip() for syntax in syntaxes(format)}
    written = [piece for piece in outcome.under(text, "argument") if piece not in nothing]
    said = "".join(leaf for call in calls for leaf in _leaves(json.loads(call.arguments_json, **_AS_WRITTEN)))
    if not any(syntax.arguments.entry for syntax in syntaxes(format)) and all(
        _is_object(piece, strict=False) for piece in written
    ):
        _same_objects(calls, written, elsewhere=_under_other_names(format, outcome))
        return
    missing = _missing(_read_by_hand(format, " ".join(written)), said)
    expect("text of arguments that no call has", not missing, missing, written, calls)


def _meanings(name: str) -> Iterator[str]:
    """Yield a name as written, then without the escapes of XML and of JSON."""
    yield name
    yield unescape(name)
    with suppress(ValueError):
        yield str(json.loads(f'"{name}"'))


def named(outcome: Outcome, text: str) -> None:
    """Expect the text under each span of names to name a call or an argument."""
    calls = outcome.message.tool_calls
    keys = {key for call in calls_under_spans(outcome.message) for key in _keys(json.loads(call.arguments_json))}
    for name in outcome.under(text, "name"):
        # If whitespace may be missing, the first argument's name directly follows the call's name.
        rests = [meant.removeprefix(call.name) for call in calls for meant in _meanings(name)]
        known = any(not rest or rest.strip().strip("\"'") in keys for rest in (*_meanings(name), *rests))
        expect("a name that names nothing", known, name, calls)


def _keys(value: Any) -> Iterator[str]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield str(key)
        yield from _keys(item)


def calls_under_spans(message: Message) -> list[ToolCall]:
    """Return the calls whose text is under spans of arguments. The text of a failed call is under spans of content."""
    return [call for call in message.tool_calls if call.status == "complete"]


def _under_other_names(format: Format, outcome: Outcome) -> int:
    """Return the number of calls whose arguments are under another name. An event reports each, under a marker."""
    envelopes = [syntax.envelope for syntax in syntaxes(format) if syntax.envelope]
    names = {repr(envelope.args_field[-1]) for envelope in envelopes if envelope.args_field}
    return sum(isinstance(event, Malformed) and event.expected in names for event in outcome.events)


def _same_objects(calls: Sequence[ToolCall], written: Sequence[str], *, elsewhere: int) -> None:
    """Expect each object of the text in one call, in order.

    `elsewhere` is the number of calls whose arguments aren't in `written`. A call without arguments may have no text.
    """
    left = [json.loads(call.arguments_json) for call in calls]
    for piece in written:
        value = json.loads(piece, strict=False, parse_constant=lambda _: None)  # `NaN` becomes null.
        while left and left[0] != value:
            empty = left.pop(0) == {}
            expect("an object of arguments that no call has", empty or elsewhere > 0, value, calls)
            elsewhere -= not empty
        expect("an object of arguments that no call has", bool(left), value, calls)
        left.pop(0)


def _is_object(text: str, *, strict: bool = True) -> bool:
    try:
        return isinstance(json.loads(text, strict=strict), dict)
    except (ValueError, RecursionError):
        return False


_AS_WRITTEN: dict[str, Any] = {"object_pairs_hook": list, "parse_int": str, "parse_float": str, "strict": False}
"""JSON decoding that keeps repeated fields and all digits of numbers."""


def _leaves(value: Any) -> Iterator[str]:
    """Yield the names and the scalars of a value, in order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value if isinstance(value, str) else {None: "null", True: "true", False: "false"}.get(value, str(value))


_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbfav0-7]{1,3}|N\{[^}]*\})")
_NUMBER = re.compile(r"[-+]?[0-9._]*[0-9][0-9._]*(?:[eE][-+]?[0-9]+)?")
_WORDS = re.compile(rf"{_NUMBER.pattern}|[^\W_]+")


def _read_by_hand(format: Format, written: str) -> str:
    """Return the text of arguments without the notation around and inside values: quotes, tags, escapes."""
    if any(_has_entities(syntax.arguments) for syntax in syntaxes(format)):
        written = unescape(written)
    for syntax in syntaxes(format):
        for delimiter in filter(None, (syntax.arguments.codec.string_open, syntax.arguments.codec.string_close)):
            written = written.replace(delimiter, " ")
        written = _tag(syntax.arguments).sub(" ", written)
    return " ".join(_WORDS.findall(_ESCAPE.sub(" ", written)))


@lru_cache(maxsize=512)
def _tag(arguments: Arguments) -> re.Pattern[str]:
    """Return a pattern for tags inside values, if the arguments are written in tags of their own names."""
    texts = [part for part in arguments.entry if not isinstance(part, Slot) and part.strip()]
    if arguments.entry.count(Slot.KEY) < 2 or len(texts) < 2:
        return re.compile("(?!)")
    opens, closes = texts[0].strip(), texts[-1].strip()
    heads = {opens, *(text.strip() for text in texts[1:-1])}
    return re.compile(f"(?:{'|'.join(map(re.escape, sorted(heads, key=len)[::-1]))})[^<>]{{0,80}}?{re.escape(closes)}")


def _has_entities(arguments: Arguments) -> bool:
    return arguments.codec.containers is Containers.XML


def _missing(written: str, said: str) -> str:
    """Return the first word of the text that the arguments lack at its place. Numbers are compared by digits."""
    at = 0
    for word in written.split():
        forms = (word, SAME.get(word, word), word.strip("+-0._").partition("e")[0].rstrip("0."))
        ends = [_after(form, said, at) for form in forms[: 3 if _NUMBER.fullmatch(word) else 2]]
        at = min((end for end in ends if end >= 0), default=-1)
        if at < 0:
            return word
    return ""


def _after(word: str, said: str, at: int) -> int:
    """Return the position after the letters and digits of `word`, in order; -1 if they are missing."""
    for letter in filter(str.isalnum, word):
        at = said.find(letter, at) + 1
        if not at:
            return -1
    return at
