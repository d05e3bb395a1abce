"""Compile a grammar into the machine's program.

Strategy: an answer is free text with parts in it. Each free text becomes one `Text` instruction (a hub) that searches for
all markers which may interrupt it, with a table that says where each leads: into reasoning, into the attempts to read a
call, or back. Everything between two hubs is straight-line code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from unrender.assemble import literals
from unrender.grammar.nodes import (
    Calls,
    Grammar,
    Interleave,
    JsonValue,
    Layout,
    Literal,
    Node,
    Role,
    Sequence,
    Tag,
    Tolerated,
    Until,
)
from unrender.parsing.broken import BrokenRun, TextRun
from unrender.parsing.calls import CallCode, Entry, closing_tokens
from unrender.parsing.code import Code
from unrender.parsing.finder import Finder
from unrender.parsing.flow import Flow
from unrender.parsing.instructions import (
    AtEnd,
    Attempt,
    Halt,
    Jump,
    Lit,
    Maybe,
    OpenFence,
    SealAtEnd,
    Skip,
    Soft,
    Space,
    Text,
    Unless,
)
from unrender.parsing.machine import Program
from unrender.parsing.undeclared import CloseUndeclared, Mention, OpenUndeclared

CONTENT_HUB = 1
"""Where in every program the text outside of all parts is read."""


def compile_grammar(grammar: Grammar) -> Program:
    """Return the program that reads what `grammar` allows and tolerates."""
    assert isinstance(grammar.root, Interleave)
    return _Compiler(grammar.root).program()


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
        """A marker that ends in a letter and wants white space behind it must not be found inside a longer word."""
        return bool(self.after) and self.core[-1:].isalnum()

    def variants(self) -> Iterator[str]:
        """Yield the marker with ever less of its leading layout."""
        for i in range(len(self.lead) + 1):
            yield self.lead[i:] + self.core


@dataclass(slots=True)
class _Hub:
    """A free text under construction: where its markers lead, and which calls are tried at which."""

    role: Role
    at: int
    end: int = -1
    direct: dict[str, int] = field(default_factory=dict)
    guarded: set[str] = field(default_factory=set)
    attempts: dict[str, list[int]] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)


class _Compiler:
    def __init__(self, root: Interleave) -> None:
        self.parts = root.parts
        self.lead, self.trail = root.lead, root.trail
        self.cleans = root.cleans
        self.code = Code()
        self.answer = CONTENT_HUB
        """Where text is read behind reasoning."""
        self.undeclared: dict[str, int] = {}
        """Where the markers lead that may begin an answer though the format does not have them."""

    def program(self) -> Program:
        start = self.code.reserve()
        hub = self._hub(Role.CONTENT, Halt())
        assert hub.at == CONTENT_HUB
        begin = self.answer = hub.at
        ends = frozenset(text.strip() for text in self._dropped())
        codes = [CallCode(self.code, calls, hub.at, ends) for calls in self._runs()]
        entries = [entry for code in codes for entry in code.compile()]
        unmarked = tuple(at for code in codes for at in code.unmarked)
        if unmarked:
            begin = self.answer = self.code.emit(Attempt(unmarked, hub.at, reported=False))
        for part in self.parts:
            begin = self._part(hub, part, entries) or begin
        self._enter(hub, entries)
        if self.undeclared:
            begin = self._open_undeclared(hub, begin)
        self._seal(hub)
        self.code.put(start, Jump(self.code.emit(Soft(self.lead), Jump(begin))))
        return self.code.program()

    def _runs(self) -> Iterator[Calls]:
        for part in self.parts:
            if isinstance(part, Calls):
                yield part

    def _hub(self, role: Role, halt: Halt) -> _Hub:
        return _Hub(role, self.code.reserve(), self.code.emit(halt))

    def _seal(self, hub: _Hub, sealed: int = -1) -> None:
        table = dict(hub.direct)
        finder = Finder({**hub.direct, **hub.attempts}, hub.guarded - hub.attempts.keys())
        run = self._text_run(hub, finder)
        for variant, targets in hub.attempts.items():
            otherwise = hub.direct.get(variant, run)
            reported = variant in hub.reported and otherwise == run
            table[variant] = self.code.emit(Attempt(tuple(dict.fromkeys(targets)), otherwise, reported, sealed))
        self.code.put(
            hub.at, Text(hub.role, finder, table, hub.end, self.trail, Flow(finder.literals, last=self.trail))
        )

    def _text_run(self, hub: _Hub, finder: Finder) -> int:
        run = TextRun(hub.role, hub.at, finder, Finder(hub.direct if hub.role is Role.REASONING else ()))
        if not self.cleans or hub.role is not Role.CONTENT:
            return self.code.emit(run)
        closers = [token for calls in self._runs() for token in closing_tokens(calls.syntax)]
        return self.code.emit(BrokenRun(run, Finder(("}", *hub.attempts)), Finder(closers)))

    def _enter(self, hub: _Hub, entries: Iterable[Entry]) -> None:
        for entry in entries:
            marker = _Marker.of(entry.lead + entry.opener)
            for variant in marker.variants():
                hub.attempts.setdefault(variant, []).append(entry.target)
                if entry.strong:
                    hub.reported.add(variant)

    def _part(self, hub: _Hub, part: Node, entries: list[Entry]) -> int | None:
        """Compile one part; returns where the answer begins when it begins inside that part."""
        node = part.node if isinstance(part, Tolerated) else part
        match node:
            case Tag(role=Role.LAYOUT, node=Literal(text=text)):
                self._end(hub, _Marker.of(text))
            case Tag(role=Role.MARKER, node=Literal(text=text)):
                self._marker(hub, _Marker.of(text), hub.at)
            case Tag(role=Role.CONTENT, node=JsonValue()):
                self._fenced_json(hub)
            case Sequence(parts=(opener, Interleave() as body, closer, Layout() as joint)):
                inner = self._inner(hub, body, closer, joint, entries)
                if not isinstance(part, Tolerated):
                    return self._block(hub, inner, opener)
                self._undeclared(hub, inner, opener, closer, joint)
            case Sequence(parts=(opener, Tag(role=Role.CONTENT, node=Until()), closer)):
                for text in literals((opener, closer)):
                    self._marker(hub, _Marker.of(text), hub.at)
        return None

    def _marker(self, hub: _Hub, marker: _Marker, target: int, role: Role = Role.MARKER) -> None:
        """A marker that is taken, with its layout, and leads to `target`."""
        for variant in marker.variants() if marker.core else ():
            at = self.code.emit(Skip(len(variant), role), Soft(marker.after, role), Jump(target))
            hub.direct.setdefault(variant, at)
            if marker.guarded:
                hub.guarded.add(variant)

    def _end(self, hub: _Hub, marker: _Marker) -> None:
        """An end of turn is taken with all white space behind it."""
        for variant in marker.variants() if marker.core else ():
            hub.direct.setdefault(variant, self.code.emit(Skip(len(variant)), Space(), Jump(hub.at)))

    def _fenced_json(self, hub: _Hub) -> None:
        """An answer in JSON may stand in a Markdown fence, which is no part of it."""
        opens = self.code.emit(OpenFence(), Jump(hub.at))
        ends = Finder(text.strip() for text in self._dropped())
        closes = self.code.emit(Space(), Lit("```"), Space(), AtEnd(ends), Jump(hub.at))
        for variant in ("```", "\n```"):
            hub.attempts.setdefault(variant, []).extend((opens, closes))

    def _block(self, hub: _Hub, inner: _Hub, opener: Node) -> int | None:
        """Reasoning that its marker opens, or the prompt."""
        starts = [_Marker.of(text) for text in literals((opener,)) if text.strip()]
        for marker in starts:
            # Models repeat an opener that the prompt has already written; what closes the block may begin like it.
            longer = [text for text in (*inner.direct, *inner.attempts) if text.startswith(marker.core)]
            closed = [Unless(Finder(longer), inner.at)] if longer else []
            begin = self.code.emit(*closed, Maybe(marker.core), Soft(marker.after), Jump(inner.at))
            self._marker(hub, marker, begin, inner.role)
        return None if starts else inner.at

    def _undeclared(self, hub: _Hub, inner: _Hub, opener: Node, closer: Node, joint: Layout) -> None:
        """Reasoning that the format does not have: its marker opens it only at the start of an answer."""
        role = inner.role
        for marker in map(_Marker.of, literals((opener,))):
            size = len(marker.core)
            # The opener may come again, and then whole where this is one that was cut short.
            openers = sorted((text for text in (marker.core, *hub.direct) if text.startswith(marker.core)), key=len)
            self.undeclared[marker.core] = self.code.emit(Skip(size, role), *map(Maybe, reversed(openers)))
            self.code.emit(Soft(marker.after, role), Jump(inner.at))
            hub.direct.setdefault(marker.core, self.code.emit(Mention(size, hub.at)))
        for marker in map(_Marker.of, literals((closer,))):
            size = len(marker.core)
            closed = (CloseUndeclared(size, hub.at), Skip(size, role), Soft(joint.text, role), Jump(hub.at))
            hub.direct.setdefault(marker.core, self.code.emit(*closed))

    def _open_undeclared(self, hub: _Hub, begin: int) -> int:
        """Return where an answer begins that may begin with reasoning which the format does not have."""
        heads = tuple(self.undeclared)
        longer = [text for text in (*hub.direct, *hub.attempts) if text.startswith(heads)]
        return self.code.emit(OpenUndeclared(Finder((*heads, *longer)), dict(self.undeclared), begin))

    def _inner(self, hub: _Hub, body: Interleave, closer: Node, joint: Layout, entries: list[Entry]) -> _Hub:
        """Return the text of reasoning, closed by its own marker or by one that cannot stand inside it."""
        inner = self._hub(body.role, Halt(repr(literals((closer,))[0])))
        self._closers(hub, inner, closer, joint)
        sealed = -1
        if body.parts:
            self._enter(inner, entries)
        if any(isinstance(part, Tolerated) for part in body.parts):
            ends = [text.strip() for text in [*literals((closer,)), *self._dropped()] if text.strip()]
            sealed = self.code.emit(SealAtEnd(Finder(ends), hub.at))
        self._seal(inner, sealed)
        return inner

    def _closers(self, hub: _Hub, inner: _Hub, closer: Node, joint: Layout) -> None:
        for text in literals((closer,)):
            self._marker(inner, _Marker.of(text, joint=joint.text), self.answer, inner.role)
        for text in [*self._content_openers(), *self._dropped()]:
            self._marker(inner, _Marker.of(text), hub.at)

    def _content_openers(self) -> Iterator[str]:
        for part in self.parts:
            match part:
                case Sequence(parts=(opener, Tag(role=Role.CONTENT), _)):
                    yield from literals((opener,))

    def _dropped(self) -> Iterator[str]:
        for part in self.parts:
            match part:
                case Tolerated(node=Tag(role=Role.MARKER, node=Literal(text=text))):
                    yield text
