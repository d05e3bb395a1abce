"""The machine's instructions for text and markers. Instructions are frozen data with a `step` method.

Rules: a step that can't decide yet returns True and leaves the machine unchanged. A step that fails returns the result of `machine.fail`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_CONTEXT, MAX_NAME
from unrender.machine.call_events import begins_call, begins_line, commit, cut_short, drop_opener, unquote
from unrender.machine.frames import Frame
from unrender.machine.interpreter import OR, Machine
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow, end_of

SPACE = re.compile(r"\s*")
NO_MARKERS = Finder(())
BACKQUOTES = "```"
FENCE = re.compile(r"```\w{0,32}+")
"""Three backquotes and a language. The longest known language name has 23 letters."""
_LEAST_TORN = 3
"""Minimum number of characters that identify a truncated marker: `<to` starts `<tool_call>`, but `<t` may start a table."""
_SIGN = re.compile(r"[^\w\s]")
_CLOSING = re.compile(r"\W+\Z")
_FENCE_LINE = re.compile(r"\s{0,64}+```\w{0,32}+(?!\w)[ \t]{0,64}+\n?")


@dataclass(frozen=True, slots=True)
class FreeText:
    """`(!marker .)*`: free text of `role`.

    At a marker, execution continues at its target in `table`; at the end of the output, at `end`.
    """

    role: Role
    finder: Finder
    table: Mapping[str, int]
    end: int
    ending: str
    """Layout at the end of a turn. If nothing follows, such layout isn't content."""
    flow: Flow
    """Fast path for text without markers."""
    openers: tuple[str, ...] = ()
    """Markers that always indicate a call."""

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        # Most chunks don't contain even the first character of a marker, so they need no search, and the next chunk needs no instruction.
        if not machine.final and self.finder.absent(buffer, machine.at):
            self._emit(machine, self._before_ending(machine, len(buffer)) if self.ending else len(buffer))
            machine.flow = self.flow
            return True
        limit, literal = self._marker(machine)
        if literal:
            self._emit(machine, limit)
            # `_emit` doesn't consume whitespace at the start of an answer, which is layout if `<call>` follows.
            machine.take(Role.LAYOUT, limit)
            return machine.go_to(self.table[literal])
        if machine.final and self.openers and (torn := self._torn(machine)) >= 0:
            self._emit(machine, torn)
            machine.take(Role.LAYOUT, torn)
            drop_opener(machine)
            return machine.go_to(self.end)
        self._emit(machine, self._before_ending(machine, limit) if self.ending else limit)
        if not machine.final:
            machine.flow = self.flow
            return True
        # At the end of the output, if templates write "\n" before the end of the turn, the content of "Hi\n" is "Hi".
        machine.take(Role.LAYOUT, len(buffer))
        return machine.go_to(self.end)

    def _marker(self, machine: Machine) -> tuple[int, str]:
        """Return the position of the first marker, and the marker. Without a marker, return the end of the text and ""."""
        buffer = machine.buffer
        if not machine.final:
            # Wait for one more character, because `<t>` may be the start of the marker `<t>\n`, which has another target.
            return self.finder.decided(buffer, machine.at, whole=True)
        at, literal = self.finder.find(buffer, machine.at)
        return (at, literal) if literal else (len(buffer), "")

    def _torn(self, machine: Machine) -> int:
        """Return the position of a call marker that is truncated at the end of the output; -1 if there is none.

        If the token limit cut the output off, a few characters of a marker are enough. Otherwise, a truncated marker is text, unless the
        answer is nothing but the marker, truncated after its last word.
        """
        buffer, end = machine.buffer, len(machine.buffer)
        for size in range(min(max(map(len, self.openers)), end - machine.at), _LEAST_TORN - 1, -1):
            tail = buffer[end - size :]
            opener = next((opener for opener in self.openers if opener.startswith(tail)), "")
            if opener and self._shows(machine, opener, tail):
                return end - size
        return -1

    def _shows(self, machine: Machine, opener: str, tail: str) -> bool:
        """Return whether `tail` counts as a truncated `opener`."""
        if (
            machine.length_limited
        ):  # ` to=f` is a truncated marker. `fun` is a word, although `functools[` starts with it.
            return len(tail.strip()) >= _LEAST_TORN and _SIGN.search(tail) is not None
        alone = not machine.answered and not machine.buffer[machine.at :].removesuffix(tail).strip()
        # A plain word such as `functions` is a valid answer, although it's also the start of `functions.`.
        return alone and not tail.isalpha() and len(tail) >= len(_CLOSING.sub("", opener))

    def _before_ending(self, machine: Machine, limit: int) -> int:
        # With "\n" as the ending, hold back the line break of "Hi\n", which is layout at the end of the output, otherwise text.
        sizes = (len(self.ending),) if machine.final else range(len(self.ending), 0, -1)
        found = (size for size in sizes if machine.buffer.endswith(self.ending[:size], machine.at))
        return min(limit, len(machine.buffer) - next(found, 0))

    def _emit(self, machine: Machine, end: int) -> None:
        if not machine.answered and self.role is Role.CONTENT:
            # Whitespace doesn't start an answer. If a call follows, as in "\n\n<call>", the whitespace is layout.
            if end - machine.at < MAX_BLANK and not machine.buffer[machine.at : end].strip():
                return
            machine.answered = True
        machine.text(self.role, end)


