"""Writes values as a format does: the exact inverse of reading arguments.

Analysis identifies a codec by it (the codec is the one that reproduces the template's rendering), verification and the
sampler write calls with it. Pure functions of values and `Format` data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from unrender.format import Arguments, CallSyntax, Codec, Containers, Content, ContentMode, Format, Slot
from unrender.messages.json_values import json_type
from unrender.values.notations import notation_of


def encode_value(value: Any, arguments: Arguments, *, margin: str = "") -> str:
    """Return the text that a format writes for one argument's value.

    `margin` is the indentation of the line on which pretty-printed JSON begins.

    >>> from unrender.format import Words
    >>> encode_value(True, Arguments(codec=Codec(words=Words.PYTHON)))
    'True'
    """
    codec = arguments.codec
    if isinstance(value, str):
        return notation_of(codec).write(value)
    if isinstance(value, Mapping | list | tuple):
        return _encode_container(value, arguments, margin)
    return _encode_scalar(value, codec)


def encode_arguments(values: Mapping[str, Any], arguments: Arguments, *, margin: str = "") -> str:
    """Return the text that a format writes for a call's arguments, with the literals before, between and after them.

    >>> encode_arguments({"a": 1}, Arguments())
    '{"a": 1}'
    """
    if not values and arguments.when_empty is not None:
        return arguments.when_empty
    if not arguments.entry:
        text = _encode_container(values, arguments, margin)
        return arguments.start + text + arguments.end
    written = {key: value for key, value in values.items() if value is not None or not arguments.codec.omits_null}
    entries = (_encode_entry(key, value, arguments) for key, value in written.items())
    return arguments.start + arguments.separator.join(entries) + arguments.end


def encode_call(name: str, values: Mapping[str, Any], tools: CallSyntax, *, call_id: str = "", index: int = 0) -> str:
    """Return the text of one call, without the markers around each call; `index` counts calls from 0."""
    text = ""
    for part in tools.function:
        match part:
            case Slot.NAME:
                text += name
            case Slot.ID:
                text += call_id
            case Slot.INDEX:
                text += str(tools.index_start + index)
            case Slot.ARGUMENTS:
                text += encode_arguments(values, tools.arguments, margin=_margin(text))
            case Slot.ANY:
                continue  # Read where models write it; it says nothing.
            case _:
                text += part
    return text


def encode_calls(calls: Sequence[tuple[str, Mapping[str, Any], str]], tools: CallSyntax, *, first: int = 0) -> str:
    """Return the text of calls (name, arguments, id), with everything around and between them.

    Counters count from `first`, the number of calls before these.
    """
    written = (
        tools.call_start + encode_call(name, values, tools, call_id=call_id, index=index) + tools.call_end
        for index, (name, values, call_id) in enumerate(calls, start=first)
    )
    return tools.section_start + tools.separator.join(written) + tools.section_end if calls else ""


def encode_answer(
    fmt: Format,
    *,
    content: str = "",
    reasoning: str = "",
    calls: Sequence[tuple[str, Mapping[str, Any], str]] = (),
) -> str:
    """Return a whole answer, without header and end of turn; `calls` are (name, arguments, id)."""
    turn, before = fmt.turn, ""
    if reasoning:
        before = fmt.reasoning.start + reasoning
        inside = fmt.reasoning.holds_calls and calls and (turn.tools_first or not content)
        before += "" if inside else fmt.reasoning.end
    elif fmt.reasoning.empty and not (calls and not content and _opens_around_calls(fmt)):
        before = fmt.reasoning.empty
    called = encode_calls(calls, fmt.tools)
    wrapper = fmt.content_with_calls if called and fmt.content_with_calls is not None else fmt.content
    said = _encode_content(wrapper, content, reasoned=bool(reasoning))
    to_content = turn.reasoning_to_content if before else turn.start_to_content
    to_calls = turn.reasoning_to_tools if before else turn.start_to_tools
    if not called:
        return before + (to_content + said if said else "")
    if turn.tools_first:
        return before + to_calls + called + (turn.tools_to_content + said if said else "")
    if said:
        return before + to_content + said + turn.content_to_tools + called
    return before + to_calls + called


def _opens_around_calls(fmt: Format) -> bool:
    """Return whether calls without reasoning are after the marker that begins it, which nothing closes before them."""
    return fmt.reasoning.holds_calls and fmt.turn.start_to_tools.strip() == fmt.reasoning.start.strip()


def _encode_content(wrapper: Content, content: str, *, reasoned: bool) -> str:
    if not content and not wrapper.wraps_empty:
        return ""
    if wrapper.mode is ContentMode.WRAPPED_WITH_REASONING and not reasoned:
        return content
    return wrapper.start + content + wrapper.end


def _encode_entry(key: str, value: Any, arguments: Arguments) -> str:
    texts = {
        Slot.KEY: key,
        Slot.VALUE: encode_value(value, arguments),
        Slot.TYPE: dict(arguments.codec.types).get(json_type(value), ""),
    }
    return "".join(texts.get(part, "") if isinstance(part, Slot) else part for part in arguments.entry)


def _encode_scalar(value: Any, codec: Codec) -> str:
    words = notation_of(codec).scalars
    if value is None:
        return "" if codec.omits_null else words.null
    if isinstance(value, bool):
        return words.true if value else words.false
    return json.dumps(value)


def _encode_container(value: Any, arguments: Arguments, margin: str) -> str:
    codec = arguments.codec
    match codec.containers:
        case Containers.JSON:
            separators = (codec.item_separator, codec.key_separator)
            if not codec.indent:
                return json.dumps(value, ensure_ascii=codec.ascii_only, separators=separators)
            text = json.dumps(value, ensure_ascii=codec.ascii_only, indent=codec.indent)
            return text.replace("\n", "\n" + margin)
        case Containers.PYTHON:
            return repr(value)
        case Containers.BARE:
            return _encode_bare(value, arguments)
        case Containers.XML:
            return _encode_xml(value, arguments)
        case _:
            assert_never(codec.containers)


def _encode_bare(value: Any, arguments: Arguments) -> str:
    codec = arguments.codec
    if isinstance(value, Mapping):
        items = (f"{key}{codec.key_separator}{encode_value(item, arguments)}" for key, item in value.items())
        return "{" + codec.item_separator.join(items) + "}"
    return "[" + codec.item_separator.join(encode_value(item, arguments) for item in value) + "]"


def _encode_xml(value: Any, arguments: Arguments) -> str:
    pairs = value.items() if isinstance(value, Mapping) else ((arguments.codec.item_tag, item) for item in value)
    return "".join(_encode_entry(key, item, arguments) for key, item in pairs)


def _margin(text: str) -> str:
    line = text.rpartition("\n")[2]
    return line[: len(line) - len(line.lstrip(" "))]
