"""Compiles a grammar into the machine's program.

Strategy: an answer is free text with parts in it. Each free text becomes one `FreeText` instruction (a hub) that searches for
all markers which may interrupt it, with a table that says where each leads: into reasoning, into the attempts to read a
call, or back. Everything between two hubs is straight-line code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from unrender.answer.literals import holds_token
from unrender.answer.nodes import Answer, Calls, ContentPart, Marker, ReasoningPart
from unrender.json_values import FrozenDict
from unrender.machine.arguments import Commit
from unrender.machine.compile import Code
from unrender.machine.compile.calls import CallCode, CallEntry, empty_entries
from unrender.machine.instructions import (
    Attempt,
    Fence,
    FreeText,
    Halt,
    Jump,
    Lit,
    Look,
    OpenUndeclared,
    Space,
    Unsure,
)
from unrender.machine.interpreter import Program
from unrender.machine.tail import Unread
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow

CONTENT_HUB = 1
"""The place in every program where the text outside of all parts is read."""


def compile_answer(answer: Answer) -> Program:
    """Return the program that reads everything `answer` allows or tolerates."""
    return _Compiler(answer).program()


@dataclass(slots=True)
class _Hub:
    """A free text under construction: where its markers lead, and which calls are tried at which."""

    role: Role
    at: int
    end: int = -1
    direct: dict[str, int] = field(default_factory=dict)
    guarded: set[str] = field(default_factory=set)
    attempts: dict[str, list[int]] = field(default_factory=dict)
    weak: dict[str, bool] = field(default_factory=dict)
    """Brackets that begin calls; whether the format writes them on a line with text before it."""
    fences: set[int] = field(default_factory=set)
    """Attempts that are no calls: they are never quoted."""
    reported: dict[str, bool] = field(default_factory=dict)
    """Markers that prose does not hold: when no call follows, that is worth a report; and whether they show a call alone."""


class _Compiler:
    def __init__(self, answer: Answer) -> None:
        self.tree = answer
        self.runs = [part for part in answer.parts if isinstance(part, Calls) and not part.forbidden]
        self.dropped = (*answer.ends, *answer.dropped)
        self.code = Code()
        self.opening: dict[str, int] = {}
        """Markers that are words and are tried where content begins, and where they lead."""
        self.begins = self.answer = self.ended = CONTENT_HUB
        """The places where content may begin after calls, where it begins after reasoning, and where reading goes on after an end of turn."""
        self.undeclared: dict[str, int] = {}
        """The targets of markers that may begin an answer though the format does not have them."""

    def program(self) -> Program:
        # The hub is at the same address in every program: a prompt that skips reasoning begins there.
        start = self.code.reserve()
        hub = self._hub(Role.CONTENT, Halt())
        assert hub.at == CONTENT_HUB
        opens_in_words = self._opens_in_words()
        begin = self.begins = self.answer = self.code.reserve() if opens_in_words else hub.at
        codes = [CallCode(self.code, calls, self.begins, self.tree) for calls in self.runs]
        entries = [entry for code in codes for entry in code.compile()]
        unmarked = tuple(at for code in codes for at in code.unmarked)
        if unmarked:
            # `get_weather\n{…}`: no marker shows such a call, so where an answer begins it is tried
            # before the text.
            begin = self.answer = self.code.emit(Attempt(unmarked, self.begins, reported=False))
        self.ended = self._after_end()
        for part in self.tree.parts:
            begin = self._part(hub, part, entries) or begin
        self._between(hub, entries)
        for part in self.tree.parts:
            if isinstance(part, ReasoningPart) and not part.declared:
                self._undeclared(hub, self._inner(hub, part, entries), part)
        if self.tree.json:
            self._fenced_json(hub)
        self._enter(hub, entries)
        # `\nget_weather` after content: a line that begins with a tool's name.
        for marker, at in (item for code in codes for item in code.lines.items()):
            hub.attempts.setdefault(marker, []).append(at)
        if self.undeclared:
            begin = self._open_undeclared(hub, begin)
        self._seal(hub)
        if opens_in_words:
            longest_first = sorted(self.opening, key=len, reverse=True)
            tried = tuple(self.opening[core] for core in longest_first)
            self.code.put(self.begins, Attempt(tried, hub.at, reported=False))
        self.code.put(start, Jump(self._start(begin)))
        return self.code.finished()

    def _opens_in_words(self) -> bool:
        """Return whether words may be where content begins that are none of it."""
        parts = (
            part
            for part in self.tree.parts
            if isinstance(part, ContentPart) or (isinstance(part, ReasoningPart) and part.declared)
        )
        openers = (*self.tree.joints, *(marker for part in parts for marker in part.open.spelled))
        return not all(holds_token(marker.text) for marker in openers)

    def _start(self, begin: int) -> int:
        """Emit the code before everything: the header that no prompt writes, and layout."""
        lead = self.code.emit(Space(self.tree.lead), Jump(begin))
        return self._after_headers((self.tree.header,), lead) if self.tree.header else lead

    def _after_headers(self, headers: tuple[Marker, ...], target: int) -> int:
        """Emit the code that drops a header made of words, if there is one, and continues at `target`."""
        # With any beginning of the layout after it.
        texts = (it.core + it.after[:size] for it in headers for size in range(len(it.after) + 1))
        finder = Finder(texts, (it.core for it in headers if it.guarded))
        return self.code.emit(Look(finder, target, takes=True), Jump(target))

    def _after_end(self) -> int:
        """Emit the code after an end of turn: white space, and the header of another turn."""
        target = self._after_headers(self.tree.headers, self.begins) if self.tree.headers else self.begins
        return self.code.emit(Space(kept=True), Jump(target))

    def _hub(self, role: Role, halt: Halt) -> _Hub:
        return _Hub(role, self.code.reserve(), self.code.emit(halt))

    def _seal(self, hub: _Hub, sealed: int = -1) -> None:
        table = dict(hub.direct)
        # The marker `final` is not found in `finally`. Where a call is tried, the attempt itself finds out.
        finder = Finder({**hub.direct, **hub.attempts}, hub.guarded - hub.attempts.keys())
        openers = tuple(variant for variant, alone in hub.reported.items() if alone)
        run = self._text_run(hub, finder, openers)
        # `<call>` may begin a call, and be a marker of its own: the calls are tried first.
        for variant, targets in self._tried(hub).items():
            otherwise = hub.direct.get(variant, run)
            reported = variant in hub.reported and otherwise == run
            alone = hub.reported.get(variant, True)
            found = tuple(dict.fromkeys(targets))
            # A format that cleans content writes calls amid text, of which it keeps none.
            at = -1 if self.tree.cleans or sealed >= 0 or hub.fences.intersection(found) else hub.at
            weak = variant in hub.weak and variant not in hub.reported
            on_line = weak and not hub.weak[variant]
            table[variant] = self.code.emit(
                Attempt(found, otherwise, reported, sealed, alone, at, hub.role, weak, on_line)
            )
        self.code.put(
            hub.at,
            FreeText(
                hub.role,
                finder,
                FrozenDict(table),
                hub.end,
                self.tree.trail,
                Flow(finder.literals, last=self.tree.trail),
                openers if hub.role is Role.CONTENT else (),
            ),
        )

    @staticmethod
    def _tried(hub: _Hub) -> dict[str, list[int]]:
        """Return which calls are tried at each marker; one that hides another call's opener tries that call as well."""
        tried = {variant: list(targets) for variant, targets in hub.attempts.items()}
        # Of `<t>` and `<t>\n`, the finder always finds the longer one: what begins at the shorter is tried there too.
        for marker in (*hub.attempts, *hub.direct):
            hidden = [marker[:size] for size in range(len(marker) - 1, 0, -1) if marker[:size] in hub.attempts]
            for opener in hidden:
                tried.setdefault(marker, []).extend(hub.attempts[opener])
        return tried

    def _text_run(self, hub: _Hub, finder: Finder, openers: Iterable[str]) -> int:
        sections = [calls.open.text + calls.call_open.text for calls in self.runs]
        alone = frozenset("".join(text.split()) for text in (*openers, *sections)) - {""}
        # Reasoning that mentions a call must still end where its closer stands.
        stops = Finder(hub.direct if hub.role is Role.REASONING else ())
        if hub.role is not Role.CONTENT:
            return self.code.emit(Unread(hub.role, hub.at, finder, stops))
        closers = [piece for calls in self.runs for piece in calls.all_closers]
        broken = (Finder(("}", *hub.attempts)), Finder(closers)) if self.tree.cleans else ()
        return self.code.emit(Unread(hub.role, hub.at, finder, stops, alone, *broken))

    def _enter(self, hub: _Hub, entries: Sequence[CallEntry]) -> None:
        for entry in entries:
            marker = Marker(entry.lead + entry.opener)
            for variant in marker.variants():
                hub.attempts.setdefault(variant, []).append(entry.target)
                if entry.strong:
                    hub.reported[variant] = entry.alone or hub.reported.get(variant, False)
                elif entry.weak:
                    hub.weak[variant] = hub.weak.get(variant, False) or "\n" not in entry.lead
        # What is damaged is tried after all that is not.
        for entry in entries:
            if entry.damaged >= 0 and hub.role is Role.CONTENT:
                for variant in Marker(entry.lead + entry.opener).variants():
                    hub.attempts[variant].append(entry.damaged)

    def _part(self, hub: _Hub, part: ReasoningPart | ContentPart | Calls, entries: list[CallEntry]) -> int | None:
        """Compile one part; returns where the answer begins when it begins inside that part."""
        match part:
            case ReasoningPart(declared=True):
                return self._thought(hub, self._inner(hub, part, entries), part)
            case ContentPart():
                self._said(hub, part, entries)
            case Calls(forbidden=True):  # What is not empty is text.
                ends = Finder(marker.text for marker in self.tree.ends)
                self._enter(hub, list(empty_entries(self.code, part, hub.at, ends)))
            case ReasoningPart() | Calls():
                pass  # The one has less of a say than what is between parts, the other is compiled before.
            case _:
                assert_never(part)
        return None

    def _between(self, hub: _Hub, entries: list[CallEntry]) -> None:
        """Compile the markers that are no part, and that have no meaning."""
        for marker in self.tree.ends:
            if holds_token(marker.core):
                self._silent(hub, marker, self.ended)
            else:
                self._last(hub, marker, self.ended, ())
        for marker in self.tree.dropped:
            self._silent(hub, marker, self.answer)
        for marker in self.tree.joints:
            # Words that are dropped where content begins; right before a call they are a part of it.
            self._opens(marker, self.answer)
            if marker in self.tree.call_joints:
                self._before_calls(hub, marker, entries)

    def _marker(
        self, hub: _Hub, marker: Marker, target: int, role: Role = Role.MARKER, *, quotable: bool = False
    ) -> None:
        """A marker that is taken, with its layout, and leads to `target`; unless it is quoted, where it may be."""
        for variant in marker.variants():
            unsure = [Unsure(hub.role, len(variant), hub.at)] if quotable else []
            at = self.code.emit(*unsure, Lit(variant, role), Space(marker.after, role), Jump(target))
            # Two parts may share a marker: the first one has it.
            hub.direct.setdefault(variant, at)
            if marker.guarded:
                hub.guarded.add(variant)

    def _silent(self, hub: _Hub, marker: Marker, target: int) -> None:
        """A meaningless special token; whitespace around it is content if there is content on both sides."""
        for variant in marker.variants():
            lead = Space(variant.removesuffix(marker.core), kept=True)
            at = self.code.emit(lead, Lit(marker.core), Space(marker.after, kept=True), Jump(target))
            hub.direct.setdefault(variant, at)

    def _last(self, hub: _Hub, marker: Marker, target: int, openers: Iterable[str]) -> None:
        """A marker made of words that counts only where nothing but ends, headers and `openers` may follow."""
        tokens = (it for it in self.dropped if holds_token(it.text))
        following = (*(it.core for it in (*tokens, *self.tree.headers)), *openers)
        ends = Finder(text for text in following if text != marker.core)
        for variant in marker.variants():
            at = self.code.emit(Unsure(hub.role, len(variant), hub.at, ends), Lit(variant), Jump(target))
            hub.direct.setdefault(variant, at)

    def _said(self, hub: _Hub, said: ContentPart, entries: list[CallEntry]) -> None:
        for marker in said.open.spelled:
            if holds_token(marker.core):
                self._marker(hub, marker, hub.at)
            else:
                self._opens(marker, hub.at)
        for marker in said.close.spelled:
            if holds_token(marker.core):
                self._marker(hub, marker, hub.at)
            else:
                openers = (*(end.core for end in self.tree.ends), *(entry.opener for entry in entries))
                self._last(hub, marker, hub.at, openers)

    def _opens(self, marker: Marker, target: int, role: Role = Role.MARKER) -> None:
        """Words that open a part: they count only where one may begin."""
        finder = Finder((marker.core,), (marker.core,) if marker.guarded else ())
        at = self.code.emit(
            Space(), Look(finder), Commit(), Lit(marker.core, role), Space(marker.after, role), Jump(target)
        )
        self.opening.setdefault(marker.core, at)

    def _before_calls(self, hub: _Hub, joint: Marker, entries: list[CallEntry]) -> None:
        for entry in entries:
            # As a part of the call, it is text where the call fails.
            at = self.code.emit(Space(), Lit(joint.core), Space(), Jump(entry.target))
            for variant in joint.variants():
                hub.attempts.setdefault(variant, []).append(at)

    def _fenced_json(self, hub: _Hub) -> None:
        """An answer in JSON may be in a Markdown fence, which is not a part of it."""
        opens = self.code.emit(Fence(opens=True), Jump(hub.at))
        ends = Finder(marker.core for marker in self.dropped)
        closes = self.code.emit(Space(), Lit("```"), Space(), Look(ends, ends=True), Commit(), Jump(hub.at))
        hub.fences.update((opens, closes))
        for variant in ("```", "\n```"):
            hub.attempts.setdefault(variant, []).extend((opens, closes))

    def _thought(self, hub: _Hub, inner: _Hub, thought: ReasoningPart) -> int | None:
        """Reasoning that its marker opens, or the prompt."""
        for marker in thought.open.spelled:
            if not holds_token(marker.core):
                self._opens(marker, inner.at, inner.role)
                continue
            # Models repeat an opener that the prompt has already written. The closer may begin like it.
            # `<think` and `<think/>`: what looks like the opener again may be the closer.
            longer = [text for text in (*inner.direct, *inner.attempts) if text.startswith(marker.core)]
            closed = [Look(Finder(longer), inner.at)] if longer else []
            begin = self.code.emit(*closed, Lit(marker.core, optional=True), Space(marker.after), Jump(inner.at))
            self._marker(hub, marker, begin, inner.role)
        return None if thought.open.spelled else inner.at

    def _undeclared(self, hub: _Hub, inner: _Hub, thought: ReasoningPart) -> None:
        """Reasoning that the format does not have: its marker opens it only at the start of an answer."""
        role = inner.role
        for marker in thought.open.spelled:
            # The opener may come again, and then whole where this is one that was cut short.
            openers = sorted((text for text in (marker.core, *hub.direct) if text.startswith(marker.core)), key=len)
            self.undeclared[marker.core] = self.code.emit(
                Lit(marker.core, role), *(Lit(text, optional=True) for text in reversed(openers))
            )
            self.code.emit(Space(marker.after, role), Jump(inner.at))
            # Anywhere but at the start, `<think>` is what prose about models mentions.
            unsure = Unsure(hub.role, len(marker.core), hub.at, undeclared="opener")
            hub.direct.setdefault(marker.core, self.code.emit(unsure))
        for marker in thought.close.spelled:
            unsure = Unsure(hub.role, len(marker.core), hub.at, undeclared="closer")
            closed = (unsure, Lit(marker.core, role), Space(thought.joint, role), Jump(hub.at))
            hub.direct.setdefault(marker.core, self.code.emit(*closed))

    def _open_undeclared(self, hub: _Hub, begin: int) -> int:
        """Return where an answer begins that may begin with reasoning which the format does not have."""
        heads = tuple(self.undeclared)
        # Beside the format's own `<thinking>`, a known `<think>` must not be found in it.
        longer = [text for text in (*hub.direct, *hub.attempts) if text.startswith(heads)]
        return self.code.emit(OpenUndeclared(Finder((*heads, *longer)), FrozenDict(self.undeclared), begin))

    def _inner(self, hub: _Hub, thought: ReasoningPart, entries: list[CallEntry]) -> _Hub:
        """Return the text of reasoning, closed by its own marker or by one that cannot be inside it."""
        inner = self._hub(Role.REASONING, Halt(repr(thought.close.text)))
        self._closers(inner, thought)
        sealed = -1
        self._enter(inner, entries)
        for joint in self.tree.call_joints:
            self._before_calls(inner, joint, entries)
        # A model that forgets `</think>` still calls: such a call counts if nothing but the end follows it.
        if not thought.holds_calls and self.runs:
            ends = Finder(marker.core for marker in (*thought.close.spelled, *self.dropped))
            sealed = len(self.code)
            over = Look(ends=True)
            self.code.emit(Space(), Look(ends, sealed, takes=True), over, Commit(release=True), Jump(hub.at))
        self._seal(inner, sealed)
        return inner

    def _closers(self, inner: _Hub, thought: ReasoningPart) -> None:
        for marker in thought.close.spelled:
            self._marker(inner, Marker(marker.text + thought.joint), self.answer, inner.role)
        # A model that forgets `</think>` goes on with the opener of the content, or ends the turn.
        for marker in self.tree.ends:
            if holds_token(marker.core):
                self._marker(inner, marker, self.begins)
            else:
                self._last(inner, marker, self.ended, ())
        openers = (opener for part in self.tree.parts if isinstance(part, ContentPart) for opener in part.open.spelled)
        for marker in filter(lambda marker: holds_token(marker.core), (*openers, *self.tree.dropped)):
            self._marker(inner, marker, self.begins, quotable=True)
