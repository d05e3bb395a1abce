"""Calls in another format's syntax at the end of an answer, which `Policy(repair="offered")` parses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases import cases
from splitting import fed, pieces

from unrender import ChatTemplate, Message, Policy

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}<|end|>'
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TOOL = {
    "type": "function",
    "function": {
        "name": "now",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TAGS = "<function=now>\n<parameter=city>\nRome\n</parameter>\n</function>"
INVOKE = '<function_calls>\n<invoke name="now">\n<parameter name="city">Rome</parameter>\n</invoke>\n</function_calls>'
NOTHING = '<function_calls>\n<invoke name="now">\n</invoke>\n</function_calls>'
SAID = '{"name": "now", "arguments": {"city": "Rome"}}'
ROME = ("now", {"city": "Rome"})


def read(text: str, size: int, policy: Policy) -> Message:
    turn = ChatTemplate.from_string(TEMPLATE).prepare([{"role": "user", "content": "x"}], tools=[TOOL])
    parser = turn.parser(policy=policy)
    fed(parser, pieces(text, size))
    return parser.message


@pytest.mark.few(24)
@pytest.mark.parametrize("size", [1, 5, 1000])
@cases
def test_a_call_of_another_format_is_read_where_calls_stand(
    text: str, calls: list[Any], content: str, size: int
) -> None:
    """A call is parsed if it starts a line, only calls follow it, and it fits an available tool's schema."""
    message = read(text, size, Policy(repair="offered"))

    assert [[call.name, json.loads(call.arguments_json)] for call in message.tool_calls] == calls
    assert message.content.strip() == content


@pytest.mark.parametrize("text", [f"Sure.\n{INVOKE}", "Calling tool: now({})"])
def test_by_default_it_is_content(text: str) -> None:
    """By default, calls in another format's syntax are content, with or without other text."""
    message = read(text, 1000, Policy())

    assert (message.tool_calls, message.content) == ((), text)
