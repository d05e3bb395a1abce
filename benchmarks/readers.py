"""Adapters for the streaming parsers of other projects, and for ours. Each converts tokens into pieces of a message.

Strategy: each parser is used as in its own server, once per token. Objects that a server creates once are created
before the timing starts. The cases' markers are those of the Qwen models, which are built into vLLM's and SGLang's
parsers. transformers' parser reads an export of our format. vLLM uses token ids. Without a model, a token's id is its
index in a vocabulary of the text's own tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from streaming import AS_WRITTEN, Case, chunked

from unrender.export import response_template_of
from unrender.format import ToolMode
from unrender.machine.events import ArgumentsText, ContentText, Event, ReasoningText, ToolCallStarted
from unrender.parser.streaming import Parser

MARKERS = re.compile(r"(</?(?:think|tool_call)>)")
"""Markers that are single tokens for models such as Qwen3."""
VLLM_TOOL_PARSERS = {ToolMode.JSON_NATIVE: "hermes", ToolMode.TAG_WITH_TAGGED: "qwen3_coder"}
SGLANG_TOOL_PARSERS = {ToolMode.JSON_NATIVE: "qwen25", ToolMode.TAG_WITH_TAGGED: "qwen3_coder"}

Run = Callable[[], Iterator[Any]]
"""Reads the text once with a new parser, one token at a time, and yields the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Part of a message; `name` and `arguments` belong to the call `index`."""

    reasoning: str = ""
    content: str = ""
    index: int = 0
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A streaming parser: its package, how to run it, and how to read its output."""

    name: str
    module: str
    """The required module. Its first part is the name of the distribution."""
    prepare: Callable[[Case, list[str]], Run]
    pieces: Callable[[Any], Iterator[Piece]]


def tokens(text: str) -> list[str]:
    """Cut a text into markers and chunks of four characters."""
    parts = MARKERS.split(text)
    return [token for i, part in enumerate(parts) for token in ([part] if i % 2 else chunked(part))]


def _tools(case: Case) -> list[dict[str, Any]]:
    return [{**tool.to_openai()} for tool in case.request.tools or ()]


def _prepare_unrender(case: Case, tokens: list[str]) -> Run:
    def run() -> Iterator[list[Event]]:
        # The other parsers stream arguments, too.
        parser = Parser(case.format, case.request, policy=AS_WRITTEN)
        for token in tokens:
            yield parser.feed(token)
        yield parser.finish()

    return run


def _unrender_pieces(given: list[Event]) -> Iterator[Piece]:
    for event in given:
        match event:
            case ReasoningText(text):
                yield Piece(reasoning=text)
            case ContentText(text):
                yield Piece(content=text)
            case ToolCallStarted(index=index, name=name):
                yield Piece(index=index, name=name)
            case ArgumentsText(index, text):
                yield Piece(index=index, arguments=text)


def _prepare_transformers(case: Case, tokens: list[str]) -> Run:
    from transformers.utils.chat_parsing import ResponseParser  # noqa: PLC0415 - may be missing
    from transformers.utils.chat_parsing.response_templates import load_response_template  # noqa: PLC0415

    loaded = load_response_template(response_template_of(case.format).template)
    tools = _tools(case) or None

    def run() -> Iterator[dict[str, Any] | None]:
        parser = ResponseParser(loaded, prefix=case.format.turn.headers[0], tools=tools)
        for token in tokens:
            parser.feed(token)
            yield None
        message, _ = parser.finalize()
        yield message

    return run


def _transformers_pieces(given: dict[str, Any] | None) -> Iterator[Piece]:
    """Read the message. Its events have raw arguments, which are valid JSON only at the end of a call."""
    if given is None:
        return
    yield Piece(reasoning=given.get("reasoning_content", ""), content=given.get("content", ""))
    for index, call in enumerate(given.get("tool_calls", ())):
        function = call["function"]
        yield Piece(index=index, name=function["name"], arguments=json.dumps(function["arguments"]))


class Vocabulary:
    """A tokenizer for vLLM's parsers, which look up the ids of markers and the texts of ids."""

    def __init__(self, tokens: list[str]) -> None:
        markers = ("<think>", "</think>", "<tool_call>", "</tool_call>")
        self._texts = list(dict.fromkeys([*markers, *tokens]))
        self._ids = {text: i for i, text in enumerate(self._texts)}

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token."""
        return self._ids

    def decode(self, ids: list[int]) -> str:
        """Return the text of some ids."""
        return "".join(self._texts[i] for i in ids)


def _prepare_vllm(case: Case, tokens: list[str]) -> Run:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415
    from vllm.parser.parser_manager import ParserManager  # noqa: PLC0415

    vocabulary = Vocabulary(tokens)
    parser_class = ParserManager.get_parser(
        tool_parser_name=VLLM_TOOL_PARSERS[case.format.tools.mode],
        reasoning_parser_name="qwen3",
        enable_auto_tools=True,
        tokenizer=vocabulary,
    )
    question = {"role": "user", "content": "?"}
    request = ChatCompletionRequest(messages=[question], tools=_tools(case) or None)
    ids = [[vocabulary.get_vocab()[token]] for token in tokens]
    last = len(tokens) - 1

    def run() -> Iterator[Any]:
        parser = parser_class(vocabulary, request.tools)
        for i, token in enumerate(tokens):
            yield parser.parse_delta(token, ids[i], request, prompt_token_ids=[], finished=i == last)

    return run


def _vllm_pieces(given: Any) -> Iterator[Piece]:
    if given is None:
        return
    yield Piece(reasoning=given.reasoning or "", content=given.content or "")
    for call in given.tool_calls:
        yield Piece(index=call.index, name=call.function.name or "", arguments=call.function.arguments or "")


def _prepare_sglang(case: Case, tokens: list[str]) -> Run:
    from sglang.srt.entrypoints.openai.protocol import Tool  # noqa: PLC0415
    from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: PLC0415
    from sglang.srt.parser.reasoning_parser import ReasoningParser  # noqa: PLC0415

    tools = [Tool.model_validate(tool) for tool in _tools(case)]
    name = SGLANG_TOOL_PARSERS[case.format.tools.mode]

    def run() -> Iterator[tuple[str, str, list[Any]]]:
        reasoning, calls = ReasoningParser("qwen3"), FunctionCallParser(tools, name)
        for token in tokens:
            thought, rest = reasoning.parse_stream_chunk(token)
            yield thought, *calls.parse_stream_chunk(rest)
        thought, rest = reasoning.parse_stream_end()
        yield thought, *calls.parse_stream_chunk(rest)
        yield "", *calls.parse_stream_end()

    return run


def _sglang_pieces(given: tuple[str, str, list[Any]]) -> Iterator[Piece]:
    thought, text, calls = given
    yield Piece(reasoning=thought, content=text)
    for call in calls:
        yield Piece(index=call.tool_index, name=call.name or "", arguments=call.parameters)


OURS = Reader(name="unrender", module="unrender", prepare=_prepare_unrender, pieces=_unrender_pieces)
PEERS = (
    Reader(
        name="transformers",
        module="transformers.utils.chat_parsing",
        prepare=_prepare_transformers,
        pieces=_transformers_pieces,
    ),
    Reader(name="vLLM", module="vllm.parser.parser_manager", prepare=_prepare_vllm, pieces=_vllm_pieces),
    Reader(
        name="SGLang",
        module="sglang.srt.function_call.function_call_parser",
        prepare=_prepare_sglang,
        pieces=_sglang_pieces,
    ),
)
