"""Adapters for the parsers of other projects, and for ours. Each converts an answer's tokens or text into a message.

Strategy: each parser is used as in its own server, for streaming once per token. Objects that a server creates once are
created before the timing starts. The cases' markers are those of the Qwen models, which are built into vLLM's and
SGLang's parsers. transformers' parser reads an export of our format. vLLM uses token ids. Without a model, a token's id
is its index in a vocabulary of all texts that were requested.
"""

# ruff: noqa: PLC0415 -- packages that may be missing

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

from streaming import AS_WRITTEN, Case, chunked

from unrender.export import response_template_of
from unrender.format import ToolMode
from unrender.machine import ArgumentsText, ContentText, Event, ReasoningText, ToolCallStarted
from unrender.parser.streaming import Parser

MARKERS = re.compile(r"(</?(?:think|tool_call)>)")
"""Markers that are single tokens for models such as Qwen3."""
_VLLM_PARSERS = {ToolMode.JSON_NATIVE: "hermes", ToolMode.TAG_WITH_TAGGED: "qwen3_coder"}
_SGLANG_PARSERS = {ToolMode.JSON_NATIVE: "qwen25", ToolMode.TAG_WITH_TAGGED: "qwen3_coder"}

Run = Callable[[], Iterator[Any]]
"""Reads the text once with a new parser, one token at a time, and yields the output."""
Calls = list[tuple[str, Any]]
"""Names of calls, and their arguments as data or as JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Part of a message; `name` and `arguments` belong to the call `index`."""

    reasoning: str = ""
    content: str = ""
    index: int = 0
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """A parser: its package, how to stream an answer, and how to read its output."""

    name: str
    module: str
    """The required module. Its first part is the name of the distribution."""
    prepare: Callable[[Case, list[str]], Run]
    pieces: Callable[[Any], Iterator[Piece]]


def tokens(text: str) -> list[str]:
    """Cut a text into markers and chunks of four characters."""
    parts = MARKERS.split(text)
    return [token for i, part in enumerate(parts) for token in ([part] if i % 2 else chunked(part))]


def installed() -> Iterator[Reader]:
    """Yield the installed peers, and print each version or that it's missing."""
    for peer in PEERS:
        try:
            import_module(peer.module)
        except ImportError as error:
            print(f"{peer.name}: not here ({error}); `python3 scripts/run.py peers` sets up what has it")
        else:
            print(f"{peer.name} {version(peer.module.partition('.')[0])}")
            yield peer


def quietly(read: Callable[..., Any], *given: Any) -> Any:
    """Return the result of another project's parser; None if it raises, since its server returns no call then."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return read(*given)
        except Exception:  # noqa: BLE001 -- whatever a parser of others raises
            return None


def parsed(calls: Calls) -> Calls:
    """Return calls with parsed arguments. Raises `ValueError` for invalid JSON."""
    return [(name or "", json.loads(given) if isinstance(given, str) else given) for name, given in calls]


def _tools(case: Case) -> list[dict[str, Any]]:
    return [{**tool.to_openai()} for tool in case.request.tools or ()]


# Ours.


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


# transformers.


def _prepare_transformers(case: Case, tokens: list[str]) -> Run:
    from transformers.utils.chat_parsing import ResponseParser
    from transformers.utils.chat_parsing.response_templates import load_response_template

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


# vLLM.


class _Ids(dict[str, int]):
    """The ids of texts. A text that is requested for the first time gets the next id."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__((text, i) for i, text in enumerate(texts))
        self.texts = texts

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> int:
        self[key] = len(self)
        self.texts.append(key)
        return self[key]

    def get(self, key: str, default: Any = None) -> int:  # noqa: ARG002
        return self[key]


class Vocabulary:
    """The part of a tokenizer that vLLM's parsers use. Every requested text is one token."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts = list(dict.fromkeys(["<think>", "</think>", "<tool_call>", "</tool_call>", *texts]))
        self.vocab = _Ids(self.texts)
        self.all_special_tokens: list[str] = []
        self.bos_token_id = self.eos_token_id = 0

    def get_vocab(self) -> dict[str, int]:
        """Return a mapping that has an id for any text."""
        return self.vocab

    def convert_tokens_to_ids(self, token: str) -> int:
        """Return the id of a text."""
        return self.vocab[token]

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return a text as one token."""
        return [self.vocab[text]]

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Return the texts of some tokens."""
        return "".join(self.texts[i] for i in ids)


def vllm_request(tools: Sequence[Any]) -> Any:
    """Return a request in vLLM's own class."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    return ChatCompletionRequest(messages=[{"role": "user", "content": "?"}], tools=list(tools) or None)


def vllm_calls(name: str, tools: Sequence[Any], text: str) -> tuple[str, Calls]:
    """Return the content and the calls that one of vLLM's tool parsers finds in a text."""
    from vllm.tool_parsers import ToolParserManager

    request = vllm_request(tools)
    found = ToolParserManager.get_tool_parser(name)(Vocabulary(), request.tools).extract_tool_calls(text, request)
    return found.content or "", [(call.function.name, call.function.arguments) for call in found.tool_calls]


def _prepare_vllm(case: Case, tokens: list[str]) -> Run:
    from vllm.parser.parser_manager import ParserManager

    vocabulary, request = Vocabulary(tokens), vllm_request(_tools(case))
    parser_class = ParserManager.get_parser(
        tool_parser_name=_VLLM_PARSERS[case.format.tools.mode],
        reasoning_parser_name="qwen3",
        enable_auto_tools=True,
        tokenizer=vocabulary,
    )
    ids = [[vocabulary.vocab[token]] for token in tokens]
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


# SGLang.


def sglang_calls(name: str, tools: Sequence[Any]) -> Callable[[str], tuple[str, Calls]]:
    """Return one of SGLang's tool parsers as a function from a text to its content and calls."""
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    offered = [Tool.model_validate(tool) for tool in tools]

    def read(text: str) -> tuple[str, Calls]:
        content, calls = FunctionCallParser(offered, name).parse_non_stream(text)
        return content, [(call.name or "", call.parameters) for call in calls]

    return read


def _prepare_sglang(case: Case, tokens: list[str]) -> Run:
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    tools = [Tool.model_validate(tool) for tool in _tools(case)]
    name = _SGLANG_PARSERS[case.format.tools.mode]

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


OURS = Reader("unrender", "unrender", _prepare_unrender, _unrender_pieces)
PEERS = (
    Reader("transformers", "transformers.utils.chat_parsing", _prepare_transformers, _transformers_pieces),
    Reader("vLLM", "vllm.parser.parser_manager", _prepare_vllm, _vllm_pieces),
    Reader("SGLang", "sglang.srt.function_call.function_call_parser", _prepare_sglang, _sglang_pieces),
)
