"""Formats of all origins, with texts made from their own samples, checked by the judge: the fourth generator of hunts.

Strategy: a Format comes from `tests/formats`, a vendor's template, Hypothesis, or a combination of parts. Its texts are
samples and their prefixes, with empty calls and blocks inserted anywhere. Markers are doubled, swapped, cut, quoted, or
taken from another Format. An input is JSON with its whole Format.
"""

from __future__ import annotations

import json
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from hunting.drawn_formats import cases
from hunting.tally import Failure, Tally, drawing, keep_failure, minimised, spent
from hypothesis import given, seed
from judge.laws import check_judged, turn_of
from judge.outcome import Lost
from properties.attacks import FORMATS, markers
from properties.families import FAMILIES, TOOLS
from vendor import all_vendor_templates

from unrender import ChatTemplate, GrammarError, Turn
from unrender.errors import FormatError
from unrender.format import CallSyntax, Format, Slot, ToolMode

NAME = "lossless"
LONGEST = 400
"""Maximum length of a text, in characters."""
TEXTS = 12
"""Number of texts for one Format."""
SAMPLES = 4
BATCH = 40
"""Formats that Hypothesis draws in one batch."""
Data = dict[str, Any]
OFFERED: tuple[Data, ...] = tuple({**tool.to_openai()} for tool in TOOLS)
ODD = ("Hi ", " and ", "\n", " ", "\n\n", "{}", "{", "}", "[]", '"', "'", "```", "now", "get_time", "<", "é", "7", ", ")


@dataclass(frozen=True)
class Subject:
    """A Format in use, and the material for its texts."""

    format: Format
    prompt: str
    tools: tuple[Data, ...] | None
    turn: Turn
    samples: tuple[str, ...]
    pieces: tuple[str, ...]

    @classmethod
    def of(cls, data: Data, prompt: str | None, offers: bool) -> Subject:
        """Return a Format, ready to parse texts. Raises `FormatError`."""
        format = Format.from_dict(data)
        before = "".join(format.turn.headers[:1]) + format.turn.prefill if prompt is None else prompt
        tools = OFFERED if offers else None
        turn = turn_of(format, before, tools)
        return cls(format, before, tools, turn, tuple(samples(turn)), tuple(_pieces(format)))


def hunt(random: Random, deadline: float, keep: Path) -> Tally:
    """Judge texts until `deadline`, and store one minimised failure of each kind in `keep`."""
    found: dict[str, Failure] = {}
    tried = refused = 0
    while spent() < deadline:
        try:
            subject = drawn(random)
        except FormatError:
            refused += 1
            continue
        for text in texts(subject, random):
            tried += 1
            failure = failure_of(subject, text, random.randrange(1 << 16))
            if failure and failure.kind not in found:
                found[failure.kind] = minimised(failure, replay)
            if spent() >= deadline:
                break
    for failure in found.values():
        keep_failure(keep, NAME, failure)
    return Tally(tried=tried, refused=refused, failures=tuple(found.values()))


def replay(text: str) -> Failure | None:
    """Return the failure of one input, or None."""
    data = json.loads(text)
    subject = Subject.of(data["format"], data["prompt"], data["offers"])
    return failure_of(subject, data["text"], data["seed"])


def failure_of(subject: Subject, text: str, number: int) -> Failure | None:
    """Return the judge's finding, if any. Every exception counts as a failure."""
    try:
        check_judged(subject.turn, text, number)
    except Lost as lost:
        kind, detail = lost.kind, lost.detail
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind, detail = f"{type(error).__name__} in {Path(place.filename).name}, {place.name}", str(error)
    else:
        return None
    offers = subject.tools is not None
    case = {"prompt": subject.prompt, "offers": offers, "text": text, "seed": number}
    return Failure(kind=kind, detail=detail, input=json.dumps({**case, "format": subject.format.to_dict()}))


# Formats.


