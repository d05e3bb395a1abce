"""Finds the notation of arguments from calls with no, one, two and many arguments (T5, T6, A1, A2, A3).

Strategy: every codec writes numbers without quotes, so the skeleton of an argument is derived from numbers alone. Comparing a number with a
string then reveals quotes or a type attribute. A call with all kinds of values reveals the codec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product, takewhile
from typing import Any, assert_never

from markupsafe import escape

from unrender.analysis.ask import KEYS, NAMES, NUMBERS, PLAIN_NEEDLE, Spent
from unrender.analysis.ask.answers import ANSWER_KINDS, Answers, WrittenCall
from unrender.analysis.find.skeletons import Row, arguments_span, find_tokens, joined_skeleton, literal_after, make_row
from unrender.format import Arguments, Codec, Containers, Skeleton, Slot, Strings, Typing, Words, lexemes
from unrender.proof.split import Solution, common_prefix, common_suffix, is_word, solve
from unrender.values.notations import encode_value

_SEPARATORS: tuple[dict[str, Any], ...] = tuple(
    {"item_separator": item, "key_separator": key} for item, key in ((", ", ": "), (",", ":"), (",", ": "), (", ", ":"))
)
_INDENTS = (2, 4, 1, 3, 8)
_IN_STRING = (('"', '\\"'), ("\\", "\\\\"), ("\n", "\\n"))
"""Characters that are escaped if a JSON object is written inside a JSON string, each with its escape."""
_MARKS = "\"'\\<>&\n\r\t\f\b\v\a/"
"""Characters that templates may escape in raw text: those with an escape of their own in Python, JSON or HTML."""


FoundCodec = tuple[Codec, tuple[str, ...]]
"""A codec, and a message for each value that the codec doesn't reproduce."""


def find_json_codec(text: str, values: Mapping[str, Any], margin: str) -> FoundCodec:
    """Find the codec with which `text` encodes `values` as one JSON object or Python dictionary."""
    python = {"strings": Strings.PYTHON, "words": Words.PYTHON, "containers": Containers.PYTHON}
    quoted = (layout | {"escapes": _IN_STRING} for layout in _json_layouts())
    # Try every layout, e.g. `{"a":1}` and `{"a": 1}`. Use the first one that reproduces the text exactly.
    for sorted_keys, layout in product((False, True), [*_json_layouts(), *quoted, python]):
        codec = Codec(sorted_keys=sorted_keys, **layout)
        if encode_value(values, codec, margin=margin) == text:
            return codec, ()
    return Codec(), (f"the arguments {text!r:.200} are written in no known layout",)


def find_value_codec(written: Mapping[str, str], arguments: Arguments, values: Mapping[str, Any]) -> FoundCodec:
    """Find the codec that encodes each of `values` as the text in `written`.

    `arguments` is the syntax of arguments that has been found so far.
    """
    seen = {key: value for key, value in values.items() if key in written}
    codec = arguments.codec
    # Derive each property from the values that show it: strings don't show `None` or `null`, and lists don't show quotes. Containers come
    # last and are compared with all values, because `["a", 2]` also depends on the notation of strings and words.
    codec = replace(codec, **_strings(written, seen, codec))
    words = min(Words, key=lambda option: len(_misfits(written, seen, Arguments(codec=Codec(words=option)))))
    # If the null value isn't rendered, the codec omits nulls, as in `f(a=1)` for `{"a": 1, "b": null}`.
    codec = replace(codec, words=words, omits_null="pkeyap" in values and "pkeyap" not in written)
    trials = (
        replace(arguments, codec=replace(codec, containers=containers, sorted_keys=sorted_keys, **option))
        for sorted_keys, containers in product((False, True), Containers)
        for option in _container_options(containers, written)
    )
    best = min(trials, key=lambda trial: len(_misfits(written, seen, trial)))
    unexplained = (
        f"the value {seen[key]!r} is written as {written[key]!r:.200}, the codec says {text!r:.200}"
        for key, text in _misfits(written, seen, best)
    )
    return best.codec, tuple(unexplained)


def _misfits(written: Mapping[str, str], values: Mapping[str, Any], arguments: Arguments) -> list[tuple[str, str]]:
    """Return the keys whose values the codec encodes differently from the template, each with the codec's text."""
    encoded = ((key, encode_value(value, arguments.codec, arguments.entry)) for key, value in values.items())
    return [(key, text) for key, text in encoded if text != written[key]]


