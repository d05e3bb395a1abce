"""Readings: a Format, a request, and outputs. One handwritten Format for each family of call syntaxes, and grammars made by hand.

The families are rows of `tests/corpus/families.json`, the grammars rows of `tests/corpus/support/by_hand.jsonl`.

Rules: the first output of a family is the standard one: the text `CONTENT`, then get_weather(city="Paris", days=3) and
get_time(city="Rome"), or only the first call if a format allows one. Markers are our own, in the families' styles.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from judge.laws import turn_of
from remainders import grammar_of
from tables import CORPUS, case_rows

from unrender import GrammarError, Parser, Turn
from unrender.errors import SchemaWarning
from unrender.format import Codec, Format, Reasoning, ReasoningMode, Slot, Strings, TurnTexts, Typing
from unrender.grammar import Grammar
from unrender.testing import numbered_id
from unrender.types import Request, Tool

CONTENT = "Let me see."
PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "note": {"type": ["string", "null"]},
    "options": {"type": "object"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "exact": {"type": "boolean"},
}
TOOLS = tuple(
    Tool(name=name, parameters={"type": "object", "properties": PROPERTIES})
    for name in ("get_weather", "get_time", "now")
)
REQUEST = Request(tools=TOOLS)
SAMPLES = 6
THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
JSON_CALL = ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")
RAW_BY_SCHEMA = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Reading:
    """A format, a request, and outputs with calls."""

    name: str
    format: Format
    request: Request = REQUEST
    prompt: str = ""
    grammar: Grammar | None = None
    """A grammar made by hand, which replaces that of the format."""
    written: tuple[str, ...] = ()

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Outputs with calls: written by hand, or slowly by the format's grammar."""
        return self.written or samples(self.format, self.request)

    @property
    def turn(self) -> Turn:
        """A turn with this format and request, whose prompt ends in the same text."""
        return replace(turn_of(self.format, self.prompt, None), request=self.request, grammar=self.grammar)

    def parser(self, *, request: Request | None = None, **settings: Any) -> Parser:
        """Return a new parser with numbered calls."""
        asked: dict[str, Any] = {"prompt": self.prompt, "grammar": self.grammar, "ids": numbered_id, **settings}
        return Parser(self.format, request or self.request, **asked)

    def restored(self, state: Mapping[str, Any]) -> Parser:
        """Return the parser restored from the JSON text of a state."""
        data = json.loads(json.dumps(state))
        return Parser._restored(self.format, self.request, data, grammar=self.grammar, ids=numbered_id)

    def __repr__(self) -> str:
        return self.name


def samples(format: Format, request: Request) -> tuple[str, ...]:
    """Return answers written by the format's grammar; at least one, which may be empty."""
    turn = Turn(prompt="", format=format, request=request)
    try:
        with warnings.catch_warnings(action="ignore", category=SchemaWarning):
            return tuple(dict.fromkeys(islice(turn._samples(), SAMPLES)))
    except GrammarError:
        return ("",)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Family(Reading):
    """A reading whose outputs are written by hand."""

    one_call: bool = False
    """True if the standard output has only the first call."""
    atomic: int = 0
    """Number of characters of an argument that are held back on purpose, since the call's id comes after it."""
    markers: tuple[str, ...] = ()
    """Texts that mutations insert."""

    @classmethod
    def of(cls, *, outputs: list[str], markers: list[str], format: Mapping[str, Any], **fields: Any) -> Family:
        """Return a family of `tests/corpus/families.json`."""
        return cls(written=tuple(outputs), markers=tuple(markers), format=Format.from_dict(format), **fields)


ENDED = Format(turn=TurnTexts(end="<|end|>\n")).to_dict()
"""The format of turns whose answer follows a grammar made by hand."""
BY_HAND = tuple(
    Family.of(format=ENDED, **row | {"grammar": grammar_of(row["grammar"])})
    for row in case_rows(CORPUS / "support" / "by_hand.jsonl")
)
FAMILIES = tuple(Family.of(**data) for data in json.loads((CORPUS / "families.json").read_text("utf-8")))
_NAMED = {family.name: family for family in FAMILIES}
ARRAY = _NAMED["array"]
BARE_KEYS = _NAMED["bare_keys"]
COUNTED = _NAMED["counted"]
ID_FIRST = _NAMED["id_first"]
JSON_ENVELOPE = _NAMED["json_envelope"]
PYTHON_CALLS = _NAMED["python_calls"]
RAW_LINES = _NAMED["raw_lines"]
RAW_OPTIONS = _NAMED["raw_options"]
TAGGED = _NAMED["tagged"]
TAG_AND_JSON = _NAMED["tag_and_json"]
TYPED = _NAMED["typed"]
