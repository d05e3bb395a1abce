"""Mutated model outputs, checked against every guarantee of the parser: the third generator of hunts.

Strategy: outputs come from the families, from samples of the formats in `tests/formats`, and from the recorded cases if
available. Markers, quotes, braces, whitespace and odd characters are deleted, doubled, swapped, cut off and inserted.
An output must be read the same in every way: whole, in single characters, in random chunks, through a copy, and through
a saved state. Its parts must add up, and arguments of complete calls must be JSON objects. An input is JSON: the name
of the reading, the text, and the seed of the chunks.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

from hunting.tally import Failure, Tally, keep_failure, minimised, spent
from properties.attacks import Reading, markers, readings
from properties.invariants import check, check_copies, check_strict, strictly
from splitting import fed, merged, random_pieces
from tables import table
from vendor import vendor_cases, vendor_templates

from unrender import ChatTemplate, Malformed, Message, Parser, Policy
from unrender.testing import numbered_id
from unrender.types import Request

NAME = "outputs"
ANY_TOOL = Request(tools=None)
WORDS = {name: get_args(kind) for name, kind in get_type_hints(Policy).items()}
"""Allowed values of each field of a policy."""
POLICIES = [Policy(**dict(zip(WORDS, words, strict=True))) for words in product(*WORDS.values())]
"""All policies."""
LONGEST = 700
"""Maximum length of a text, in characters."""
T: Any = table("outputs")
_ODD: list[str] = T["_ODD"]
_FIELD = re.compile(r'("\w+" ?: ?)("[^"]*"|[-.\w]+|\{[^{}]*\}|\[[^\[\]]*\])')
_VALUE = re.compile(r'"[^"]*"|-?\d[\d.]*|\btrue\b|\bfalse\b|\bnull\b|\{\}')
_VALUES: list[str] = T["_VALUES"]
"""Replacements for a value."""


def hunt(random: Random, deadline: float, keep: Path) -> Tally:
    """Try mutated outputs until `deadline`, and store the smallest of each kind of failure in the folder `keep`."""
    tried = refused = 0
    failures: dict[str, Failure] = {}
    while spent() < deadline:
        text = _draw(random)
        tried += 1
        failure = replay(text)
        if failure and failure.kind not in failures:
            failures[failure.kind] = minimised(failure, replay)
            keep_failure(keep, NAME, failures[failure.kind])
        refused += not failure and _is_refused(text)
    return Tally(tried=tried, refused=refused, failures=tuple(failures.values()))


def replay(text: str) -> Failure | None:
    """Return the first guarantee that one input breaks; None also if its reading isn't available."""
    data = json.loads(text)
    reading = _named(data["reading"])
    if reading is None:
        return None
    for kind, promise in _CHECKS.items():
        try:
            promise(reading, data["text"], data["seed"])
        except Exception as error:  # noqa: BLE001 - this is what the hunt is for
            return Failure(kind=_kind(kind, error), detail=f"{reading.name}: {error!r:.300}", input=text)
    return None


def _is_refused(text: str) -> bool:
    """Return whether a strict parser rejects the input."""
    data = json.loads(text)
    reading = _named(data["reading"])
    return reading is not None and isinstance(strictly(reading.parser(strict=True), [data["text"]]), tuple)


# Readings.


def _named(name: str) -> Reading | None:
    """Return the reading of that name. The prefix `any tool: ` means that its tools are unknown."""
    rest = name.removeprefix("any tool: ")
    reading = _ours().get(rest) or _recorded(rest)
    return replace(reading, name=name, request=ANY_TOOL) if reading and rest != name else reading


@cache
def _ours() -> dict[str, Reading]:
    return {reading.name: reading for reading in readings()}


@cache
def _cases() -> list[str]:
    """Return the names of the recorded cases whose templates are available."""
    return [f"case {case['id']}" for case in vendor_cases("outputs") if case["template"] in vendor_templates()]


@cache
def _recorded(name: str) -> Reading | None:
    case = next((case for case in vendor_cases("outputs") if f"case {case['id']}" == name), None)
    if case is None or case["template"] not in vendor_templates():
        return None
    turn = _template(case["template"]).prepare(case["messages"], **case["prepare"])
    return Reading(name=name, format=turn.format, request=turn.request, prompt=turn.prompt, written=(case["output"],))


@cache
def _template(name: str) -> ChatTemplate:
    return ChatTemplate.from_file(vendor_templates()[name], bos_token="<s>", eos_token="</s>")


# Texts.


def _draw(random: Random) -> str:
    name = random.choice(_cases()) if _cases() and random.random() < 0.3 else random.choice(list(_ours()))
    name = f"any tool: {name}" if random.random() < 0.2 else name
    reading = _named(name)
    assert reading is not None
    inserted = (*markers(reading.format), *_ODD)
    text = "".join(random.choices(reading.outputs, k=random.choice((1, 1, 2))))
    for _ in range(random.choice((0, 1, 1, 2, 3, 5))):
        text = random.choice(_MUTATIONS)(text, random, inserted)
    if random.random() < 0.1:
        text = "".join(random.choices((*inserted, *_slices(text, random)), k=random.randrange(1, 12)))
    return json.dumps({"reading": name, "text": text[:LONGEST], "seed": random.randrange(1 << 16)})


