"""llama-cpp-python: a chat handler that renders prompts, and constrains and parses answers: `Llama(path, chat_handler=ChatHandler())`.

Strategy: tokens come from `Llama.generate` and are decoded with special tokens, because the library's own completions leave out the tokens
that start calls. A required call or a response format is constrained with GBNF from the first character. In a free answer, a call is
constrained from the special token that starts it.

Rules: llama.cpp crashes if a grammar gets a token that it doesn't allow. So each token is checked first, and triggers are matched here,
only at special tokens. llama.cpp's own lazy grammars would process the complete token in which a trigger ends.
"""

from __future__ import annotations

import codecs
import ctypes
import importlib
import math
import re
import time
import uuid
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from unrender import ChatTemplate, Event, GrammarError, Parser, RequestError, TemplateError, Turn
from unrender.dialects.constraint import Constraint
from unrender.errors import SchemaWarning
from unrender.integrations.rendered import is_forced, json_form, own_template
from unrender.openai import deltas
from unrender.types import Trigger

__all__ = ["ChatHandler"]

_SAMPLING = (
    "top_p", "top_k", "min_p", "typical_p", "presence_penalty", "frequency_penalty", "repeat_penalty", "tfs_z",
    "mirostat_mode", "mirostat_tau", "mirostat_eta", "logits_processor",
)  # fmt: skip
"""Settings that are passed unchanged to `Llama.generate`."""
_REFUSED = ("functions", "function_call", "logit_bias", "logprobs", "top_logprobs")
"""Settings that the handler doesn't support and rejects."""


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

    `template` defaults to the model's own. `prepare` contains arguments of `ChatTemplate.prepare` for every request, e.g.
    `enable_thinking=False` or `tool_format="qwen3"`.
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
    ) -> dict[str, Any] | Iterator[dict[str, Any]]:
        """Return a chat completion. With `stream`, return an iterator of its chunks.

        A `grammar` replaces the handler's own. Raises `RequestError` for a malformed request or an unsupported option. Raises
        `TemplateError` if the model has no template, or if the template rejects the conversation.
        """
        refused = [name for name in _REFUSED if options.get(name)]
        if refused:
            raise RequestError(f"{refused[0]}: not supported by this chat handler")
        template = self._template or _template_of(llama)
        form = _response_format(response_format)
        turn = template.prepare(messages, tools=tools, tool_choice=tool_choice, response_format=form, **self._prepare)
        if seed is not None:
            llama.set_seed(seed)
        sampling = {name: options[name] for name in _SAMPLING if name in options}
        # The caller's grammar takes precedence. If two grammars were combined, there might be no token that both allow.
        sampling |= {"temp": temperature, "grammar": grammar or _grammar(turn)}
        calls = None if grammar else _calls(llama, turn)
        if calls:
            sampling["logits_processor"] = [*(sampling.get("logits_processor") or ()), calls]
        own_stops = [stop] if isinstance(stop, str) else list(stop or ())
        stops = (*turn.stop, *own_stops)
        answer = _Answer(llama=llama, turn=turn, sampling=sampling, calls=calls, stop=stops, limit=max_tokens or 0)
        name = model or str(llama.metadata.get("general.name", ""))
        return answer.chunks(name) if stream else answer.completion(name)


