"""Generates random answers for each capability of a format. The template then renders these answers.

Texts contain words and characters that are common in formats, but no markers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from unrender.conversation.messages import Said, SaidCall

_WORDS = [
    *("the", "rain", "in", "Spain", "stays", "mainly", "while"),
    *("7", "ships", "sail", "Überland", "東京", "☂", "naïve"),
]
_MARKS = [
    *("a < b && c > d", "{x}", "[y]", '"quoted"', "it's", "back\\slash"),
    *("50 %", "a, b; c:", "tab\there", "(z)", "=>"),
]
_LOOKALIKES = ["7318", "02134", "-1.5", "true", "false", "null", "None", "1e5", "{}", "[]", "True"]

# Some templates iterate over the schema and fail if a description is missing.
_PROPERTIES: dict[str, Any] = {
    "text": {"type": "string", "description": "Some text."},
    "note": {"type": "string", "description": "More text."},
    "count": {"type": "integer", "description": "A number of things."},
    "ratio": {"type": "number", "description": "A share."},
    "flag": {"type": "boolean", "description": "Yes or no."},
    "nothing": {"type": "string", "nullable": True, "description": "Perhaps nothing."},
    "settings": {"type": "object", "description": "A mapping.", "additionalProperties": {}},
    "items": {"type": "array", "description": "A list.", "items": {}},
}


def proof_tool(name: str, properties: Mapping[str, Any] = _PROPERTIES) -> dict[str, Any]:
    """Return a tool with this name and these parameters."""
    parameters = {"type": "object", "properties": properties, "required": []}
    return {"type": "function", "function": {"name": name, "description": f"Call {name}.", "parameters": parameters}}


TOOL_NAMES = ("get_weather", "find_place", "send_report")
PROOF_TOOLS = tuple(map(proof_tool, TOOL_NAMES))


def proof_answer(content: str = "", reasoning: str = "", calls: Iterable[tuple[str, Mapping[str, Any]]] = ()) -> Said:
    """Return an answer with `calls`, which are pairs of a name and arguments. Each call id is nine characters long."""
    made = tuple(SaidCall(name=name, arguments=arguments, id=proof_id(i)) for i, (name, arguments) in enumerate(calls))
    return Said(role="assistant", content=content, reasoning=reasoning, calls=made)


def proof_id(index: int) -> str:
    """Return the id of the call at `index`."""
    return f"proof{index:04d}"


def pairs(said: Said) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the names and arguments of an answer's calls as pairs."""
    return [(call.name, call.arguments) for call in said.calls]


Axis = Callable[[Random], Said]


def prose(random: Random) -> str:
    """Return one to three lines of random words and symbols, without surrounding whitespace."""
    lines = [" ".join(random.choices(_WORDS + _MARKS, k=random.randint(1, 6))) for _ in range(random.randint(1, 3))]
    return random.choice(["\n", "\n\n", "\n  "]).join(lines)


def _calling(random: Random, *, content: str = "", reasoning: str = "", **arguments: Any) -> Said:
    return proof_answer(content, reasoning, [(random.choice(TOOL_NAMES), arguments)])


def _value(random: Random, depth: int = 0) -> Any:
    # Strings that look like values of other types are tested separately, because some formats can't distinguish them without a schema.
    scalars = [prose(random), random.randint(-999, 999), random.random() < 0.5, None, 2.5]
    if depth > 2 or random.random() < 0.6:
        return random.choice(scalars)
    inner = [_value(random, depth + 1) for _ in range(random.randint(0, 3))]
    return inner if random.random() < 0.5 else dict(zip(["a", "b c", "d-e"], inner, strict=False))


def _two_or_three(random: Random) -> Said:
    first = _calling(random, text=prose(random))
    others = [_calling(random, note=prose(random), count=random.randint(0, 9)) for _ in range(random.randint(1, 2))]
    return proof_answer(calls=[pair for said in (first, *others) for pair in pairs(said)])


def _mapping(random: Random) -> dict[str, Any]:
    return {key: _value(random, 1) for key in random.sample(["a", "b c", "d-e", "f"], k=random.randint(0, 3))}


def _list(random: Random) -> list[Any]:
    return [_value(random, 1) for _ in range(random.randint(0, 3))]


AXES: Mapping[str, Axis] = {
    "content": lambda r: proof_answer(content=prose(r)),
    "reasoning": lambda r: proof_answer(reasoning=prose(r), content=prose(r)),
    "tool calls": lambda r: _calling(r, text=prose(r)),
    "content and tool calls": lambda r: _calling(r, content=prose(r), text=prose(r)),
    "reasoning and tool calls": lambda r: _calling(r, reasoning=prose(r), note=prose(r)),
    "reasoning, content and tool calls": lambda r: _calling(r, reasoning=prose(r), content=prose(r), text=prose(r)),
    "parallel tool calls": _two_or_three,
    "identical tool calls": lambda r: proof_answer(calls=pairs(_calling(r, text=prose(r))) * 2),
    "no arguments": _calling,
    "strings": lambda r: _calling(r, text=prose(r), note=r.choice(_MARKS)),
    "strings that look like other types": lambda r: _calling(r, text=r.choice(_LOOKALIKES)),
    "numbers": lambda r: _calling(r, count=r.randint(-(10**12), 10**12), ratio=r.choice([0.5, -2.25, 3.0])),
    "booleans": lambda r: _calling(r, flag=r.random() < 0.5, count=1),
    "null": lambda r: _calling(r, nothing=None, text=prose(r)),
    "objects": lambda r: _calling(r, settings=_mapping(r)),
    "arrays": lambda r: _calling(r, items=_list(r)),
}
