"""Compiles a grammar into the machine's program.

Strategy: an answer is free text with parts in it. Each free text becomes one `FreeText` instruction (a hub) that searches for
all markers which may interrupt it, with a table that says where each leads: into reasoning, into the attempts to read a
call, or back. Everything between two hubs is straight-line code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

from unrender.freezing import FrozenDict
from unrender.grammar.assemble import (
    Answer,
    AnswerGrammar,
    AnswerPart,
    Block,
    Dropped,
    EndOfTurn,
    Header,
    Joint,
    JsonAnswer,
    NoCalls,
    Wrapper,
)
from unrender.grammar.follow import closing_tokens
from unrender.grammar.markers import holds_token
from unrender.machine.arguments import Commit
from unrender.machine.compile import Code
from unrender.machine.compile.calls import CallCode, CallEntry, empty_entries
from unrender.machine.instructions import Attempt, FreeText, Halt, Jump, Lit, Look, OpenFence, Skip, Space, Unsure
from unrender.machine.interpreter import Program
from unrender.machine.tail import BrokenRun, TextRun
from unrender.machine.undeclared import Mention, OpenUndeclared
from unrender.nodes import Calls, Role
from unrender.values.finder import Finder, Flow

CONTENT_HUB = 1
"""Where in every program the text outside of all parts is read."""


def compile_grammar(grammar: AnswerGrammar) -> Program:
    """Return the program that reads everything `grammar` allows or tolerates."""
    return _Compiler(grammar.reads).program()


@dataclass(frozen=True, slots=True)
class _Marker:
    """A text that interrupts free text, with the layout around it."""

    lead: str
    core: str
    after: str

    @classmethod
    def of(cls, text: str, *, joint: str = "") -> _Marker:
        core = text.strip()
        start = text.index(core)
        return cls(text[:start], core, text[start + len(core) :] + joint)

    @property
    def guarded(self) -> bool:
        """A marker that ends in a letter and wants white space after it must not be found inside a longer word."""
        return bool(self.after) and self.core[-1:].isalnum()

    def __bool__(self) -> bool:
        return bool(self.core)

    def variants(self) -> Iterator[str]:
        """Yield the marker with ever less of its leading layout."""
        # `\n\n<call>`, `\n<call>` and `<call>`: models write less layout than the template does.
        for i in range(len(self.lead) + 1):
            yield self.lead[i:] + self.core


def _with_layout(markers: Iterable[_Marker]) -> tuple[list[str], list[str]]:
    """Return the markers with any beginning of the layout after them, and those of them that must not be found in a word."""
    found, guarded = [], []
    for marker in markers:
        found += [marker.core + marker.after[:size] for size in range(len(marker.after) + 1)]
        guarded += [marker.core] if marker.guarded else []
    return found, guarded


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
        self.parts = answer.parts
        self.header, self.lead, self.trail = answer.header, answer.lead, answer.trail
        self.cleans = answer.cleans
        self.runs = [part for part in answer.parts if isinstance(part, Calls)]
        self.ends = [part.text for part in answer.parts if isinstance(part, EndOfTurn)]
        self.dropped = [*self.ends, *(part.text for part in answer.parts if isinstance(part, Dropped))]
        self.headers = [part.text for part in answer.parts if isinstance(part, Header)]
        self.openers = [text for part in answer.parts if isinstance(part, Wrapper) for text in part.opens]
        self.code = Code()
        self.opening: dict[str, int] = {}
        """What is tried where content begins: the markers that are words, and where they lead."""
        self.begins = self.answer = self.ended = CONTENT_HUB
        """Where content may begin after calls, where it begins after reasoning, and where reading goes on after an end of turn."""
        self.undeclared: dict[str, int] = {}
        """Where the markers lead that may begin an answer though the format does not have them."""

    def program(self) -> Program:
        # The hub is at the same address in every program: a prompt that skips reasoning begins there.
        start = self.code.reserve()
        hub = self._hub(Role.CONTENT, Halt())
        assert hub.at == CONTENT_HUB
        opens_in_words = self._opens_in_words()
        begin = self.begins = self.answer = self.code.reserve() if opens_in_words else hub.at
        ends = frozenset(text.strip() for text in self.dropped)
        turn_ends = frozenset(text.strip() for text in self.ends)
        codes = [CallCode(self.code, calls, self.begins, ends, self.trail, turn_ends) for calls in self.runs]
        entries = [entry for code in codes for entry in code.compile()]
        unmarked = tuple(at for code in codes for at in code.unmarked)
        if unmarked:
            # `get_weather\n{…}`: no marker shows such a call, so where an answer begins it is tried
            # before the text.
            begin = self.answer = self.code.emit(Attempt(unmarked, self.begins, reported=False))
        self.ended = self._after_end()
        for part in self.parts:
            begin = self._part(hub, part, entries) or begin
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
        texts = [part.text for part in self.parts if isinstance(part, Joint)]
        for part in self.parts:
            if isinstance(part, Wrapper) or (isinstance(part, Block) and part.declared):
                texts += part.opens
        return any(text.strip() and not holds_token(text) for text in texts)

    def _start(self, begin: int) -> int:
        """Emit the code before everything: the header that no prompt writes, and layout."""
        lead = self.code.emit(Space(self.lead), Jump(begin))
        return self._after_headers([self.header], lead) if self.header else lead

    def _after_headers(self, headers: Iterable[str], target: int) -> int:
        """Emit the code that drops a header made of words, where one is, and goes on at `target`."""
        finder = Finder(*_with_layout(map(_Marker.of, headers)))
        return self.code.emit(Look(finder, target, takes=True), Jump(target))

    def _after_end(self) -> int:
        """Emit the code after an end of turn: white space, and the header of another turn."""
        headers = [text for text in self.headers if text.strip()]
        target = self._after_headers(headers, self.begins) if headers else self.begins
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
            at = -1 if self.cleans or sealed >= 0 or hub.fences.intersection(found) else hub.at
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
                self.trail,
                Flow(finder.literals, last=self.trail),
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
        sections = [calls.syntax.section_start + calls.syntax.call_start for calls in self.runs]
        alone = frozenset("".join(text.split()) for text in (*openers, *sections)) - {""}
        # Reasoning that mentions a call must still end where its closer stands.
        stops = Finder(hub.direct if hub.role is Role.REASONING else ())
        run = TextRun(hub.role, hub.at, finder, stops, alone if hub.role is Role.CONTENT else frozenset())
        if not self.cleans or hub.role is not Role.CONTENT:
            return self.code.emit(run)
        closers = [token for calls in self.runs for token in closing_tokens(calls.syntax)]
        return self.code.emit(BrokenRun(run, Finder(("}", *hub.attempts)), Finder(closers)))

    def _enter(self, hub: _Hub, entries: Iterable[CallEntry]) -> None:
        for entry in entries:
            marker = _Marker.of(entry.lead + entry.opener)
            for variant in marker.variants():
                hub.attempts.setdefault(variant, []).append(entry.target)
                if entry.strong:
                    hub.reported[variant] = entry.alone or hub.reported.get(variant, False)
                elif entry.weak:
                    hub.weak[variant] = hub.weak.get(variant, False) or "\n" not in entry.lead

    def _part(self, hub: _Hub, part: AnswerPart, entries: list[CallEntry]) -> int | None:
        """Compile one part; returns where the answer begins when it begins inside that part."""
        match part:
            case EndOfTurn(text):
                self._end(hub, _Marker.of(text))
            case Dropped(text):
                self._silent(hub, _Marker.of(text))
            case Header():
                pass  # It counts after an end of turn alone.
            case Joint(text):
                self._joint(hub, part, entries)
            case Wrapper():
                self._wrapper(hub, part, entries)
            case Block(declared=True):
                return self._block(hub, self._inner(hub, part, entries), part)
            case Block():
                self._undeclared(hub, self._inner(hub, part, entries), part)
            case JsonAnswer():
                self._fenced_json(hub)
            case NoCalls(syntax):
                self._enter(
                    hub, empty_entries(self.code, syntax, hub.at, Finder(self.ends))
                )  # What is not empty is text.
            case Calls():
                pass  # Compiled before: their entries are what the free texts lead to.
            case _:
                assert_never(part)
        return None

    def _marker(self, hub: _Hub, marker: _Marker, target: int, role: Role = Role.MARKER) -> None:
        """A marker that is taken, with its layout, and leads to `target`."""
        for variant in marker.variants() if marker else ():
            at = self.code.emit(Skip(len(variant), role), Space(marker.after, role), Jump(target))
            # Two parts may share a marker: the first one has it.
            hub.direct.setdefault(variant, at)
            if marker.guarded:
                hub.guarded.add(variant)

    def _ends_unless_quoted(self, inner: _Hub, marker: _Marker) -> None:
        """A marker that the reasoning does not hold ends it, unless it is quoted there."""
        for variant in marker.variants() if marker else ():
            quoted = Unsure(inner.role, len(variant), inner.at)
            at = self.code.emit(quoted, Skip(len(variant)), Space(marker.after), Jump(self.begins))
            inner.direct.setdefault(variant, at)
            if marker.guarded:
                inner.guarded.add(variant)

    def _silent(self, hub: _Hub, marker: _Marker) -> None:
        """A special token that says nothing: white space around it is content where content is on both sides."""
        for variant in marker.variants():
            lead = Space(variant.removesuffix(marker.core), kept=True)
            at = self.code.emit(lead, Skip(len(marker.core)), Space(marker.after, kept=True), Jump(self.answer))
            hub.direct.setdefault(variant, at)

    def _end(self, hub: _Hub, marker: _Marker) -> None:
        """An end of turn is taken with all white space after it."""
        if not holds_token(marker.core):
            self._last(hub, marker, self.ended, ())
            return
        for variant in marker.variants():
            lead = Space(variant.removesuffix(marker.core), kept=True)
            hub.direct.setdefault(variant, self.code.emit(lead, Skip(len(marker.core)), Jump(self.ended)))

    def _last(self, hub: _Hub, marker: _Marker, target: int, openers: Iterable[str]) -> None:
        """A marker made of words that counts only where nothing but ends, headers and `openers` may follow."""
        following = (*filter(holds_token, self.dropped), *self.headers, *openers)
        ends = Finder(text.strip() for text in following if text.strip() != marker.core)
        for variant in marker.variants():
            size = len(variant)
            at = self.code.emit(Unsure(hub.role, size, hub.at, ends), Skip(size), Jump(target))
            hub.direct.setdefault(variant, at)

    def _wrapper(self, hub: _Hub, wrapper: Wrapper, entries: list[CallEntry]) -> None:
        for marker in filter(None, map(_Marker.of, wrapper.opens)):
            if holds_token(marker.core):
                self._marker(hub, marker, hub.at)
            else:
                self._opens(marker, hub.at)
        for marker in filter(None, map(_Marker.of, wrapper.closes)):
            if holds_token(marker.core):
                self._marker(hub, marker, hub.at)
            else:
                self._last(hub, marker, hub.at, (*self.ends, *(entry.opener for entry in entries)))

    def _opens(self, marker: _Marker, target: int, role: Role = Role.MARKER) -> None:
        """Words that open a part: they count only where one may begin."""
        finder = Finder((marker.core,), (marker.core,) if marker.guarded else ())
        at = self.code.emit(
            Space(), Look(finder), Commit(), Skip(len(marker.core), role), Space(marker.after, role), Jump(target)
        )
        self.opening.setdefault(marker.core, at)

    def _joint(self, hub: _Hub, joint: Joint, entries: list[CallEntry]) -> None:
        """Words that are dropped where content begins; right before a call they are a part of it."""
        self._opens(_Marker.of(joint.text), self.answer)
        self._before_calls(hub, joint, entries)

    def _before_calls(self, hub: _Hub, joint: Joint, entries: list[CallEntry]) -> None:
        marker = _Marker.of(joint.text)
        for entry in entries if joint.before_calls else ():
            # As a part of the call, it is text where the call fails.
            at = self.code.emit(Space(), Lit(marker.core), Space(), Jump(entry.target))
            for variant in marker.variants():
                hub.attempts.setdefault(variant, []).append(at)

    def _fenced_json(self, hub: _Hub) -> None:
        """An answer in JSON may be in a Markdown fence, which is not a part of it."""
        opens = self.code.emit(OpenFence(), Jump(hub.at))
        ends = Finder(text.strip() for text in self.dropped)
        closes = self.code.emit(Space(), Lit("```"), Space(), Look(ends, ends=True), Commit(), Jump(hub.at))
        hub.fences.update((opens, closes))
        for variant in ("```", "\n```"):
            hub.attempts.setdefault(variant, []).extend((opens, closes))

    def _block(self, hub: _Hub, inner: _Hub, block: Block) -> int | None:
        """Reasoning that its marker opens, or the prompt."""
        starts = [_Marker.of(text) for text in block.opens if text.strip()]
        for marker in starts:
            if not holds_token(marker.core):
                self._opens(marker, inner.at, inner.role)
                continue
            # Models repeat an opener that the prompt has already written. The closer may begin like it.
            # `<think` and `<think/>`: what looks like the opener again may be the closer.
            longer = [text for text in (*inner.direct, *inner.attempts) if text.startswith(marker.core)]
            closed = [Look(Finder(longer), inner.at)] if longer else []
            begin = self.code.emit(*closed, Lit(marker.core, optional=True), Space(marker.after), Jump(inner.at))
            self._marker(hub, marker, begin, inner.role)
        return None if starts else inner.at

    def _undeclared(self, hub: _Hub, inner: _Hub, block: Block) -> None:
        """Reasoning that the format does not have: its marker opens it only at the start of an answer."""
        role = inner.role
        for marker in map(_Marker.of, block.opens):
            size = len(marker.core)
            # The opener may come again, and then whole where this is one that was cut short.
            openers = sorted((text for text in (marker.core, *hub.direct) if text.startswith(marker.core)), key=len)
            self.undeclared[marker.core] = self.code.emit(
                Skip(size, role), *(Lit(text, optional=True) for text in reversed(openers))
            )
            self.code.emit(Space(marker.after, role), Jump(inner.at))
            # Anywhere but at the start, `<think>` is what prose about models mentions.
            hub.direct.setdefault(marker.core, self.code.emit(Mention(size, hub.at)))
        for marker in map(_Marker.of, block.closes):
            size = len(marker.core)
            closed = (Mention(size, hub.at, closes=True), Skip(size, role), Space(block.joint, role), Jump(hub.at))
            hub.direct.setdefault(marker.core, self.code.emit(*closed))

    def _open_undeclared(self, hub: _Hub, begin: int) -> int:
        """Return where an answer begins that may begin with reasoning which the format does not have."""
        heads = tuple(self.undeclared)
        # Beside the format's own `<thinking>`, a known `<think>` must not be found in it.
        longer = [text for text in (*hub.direct, *hub.attempts) if text.startswith(heads)]
        return self.code.emit(OpenUndeclared(Finder((*heads, *longer)), FrozenDict(self.undeclared), begin))

    def _inner(self, hub: _Hub, block: Block, entries: list[CallEntry]) -> _Hub:
        """Return the text of reasoning, closed by its own marker or by one that cannot be inside it."""
        inner = self._hub(Role.REASONING, Halt(repr(block.closes[0])))
        self._closers(inner, block)
        sealed = -1
        self._enter(inner, entries)
        for part in self.parts:
            if isinstance(part, Joint):
                self._before_calls(inner, part, entries)
        # A model that forgets `</think>` still calls: such a call counts if nothing but the end follows it.
        if not block.holds_calls and self.runs:
            ends = [text.strip() for text in [*block.closes, *self.dropped] if text.strip()]
            sealed = len(self.code)
            over = Look(Finder(()), ends=True)
            self.code.emit(Space(), Look(Finder(ends), sealed, takes=True), over, Commit(release=True), Jump(hub.at))
        self._seal(inner, sealed)
        return inner

    def _closers(self, inner: _Hub, block: Block) -> None:
        for text in block.closes:
            self._marker(inner, _Marker.of(text, joint=block.joint), self.answer, inner.role)
        # A model that forgets `</think>` goes on with the opener of the content, or ends the turn.
        for marker in map(_Marker.of, self.ends):
            if holds_token(marker.core):
                self._marker(inner, marker, self.begins)
        for marker in map(_Marker.of, [*self.openers, *self.dropped]):
            if holds_token(marker.core):
                self._ends_unless_quoted(inner, marker)
        for marker in map(_Marker.of, self.ends):
            if not holds_token(marker.core):
                self._last(inner, marker, self.ended, ())
