"""Compiles an answer tree into a program.

Strategy: an answer is free text that contains parts. Each free text becomes one `FreeText` instruction (a hub). A hub searches for all
markers that may interrupt the text. A table maps each marker to the address of reasoning, of an attempt to parse a call, or of another hub.
The code between two hubs is straight-line code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from unrender.answer import TOKEN, Answer, Calls, ContentPart, Marker, Opening, ReasoningPart, holds_token
from unrender.answer.views import CallView
from unrender.json_values import FrozenDict
from unrender.machine.calls.call_reader import ReadCalls
from unrender.machine.calls.tail import Addresses
from unrender.machine.instructions import (
    Attempt,
    Commit,
    FreeText,
    Halt,
    Jump,
    Lit,
    Look,
    OpenFence,
    OpenUndeclared,
    SkipHeader,
    Space,
    Unread,
    Unsure,
)
from unrender.machine.interpreter import Instruction, Program
from unrender.machine.thoughts import CloseThought, CloseUnopened, EndTurn, Mention, OpenThought
from unrender.nodes import Role
from unrender.values.finder import Finder, Flow

_HEADER = re.compile(rf"(?P<start>(?:{TOKEN.pattern})\w+)(?P<end>{TOKEN.pattern})")
"""Matches a header that consists of a token, a word and another token."""
_LABELLED = re.compile(rf"(?P<token>{TOKEN.pattern})\w+")
"""Matches a token and a word after it."""
_UNQUOTED = "an unquoted end marker"
_UNOPENED = "a start marker of reasoning before its end marker"
CONTENT_HUB = 1
"""Address of the free text outside of all parts, which is the same in every program."""


def compile_answer(answer: Answer) -> Program:
    """Return the program that parses all answers that `answer` allows or tolerates."""
    return _Compiler(answer).program()


@dataclass(slots=True)
class _Hub:
    """A free text that is being compiled, with an address for each marker, and the calls to try at each marker."""

    role: Role
    at: int
    end: int = -1
    direct: dict[str, int] = field(default_factory=dict)
    guarded: set[str] = field(default_factory=set)
    attempts: dict[str, list[int]] = field(default_factory=dict)
    weak: dict[str, bool] = field(default_factory=dict)
    """Brackets that start calls. The value is True if text may precede the bracket on its line."""
    fences: set[int] = field(default_factory=set)
    """Addresses of attempts that parse a Markdown fence instead of a call, and can't be quoted."""
    reported: dict[str, bool] = field(default_factory=dict)
    """Markers that don't occur in prose, so they are reported if no call follows. The value is True if the marker alone identifies a call.
    """


@dataclass(frozen=True, slots=True)
class _Entry:
    """A place at which a run of calls may start. Without an opener, the run starts with a tool name."""

    opening: Opening
    target: int
    """Address of the code that reads the run."""
    damaged: int = -1
    """Address of the code that reads a damaged call at this place. -1 if such calls aren't repaired."""


class _Code(list[Instruction | None]):
    """The instructions so far. None reserves an address."""

    def emit(self, *instructions: Instruction | None) -> int:
        """Append instructions, and return the address of the first one."""
        self.extend(instructions)
        return len(self) - len(instructions)


