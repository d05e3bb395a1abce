"""The intended message of a drawn answer, read from the tags of its grammar, without the parser.

Rules: the text of a tag is the text of the message, except for whitespace around it and text that the prompt already
wrote. Arguments are checked by writing them: the text around the values must be the format's own text for the parsed
names. Each value's text must be a spelling of the parsed value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from unrender import Message
from unrender.dialects.sample import Sample, SampledPart
from unrender.format import Arguments, Codec, Containers, Format, Slot, Strings
from unrender.grammar import Role
from unrender.json_values import json_type
from unrender.values.notations import encode_value

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BARE_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|[^\s"'(),:<=>\[\]{|}]+(?=:)""")


def differences(format: Format, drawn: Sample, message: Message, begun: Message) -> list[str]:
    """Return the differences between a parsed message and the drawn one, after the `begun` message, in words."""
    calls = list(_calls(drawn, format.tools.function.count(Slot.NAME)))
    expected = {
        "content": _text(drawn, Role.CONTENT).strip(),
        "reasoning": _text(drawn, Role.REASONING).strip(),
        "names": [drawn.text[name.start : name.end] for name, _ in calls],
    }
    parsed = {
        "content": message.content.removeprefix(begun.content).strip(),
        "reasoning": message.reasoning.removeprefix(begun.reasoning).strip(),
        "names": [call.name for call in message.tool_calls],
    }
    found = [f"{what}: {parsed[what]!r} for {expected[what]!r}" for what in expected if parsed[what] != expected[what]]
    if parsed["names"] == expected["names"]:
        arguments = [json.loads(call.arguments_json) for call in message.tool_calls]
        found += [
            f"arguments: {values!r} for {drawn.text[whole[0].start : whole[0].end]!r}"
            for values, (_, whole) in zip(arguments, calls, strict=True)
            if not _spells(format.tools.arguments, drawn.text, whole, values)
        ]
    return found


def _text(drawn: Sample, role: Role) -> str:
    return "".join(drawn.text[part.start : part.end] for part in drawn.parts if part.role is role)


def _calls(drawn: Sample, times_named: int) -> Iterator[tuple[SampledPart, Sequence[SampledPart]]]:
    """Yield each call's name and its arguments: the whole text first, then each value with its nested values."""
    names = [part for part in drawn.parts if part.role is Role.NAME][:: times_named or 1]
    arguments = [part for part in drawn.parts if part.role is Role.ARGUMENT]
    wholes = [part for part in arguments if not any(part in _inside(other, arguments) for other in arguments)]
    for name, whole in zip(names, wholes, strict=True):
        yield name, [whole, *_inside(whole, arguments)]


def _inside(outer: SampledPart, parts: Sequence[SampledPart]) -> list[SampledPart]:
    at = parts.index(outer)
    return [part for part in parts[at + 1 :] if part.start <= outer.end and part.end <= outer.end]


def _spells(arguments: Arguments, text: str, parts: Sequence[SampledPart], values: dict[str, Any]) -> bool:
    """Return whether a call's text is a valid spelling of `values`."""
    whole, *below = parts
    written = text[whole.start : whole.end]
    if written == arguments.when_empty:
        return values == {}
    if not arguments.entry:
        if not (written.startswith(arguments.start) and written.endswith(arguments.end)):
            return False
        inside = written[len(arguments.start) : len(written) - len(arguments.end)]
        inside = json.loads(inside) if arguments.codec.escapes else inside  # A string that contains the object.
        return _is_spelling(arguments, inside, values)
    outermost = [part for part in below if not any(part in _inside(other, below) for other in below)]
    texts = [text[part.start : part.end] for part in outermost]
    if len(texts) != len(values) or not all(
        _is_spelling(arguments, text, value) for text, value in zip(texts, values.values(), strict=True)
    ):
        return False
    entries = [_entry(arguments, key, value, text) for (key, value), text in zip(values.items(), texts, strict=True)]
    return written == arguments.start + arguments.separator.join(entries) + arguments.end


def _entry(arguments: Arguments, key: str, value: Any, text: str) -> str:
    kind = dict(arguments.codec.types).get(json_type(value), "")
    parts = {Slot.KEY: key, Slot.VALUE: text, Slot.TYPE: kind}
    return "".join(parts[part] if isinstance(part, Slot) else part for part in arguments.entry)


def _is_spelling(arguments: Arguments, text: str, value: Any) -> bool:
    codec = arguments.codec
    if _one_spelling(encode_value(value, arguments.codec, arguments.entry)) == _one_spelling(text):
        return True
    if codec.escapes and codec.strings.unquoted:
        characters = {form: character for character, form in codec.escapes}
        text = re.sub("|".join(map(re.escape, characters)), lambda found: characters[found.group()], text)
    raw = codec.strings.unquoted and text == value
    return raw or any(read == value and type(read) is type(value) for read in _readings(text, codec))


def _one_spelling(text: str) -> str:
    """Return the text with a single spelling for each number, and for each string in JSON quotes."""
    return _NUMBER.sub(lambda found: repr(float(found.group()) or 0.0), _STRING.sub(_ascii_string, text))


def _ascii_string(found: re.Match[str]) -> str:
    try:
        return json.dumps(json.loads(found.group()))
    except ValueError:
        return found.group()


def _readings(text: str, codec: Codec) -> Iterator[Any]:
    either_quote = codec.strings is Strings.PYTHON and codec.containers is Containers.BARE
    readers: list[Callable[[str], Any]] = [json.loads, _read_single, *([_read_bare] if either_quote else [])]
    for read in readers:
        try:
            yield read(text)
        except (ValueError, SyntaxError, NameError, TypeError):
            continue


def _read_single(text: str) -> Any:
    """Read a Python literal, or one with JSON's constants."""
    return eval(text, {"__builtins__": {}, "true": True, "false": False, "null": None})


def _read_bare(text: str) -> Any:
    """Read such a literal with unquoted keys."""
    return _read_single(_BARE_KEY.sub(lambda found: found.group(1) or repr(found.group()), text))
