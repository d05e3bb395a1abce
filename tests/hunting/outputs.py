"""Random texts for formats of all origins, checked against every guarantee of the parser: the third generator of hunts.

Strategy: a format comes from the families, `tests/formats`, a vendor's template, a recorded case, Hypothesis, or a
combination of others. Its texts are samples and their prefixes, with empty calls and blocks inserted anywhere. Markers,
fields, values and pieces are deleted, doubled, swapped, cut, quoted, or replaced. The judge checks a text, and invariants
compare the readings of strict parsers and of all policies. An input is JSON: a reading by name or with its whole format,
the text, and the seed of the chunks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, get_args, get_type_hints

from hunting.drawn_formats import Data, cases
from hunting.tally import Failure, Tally, drawing, keep_failure, minimised, place_of, spent
from hypothesis import given, seed
from judge.laws import check_judged
from judge.outcome import Lost
from properties.attacks import markers, readings
from properties.families import REQUEST, Reading, samples
from properties.invariants import check, check_strict, strictly
from splitting import fed, pieces
from tables import table
from vendor import all_vendor_templates, vendor_cases

from unrender import ChatTemplate, Malformed, Message, Policy
from unrender.errors import FormatError
from unrender.format import CallSyntax, Format, Slot, ToolMode
from unrender.types import Request

NAME = "outputs"
ANY_TOOL = Request(tools=None)
WORDS = {name: get_args(kind) for name, kind in get_type_hints(Policy).items()}
"""Allowed values of each field of a policy."""
POLICIES = [Policy(**dict(zip(WORDS, words, strict=True))) for words in product(*WORDS.values())]
"""All policies."""
LONGEST = 400
"""Maximum length of a text, in characters."""
TEXTS = 12
"""Number of texts for one format."""
BATCH = 40
"""Formats that Hypothesis draws in one batch."""
T: Any = table("outputs")
_ODD: list[str] = T["_ODD"]
_FIELD = re.compile(r'("\w+" ?: ?)("[^"]*"|[-.\w]+|\{[^{}]*\}|\[[^\[\]]*\])')
_VALUE = re.compile(r'"[^"]*"|-?\d[\d.]*|\btrue\b|\bfalse\b|\bnull\b|\{\}')
_VALUES: list[str] = T["_VALUES"]
"""Replacements for a value."""
Change = Callable[[str, Random, tuple[str, ...]], str]


def hunt(random: Random, deadline: float, keep: Path) -> Tally:
    """Check texts until `deadline`, and store one minimised failure of each kind in `keep`."""
    failures: dict[str, Failure] = {}
    tried = refused = 0
    while spent() < deadline:
        try:
            reading = drawn(random)
        except FormatError:
            refused += 1
            continue
        for text in texts(reading, random):
            tried += 1
            failure = failure_of(reading, text, random.randrange(1 << 16))
            if failure and failure.kind not in failures:
                data = json.loads(failure.input)
                joined = partial(_with_text, data)
                failures[failure.kind] = minimised(failure, data["text"], joined, replay)
                keep_failure(keep, NAME, failures[failure.kind])
            if spent() >= deadline:
                break
    return Tally(tried=tried, refused=refused, failures=tuple(failures.values()))


def _with_text(data: Data, text: str) -> str:
    return json.dumps(data | {"text": text})


def replay(text: str) -> Failure | None:
    """Return the first guarantee that one input breaks; None also if its reading isn't available."""
    data = json.loads(text)
    reading = named(data["reading"]) if "reading" in data else _unnamed(data)
    return failure_of(reading, data["text"], data["seed"]) if reading else None


def failure_of(reading: Reading, text: str, number: int) -> Failure | None:
    """Return the first guarantee that a text breaks, if any. Every exception counts as a failure."""
    offers = reading.request is not ANY_TOOL
    unnamed = {"format": reading.format.to_dict(), "prompt": reading.prompt, "offers": offers}
    case = {"text": text, "seed": number, **({"reading": reading.name} if reading.name else unnamed)}
    for kind, promise in _CHECKS.items():
        try:
            promise(reading, text, number)
        except Exception as error:  # noqa: BLE001 - this is what the hunt is for
            return Failure(kind=_kind(kind, error), detail=f"{reading.name}: {error!r:.300}", input=json.dumps(case))
    return None


# Readings.


def drawn(random: Random) -> Reading:
    """Return a reading of any origin. Raises `FormatError` if a format's parts don't fit together."""
    origin, any_tool = random.random(), random.random() < 0.2
    if origin < 0.5:
        name = random.choice(_cases() if _cases() and origin < 0.15 else names())
        found = named(f"any tool: {name}" if any_tool else name)
        assert found is not None
        return found
    data = recombined(random) if origin < 0.75 else random.choice(_drawn_formats(random.randrange(64)))
    return _unnamed({"format": data, "offers": not any_tool} | ({"prompt": ""} if random.random() < 0.1 else {}))