@dataclass(frozen=True, slots=True)
class Attempt:
    """`a / b / text`: try the targets in order; if none matches, the marker is text."""

    targets: tuple[int, ...]
    otherwise: int
    reported: bool
    sealed: int = -1
    """If not -1, hold back everything until all calls are parsed, then continue at this address."""
    alone: bool = True
    """True if the marker always indicates a call. Other markers are reported only if a tool name follows."""
    hub: int = -1
    """The free text around the marker, if a call in it may be quoted; otherwise -1."""
    role: Role = Role.CONTENT
    """The role of the free text around the marker."""
    weak: bool = False
    """True if the marker is a bracket, which also occurs in prose and code."""
    on_line: bool = False
    """True if the marker starts a call only at the start of a line, after optional whitespace."""

    def step(self, machine: Machine) -> bool:
        if machine.left is not None:
            return self._leave(machine, machine.left)
        # In "<think>I could <call>…</call>, but no</think>", only the text after the call shows that it isn't meant to run.
        holds = self.sealed >= 0
        if holds and machine.policy.calls_in_reasoning == "ignore":
            # No target was tried, so no attempt failed at a later position, and only the marker is text.
            machine.failed_at = machine.at
            return machine.go_to(self.otherwise)
        frame = machine.way_back(self.targets[1:], machine.pc)
        if self.on_line and not begins_line(machine, frame):
            machine.frames.pop()
            machine.failed_at = machine.at
            return machine.go_to(self.otherwise)
        frame.holds, frame.sealed, frame.alone = holds, self.sealed, self.alone
        frame.reported = self.reported and not holds
        machine.failed_at, machine.wanted, machine.loose = machine.at, "", False
        frame.role = self.role
        if not (
            machine.specials and machine.buffer.startswith(machine.specials, end_of(SPACE, machine.buffer, machine.at))
        ):
            frame.hub, frame.anchored = self.hub, self.weak
        return machine.go_to(self.targets[0])

    def _leave(self, machine: Machine, frame: Frame) -> bool:
        """Continue after all targets have failed."""
        machine.left = None
        if frame.limited:
            machine.cut_from = frame.at
            if begins_call(machine, frame):
                return cut_short(machine, frame.call)
        if quotation := machine.quotation:
            # A call that may be quoted is followed by text, not by another call.
            if quotation.any_text:
                return machine.quote()
            unquote(machine)
        # Prose doesn't contain `<tool_call>` or `<function=now`, so report such a marker if no call follows.
        if frame.reported and frame.alone:
            failed = machine.buffer[machine.at : machine.failed_at] or machine.buffer[machine.at : machine.at + 1]
            machine.malformed(failed, machine.wanted)
            machine.wanted = ""
        return machine.go_to(self.otherwise)


def tool_at(machine: Machine, at: int) -> bool | None:
    """Return whether a tool name starts at `at`; None if more text is needed.

    If all tool names are allowed, any word counts as one.
    """
    tools = machine.request.tools
    text = machine.buffer[at : at + MAX_NAME]
    if tools is not None and any(text.startswith(tool.name) for tool in tools):
        return True
    # `get_we` may become `get_weather`. `get_wet` can't become the name of a tool.
    if not machine.final and (not text or any(tool.name.startswith(text) for tool in tools or ())):
        return None
    return tools is None and text[:1].isidentifier()


def _take_marker(machine: Machine, role: Role, otherwise: Role, end: int) -> None:
    """Consume a marker, or the layout around it. A marker becomes text if its role is mapped to text and the model wrote it."""
    # If the caller maps reasoning to content, `<think>` is content too, unless it's part of the prompt (before 0).
    if role in machine.roles and machine.base + machine.at >= 0:
        machine.answered = True
        machine.text(role, end)
    else:
        machine.take(otherwise, end)


