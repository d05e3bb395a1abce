"""The contract of docs/reference/leniency.md, row by row: what comes out, and whether an event reports it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from properties.families import (
    COUNTED,
    JSON_ENVELOPE,
    KEY_AND_VALUE,
    NESTED_TAGS,
    PYTHON_CALLS,
    TAG_AND_JSON,
    TAGGED,
    TOOLS,
    TYPED,
    Family,
)
from properties.invariants import check
from splitting import fed

from unrender.format import Arguments, CallSyntax, Format, Reasoning, Slot, ToolMode
from unrender.machine.events import Malformed
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Request, Tool, ToolCall
from unrender.parser.streaming import Parser

CONTRACT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "leniency.md"
EITHER = {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}
PICK = Tool(
    name="pick",
    parameters={
        "type": "object",
        "properties": {"either": EITHER, "text": {"anyOf": [{"type": "string"}, {"type": "object"}]}},
    },
)
REQUEST = Request(tools=(*TOOLS, Tool(name="wetter_für_zürich"), PICK))
NOW: tuple[str, dict[str, Any]] = ("now", {})
ROME: tuple[str, dict[str, Any]] = ("now", {"city": "Rome"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the contract."""

    name: str
    family: Family = JSON_ENVELOPE
    output: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    dead: str = ""
    """The status of the call, which is dead and no call of the message."""
    reported: bool = False
    request: Request = REQUEST


def call(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


def invoke(*arguments: tuple[str, str]) -> str:
    written = "".join(f'<param name="{key}">{value}</param>\n' for key, value in arguments)
    return f'<invoke name="now">\n{written}</invoke>'


def pick(*tags: str, mark: str = "]<]ns[>[") -> str:
    inside = "".join(text if text.isalnum() else mark + text for text in tags)
    return f'{mark}<tool_call>\n{mark}<invoke name="pick">{inside}{mark}</invoke>\n{mark}</tool_call>'


def plain(part: Any) -> Any:
    """Return the part of a format with tags that have no mark of their own."""
    return part if isinstance(part, Slot) else part.replace("]<]ns[>[", "")


ARROWS = replace(
    TAG_AND_JSON,
    format=Format(
        turn=TAG_AND_JSON.format.turn,
        tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, call_start=">>>", function=(Slot.NAME, "\n", Slot.ARGUMENTS)),
    ),
)
_NESTED = NESTED_TAGS.format.tools
PLAIN_TAGS = replace(
    NESTED_TAGS,
    format=Format(
        tools=replace(
            _NESTED,
            section_start=plain(_NESTED.section_start),
            section_end=plain(_NESTED.section_end),
            function=tuple(map(plain, _NESTED.function)),
            arguments=replace(_NESTED.arguments, entry=tuple(map(plain, _NESTED.arguments.entry))),
        )
    ),
)
UNSPACED = replace(
    KEY_AND_VALUE,
    format=replace(
        KEY_AND_VALUE.format,
        tools=replace(
            KEY_AND_VALUE.format.tools,
            function=(Slot.NAME, Slot.ARGUMENTS),
            arguments=replace(
                KEY_AND_VALUE.format.tools.arguments,
                entry=("<arg_key>", Slot.KEY, "</arg_key><arg_value>", Slot.VALUE, "</arg_value>"),
            ),
        ),
    ),
)
SPECIAL = replace(
    COUNTED,
    format=replace(
        COUNTED.format, preserved_tokens=("<|calls_begin|>", "<|calls_end|>", "<|call_begin|>", "<|call_end|>")
    ),
)
BARE_LIST = replace(
    PYTHON_CALLS,
    format=Format(
        tools=replace(
            PYTHON_CALLS.format.tools,
            section_start="[",
            section_end="]",
            separator="",
            parallel=False,
            arguments=Arguments(start="(", end=")", entry=(Slot.KEY, "=", Slot.VALUE)),
        )
    ),
)
UNTHINKING = replace(JSON_ENVELOPE, format=replace(JSON_ENVELOPE.format, reasoning=Reasoning()))
PLAIN = call('{"name": "now", "arguments": {}}')
COUNTED_CALL = "<|call_begin|>functions.now:0<|args_begin|>{}<|call_end|>"

