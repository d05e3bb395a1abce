"""Common ways to write a call, each read from an answer that is written so."""

from __future__ import annotations

import json

import pytest

from unrender.explain.syntaxes import COMMON
from unrender.format import Format
from unrender.messages.wire import Request, read_tools
from unrender.parser.streaming import Parser

TOOLS = read_tools(
    [
        {
            "type": "function",
            "function": {
                "name": "find",
                "parameters": {
                    "type": "object",
                    "properties": {"what": {"type": "string"}, "most": {"type": "integer"}},
                },
            },
        }
    ]
)
GIVEN = '{"what": "it", "most": 3}'
ARGUMENTS = f'{{"name": "find", "arguments": {GIVEN}}}'
PARAMETERS = f'{{"name": "find", "parameters": {GIVEN}}}'
WRITTEN = {
    "JSON between <tool_call> tags": f"<tool_call>\n{ARGUMENTS}\n</tool_call>",
    "JSON between <function_call> tags": f"<function_call>\n{ARGUMENTS}\n</function_call>",
    "bare JSON with the key `arguments`": ARGUMENTS,
    "bare JSON with the key `parameters`": PARAMETERS,
    "JSON in a ```json fence": f"```json\n{ARGUMENTS}\n```",
    "JSON with the key `parameters` in a ```json fence": f"```json\n{PARAMETERS}\n```",
    "JSON in a ``` fence": f"```\n{ARGUMENTS}\n```",
    "a JSON list in a ```json fence": f"```json\n[{ARGUMENTS}]\n```",
    "a Python call, name(key=value)": "find(what='it', most=3)",
    "a list of Python calls, [name(key=value)]": '[find(what="it", most=3)]',
    "Python calls in a ```python fence": "```python\nfind(what='it', most=3)\n```",
    "Python calls in a ```tool_code fence": '```tool_code\nfind(what="it", most=3)\n```',
    "JSON after <|python_tag|>": f"<|python_tag|>{PARAMETERS}",
    "a bare JSON list": f"[{ARGUMENTS}]",
    "a JSON list between <tool_calls> tags": f"<tool_calls>[{ARGUMENTS}]</tool_calls>",
    "a JSON list between <|tool_call_start|> tokens": f"<|tool_call_start|>[{ARGUMENTS}]<|tool_call_end|>",
    "a JSON list after <|tool_call|>": f"<|tool_call|>[{ARGUMENTS}]",
    "[TOOL_CALLS]name[ARGS]JSON": f"[TOOL_CALLS]find[ARGS]{GIVEN}",
    "<function=name>JSON</function>": f"<function=find>{GIVEN}</function>",
    ">>>name and JSON on the next line": f">>>find\n{GIVEN}",
    "<function=name> with <parameter=…> tags": (
        "<function=find>\n<parameter=what>\nit\n</parameter>\n<parameter=most>\n3\n</parameter>\n</function>"
    ),
    '<invoke name="…"> with <parameter name="…"> tags': (
        '<invoke name="find">\n<parameter name="what">it</parameter>\n<parameter name="most">3</parameter>\n</invoke>'
    ),
    "<tool_call>name with <arg_key> and <arg_value> tags": (
        "<tool_call>find\n<arg_key>what</arg_key>\n<arg_value>it</arg_value>\n"
        "<arg_key>most</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
    ),
}


def test_no_syntax_is_missing_here():
    """Each has an answer that is written so."""
    assert set(WRITTEN) == set(COMMON)


@pytest.mark.parametrize(("name", "text"), WRITTEN.items())
def test_a_syntax_reads_what_it_is_called(name, text):
    """The call is read whole, its values with the types of the schema."""
    parser = Parser(Format(tools=COMMON[name]), Request(tools=TOOLS))
    parser.feed(text)
    parser.finish()
    message = parser.message

    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [
        ("find", {"what": "it", "most": 3})
    ]
    assert message.content == ""


@pytest.mark.parametrize("name", ["JSON between <tool_call> tags", "a JSON list between <tool_calls> tags"])
def test_prose_is_no_call(name):
    """Text that only mentions a tool stays text."""
    parser = Parser(Format(tools=COMMON[name]), Request(tools=TOOLS))
    parser.feed("I could find it.")
    parser.finish()

    assert (parser.message.content, parser.message.tool_calls) == ("I could find it.", ())
