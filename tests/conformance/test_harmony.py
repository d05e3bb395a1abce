"""`openai_harmony` renders conversations in code. Its format is derived, and answers are parsed as by its decoder.

The library reads its vocabulary from a folder that `python3 scripts/run.py renderers` creates.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from cases import cases
from splitting import fed
from tables import table

from unrender import ChatTemplate, Turn
from unrender.verify import verify

harmony: Any = pytest.importorskip("openai_harmony")
if "TIKTOKEN_ENCODINGS_BASE" not in os.environ:
    pytest.skip("openai_harmony has no vocabulary: use `python3 scripts/run.py renderers`", allow_module_level=True)

ASSISTANT = harmony.Role.ASSISTANT
ENCODING = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
NAMES = ("get_weather", "now")
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in NAMES]
USER = {"role": "user", "content": "Rain?"}


def write(messages, tools=None, add_generation_prompt=True, reasoning_effort="medium"):
    """Write a conversation with the library, as a renderer for `ChatTemplate.from_renderer`."""
    effort = harmony.ReasoningEffort(reasoning_effort.capitalize())
    parts = [_message(harmony.Role.SYSTEM, harmony.SystemContent.new().with_reasoning_effort(effort))]
    instructed = messages[0]["role"] in ("system", "developer")
    if instructed or tools:
        parts.append(_message(harmony.Role.DEVELOPER, _instructions(messages[0]["content"] * instructed, tools)))
    names: dict[str, str] = {}
    for message in messages[instructed:]:
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
        parts += _parts(message, names)
    conversation = harmony.Conversation.from_messages(parts)
    if add_generation_prompt:
        return ENCODING.decode(ENCODING.render_conversation_for_completion(conversation, ASSISTANT))
    kept = harmony.RenderConversationConfig(auto_drop_analysis=False)
    return ENCODING.decode(ENCODING.render_conversation_for_training(conversation, kept))


def _instructions(text: str, tools: Sequence[Mapping[str, Any]] | None) -> Any:
    content = harmony.DeveloperContent.new().with_instructions(text)
    functions = [tool["function"] for tool in tools or ()]
    described = [
        harmony.ToolDescription.new(function["name"], function.get("description", ""), function.get("parameters"))
        for function in functions
    ]
    return content.with_function_tools(described) if described else content


def _parts(message: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Any]:
    """Yield the library's messages: one for each channel and each call."""
    content, calls = message.get("content") or "", message.get("tool_calls") or ()
    if message["role"] == "user":
        yield _message(harmony.Role.USER, content)
        return
    if message["role"] == "tool":
        author = harmony.Author.new(harmony.Role.TOOL, "functions." + names[message["tool_call_id"]])
        answer = harmony.Message.from_author_and_content(author, content)
        yield answer.with_recipient("assistant").with_channel("commentary")
        return
    if message.get("reasoning_content"):
        yield _message(ASSISTANT, message["reasoning_content"]).with_channel("analysis")
    if content or not calls:
        yield _message(ASSISTANT, content).with_channel("commentary" if calls else "final")
    for call in calls:
        called = _message(ASSISTANT, _as_text(call["function"]["arguments"])).with_channel("commentary")
        yield called.with_recipient("functions." + call["function"]["name"]).with_content_type("<|constrain|>json")


def _message(role: Any, content: Any) -> Any:
    return harmony.Message.from_role_and_content(role, content)


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


@dataclass(slots=True)
class Said:
    """The content of an answer, from the library or from our parser."""

    reasoning: str = ""
    content: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)


def read_by_library(text: str) -> Said:
    """Return the library's reading of a whole answer."""
    return said_in(ENCODING.parse_messages_from_completion_tokens(tokens_of(text), ASSISTANT))


def said_in(messages: Iterable[Any]) -> Said:
    said = Said()
    for message in messages:
        _add(said, message.channel, message.recipient, "".join(part.text for part in message.content))
    return said


def _add(said: Said, channel: str | None, recipient: str | None, text: str) -> None:
    if (recipient or "").startswith("functions."):
        said.calls.append((str(recipient).removeprefix("functions."), text))
    elif channel == "analysis":
        said.reasoning += text
    else:
        said.content += text


def tokens_of(text: str) -> Any:
    return ENCODING.encode(text, allowed_special="all")


def read(turn: Turn, pieces: Sequence[str]) -> Said:
    """Return our parser's reading of an answer in chunks."""
    parser = turn.parser()
    fed(parser, pieces)
    message = parser.message
    return Said(message.reasoning, message.content, [(call.name, call.arguments_json) for call in message.tool_calls])


