"""llama-cpp-python: a chat handler that renders prompts, and constrains and parses answers: `Llama(path, chat_handler=ChatHandler())`.

Strategy: tokens come from `Llama.generate` one by one and are written with their special tokens, since the library's own
completions leave out the very tokens that open calls. What is due from the first character on (a required or named call, a
response format) is constrained with GBNF. A free answer is held from the special token on with which a call begins.

Rules: llama.cpp ends the process when a grammar is given a token that it does not allow. So it is asked first, and triggers are
looked for here, at special tokens alone: its own lazy grammars would be given whatever token a trigger ends in.
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
"""Settings that are passed to `Llama.generate` under the same name."""
_REFUSED = ("functions", "function_call", "logit_bias", "logprobs", "top_logprobs")
"""Settings that the handler doesn't support and rejects."""


class Llama(Protocol):
    """The part of `llama_cpp.Llama` that is used here."""

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

    `template` defaults to the model's own. `prepare` holds arguments of `ChatTemplate.prepare` for every request, e.g.
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
        """Return a chat completion or, with `stream`, its chunks.

        A `grammar` given wins over the handler's own. Raises `RequestError` for a malformed request and for options that
        the handler does not support, `TemplateError` when the model has no template or the template refuses.
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
        # The caller's grammar wins: two at once could leave no token that both allow.
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
    """One answer as it is generated."""

    llama: Llama
    turn: Turn
    sampling: Mapping[str, Any]
    calls: _Calls | None
    stop: tuple[str, ...]
    limit: int
    """The most tokens to generate; all that fit when it is not positive."""
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
        """Why generation ended."""
        return "stop" if self.ended else "length"

    def texts(self) -> Iterator[str]:
        """Generate, and yield the text up to a stop text; what might become one is held back."""
        held = ""
        for piece in self._pieces():
            held += piece
            if found := [held.index(stop) for stop in self.stop if stop in held]:
                self.ended = True
                yield held[: min(found)]
                return
            # `Hi<|e` is said as `Hi`: the rest may be the beginning of `<|end|>`.
            cut = len(held) - _begun_stop(held, self.stop)
            yield held[:cut]
            held = held[cut:]
        yield held

    def _pieces(self) -> Iterator[str]:
        prompt = self._prompt()
        self.prompt_tokens = len(prompt)
        room = max(0, self.llama.n_ctx() - len(prompt))
        # A token may be part of a character: `😀` comes as four tokens of a byte each.
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
        """Yield tokens with their bytes, up to one that ends generation: models have more than one of these."""
        library = importlib.import_module("llama_cpp")
        vocabulary, before = library.llama_model_get_vocab(self.llama.model), prompt[-1:]
        for token in tokens:
            if library.llama_vocab_is_eog(vocabulary, token):
                self.ended = True
                return
            # Whether a word's first space is written depends on the token before it.
            yield token, self.llama.detokenize([token], prev_tokens=before, special=True)
            before = [token]

    def _prompt(self) -> list[int]:
        """Return the prompt's tokens; the beginning-of-sequence token is added where the template did not write it."""
        bos = _text_of(self.llama, self.llama.token_bos())
        written = bool(bos) and self.turn.prompt.startswith(bos)
        return self.llama.tokenize(self.turn.prompt.encode(), add_bos=not written, special=True)


def _begun_stop(text: str, stops: Sequence[str]) -> int:
    """Return how many characters at the end of a text may be the beginning of a stop, as `<|e` of `<|end|>`."""
    lengths = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return max(lengths, default=0)


