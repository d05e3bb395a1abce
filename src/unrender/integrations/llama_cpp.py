"""llama-cpp-python: a chat handler that renders prompts, and constrains and parses answers: `Llama(path, chat_handler=ChatHandler())`.

Strategy: tokens come from `Llama.generate` and are decoded with special tokens, because the library's own completions leave out the tokens
that start calls. A required call or a response format is constrained with GBNF from the first character. If the model may choose whether to
call a tool, the answer is parsed but not constrained.
"""

from __future__ import annotations

import codecs
import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from unrender import ChatTemplate, Parser, RequestError, TemplateError, Turn
from unrender.cache import kept
from unrender.errors import SchemaWarning
from unrender.integrations.rendered import is_forced, json_form, own_template
from unrender.openai import ChunkBody, Completion, CompletionBody, Usage
from unrender.token_ids import ChunkParser, PromptEncoder

__all__ = ["ChatHandler"]

_SAMPLING = (
    "top_p", "top_k", "min_p", "typical_p", "presence_penalty", "frequency_penalty", "repeat_penalty", "tfs_z",
    "mirostat_mode", "mirostat_tau", "mirostat_eta", "logits_processor",
)  # fmt: skip
"""Settings that are passed unchanged to `Llama.generate`."""
_REFUSED = ("functions", "function_call", "logit_bias", "logprobs", "top_logprobs")
"""Unsupported settings, which the handler rejects."""


class Llama(Protocol):
    """The attributes of `llama_cpp.Llama` that are used here."""

    metadata: Mapping[str, str]

    @property
    def model(self) -> Any: ...
    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]: ...
    def detokenize(self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False) -> bytes: ...
    def generate(self, tokens: Sequence[int], **sampling: Any) -> Iterator[int]: ...
    def token_bos(self) -> int: ...
    def token_eos(self) -> int: ...
    def n_ctx(self) -> int: ...
    def set_seed(self, seed: int) -> None: ...


class ChatHandler:
    """Chat handler for `Llama.create_chat_completion`, which returns `reasoning_content` and `tool_calls` in OpenAI's format.

    `template` defaults to the model's own chat template. `prepare` contains arguments of `ChatTemplate.prepare` for every request, e.g.
    `enable_thinking=False` or `tool_format="qwen3"`. `markers` is "encode" by default: markers in messages become ordinary tokens.
    """

    def __init__(self, template: ChatTemplate | None = None, **prepare: Any) -> None:
        self._template = template
        self._prepare = prepare

    def __call__(
        self,
        *,
        llama: Llama,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] | None = None,
        tool_choice: Any = None,
        response_format: Any = None,
        stream: bool = False,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.2,
        grammar: Any = None,
        model: str | None = None,
        **options: Any,
    ) -> CompletionBody | Iterator[ChunkBody]:
        """Return a chat completion. With `stream`, return an iterator of its chunks.

        A given `grammar` replaces the handler's own. Raises `RequestError` for a malformed request or an unsupported option. Raises
        `TemplateError` if the model has no template, or if the template rejects the conversation.
        """
        refused = [name for name in _REFUSED if options.get(name)]
        if refused:
            raise RequestError(f"{refused[0]}: not supported by this chat handler")
        template = self._template or _template_of(llama)
        form = _response_format(response_format)
        settings = {"markers": "encode", **self._prepare}
        turn = template.prepare(messages, tools=tools, tool_choice=tool_choice, response_format=form, **settings)
        if seed is not None:
            llama.set_seed(seed)
        sampling = {name: options[name] for name in _SAMPLING if name in options}
        # The caller's grammar takes precedence. Don't combine two grammars: there might be no token that both allow.
        sampling |= {"temp": temperature, "grammar": grammar or _grammar(turn)}
        own_stops = [stop] if isinstance(stop, str) else list(stop or ())
        stops = (*turn.stop, *own_stops)
        answer = _Answer(llama=llama, turn=turn, sampling=sampling, stop=stops, limit=max_tokens or 0)
        name = model or str(llama.metadata.get("general.name", ""))
        return answer.chunks(name) if stream else answer.completion(name)