def _slices(text: str, random: Random) -> list[str]:
    return random_pieces(text, 30, random.randrange(100)) or [""]


def _stretch(text: str, random: Random) -> tuple[int, int]:
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + random.choice((1, 1, 2, 5, 20, 80)))


def _delete(text: str, random: Random, _: tuple[str, ...]) -> str:
    start, end = _stretch(text, random)
    return text[:start] + text[end:]


def _double(text: str, random: Random, _: tuple[str, ...]) -> str:
    start, end = _stretch(text, random)
    return text[:end] + text[start:]


def _swap(text: str, random: Random, _: tuple[str, ...]) -> str:
    start, end = _stretch(text, random)
    at = random.randrange(len(text) + 1)
    return text[:start] + text[end:at] + text[start:end] + text[max(at, end) :]


def _cut(text: str, random: Random, _: tuple[str, ...]) -> str:
    return text[: random.randrange(len(text) + 1)]


def _insert(text: str, random: Random, inserted: tuple[str, ...]) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(inserted) + text[at:]


def _remove_marker(text: str, random: Random, inserted: tuple[str, ...]) -> str:
    present = [marker for marker in inserted if marker in text]
    return text.replace(random.choice(present), random.choice(("", " ", *inserted)), 1) if present else text


def _double_field(text: str, random: Random, _: tuple[str, ...]) -> str:
    """Write a field again, with its own value or another one."""
    fields = list(_FIELD.finditer(text))
    if not fields:
        return text
    field, other = random.choice(fields), random.choice(fields)
    again = field.group() if random.random() < 0.5 else field.group(1) + other.group(2)
    at = random.choice((field.end(), other.end()))
    return f"{text[:at]}, {again}{text[at:]}"


def _change_value(text: str, random: Random, _: tuple[str, ...]) -> str:
    values = list(_VALUE.finditer(text))
    if not values:
        return text
    value = random.choice(values)
    return text[: value.start()] + random.choice(_VALUES) + text[value.end() :]


_MUTATIONS: tuple[Callable[[str, Random, tuple[str, ...]], str], ...] = (
    *(_delete, _double, _swap, _cut),
    *(_insert, _insert, _remove_marker, _remove_marker),
    *(_double_field, _double_field, _change_value, _change_value),
)


# Checks.


def _alike(reading: Reading, text: str, seed: int) -> None:
    check(reading.parser, text, seed=seed)


def _alike_when_strict(reading: Reading, text: str, seed: int) -> None:
    check_strict(lambda: reading.parser(strict=True), text, seed=seed, begun=len(reading.prompt))
    if isinstance(message := strictly(reading.parser(strict=True), [text]), Message):
        parser = reading.parser()
        assert not [event for event in fed(parser, [text]) if isinstance(event, Malformed)]
        assert parser.message == message


def _copied(reading: Reading, text: str, seed: int) -> None:
    check_copies(reading.parser, text, [Random(seed).randrange(len(text) + 1) for _ in range(2)])


def _saved(reading: Reading, text: str, seed: int) -> None:
    at = Random(seed).randrange(len(text) + 1)
    parser = reading.parser()
    before = [event for character in text[:at] for event in parser.feed(character)]
    other = Parser._restored(reading.format, reading.request, json.loads(json.dumps(parser.state())), ids=numbered_id)
    whole = reading.parser()
    assert merged([*before, *fed(other, [text[at:]])]) == merged(fed(whole, [text]))
    assert (other.message, other.spans) == (whole.message, whole.spans)


def _alike_under_policies(reading: Reading, text: str, seed: int) -> None:
    """Assert that a text is read the same however it's fed, under a sample of all policies and requests."""
    random = Random(seed)
    for policy in random.sample(POLICIES, 4):
        some = replace(reading, request=replace(reading.request, parallel_tool_calls=random.random() < 0.5))
        reason = random.choice((None, "stop", "length"))
        found = []
        for size in (len(text) or 1, 1, 5):
            parser = some.parser(policy=policy)
            for at in range(0, len(text), size):
                parser.feed(text[at : at + size])
            parser.finish(reason)
            found.append((parser.message, parser.spans))
        parser = some.parser(policy=policy)
        parser.finish(reason, text=text)
        assert found == [(parser.message, parser.spans)] * 3, (policy, reason, found)


_CHECKS: dict[str, Callable[[Reading, str, int], None]] = {
    "alike for every chunking": _alike,
    "alike when strict": _alike_when_strict,
    "copies": _copied,
    "states": _saved,
    "alike under every policy": _alike_under_policies,
}


def _kind(check: str, error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{check}: {type(error).__name__} in {Path(frame.filename).name}, {frame.name}"