@dataclass(frozen=True, slots=True)
class Lit:
    """A literal marker, `"text"`. A reasoning marker is text if reasoning is mapped to content."""

    text: str
    role: Role = Role.MARKER
    others: tuple[str, ...] = ()
    """Other spellings of the marker."""
    optional: bool = False
    instead: tuple[str, ...] = ()
    """Markers that follow if this one is missing, and that the next instruction parses."""
    slot: Slot | None = None
    """The slot to repeat as the marker's text, e.g. the argument name in `</city>`."""

    def step(self, machine: Machine) -> bool:
        texts = (self._text(machine), *self.others)
        for text in texts:
            if machine.buffer.startswith(text, machine.at):
                _take_marker(machine, self.role, Role.MARKER, machine.at + len(text))
                return machine.go_on()
        # In `<city>Rome</f></call>`, only the end marker of the value is missing.
        if machine.buffer.startswith(self.instead, machine.at):
            machine.malformed("", repr(self.text))
            return machine.go_on()
        if any(map(machine.may_begin, (*texts, *self.instead))):
            return True
        return machine.go_on() if self.optional else machine.fail(repr(texts[0]))

    def _text(self, machine: Machine) -> str:
        if self.slot is None:
            return self.text
        return machine.current.key if self.slot is Slot.KEY else machine.current.name


def undecided(machine: Machine, markers: Finder, at: int) -> bool:
    """Return whether more text is needed to identify the marker at `at`: the text ends there, or a longer marker is possible."""
    return not machine.final and (at >= len(machine.buffer) or markers.may_grow(machine.buffer, at))


@dataclass(frozen=True, slots=True)
class Look:
    """`&marker`: require one of the markers, or a tool name."""

    markers: Finder = NO_MARKERS
    target: int = -1
    """Address at which execution continues if a marker is found; -1 if the marker is required."""
    ends: bool = False
    """True if the end of the output is accepted too."""
    takes: bool = False
    named: bool = False
    """True if a call must start here with its tool name, before any content."""

    def step(self, machine: Machine) -> bool:
        if self.named:
            named = not machine.answered and tool_at(machine, machine.at)
            if named is None:
                return True
            return machine.go_on() if named else machine.fail("the name of a tool")
        if undecided(machine, self.markers, machine.at):
            return True
        marker = self.markers.at(machine.buffer, machine.at)
        if self.takes:
            machine.take(Role.MARKER, machine.at + len(marker))
        found = bool(marker) or (self.ends and machine.at >= len(machine.buffer))
        if self.target >= 0:
            return machine.go_to(self.target if found else machine.pc + 1)
        wanted = "the end of the output" if self.ends else OR.join(map(repr, self.markers.literals))
        return machine.go_on() if found else machine.fail(wanted)


@dataclass(frozen=True, slots=True)
class Fence:
    """The start of an optional Markdown fence: three backquotes and a language."""

    worded: bool = True
    """True if a word after the backquotes is a language; otherwise the next instruction reads it."""
    opens: bool = False
    """True if the fence and its line break are required, at the start of the answer."""

    def step(self, machine: Machine) -> bool:
        if self.opens:
            return self._open(machine)
        bare = machine.at + len(BACKQUOTES) * machine.buffer.startswith(BACKQUOTES, machine.at)
        end = end_of(FENCE, machine.buffer, machine.at) if self.worded else bare
        found = end > machine.at
        # "```js" may become "```json", and "``" may become a fence.
        longer = self.worded and end == len(machine.buffer) and not machine.final
        if longer if found else machine.may_begin(BACKQUOTES):
            return True
        if found:
            machine.fenced = True
            machine.take(Role.MARKER, end)
        return machine.go_on()

    def _open(self, machine: Machine) -> bool:
        found = _FENCE_LINE.match(machine.buffer, machine.at)
        if not found or machine.answered:
            return machine.fail("a Markdown fence")
        # Without the line break, "```js" may become "```json".
        if found.end() == len(machine.buffer) and not machine.final and not found.group().endswith("\n"):
            return True
        machine.take(Role.MARKER, found.end())
        commit(machine)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Space:
    """Whitespace: all of it, or only the part that matches the layout `text`. Next to verbatim text, no further character is consumed."""

    text: str | None = None
    role: Role = Role.LAYOUT
    kept: bool = False
    """True next to a meaningless marker: the whitespace is content if it's between content."""

    def step(self, machine: Machine) -> bool:
        if self.text is None and not self.kept:
            return take_space(machine) or machine.go_on()
        text, buffer, at = self.text, machine.buffer, machine.at
        end = end_of(SPACE, buffer, at) if text is None else at + shared_length(buffer, at, text)
        waits = end == len(buffer) and not machine.final
        # The layout "\n\n" may be split over two chunks.
        if waits and text is not None and end < at + len(text):
            return True
        if self.kept:
            machine.carry(end)
        else:
            _take_marker(machine, self.role, Role.LAYOUT, end)
        return (waits and text is None) or machine.go_on()