class _Calls:
    """Holds calls in a free answer to their grammar: a logits processor that is told of every token.

    It wakes at a special token with which a call begins. A call that begins with ordinary text is not held, and one that cannot
    be held is a `SchemaWarning`.
    """

    def __init__(self, llama: Llama, constraint: Constraint) -> None:
        self._llama, self._constraint = llama, constraint
        self._text: list[str] = []
        self._grammar: _Grammar | None = None

    def __call__(self, _: Any, logits: Any) -> Any:
        return logits if self._grammar is None else self._grammar.masked(logits)

    def accept(self, token: int, text: str) -> None:
        """Follow the answer by one token, of which `text` is what it adds."""
        if self._grammar is not None:
            self._grammar.accept(token)
            return
        self._text.append(text)
        # Ordinary text is not looked at: a trigger may end in the middle of a token, and the grammar would be given all of it.
        constraint = self._constraint
        if text in constraint.preserved_tokens and _begins_call("".join(self._text), text, constraint.triggers):
            self._wake(token)

    def _wake(self, token: int) -> None:
        try:
            grammar = _Grammar(self._llama, self._constraint.grammar)
        except GrammarError as error:
            warnings.warn(f"a call is not held to its grammar: {error}", SchemaWarning, stacklevel=2)
            return
        # A grammar that does not begin with this token (a call is forbidden here) would end the process: it sleeps on.
        self._grammar = grammar if grammar.accept(token) else None


def _calls(llama: Llama, turn: Turn) -> _Calls | None:
    """Return what holds the calls of an answer to their grammar; None where the answer has none, or no grammar can be written."""
    if is_forced(turn.request) or not turn.request._calls_allowed:
        return None
    try:
        constraint = turn.constraint("llama.cpp")
    except GrammarError as error:
        warnings.warn(f"calls are not held to a grammar: {error}", SchemaWarning, stacklevel=3)
        return None
    return _Calls(llama, constraint) if constraint.triggers else None


def _begins_call(answer: str, token: str, triggers: Sequence[Trigger]) -> bool:
    """Return whether the answer's last token is a trigger, so that a call starts with this token."""
    for trigger in triggers:
        if trigger.kind == "word" and trigger.value == token:
            return True
        # `…</think>\s*(<call>)` is met at the end of `Hm.</think>\n<call>`, and its group is the token.
        met = re.match(trigger.value, answer) if trigger.kind == "pattern" else None
        if met and met.end() == len(answer) and met[1] == token:
            return True
    return False


class _Grammar:
    """A grammar of llama.cpp's, used by itself."""

    def __init__(self, llama: Llama, text: str) -> None:
        library, numpy = importlib.import_module("llama_cpp"), importlib.import_module("numpy")
        vocabulary = library.llama_model_get_vocab(llama.model)
        self._library = library
        self._tokens = numpy.zeros(library.llama_vocab_n_tokens(vocabulary), dtype=library.llama_token_data)
        self._tokens["id"] = numpy.arange(len(self._tokens))
        self._sampler = library.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
        if not self._sampler:
            raise GrammarError("llama.cpp rejects the grammar of the calls")
        # The sampler is C's: Python does not free it. An answer may be left in its middle, so no `finally` would do.
        weakref.finalize(self, library.llama_sampler_free, self._sampler)

    def masked(self, logits: Any) -> Any:
        """Return the logits, minus infinity for tokens that the grammar does not allow."""
        self._tokens["logit"] = logits
        self._apply(self._tokens)
        return self._tokens["logit"]

    def accept(self, token: int) -> bool:
        """Follow the grammar by a token, and return whether it allows that."""
        # llama.cpp ends the process when a sampler is given a token that its grammar does not allow: so a copy of the token's row
        # is masked first, and only what stays finite is given.
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
    """Return OpenAI's form of a response format: the library's own has a schema beside the type `json_object`."""
    if isinstance(given, Mapping) and given.get("type") == "json_object" and given.get("schema") is not None:
        return json_form(given["schema"])
    return given


def _template_of(llama: Llama) -> ChatTemplate:
    source = llama.metadata.get("tokenizer.chat_template")
    if not source:
        raise TemplateError("the model file has no tokenizer.chat_template; give the handler a ChatTemplate")
    return own_template(source, _text_of(llama, llama.token_bos()), _text_of(llama, llama.token_eos()))


def _text_of(llama: Llama, token: int) -> str:
    """Return a token's text; models without the token have a negative number in its place."""
    return llama.detokenize([token], special=True).decode("utf-8", "replace") if token >= 0 else ""


def _grammar(turn: Turn) -> Any:
    """Return a grammar for an answer that is due in a form from its first character on."""
    if not is_forced(turn.request):
        return None
    return importlib.import_module("llama_cpp").LlamaGrammar.from_string(
        turn.constraint("llama.cpp").grammar, verbose=False
    )


def _envelope(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _choice(delta: Mapping[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}]}
