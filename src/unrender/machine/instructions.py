"""The machine's instructions for text and markers. An instruction is frozen data with a `step` method.

Rules: a step that can't decide yet returns True and leaves the machine unchanged. A step that fails returns the result of `machine.fail`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_BLANK, MAX_CONTEXT, MAX_NAME, MAX_WORD, MAX_WORDS
from unrender.machine import BrokenText
from unrender.machine.call_events import begins_call, begins_line, commit, cut_short, drop_opener, unquote
from unrender.machine.frames import Frame
from unrender.machine.interpreter import OR, Machine
from unrender.nodes import Role
from unrender.values.finder import SPACE, Finder, Flow, end_of

NO_MARKERS = Finder(())
FENCE = re.compile(r"```\w{0,32}+")
"""Matches three backquotes and a language. The longest known language name has 23 letters."""
_LEAST_TORN = 3
"""Minimum length of a truncated marker. `<to` counts as the start of `<tool_call>`, but `<t` may start a table."""
_WORD = re.compile(rf"[^\s{{}}]{{0,{MAX_WORD}}}")
_NOWHERE, _UNDECIDED = -1, -2
_SIGN = re.compile(r"[^\w\s]")
_CLOSING = re.compile(r"\W+\Z")
_FENCE_LINE = re.compile(r"\s{0,64}+```\w{0,32}+(?!\w)[ \t]{0,64}+\n?")


@dataclass(frozen=True, slots=True)
class FreeText:
    """Consumes free text up to the next marker, as in `(!marker .)*`.

    Execution continues at the marker's address in `table`. At the end of the output, execution continues at `end`.
    """

    role: Role
    finder: Finder
    table: Mapping[str, int]
    end: int
    ending: str
    """Layout that may end a turn. At the end of the output, this layout isn't content."""
    flow: Flow
    """Fast path for text without markers."""
    openers: tuple[str, ...] = ()
    """Markers that always indicate a call."""

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        # Most chunks don't contain even the first character of a marker, so skip the search and let the next chunk take the fast path.
        if not machine.final and self.finder.absent(buffer, machine.at):
            self._emit(machine, self._before_ending(machine, len(buffer)) if self.ending else len(buffer))
            machine.flow = self.flow
            return True
        # Wait for another character if the marker may continue. For example, `<t>` may become `<t>\n`, which has another target.
        limit, literal = self.finder.search(buffer, machine.at, final=machine.final, whole=True)
        if literal:
            self._emit(machine, limit)
            # `_emit` doesn't consume whitespace at the start of an answer. If a marker such as `<call>` follows, this whitespace is layout.
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
        # At the end of the output, treat the ending as layout: if templates end a turn with "\n", the content of "Hi\n" is "Hi".
        machine.take(Role.LAYOUT, len(buffer))
        return machine.go_to(self.end)

    def _torn(self, machine: Machine) -> int:
        """Return the position of a call marker that is truncated at the end of the output. Return -1 if there is no such marker.

        If the token limit cut off the output, a few characters of a marker are enough. Otherwise, a truncated marker is text, unless the
        answer consists only of the marker and the marker is complete up to its last word.
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
        # A truncated marker must contain a special character, as in ` to=f`. A word such as `fun` isn't enough for `functools[`.
        if machine.length_limited:
            return len(tail.strip()) >= _LEAST_TORN and _SIGN.search(tail) is not None
        alone = not machine.answered and not machine.buffer[machine.at :].removesuffix(tail).strip()
        # A single word such as `functions` is a valid answer, even if a marker such as `functions.` starts with it.
        return alone and not tail.isalpha() and len(tail) >= len(_CLOSING.sub("", opener))

    def _before_ending(self, machine: Machine, limit: int) -> int:
        # Hold back a possible ending, such as the line break of "Hi\n". The ending is layout at the end of the output, otherwise text.
        sizes = (len(self.ending),) if machine.final else range(len(self.ending), 0, -1)
        found = (size for size in sizes if machine.buffer.endswith(self.ending[:size], machine.at))
        return min(limit, len(machine.buffer) - next(found, 0))

    def _emit(self, machine: Machine, end: int) -> None:
        if not machine.answered and self.role is Role.CONTENT:
            # Don't emit whitespace at the start of an answer yet. If a call follows, as in "\n\n<call>", the whitespace is layout.
            if end - machine.at < MAX_BLANK and not machine.buffer[machine.at : end].strip():
                return
            machine.answered = True
        machine.text(self.role, end)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Tries the targets in order, as in `a / b / text`. If no target matches, the marker is text."""

    targets: tuple[int, ...]
    otherwise: int
    reported: bool
    sealed: int = -1
    """Address at which execution continues after all calls are parsed. Until then, everything is buffered. -1 if calls don't have to be
    buffered.
    """
    alone: bool = True
    """True if the marker always indicates a call. Any other marker is reported only if a tool name follows."""
    hub: int = -1
    """Address of the free text around the marker if the call may be quoted, otherwise -1."""
    role: Role = Role.CONTENT
    """The role of the free text around the marker."""
    weak: bool = False
    """True if the marker is a bracket, which also occurs in prose and code."""
    on_line: bool = False
    """True if the marker must start a line to start a call. Whitespace may precede the marker."""

    def step(self, machine: Machine) -> bool:
        if machine.left is not None:
            return self._leave(machine, machine.left)
        # Buffer calls inside reasoning. In "<think>I could <call>…</call>, but no</think>", the text after the call shows that it isn't
        # meant to run.
        holds = self.sealed >= 0
        frame = machine.way_back(self.targets[1:], machine.pc)
        if self.on_line and not begins_line(machine, frame):
            machine.frames.pop()
            machine.failed_at = machine.at
            return machine.go_to(self.otherwise)
        frame.holds, frame.sealed, frame.alone = holds, self.sealed, self.alone
        frame.reported = self.reported and not holds
        machine.failed_at, machine.wanted, machine.loose = machine.at, "", False
        frame.role = self.role
        if not is_special(machine):
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
            # No other call follows. If the text that follows shows that the earlier calls are quoted, these calls become text.
            if quotation.any_text:
                return machine.quote()
            unquote(machine)
        # A marker such as `<tool_call>` or `<function=now` doesn't occur in prose, so report it if no call follows. After a separator
        # between calls, only a call is allowed.
        if (frame.reported and frame.alone) or frame.at == machine.listed:
            failed = machine.buffer[machine.at : machine.failed_at] or machine.buffer[machine.at : machine.at + 1]
            machine.malformed(failed, machine.wanted)
            machine.wanted = ""
        return machine.go_to(self.otherwise)


