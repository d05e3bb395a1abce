"""Examples of the older system, read with the templates of their models, and its other guarantees.

Rules: the examples are those in its documentation, as a model writes them. If a template's prompt starts reasoning, the
closing marker is added first, as the model would write it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from answers import template_named
from splitting import fed
from vendor import all_vendor_templates

from unrender import Message
from unrender.format import ReasoningMode

FENCE = "```"
NAMES = ("get_weather", "Write", "Read", "Edit", "CompleteTask")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    key: {"type": "string"}
                    for key in ("location", "file_path", "content", "old_string", "new_string", "status")
                },
            },
        },
    }
    for name in NAMES
]


def _present(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in all_vendor_templates())


KIMI = _present("moonshotai-Kimi-K2", "Kimi-K2-Instruct", "Kimi-K2-Thinking")
QWEN3 = _present("Qwen-Qwen3-0.6B")
R1 = _present(
    "llama-cpp-deepseek-r1",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
)
TOKYO = ("get_weather", {"location": "Tokyo"})
SECTION = (
    "<|tool_calls_section_begin|>\n<|tool_call_begin|>\nfunctions.get_weather:0<|tool_call_argument_begin|>\n"
    '{"location": "Tokyo"}\n<|tool_call_end|>\n<|tool_calls_section_end|>'
)
SECOND = (
    "<|tool_call_begin|>\nfunctions.Read:1<|tool_call_argument_begin|>\n"
    '{"file_path": "/a"}\n<|tool_call_end|>\n<|tool_calls_section_end|>'
)
XML = (
    '<tool_call>\n<invoke name="Write">\n<parameter name="file_path">/path/to/file.txt</parameter>\n'
    '<parameter name="content">File content here</parameter>\n</invoke>\n</tool_call>'
)
WRITTEN = ("Write", {"file_path": "/path/to/file.txt", "content": "File content here"})
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"location": "Tokyo"}}\n</tool_call>'
FIRST = (
    "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>\nfunction<｜tool▁sep｜>get_weather\n"
    f'{FENCE}json\n{{"location": "Tokyo"}}\n{FENCE}\n<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>'
)
SIMPLE = 'function<get_weather>\n{"location": "Tokyo"}'
FENCED = f'function<get_weather>\n{FENCE}json\n{{"location": "Tokyo"}}\n{FENCE}'
ARRAY = (
    f'function\n{FENCE}json\n{{\n  "tools": [\n    {{\n      "name": "get_weather",\n      "arguments": {{\n'
    '        "location": "Tokyo"\n      }\n    },\n    {\n      "name": "Read",\n      "arguments": {\n'
    f'        "file_path": "/path/to/file.java"\n      }}\n    }}\n  ]\n}}\n{FENCE}'
)
WRAPPED = f'<tool_call>\nfunction</think>CompleteTask\n{FENCE}json\n{{"status": "completed"}}\n{FENCE}\n</tool_call>'
COMPLETED = ("CompleteTask", {"status": "completed"})
READ = ("Read", {"file_path": "/path/to/file.java"})
EXAMPLES: dict[str, tuple[tuple[str, ...], str, list[tuple[str, dict[str, str]]]]] = {
    "Kimi's tokens": (KIMI, SECTION, [TOKYO]),
    "Kimi's tokens, two calls": (
        KIMI,
        SECTION.removesuffix("<|tool_calls_section_end|>") + SECOND,
        [TOKYO, ("Read", {"file_path": "/a"})],
    ),
    "Kimi's tokens without a section's end": (KIMI, SECTION.removesuffix("\n<|tool_calls_section_end|>"), [TOKYO]),
    "XML": (KIMI, XML, [WRITTEN]),
    "bare words": (KIMI, 'functions.get_weather:0{"location": "Tokyo"}', [TOKYO]),
    "Qwen3": (QWEN3, HERMES, [TOKYO]),
    "Qwen3, two calls": (QWEN3, f"{HERMES}\n{HERMES}", [TOKYO, TOKYO]),
    "R1, format 1": (R1, FIRST, [TOKYO]),
    "R1, format 1, ASCII bars": (R1, FIRST.replace("｜", "|"), [TOKYO]),
    "R1, format 2": (R1, SIMPLE, [TOKYO]),
    "R1, format 2, fenced": (R1, FENCED, [TOKYO]),
    "R1, format 2, two calls": (R1, f"{FENCED}\n{FENCED}", [TOKYO, TOKYO]),
    "R1, format 3": (R1, ARRAY, [TOKYO, READ]),
    "R1, format 4": (R1, WRAPPED, [COMPLETED]),
    "R1, format 4, on one line": (R1, WRAPPED.replace(">\nfunction", "> function"), [COMPLETED]),
}
CASES = [
    pytest.param(name, *rest, id=f"{label}, {name}") for label, (names, *rest) in EXAMPLES.items() for name in names
]


def read(name: str, text: str) -> Message:
    """Return the message of an answer, the same for every chunking.

    If the prompt starts reasoning, it's closed first.
    """
    turn = template_named(name).prepare([{"role": "user", "content": "What's the weather in Tokyo?"}], tools=TOOLS)
    reasoning = template_named(name).format.reasoning
    opened = turn.prompt.rstrip().endswith(reasoning.start.strip()) and reasoning.mode is not ReasoningMode.NONE
    answer = text if not opened else text.removeprefix(reasoning.start.strip())
    if opened and answer == text:
        answer = reasoning.end + turn.format.turn.reasoning_to_content + text
    found = []
    for chunks in ([answer], list(answer)):
        parser = turn.parser()
        fed(parser, chunks)
        found.append(parser.message)
    assert called(found[0]) == called(found[1])
    assert found[0].content == found[1].content
    return found[0]


def called(message: Message) -> list[tuple[str, Any]]:
    calls = message.to_openai().get("tool_calls", [])
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize(("name", "text", "calls"), CASES)
def test_an_example_is_read(name, text, calls):
    """The documented call is returned, and no call syntax is left in the content."""
    message = read(name, text)

    assert called(message) == calls
    assert message.content.strip() == ""


@pytest.mark.parametrize(("name", "text", "calls"), CASES)
def test_an_example_after_reasoning_and_content(name, text, calls):
    """Reasoning and content around the call are kept, and the call is the same."""
    if template_named(name).format.reasoning.mode is ReasoningMode.NONE and name not in R1:
        pytest.skip("the template has no reasoning")
    start = template_named(name).format.reasoning.start.strip() or "<think>"
    end = template_named(name).format.reasoning.end.strip() or "</think>"
    message = read(name, f"{start}I look.{end}\n\nLet me check.\n\n{text}")

    assert (message.reasoning.strip(), message.content.strip()) == ("I look.", "Let me check.")
    assert called(message) == calls


@pytest.mark.parametrize("name", KIMI)
def test_the_output_is_openais(name):
    """The id is the model's own, arguments are JSON text, and the type is `function`."""
    message = read(name, f"I check.{SECTION}").to_openai()

    assert message["content"] == "I check."
    assert message["tool_calls"] == [
        {
            "id": "functions.get_weather:0",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"location": "Tokyo"}'},
        }
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, SECTION.replace('{"location": "Tokyo"}', "{location}")) for name in KIMI),
        *((name, SECTION.replace("functions.get_weather:0", "")) for name in KIMI),
        *((name, 'functions.:0{"param": "value"}') for name in KIMI),
        *((name, '<tool_call>\n{"arguments": {}}\n</tool_call>') for name in QWEN3),
        *((name, FIRST.replace('{"location": "Tokyo"}', "{bad json}")) for name in R1),
        *((name, "The word function appears here, and `function` too.") for name in (*KIMI, *QWEN3, *R1)),
    ],
)
def test_what_is_malformed_gives_no_calls(name, text):
    """Malformed text gives no calls and no exception, and isn't lost."""
    message = read(name, text)

    assert called(message) == []
    assert message.content.strip()