@cache
def names() -> list[str]:
    """Return the names of our own formats, and of the available vendors' templates."""
    return [*_ours(), *(f"vendor {name}" for name in all_vendor_templates())]


@cache
def named(name: str) -> Reading | None:
    """Return the reading of that name. The prefix `any tool: ` means that its tools are unknown."""
    rest = name.removeprefix("any tool: ")
    kind, _, key = rest.partition(" ")
    other = {"case": _recorded, "vendor": _of_vendor}.get(kind)
    found = _ours().get(rest) or (other(key) if other else None)
    return replace(found, name=name, request=ANY_TOOL) if found and rest != name else found


@cache
def _ours() -> dict[str, Reading]:
    return {reading.name: reading for reading in readings()}


@cache
def _cases() -> list[str]:
    """Return the names of the recorded cases whose templates are available."""
    return [f"case {case['id']}" for case in vendor_cases("outputs") if case["template"] in all_vendor_templates()]


def _recorded(key: str) -> Reading | None:
    case = next((case for case in vendor_cases("outputs") if case["id"] == key), None)
    template = case and _template(case["template"])
    if not case or not template:
        return None
    turn = template.prepare(case["messages"], **case["prepare"])
    written = (case["output"],)
    return Reading(name=f"case {key}", format=turn.format, request=turn.request, prompt=turn.prompt, written=written)


def _of_vendor(key: str) -> Reading | None:
    template = _template(key)
    if template is None:
        return None
    return replace(_unnamed({"format": template.format.to_dict(), "offers": True}), name=f"vendor {key}")


@cache
def _template(name: str) -> ChatTemplate | None:
    path = all_vendor_templates().get(name)
    return ChatTemplate.from_file(path, bos_token="<s>", eos_token="</s>") if path else None


def _unnamed(data: Data) -> Reading:
    """Return a reading with its own format. Raises `FormatError`."""
    format = Format.from_dict(data["format"])
    prompt = data.get("prompt", "".join(format.turn.headers[:1]) + format.turn.prefill)
    request = REQUEST if data["offers"] else ANY_TOOL
    return Reading(name="", format=format, request=request, prompt=prompt, written=samples(format, REQUEST))


@cache
def _drawn_formats(number: int) -> list[Data]:
    """Return a batch of formats drawn by Hypothesis; some will be rejected."""
    found: list[Data] = []
    seed(number)(drawing(max_examples=BATCH)(given(cases())(lambda case: found.append(case["format"]))))()
    return found


def recombined(random: Random) -> Data:
    """Return a format with parts of others, and with parts of other call syntaxes."""
    chosen = (named(random.choice(names())) for _ in range(3))
    data, other, third = (reading.format.to_dict() for reading in chosen if reading)
    for part in ("turn", "reasoning", "content", "content_with_calls", "tools", "tolerated", "spellings"):
        if random.random() < 0.4:
            data.pop(part, None)
            data |= {part: other[part]} if part in other else {}
    calls = dict(data.get("tools", {}))
    for part in ("section_start", "section_end", "call_start", "call_end", "separator", "arguments", "whole"):
        if random.random() < 0.25 and part in third.get("tools", {}):
            calls[part] = third["tools"][part]
    if calls.get("mode", "none") != "none" and random.random() < 0.2:
        calls["whole"] = True
    return {**data, "tools": calls}


# Texts.


def texts(reading: Reading, random: Random) -> Iterator[str]:
    """Yield samples, prefixes of samples, and altered samples."""
    inserted = (*_inserted(reading.format), *_ODD)
    for _ in range(TEXTS):
        text = "".join(random.choices(reading.outputs, k=random.choice((1, 1, 2))))
        if len(text) > LONGEST:
            at = random.randrange(len(text) - LONGEST + 1)
            text = random.choice((text[:LONGEST], text[at : at + LONGEST]))
        for _ in range(random.choice((0, 1, 1, 2, 3, 5))):
            text = random.choice(_CHANGES)(text, random, inserted)
        if random.random() < 0.1:
            text = "".join(random.choices((*inserted, *pieces(text, 10)), k=random.randrange(1, 12)))
        yield text[:LONGEST]


def _inserted(format: Format) -> Iterator[str]:
    """Yield markers, whole and cut, and empty calls and blocks in all combinations."""
    yield from markers(format)
    reasoning = format.reasoning
    yield from filter(None, (reasoning.start + reasoning.end, *format.turn.ends, *format.ignored))
    for syntax in (format.tools, *format.tolerated):
        if syntax.mode is not ToolMode.NONE:
            yield from filter(str.strip, _empty(syntax))