@dataclass(slots=True, kw_only=True)
class _Answer:
    """One answer while it's being generated."""

    llama: Llama
    turn: Turn
    sampling: Mapping[str, Any]
    calls: _Calls | None
    stop: tuple[str, ...]
    limit: int
    """Maximum number of tokens to generate. If it isn't positive, the rest of the context is available."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ended: bool = field(default=False, init=False)

    def completion(self, model: str) -> dict[str, Any]:
        parser = self.turn.parser()
        for _ in self._read(parser):
            pass
        message, read, written = parser.message, self.prompt_tokens, self.completion_tokens
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        reason = message.finish_reason(self.reason)
        choice = {"index": 0, "message": message.to_openai(), "logprobs": None, "finish_reason": reason}
        return _envelope("chat.completion", model) | {"choices": [choice], "usage": usage}

    def chunks(self, model: str) -> Iterator[dict[str, Any]]:
        frame = _envelope("chat.completion.chunk", model)
        parser = self.turn.parser()
        yield frame | _choice({"role": "assistant"}, None)
        for events in self._read(parser):
            yield from (frame | _choice(delta, None) for delta in deltas(events))
        yield frame | _choice({}, parser.message.finish_reason(self.reason))

    def _read(self, parser: Parser) -> Iterator[list[Event]]:
        for text in self.texts():
            yield parser.feed(text)
        yield parser.finish(self.reason)

    @property
    def reason(self) -> str:
        """The finish reason."""
        return "stop" if self.ended else "length"

    def texts(self) -> Iterator[str]:
        """Yield generated text up to a stop string. Text that may be the start of a stop string is held back."""
        held = ""
        for piece in self._pieces():
            held += piece
            if found := [held.index(stop) for stop in self.stop if stop in held]:
                self.ended = True
                yield held[: min(found)]
                return
            # `Hi<|e` is yielded as `Hi`, because the rest may be the start of `<|end|>`.
            cut = len(held) - _begun_stop(held, self.stop)
            yield held[:cut]
            held = held[cut:]
        yield held

    def _pieces(self) -> Iterator[str]:
        prompt = self._prompt()
        self.prompt_tokens = len(prompt)
        room = max(0, self.llama.n_ctx() - len(prompt))
        # A token may be part of a character, so decode incrementally. For example, `😀` may be four tokens of one byte each.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        tokens = self.llama.generate(prompt, **self.sampling)
        for token, piece in self._until_end(islice(tokens, min(self.limit, room) if self.limit > 0 else room), prompt):
            self.completion_tokens += 1
            text = decoder.decode(piece)
            if self.calls:
                self.calls.accept(token, text)
            yield text
        yield decoder.decode(b"", final=True)

    def _until_end(self, tokens: Iterator[int], prompt: list[int]) -> Iterator[tuple[int, bytes]]:
        """Yield tokens and their bytes up to an end-of-generation token. A model may define several such tokens."""
        library = importlib.import_module("llama_cpp")
        vocabulary, before = library.llama_model_get_vocab(self.llama.model), prompt[-1:]
        for token in tokens:
            if library.llama_vocab_is_eog(vocabulary, token):
                self.ended = True
                return
            # The previous token determines whether this one starts with a space.
            yield token, self.llama.detokenize([token], prev_tokens=before, special=True)
            before = [token]

    def _prompt(self) -> list[int]:
        """Return the prompt's tokens. The beginning-of-sequence token is added unless the template has already written it."""
        bos = _text_of(self.llama, self.llama.token_bos())
        written = bool(bos) and self.turn.prompt.startswith(bos)
        return self.llama.tokenize(self.turn.prompt.encode(), add_bos=not written, special=True)


def _begun_stop(text: str, stops: Sequence[str]) -> int:
    """Return the number of characters at the end of a string that may start a stop string, e.g. 3 for `Hi<|e` and `<|end|>`."""
    lengths = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return max(lengths, default=0)


class _Calls:
    """Logits processor that constrains the calls in a free answer. Pass every generated token to `accept`.

    It becomes active at a special token that starts a call. Calls that start with ordinary text aren't constrained. If a call can't be
    constrained, it issues a `SchemaWarning`.
    """

    def __init__(self, llama: Llama, constraint: Constraint) -> None:
        self._llama, self._constraint = llama, constraint
        self._text: list[str] = []
        self._grammar: _Grammar | None = None

    def __call__(self, _: Any, logits: Any) -> Any:
        return logits if self._grammar is None else self._grammar.masked(logits)

    def accept(self, token: int, text: str) -> None:
        """Add a generated token and its text."""
        if self._grammar is not None:
            self._grammar.accept(token)
            return
        self._text.append(text)
        # Ignore ordinary text. If a trigger ended inside a token, the grammar would get the complete token.
        constraint = self._constraint
        if text in constraint.preserved_tokens and _begins_call("".join(self._text), text, constraint.triggers):
            self._wake(token)

    def _wake(self, token: int) -> None:
        try:
            grammar = _Grammar(self._llama, self._constraint.grammar)
        except GrammarError as error:
            warnings.warn(f"a call isn't constrained: {error}", SchemaWarning, stacklevel=2)
            return
        # Don't activate a grammar that rejects this token, e.g. because calls are forbidden. llama.cpp would crash.
        self._grammar = grammar if grammar.accept(token) else None


