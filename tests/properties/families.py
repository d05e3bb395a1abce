"""One handwritten Format for each family of call syntaxes, with outputs as a model would write them.

All are rows of `tests/corpus/families.json`.

Rules: the first output of a family is the standard one: the text `CONTENT`, then get_weather(city="Paris", days=3) and
get_time(city="Rome"), or only the first call if a format allows one. Markers are our own, in the families' styles.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrender.format import Codec, Format, Reasoning, ReasoningMode, Slot, Strings, Typing
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
THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
JSON_CALL = ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")
RAW_BY_SCHEMA = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Family:
    """A format, and outputs in it."""

    name: str
    format: Format
    outputs: tuple[str, ...]
    prompt: str = ""
    one_call: bool = False
    """True if the standard output has only the first call."""
    atomic: int = 0
    """Number of characters of an argument that are held back on purpose, since the call's id comes after it."""
    markers: tuple[str, ...] = ()
    """Texts that mutations insert."""

    @classmethod
    def of(cls, data: dict[str, Any]) -> Family:
        """Return a family of `tests/corpus/families.json`."""
        texts = {name: tuple(data[name]) for name in ("outputs", "markers")}
        return cls(**data | texts | {"format": Format.from_dict(data["format"])})

    def __repr__(self) -> str:
        return self.name


FAMILIES = tuple(
    map(Family.of, json.loads((Path(__file__).parents[1] / "corpus" / "families.json").read_text("utf-8")))
)
_NAMED = {family.name: family for family in FAMILIES}
ARRAY = _NAMED["array"]
BARE_KEYS = _NAMED["bare_keys"]
COUNTED = _NAMED["counted"]
ID_BETWEEN = _NAMED["id_between"]
ID_FIRST = _NAMED["id_first"]
JSON_ENVELOPE = _NAMED["json_envelope"]
JSON_ID_LAST = _NAMED["json_id_last"]
PYTHON_CALLS = _NAMED["python_calls"]
RAW_LINES = _NAMED["raw_lines"]
RAW_OPTIONS = _NAMED["raw_options"]
TAGGED = _NAMED["tagged"]
TAG_AND_JSON = _NAMED["tag_and_json"]
TYPED = _NAMED["typed"]
