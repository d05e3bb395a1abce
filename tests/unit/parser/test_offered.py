"""Calls in the syntax of another format, which `Policy(repair="offered")` reads where they begin a line and end the answer."""

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


@pytest.mark.parametrize("size", [1, 5, 1000])
@cases
def test_a_call_of_another_format_is_read_where_calls_stand(
    text: str, calls: list[Any], content: str, size: int
) -> None:
    """It begins a line, nothing but calls is behind it, and it fits the schema of an offered tool; all else stays content."""
    message = read(text, size, Policy(repair="offered"))

    assert [[call.name, json.loads(call.arguments_json)] for call in message.tool_calls] == calls
    assert message.content.strip() == content


@pytest.mark.parametrize("text", [f"Sure.\n{INVOKE}", "Calling tool: now({})"])
def test_by_default_it_is_content(text: str) -> None:
    """Beside other text, and as a sentence, nobody asked for other formats."""
    message = read(text, 1000, Policy())

    assert (message.tool_calls, message.content) == ((), text)