def drawn(random: Random) -> Subject:
    """Return a Format of any origin. Raises `FormatError` if its parts don't fit together."""
    origin = random.random()
    if origin < 0.4:
        data = known(random.choice(names()))
    elif origin < 0.7:
        data = recombined(random)
    else:
        data = random.choice(_drawn_formats(random.randrange(1 << 20) % 64))
    prompt = None if random.random() < 0.9 else ""
    return Subject.of(data, prompt, random.random() < 0.85)


@cache
def names() -> list[str]:
    """Return the names of the Formats of `tests/formats`, of the families, and of the available vendors' templates."""
    families = (f"family {family.name}" for family in FAMILIES)
    vendors = (f"vendor {name}" for name in all_vendor_templates())
    return [*(path.stem for path in sorted(FORMATS.glob("*.json"))), *families, *vendors]


@cache
def known(name: str) -> Data:
    """Return the named Format."""
    origin, _, rest = name.partition(" ")
    if origin == "family":
        return next(family.format for family in FAMILIES if family.name == rest).to_dict()
    if origin != "vendor":
        found: Data = json.loads((FORMATS / f"{name}.json").read_text(encoding="utf-8"))
        return found
    with warnings.catch_warnings(action="ignore"):
        template = ChatTemplate.from_file(all_vendor_templates()[rest], bos_token="<s>", eos_token="</s>")
        return template.format.to_dict()


@cache
def _drawn_formats(number: int) -> list[Data]:
    """Return a batch of Formats drawn by Hypothesis; some will be rejected."""
    found: list[Data] = []
    seed(number)(drawing(max_examples=BATCH)(given(cases())(lambda case: found.append(case["format"]))))()
    return found


def recombined(random: Random) -> Data:
    """Return a Format with parts of others, and with parts of other call syntaxes."""
    data, other, third = (dict(known(random.choice(names()))) for _ in range(3))
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


def samples(turn: Turn) -> Iterator[str]:
    with warnings.catch_warnings(action="ignore"):
        for number in range(SAMPLES):
            try:
                yield turn.sample(number)
            except GrammarError:
                yield "Hi"


def _pieces(format: Format) -> Iterator[str]:
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


def texts(subject: Subject, random: Random) -> Iterator[str]:
    """Yield samples, prefixes of samples, and altered samples."""
    for _ in range(TEXTS):
        text = "".join(random.choices(subject.samples, k=random.choice((1, 1, 2))))
        if len(text) > LONGEST:
            at = random.randrange(len(text) - LONGEST + 1)
            text = random.choice((text[:LONGEST], text[at : at + LONGEST]))
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            text = random.choice(_CHANGES)(text, random, subject.pieces or ODD)
        if random.random() < 0.1:
            text = "".join(random.choices((*subject.pieces, *ODD), k=random.randrange(1, 12)))
        yield text[:LONGEST]


def _put_in(text: str, random: Random, pieces: tuple[str, ...]) -> str:
    at = random.randrange(len(text) + 1)
    piece = random.choice((random.choice(pieces), random.choice(pieces), random.choice(ODD)))
    return text[:at] + piece + text[at:]


def _cut(text: str, random: Random, _: tuple[str, ...]) -> str:
    return text[: random.randrange(len(text) + 1)]


def _change(how: Callable[[str, Random, tuple[str, ...]], str]) -> Callable[[str, Random, tuple[str, ...]], str]:
    """Return a function that changes one marker of a text."""

    def change(text: str, random: Random, pieces: tuple[str, ...]) -> str:
        present = [piece for piece in pieces if piece in text]
        if not present:
            return text
        piece = random.choice(present)
        places = [at for at in range(len(text)) if text.startswith(piece, at)]
        at = random.choice(places)
        return text[:at] + how(piece, random, pieces) + text[at + len(piece) :]

    return change


_CHANGES = (
    _cut,
    _put_in,
    _put_in,
    _change(lambda piece, _random, _pieces: piece * 2),
    _change(lambda _piece, _random, _pieces: ""),
    _change(lambda _piece, random, pieces: random.choice(pieces)),
    _change(lambda piece, random, _pieces: piece[: random.randrange(len(piece))]),
    _change(lambda piece, random, _pieces: random.choice(('"', "'", "`")).join(("", piece, ""))),
)