def _json_layouts() -> Iterator[dict[str, Any]]:
    for ascii_only in (False, True):
        for layout in (*_SEPARATORS, *({"indent": indent} for indent in _INDENTS)):
            yield layout | {"ascii_only": ascii_only}


def _strings(written: Mapping[str, str], values: Mapping[str, Any], codec: Codec) -> dict[str, Any]:
    """Return the codec options that reproduce the most strings. Of equally good options, the first is used."""
    strings = {key: value for key, value in values.items() if isinstance(value, str)}
    escapes = _escapes(written, strings, codec)
    opened = bool(codec.string_open)
    options = [
        {"strings": kind} | option for kind in Strings for option in _string_options(kind, escapes, opened=opened)
    ]
    if codec.typed_by is Typing.ATTRIBUTE:
        options = [option | {"typed_by": Typing.ATTRIBUTE} for option in options if option["strings"].unquoted]

    best = min(options, key=lambda option: len(_misfits(written, strings, Arguments(codec=replace(codec, **option)))))
    # If strings have another notation, such as JSON's `"`, text before strings but not before numbers isn't a quotation mark.
    if best["strings"] is not Strings.QUOTED:
        best = best | {"string_open": "", "string_close": ""}
    return best


def _escapes(written: Mapping[str, str], strings: Mapping[str, str], codec: Codec) -> tuple[tuple[str, str], ...]:
    """Return pairs of a character and its escape, or an empty tuple if the rendered strings also differ from their values in other ways."""
    # If `a < b` is written as `a &lt; b`, the text between the words, `&lt;`, is the escape. A character has one escape everywhere, which
    # also splits `&lt;/`, the text of `</`.
    forms: dict[str, str] = {}
    for key, value in strings.items():
        marks = {character: f"m{ord(character)}" for character in value if character in _MARKS}
        places = {character: f"(?P<{name}>.{{1,8}}?)" for character, name in marks.items() if character not in forms}
        pattern = ""
        for character in value:
            known = f"(?P={marks[character]})" if character in marks and character not in forms else ""
            pattern += places.pop(character, known) or re.escape(forms.get(character, character))
        inside = written[key].removeprefix(codec.string_open).removesuffix(codec.string_close)
        found = re.fullmatch(pattern, inside, re.DOTALL)
        if found is None:
            return ()
        forms |= {character: found[name] for character, name in marks.items() if character not in forms}
    return tuple((character, form) for character, form in forms.items() if form != character)


def _string_options(
    strings: Strings, escapes: tuple[tuple[str, str], ...], *, opened: bool
) -> Iterator[dict[str, Any]]:
    """Yield codec options for a notation of strings. `opened` is true if a marker precedes strings but not numbers."""
    match strings:
        case Strings.JSON:
            yield from ({"ascii_only": ascii_only} for ascii_only in (False, True))
        case Strings.PYTHON | Strings.SINGLE:
            yield {}
        case Strings.RAW:
            unopened: tuple[dict[str, Any], ...] = ({}, {"cdata": True}, {"escapes": escapes})
            yield from ({"typed_by": Typing.SCHEMA} | option for option in (unopened[1:2] if opened else unopened))
        case Strings.QUOTED:
            yield from ({}, {"escapes": escapes}) if opened else ()
        case _:
            assert_never(strings)