def take_space(machine: Machine) -> bool:
    """Consume whitespace, if any, and return True if more may follow."""
    buffer, at = machine.buffer, machine.at
    if at < len(buffer) and not buffer[at].isspace():
        return False
    end = end_of(SPACE, buffer, at)
    machine.take(Role.LAYOUT, end)
    return end == len(buffer) and not machine.final


def shared_length(text: str, start: int, layout: str) -> int:
    """Return the number of characters of `layout` at `start`, e.g. 0, 1 or 2 for a layout of two line breaks."""
    if text.startswith(layout, start):
        return len(layout)
    return next((size for size, char in enumerate(layout) if not text.startswith(char, start + size)), len(layout))


@dataclass(frozen=True, slots=True)
class Unsure:
    """A marker in free text that may itself be text, in which case execution continues at `hub`.

    A marker ends reasoning unless it follows an unclosed backquote on its line. A marker made of words counts only if whitespace and one of
    `ends` follow it. If the format has no reasoning, an end marker without a start marker counts once, at the end of a line.
    """

    role: Role
    size: int
    hub: int
    ends: Finder | None = None
    """Texts that may follow the marker: other end markers, and the starts of other parts."""
    undeclared: Literal["", "opener", "closer"] = ""
    """Set if this is a reasoning marker and the format has no reasoning."""

    def step(self, machine: Machine) -> bool:
        if self.undeclared:
            counts = self._closes(machine)
        elif self.ends:
            counts = self._is_last(machine, self.ends)
        else:
            line = machine.context(machine.position, len(machine.span_ends), MAX_CONTEXT).rpartition("\n")[2]
            counts = line.count("`") % 2 == 0
        if counts is None:
            return True
        if counts:
            return machine.go_on()
        machine.answered |= self.role is Role.CONTENT
        machine.text(self.role, machine.at + self.size)
        return machine.go_to(self.hub)

    def _is_last(self, machine: Machine, ends: Finder) -> bool | None:
        end = machine.at + self.size
        after = end_of(SPACE, machine.buffer, end, end + MAX_BLANK)
        if after - end < MAX_BLANK and undecided(machine, ends, after):
            return None
        return after >= len(machine.buffer) or bool(ends.at(machine.buffer, after))

    def _closes(self, machine: Machine) -> bool | None:
        # A real end marker ends its line, but a mention continues: "</think>, the closer, is …".
        end = machine.at + self.size
        counts = self.undeclared == "closer" and not machine.mentioned
        if counts and end == len(machine.buffer) and not machine.final:
            return None
        machine.mentioned = True
        ends_line = end == len(machine.buffer) or machine.buffer.startswith("\n", end)
        if not counts or not ends_line or not _reads(machine):
            return False
        machine.malformed(machine.buffer[machine.at : end], "a start marker of reasoning before its end marker")
        return True


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at another instruction."""

    target: int
    loose: bool = False
    """True if the calls at the target start without their outermost marker."""

    def step(self, machine: Machine) -> bool:
        machine.loose |= self.loose
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Halt:
    """The end of the output."""

    wanted: str = ""
    """The text that is missing if the output ends here."""

    def step(self, machine: Machine) -> bool:
        if self.wanted:
            machine.malformed("", self.wanted)
        machine.halted = True
        return True


# The instructions below handle reasoning markers that the format doesn't have. A start marker counts only at the very start of an answer.
# An end marker without a start marker counts only once, at the end of a line. Markers in prose and examples stay text.


@dataclass(frozen=True, slots=True)
class OpenUndeclared:
    """The start of an answer. A known marker starts reasoning; otherwise, execution continues."""

    finder: Finder
    """The known markers, and the format's own markers that start like them."""
    table: Mapping[str, int]
    otherwise: int

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        # In `\n<think>`, whitespace precedes the marker. Only a limited amount of whitespace is buffered.
        blank = at == len(buffer) and at - machine.at < MAX_BLANK
        if not machine.final and (blank or self.finder.may_grow(buffer, at)):
            return True
        marker = self.finder.at(buffer, at)
        machine.pc = self.table.get(marker, self.otherwise) if _reads(machine) else self.otherwise
        if machine.pc != self.otherwise:
            machine.take(Role.LAYOUT, at)
            # After this reasoning, `<think>` and `</think>` are text.
            machine.malformed(marker, "an answer without reasoning, or with the format's own markers")
            machine.mentioned = True
        return False


def _reads(machine: Machine) -> bool:
    return machine.policy.undeclared_reasoning == "read"
