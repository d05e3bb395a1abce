"""The machine's instructions for text and markers: frozen data, each with the step that it takes.

Rules: a step that cannot decide returns True and leaves the machine as it was. One that fails returns what `machine.fail` does.
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
"""Three backquotes and a language; the longest name of one that is known has 23 letters."""
_LEAST_TORN = 3
"""So many characters of a marker show it at the token limit: `<to` begins `<tool_call>`, and `<t` a table."""
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
    """Layout that ends a turn: no part of the text when nothing follows."""
    flow: Flow
    """Text that goes straight through."""
    openers: tuple[str, ...] = ()
    """The markers that show a call by themselves."""

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        # Most chunks hold not even the first character of a marker: no search, and the next chunk needs no instruction.
        if not machine.final and self.finder.absent(buffer, machine.at):
            self._emit(machine, self._before_ending(machine, len(buffer)) if self.ending else len(buffer))
            machine.flow = self.flow
            return True
        limit, literal = self._marker(machine)
        if literal:
            self._emit(machine, limit)
            # `_emit` leaves white space at the start of an answer alone: before `<call>` it is layout.
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
        # The output ends here. Of "Hi\n", where templates write "\n" before the end of the turn, the content
        # is "Hi".
        machine.take(Role.LAYOUT, len(buffer))
        return machine.go_to(self.end)

    def _marker(self, machine: Machine) -> tuple[int, str]:
        """Return where the first marker begins, and the marker; (n, "") when there is none, and text up to n."""
        buffer = machine.buffer
        if not machine.final:
            # `<t>` may go on as the marker `<t>\n`, which leads elsewhere: it waits for one more
            # character.
            return self.finder.decided(buffer, machine.at, whole=True)
        at, literal = self.finder.find(buffer, machine.at)
        return (at, literal) if literal else (len(buffer), "")

    def _torn(self, machine: Machine) -> int:
        """Return where a call's marker begins that the end of the output has torn; -1 where there is none.

        A few characters show it where the token limit has cut the output off. Else they are text, unless the answer is
        nothing but such a marker, torn after its last word.
        """
        buffer, end = machine.buffer, len(machine.buffer)
        for size in range(min(max(map(len, self.openers)), end - machine.at), _LEAST_TORN - 1, -1):
            tail = buffer[end - size :]
            opener = next((opener for opener in self.openers if opener.startswith(tail)), "")
            if opener and self._shows(machine, opener, tail):
                return end - size
        return -1

    def _shows(self, machine: Machine, opener: str, tail: str) -> bool:
        """Return whether the end of the output shows the marker that it begins."""
        if machine.length_limited:  # ` to=f` does; `fun`, which begins `functools[` as well, does not.
            return len(tail.strip()) >= _LEAST_TORN and _SIGN.search(tail) is not None
        alone = not machine.answered and not machine.buffer[machine.at :].removesuffix(tail).strip()
        # A word, such as `functions` of `functions.`, is an answer.
        return alone and not tail.isalpha() and len(tail) >= len(_CLOSING.sub("", opener))

    def _before_ending(self, machine: Machine, limit: int) -> int:
        # With "\n" as the ending, the line break of "Hi\n" waits: at the end of the output it is layout, else it is text.
        sizes = (len(self.ending),) if machine.final else range(len(self.ending), 0, -1)
        found = (size for size in sizes if machine.buffer.endswith(self.ending[:size], machine.at))
        return min(limit, len(machine.buffer) - next(found, 0))

    def _emit(self, machine: Machine, end: int) -> None:
        if not machine.answered and self.role is Role.CONTENT:
            # White space alone has not begun an answer: a call may follow it, as in "\n\n<call>", and then it is layout.
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
    """If not -1: hold back everything until all calls are read, then go there."""
    alone: bool = True
    """True if the marker identifies a call by itself; others are reported only if the name of a tool follows."""
    hub: int = -1
    """The free text in which the marker was found, where a call in it may be quoted."""
    role: Role = Role.CONTENT
    """The role of that text."""
    weak: bool = False
    """The marker is a bracket, which prose and code write as well."""
    on_line: bool = False
    """Such a marker begins a call only where nothing but white space is before it on its line."""

    def step(self, machine: Machine) -> bool:
        if machine.left is not None:
            return self._leave(machine, machine.left)
        # "<think>I could <call>…</call>, but no</think>": only what follows the call shows whether it was meant.
        holds = self.sealed >= 0
        if holds and machine.policy.calls_in_reasoning == "ignore":
            # Nothing was tried here, so nothing failed further on: only the marker itself is text.
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
        """Continue after all attempts have failed."""
        machine.left = None
        if frame.limited:
            machine.cut_from = frame.at
            if begins_call(machine, frame):
                return cut_short(machine, frame.call)
        if quotation := machine.quotation:
            # Text follows a call that may be quoted, and not another call.
            if quotation.any_text:
                return machine.quote()
            unquote(machine)
        # Prose does not write `<tool_call>`, nor `<function=now`: where no call follows it, somebody should know.
        if frame.reported and frame.alone:
            failed = machine.buffer[machine.at : machine.failed_at] or machine.buffer[machine.at : machine.at + 1]
            machine.malformed(failed, machine.wanted)
            machine.wanted = ""
        return machine.go_to(self.otherwise)


def tool_at(machine: Machine, at: int) -> bool | None:
    """Return whether the name of a tool begins at `at`; None while that is not certain.

    When any name counts as a tool, it is any word.
    """
    tools = machine.request.tools
    text = machine.buffer[at : at + MAX_NAME]
    if tools is not None and any(text.startswith(tool.name) for tool in tools):
        return True
    # `get_we` may go on as `get_weather`; in `get_wet` no name of a tool can begin any more.
    if not machine.final and (not text or any(tool.name.startswith(text) for tool in tools or ())):
        return None
    return tools is None and text[:1].isidentifier()


def _take_marker(machine: Machine, role: Role, otherwise: Role, end: int) -> None:
    """Take a marker, or layout beside it; where its role is read as text (and the model wrote it), it is text too."""
    # Where the caller wants reasoning as content, `<think>` is content too, unless the prompt wrote it (before
    # 0).
    if role in machine.roles and machine.base + machine.at >= 0:
        machine.answered = True
        machine.text(role, end)
    else:
        machine.take(otherwise, end)


@dataclass(frozen=True, slots=True)
class Lit:
    """`"text"`: a marker. A marker of reasoning is text where reasoning stays in the content."""

    text: str
    role: Role = Role.MARKER
    others: tuple[str, ...] = ()
    """Other spellings."""
    optional: bool = False
    instead: tuple[str, ...] = ()
    """Markers that show that it is missing; they are left for the next instruction."""
    slot: Slot | None = None
    """The text is the tool's name, or the argument's, once more, as in `</city>`."""

    def step(self, machine: Machine) -> bool:
        texts = (self._text(machine), *self.others)
        for text in texts:
            if machine.buffer.startswith(text, machine.at):
                _take_marker(machine, self.role, Role.MARKER, machine.at + len(text))
                return machine.go_on()
        # `<city>Rome</f></call>`: only the closer of the value was forgotten.
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
    """Return whether only more text can tell which of the markers is at `at`: a longer one may be, or nothing is there yet."""
    return not machine.final and (at >= len(machine.buffer) or markers.may_grow(machine.buffer, at))


@dataclass(frozen=True, slots=True)
class Look:
    """`&marker`: one of the markers must be here, or the name of a tool."""

    markers: Finder = NO_MARKERS
    target: int = -1
    """If not -1, the target if there is one here; otherwise, execution continues."""
    ends: bool = False
    """The end of the output will do, too."""
    takes: bool = False
    named: bool = False
    """A call begins here with its tool's name, before any content."""

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
    """The opening of a Markdown fence, if there is one: three backquotes and a language."""

    worded: bool = True
    """A word on the fence is a language; else it is what comes next."""
    opens: bool = False
    """It has to be here and opens the answer, with its line break."""

    def step(self, machine: Machine) -> bool:
        if self.opens:
            return self._open(machine)
        bare = machine.at + len(BACKQUOTES) * machine.buffer.startswith(BACKQUOTES, machine.at)
        end = end_of(FENCE, machine.buffer, machine.at) if self.worded else bare
        found = end > machine.at
        # "```js" may go on as "```json", and "``" as a fence.
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
        # Without its line break, "```js" may still become "```json".
        if found.end() == len(machine.buffer) and not machine.final and not found.group().endswith("\n"):
            return True
        machine.take(Role.MARKER, found.end())
        commit(machine)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Space:
    """White space: all that is here, or as much as is here of the layout `text`. Next to verbatim text, it consumes not one character
    more.
    """

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
        # Of the layout "\n\n" this chunk may hold one line break, and the next chunk the other.
        if waits and text is not None and end < at + len(text):
            return True
        if self.kept:
            machine.carry(end)
        else:
            _take_marker(machine, self.role, Role.LAYOUT, end)
        return (waits and text is None) or machine.go_on()


