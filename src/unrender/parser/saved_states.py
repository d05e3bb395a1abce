"""Records a parser's options and its input, so that the parser can be saved as JSON and restored.

Strategy: results don't depend on the chunking, so feeding the text again restores the parser's state in linear time. The state of the
machine isn't saved, so the machine can change without a new version of the data.

Rules: unexpected data raises a `StateError` with its path, the expected value and the value found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, TypeVar

from unrender.cache import kept
from unrender.errors import RequestError, StateError
from unrender.format import Format
from unrender.machine import Policy
from unrender.messages import Message, Request
from unrender.nodes import Grammar
from unrender.parser.message import Quoter
from unrender.values import Resumable

STATE_VERSION = 7
"""Version of the data that `Parser.state` returns. Data of other versions is rejected."""
_SPECIAL: Mapping[str, bool | None] = {"special": True, "ordinary": False, "unknown": None}
_KINDS = {special: kind for kind, special in _SPECIAL.items()}
_Choice = TypeVar("_Choice")


@dataclass(slots=True, kw_only=True)
class Transcript(Resumable):
    """The options of a parser, and its input so far.

    The input is stored as stretches of text. A new stretch starts when the caller passes another value of `special`.
    """

    prefill: str
    """The part of the answer that the prompt already contains."""
    is_continuation: bool
    known_ids: tuple[str, ...]
    policy: Policy
    skips_reasoning: bool
    """True if the prompt lacks the words that start reasoning, so that the answer starts with content."""
    special_tokens: tuple[str, ...]
    strict: bool
    stretches: list[tuple[bool | None, list[str]]] = field(default_factory=list)

    def copy(self) -> Self:
        """Return an independent copy."""
        other = super(Transcript, self).copy()
        # Join the pieces first, because speculative decoding makes many copies.
        for _, pieces in self.stretches:
            pieces[:] = ("".join(pieces),)
        other.stretches = [(special, pieces.copy()) for special, pieces in self.stretches]
        return other

    def add(self, text: str, special: bool | None) -> None:
        """Add text to the record."""
        if not self.stretches or self.stretches[-1][0] is not special:
            self.stretches.append((special, []))
        self.stretches[-1][1].append(text)

    def __iter__(self) -> Iterator[tuple[bool | None, str]]:
        """Yield the stretches of text."""
        return ((special, "".join(pieces)) for special, pieces in self.stretches)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(text for _, text in self)

    @property
    def quoted_text(self) -> str:
        """The text so far, in which a special token spelled out in ordinary text has another first character."""
        quoter = Quoter(self.special_tokens)
        return "".join(quoter.ordinary(text) + quoter.release() if special is False else text for special, text in self)

    def state(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {
            "prefill": self.prefill,
            "is_continuation": self.is_continuation,
            "known_ids": list(self.known_ids),
            "policy": {name: str(word) for name, word in asdict(self.policy).items()},
            "skips_reasoning": self.skips_reasoning,
            "special_tokens": list(self.special_tokens),
            "strict": self.strict,
            "fed": [{"kind": _KINDS[special], "text": text} for special, text in self],
        }

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """Return the record from saved data."""
        made = cls(
            prefill=saved.text("prefill"),
            is_continuation=saved.flag("is_continuation"),
            known_ids=tuple(saved.texts("known_ids")),
            policy=_policy(saved.part("policy")),
            skips_reasoning=saved.flag("skips_reasoning"),
            special_tokens=tuple(saved.texts("special_tokens")),
            strict=saved.flag("strict"),
        )
        for item in saved.objects("fed"):
            made.add(item.text("text"), item.choice("kind", _SPECIAL))
        return made


def _policy(saved: Saved) -> Policy:
    words: dict[str, Any] = {field.name: saved.text(field.name) for field in fields(Policy)}
    try:
        return Policy(**words)
    except RequestError as error:
        raise StateError(f"{saved.where}.{error}") from None


def identity(format: Format, request: Request, grammar: Grammar | None) -> str:
    """Return a digest of everything in format, request and grammar that affects parsing."""
    tools = None if request.tools is None else [tool.to_openai() for tool in request.tools]
    terms = [
        *(tools, request.tool_choice, request.named_tool, request.parallel_tool_calls),
        *(request.response_schema, request.reasoning_format),
    ]
    # The JSON text of a format is long and therefore cached.
    text = _format_json(format) + json.dumps(terms, sort_keys=True, default=str)
    return _digest(text if grammar is None else text + repr(grammar))


@kept(16_000)
def _format_json(format: Format) -> str:
    return format.to_json(indent=None)


def message_digest(message: Message) -> str:
    """Return a digest of a message, including the ids of its calls."""
    return _digest(repr(message))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


class Saved:
    """One JSON object of saved data, with its path."""

    __slots__ = ("_data", "where")

    def __init__(self, data: Any, where: str = "state") -> None:
        if not isinstance(data, Mapping):
            raise StateError(f"{where}: expected an object, found {type(data).__name__}")
        self._data = data
        self.where: str = where

    def refuse(self, name: str, expected: str) -> StateError:
        """Return an error about the value of the field `name`."""
        found = repr(self._data.get(name, "nothing"))
        return StateError(f"{self.where}.{name}: expected {expected}, found {found[:60]}")

    def require(self, name: str, value: object, expected: str) -> None:
        """Raise `StateError` unless the field `name` has this value."""
        if self._data.get(name) != value:
            raise self.refuse(name, expected)

    def text(self, name: str) -> str:
        """Return the string in the field `name`."""
        return self._value(name, str, "a string")

    def flag(self, name: str) -> bool:
        """Return the boolean in the field `name`."""
        return self._value(name, bool, "true or false")

    def _value(self, name: str, kind: type[_Choice], expected: str) -> _Choice:
        value = self._data.get(name)
        if not isinstance(value, kind):
            raise self.refuse(name, expected)
        return value

    def choice(self, name: str, options: Mapping[str, _Choice]) -> _Choice:
        """Return the option whose key is the value of the field `name`."""
        value = self.text(name)
        if value not in options:
            raise self.refuse(name, f"one of {', '.join(options)}")
        return options[value]

    def texts(self, name: str) -> list[str]:
        """Return the list of strings in the field `name`."""
        values = self._value(name, list, "a list")
        if not all(isinstance(value, str) for value in values):
            raise self.refuse(name, "a list of strings")
        return list(values)

    def part(self, name: str) -> Saved:
        """Return the object in the field `name`."""
        return Saved(self._data.get(name), f"{self.where}.{name}")

    def objects(self, name: str) -> list[Saved]:
        """Return the list of objects in the field `name`."""
        return [Saved(value, f"{self.where}.{name}[{i}]") for i, value in enumerate(self._value(name, list, "a list"))]
