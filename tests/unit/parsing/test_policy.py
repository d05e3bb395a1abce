"""What can be read in two ways is read as the caller says."""

from __future__ import annotations

from unrender.format import Envelope, Format, Reasoning, ReasoningMode, Slot, ToolMode, Tools
from unrender.messages import Message, Request, Tool
from unrender.parsing.parser import Parser
from unrender.parsing.policy import CallsInReasoning, Policy, UnknownTools

FORMAT = Format(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
    tools=Tools(
        mode=ToolMode.JSON_NATIVE,
        call_start="<tool_call>",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
        call_end="</tool_call>",
        envelope=Envelope(name_field=("name",), args_field=("arguments",)),
    ),
)


def read(text: str, policy: Policy | None = None) -> Message:
    parser = Parser(FORMAT, Request(tools=(Tool(name="now"),)), policy=policy)
    parser.feed(text)
    parser.finish()
    return parser.message


def call(name: str) -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'


def test_unknown_tools_are_content_by_default() -> None:
    """A call of a tool that nobody offered is content."""
    assert read(call("later")).content == call("later")


def test_unknown_tools_as_flagged_calls() -> None:
    """On request it is a call that says that its tool is not known."""
    message = read(call("later") + call("now"), Policy(unknown_tools=UnknownTools.CALL))

    assert [(one.name, one.known) for one in message.tool_calls] == [("later", False), ("now", True)]
    assert message.content == ""


def test_calls_in_open_reasoning_are_rescued_by_default() -> None:
    """A call at the very end of reasoning that was never closed is a call."""
    message = read("<think>so " + call("now"))

    assert (message.reasoning, [one.name for one in message.tool_calls]) == ("so ", ["now"])


def test_calls_in_open_reasoning_can_be_ignored() -> None:
    """On request it stays reasoning."""
    message = read("<think>so " + call("now"), Policy(calls_in_reasoning=CallsInReasoning.IGNORE))

    assert (message.reasoning, message.tool_calls) == ("so " + call("now"), ())