def take_space(machine: Machine) -> bool:
    """Take white space, if there is any; True where there may be more."""
    buffer, at = machine.buffer, machine.at
    if at < len(buffer) and not buffer[at].isspace():
        return False
    end = end_of(SPACE, buffer, at)
    machine.take(Role.LAYOUT, end)
    return end == len(buffer) and not machine.final


def shared_length(text: str, start: int, layout: str) -> int:
    """Return how many characters of `layout` are at `start`: of two line breaks, two, one or none."""
    if text.startswith(layout, start):
        return len(layout)
    return next((size for size, char in enumerate(layout) if not text.startswith(char, start + size)), len(layout))


@dataclass(frozen=True, slots=True)
class Unsure:
    """A marker in free text that may also be text; execution then continues at `hub`.

    It ends reasoning unless a backquote before it is open on its line; made of words, it counts where only white space and one
    of `ends` follow it. Of reasoning that the format does not have, a closer that was never opened counts once, at the end of a line.
    """

    role: Role
    size: int
    hub: int
    ends: Finder | None = None
    """Texts that may follow: other ends, and what begins a part."""
    undeclared: Literal["", "opener", "closer"] = ""
    """It is a marker of reasoning that the format does not have."""

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
        # "…</think>" may be followed by a line break, or by a comma: "</think>, the closer, is …".
        end = machine.at + self.size
        counts = self.undeclared == "closer" and not machine.mentioned
        if counts and end == len(machine.buffer) and not machine.final:
            return None
        machine.mentioned = True
        ends_line = end == len(machine.buffer) or machine.buffer.startswith("\n", end)
        if not counts or not ends_line or not _reads(machine):
            return False
        machine.malformed(machine.buffer[machine.at : end], "what opens reasoning, before what closes it")
        return True


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on elsewhere."""

    target: int
    loose: bool = False
    """The calls there have begun without their outermost marker."""

    def step(self, machine: Machine) -> bool:
        machine.loose |= self.loose
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Halt:
    """The end of the output."""

    wanted: str = ""
    """The text that is missing when the output ends here."""

    def step(self, machine: Machine) -> bool:
        if self.wanted:
            machine.malformed("", self.wanted)
        machine.halted = True
        return True


# Markers of reasoning that the format does not have. An opener counts only at the very start of an answer. A closer without an opener
# counts once, where a line ends with it and no such marker was mentioned before: prose and examples keep theirs.


@dataclass(frozen=True, slots=True)
class OpenUndeclared:
    """The start of an answer: a known marker starts reasoning; otherwise, execution continues."""

    finder: Finder
    """The markers, and the format's own that begin like them."""
    table: Mapping[str, int]
    otherwise: int

    def step(self, machine: Machine) -> bool:
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        # `\n<think>`: white space before a marker says nothing yet, so it waits, but only so much of it.
        blank = at == len(buffer) and at - machine.at < MAX_BLANK
        if not machine.final and (blank or self.finder.may_grow(buffer, at)):
            return True
        marker = self.finder.at(buffer, at)
        machine.pc = self.table.get(marker, self.otherwise) if _reads(machine) else self.otherwise
        if machine.pc != self.otherwise:
            machine.take(Role.LAYOUT, at)
            # From here on a second `<think>` or `</think>`, after this reasoning, is text.
            machine.malformed(marker, "an answer without reasoning, or one that begins as the format has it")
            machine.mentioned = True
        return False


def _reads(machine: Machine) -> bool:
    return machine.policy.undeclared_reasoning == "read"