def _empty(syntax: CallSyntax) -> Iterator[str]:
    section, call = (syntax.section_start, syntax.section_end), (syntax.call_start, syntax.call_end)
    yield "".join(section)
    yield "".join(call)
    yield section[0] + "".join(call) + section[1]
    yield section[0] + "".join(call)
    yield section[0] + "[]" + section[1]
    yield call[0] + "{}" + call[1]
    yield call[0] + "".join(part for part in syntax.function if not isinstance(part, Slot)) + call[1]
    yield "".join("now" if part is Slot.NAME else "" if isinstance(part, Slot) else part for part in syntax.function)


def _swap(text: str, random: Random, _: tuple[str, ...]) -> str:
    start, end = _stretch(text, random)
    at = random.randrange(len(text) + 1)
    return text[:start] + text[end:at] + text[start:end] + text[max(at, end) :]


def _stretch(text: str, random: Random) -> tuple[int, int]:
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + random.choice((1, 1, 2, 5, 20, 80)))


def _cut(text: str, random: Random, _: tuple[str, ...]) -> str:
    return text[: random.randrange(len(text) + 1)]


def _insert(text: str, random: Random, inserted: tuple[str, ...]) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(inserted) + text[at:]


def _double_field(text: str, random: Random, _: tuple[str, ...]) -> str:
    """Write a field again, with its own value or another one."""
    fields = list(_FIELD.finditer(text))
    if not fields:
        return text
    field, other = random.choice(fields), random.choice(fields)
    again = field.group() if random.random() < 0.5 else field.group(1) + other.group(2)
    at = random.choice((field.end(), other.end()))
    return f"{text[:at]}, {again}{text[at:]}"


def _at(places: Callable[[str, Random, tuple[str, ...]], list[tuple[int, int]]], change: Change) -> Change:
    """Return a function that changes the text at one of its places."""

    def changed(text: str, random: Random, inserted: tuple[str, ...]) -> str:
        found = places(text, random, inserted)
        if not found:
            return text
        start, end = random.choice(found)
        return text[:start] + change(text[start:end], random, inserted) + text[end:]

    return changed


def _markers(text: str, random: Random, inserted: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the places of one marker."""
    present = [marker for marker in inserted if marker in text]
    marker = random.choice(present) if present else ""
    return [(at, at + len(marker)) for at in range(len(text)) if marker and text.startswith(marker, at)]


def _values(text: str, _random: Random, _inserted: tuple[str, ...]) -> list[tuple[int, int]]:
    return [value.span() for value in _VALUE.finditer(text)]


def _anywhere(text: str, random: Random, _: tuple[str, ...]) -> list[tuple[int, int]]:
    return [_stretch(text, random)]


_CHANGES: tuple[Change, ...] = (
    *(_swap, _cut, _insert, _insert, _double_field, _double_field),
    *(_at(places, lambda piece, *_: piece * 2) for places in (_markers, _anywhere)),
    *(_at(places, lambda *_: "") for places in (_markers, _anywhere)),
    *(_at(_values, lambda _piece, random, _inserted: random.choice(_VALUES)),) * 2,
    _at(_markers, lambda _piece, random, inserted: random.choice(inserted)),
    _at(_markers, lambda piece, random, _inserted: piece[: random.randrange(len(piece))]),
    _at(_markers, lambda piece, random, _inserted: piece.join(random.choice(('""', "''", "``")))),
)


# Checks.


def _alike_when_strict(reading: Reading, text: str, seed: int) -> None:
    check_strict(lambda: reading.parser(strict=True), text, seed=seed, begun=len(reading.prompt))
    if isinstance(message := strictly(reading.parser(strict=True), [text]), Message):
        parser = reading.parser()
        assert not [event for event in fed(parser, [text]) if isinstance(event, Malformed)]
        assert parser.message == message


def _alike_under_policies(reading: Reading, text: str, seed: int) -> None:
    """Assert that a text is read the same however it's fed, under a sample of all policies and requests."""
    random = Random(seed)
    for policy in random.sample(POLICIES, 4):
        some = replace(reading, request=replace(reading.request, parallel_tool_calls=random.random() < 0.5))
        reason = random.choice((None, "stop", "length"))
        found = []
        for size in (len(text) or 1, 1, 5):
            parser = some.parser(policy=policy)
            for chunk in pieces(text, size):
                parser.feed(chunk)
            parser.finish(reason)
            found.append((parser.message, parser.spans))
        parser = some.parser(policy=policy)
        parser.finish(reason, text=text)
        assert found == [(parser.message, parser.spans)] * 3, (policy, reason, found)


_CHECKS: dict[str, Callable[[Reading, str, int], object]] = {
    "alike for every chunking": lambda reading, text, seed: check(reading.parser, text, seed=seed),
    "alike when strict": _alike_when_strict,
    "alike under every policy": _alike_under_policies,
    "judged": lambda reading, text, seed: check_judged(reading.turn, text, seed),
}


def _kind(check: str, error: Exception) -> str:
    if isinstance(error, Lost):
        return error.kind
    return f"{check}: {type(error).__name__} in {place_of(error)}"
