"""Reads a run of calls: the start of the run, each call, and the text after a call's arguments.

Strategy: one coroutine walks over the tree of the calls (`answer.views`). It starts at one of the markers at which calls may begin, and ends
in the free text after the run. A call is committed at its first argument. If reading fails earlier, the text is content.

Rule: whitespace inside and between literals is flexible. Next to raw values, only the format's own whitespace is consumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.answer import Element, Marker, literal_of, without_fences
from unrender.answer.views import CallView
from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_NAME, MAX_WORD
from unrender.machine.call_events import (
    NAMESPACE,
    begins_line,
    commit,
    complete_call,
    is_quoted,
    seal,
    start_call,
    unquote,
)
from unrender.machine.calls import ONE_OF_THE_TOOLS, Failed, Left, Steps
from unrender.machine.calls.damaged import behind_words, first_word, tool_named
from unrender.machine.calls.tail import Addresses, TailReader
from unrender.machine.frames import Restart
from unrender.machine.instructions import tool_at
from unrender.machine.interpreter import OR, Machine
from unrender.machine.quotation import Quotation, going_on
from unrender.nodes import Role
from unrender.values.finder import SPACE, Finder, end_of


@dataclass(frozen=True, slots=True)
class ReadCalls:
    """Reads a run of calls. The instruction is done once execution continues elsewhere."""

    view: CallView
    addresses: Addresses
    markers: tuple[Marker, ...] = ()
    """The markers before the call."""
    begin: str = "call"
    """The part at which the run begins: "call", "function" (after the call's start marker), "named" (a call without markers), "empty" (an
    empty call), "damaged" (a call that couldn't be read exactly), or "tail" (after the arguments).
    """
    loose: bool = False
    """True if the run starts without its outermost marker."""
    after: int = -1
    """For an empty call: the address at which execution continues."""

    def step(self, machine: Machine) -> bool:
        if machine.restart is None:
            around = self.addresses
            reader = _RunReader(machine, self.view, recover=around.tail, addresses=around, begin=self)
            machine.restart = Restart.of(machine, reader)
        try:
            next(machine.restart.run)
        except (Left, StopIteration) as left:
            before, machine.restart = machine.restart, None
            if self.view.calls.alone and isinstance(left, Failed):
                # The text is read as if it hadn't been tried. Reports name only what the format itself expects.
                machine.wanted = before.wanted
                machine.failed_at = before.failed_at - machine.base
                for frame in filter(None, (machine.left, *machine.frames[-1:])):
                    frame.call = before.frames[-1].call if before.frames else None
                if machine.left:
                    machine.left.holds, machine.left.whole, machine.left.quotation = False, False, None
            return False
        return True


@dataclass(slots=True, eq=False, kw_only=True)
class _RunReader(TailReader):
    """Reads a run of calls."""

    begin: ReadCalls

    def run(self) -> Steps[None]:
        machine, begin = self.machine, self.begin
        machine.loose |= begin.loose
        for marker in begin.markers:
            yield from self.marker(marker)
        match begin.begin:
            case "empty":
                yield from self._drop_empty(begin.after)
            case "named":
                yield from self.space()
                yield from self._look_for_name()
                yield from self._call()
            case "call":
                yield from self._call()
            case "function":
                yield from self._function()
            case "damaged":
                yield from self._damaged()
        while True:
            yield from self.tail()
            yield from self._call()

    def look(self, markers: Finder) -> Steps[str]:
        """Return the marker at the current position, which isn't consumed."""
        while not self.decided(markers, self.machine.at):
            yield
        return markers.at(self.machine.buffer, self.machine.at)

    def _look_for_name(self) -> Steps[None]:
        """Require a tool name before any content."""
        machine = self.machine
        while (named := not machine.answered and tool_at(machine, machine.at)) is None:
            yield
        if not named:
            self.fail("the name of a tool")

    def _drop_empty(self, after: int) -> Steps[None]:
        """Drop and report an empty call or section."""
        machine, calls = self.machine, self.view.calls
        commit(machine)
        if machine.quotation:  # A quoted empty call is text, as in "`<call></call>`".
            around = going_on(machine.quotation)
            while around and self.unless_quoted(around):
                yield
            unquote(machine)
        machine.malformed("", "a call")
        machine.closed = 0 if calls.forbidden else len(calls.all_closers)
        self.leave(after)

    def _damaged(self) -> Steps[None]:
        """Begin a call that couldn't be read exactly, although it has a start marker and the name of an offered tool."""
        machine, view, frame = self.machine, self.view, self.machine.frames[-1]
        wanted = machine.wanted.partition(OR)[0] or "a call"
        if frame.holds or frame.role is not Role.CONTENT or machine.strict or machine.policy.repair == "none":
            self.fail(wanted)
        while True:
            text = machine.buffer[machine.at : machine.at + MAX_WORD]
            whole = machine.final or len(text) == MAX_WORD
            word = first_word(view, text)
            name = word.group().removeprefix(NAMESPACE) if word and (whole or word.end() < len(text)) else ""
            named = word if name and tool_named(view, name, machine.request) else None
            head = named or behind_words(view, text, machine.request)
            if head or whole:
                break
            yield
        # Don't repair a call after a quotation mark, even if the call's start marker is a special token.
        frame.hub = max(frame.hub, 0)
        # If another word follows the start marker, the text isn't a truncated call.
        if not head and word and word.end() < len(text):
            frame.cut = False
        if not head or is_quoted(machine, frame) or not self.may_be_mended():
            self.fail(wanted)
        call = self.begin_call()
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        call.broken = (wanted, machine.buffer[failed : failed + 1], machine.base + failed)
        # Skip text up to the name, because a marker before the name doesn't start another call.
        machine.take(Role.MALFORMED, max(failed, machine.at + head.end()))

    # One call.

    def _call(self) -> Steps[None]:
        yield from self.marker(self.view.calls.call_open)
        yield from self._function()

    def _function(self) -> Steps[None]:
        view, calls = self.view, self.view.calls
        self._begin()
        if calls.envelope:
            yield from self.before_object()
            # Accept a list with one call, even if the syntax expects a single call.
            if view.before_object and not calls.whole:
                yield from self.literal("[", optional=True)
                yield from self.space()
            yield from self.envelope(calls.envelope)
            return
        machine = self.machine
        first, last = calls.id_parts or (-1, -1)
        begin = 0
        for i, part in enumerate(calls.function[: calls.last_slot + 1]):
            if i == first:
                yield from self.space()
                begin = machine.position
            if (yield from self._part(i, part)):
                return
            if i + 1 == last:
                machine.current.id = machine.since(begin)

    def _begin(self) -> None:
        """Begin a possible call. A call in another format's syntax must start a line, and no text may follow it."""
        machine, calls = self.machine, self.view.calls
        if not calls.sibling:
            # Arguments of repaired calls are compared with the schema.
            self.begin_call().repaired = calls.checked
            frame = machine.frames[-1]
            if calls.whole and not frame.holds:
                frame.holds = frame.whole = True
            return
        frame = machine.frames[-1]
        if calls.alone and (machine.strict or machine.request.tools is None or machine.answered):
            self.fail("a call in the format's syntax")
        # Check only the first call of a run, because that call's frame also holds the later calls.
        if len(machine.frames) < 2 or machine.frames[-2].quotation is None:
            # Reject a call after a section marker that is inside a sentence, as in "Write <calls>\n<call>".
            before, section = machine.context(frame.at, frame.spans, MAX_BLANK).rstrip(), calls.open.text.strip()
            opened = bool(section) and before.endswith(section)
            if opened or frame.holds or frame.role is not Role.CONTENT or not begins_line(machine, frame):
                self.fail("a call in the format's syntax")
            frame.hub, frame.quotation = self.addresses.hub, Quotation(any_text=True)
            frame.holds = frame.whole = True
        self.begin_call().repaired = True

    def _part(self, i: int, part: Element) -> Steps[bool]:
        """Read one part of a call. Return whether the call ends there, because it has no arguments."""
        view, parts, stops = self.view, self.view.calls.function, self.view.stops(i)
        if part is Slot.NAME:
            if i == 0 or literal_of(parts[i - 1])[-1:].isspace():
                yield from self.space()
            if Slot.NAME in parts[:i]:
                yield from self.literal(self.machine.current.name)
            else:
                yield from self.name(stops)
                if self.replaced and not self.machine.current.unoffered:
                    words, position = self.replaced
                    self.machine.malformed(words, ONE_OF_THE_TOOLS, at=position)
                self.replaced = None
        elif part is Slot.ARGUMENTS:
            yield from self._to_arguments()
            commit(self.machine, self.addresses.tail)
            if Slot.ID not in parts[i:]:
                start_call(self.machine)
            yield from self.arguments()
        elif part is Slot.ANY:
            if view.spaced(i):
                yield from self.space()
            yield from self.skip_words(stops)
        elif isinstance(part, Slot):
            yield from self.space()
            yield from self.word(part, stops)
        elif view.may_be_missing(i):
            yield from self.space()
            yield from self.literal(part.core, optional=True)
        else:
            if view.is_tag_end(i) and (yield from self._closed_tag(part.core[:-1])):
                return True
            # The word after the fence is the tool name, as in "```get_weather".
            yield from self.marker(part, worded=not (part.text[-1:] == "`" and parts[i + 1 : i + 2] == (Slot.NAME,)))
        return False

    def _to_arguments(self) -> Steps[None]:
        arguments = self.view.arguments
        if arguments.entry or arguments.open:
            yield from self.space()
        else:
            yield from self.before_object()
        # Without markers, a tool name starts a call only if arguments follow.
        if not self.view.marked and not arguments.entry:
            markers = Finder(arguments.open.pieces[:1] or ("{",))
            if not (yield from self.look(markers)):
                self.fail(" or ".join(map(repr, markers.literals)))

    def _closed_tag(self, quote: str) -> Steps[bool]:
        """Read a self-closing tag of a call without arguments, as in `<invoke name="now"/>`, and return whether there is one.

        `quote` is the text between the name and `/>`. Other text isn't consumed.
        """
        machine, view = self.machine, self.view
        while True:
            machine.steps += 1
            buffer = machine.buffer
            rest = buffer[machine.at : machine.at + len(quote)]
            end = end_of(SPACE, buffer, machine.at + len(rest), machine.at + MAX_NAME)
            if rest == quote and buffer.startswith("/>", end):
                after = end_of(SPACE, buffer, end + 2, end + MAX_NAME)
                if machine.final or not (after == len(buffer) or view.after_tag.may_grow(buffer, after)):
                    break
            else:
                begun = len(rest) < len(quote) or buffer[end : end + 2] in ("", "/")
                if machine.final or not (begun and quote.startswith(rest)):
                    return False
            yield
        commit(machine, self.addresses.tail)
        start_call(machine)
        if view.after_tag.at(buffer, after) or not machine.current.types.fit("{}"):
            self.fail("the end of the call's start tag")
        machine.malformed(buffer[machine.at : end + 2], "arguments and the end of the call")
        machine.take(Role.MALFORMED, end + 2)
        machine.arguments("{}")
        # The tag replaces the end markers of the function, but not those of the call around it.
        around = len(without_fences(view.calls.call_close.pieces))
        machine.current.closed, machine.closed = True, len(view.calls.closers) - around
        if not around:
            complete_call(machine)
            seal(machine)
        return True