ROWS = (
    Row(name="text around calls", output=f"A\n{PLAIN}\nB\n{PLAIN}\nC", content="A\nB\nC", calls=(NOW, NOW)),
    Row(name="no section opener", family=COUNTED, output=f"Hi{COUNTED_CALL}<|calls_end|>", content="Hi", calls=(NOW,)),
    Row(name="no section closer", family=COUNTED, output=f"<|calls_begin|>{COUNTED_CALL}", calls=(NOW,), reported=True),
    Row(
        name="no call opener",
        family=TAGGED,
        output="Hi\n<function=now>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>",
        content="Hi",
        calls=(ROME,),
    ),
    Row(
        name="no prefix before the name",
        family=COUNTED,
        output=f"<|calls_begin|>{COUNTED_CALL.replace('functions.', '')}<|calls_end|>",
        calls=(NOW,),
    ),
    Row(name="opener begun twice", family=ARROWS, output='<b>>>>now\n{"city": "Rome"}', content="<b>", calls=(ROME,)),
    Row(
        name="opener after half a call",
        output='<tool_call>\n{"na ' + PLAIN,
        content='<tool_call>\n{"na ',
        calls=(NOW,),
        reported=True,
    ),
    Row(
        name="no call closer",
        output=f'<tool_call>\n{{"name": "now", "arguments": {{"city": "Rome"}}}}\n{PLAIN}',
        calls=(ROME, NOW),
        reported=True,
    ),
    Row(
        name="doubled closer",
        family=TAGGED,
        output="<tool_call>\n<function=now>\n</function>\n</function>\n</tool_call>\n</tool_call>",
        calls=(NOW,),
    ),
    Row(
        name="no value closer",
        family=TAGGED,
        output=call("<function=now>\n<parameter=city>\nRome\n</function>"),
        calls=(ROME,),
        reported=True,
    ),
    Row(
        name="no outer brace",
        output=call('{"name": "now", "arguments": {"city": "Rome"}'),
        calls=(ROME,),
        reported=True,
    ),
    Row(name="one brace too many", output=call('{"name": "now", "arguments": {}}}'), calls=(NOW,), reported=True),
    Row(name="list of one", output=call('[{"name": "now", "arguments": {}}]'), calls=(NOW,), reported=True),
    Row(name="keys without quotes", output=call('{"name": "now", "arguments": {city: "Rome"}}'), calls=(ROME,)),
    Row(name="empty call", output=f"A\n<tool_call>\n</tool_call>\n{PLAIN}", content="A", calls=(NOW,), reported=True),
    Row(name="empty section", family=COUNTED, output="A<|calls_begin|><|calls_end|>B", content="AB", reported=True),
    Row(
        name="empty section without tools",
        family=SPECIAL,
        output="A<|calls_begin|>\n<|call_begin|><|call_end|><|calls_end|>B<|call_begin|>C",
        content="AB<|call_begin|>C",
        reported=True,
        request=Request(tools=()),
    ),
    Row(name="stray reasoning closer", output="</think>\n\nHi", content="Hi"),
    Row(name="other white space", output='<tool_call>  {"name":"now","arguments":{}}</tool_call>', calls=(NOW,)),
    Row(
        name="white space between tags",
        family=UNSPACED,
        output="<tool_call>now\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
        calls=(ROME,),
    ),
    Row(name="arguments before the name", output=call('{"arguments": {"city": "Rome"}, "name": "now"}'), calls=(ROME,)),
    Row(name="parameters for arguments", output=call('{"name": "now", "parameters": {"city": "Rome"}}'), calls=(ROME,)),
    Row(
        name="wrapped in function",
        output=call('{"type": "function", "function": {"name": "now", "arguments": {"city": "Rome"}}}'),
        calls=(ROME,),
    ),
    Row(
        name="other fields", output=call('{"id": 7, "name": "now", "arguments": {}, "type": "function"}'), calls=(NOW,)
    ),
    Row(
        name="unknown fields",
        output=call('{"name": "now", "input": {"city": "Oslo"}, "arguments": {"city": "Rome"}, "why": [1]}'),
        calls=(ROME,),
        reported=True,
    ),
    Row(
        name="arguments under another name",
        output=call('{"name": "now", "args": {"city": "Rome"}}'),
        calls=(ROME,),
        reported=True,
    ),
    Row(
        name="no object for arguments",
        output=call('{"name": "now", "arguments": ["Rome"]}'),
        content=call('{"name": "now", "arguments": ["Rome"]}'),
        calls=(("now", ""),),
        dead="invalid",
        reported=True,
    ),
    Row(
        name="arguments as a string",
        output=call(r'{"name": "now", "arguments": "{\"city\": \"Rome\"}"}'),
        calls=(ROME,),
    ),
    Row(name="empty string for arguments", output=call('{"name": "now", "arguments": ""}'), calls=(NOW,)),
    Row(name="no arguments at all", output=call('{"name": "now"}'), calls=(NOW,)),
    Row(name="null for arguments", output=call('{"name": "now", "arguments": null}'), calls=(NOW,)),
    Row(
        name="unknown tool",
        output=call('{"name": "nope", "arguments": {}}'),
        content=call('{"name": "nope", "arguments": {}}'),
        reported=True,
    ),
    Row(
        name="unknown argument",
        family=TAGGED,
        output=call("<function=now>\n<parameter=x>\n1\n</parameter>\n</function>"),
        calls=(("now", {"x": 1}),),
    ),
    Row(
        name="argument twice",
        family=TAGGED,
        output=call(
            "<function=now>\n<parameter=city>\nOslo\n</parameter>\n<parameter=city>\nRome\n</parameter>\n</function>"
        ),
        calls=(ROME,),
        reported=True,
    ),
    Row(
        name="key twice in an argument",
        family=NESTED_TAGS,
        output=pick("<either>", "<a>", "1", "</a>", "<a>", "2", "</a>", "</either>"),
        calls=(("pick", {"either": {"a": 2}}),),
        reported=True,
    ),
    Row(
        name="list or object",
        family=NESTED_TAGS,
        output=pick("<either>", "<item>", "1", "</item>", "<item>", "2", "</item>", "</either>"),
        calls=(("pick", {"either": [1, 2]}),),
    ),
    Row(
        name="tags or text",
        family=PLAIN_TAGS,
        output=pick("<text>", "<b>", "1", "</b>", "</text>", mark=""),
        calls=(("pick", {"text": "<b>1</b>"}),),
    ),
    Row(
        name="field twice",
        output=call('{"name": "now", "name": "", "arguments": {"city": "Rome"}, "parameters": {"city": "Oslo"}}'),
        calls=(ROME,),
        reported=True,
    ),
    Row(
        name="commas in code",
        family=BARE_LIST,
        output='[now(city="Rome"), now()][now(city="Rome"exact=true), now(city="Rome", exact=True)]',
        calls=(ROME, NOW, *[("now", {"city": "Rome", "exact": True})] * 2),
    ),
    Row(
        name="trailing comma",
        output=call('{"name": "now", "arguments": {"tags": ["a",],}}'),
        calls=(("now", {"tags": ["a"]}),),
    ),
    Row(
        name="line break in a string",
        output=call('{"name": "now", "arguments": {"city": "a\nb"}}'),
        calls=(("now", {"city": "a\nb"}),),
    ),
    Row(
        name="Python literals",
        family=TAG_AND_JSON,
        output="<function=now>{'city': 'Rome', 'exact': True, 'note': None}</function>",
        calls=(("now", {"city": "Rome", "exact": True, "note": None}),),
    ),
    Row(name="fenced call", output=call('```json\n{"name": "now", "arguments": {}}\n```'), calls=(NOW,)),
    Row(
        name="typed by schema",
        family=TAGGED,
        output=call(
            "<function=now>\n<parameter=city>\n02134\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
            "<parameter=exact>\nTrue\n</parameter>\n<parameter=note>\nNone\n</parameter>\n</function>"
        ),
        calls=(("now", {"city": "02134", "days": 3, "exact": True, "note": None}),),
    ),
    Row(
        name="another type than the schema's",
        family=TYPED,
        output='<|ML|calls>\n<|ML|invoke name="now">\n<|ML|parameter name="city" string="false">3</|ML|parameter>\n'
        '<|ML|parameter name="days" string="true">3</|ML|parameter>\n</|ML|invoke>\n</|ML|calls>',
        calls=(("now", {"city": "3", "days": 3}),),
    ),
    Row(
        name="Unicode name",
        output=call('{"name": "wetter_für_zürich", "arguments": {}}'),
        calls=(("wetter_für_zürich", {}),),
    ),
    Row(
        name="call in open reasoning",
        family=COUNTED,
        output=f"<think>So{COUNTED_CALL}",
        reasoning="So",
        calls=(NOW,),
        reported=True,
    ),
    Row(
        name="call in reasoning that goes on",
        family=COUNTED,
        output=f"<think>So{COUNTED_CALL} no</think>Hi",
        content="Hi",
        reasoning=f"So{COUNTED_CALL} no",
    ),
    Row(
        name="marker in prose",
        output="Write <tool_call> to call.",
        content="Write <tool_call> to call.",
        reported=True,
    ),
    Row(name="reasoning not closed", output="<think>\nHm", reasoning="Hm", reported=True),
    Row(name="repeated reasoning opener", output="<think>\n<think>\nA\n</think>\n\nB", content="B", reasoning="A"),
    Row(
        name="several reasoning blocks",
        output="<think>\nA\n</think>\n\nB<think>\nC\n</think>\n\nD",
        content="BD",
        reasoning="AC",
    ),
    Row(
        name="undeclared reasoning",
        family=UNTHINKING,
        output="<think>\nA\n</think>\n\nB",
        content="B",
        reasoning="A",
        reported=True,
    ),
    Row(
        name="closer of undeclared reasoning",
        family=UNTHINKING,
        output="A\n</think>\n\nB",
        content="A\nB",
        reported=True,
    ),
    Row(
        name="cut off in the arguments",
        output='<tool_call>\n{"name": "now", "arguments": {"city": "Ro',
        content='<tool_call>\n{"name": "now", "arguments": {"city": "Ro',
        calls=(("now", '{"city": "Ro'),),
        dead="truncated",
        reported=True,
    ),
    Row(
        name="broken in the arguments",
        output='Hi\n<tool_call>\n{"name": "now", "arguments": {"city": !}}\n</tool_call>',
        content='Hi\n<tool_call>\n{"name": "now", "arguments": {"city": !}}\n</tool_call>',
        calls=(("now", '{"city": '),),
        dead="invalid",
        reported=True,
    ),
    Row(
        name="cut off after the arguments",
        output='<tool_call>\n{"name": "now", "arguments": {"city": "Rome"}}',
        content='<tool_call>\n{"name": "now", "arguments": {"city": "Rome"}}',
        calls=(ROME,),
        dead="truncated",
        reported=True,
    ),
    Row(
        name="cut off after a fence",
        output='<tool_call>\n```json\n{"name": "now", "arguments": {"city": "Rome"}}\n```',
        calls=(ROME,),
        reported=True,
    ),
    Row(
        name="cut off in the name",
        output='<tool_call>\n{"name": "no',
        content='<tool_call>\n{"name": "no',
        reported=True,
    ),
    Row(name="repeated end of turn", output="Hi<|end|>\n<|end|>\n", content="Hi"),
)


def value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return arguments


def read_as(calls: tuple[ToolCall, ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((call.name, value(call.arguments)) for call in calls)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_of_the_contract_holds(row: Row) -> None:
    """Each deviation is read as the contract says, at every chunking, and reported where it says so."""

    def parser() -> Parser:
        return Parser(row.family.format, row.request, prompt=row.family.prompt, ids=numbered_id)

    message = check(parser, row.output)
    events = fed(parser(), [row.output])

    assert message.content.strip() == row.content.strip()
    assert message.reasoning == row.reasoning
    assert read_as(message.dead_calls if row.dead else message.tool_calls) == row.calls
    assert {str(call.status) for call in message.tool_calls} <= {"complete"}
    assert {str(call.status) for call in message.dead_calls} == ({row.dead} if row.dead else set())
    assert not (row.dead and message.tool_calls)
    assert any(isinstance(event, Malformed) for event in events) is row.reported


def test_the_contract_lists_what_is_tested() -> None:
    """The page names every row that is tested, and no other."""
    listed = re.findall(r"^\| \*\*(.+?)\*\* ", CONTRACT.read_text(encoding="utf-8"), re.MULTILINE)

    assert listed == [row.name for row in ROWS]