class _Compiler:
    def __init__(self, answer: Answer) -> None:
        self.tree = answer
        calls = [part for part in answer.parts if isinstance(part, Calls) and not part.forbidden]
        self.runs = [part for part in calls if not part.alone]
        self.alone = [part for part in calls if part.alone]
        """Calls that count only if they are the whole answer."""
        self.dropped = (*answer.ends, *answer.dropped)
        self.code = _Code()
        self.opening: dict[str, int] = {}
        """Addresses for markers made of words. These markers are tried at the start of content."""
        self.begins = self.answer = self.ended = CONTENT_HUB
        """Three addresses: for the start of content after calls, for the start of content after reasoning, and for text after an end of
        turn.
        """
        self.lines: dict[str, int] = {}
        """Addresses of the code for calls that start a line after content. Each key is a line break followed by a tool name."""
        self.undeclared: dict[str, int] = {}
        """Addresses for reasoning markers that aren't part of the format, but may start an answer."""

    def program(self) -> Program:
        # The hub for content has the same address in every program, so that parsing can start there if the prompt skips reasoning.
        start = self.code.emit(None)
        hub = _Hub(Role.CONTENT, self.code.emit(None), self.code.emit(Halt()))
        assert hub.at == CONTENT_HUB
        opens_in_words = self._opens_in_words()
        self.begins = self.answer = self.code.emit(None) if opens_in_words else hub.at
        entries = [entry for calls in self.runs for entry in self._calls(calls)]
        unmarked = tuple(entry.target for entry in entries if not entry.opening.opener)
        if unmarked:
            # Try calls without a marker, such as `get_weather\n{…}`, at the start of an answer, before treating it as text.
            self.answer = self.code.emit(Attempt(unmarked, self.begins, reported=False))
        begin, shared = self._whole_answers(entries)
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
        for entry in shared:
            for variant in Marker(entry.opening.lead + entry.opening.opener).variants():
                if variant in hub.attempts:
                    hub.attempts[variant].append(entry.target)
        # After content, a line that starts with a tool name may be a call, as in `\nget_weather`.
        for marker, at in self.lines.items():
            hub.attempts.setdefault(marker, []).append(at)
        if self.undeclared:
            begin = self._open_undeclared(hub, begin)
        self._seal(hub)
        if opens_in_words:
            longest_first = sorted(self.opening, key=len, reverse=True)
            tried = tuple(self.opening[core] for core in longest_first)
            self.code[self.begins] = Attempt(tried, hub.at, reported=False)
        self.code[start] = Jump(self._start(begin))
        done = tuple(instruction for instruction in self.code if instruction is not None)
        assert len(done) == len(self.code)
        return done

    def _opens_in_words(self) -> bool:
        """Return whether words that aren't part of the content may precede the content."""
        parts = (
            part
            for part in self.tree.parts
            if isinstance(part, ContentPart) or (isinstance(part, ReasoningPart) and part.declared)
        )
        openers = (*self.tree.joints, *(marker for part in parts for marker in part.open.spelled))
        return not all(holds_token(marker.text) for marker in openers)

    def _start(self, begin: int) -> int:
        """Emit the code for the start of the program, which drops a header that prompts don't contain, and layout."""
        lead = self.code.emit(Space(self.tree.lead), Jump(begin))
        return self._after_headers((self.tree.header,), lead) if self.tree.header else lead

    def _after_headers(self, headers: tuple[Marker, ...], target: int) -> int:
        """Emit code that drops a header, if one follows, and then continues at `target`."""
        # Any prefix of a header's layout may follow the header.
        texts = (it.core + it.after[:size] for it in headers for size in range(len(it.after) + 1))
        finder = Finder(texts, (it.core for it in headers if it.guarded))
        return self.code.emit(Look(finder, target, takes=True), Jump(target))

    def _after_end(self) -> int:
        """Emit the code after an end of turn, which consumes whitespace and the header of another turn."""
        target = self._after_headers(self.tree.headers, self.begins) if self.tree.headers else self.begins
        return self.code.emit(Space(kept=True), Jump(target, thinks=True))

    def _seal(self, hub: _Hub, sealed: int = -1) -> None:
        table = dict(hub.direct)
        # Guarded markers don't match inside a word, such as `final` in `finally`. For call markers, the attempt to parse a call checks this
        # itself.
        finder = Finder({**hub.direct, **hub.attempts}, hub.guarded - hub.attempts.keys())
        openers = tuple(variant for variant, alone in hub.reported.items() if alone)
        run = self._text_run(hub, finder, openers)
        # A marker such as `<call>` may also have a meaning without a call, so try calls first.
        for variant, targets in self._tried(hub).items():
            otherwise = hub.direct.get(variant, run)
            reported = variant in hub.reported and otherwise == run
            alone = hub.reported.get(variant, True)
            found = tuple(dict.fromkeys(targets))
            # Calls can't be quoted if the format drops text that only looks like a call.
            at = -1 if self.tree.cleans or sealed >= 0 or hub.fences.intersection(found) else hub.at
            weak = variant in hub.weak and variant not in hub.reported
            on_line = weak and not hub.weak[variant]
            table[variant] = self.code.emit(
                Attempt(found, otherwise, reported, sealed, alone, at, hub.role, weak, on_line)
            )
        self.code[hub.at] = FreeText(
            hub.role,
            finder,
            FrozenDict(table),
            hub.end,
            self.tree.trail,
            Flow(finder.literals, last=self.tree.trail),
            openers if hub.role is Role.CONTENT else (),
        )

    @staticmethod
    def _tried(hub: _Hub) -> dict[str, list[int]]:
        """Return the calls to try at each marker. If a marker starts with a shorter marker, the calls of the shorter marker are included."""
        tried = {variant: list(targets) for variant, targets in hub.attempts.items()}
        # The finder returns the longest marker, such as `<t>\n` instead of `<t>`, so add the calls of shorter ones.
        for marker in (*hub.attempts, *hub.direct):
            hidden = [marker[:size] for size in range(len(marker) - 1, 0, -1) if marker[:size] in hub.attempts]
            for opener in hidden:
                tried.setdefault(marker, []).extend(hub.attempts[opener])
        return tried

    def _text_run(self, hub: _Hub, finder: Finder, openers: Iterable[str]) -> int:
        sections = [calls.open.text + calls.call_open.text for calls in self.runs]
        alone = frozenset("".join(text.split()) for text in (*openers, *sections)) - {""}
        # Reasoning must end at its end marker, even if it mentions a call.
        stops = Finder(hub.direct if hub.role is Role.REASONING else ())
        if hub.role is not Role.CONTENT:
            return self.code.emit(Unread(hub.role, hub.at, finder, stops))
        closers = [piece for calls in self.runs for piece in calls.all_closers] if self.tree.cleans else ()
        ends = Finder(("}", *hub.attempts)) if self.tree.cleans else None
        inside = Finder(text for text in openers if holds_token(text))
        return self.code.emit(Unread(hub.role, hub.at, finder, stops, alone, ends, Finder(closers), inside))

    def _calls(self, calls: Calls) -> Iterator[_Entry]:
        """Emit the code for one run of calls. Yield the addresses at which the run may start."""
        view, code = CallView(calls, self.tree), self.code
        hub = self.begins
        addresses = Addresses(hub, code.emit(None), code.emit(None))
        made: dict[ReadCalls, int] = {}

        def address(read: ReadCalls) -> int:
            if read not in made:
                made[read] = code.emit(read)
            return made[read]

        code[addresses.tail] = ReadCalls(view, addresses, begin="tail")
        call = address(ReadCalls(view, addresses))
        # If no other call follows, continue in the free text, which may contain other markers.
        code[addresses.tried] = Attempt((call,), hub, reported=False)
        damaged = code.emit(ReadCalls(view, addresses, begin="damaged")) if view.mendable else -1
        openings = list(view.openings())
        for opening in openings:
            begin = "empty" if opening.empty else "function" if opening.inside else "call"
            after = addresses.tail if opening.empty else -1
            read = ReadCalls(view, addresses, opening.markers, begin, opening.loose, after)
            yield _Entry(opening, address(read), damaged if opening.strong else -1)
        if view.other_opener:
            yield from (_Entry(Opening(view.other_opener, lead), damaged) for lead in calls.leads)
        # A call without markers starts with its name, at the start of an answer or a line.
        if not view.marked and not calls.alone:
            yield _Entry(Opening("", ""), code.emit(ReadCalls(view, addresses, begin="named")))
            self.lines.update(dict.fromkeys(view.lines(), call))

    def _whole_answers(self, entries: Sequence[_Entry]) -> tuple[int, list[_Entry]]:
        """Emit the code for calls in other formats' syntax that are the whole answer.

        Returns the address of the start of an answer, and the calls to try in free text after the format's own calls. Other calls are tried
        only at the start of an answer, so that free text is searched only for the format's own markers.
        """
        found = [entry for calls in self.alone for entry in self._calls(calls) if not entry.opening.empty]
        own = {entry.opening.opener for entry in entries}
        shared = [entry for entry in found if entry.opening.opener in own]
        others = [entry for entry in found if entry not in shared]
        if others:
            self.answer = self._at_start(others)
        return self.answer, shared

    def _at_start(self, entries: Sequence[_Entry]) -> int:
        """Emit the code that tries calls at the start of an answer, according to the marker there. Return its address."""
        # Models also write fences without a language.
        found = [(entry.opening.opener, entry.target) for entry in entries]
        found = [("```" if opener.startswith("```") else opener, target) for opener, target in found]
        heads = sorted({head for head, _ in found}, key=len, reverse=True)
        finders = [Finder(lead + head for lead in ("", "\n", "\n\n")) for head in heads]
        looks = []
        for head, finder in zip(heads, finders, strict=True):
            targets = dict.fromkeys(target for opener, target in found if head.startswith(opener))
            looks.append(Look(finder, self.code.emit(Attempt(tuple(targets), self.answer, reported=False))))
        told_apart = self.code.emit(*looks, Jump(self.answer))
        every = Finder(literal for finder in finders for literal in finder.literals)
        return self.code.emit(Look(every, told_apart), Jump(self.answer))

    def _empty_calls(self, hub: _Hub, calls: Calls) -> Iterator[_Entry]:
        """Emit the code that drops empty blocks where calls are forbidden."""
        view = CallView(calls, replace(self.tree, dropped=()))
        addresses = Addresses(hub.at, hub.at, hub.at)
        for opening in view.empty_blocks():
            read = ReadCalls(view, addresses, opening.markers, "empty", after=hub.at)
            yield _Entry(opening, self.code.emit(read))

    def _enter(self, hub: _Hub, entries: Sequence[_Entry]) -> None:
        marked = [entry for entry in entries if entry.opening.opener]
        for entry in marked:
            opening = entry.opening
            for variant in Marker(opening.lead + opening.opener).variants():
                hub.attempts.setdefault(variant, []).append(entry.target)
                if opening.strong:
                    hub.reported[variant] = opening.alone or hub.reported.get(variant, False)
                elif opening.weak:
                    hub.weak[variant] = hub.weak.get(variant, False) or "\n" not in opening.lead
        # Try repairs last.
        for entry in marked:
            if entry.damaged >= 0 and hub.role is Role.CONTENT:
                for variant in Marker(entry.opening.lead + entry.opening.opener).variants():
                    hub.attempts[variant].append(entry.damaged)

    def _part(self, hub: _Hub, part: ReasoningPart | ContentPart | Calls, entries: list[_Entry]) -> int | None:
        """Compile one part of the answer. If the answer starts inside that part, return the address of its start."""
        match part:
            case ReasoningPart(declared=True):
                return self._thought(hub, self._inner(hub, part, entries), part)
            case ContentPart():
                self._said(hub, part, entries)
            case Calls(forbidden=True):  # If calls are forbidden, recognize only empty blocks. Any other call is text.
                self._enter(hub, list(self._empty_calls(hub, part)))
            case ReasoningPart() | Calls():
                pass  # Calls are compiled earlier. Undeclared reasoning is compiled later, so that markers between parts take precedence.
            case _:
                assert_never(part)
        return None

    def _between(self, hub: _Hub, entries: list[_Entry]) -> None:
        """Emit the code for the markers between parts."""
        for marker in self.tree.ends:
            if holds_token(marker.core):
                self._silent(hub, marker, self.ended)
            else:
                self._last(hub, marker, self.ended, ())
        dropped = {marker.core for marker in self.tree.dropped}
        for part in self.tree.parts:
            if isinstance(part, ReasoningPart) and part.declared and not part.shared:
                for marker in part.close.spelled:
                    if marker.core in dropped:
                        self._unopened(hub, Marker(marker.text + part.joint))
        for marker in self.tree.dropped:
            self._silent(hub, marker, self.code.emit(Jump(self.answer, thinks=True)))
        for marker in self.tree.joints:
            # A joint is dropped at the start of content. Directly before a call, the joint is part of the call.
            self._opens(marker, self.answer)
            if marker in self.tree.call_joints:
                self._before_calls(hub, marker, entries)

    def _marker(self, hub: _Hub, marker: Marker, target: int, *, quotable: bool = False) -> None:
        """Emit the code for a marker and its layout. Execution then continues at `target`.

        If `quotable` is True, a quoted marker is text.
        """
        for variant in marker.variants():
            unsure = (Unsure(hub.role, len(variant), hub.at),) if quotable else ()
            self._direct(hub, variant, marker, target, Role.MARKER, *unsure)
        self._header(hub, marker, target)

    def _header(self, hub: _Hub, marker: Marker, target: int) -> None:
        """Emit the code for a header such as `<|channel|>final<|message|>`, with words before its last token."""
        found = _HEADER.fullmatch(marker.core)
        if not found or found["start"] in hub.direct:
            return
        tokens = {token.group() for text in self._markers() if (token := TOKEN.match(text))}
        ends = Finder((found["end"], "\n", "=", *(tokens - {found["end"]})))
        mention = self.code.emit(Mention(len(found["start"]), hub.at, ""))
        skip = SkipHeader(len(found["start"]), found["end"], ends, mention)
        hub.direct[found["start"]] = self.code.emit(skip, Space(marker.after), Jump(target))

    def _unlabelled(self, hub: _Hub, inner: _Hub, marker: Marker) -> None:
        """Emit the code for the token of a marker such as `<|channel>thought`, with another label or none.

        No other marker may start with this token. Without an end marker, the token is text, or dropped if it's meaningless.
        """
        found = _LABELLED.fullmatch(marker.core)
        token = found["token"] if found else ""
        dropped = {it.core for it in self.tree.dropped}
        ends = {it.core for part in self.tree.parts for it in part.close.spelled}
        others = ({*self._markers()} - {marker.core} - dropped) | ends
        if not token or any(text.startswith(token) for text in others):
            return
        mention = self.code.emit(Mention(len(token), hub.at, ""))
        if token in dropped:
            unsure = EndTurn(len(token), mention, self._thought_openers())
            mention = self.code.emit(unsure, Mention(len(token), self.answer, "", Role.MARKER))
        opens = OpenThought(token, mention, closed=True)
        again = Lit(marker.core, inner.role, optional=True)
        at = self.code.emit(opens, Lit(token, inner.role), again, Space(marker.after, inner.role), Jump(inner.at))
        hub.direct.setdefault(token, at)

    def _markers(self) -> Iterator[str]:
        """Yield all markers of the format that aren't inside calls."""
        for part in self.tree.parts:
            around = (part.open, part.close)
            yield from (it.core for marker in around for it in marker.spelled)
        yield from (marker.core for marker in self.tree.between)

    def _thought_openers(self) -> tuple[str, ...]:
        thoughts = (part for part in self.tree.parts if isinstance(part, ReasoningPart))
        return tuple(it.core for thought in thoughts for it in thought.open.spelled if it.core)

    def _direct(self, hub: _Hub, variant: str, marker: Marker, target: int, role: Role, *first: Instruction) -> None:
        """Emit the code for one variant of a marker. The instructions `first` decide whether the marker counts."""
        at = self.code.emit(*first, Lit(variant, role), Space(marker.after, role), Jump(target))
        # If two parts have the same marker, the first part takes precedence.
        hub.direct.setdefault(variant, at)
        if marker.guarded:
            hub.guarded.add(variant)

    def _silent(self, hub: _Hub, marker: Marker, target: int) -> None:
        """Emit the code for a meaningless special token, unless it's quoted. Whitespace around the token is content if there is content on
        both sides.
        """
        for variant in marker.variants():
            mention = self.code.emit(Mention(len(variant), hub.at, ""))
            unsure = EndTurn(len(variant), mention, self._thought_openers())
            hub.direct.setdefault(variant, self.code.emit(unsure, *self._without(variant, marker), Jump(target)))

    @staticmethod
    def _without(variant: str, marker: Marker) -> tuple[Instruction, ...]:
        """Return the instructions that drop a variant of a meaningless marker."""
        return Space(variant.removesuffix(marker.core), kept=True), Lit(marker.core), Space(marker.after, kept=True)

    def _unopened(self, hub: _Hub, marker: Marker, *, declared: bool = True) -> None:
        """Emit the code for an end marker of reasoning outside of reasoning."""
        for variant in marker.variants():
            silent = self.code.emit(*self._without(variant, marker), Jump(self.answer))
            mention = self.code.emit(Mention(len(variant), hub.at, _UNOPENED if declared else ""))
            ends = Finder(end.core for end in self.tree.ends)
            closes = CloseUnopened(len(variant), ends, silent if declared else -1, mention)
            at = self.code.emit(closes, Space(marker.after), Jump(self.answer))
            hub.direct.setdefault(variant, at)

    def _last(self, hub: _Hub, marker: Marker, target: int, openers: Iterable[str]) -> None:
        """Emit the code for a marker made of words. The marker counts only if nothing follows except end markers, headers and `openers`."""
        tokens = (it for it in self.dropped if holds_token(it.text))
        following = (*(it.core for it in (*tokens, *self.tree.headers)), *openers)
        ends = Finder(text for text in following if text != marker.core)
        for variant in marker.variants():
            at = self.code.emit(Unsure(hub.role, len(variant), hub.at, ends), Lit(variant), Jump(target))
            hub.direct.setdefault(variant, at)

    def _said(self, hub: _Hub, said: ContentPart, entries: list[_Entry]) -> None:
        for marker in said.open.spelled:
            if holds_token(marker.core):
                self._marker(hub, marker, self.code.emit(Jump(hub.at, thinks=False)))
            else:
                self._opens(marker, hub.at)
        for marker in said.close.spelled:
            if holds_token(marker.core):
                for variant in marker.variants():
                    mention = self.code.emit(Mention(len(variant), hub.at, _UNQUOTED))
                    unsure = EndTurn(len(variant), mention, self._thought_openers())
                    self._direct(hub, variant, marker, hub.at, Role.MARKER, unsure)
            else:
                openers = (*(end.core for end in self.tree.ends), *(entry.opening.opener for entry in entries))
                self._last(hub, marker, hub.at, openers)

    def _opens(self, marker: Marker, target: int, role: Role = Role.MARKER) -> None:
        """Emit the code for words that start a part. The words count only where a part may start."""
        finder = Finder((marker.core,), (marker.core,) if marker.guarded else ())
        here = Look(finder, thinks=role is Role.REASONING)
        word = Lit(marker.core, role), Space(marker.after, role)
        at = self.code.emit(Space(), here, Commit(), *word, Jump(target))
        self.opening.setdefault(marker.core, at)

    def _before_calls(self, hub: _Hub, joint: Marker, entries: list[_Entry]) -> None:
        for entry in filter(lambda entry: entry.opening.opener, entries):
            # If the call fails, the joint before it is text too.
            at = self.code.emit(Space(), Lit(joint.core), Space(), Jump(entry.target))
            for variant in joint.variants():
                hub.attempts.setdefault(variant, []).append(at)

    def _fenced_json(self, hub: _Hub) -> None:
        """Emit the code for an optional Markdown fence around a JSON answer. The fence isn't part of the answer."""
        opens = self.code.emit(OpenFence(), Jump(hub.at))
        ends = Finder(marker.core for marker in self.dropped)
        closes = self.code.emit(Space(), Lit("```"), Space(), Look(ends, ends=True), Commit(), Jump(hub.at))
        hub.fences.update((opens, closes))
        for variant in ("```", "\n```"):
            hub.attempts.setdefault(variant, []).extend((opens, closes))

    def _thought(self, hub: _Hub, inner: _Hub, thought: ReasoningPart) -> int | None:
        """Emit the code for the start of reasoning. If reasoning has no start marker, return the address of its text."""
        for marker in thought.open.spelled:
            if not holds_token(marker.core):
                self._opens(marker, inner.at, inner.role)
                continue
            # Models sometimes repeat a start marker such as `<think` from the prompt, so accept it twice. However, `<think/>` is an end
            # marker.
            longer = [text for text in (*inner.direct, *inner.attempts) if text.startswith(marker.core)]
            closed = [Look(Finder(longer), inner.at)] if longer else []
            begin = self.code.emit(*closed, Lit(marker.core, optional=True), Space(marker.after), Jump(inner.at))
            for variant in marker.variants():
                opens = OpenThought(variant, self.code.emit(Mention(len(variant), hub.at)))
                self._direct(hub, variant, marker, begin, inner.role, opens)
            self._header(hub, marker, begin)
            self._unlabelled(hub, inner, marker)
        return None if thought.open.spelled else inner.at

    def _undeclared(self, hub: _Hub, inner: _Hub, thought: ReasoningPart) -> None:
        """Emit the code for reasoning that isn't part of the format. The start marker of such reasoning counts only at the start of an
        answer.
        """
        role = inner.role
        for marker in thought.open.spelled:
            # A complete start marker may follow a truncated one, so accept both.
            openers = sorted((text for text in (marker.core, *hub.direct) if text.startswith(marker.core)), key=len)
            self.undeclared[marker.core] = self.code.emit(
                Lit(marker.core, role), *(Lit(text, optional=True) for text in reversed(openers))
            )
            self.code.emit(Space(marker.after, role), Jump(inner.at))
            # Elsewhere, `<think>` is text, because an answer may mention it.
            hub.direct.setdefault(marker.core, self.code.emit(Mention(len(marker.core), hub.at, "")))
        for marker in thought.close.spelled:
            self._unopened(hub, Marker(marker.core + thought.joint), declared=False)

    def _open_undeclared(self, hub: _Hub, begin: int) -> int:
        """Emit the code for the start of an answer that may start with undeclared reasoning. Return the address of the code."""
        heads = tuple(self.undeclared)
        # Include longer markers, so that `<think>` doesn't match inside the format's own `<thinking>`.
        longer = [text for text in (*hub.direct, *hub.attempts) if text.startswith(heads)]
        return self.code.emit(OpenUndeclared(Finder((*heads, *longer)), FrozenDict(self.undeclared), begin))

    def _inner(self, hub: _Hub, thought: ReasoningPart, entries: list[_Entry]) -> _Hub:
        """Return the hub for the text of reasoning. Reasoning ends at its own end marker, or at a marker that can't be inside reasoning."""
        inner = _Hub(
            Role.REASONING, self.code.emit(None), self.code.emit(CloseThought(), Halt(repr(thought.close.text)))
        )
        self._closers(inner, thought)
        sealed = -1
        self._enter(inner, entries)
        for joint in self.tree.call_joints:
            self._before_calls(inner, joint, entries)
        # Models that forget `</think>` may still make calls. Such calls count if only the end of the turn follows.
        if not thought.holds_calls and self.runs:
            ends = Finder(marker.core for marker in (*thought.close.spelled, *self.dropped))
            sealed = len(self.code)
            over = Space(), Look(ends, sealed, takes=True), Look(ends=True)
            self.code.emit(*over, Commit(release=True), CloseThought(given=True), Jump(hub.at))
        self._seal(inner, sealed)
        return inner

    def _closers(self, inner: _Hub, thought: ReasoningPart) -> None:
        ends = Finder(end.core for end in self.tree.ends)
        for marker in thought.close.spelled:
            closer = Marker(marker.text + thought.joint)
            for variant in closer.variants():
                self._direct(inner, variant, closer, self.answer, inner.role, CloseThought(len(variant), ends))
        # Models that forget `</think>` may continue with the start marker of content, or end the turn.
        for marker in self.tree.ends:
            if holds_token(marker.core):
                for variant in marker.variants():
                    self._direct(inner, variant, marker, self.begins, Role.MARKER, CloseThought())
            else:
                self._last(inner, marker, self.code.emit(CloseThought(), Jump(self.ended)), ())
        openers = (opener for part in self.tree.parts if isinstance(part, ContentPart) for opener in part.open.spelled)
        closers = tuple(marker.core for marker in thought.close.spelled if marker.core)
        for marker in filter(lambda marker: holds_token(marker.core), (*openers, *self.tree.dropped)):
            # `<|end|><|start|>assistant` contains the end marker `<|end|>`.
            closed = CloseThought(given=marker.core.startswith(closers))
            self._marker(inner, marker, self.code.emit(closed, Jump(self.begins)), quotable=True)