def is_special(machine: Machine) -> bool:
    """Return whether a special token starts here, possibly after whitespace."""
    return machine.buffer.startswith(machine.specials, end_of(SPACE, machine.buffer, machine.at))


def tool_at(machine: Machine, at: int) -> bool | None:
    """Return whether a tool name starts at `at`. Return None if more text is needed.

    If the request doesn't restrict tool names, any word is accepted.
    """
    tools = machine.request.tools
    text = machine.buffer[at : at + MAX_NAME]
    if tools is not None and any(text.startswith(tool.name) for tool in tools):
        return True
    # The next chunk may complete a partial name, such as `get_we` of `get_weather`. A different word such as `get_wet` can't become a tool
    # name.
    if not machine.final and (not text or any(tool.name.startswith(text) for tool in tools or ())):
        return None
    return tools is None and text[:1].isidentifier()


def _take_marker(machine: Machine, role: Role, otherwise: Role, end: int) -> None:
    """Consume a marker, or the layout around it.

    If the caller maps the role to text, such as reasoning to content, a marker that the model wrote becomes text.
    """
    if role is Role.REASONING:
        machine.thinks, machine.mentioned = False, True
    # A marker such as `<think>` becomes content, unless it's part of the prompt (before position 0).
    if role in machine.roles and machine.base + machine.at >= 0:
        machine.answered = True
        machine.text(role, end)
    else:
        machine.take(otherwise, end)


