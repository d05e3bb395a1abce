"""llama-cpp-python: a chat handler that renders, constrains and reads answers, `Llama(path, chat_handler=ChatHandler())`.

Strategy: tokens come from `Llama.generate` one by one and are written with their special tokens, since the library's own
completions leave out the very tokens that open calls. What is due from the first character on (a required or named call, a
response format) is constrained with GBNF; a free answer is not, as the library binds no lazy grammars.

Tested with stand-ins for the library's interface (as of 0.3.36), not with a model.
"""

from __future__ import annotations

import codecs
import importlib
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol

from unrender.chat_template import ChatTemplate
from unrender.errors import MessageError, TemplateError
from unrender.messages import ToolChoice
from unrender.parsing.deltas import deltas
from unrender.parsing.events import Event
from unrender.parsing.finder import Finder
from unrender.turn import Turn

_SAMPLING = (
    "top_p", "top_k", "min_p", "typical_p", "presence_penalty", "frequency_penalty", "repeat_penalty", "tfs_z",
    "mirostat_mode", "mirostat_tau", "mirostat_eta", "logits_processor",
)  # fmt: skip
"""What is handed on to `Llama.generate` under the same name."""
_REFUSED = ("functions", "function_call", "logit_bias", "logprobs", "top_logprobs")
"""What the handler cannot do, and does not pretend to."""


class Llama(Protocol):
    """The part of `llama_cpp.Llama` that is used here."""

    metadata: Mapping[str, str]

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]: ...
    def detokenize(self, tokens: list[int], prev_tokens: list[int] | None = None, special: bool = False) -> bytes: ...
    def generate(self, tokens: Sequence[int], **sampling: Any) -> Iterator[int]: ...
    def token_bos(self) -> int: ...
    def token_eos(self) -> int: ...
    def n_ctx(self) -> int: ...
    def set_seed(self, seed: int) -> None: ...


class ChatHandler:
    """Answers `Llama.create_chat_completion`, with `reasoning_content` and `tool_calls` in OpenAI's form.

    `template` is the model's own unless given. `prepare` holds further arguments of `ChatTemplate.prepare`, the same for
    every request, e.g. `enable_thinking=False` or `tool_format="qwen3"`.
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

        A `grammar` given wins over the handler's own. Raises `MessageError` for a malformed request and for options that
        the handler does not support, `TemplateError` when the model has no template or the template refuses.
        """
        refused = [name for name in _REFUSED if options.get(name)]
        if refused:
            raise MessageError(f"{refused[0]}: not supported by this chat handler")
        template = self._template or _template_of(llama)
        turn = template.prepare(
            messages, tools=tools, tool_choice=tool_choice, response_format=response_format, **self._prepare
        )
        if seed is not None:
            llama.set_seed(seed)
        sampling = {name: options[name] for name in _SAMPLING if name in options}
        sampling |= {"temp": temperature, "grammar": grammar or _grammar(turn)}
        own_stops = [stop] if isinstance(stop, str) else list(stop or ())
        answer = _Answer(
            llama=llama, turn=turn, sampling=sampling, stop=(*turn.stop, *own_stops), limit=max_tokens or 0
        )
        name = model or str(llama.metadata.get("general.name", ""))
        return answer.chunks(name) if stream else answer.completion(name)


@dataclass(slots=True, kw_only=True)
class _Answer:
    """One answer as it is generated."""

    llama: Llama
    turn: Turn
    sampling: Mapping[str, Any]
    stop: tuple[str, ...]
    limit: int
    """The most tokens to generate; all that fit when it is not positive."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: str = ""
    ended: bool = field(default=False, init=False)

    def completion(self, model: str) -> dict[str, Any]:
        parser = self.turn.parser()
        for text in self.texts():
            parser.feed(text)
        parser.finish(self.reason)
        message = parser.message
        usage = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }
        choice = {
            "index": 0,
            "message": message.to_openai(),
            "logprobs": None,
            "finish_reason": message.finish_reason(self.reason),
        }
        return _envelope("chat.completion", model) | {"choices": [choice], "usage": usage}

    def chunks(self, model: str) -> Iterator[dict[str, Any]]:
        frame = _envelope("chat.completion.chunk", model)
        parser = self.turn.parser()
        yield frame | _choice({"role": "assistant"}, None)
        for events in self._read(parser):
            yield from (frame | _choice(delta, None) for delta in deltas(events))
        yield frame | _choice({}, parser.message.finish_reason(self.reason))

    def _read(self, parser: Any) -> Iterator[list[Event]]:
        for text in self.texts():
            yield parser.feed(text)
        yield parser.finish(self.reason)

    @property
    def reason(self) -> str:
        """Why generation ended."""
        return "stop" if self.ended else "length"

    def texts(self) -> Iterator[str]:
        """Generate, and yield the text up to a stop text; what might become one is held back."""
        finder, held = Finder(self.stop), ""
        for piece in self._pieces():
            held += piece
            at, stop = finder.find(held, 0)
            if stop:
                self.ended = True
                yield held[:at]
                return
            cut = finder.undecided_from(held, 0)
            yield held[:cut]
            held = held[cut:]
        yield held

    def _pieces(self) -> Iterator[str]:
        llama, prompt = self.llama, self._prompt()
        self.prompt_tokens = len(prompt)
        room = max(0, llama.n_ctx() - len(prompt))
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        before = prompt[-1:]
        for token in islice(llama.generate(prompt, **self.sampling), min(self.limit, room) if self.limit > 0 else room):
            if token == llama.token_eos():
                self.ended = True
                break
            self.completion_tokens += 1
            yield decoder.decode(llama.detokenize([token], prev_tokens=before, special=True))
            before = [token]
        yield decoder.decode(b"", final=True)

    def _prompt(self) -> list[int]:
        """Return the prompt's tokens; the beginning-of-sequence token is added where the template did not write it."""
        bos = _text_of(self.llama, self.llama.token_bos())
        written = bool(bos) and self.turn.prompt.startswith(bos)
        return self.llama.tokenize(self.turn.prompt.encode(), add_bos=not written, special=True)


def _template_of(llama: Llama) -> ChatTemplate:
    source = llama.metadata.get("tokenizer.chat_template")
    if not source:
        raise TemplateError("the model file has no tokenizer.chat_template; give the handler a ChatTemplate")
    return _template(source, _text_of(llama, llama.token_bos()), _text_of(llama, llama.token_eos()))


@lru_cache(maxsize=16)
def _template(source: str, bos: str, eos: str) -> ChatTemplate:
    return ChatTemplate.from_string(source, bos_token=bos, eos_token=eos)


def _text_of(llama: Llama, token: int) -> str:
    """Return a token's text; models without the token have a negative number in its place."""
    return llama.detokenize([token], special=True).decode("utf-8", "replace") if token >= 0 else ""


def _grammar(turn: Turn) -> Any:
    """Return a grammar for an answer that is due in a form from its first character on."""
    request = turn.request
    if request.tool_choice not in (ToolChoice.REQUIRED, ToolChoice.NAMED) and request.response_schema is None:
        return None
    return importlib.import_module("llama_cpp").LlamaGrammar.from_string(turn.gbnf(), verbose=False)


def _envelope(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _choice(delta: Mapping[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}]}