def _container_options(containers: Containers, written: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    match containers:
        case Containers.JSON:
            yield from _json_layouts()
        case Containers.PYTHON:
            yield {}
        case Containers.BARE:
            yield from _SEPARATORS
        case Containers.XML:
            yield from ({"item_tag": tag} for tag in _item_tags(written.get("pkeyaq", "")))
        case _:
            assert_never(containers)


def _item_tags(text: str) -> list[str]:
    """Return candidates for the tag of a list's items: the words before the first item, nearest first."""
    # In `<list><item>valdrixo`, the nearest word, `item`, is the most likely candidate.
    head = text.partition(PLAIN_NEEDLE)[0]
    words = "".join(character if character.isalnum() or character in "_-" else " " for character in head).split()
    return list(dict.fromkeys(reversed(words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsFinding:
    """The notation of arguments, and diagnostics."""

    arguments: Arguments
    unexplained: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    """Maps each comparison to the name of the heuristic that chose its finding."""
    many: str | None = None
    """Answer with values of many types, or None if its arguments couldn't be extracted."""


def find_json_arguments(written: WrittenCall, spent: Spent) -> ArgumentsFinding:
    """Find the notation of arguments that form one JSON object or Python dictionary."""
    for values, body in written.many:
        span = None if body is None else arguments_span(body, values, spent)
        if body is None or span is None:
            continue
        # The margin of an indented object is the indentation of the line on which the object starts.
        line = body[: span.start].rpartition("\n")[2]
        margin = line[: len(line) - len(line.lstrip(" "))]
        codec, unexplained = find_json_codec(body[span.start : span.end], values, margin)
        return ArgumentsFinding(arguments=Arguments(codec=codec), unexplained=unexplained, many=body)
    return ArgumentsFinding(arguments=Arguments())


def find_tagged_arguments(answers: Answers, written: WrittenCall) -> ArgumentsFinding:
    """Find the notation of tagged arguments: the skeleton of one argument, the separator, and the codec of values.

    If the notation isn't found, the result contains no skeleton.
    """
    solved = _solve_entry(answers)
    if solved is None:
        return ArgumentsFinding(arguments=Arguments())
    entry, solution, after = solved
    arguments = Arguments(entry=entry, separator=solution.separator)
    arguments, rule = _with_string_syntax(written.kinds, arguments)
    (codec, unexplained), many = _find_codec(written, arguments, after)
    escaped = _escaped(entry)
    closers = (escaped.strip(),) if escaped and escaped in (many or "") else ()
    arguments = replace(arguments, codec=codec, closers=closers)
    rules = {"T5": solution.rule, "A1": solution.rule, "A3": rule}
    return ArgumentsFinding(arguments=arguments, unexplained=unexplained, rules=rules, many=many)


def _escaped(entry: Skeleton) -> str:
    """Return the HTML-escaped form of the text after a value, or an empty string if escaping doesn't change the text."""
    # Also look for the escaped form, because Jinja escapes strings that are joined to safe text: `(value | tojson | safe) + '</a>'` becomes
    # `1&lt;/a&gt;`.
    tail = literal_after(entry, Slot.VALUE) if entry[-2] is Slot.VALUE else ""
    return escaped if (escaped := str(escape(tail))) != tail else ""


def _solve_entry(answers: Answers) -> tuple[Skeleton, Solution, str] | None:
    """Compare calls with one and two arguments (T5, A1).

    Return the entry, the solution, and the text after the last value, or None if they can't be found.
    """
    two, one = _numbers_row(answers.long_call, 2), _numbers_row(answers.call, 1)
    if two is None or one is None:
        return None
    solution = solve([two.before, one.before], two.betweens[0], [two.after, one.after])
    solution = _fit_empty(solution, one, answers.empty_call)
    entry = joined_skeleton([solution.prefix, *two.items[0], solution.suffix])
    return entry, solution, one.after


def _fit_empty(solution: Solution, one: Row, none: str | None) -> Solution:
    """Move whitespace from the end of an entry to its start if a call without arguments lacks it (T6)."""
    # If calls are `f\n<k>1</k>\n</f>` and, without arguments, `f</f>`, the line break after `f` is part of the arguments.
    rests = (none or "").split(NAMES[0])[1:]
    lead = one.before[: len(one.before) - len(solution.prefix)]
    space = lead[len(lead.rstrip()) :]
    lacks = any(rest.startswith(lead.rstrip()) for rest in rests) and not any(rest.startswith(lead) for rest in rests)
    if not space or not lacks or not solution.suffix.endswith(space):
        return solution
    return replace(solution, prefix=space + solution.prefix, suffix=solution.suffix.removesuffix(space))


def _numbers_row(body: str | None, count: int) -> Row | None:
    """Return a row of `count` arguments, or None if an argument is missing. In this row, the owner of a key or value is the argument's
    index. The owner of the name is -1.
    """
    words = {NAMES[0]: (Slot.NAME, -1)}
    for at in range(count):
        words |= {KEYS[at]: (Slot.KEY, at), str(NUMBERS[at]): (Slot.VALUE, at)}
    return None if body is None else make_row(body, find_tokens(body, words), count)


def _with_string_syntax(kinds: Mapping[str, str | None], arguments: Arguments) -> tuple[Arguments, str]:
    """Compare a number with a string to find quotes or a type attribute (A2, A3)."""
    shown = {name: _around_value(body, ANSWER_KINDS[name]) for name, body in kinds.items()}
    number, string = shown.get("number"), shown.get("string")
    if number is None or string is None or number == string:
        return arguments, "nothing tells strings and numbers apart"
    # `k=7` and `k="a"` differ in a quotation mark. `k:int=7` and `k:str=a` differ in a word, which is the type.
    left = [text for text, _ in (number, string)]
    lead, rest = common_prefix(left), common_suffix(left)
    middles = [text[len(lead) : len(text) - len(rest)] for text in left]
    if all(is_word(middle) for middle in middles):
        return _with_types(arguments, shown, lead, rest), "a word before the value names its type"
    if not middles[0] and middles[1]:
        closer = string[1][: len(string[1]) - len(number[1])] if string[1].endswith(number[1]) else ""
        closer = closer or string[1].removesuffix(common_suffix([string[1], number[1]]))
        codec = Codec(string_open=middles[1], string_close=closer)
        return replace(arguments, codec=codec), "strings are quoted"
    return arguments, "numbers are written otherwise, in a way that is not understood"


def _around_value(body: str | None, value: Any) -> tuple[str, str] | None:
    """Return the text between key and value, and the text after the value, or None if they can't be found."""
    if body is None:
        return None
    after_key = body.partition(KEYS[0])[2]
    # Return no text after `True`, `null` or `{…}`: their notation isn't known yet, so their end can't be found.
    if value is None or isinstance(value, bool | dict | list):
        return after_key, ""
    before, found, after = after_key.partition(str(value))
    return (before, after) if found else None


def _with_types(arguments: Arguments, shown: Mapping[str, tuple[str, str] | None], lead: str, rest: str) -> Arguments:
    # In `k:int=7` and `k:str=a`, the type is the word after the common `:`.
    words = {name: lexemes(around[0].removeprefix(lead))[:1] for name, around in shown.items() if around}
    types = [(name, word) for name, found in words.items() for word in found if is_word(word)]
    at = arguments.entry.index(Slot.KEY) + 1
    entry = joined_skeleton([*arguments.entry[:at], lead, Slot.TYPE, rest, *arguments.entry[at + 1 :]])
    codec = Codec(strings=Strings.RAW, typed_by=Typing.ATTRIBUTE, types=tuple(types))
    return replace(arguments, entry=entry, codec=codec)


def _find_codec(written: WrittenCall, arguments: Arguments, after: str) -> tuple[FoundCodec, str | None]:
    for values, body in written.many:
        texts = None if body is None else read_entries(body, arguments, values, after)
        if texts:
            return find_value_codec(texts, arguments, values), body
    return (arguments.codec, ("no call with values of several kinds is rendered",)), None


def read_entries(body: str, arguments: Arguments, values: Mapping[str, Any], after: str = "") -> dict[str, str]:
    """Extract the text of each value from a call with known keys. `after` is the text after the last argument."""
    entry = arguments.entry
    # In `<k>a</k><v>1</v>`, find each argument by the text before its type or value, `<k>a</k><v>`. The value ends at `</v>`.
    head = list(takewhile(lambda part: part not in (Slot.TYPE, Slot.VALUE), entry))
    heads = {key: "".join(key if part is Slot.KEY else part for part in head) for key in values}
    positions = {key: body.find(head) for key, head in heads.items()}
    keys = [key for key in values if positions[key] >= 0]
    typed = literal_after(entry, Slot.TYPE) if Slot.TYPE in entry else ""
    written: dict[str, str] = {}
    for number, key in enumerate(keys):
        start = positions[key] + len(heads[key])
        limit = positions[keys[number + 1]] if number + 1 < len(keys) else len(body)
        tail = "".join(key if part is Slot.KEY else part for part in entry[entry.index(Slot.VALUE) + 1 :])
        chunk = body[start:limit]
        if (escaped := _escaped(entry)) and escaped in chunk:
            chunk = chunk.partition(escaped)[0]
        elif number + 1 < len(keys):
            chunk = chunk.removesuffix(arguments.separator).removesuffix(tail)
        else:
            chunk = chunk.partition(tail)[0] if tail else chunk.removesuffix(after)
        written[key] = chunk.partition(typed)[2] if typed else chunk
    return written