@dataclass(frozen=True, slots=True)
class Lit:
    """Parses a literal marker such as `"text"`. A reasoning marker becomes text if the caller maps reasoning to content."""

    text: str
    role: Role = Role.MARKER
    optional: bool = False

    def step(self, machine: Machine) -> bool:
        if machine.buffer.startswith(self.text, machine.at):
            _take_marker(machine, self.role, Role.MARKER, machine.at + len(self.text))
            return machine.go_on()
        if machine.may_begin(self.text):
            return True
        return machine.go_on() if self.optional else machine.fail(repr(self.text))


def undecided(machine: Machine, markers: Finder, at: int) -> bool:
    """Return whether more text is needed to identify the marker at `at`.

    More text is needed if the buffer ends at `at`, or if a longer marker is possible.
    """
    return not machine.final and (at >= len(machine.buffer) or markers.may_grow(machine.buffer, at))


@dataclass(frozen=True, slots=True)
class Look:
    """Requires one of the markers at the current position, as in `&marker`."""

    markers: Finder = NO_MARKERS
    target: int = -1
    """Address at which execution continues if a marker is found. -1 if the marker is required."""
    ends: bool = False
    """True if the end of the output is accepted too."""
    takes: bool = False
    thinks: bool = False
    """True if reasoning must be allowed to start here."""

    def step(self, machine: Machine) -> bool:
        if self.thinks and not machine.thinks:
            return machine.fail("content")
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
class SkipHeader:
    """Consumes a header with words before its last token, as in `<|channel|>final json<|message|>`.

    A header is on one line, and contains neither other markers nor a recipient such as `to=f`. Otherwise, its start is text.
    """

    size: int
    """Length of the start of the header, e.g. of `<|channel|>final`."""
    end: str
    """The last token of the header."""
    ends: Finder
    """The last token, and everything that a header can't contain."""
    text: int
    """Address of a `Mention`."""

    def step(self, machine: Machine) -> bool:
        buffer, at = machine.buffer, machine.at + self.size
        reach = at + MAX_WORDS + self.ends.longest
        found, mark = self.ends.find(buffer, at, reach)
        if not mark and not machine.final and len(buffer) < reach:
            return True
        if mark != self.end or buffer[at].isalnum():
            return machine.go_to(self.text)
        machine.take(Role.MARKER, at)
        machine.malformed(buffer[at:found], repr(self.end))
        machine.take(Role.MALFORMED, found)
        machine.take(Role.MARKER, found + len(mark))
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class OpenFence:
    """Parses the line of a Markdown fence at the start of the answer."""

    def step(self, machine: Machine) -> bool:
        found = _FENCE_LINE.match(machine.buffer, machine.at)
        if not found or machine.answered:
            return machine.fail("a Markdown fence")
        # Wait for the line break, because "```js" may become "```json".
        if found.end() == len(machine.buffer) and not machine.final and not found.group().endswith("\n"):
            return True
        machine.take(Role.MARKER, found.end())
        commit(machine)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Space:
    """Consumes whitespace: all of it, or only as much as matches the layout `text`.

    The layout `text` is set next to verbatim text, to which any other whitespace belongs.
    """

    text: str | None = None
    role: Role = Role.LAYOUT
    kept: bool = False
    """True next to a meaningless marker. Whitespace is then content if there is content on both sides."""

    def step(self, machine: Machine) -> bool:
        if self.text is None and not self.kept:
            return take_space(machine) or machine.go_on()
        text, buffer, at = self.text, machine.buffer, machine.at
        end = end_of(SPACE, buffer, at) if text is None else at + shared_length(buffer, at, text)
        waits = end == len(buffer) and not machine.final
        # Wait for more text, because a layout such as "\n\n" may be split over two chunks.
        if waits and text is not None and end < at + len(text):
            return True
        if self.kept:
            machine.carry(end)
        else:
            _take_marker(machine, self.role, Role.LAYOUT, end)
        return (waits and text is None) or machine.go_on()


