"""A fake engine core, the process with the weights: transformers' model on one thread, token by token.

It's used to test an engine's own server. It needs torch and transformers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class Held(Protocol):
    """A grammar's state in the engine's own library."""

    def mask(self, scores: Any) -> None:
        """Mask all tokens that the grammar doesn't allow in a row of scores."""

    def take(self, token: int) -> bool:
        """Accept a token; return whether the grammar allows nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Token settings of a request."""

    prompt: tuple[int, ...]
    limit: int
    temperature: float
    seed: int
    ends: frozenset[int]
    """Tokens that end an answer."""
    grammar: Hashable = None


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer."""

    id: int
    finish: str
    """`stop` or `length` for the last token, otherwise empty."""
    scores: Any = None
    """The log probability of each token in the vocabulary, if requested."""


class Core:
    """The model. It caches answers, so the second request for one, streamed or whole, costs nothing."""

    def __init__(self, file: Path) -> None:
        library, self._torch = importlib.import_module("transformers"), importlib.import_module("torch")
        self._torch.set_num_threads(1)
        where: Any = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
        self._model = library.AutoModelForCausalLM.from_pretrained(**where, dtype=self._torch.float32).eval()
        self._known: dict[Wanted, list[Token]] = {}

    def answer(self, wanted: Wanted, hold: Callable[[], Held | None], *, scored: bool = False) -> Iterator[Token]:
        """Yield the tokens of an answer, with scores if requested."""
        if not scored and wanted in self._known:
            yield from self._known[wanted]
            return
        said = []
        for token in self._answer(wanted, hold()):
            said.append(Token(token.id, token.finish))
            yield token if scored else said[-1]
        self._known[wanted] = said

    def _answer(self, wanted: Wanted, held: Held | None) -> Iterator[Token]:
        torch = self._torch
        draw = torch.Generator().manual_seed(wanted.seed)
        ids, kept = torch.tensor([wanted.prompt]), None
        for count in range(1, wanted.limit + 1):
            with torch.no_grad():
                said = self._model(input_ids=ids, past_key_values=kept, use_cache=True, logits_to_keep=1)
            kept, scores = said.past_key_values, said.logits[0, -1].float()
            plain = torch.log_softmax(scores, -1)
            if held:
                held.mask(scores)
            if wanted.temperature:
                token = int(torch.multinomial(torch.softmax(scores / wanted.temperature, -1), 1, generator=draw))
            else:
                token = int(scores.argmax())
            ended = (held is not None and held.take(token)) or token in wanted.ends
            finish = "stop" if ended else "length" if count == wanted.limit else ""
            yield Token(token, finish, plain)
            if finish:
                return
            ids = torch.tensor([[token]])


def folder_of(file: Path, folder: Path) -> Path:
    """Write the files that a server needs besides the weights, and return their folder.

    They are the configuration, the tokenizer and the chat template.
    """
    library = importlib.import_module("transformers")
    where: Any = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    config = library.AutoConfig.from_pretrained(**where)
    config.architectures = ["LlamaForCausalLM"]
    for part in (config, library.AutoTokenizer.from_pretrained(**where)):
        part.save_pretrained(folder)
    return folder
