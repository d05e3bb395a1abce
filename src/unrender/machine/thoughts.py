"""Instructions that decide which reasoning markers count. All others are text, as in "The tag `<think>` opens a thought".

Rules:
- A special token always counts, if the caller distinguishes special tokens from text.
- Reasoning may start at the start of an answer, after a call, and after an end of turn. Elsewhere, a start marker counts only at the start of
  a line and outside of code, and only if its end marker follows before the turn ends. Until then, the text is buffered.
- An end marker in a sentence or between quotation marks is text. So is any end marker after text if the answer already contained a marker
  of reasoning. Otherwise, an end marker without a start marker ends reasoning: all text before it is reasoning. Events are final, so
  a stream contains this text and the marker as content, and a `Malformed` event reports the marker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.limits import MAX_BLANK, MAX_CONTEXT
from unrender.machine import ContentText, Malformed
from unrender.machine.instructions import is_special, undecided
from unrender.machine.interpreter import Machine
from unrender.machine.quotation import is_mentioned, opened
from unrender.nodes import Role
from unrender.values.finder import SPACE, Finder, end_of

_INDENT = re.compile(r" {0,3}\Z")
"""Matches the text before a marker at the start of a line. A line with more blanks is a block of code in Markdown."""
_STARTED = "a start marker of reasoning before its end marker"
_ENDED = "an end marker of reasoning after its start marker"


def _content_before(machine: Machine) -> str:
    """Return the content directly before the current position, or "" after a marker or a call."""
    spans, end = len(machine.span_ends), machine.position
    while spans and machine.span_roles[spans - 1] is Role.LAYOUT:
        spans -= 1
        end = machine.span_ends[spans - 1] if spans else end
    return machine.context(end, spans, MAX_CONTEXT)


def _in_code(before: str) -> bool:
    """Return whether a block of code or a comment is open at the end of the text, or its last line is quoted."""
    shown = opened(before, cut=len(before) >= MAX_CONTEXT)
    return shown is not None and bool(shown.fence or shown.any_text or shown.certain)


@dataclass(frozen=True, slots=True)
class OpenThought:
    """Handles a start marker of reasoning in content. If the marker may count, execution continues at the next instruction."""

    marker: str
    """The marker, including the whitespace before it."""
    text: int
    """Address of a `Mention`."""
    closed: bool = False
    """True if the marker counts only before an end marker, wherever it is."""

    def step(self, machine: Machine) -> bool:
        may_start = machine.thinks or is_special(machine)
        if may_start and not self.closed:
            return machine.go_on()
        before = _content_before(machine)
        cut = len(before) >= MAX_CONTEXT
        shown = before + self.marker[: -len(self.marker.lstrip())]
        line = shown.rpartition("\n")
        starts = _INDENT.fullmatch(line[2]) and (line[1] or not cut) and not _in_code(shown)
        if not (may_start or starts) or machine.position < machine.unended:
            return machine.go_to(self.text)
        frame = machine.way_back((), self.text)
        frame.holds, frame.reported, frame.thought = True, False, True
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Mention:
    """Consumes a marker that is text, then continues at `hub`."""

    size: int
    hub: int
    wanted: str = _ENDED
    """The text that the format requires, or "" if the marker isn't part of the format, so that it isn't reported."""
    role: Role = Role.CONTENT
    """`Role.MARKER` for a meaningless token, which is dropped."""

    def step(self, machine: Machine) -> bool:
        # If the end marker is missing, it's also missing after all start markers before this position.
        if machine.left is not None:
            machine.left, machine.unended = None, machine.base + machine.failed_at
        marker = machine.buffer[machine.at : machine.at + self.size]
        if self.wanted and not machine.roles:
            machine.malformed(marker, self.wanted)
        if self.role is Role.MARKER:
            machine.take(self.role, machine.at + self.size)
            return machine.go_to(self.hub)
        machine.answered = machine.mentioned = True
        machine.text(Role.CONTENT, machine.at + self.size)
        return machine.go_to(self.hub)


@dataclass(frozen=True, slots=True)
class CloseThought:
    """Handles the end of reasoning. If the reasoning isn't closed, or its end marker is only mentioned, its start marker is text too."""

    size: int = 0
    """Length of the end marker. 0 if the reasoning ends without one."""
    ends: Finder | None = None
    """Markers that end a turn."""
    given: bool = False
    """True if the reasoning is closed by a call that counts."""

    def step(self, machine: Machine) -> bool:
        frame = machine.frames[-1] if machine.frames else None
        if frame is None or not frame.thought:
            return machine.go_on()
        if self.ends is not None and not is_special(machine):
            line = machine.context(machine.position, len(machine.span_ends), MAX_CONTEXT)
            mentioned = is_mentioned(line, machine.buffer, machine.at + self.size, final=machine.final, opened=True)
            if mentioned is None:
                return True
            before = machine.context(frame.at, frame.spans, MAX_CONTEXT)
            shown = None if mentioned else opened(before, cut=len(before) >= MAX_CONTEXT)
            if shown and shown.spans_lines:
                mentioned = shown.closed(machine.buffer, machine.at + self.size, self.ends, final=machine.final)
                if mentioned is None:
                    return True
            if mentioned:
                return machine.fail(_ENDED)
        elif not (self.size or self.given):
            return machine.fail(_ENDED)
        machine.frames.pop()
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class CloseUnopened:
    """Handles an end marker of reasoning in content.

    If the marker ends reasoning that has no start marker, execution continues at the next instruction.
    """

    size: int
    ends: Finder
    dropped: int
    """Address that drops a marker after no text. -1 if the marker isn't part of the format, so that it's always reported."""
    text: int
    """Address of a `Mention`."""

    def step(self, machine: Machine) -> bool:
        before = _content_before(machine)
        declared = self.dropped >= 0
        if declared and not before:
            machine.thinks, machine.mentioned = False, True
            return machine.go_to(self.dropped)
        end = machine.at + self.size
        counts = not (machine.mentioned or machine.calls or machine.barrier or machine.roles)
        counts &= declared or machine.policy.undeclared_reasoning == "read"
        if counts and not is_special(machine):
            after = end_of(SPACE, machine.buffer, end, end + MAX_BLANK)
            if undecided(machine, self.ends, after):
                return True
            mentioned = is_mentioned(before, machine.buffer, end, final=machine.final)
            if mentioned is None:
                return True
            counts = after < len(machine.buffer) and not self.ends.at(machine.buffer, after)
            counts = counts and not mentioned and not _in_code(before)
        if not counts:
            return machine.go_to(self.text)
        marker = machine.buffer[machine.at : end]
        if machine.strict:
            machine.malformed(marker, _STARTED)
        machine.events += [ContentText(marker), Malformed(marker, machine.position, _STARTED, ends_reasoning=True)]
        machine.mentioned, machine.answered, machine.split = True, False, machine.position
        machine.take(Role.MARKER, end)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class EndTurn:
    """Handles a special token that ends a turn, or has no meaning. A token in a sentence, in code or between quotation marks is text."""

    size: int
    text: int
    """Address of a `Mention`."""
    openers: tuple[str, ...] = ()
    """Start markers of reasoning."""

    def step(self, machine: Machine) -> bool:
        end = machine.at + self.size
        if not machine.answered or machine.specials or (end == len(machine.buffer) and machine.final):
            return machine.go_on()
        before = _content_before(machine)
        # In `<results>x</results>`, the start tag is content, so the end tag is, too.
        marker = machine.buffer[machine.at : end].strip()
        if marker.startswith("</") and marker.replace("/", "", 1) in before:
            return machine.go_to(self.text)
        # In `Write <think>hm</think> around it.`, the start marker is content, and the text before it is the start of the sentence.
        at = max(map(before.rfind, self.openers), default=-1)
        opened = at >= 0 and "\n" not in before[at:]
        # If the start marker starts the line, the sentence starts with it.
        said = before[:at] if opened and before[:at].rpartition("\n")[2].strip() else before
        mentioned = before != "" and is_mentioned(said, machine.buffer, end, final=machine.final, opened=opened)
        if mentioned is None:
            return True
        return machine.go_to(self.text) if mentioned or (before and _in_code(before)) else machine.go_on()