@dataclass(slots=True, kw_only=True)
class _Answer:
    """State of one answer while it's being generated."""

    llama: Llama
    turn: Turn
    sampling: Mapping[str, Any]
    stop: tuple[str, ...]
    limit: int
    """Maximum number of tokens to generate. If the limit isn't positive, the rest of the context is available."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ended: bool = field(default=False, init=False)

    def completion(self, model: str) -> CompletionBody:
        parser = self.turn.parser()
        reader = ChunkParser(parser, self._special(parser))
        for text, tokens in self.texts():
            reader.feed(text, tokens)
        parser.finish(self.reason)
        usage = Usage(prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens)
        return Completion(model=model).body([parser.message], reasons=[self.reason], usage=usage)

    def chunks(self, model: str) -> Iterator[ChunkBody]:
        parser, choice = self.turn.parser(), Completion(model=model).choice()
        reader = ChunkParser(parser, self._special(parser))
        for text, tokens in self.texts():
            yield from choice.chunks(reader.feed(text, tokens))
        yield from choice.chunks(parser.finish(self.reason))
        yield from choice.end(parser.message, self.reason)

    @property
    def reason(self) -> str:
        """The finish reason."""
        return "stop" if self.ended else "length"

    def _special(self, parser: Parser) -> dict[int, str]:
        """Return the markers of the format that are single tokens of the model, by id."""
        ids = {text: self.llama.tokenize(text.encode(), add_bos=False, special=True) for text in parser._quoter.tokens}
        return {tokens[0]: text for text, tokens in ids.items() if len(tokens) == 1}

    def texts(self) -> Iterator[tuple[str, list[int]]]:
        """Yield generated text up to a stop string, and new tokens. Text that may be the start of a stop string is held back."""
        held = ""
        for piece, tokens in self._pieces():
            held += piece
            if found := [held.index(stop) for stop in self.stop if stop in held]:
                self.ended = True
                yield held[: min(found)], tokens
                return
            # `Hi<|e` is yielded as `Hi`, because the rest may be the start of `<|end|>`.
            cut = len(held) - _begun_stop(held, self.stop)
            yield held[:cut], tokens
            held = held[cut:]
        yield held, []

    def _pieces(self) -> Iterator[tuple[str, list[int]]]:
        """Yield decoded text and its tokens up to an end-of-generation token. A model may define several end-of-generation tokens."""
        library = importlib.import_module("llama_cpp")
        vocabulary, prompt = library.llama_model_get_vocab(self.llama.model), self._prompt()
        self.prompt_tokens = len(prompt)
        room = max(0, self.llama.n_ctx() - len(prompt))
        limit = min(self.limit, room) if self.limit > 0 else room
        # A token may be part of a character, so decode incrementally. For example, `😀` may be four tokens of one byte each.
        decoder, before = codecs.getincrementaldecoder("utf-8")("replace"), prompt[-1:]
        for token in islice(self.llama.generate(prompt, **self.sampling), limit):
            if library.llama_vocab_is_eog(vocabulary, token):
                self.ended = True
                break
            self.completion_tokens += 1
            # The previous token determines whether this one starts with a space.
            yield decoder.decode(self.llama.detokenize([token], prev_tokens=before, special=True)), [token]
            before = [token]
        yield decoder.decode(b"", final=True), []

    def _prompt(self) -> list[int]:
        """Return the prompt's tokens. The beginning-of-sequence token is added unless the template has already written it."""
        bos = _text_of(self.llama, self.llama.token_bos())
        written = bool(bos) and self.turn.prompt.startswith(bos)
        if self.turn._has_markers:
            lead = [] if written else self.llama.tokenize(b"", add_bos=True, special=True)
            return [*lead, *self.turn.encode(_encoder(self.llama))]
        return self.llama.tokenize(self.turn.prompt.encode(), add_bos=not written, special=True)


@kept(1_000_000)
def _encoder(llama: Any) -> PromptEncoder:
    """Return the encoder for a model's prompts. Listing the special tokens of a vocabulary takes a while."""
    return PromptEncoder(llama)


def _begun_stop(text: str, stops: Sequence[str]) -> int:
    """Return the number of characters at the end of a string that may start a stop string, e.g. 3 for `Hi<|e` and `<|end|>`."""
    lengths = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return max(lengths, default=0)


def _response_format(given: Any) -> Any:
    """Return a response format in OpenAI's form. llama-cpp-python puts the schema next to the type `json_object`."""
    if isinstance(given, Mapping) and given.get("type") == "json_object" and given.get("schema") is not None:
        return json_form(given["schema"])
    return given


def _template_of(llama: Llama) -> ChatTemplate:
    source = llama.metadata.get("tokenizer.chat_template")
    if not source:
        raise TemplateError("the model file has no tokenizer.chat_template; pass a ChatTemplate to the handler")
    return own_template(source, _text_of(llama, llama.token_bos()), _text_of(llama, llama.token_eos()))


def _text_of(llama: Llama, token: int) -> str:
    """Return a token's text, or "" if the id is negative, which means that the model lacks the token."""
    return llama.detokenize([token], special=True).decode("utf-8", "replace") if token >= 0 else ""


def _grammar(turn: Turn) -> Any:
    """Return a grammar for an answer that must be a call or JSON. Returns None for any other answer.

    Issues a `SchemaWarning` for strict tools if a call isn't required, because only required calls are constrained.
    """
    if not is_forced(turn.request):
        if turn.request._calls_allowed and any(tool.strict for tool in turn.request.tools or ()):
            warnings.warn('strict tools are enforced only with tool_choice="required"', SchemaWarning, stacklevel=3)
        return None
    return importlib.import_module("llama_cpp").LlamaGrammar.from_string(
        turn.constraint("llama.cpp").grammar, verbose=False
    )
