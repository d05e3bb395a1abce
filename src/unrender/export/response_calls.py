r"""Converts a format's literals to regular expressions, and its call syntax to the `tool_calls` field of a response template.

Strategy: complete JSON objects and lists are parsed as JSON and rearranged by a `transform`, so their keys may come in any order. In other
formats, the opener captures the function's name, and the text between opener and closer is the arguments.

Rules:

- Whitespace at a marker's ends is layout. Next to verbatim text, a pattern matches at most as much whitespace as the marker has, to
  preserve that text exactly. Elsewhere, a pattern matches any amount of whitespace.
- The patterns are for the `regex` package, which also finds a match that starts at the end of the text. The patterns also work with
  Python's `re`.
- If JSON lacks keys that a transform needs, the entire message is lost. Therefore openers require the key of the arguments, and closers
  must follow the last bracket of the JSON. As a result, most strings in the JSON may contain the closer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from unrender.answer import ArgumentsPart, Calls
from unrender.answer.follow import as_skeleton
from unrender.errors import ExportError
from unrender.format import Envelope, Format, Part, Skeleton, Slot
from unrender.format.parts import text_of
from unrender.values.notations import ExportedNotation, notation_of

_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_CONTROLS = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}

ANYWHERE = r"\s*"
"""Pattern for layout between two parts, neither of which is verbatim text."""


def escaped_pattern(text: str) -> str:
    r"""Return a readable pattern that matches exactly this text.

    >>> print(escaped_pattern('<|x|> {"a"'))
    <\|x\|> \{"a"
    """
    escaped = _SPECIAL.sub(lambda match: "\\" + match[0], text)
    return "".join(_CONTROLS.get(character, character) for character in escaped)


def any_of(patterns: Iterable[str]) -> str:
    """Return a pattern for any of `patterns`, longest first; empty if there are none."""
    kept = sorted(dict.fromkeys(pattern for pattern in patterns if pattern), key=len, reverse=True)
    return kept[0] if len(kept) == 1 else f"(?:{'|'.join(kept)})" if kept else ""


def at_most(layout: str) -> str:
    r"""Return a pattern for whitespace that is at most as long as `layout`.

    >>> at_most("\n\n")
    '\\s{0,2}'
    """
    return f"\\s{{0,{len(layout)}}}" if layout else ""


def beside_text(marker: str, core: str) -> str:
    """Return a pattern for a marker next to verbatim text. `core` is the marker's pattern without its layout."""
    bare = marker.strip()
    before, after = marker[: len(marker) - len(marker.lstrip())], marker[len(marker.rstrip()) :] if bare else ""
    return at_most(before) + core + at_most(after)


def beside_layout(parts: Sequence[Part]) -> str:
    """Return a pattern for a sequence of literals and slots, with any amount of layout in the literals."""
    pattern = ""
    for i, part in enumerate(parts):
        if isinstance(part, Slot):
            pattern += _slot(part, [text for text in parts[i + 1 : i + 2] if not isinstance(text, Slot)])
            continue
        bare = part.strip()
        before = ANYWHERE if part[:1].isspace() else ""
        after = ANYWHERE if bare and part[-1:].isspace() else ""
        pattern += before + escaped_pattern(bare) + after
    return pattern.replace(ANYWHERE * 2, ANYWHERE)


def spelled(format: Format, marker: str) -> str:
    """Return a pattern for the marker without its layout, in all its spellings."""
    bare = marker.strip()
    others = [other for spelling in format.spellings if spelling.marker.strip() == bare for other in spelling.others]
    return any_of(map(escaped_pattern, (bare, *others))) if bare else ""


def skeleton(parts: Sequence[Part], *, follows: Sequence[str] = (), groups: Iterable[Slot] = ()) -> str:
    """Return a pattern for literals and slots. Each slot in `groups` becomes a capturing group named after the slot.

    A final slot ends before any of the texts in `follows`. A slot that occurs twice matches the same text both times.
    """
    named, seen = set(groups), set()
    pattern = ""
    for i, part in enumerate(parts):
        if not isinstance(part, Slot):
            pattern += escaped_pattern(part)
        elif part in seen:
            pattern += f"(?P={part})"
        else:
            following = parts[i + 1] if i + 1 < len(parts) else None
            body = _slot(part, follows if following is None or isinstance(following, Slot) else (following,))
            pattern += f"(?P<{part}>{body})" if part in named else body
            seen.update(named & {part})
    return pattern


def turn_ends(format: Format) -> list[str]:
    """Return a pattern for each end of turn, including all whitespace after it."""
    ends = [end for end in (format.turn.end, *format.turn.ends) if end.strip()]
    return [at_most(end[: len(end) - len(end.lstrip())]) + spelled(format, end) + ANYWHERE for end in ends]


def _slot(slot: Slot, stops: Iterable[str]) -> str:
    """Return a pattern for the text of a slot, which stops before the first character of any of `stops`."""
    ends = "".join(sorted({stop.lstrip()[:1] for stop in stops}))
    ends = "".join("\\" + text if text in r"\]^-[" else text for text in ends)
    match slot:
        case Slot.INDEX:
            return r"\d+"
        case Slot.VALUE:
            return ".*?"
        case Slot.ANY | Slot.TYPE:
            return f"[^{ends}]*" if ends else ".*?"
        case Slot.KEY:
            return f"[^{ends}\\n]+"
        case _:
            return f"[^{ends}\\s]+"


TemplateField = dict[str, Any]

_PLACEHOLDER = re.compile(r"\w+")
"""Matches keys that a transform can name."""
_LEAST_MARKER = 3
"""Minimum length of a marker that separates calls. Shorter strings are common in ordinary text."""
_VALUES: Mapping[ExportedNotation, TemplateField] = {
    ExportedNotation.TEXT: {"name": "text", "args": {"strip": False}},
    ExportedNotation.JSON: {"name": "json", "args": {"allow_non_json": True}},
}
"""Parsers of the response template for values between markers, by notation."""


def calls_field(format: Format, calls: Calls) -> TemplateField:
    """Return the field that parses the format's calls. Raises `ExportError`, with the reason, if there is no such field."""
    if calls.envelope is None:
        return _named_field(format, calls)
    _check_envelope(calls, calls.envelope)
    make = _list_field if calls.envelope.array_wrapped else _object_field
    return make(format, calls, calls.envelope)


def between_calls(calls: Calls) -> list[str]:
    """Return patterns for text between calls: ends of sections and separators.

    Raises `ExportError` if such text is also common in ordinary text.
    """
    if calls.envelope is not None and calls.envelope.array_wrapped:
        return []
    markers = [marker.core for marker in (calls.close, calls.separator) if marker]
    weak = [text for text in markers if len(text) < _LEAST_MARKER]
    if weak:
        raise ExportError(f"tool calls: {weak[0]!r} between calls can't be distinguished from text")
    return [ANYWHERE + escaped_pattern(text) + ANYWHERE for text in markers]


def calls_opener(format: Format, calls: Calls) -> str:
    """Return the pattern that opens a call, without a group for its name.

    Fields that end where a call starts use this pattern, because they don't need the name. Raises the same errors as `calls_field`.
    """
    return re.sub(r"\(\?P<\w+>", "(?:", str(calls_field(format, calls)["open_pattern"]))


def _check_envelope(calls: Calls, envelope: Envelope) -> None:
    if envelope.name_is_key:
        raise ExportError("tool calls: the function's name is a key of the JSON, which a transform can't extract")
    if not notation_of(calls.arguments.codec).is_json:
        raise ExportError("tool calls: the arguments are not JSON, though the text around them is")
    odd = [key for key in (*envelope.name_field, *envelope.args_field) if not _PLACEHOLDER.fullmatch(key)]
    if odd:
        raise ExportError(f"tool calls: a transform cannot name the JSON key {odd[0]!r}")


def _list_field(format: Format, calls: Calls, envelope: Envelope) -> TemplateField:
    """Return the field for a single JSON list of all calls."""
    start, _, rest = calls.open.text.rpartition("[")
    end = calls.close.core
    if rest.strip() or not end.startswith("]") or calls.call_open or calls.call_close:
        raise ExportError("tool calls: the list of calls has more than JSON in it")
    first = r"(?=\s*\[)" if start.strip() else rf"(?=\[\s*{_up_to_arguments(envelope)})"
    return {
        "open_pattern": ANYWHERE + spelled(format, start) + first,
        **_closed(_closer_after("]", _list_end(format, beside_layout([end[1:]])))),
        "content": "json",
        "transform_each": True,
        "transform": _transform(envelope, under=""),
    }


def _list_end(format: Format, after_list: str) -> str:
    """Return a pattern for the end of a list: its closing bracket and the text after it. The bracket isn't enough, because JSON contains
    many brackets.
    """
    if not after_list:
        return any_of(turn_ends(format))
    if after_list.strip("\\}]"):
        return after_list + ANYWHERE
    return after_list + ANYWHERE + any_of([*turn_ends(format), r"\Z"])


def _object_field(format: Format, calls: Calls, envelope: Envelope) -> TemplateField:
    """Return the field for calls that are each one JSON object."""
    opened = _begun(format, calls)
    if calls.maximum is None and not (calls.call_open or calls.call_close):
        raise ExportError("tool calls: there is no marker between two calls")
    return {
        "open_pattern": ANYWHERE
        + opened
        + f"(?={_first_key(as_skeleton(calls.function))})(?={_up_to_arguments(envelope)})",
        **_closed(_closer_after("}", _closers(format, calls, [], opened))),
        "repeats": True,
        "content": "json",
        "transform": _transform(envelope, under="content."),
    }


def _first_key(function: Sequence[Part]) -> str:
    """Return a pattern for the start of a call up to its first key. A JSON parser reads the rest."""
    text = function[0] if function and not isinstance(function[0], Slot) else ""
    found = re.match(r'(\{)\s*("[^"]*")', text)
    return rf"\{{\s*{escaped_pattern(found[2])}" if found else r"\{"


def _up_to_arguments(envelope: Envelope) -> str:
    """Return a pattern for a call up to the key of its arguments. No other objects may precede the arguments, except those that contain
    them.
    """
    return r"\s*".join(rf'\{{[^{{}}]*"{key}"\s*:' for key in envelope.args_field)


def _transform(envelope: Envelope, *, under: str) -> dict[str, Any]:
    def place(path: Sequence[str]) -> str:
        return "{" + under + ".".join(path) + "}"

    function = {"name": place(envelope.name_field), "arguments": place(envelope.args_field)}
    call_id = {"id": place(envelope.id_field)} if envelope.id_field else {}
    return {"type": "function", **call_id, "function": function}


def _named_field(format: Format, calls: Calls) -> TemplateField:
    """Return the field for calls whose name is captured and whose arguments are between the opener and the closer."""
    content = _arguments(calls.arguments)
    # The text around a JSON object of arguments is part of the opener and the closer.
    inside = () if calls.arguments.entry else (calls.arguments.open.text, Slot.ARGUMENTS, calls.arguments.close.text)
    head, tail = _halves(as_skeleton(calls.function), inside or (Slot.ARGUMENTS,))
    if Slot.NAME not in head:
        raise ExportError("tool calls: the function's name comes after its arguments")
    if len((calls.call_open.text + text_of(*head[:1])).strip()) < _LEAST_MARKER:
        raise ExportError("tool calls: only its name distinguishes a call from text")
    begun = _begun(format, calls)
    first_argument = (
        (calls.arguments.entry and calls.arguments.open.text) or text_of(*as_skeleton(calls.arguments.entry[:1])) or "{"
    )
    # No verbatim text follows an opener, so its line breaks are layout.
    captured = _captured(calls, head, [first_argument, *map(text_of, tail), calls.call_close.text])
    opened = begun + captured.replace(r"\n", ANYWHERE)
    closed = _closers(format, calls, tail, begun + escaped_pattern(text_of(*head[:1])))
    # If arguments are a required JSON object, the closer must follow its brace. A call without arguments may have no JSON.
    is_object = content["content"] == "json" and calls.arguments.empty is None
    captures = {group: "{" + group + "}" for group in ("id", "name") if f"(?P<{group}>" in opened}
    function = {"name": captures.pop("name"), "arguments": "{content}"}
    return {
        "open_pattern": ANYWHERE + opened,
        **_closed(_closer_after("}", closed) if is_object else closed),
        "repeats": True,
        **content,
        "transform": {"type": "function", **captures, "function": function},
    }


def _halves(function: Skeleton, arguments: Skeleton) -> tuple[Skeleton, Skeleton]:
    """Return the parts before and after the arguments, with adjacent literals joined."""
    at = function.index(Slot.ARGUMENTS)
    parts = (*function[:at], *arguments, *function[at + 1 :])
    runs = (tuple(run) for _, run in groupby(parts, lambda part: isinstance(part, Slot)))
    joined = [part for run in runs for part in (run if isinstance(run[0], Slot) else ("".join(map(str, run)),)) if part]
    at = joined.index(Slot.ARGUMENTS)
    return tuple(joined[:at]), tuple(joined[at + 1 :])


def _captured(calls: Calls, head: Sequence[Part], follows: Sequence[str]) -> str:
    """Return a pattern for the text before the arguments that captures the name and id."""
    stops = [text for text in follows if text.strip()]
    slots = (Slot.NAME, Slot.ID)
    if calls.id_parts is None or calls.id_parts[1] > len(head):
        return skeleton(head, follows=stops, groups=slots)
    a, b = calls.id_parts
    around = [text for text in head[b : b + 1] if not isinstance(text, Slot)] or stops
    call_id = f"(?P<id>{skeleton(head[a:b], follows=around, groups=slots)})"
    return skeleton(head[:a]) + call_id + skeleton(head[b:], follows=stops)


def _begun(format: Format, calls: Calls) -> str:
    """Return a pattern for the text before a call. If each call has a marker, the section's start is optional."""
    section, start = spelled(format, calls.open.text), beside_layout([calls.call_open.text])
    section += ANYWHERE if section else ""
    others = [text.strip() for text in (*(wrapper.start for wrapper in format._wrappers), format.reasoning.start)]
    opener = (calls.call_open.text + text_of(*as_skeleton(calls.function[:1]))).strip()
    avoided = "".join(f"(?!{escaped_pattern(text)})" for text in others if opener and text.startswith(opener))
    return (f"(?:{section})?" if opener and section else section) + avoided + start


def _closers(format: Format, calls: Calls, tail: Sequence[Part], opened: str) -> str:
    """Return a pattern for the end of a call: its closer if it has one, otherwise the text after the call."""
    ended = beside_layout([*tail, calls.call_close.text])
    if ended.replace(ANYWHERE, ""):
        return ANYWHERE + ended.removeprefix(ANYWHERE) + ANYWHERE
    after = [escaped_pattern(marker.core) + ANYWHERE for marker in (calls.close, calls.separator) if marker]
    following = [f"(?={ANYWHERE}{opened})"] if opened and calls.maximum is None else []
    if not after and format.turn.tools_first and (format.turn.tools_to_content + format.content.start).strip():
        raise ExportError("tool calls: content follows them without an end marker")
    return any_of([*after, *following, *turn_ends(format)])


def _closer_after(bracket: str, closer: str) -> str:
    """Return a pattern for a closer after a bracket. If a closer doesn't follow a bracket, it's part of a JSON string."""
    return rf"(?<=\{bracket}){ANYWHERE}{closer.removeprefix(ANYWHERE)}" if closer else ""


def _closed(pattern: str) -> dict[str, str]:
    return {"close_pattern": pattern.replace(ANYWHERE * 2, ANYWHERE)} if pattern else {}


def _arguments(arguments: ArgumentsPart) -> TemplateField:
    """Return the settings for parsing the text between a call's opener and closer."""
    notation = notation_of(arguments.codec)
    if not arguments.entry:
        if not notation.is_json:
            raise ExportError(f"tool calls: the arguments are {notation.object_kind}, not JSON")
        return {"content": "json"}
    first, last = arguments.entry[0], arguments.entry[-1]
    if notation.inside.bare_keys and notation.verbatim and arguments.open.core == "{":
        delimiters = [[notation.verbatim.open, notation.verbatim.close]]
        return {"content": "json", "content_args": {"unquoted_keys": True, "string_delims": delimiters}}
    if isinstance(last, Slot) or notation.exported is ExportedNotation.CODE:
        raise ExportError("tool calls: they're written as code, with only code syntax between arguments")
    if not last or not first:
        raise ExportError("tool calls: there is only whitespace between two arguments")
    value = _VALUES[notation.exported]
    return {"content": "xml-inline", "content_args": {"tag_pattern": _entry(arguments), "value_parser": value}}


def _entry(arguments: ArgumentsPart) -> str:
    """Return the pattern of one argument. The pattern matches the value exactly. If an argument contains its key twice, the two keys must
    be equal.
    """
    at, closer, parts = arguments.entry.index(Slot.VALUE), arguments.closer, as_skeleton(arguments.entry)
    before = text_of(parts[at - 1])
    end = [part if isinstance(part, Slot) else part.rstrip() for part in parts[at + 2 :]]
    # Don't require the layout before the first argument, as in `  <a>1</a>`: another pattern may already have matched it.
    start = [part if isinstance(part, Slot) else part.lstrip() for part in parts[: at - 1]]
    opened, closed = (r"(?:<!\[CDATA\[)?", r"(?:\]\]>)?") if arguments.codec.cdata else ("", "")
    value = "(?P<value>.*?)"
    exact = at_most(before[len(before.rstrip()) :]) + opened + value + closed + at_most(closer.lead)
    ways = "|".join(escaped_pattern(way.core) for way in closer.spelled)
    row = (*start, before.rstrip(), Slot.VALUE, closer.core, *end)
    first, _, rest = skeleton(row, groups=(Slot.KEY, Slot.VALUE)).partition(value)
    return first + exact + (f"(?:{ways})" if closer.others else ways) + rest.removeprefix(escaped_pattern(closer.core))