T: Any = table("test_harmony")
HEADERS: list[str] = T["HEADERS"]
"""Orders and content types of headers that the library's decoder accepts for a call."""
ANSWERS: dict[str, str] = T["ANSWERS"] | {
    f"{start}{header}": start + header.format("get_weather") + T["ARGUMENTS"] + "<|call|>"
    for start in ("", T["REASONED"])
    for header in HEADERS
}
CONVERSATIONS: dict[str, Any] = T["CONVERSATIONS"]


@pytest.fixture(scope="module")
def template() -> ChatTemplate:
    return ChatTemplate.from_renderer(write, eos_token="<|return|>")


@pytest.fixture(scope="module")
def turn(template: ChatTemplate) -> Turn:
    return template.prepare([USER], tools=TOOLS)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_read_as_its_library_reads_it(answer, turn):
    """Reasoning, content and calls equal those of the library's decoder: whole, by token and by character."""
    expected = read_by_library(answer)

    assert read(turn, [answer]) == expected
    assert read(turn, [piece for _, piece in by_token(answer)]) == expected
    assert read(turn, list(answer)) == expected


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_stream_never_says_what_the_library_does_not(answer, turn):
    """After each token, our output equals the output of the library's streaming decoder, or is a prefix of it."""
    decoder, parser = harmony.StreamableParser(ENCODING, ASSISTANT), turn.parser()
    for token, piece in by_token(answer):
        decoder.process(token)
        parser.feed(piece)
        theirs, ours = said_so_far(decoder), parser.message

        assert theirs.reasoning.startswith(ours.reasoning)
        assert theirs.content.startswith(ours.content)
        for call, (name, arguments) in zip(ours.tool_calls, theirs.calls[: len(ours.tool_calls)], strict=True):
            assert name == call.name
            assert arguments.startswith(call.arguments_json)


def said_so_far(decoder: Any) -> Said:
    said = said_in(decoder.messages)
    _add(said, decoder.current_channel, decoder.current_recipient, decoder.current_content)
    return said


def by_token(text: str) -> Iterator[tuple[int, str]]:
    """Yield each token with the text that it completes."""
    done = 0
    tokens = tokens_of(text)
    for at, token in enumerate(tokens, 1):
        whole = ENCODING.decode(tokens[:at]).rstrip("\ufffd")
        yield token, whole[done:]
        done = len(whole)


@pytest.mark.parametrize("said", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("effort", ["low", "high"])
def test_what_the_library_writes_is_read_back(said, effort, template):
    """An answer that the library renders after the prompt is read back."""
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (name, arguments) in enumerate(said.get("tool_calls", ()))
    ]
    answer = {"role": "assistant", **said, "tool_calls": calls}
    turn = template.prepare([USER], tools=TOOLS, reasoning_effort=effort)
    written = write([USER, answer], TOOLS, add_generation_prompt=False, reasoning_effort=effort)

    assert f"Reasoning: {effort}" in turn.prompt
    assert written.startswith(turn.prompt)
    message = turn.parse(written.removeprefix(turn.prompt))
    assert (message.reasoning, message.content) == (said.get("reasoning_content", ""), said["content"])
    assert [[call.name, call.arguments] for call in message.tool_calls] == said.get("tool_calls", [])


@cases
def test_a_tool_that_was_not_offered_is_not_called(answer, turn):
    """The library's decoder doesn't check recipients. Here, a call of an unknown tool is content, byte for byte."""
    message = turn.parse(answer)

    assert (message.content, message.tool_calls) == (answer, ())


def test_a_call_that_is_cut_off_is_told_apart(turn):
    """A call that is cut off is marked as such; the library's decoder returns it as a normal message."""
    answer = HEADERS[0].format("get_weather") + '{"city": "Ai'
    message = turn.parse(answer)
    (call,) = message.failed_calls

    assert message.tool_calls == ()
    assert read_by_library(answer).calls == [(call.name, call.arguments_json)]
    assert call.status == "truncated"


def test_the_format_of_the_library_passes(template):
    """Analysis drops nothing, no capability fails, and the prompt's variable is found."""
    report = verify(template)

    assert template.analysis.given_up == ()
    assert report.failed == ()
    assert template.variables["reasoning_effort"].changes == ("low", "high")
    assert set(template.prepare([USER]).stop) >= {"<|return|>"}