def _calls(llama: Llama, turn: Turn) -> _Calls | None:
    """Return a processor that constrains the calls of an answer. Returns None if there are no calls or they can't be constrained."""
    if is_forced(turn.request) or not turn.request._calls_allowed:
        return None
    try:
        constraint = turn.constraint("llama.cpp")
    except GrammarError as error:
        warnings.warn(f"calls aren't constrained: {error}", SchemaWarning, stacklevel=3)
        return None
    return _Calls(llama, constraint) if constraint.triggers else None


def _begins_call(answer: str, token: str, triggers: Sequence[Trigger]) -> bool:
    """Return True if the last token of the answer triggers the start of a call."""
    for trigger in triggers:
        if trigger.kind == "word" and trigger.value == token:
            return True
        # `…</think>\s*(<call>)` matches up to the end of `Hm.</think>\n<call>`, and its group must be the token.
        met = re.match(trigger.value, answer) if trigger.kind == "pattern" else None
        if met and met.end() == len(answer) and met[1] == token:
            return True
    return False


class _Grammar:
    """A grammar sampler of llama.cpp, called directly."""

    def __init__(self, llama: Llama, text: str) -> None:
        library, numpy = importlib.import_module("llama_cpp"), importlib.import_module("numpy")
        vocabulary = library.llama_model_get_vocab(llama.model)
        self._library = library
        self._tokens = numpy.zeros(library.llama_vocab_n_tokens(vocabulary), dtype=library.llama_token_data)
        self._tokens["id"] = numpy.arange(len(self._tokens))
        self._sampler = library.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
        if not self._sampler:
            raise GrammarError("llama.cpp rejects the grammar of the calls")
        # Python doesn't free the C sampler. Generation may be abandoned at any point, so `finally` isn't enough.
        weakref.finalize(self, library.llama_sampler_free, self._sampler)

    def masked(self, logits: Any) -> Any:
        """Return the logits. The logits of tokens that the grammar doesn't allow are minus infinity."""
        self._tokens["logit"] = logits
        self._apply(self._tokens)
        return self._tokens["logit"]

    def accept(self, token: int) -> bool:
        """Add a token if the grammar allows it. Returns True if the token was added."""
        # llama.cpp crashes if a sampler accepts a token that its grammar doesn't allow. So the grammar is first applied to a copy of the
        # token's data.
        asked = self._tokens[token : token + 1].copy()
        asked["logit"] = 0
        self._apply(asked)
        if allowed := math.isfinite(asked["logit"][0]):
            self._library.llama_sampler_accept(self._sampler, token)
        return allowed

    def _apply(self, tokens: Any) -> None:
        data = ctypes.cast(tokens.ctypes.data, self._library.llama_token_data_p)
        array = self._library.llama_token_data_array(data=data, size=len(tokens), selected=-1, sorted=False)
        self._library.llama_sampler_apply(self._sampler, ctypes.byref(array))


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
    """Return a grammar for an answer that is constrained from its first character, or None for a free answer."""
    if not is_forced(turn.request):
        return None
    return importlib.import_module("llama_cpp").LlamaGrammar.from_string(
        turn.constraint("llama.cpp").grammar, verbose=False
    )


def _envelope(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _choice(delta: Mapping[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}]}
