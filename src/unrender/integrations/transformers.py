"""transformers: loads templates from tokenizers, constrains `generate`, and parses its output.

>>> from unrender import ChatTemplate
>>> turn = ChatTemplate.from_string("{{ messages[-1].content }}|").prepare([{"role": "user", "content": "Hello"}])
>>> class Tokenizer:  # any tokenizer of the library will do
...     pad_token_id = 0
...     def decode(self, ids, **options):
...         return "".join(map(chr, ids))
>>> read_ids(turn, Tokenizer(), [72, 105, 0, 0]).content
'Hi'
"""

from __future__ import annotations

import importlib
import importlib.util
import queue
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, cast

from unrender import ChatTemplate, Event, GrammarError, Message, Parser, RequestError, TemplateError, Turn
from unrender.cache import kept
from unrender.dialects import Engine
from unrender.errors import TokenizerError
from unrender.prompt import Detokenizer, exact_options
from unrender.rendering.loading import LoadedTemplates
from unrender.signatures import checked
from unrender.token_ids import TokenParser

__all__ = ["chat_template", "logits_processor", "read_ids", "stopping_criteria", "stream", "streamer"]


class Matcher(Protocol):
    """Tracks one answer token by token, and computes the tokens that the grammar allows next."""

    def bits(self) -> Any:
        """Return the allowed next tokens as a bit mask in a tensor of 32-bit integers."""
        ...

    def take(self, token: int) -> bool:
        """Add the chosen token. Return False if the answer has ended, or if the grammar doesn't allow the token.

        No method may be called after that.
        """
        ...


