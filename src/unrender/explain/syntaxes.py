"""Lists common call syntaxes, to try on an output that the template's own does not read.

Rules: a name says what is seen in the output, in the order of the text; nothing here is ever generated, and the nearest match wins,
so the order does not matter. Variants that a parser tolerates anyway (white space, other order) need no entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from unrender.format import Arguments, CallSyntax, Codec, Containers, Envelope, Slot, Strings, ToolMode, Typing, Words

_RAW = Codec(strings=Strings.RAW, words=Words.PYTHON, typed_by=Typing.SCHEMA)


def _json(start: str, end: str, *, arguments: str = "arguments") -> CallSyntax:
    """Return calls that are a JSON object each, between `start` and `end`."""
    return CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        call_start=start,
        call_end=end,
        separator="\n",
        function=('{"name": "', Slot.NAME, f'", "{arguments}": ', Slot.ARGUMENTS, "}"),
        envelope=Envelope(name_field=("name",), args_field=(arguments,)),
    )


def _json_list(start: str, end: str) -> CallSyntax:
    """Return calls that are the objects of one JSON list, between `start` and `end`."""
    return CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        section_start=start + "[",
        section_end="]" + end,
        separator=", ",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
        envelope=Envelope(name_field=("name",), args_field=("arguments",), array_wrapped=True),
    )


def _tag(before_name: str, after_name: str, end: str) -> CallSyntax:
    """Return the syntax of calls whose name is in a tag, with JSON arguments after it."""
    return CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=_function(before_name, after_name, end))


def _tagged(before_name: str, after_name: str, end: str, entry: tuple[str | Slot, ...]) -> CallSyntax:
    """Return calls whose arguments are in tags of their own, values as they are."""
    return CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        function=_function(before_name, after_name, end),
        arguments=Arguments(entry=entry, codec=_RAW),
    )


def _python(start: str, end: str) -> CallSyntax:
    """Return calls as Python writes them, one or several, between `start` and `end`."""
    literals = Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON)
    return CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        section_start=start,
        section_end=end,
        separator=", ",
        function=(Slot.NAME, Slot.ARGUMENTS),
        arguments=Arguments(start="(", end=")", entry=(Slot.KEY, "=", Slot.VALUE), separator=", ", codec=literals),
    )


def _function(before_name: str, after_name: str, end: str) -> tuple[str | Slot, ...]:
    return tuple(part for part in (before_name, Slot.NAME, after_name, Slot.ARGUMENTS, end) if part)


_PARAMETER = ("<parameter=", Slot.KEY, ">\n", Slot.VALUE, "\n</parameter>\n")
_NAMED_PARAMETER = ('<parameter name="', Slot.KEY, '">', Slot.VALUE, "</parameter>\n")
_KEY_AND_VALUE = ("<arg_key>", Slot.KEY, "</arg_key>\n<arg_value>", Slot.VALUE, "</arg_value>\n")

COMMON: Mapping[str, CallSyntax] = MappingProxyType(
    {
        "JSON between <tool_call> tags": _json("<tool_call>\n", "\n</tool_call>"),
        "JSON between <function_call> tags": _json("<function_call>\n", "\n</function_call>"),
        "bare JSON with the key `arguments`": _json("", ""),
        "bare JSON with the key `parameters`": _json("", "", arguments="parameters"),
        "JSON in a ```json fence": _json("```json\n", "\n```"),
        "JSON with the key `parameters` in a ```json fence": _json("```json\n", "\n```", arguments="parameters"),
        "JSON in a ``` fence": _json("```\n", "\n```"),
        "a JSON list in a ```json fence": _json_list("```json\n", "\n```"),
        "a Python call, name(key=value)": _python("", ""),
        "a list of Python calls, [name(key=value)]": _python("[", "]"),
        "Python calls in a ```python fence": _python("```python\n", "\n```"),
        "Python calls in a ```tool_code fence": _python("```tool_code\n", "\n```"),
        "JSON after <|python_tag|>": _json("<|python_tag|>", "", arguments="parameters"),
        "a bare JSON list": _json_list("", ""),
        "a JSON list between <tool_calls> tags": _json_list("<tool_calls>", "</tool_calls>"),
        "a JSON list between <|tool_call_start|> tokens": _json_list("<|tool_call_start|>", "<|tool_call_end|>"),
        "a JSON list after <|tool_call|>": _json_list("<|tool_call|>", ""),
        "[TOOL_CALLS]name[ARGS]JSON": _tag("[TOOL_CALLS]", "[ARGS]", ""),
        "<function=name>JSON</function>": _tag("<function=", ">", "</function>"),
        ">>>name and JSON on the next line": _tag(">>>", "\n", ""),
        "<function=name> with <parameter=…> tags": _tagged("<function=", ">\n", "</function>", _PARAMETER),
        '<invoke name="…"> with <parameter name="…"> tags': _tagged(
            '<invoke name="', '">\n', "</invoke>", _NAMED_PARAMETER
        ),
        "<tool_call>name with <arg_key> and <arg_value> tags": _tagged(
            "<tool_call>", "\n", "</tool_call>", _KEY_AND_VALUE
        ),
    }
)
