"""Defines the results of verification, and formats a counterexample as a diff."""

from __future__ import annotations

import json
import os.path
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from unrender.printable import Line, Page
from unrender.verify.renditions import AXES


class Verdict(StrEnum):
    """The result of checking a capability."""

    PASSED = "passed"
    """Every rendering was parsed back into its original message."""
    FAILED = "failed"
    """A rendering wasn't parsed back into its message. The finding contains a counterexample."""
    SKIPPED = "skipped"
    """The template doesn't render the capability, or an engine library is missing."""

    @property
    def in_history(self) -> str:
        """The verdict as shown for the history: "kept" for passed, "changed" for failed."""
        return {Verdict.PASSED: "kept", Verdict.FAILED: "changed"}.get(self, str(self))


_STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.SKIPPED: "dim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A message that wasn't parsed back from its rendering."""

    answer: str
    """The template's rendering of the answer, as a model would generate it."""
    expected: str
    found: str
    chunking: str = "whole"
    """Chunking of the answer, e.g. `whole` or `every 1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityFinding:
    """The verdict on one capability."""

    capability: str
    verdict: Verdict
    held: int = 0
    """Number of renderings that were parsed back into their message."""
    total: int = 0
    """Number of renderings that showed the capability."""
    counterexample: Counterexample | None = None
    reason: str = ""
    """The reason why the capability was skipped, or a description of the tested requests."""

    def __str__(self) -> str:
        count = f" ({self.held} of {self.total})" if self.total else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.capability}: {self.verdict}{count}{reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgery:
    """A conversation that was forged in one kind of text."""

    kind: str
    """The kind of text, e.g. "tool result"."""
    in_text: bool
    """True if the prompt contains the forged markers. An engine that encodes this prompt as text may read them as special tokens."""
    in_ids: bool
    """True if a forged marker can be a special token even with `Turn.encode`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Page):
    """All findings on one template."""

    findings: tuple[CapabilityFinding, ...]
    """Findings about the format: answers, prompts, grammars."""
    history: tuple[CapabilityFinding, ...] = ()
    """Findings about the template's history, i.e. whether each prompt starts with the previous one."""
    forgeries: tuple[Forgery, ...] = ()
    """Conversations that were forged in each kind of text. Empty if the template has no known markers."""
    refusal: str = ""
    """The reason why the template rendered no conversation, so that nothing was checked. Empty if something was checked."""

    @property
    def failed(self) -> tuple[CapabilityFinding, ...]:
        """The capabilities that failed."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.FAILED)

    @property
    def passed(self) -> bool:
        """True if no check failed, and answers rendered by the template were parsed back.

        Answers generated from the format's own grammars don't count, because the same format parses them.
        """
        return not self.failed and any(it.capability in AXES and it.verdict is Verdict.PASSED for it in self.findings)

    @property
    def forged(self) -> str:
        """The number of kinds of text in which a conversation can be forged, as a sentence without a full stop."""
        counts = [sum(getattr(it, way) for it in self.forgeries) for way in ("in_text", "in_ids")]
        return f"possible in {counts[0]} of {len(self.forgeries)} kinds of text, with Turn.encode in {counts[1]}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {
            "passed": self.passed,
            **({"refusal": self.refusal} if self.refusal else {}),
            "findings": [asdict(finding) for finding in self.findings],
            "history": [asdict(finding) for finding in self.history],
            "forgeries": [asdict(forgery) for forgery in self.forgeries],
        }

    def _page(self) -> Iterator[Line]:
        if self.refusal:
            yield [(self.refusal, "red")]
        for found in () if self.refusal else (*self.findings, *self.history):
            yield [(str(found), _STYLES[found.verdict])]
        if self.forgeries:
            yield [(f"forged conversations: {self.forged}", "")]


# Formatting.


_AROUND = 30
"""Number of matching characters shown around a difference."""
_PARTS = ("reasoning", "reasoning_content", "content", "tool_calls", "failed_calls")


def diff(example: Counterexample) -> Iterator[str]:
    """Yield the differences between the expected and the parsed message as lines. `-` marks the expected value, and `+` the parsed one.

    >>> example = Counterexample(answer="<a>x", expected='{"content": "x"}', found='{"content": "<a>x"}')
    >>> list(diff(example))
    ['- content: "x"', '+ content: "<a>x"']
    """
    expected, found = _message(example.expected), _message(example.found)
    if expected is None or found is None:
        yield from map("".join, zip("-+", (f" {text}" for text in _narrowed(example)), strict=True))
        return
    for part in _PARTS:
        pair = [_comparable(part, message.get(part)) for message in (expected, found)]
        for sign, it in zip("-+", pair, strict=True) if pair[0] != pair[1] else ():
            yield f"{sign} {part}: {json.dumps(it, ensure_ascii=False)}"


def _message(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _comparable(part: str, value: Any) -> Any:
    """Return the value without call ids, because the parser generates ids if the format has none."""
    return [call.get("function", call) for call in value or ()] if part == "tool_calls" else value or ""


def _narrowed(example: Counterexample) -> Iterator[str]:
    """Yield the expected and the found text as literals, shortened to the difference and its context."""
    a, b = example.expected, example.found
    # Despite its name, `commonprefix` compares arbitrary text character by character.
    start = len(os.path.commonprefix([a, b]))
    end = len(os.path.commonprefix([a[start:][::-1], b[start:][::-1]]))
    for text in (a, b):
        left, right = max(start - _AROUND, 0), min(len(text) - end + _AROUND, len(text))
        before, after = "…" if left else "", "…" if right < len(text) else ""
        yield before + repr(text[left:right]) + after