@kept(8_000_000)
def matcher_factory(library: str, tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    """Return a function that creates a matcher from the text of a grammar.

    `tokenizer` is a fast tokenizer of transformers, and `size` is the size of the model's vocabulary. The grammar is written in the
    library's dialect. A structural tag is written as JSON. If the library rejects a grammar, the returned function raises `ValueError` or
    `RuntimeError` with the library's message.
    """
    return _LIBRARIES[library](tokenizer, max(size, len(tokenizer)))


def masked_scores(matcher: Matcher, scores: Any) -> Any:
    """Return the scores, with minus infinity for every token that isn't allowed next."""
    torch, bits, size = importlib.import_module("torch"), matcher.bits().to(scores.device), scores.shape[-1]
    # Each word has 32 bits: bit 0 of word 0 represents token 0, and bit 0 of word 1 represents token 32.
    flags = (bits[:, None] >> torch.arange(32, device=bits.device, dtype=bits.dtype)) & 1
    flags = flags.flatten()[:size].bool()
    # Tokens for which the mask has no bit aren't allowed.
    flags = torch.nn.functional.pad(flags, (0, size - flags.shape[0]))
    return scores.masked_fill(~flags, -float("inf"))


class _Llguidance:
    """Matcher of llguidance."""

    def __init__(self, matcher: Any, torch: Any, end: int) -> None:
        self._matcher = matcher
        self._torch = torch
        self._end = end
        """Token that ends an answer. The end is detected here, because the library's own matcher stops as soon as no other token is
        allowed.
        """

    def bits(self) -> Any:
        return self._torch.frombuffer(bytearray(self._matcher.compute_bitmask()), dtype=self._torch.int32)

    def take(self, token: int) -> bool:
        return bool(self._matcher.consume_token(token)) and token != self._end


def _llguidance(tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    library, torch = importlib.import_module("llguidance"), importlib.import_module("torch")
    words = library.LLTokenizer(library.TokenizerWrapper(_Words(tokenizer, size)))

    def matcher(text: str) -> Matcher:
        compiled = library.LLMatcher(words, library.LLMatcher.grammar_from_lark(text), log_level=0)
        if compiled.is_error():
            raise ValueError(compiled.get_error())
        return _Llguidance(compiled, torch, tokenizer.eos_token_id)

    return matcher


class _Words:
    """Tokenizer wrapper for llguidance that treats markers as plain text, because literals in grammars don't match special tokens."""

    def __init__(self, tokenizer: Any, size: int) -> None:
        plain = importlib.import_module("llguidance.hf").from_tokenizer(tokenizer, n_vocab=size)
        self.eos_token_id = tokenizer.eos_token_id
        self.bos_token_id = None
        self.special_token_ids = [tokenizer.eos_token_id]
        self.tokens = [plain.decode_bytes([token]) for token in range(size)]
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids


class _Xgrammar:
    """Matcher of xgrammar."""

    def __init__(self, matcher: Any, words: Any) -> None:
        self._matcher = matcher
        self._words = words

    def bits(self) -> Any:
        self._matcher.fill_next_token_bitmask(self._words)
        return self._words[0]

    def take(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token)) and not self._matcher.is_terminated()


def _xgrammar(tokenizer: Any, size: int) -> Callable[[str], Matcher]:
    library = importlib.import_module("xgrammar")
    compiler = library.GrammarCompiler(library.TokenizerInfo.from_huggingface(tokenizer, vocab_size=size))

    def matcher(text: str) -> Matcher:
        compiled = compiler.compile_grammar(library.Grammar.from_structural_tag(text))
        return _Xgrammar(library.GrammarMatcher(compiled), library.allocate_token_bitmask(1, size))

    return matcher


_LIBRARIES: Mapping[str, Callable[[Any, int], Callable[[str], Matcher]]] = {
    "llguidance": _llguidance,
    "xgrammar": _xgrammar,
}
"""Supported libraries. The first installed one is preferred."""


_PROMPT = 20
"""Minimum length of a prompt that an answer doesn't repeat by chance, and maximum length of what a tokenizer adds before it."""


class Decodes(Protocol):
    """The attributes of a tokenizer that are needed to decode output."""

    pad_token_id: int | None

    def decode(self, ids: Sequence[int], **options: Any) -> str: ...


class Tokenizer(Decodes, Protocol):
    """The attributes of a tokenizer that are needed to load its template. Tokens may be None."""

    name_or_path: str
    chat_template: str | Mapping[str, str] | None
    bos_token: Any
    eos_token: Any


@checked
def chat_template(tokenizer: Tokenizer | str | PathLike[str]) -> ChatTemplate:
    """Return the tokenizer's chat template with its tokens. Raises `TemplateError` if the tokenizer has no template.

    `tokenizer` may also be an argument of `ChatTemplate.from_pretrained`.
    """
    if isinstance(tokenizer, str | PathLike):
        return ChatTemplate.from_pretrained(tokenizer)
    sources = tokenizer.chat_template
    if not sources:
        raise TemplateError(f"{tokenizer.name_or_path or 'the tokenizer'}: expected a chat_template, found none")
    return ChatTemplate(
        LoadedTemplates(
            sources={"default": sources} if isinstance(sources, str) else dict(sources),
            bos_token=str(tokenizer.bos_token or ""),
            eos_token=str(tokenizer.eos_token or ""),
            special_tokens=_more_tokens(tokenizer),
            origin=tokenizer.name_or_path,
        )
    )


def _more_tokens(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return further tokens that the tokenizer passes to its template, e.g. `sep_token`, as strings."""
    named: Mapping[str, Any] = getattr(tokenizer, "special_tokens_map", None) or {}
    return {
        name: list(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in named.items()
        if value and name not in ("bos_token", "eos_token")
    }


@checked
def read_ids(turn: Turn, tokenizer: Decodes, ids: Sequence[int], *, finish_reason: str | None = None) -> Message:
    """Parse generated ids into a message.

    `ids` is one sequence from `generate`, without the prompt: `output[0][inputs["input_ids"].shape[1]:]`. Padding at the end is ignored.
    The text of a special token in ordinary tokens is text, as in "The tag `<think>` opens a thought". With `finish_reason="length"`, an
    unclosed call counts as truncated. Model output never raises an error, but ids that still contain the prompt raise `RequestError`.
    """
    ids = _unpadded(ids, tokenizer.pad_token_id)
    text = Detokenizer(tokenizer).text(ids)
    if len(turn.prompt) >= _PROMPT and turn.prompt in text[: len(turn.prompt) + _PROMPT]:  # A BOS may come first.
        raise RequestError("ids: expected an answer, found the prompt in front of it; use ids[prompt_length:]")
    reader = TokenParser(turn.parser(), tokenizer)
    reader.feed(ids)
    reader.finish(finish_reason)
    return reader.message


def _unpadded(ids: Sequence[int], pad: int | None) -> list[int]:
    kept = [int(token) for token in ids]
    # Many models pad with their end-of-turn token, so only tokens at the end are padding.
    while kept and kept[-1] == pad:
        kept.pop()
    return kept


@checked
def streamer(turn: Turn, tokenizer: Decodes, on_events: Callable[[list[Event]], None]) -> Any:
    """Return a streamer for `generate(streamer=…)` that calls `on_events` with the events as they become final.

    The streamer is a `TextStreamer` of transformers, so text arrives word by word. Its attribute `parser` contains the message so far. The
    streamer supports one sequence at a time, without beam search.
    """
    base = importlib.import_module("transformers").TextStreamer

    class EventStreamer(base):  # type: ignore[misc, valid-type]
        """Feeds the text of each token to a parser."""

        def __init__(self) -> None:
            super().__init__(tokenizer, skip_prompt=True, **exact_options(tokenizer))
            self.parser: Parser = turn.parser()

        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            """Handle text that transformers passes as final."""
            events = self.parser.feed(text) if text else []
            if stream_end:
                events += self.parser.finish()
            if events:
                on_events(events)

    return EventStreamer()


def logits_processor(turn: Turn, tokenizer: Any, *, library: str = "") -> Any:
    """Return a processor for `generate(logits_processor=[…])` that allows only the answers of the turn.

    `library` is "llguidance" or "xgrammar"; the default is the first one installed. Batches and `num_return_sequences` are supported, but
    beam search isn't. The tokenizer must be a fast one. Create a new processor for each call of `generate`. Raises `GrammarError` if
    neither library is installed, or if the answer can't be expressed as a grammar. `generate` raises this error if the library rejects the
    grammar.
    """
    chosen = library or next(filter(importlib.util.find_spec, _LIBRARIES), "")
    if chosen not in _LIBRARIES:
        raise GrammarError(
            f"library: expected one of {', '.join(_LIBRARIES)}, installed, found {chosen or 'neither'!r}"
        )
    grammar = turn.constraint(cast(Engine, chosen)).grammar
    return _Constrained(chosen, tokenizer, grammar)


@checked
def stopping_criteria(turn: Turn, tokenizer: Decodes) -> Any:
    """Return a criterion for `generate(stopping_criteria=[…])` that ends each sequence after one of `turn.stop`.

    The criterion is needed if a template's end-of-turn marker isn't the model's end-of-sequence token. Create a new criterion for each call
    of `generate`.
    """
    return _Ended(turn, tokenizer)


def stream(model: Any, tokenizer: Any, turn: Turn, **generation: Any) -> Generator[Event, None, None]:
    """Generate one answer, and yield its events as they become final. `generation` contains arguments of `model.generate`.

    The prompt is encoded by `Turn.encode`, and the answer ends at the turn's stop strings. Errors of `generate` are raised in the calling
    thread. Leaving the loop or calling `close` stops the model at its next token.

    Pass `logits_processor=[logits_processor(turn, tokenizer)]` to constrain the answer to what the turn allows.
    """
    # `generate` uses callbacks and returns only at the end. So run `generate` in a thread that passes events through a queue.
    told: queue.Queue[list[Event] | BaseException | None] = queue.Queue()
    unwanted = threading.Event()

    def cancelled(ids: Any, *_: Any, **__: Any) -> Any:
        return importlib.import_module("torch").full(ids.shape[:1], unwanted.is_set(), device=ids.device)

    def work() -> None:
        try:
            torch = importlib.import_module("torch")
            ids = torch.tensor([_encoded(turn, tokenizer)], device=model.device)
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            ends = [*generation.pop("stopping_criteria", ()), stopping_criteria(turn, tokenizer), cancelled]
            to_queue = streamer(turn, tokenizer, told.put)
            model.generate(**inputs, stopping_criteria=ends, streamer=to_queue, **generation)
            told.put(None)
        except BaseException as error:  # noqa: BLE001 - raised by the consumer
            told.put(error)

    thread = threading.Thread(target=work, name="unrender-generate", daemon=True)
    thread.start()
    try:
        while (found := told.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield from found
    finally:  # If the loop is left early, stop the model, which checks `cancelled` after each token.
        unwanted.set()
        thread.join()


def _encoded(turn: Turn, tokenizer: Any) -> list[int]:
    try:
        return turn.encode(tokenizer)
    except (RequestError, TokenizerError):  # The prompt was rendered elsewhere, or the tokenizer has no special tokens.
        ids: list[int] = tokenizer.encode(turn.prompt, add_special_tokens=False)
        return ids


class _Constrained:
    """Masks the scores of each sequence with its own matcher."""

    def __init__(self, library: str, tokenizer: Any, text: str) -> None:
        self._library, self._tokenizer, self._text = library, tokenizer, text
        self._rows: list[Matcher | None] = []
        """A matcher for each sequence; None if the sequence has ended."""
        self._length = 0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores. The scores of tokens that aren't allowed are minus infinity."""
        rows, length = input_ids.shape
        # If the length hasn't grown by exactly one, this is a new prompt, e.g. of another `generate` call.
        if not self._rows or length != self._length + 1:
            self._rows = self._begun(rows, scores.shape[-1])
        else:
            # The grammar doesn't cover the prompt, so pass only generated tokens to the matchers.
            taken = zip(self._rows, input_ids[:, -1].tolist(), strict=True)
            self._rows = [matcher if matcher and matcher.take(token) else None for matcher, token in taken]
        self._length = length
        paired = zip(self._rows, scores, strict=True)
        allowed = [row if matcher is None else masked_scores(matcher, row) for matcher, row in paired]
        return importlib.import_module("torch").stack(allowed)

    def _begun(self, rows: int, size: int) -> list[Matcher | None]:
        make = matcher_factory(self._library, self._tokenizer, size)
        try:
            return [make(self._text) for _ in range(rows)]
        except (ValueError, RuntimeError) as error:
            raise GrammarError(f"{self._library} rejects the grammar: {error!s:.300}") from error


class _Ended:
    """Checks each sequence for a stop string at its end."""

    def __init__(self, turn: Turn, tokenizer: Decodes) -> None:
        self._stops, self._decoded = turn.stop, Detokenizer(tokenizer)
        self._most = max((len(stop.encode()) for stop in turn.stop), default=0)
        """Maximum length of a stop string in tokens."""
        self._start = 0

    def __call__(self, input_ids: Any, _scores: Any, **_: Any) -> Any:
        """Return a flag for each sequence, which is True if the sequence has ended."""
        # At the first call, the sequence is the prompt and one token. Stop strings in the prompt are ignored.
        self._start = self._start or input_ids.shape[1] - 1
        late = input_ids[:, max(self._start, input_ids.shape[1] - self._most) :].tolist()
        return importlib.import_module("torch").tensor([*map(self._stopped, late)], device=input_ids.device)

    def _stopped(self, ids: Sequence[int]) -> bool:
        text = self._decoded.text(ids)
        return any(stop in text for stop in self._stops)