def take_space(machine: Machine) -> bool:
    """Consume whitespace, if any. Return True if more whitespace may follow."""
    buffer, at = machine.buffer, machine.at
    if at < len(buffer) and not buffer[at].isspace():
        return False
    end = end_of(SPACE, buffer, at)
    machine.take(Role.LAYOUT, end)
    return end == len(buffer) and not machine.final


def shared_length(text: str, start: int, layout: str) -> int:
    """Return the number of characters of `layout` that occur at `start`.

    For example, the result is 0, 1 or 2 for a layout of two line breaks.
    """
    if text.startswith(layout, start):
        return len(layout)
    return next((size for size, char in enumerate(layout) if not text.startswith(char, start + size)), len(layout))


@dataclass(frozen=True, slots=True)
class Unsure:
    """Checks whether a marker in free text counts. If it doesn't, the marker is text, and execution continues at `hub`.

    A marker ends reasoning unless it follows an unclosed backquote on its line. A marker made of words counts only if whitespace and one of
    `ends` follow it.
    """

    role: Role
    size: int
    hub: int
    ends: Finder | None = None
    """Text that may follow the marker: other end markers, and starts of other parts."""

    def step(self, machine: Machine) -> bool:
        if self.ends:
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


@dataclass(frozen=True, slots=True)
class Jump:
    """Continues at another instruction."""

    target: int
    thinks: bool | None = None
    """True if reasoning may start there, and False if it may not. None to leave this as it is."""

    def step(self, machine: Machine) -> bool:
        machine.thinks = machine.thinks if self.thinks is None else self.thinks
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Commit:
    """Makes all text before the current position final."""

    release: bool = False
    """True if calls that were buffered become final too."""

    def step(self, machine: Machine) -> bool:
        if self.release:
            machine.frames.pop()
        commit(machine)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Halt:
    """Ends the program at the end of the output."""

    wanted: str = ""
    """The expected text. Set only if the output must not end at this position."""

    def step(self, machine: Machine) -> bool:
        if self.wanted:
            machine.malformed("", self.wanted)
        machine.halted = True
        return True


# The instructions below handle reasoning markers that aren't part of the format. A start marker counts only at the very start of an answer.
# An end marker without a start marker counts only once, at the end of a line. Markers in prose and examples stay text.


@dataclass(frozen=True, slots=True)
class OpenUndeclared:
    """Handles the start of an answer. If the answer starts with a known reasoning marker, reasoning starts. Otherwise, execution continues
    at `otherwise`.
    """

    finder: Finder
    """Finder for the known reasoning markers, and for markers of the format that start with one of them."""
    table: Mapping[str, int]
    otherwise: int

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        # Whitespace may precede the marker, as in `\n<think>`. The amount of buffered whitespace is limited.
        blank = at == len(buffer) and at - machine.at < MAX_BLANK
        if not machine.final and (blank or self.finder.may_grow(buffer, at)):
            return True
        marker, reads = self.finder.at(buffer, at), machine.policy.undeclared_reasoning == "read"
        machine.pc = self.table.get(marker, self.otherwise) if reads else self.otherwise
        if machine.pc != self.otherwise:
            machine.take(Role.LAYOUT, at)
            # Later occurrences of `<think>` and `</think>` are text.
            machine.malformed(marker, "an answer without reasoning, or with the format's own markers")
            machine.mentioned = True
        return False


# Text that isn't a valid call.


