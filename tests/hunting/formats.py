"""Random Formats: each is rejected with the name of a field, or parses, generates, samples and reads back correctly.

Strategy: Hypothesis draws and minimises inputs (`drawn_formats`). The check is a list of guarantees, each based on the
previous ones. The first broken guarantee names the kind of the failure.
"""

from __future__ import annotations

import importlib
import json
import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from answers import DIALECTS
from engines import Accepts, installed
from hunting.drawn_formats import Data, cases
from hunting.tally import Failure, Tally, drawing, keep_failure, place_of, spent
from hypothesis import Phase, given, seed
from hypothesis.errors import FlakyFailure
from judge.outcome import Lost, expect
from lexing import confusions_of, remainder_of
from meaning import differences
from properties.families import Reading
from properties.invariants import check, check_strict

from unrender import Malformed, Turn
from unrender.errors import FormatError, SchemaWarning
from unrender.format import Format, ReasoningMode, ToolMode
from unrender.types import Request, Tool

NAME = "formats"
SECONDS = 4.0
"""Limit of processor time for one guarantee, in seconds."""
SAMPLES = 3
BATCH = 40
"""Inputs that Hypothesis draws in one batch."""
_FIELD = re.compile(r"format(\.\w+(\[\d+\])*)*$")


class Slow(Exception):
    """A guarantee took too long to check."""


def hunt(random: Random, deadline: float, keep: Path) -> Tally:
    """Draw Formats until `deadline`, check each, and write one minimised failure of each kind into `keep`."""
    hunter = _Hunter(deadline)
    while spent() < deadline:
        hunter.batch(random.getrandbits(32))
    for failure in hunter.found.values():
        keep_failure(keep, NAME, failure)
    return Tally(tried=hunter.tried, refused=hunter.refused, failures=tuple(hunter.found.values()))


def replay(text: str) -> Failure | None:
    """Return the failure of one input, or None."""
    try:
        check_case(json.loads(text))
    except Lost as broken:
        return Failure(kind=broken.kind, detail=broken.detail, input=text)
    return None


@dataclass
class _Hunter:
    deadline: float
    found: dict[str, Failure] = field(default_factory=dict)
    tried: int = 0
    refused: int = 0

    def batch(self, number: int) -> None:
        """Draw a batch of cases. Minimise the first failure of a new kind and skip known kinds."""
        known = frozenset(self.found)
        smallest: dict[str, Failure] = {}

        def one(case: Data) -> None:
            if spent() > self.deadline:
                return
            self.tried += 1
            try:
                self.refused += check_case(case)
            except Lost as broken:
                text = json.dumps(case, ensure_ascii=False)  # Keep the order of properties.
                self._note(smallest, Failure(kind=broken.kind, detail=broken.detail, input=text))
                if broken.kind not in known:
                    raise

        drawn = drawing(
            max_examples=BATCH, phases=(Phase.generate, Phase.shrink), report_multiple_bugs=False, print_blob=False
        )
        try:
            seed(number)(drawn(given(cases())(one)))()
        except (Lost, FlakyFailure, ExceptionGroup):
            self.found = {**smallest, **{kind: self.found[kind] for kind in known}}

    @staticmethod
    def _note(smallest: dict[str, Failure], failure: Failure) -> None:
        other = smallest.get(failure.kind)
        if other is None or len(failure.input) < len(other.input):
            smallest[failure.kind] = failure


def check_case(case: Data) -> bool:
    """Check all guarantees for one input; return whether its Format was rejected. Raises `Lost`."""
    with _promise("from_dict", allowed=FormatError):
        try:
            format = Format.from_dict(case["format"])
        except FormatError as error:
            if not _FIELD.match(error.where):
                raise Lost("a refusal names no field", str(error)) from None
            return True
    _check_format(_reading(format, case), case["seed"])
    return False


