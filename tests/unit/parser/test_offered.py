"""Calls in the syntax of another format, which `Policy(repair="offered")` reads where they begin a line and end the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from splitting import pieces

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
CALLS: dict[str, tuple[str, list[Any], str]] = {
    "tags": (TAGS, [ROME], ""),
    "after words": (f"One moment.\n{TAGS}", [ROME], "One moment."),
    "two in a section": (
        INVOKE.replace("</invoke>\n", "</invoke>\n" + INVOKE.split("\n", 1)[1].partition("</f")[0]),
        [ROME] * 2,
        "",
    ),
    "words of a server": ('Calling tool: now({"city": "Rome"})', [ROME], ""),
    "Python": ("[now(city='Rome')]", [ROME], ""),
    "names as tags": ("<now>\n<city>Rome</city>\n</now>", [ROME], ""),
    "a message": (f'{{"tool_calls": [{{"id": "1", "type": "function", "function": {SAID}}}]}}', [ROME], ""),
    "the closer of another section": (INVOKE.replace("</function_calls>", "</x:tool_calls>"), [ROME], ""),
    "a name in another case": ('<tool_call>{"name": "Now", "arguments": {"city": "Rome"}}</tool_call>', [ROME], ""),
    "words behind it": (f"{INVOKE}\nDone.", [], f"{INVOKE}\nDone."),
    "in a sentence": (f"Write {INVOKE}", [], f"Write {INVOKE}"),
    "in a block of code": (f"```\n{INVOKE}\n```\nSo.", [], f"```\n{INVOKE}\n```\nSo."),
    "another tool": (INVOKE.replace("now", "then"), [], INVOKE.replace("now", "then")),
    "argument missing": (NOTHING, [], NOTHING),
}


def read(text: str, size: int, policy: Policy) -> Message:
    turn = ChatTemplate.from_string(TEMPLATE).prepare([{"role": "user", "content": "x"}], tools=[TOOL])
    parser = turn.parser(policy=policy)
    for piece in pieces(text, size):
        parser.feed(piece)
    parser.finish()
    return parser.message


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(("text", "calls", "content"), CALLS.values(), ids=CALLS)
def test_a_call_of_another_format_is_read_where_calls_stand(
    text: str, calls: list[Any], content: str, size: int
) -> None:
    """It begins a line, nothing but calls is behind it, and it fits the schema of an offered tool; all else stays content."""
    message = read(text, size, Policy(repair="offered"))

    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == calls
    assert message.content.strip() == content


@pytest.mark.parametrize("text", [INVOKE, "Calling tool: now({})"])
def test_by_default_it_is_content(text: str) -> None:
    """Nobody asked for other formats."""
    message = read(text, 1000, Policy())

    assert (message.tool_calls, message.content) == ((), text)