@dataclass(frozen=True, slots=True)
class Unread:
    """Treats text that isn't a valid call as content.

    The text ends where parsing failed, or at the next occurrence of the same marker. If `ends` is set, text that looks like a call ends
    after a closing brace and the call's end markers.
    """

    role: Role
    hub: int
    finder: Finder
    stops: Finder
    """Markers that always end the text, even inside a possible call."""
    openers: frozenset[str] = frozenset()
    """Start markers, without whitespace, that always indicate a call. An answer that consists only of such a marker has no content."""
    ends: Finder | None = None
    """Finder for the closing brace and for start markers of other calls. Set only if text that looks like a call is dropped."""
    closers: Finder = NO_MARKERS
    inside: Finder = NO_MARKERS
    """Start markers of calls in a fence. A call of the format counts, even if the fence isn't a call in another format's syntax."""

    def step(self, machine: Machine) -> bool:
        if self.ends is not None and (end := self._brace(machine, self.ends)) != _NOWHERE:
            return end == _UNDECIDED or self._drop(machine, end)
        # Consume at least one character. Otherwise, the parser would find the same marker again forever.
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        end = self._again(machine, failed) if machine.rereads else failed
        # Stop at the end marker of reasoning, as in "…with <call> and</think>".
        fenced = machine.buffer.startswith("```", end_of(SPACE, machine.buffer, machine.at, machine.at + MAX_BLANK))
        stops = self.inside if fenced else self.stops
        closed, closer = stops.find(machine.buffer, machine.at + 1, end + stops.longest)
        end = closed if closer and closed < end else end
        # Wait for more text if the marker may occur again, as in `<call> <ca`.
        if not machine.final and self.finder.undecided_from(machine.buffer, machine.at + 1) < end:
            return True
        alone = machine.final and not machine.answered and end == len(machine.buffer)
        if alone and "".join(machine.buffer[machine.at :].split()) in self.openers:
            if machine.wanted:  # Report the marker, unless it was reported earlier.
                machine.malformed(machine.buffer[machine.at : end], machine.wanted)
            machine.take(Role.MALFORMED, end)
            return machine.go_to(self.hub)
        if self.role is Role.CONTENT:
            machine.answered = True
        machine.text(self.role, end)
        return machine.go_to(self.hub)

    def _again(self, machine: Machine, failed: int) -> int:
        """Return the position before `failed` at which the marker occurs again, or `failed` if there is none.

        An overlapping marker counts too, as in `>>>>`.
        """
        buffer, start = machine.buffer, machine.at
        marker = self.finder.at(buffer, start)
        # In "<call> is how <call>{…}</call> begins", only the second marker starts a call. The text before it is content.
        core = marker.strip()
        inside = start + len(marker)
        limit = max(failed, inside)
        at, literal = self.finder.find(buffer, start + 1, limit + self.finder.longest)
        while literal and at < limit:
            same = core and at >= inside and literal.strip().startswith(core)
            if same or at < inside < at + len(literal):
                return at
            at, literal = self.finder.find(buffer, at + 1, limit + self.finder.longest)
        return failed

    def _drop(self, machine: Machine, end: int) -> bool:
        """Consume text that looks like a call, and the end markers after it. `end` is the position after its closing brace."""
        buffer, closer = machine.buffer, "}"
        while closer:
            after = end_of(SPACE, buffer, end, end + MAX_BLANK)
            if undecided(machine, self.closers, after):
                return True
            closer = self.closers.at(buffer, after)
            end = after + len(closer) if closer else end
        # Leave out the text of a generation prompt, which is never content.
        if text := buffer[max(machine.at, -machine.base) if machine.given else machine.at : end]:
            machine.events.append(BrokenText(text))
        machine.take(Role.MALFORMED, end)
        return machine.go_to(self.hub)

    def _brace(self, machine: Machine, ends: Finder) -> int:
        """Return the position after the closing brace of an object that follows the marker.

        Only a single word may be between the marker and the object.
        """
        buffer, failed = machine.buffer, max(machine.at + 1, machine.failed_at)
        opened = buffer.find("{", machine.at, failed)
        if opened < 0:
            opened = end_of(_WORD, buffer, failed)
            if opened == len(buffer) and opened - failed < MAX_WORD and not machine.final:
                return _UNDECIDED
            if not buffer.startswith("{", opened):
                return _NOWHERE
        # The text before the failure was valid JSON, so the outer object can't close there.
        inside = max(opened + 1, failed)
        limit = inside + MAX_WORD
        at, literal = ends.search(buffer, inside, final=machine.final)
        if literal == "}" and at < limit:
            return at + 1
        return _NOWHERE if literal or machine.final or len(buffer) >= limit else _UNDECIDED