def _reading(format: Format, case: Data) -> Reading:
    """Return a Format and a request. The name is the kind of a wrong reading: the modes of calls and reasoning, and the spelling of strings."""
    turn, reasoning, tools = format.turn, format.reasoning, format.tools
    choice: Any = case["choice"] if tools.mode is not ToolMode.NONE else "none"
    offered = tuple(Tool(name=tool["name"], parameters=tool["parameters"]) for tool in case["tools"])
    # A delimiter's prefill contains the start of reasoning. Without it, there is no reasoning.
    field = "prefill" if reasoning.mode is ReasoningMode.DELIMITER and turn.prefill else case["prefill"]
    return Reading(
        name=f"({tools.mode}, {tools.arguments.codec.strings}, {reasoning.mode})",
        format=format,
        request=Request(tools=offered, tool_choice=choice, parallel_tool_calls=case["parallel"]),
        prompt=(turn.headers or ("",))[0] + str(getattr(turn, field, "")),
    )


def _check_format(reading: Reading, seed: int) -> None:
    format, turn = reading.format, reading.turn
    with _promise("to_json"):
        expect("to_json", Format.from_json(format.to_json()) == format, "another format comes back")
    with _promise("parser"):
        begun = reading.parser()
        begun.finish()  # The parser may hold back a part of the message that is already in the prompt.
    readers = dict(_readers(turn))
    with _promise("lexemes"):
        confused = next(confusions_of(turn), None)
    expect("a lexeme is lost", confused is None, f"{confused}")
    with _promise("grammar"):
        draw = remainder_of(turn).drawer()
    for number in range(SAMPLES):
        with _promise("sample"):
            drawn = draw(seed + number)
        text = drawn.text
        with _promise("read"):
            parser = reading.parser()
            events = [*parser.feed(text), *parser.finish()]
        malformed = [event for event in events if isinstance(event, Malformed)]
        expect(f"malformed {reading.name}", not malformed, f"{malformed[:1]} in {text!r}")
        with _promise("meaning"):
            differing = differences(format, drawn, parser.message, begun.message)
            if format.cleans_content:  # The start of a call can't be content there, whatever was intended.
                differing = [said for said in differing if not said.startswith("content")]
        what = differing[0].partition(":")[0] if differing else ""
        expect(f"another {what} {reading.name}", not differing, f"{differing} in {text!r}")
        with _promise("chunks"):
            check(reading.parser, text)
        with _promise("strict"):
            check_strict(lambda: reading.parser(strict=True), text)
        for dialect, accepts in readers.items():
            with _promise(f"{dialect}: engine"):
                expect(f"{dialect} refuses", accepts(text), repr(text))
        _check_damaged(reading, text, number)


def _check_damaged(reading: Reading, text: str, number: int) -> None:
    """Check that an answer with a piece removed or doubled is read the same for every chunking."""
    random = Random(number)
    at = random.randrange(len(text) + 1)
    end = min(len(text), at + random.choice((1, 2, 5)))
    damaged = random.choice((text[:at] + text[end:], text[:end] + text[at:], text[:at]))
    with _promise("chunks of a damaged answer"):
        check(reading.parser, damaged)


def _readers(turn: Turn) -> Iterator[tuple[str, Accepts]]:
    """Write the answer's grammar in every dialect, and compile it with the installed engines."""
    for dialect, (engine, write, read) in DIALECTS.items():
        with _promise(dialect):
            written = write(turn)
        if installed(engine):
            importlib.import_module(engine)  # Compile outside the time limit, which would interrupt it halfway.
            with _promise(f"{dialect}: compile"):
                reader = read(written)
            yield dialect, reader


@contextmanager
def _promise(name: str, allowed: type[Exception] = Lost) -> Iterator[None]:
    """Turn too much processor time, and every exception except `allowed`, into a `Lost` with a kind."""
    signal.signal(signal.SIGVTALRM, _slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with warnings.catch_warnings(action="ignore", category=SchemaWarning):
            yield
    except (Lost, allowed):
        raise
    except Slow:
        raise Lost(f"{name}: slow", f"more than {SECONDS} s") from None
    except AssertionError as error:
        raise Lost(f"{name}: at {place_of(error)}", f"{error!s:.500}") from None
    except (Exception, RecursionError) as error:  # noqa: BLE001 - whatever it is, it is a finding
        raise Lost(f"{name}: {type(error).__name__} at {place_of(error)}", f"{error!s:.500}") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _slow(*_: object) -> None:
    raise Slow
