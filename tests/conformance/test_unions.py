"""Arguments of several types, in syntaxes with unquoted text: each value keeps its type and is accepted.

The grammar writes only text that is read back as a value of the schema.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from answers import QUESTION, Said, template_named, written
from cases import cases
from lexing import remainder_of

SYNTAXES = ("tagged-raw", "tagged-typed", "tagged-key")


def tools(schema: dict[str, Any]) -> list[dict[str, Any]]:
    parameters = {
        "type": "object",
        "properties": {"value": {"description": "A value.", **schema}},
        "required": ["value"],
    }
    return [{"type": "function", "function": {"name": "keep", "description": "Keep it.", "parameters": parameters}}]


@pytest.mark.parametrize("name", SYNTAXES)
@cases
def test_a_value_of_a_union_is_what_it_is(union, schema, values, name):
    """A value that the template writes is parsed as the same value. The grammar accepts and writes only such values."""
    # Nested tags write nothing for null, and an empty text for an empty list.
    values = [value for value in values if name != "tagged-key" or value not in (None, [])]
    chat, offered = template_named(name), tools(schema)
    turn = chat.prepare(QUESTION, tools=offered, tool_choice="required")
    grammar = remainder_of(turn)
    texts = [written(chat, turn, Said(calls=(("keep", {"value": value}),))) or "" for value in values]
    read = [json.loads(turn.parse(text).tool_calls[0].arguments_json)["value"] for text in texts]

    assert [(value, type(value)) for value in read] == [(value, type(value)) for value in values]
    assert grammar.refused(texts) == []
    for seed in range(3):
        for made in turn.parse(turn.sample(seed)).tool_calls:
            jsonschema.validate(json.loads(made.arguments_json).get("value"), {} if "nullable" in schema else schema)
