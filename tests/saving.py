"""A parser of a family's format → its state as JSON, and back: for tests of what is saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from properties.families import REQUEST, Family

from unrender.machine.ids import numbered_id
from unrender.machine.policy import Policy
from unrender.parser.sealing import body_digest
from unrender.parser.streaming import Parser


def state_of(family: Family, *chunks: str, policy: Policy | None = None) -> dict[str, Any]:
    """Return the state of a parser that was fed the chunks."""
    parser = Parser(family.format, REQUEST, prompt=family.prompt, policy=policy, ids=numbered_id)
    for chunk in chunks:
        parser.feed(chunk)
    state: dict[str, Any] = json.loads(json.dumps(parser.state()))
    return state


def restored(family: Family, state: Mapping[str, Any]) -> Parser:
    """Return a parser in that state, sealed anew."""
    return Parser.restore(family.format, REQUEST, {**state, "digest": body_digest(state)}, ids=numbered_id)


def changed(state: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the state with another value at a path such as `machine.frames.0.at`."""
    copy: dict[str, Any] = json.loads(json.dumps(state))
    at: Any = copy
    *way, last = path.split(".")
    for key in way:
        at = at[int(key)] if key.isdigit() else at[key]
    if last.isdigit():
        at[int(last)] = value
    else:
        at[last] = value
    return copy
