"""Find the text that a template writes between two answers, and the messages that it depends on.

Strategy: To find this text, answers of each kind are rendered after several histories, followed by results, user messages and system
messages. If the text after the answer's last word is the same for all histories, it can be used for any other conversation. Otherwise, the
next turn has to be rendered from the complete history.

A template is append-only if the rendering of a longer conversation always starts with the rendering of the shorter one. For other
templates, the shortest counterexample is stored as the witness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from os.path import commonprefix

from unrender.cache import SHARED, bytes_of
from unrender.conversation import shape_context
from unrender.conversation.messages import Conversation, Said, SaidCall
from unrender.conversation.next_turn.stubs import (
    NEEDLE,
    QUESTION,
    THOUGHT,
    Position,
    WrittenTail,
    behind,
    closers,
    count_calls,
    counts_calls,
    ends_of_turn,
    histories,
    pasts,
    result_of,
    short_answer,
    written,
)
from unrender.conversation.tools import read_request
from unrender.conversation.transcript import Writer
from unrender.errors import RequestError, TemplateError
from unrender.format import Format, ReasoningMode
from unrender.json_values import content_key
from unrender.limits import MAX_SLOW_RENDERINGS
from unrender.machine import id_maker, numbered_id
from unrender.rendering.cost import now

_TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "Wurzeltool",
        "parameters": {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]},
    },
}
_SYSTEM = Said(role="system", content="Systembrook")
_USER = Said(role="user", content="Nextquestion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A conversation in which new messages change the rendering of earlier ones."""

    conversation: Conversation
    """The longer conversation."""
    what: str
    """Name of the part that changes, one of "generation prompt", "thoughts", "system", "tools", "whitespace" and "text"."""
    before: str
    """Excerpt of the shorter rendering at the first difference."""
    after: str
    """Excerpt of the longer rendering at the first difference."""

    @property
    def why(self) -> str:
        """Summary without quotes from the template: the part that changes, and the messages (`thoughts: after user → content → user`)."""
        return f"{self.what}: after {' → '.join(map(_in_words, self.conversation))}"

    def __str__(self) -> str:
        return f"{self.why}, {self.before!r} becomes {self.after!r}"


class Needs(StrEnum):
    """The part of a conversation that determines the text after its last answer."""

    ANSWER = "answer"
    """Only the answer and the messages after it."""
    POSITION = "position"
    """The answer, its `Position`, and the messages after the answer."""
    NUMBER = "number"
    """The number, order and roles of all messages, which can be recovered from the prompt."""
    HISTORY = "history"
    """All messages of the conversation, with their text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """Text that a template writes after an answer, and whether the template rewrites earlier text."""

    ends: Mapping[str, str]
    """Text that ends an answer before another message, by kind of answer."""
    last_ends: Mapping[str, str]
    """Text that ends the last answer of a conversation, by kind of answer."""
    needs_system: frozenset[str] = frozenset()
    """Roles of new messages that are rendered differently if the conversation has a system message."""
    needs: Needs = Needs.ANSWER
    """The part of a conversation that determines the text after an answer."""
    counts: bool = False
    """True if the template numbers tool results by counting all calls of the conversation."""
    restates_tools: bool = False
    """True if the template repeats the tools when a new user message is added."""
    drops_thoughts: frozenset[str] = frozenset()
    """Roles of new messages, such as "user" or "tool", that make the template drop earlier reasoning."""
    witness: Rewritten | None = None
    """The shortest conversation in which new messages change the rendering of earlier ones, or None if there is no such conversation."""

    @property
    def append_only(self) -> bool:
        """True if new messages never change the rendering of earlier ones."""
        return self.witness is None

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield each finding as a name and a value."""
        yield "append-only", "yes" if self.witness is None else f"no, because of {self.witness}"
        for kind, end in self.ends.items():
            last = self.last_ends.get(kind, end)
            yield f"{kind} ends in", repr(end) if end == last else f"{end!r}, or in {last!r} for the last answer"
        depends = [f"the system message ({role})" for role in sorted(self.needs_system)]
        depends += [_NEEDED[self.needs]] if self.needs in _NEEDED else []
        depends += ["the number of calls"] if self.counts else []
        facts = {
            "tools are written again for": ["a new user"] if self.restates_tools else [],
            "thoughts are dropped for": [f"a new {_SAID.get(role, role)}" for role in sorted(self.drops_thoughts)],
            "depends on": depends,
        }
        yield from ((name, ", ".join(values)) for name, values in facts.items() if values)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.rows())


_SAID = {"tool": "result"}
_NEEDED = {
    Needs.POSITION: "earlier calls and thoughts",
    Needs.NUMBER: "the number of messages",
    Needs.HISTORY: "all earlier messages",
}


def continuation_of(writer: Writer) -> Continuation:
    """Return the text that a template writes after answers, and what this text depends on. The result depends on the variables, and on
    whether tools are offered.
    """
    kwargs = writer.kwargs
    variable, context = writer.capabilities.tools_variable, dict(kwargs.context)
    if context.get(variable):
        context[variable] = shape_context([_TOOL], writer.capabilities)[variable]
    key = content_key(context)
    probe = replace(writer, kwargs=replace(kwargs, context=context, notes=()))
    place = ("continuation", writer.template, writer.capabilities, writer.plan, kwargs.word, key)
    known: Continuation | None = SHARED.get(place) if key else None
    if known is not None:
        return known
    template = _Probing(probe)
    found = template.continuation()
    if key and not template.is_over:  # Don't cache a result that was cut short by the time limit.
        SHARED.put(place, found, bytes_of(found) + len(key))
    return found


def probing(write: Callable[..., Writer]) -> Writer:
    """Return a writer that renders conversations with one tool. `write` is `ChatTemplate._writing`."""
    return write(*read_request([_TOOL]), {})


class _Probing:
    """Renders the probes for one template."""

    def __init__(self, writer: Writer) -> None:
        self._writer, self._format = replace(writer, template=writer.template.stopped()), writer.format
        # If the format's ids consist of names and counters, use ids such as `functions.probe_tool:0`.
        self._counted = id_maker(writer.format.tools) if writer.format.tools.id_parts else numbered_id
        one, two = self._call(0), self._call(1)
        self._kinds = {
            "content": short_answer(),
            "thought": short_answer(thinks=True),
            "call": short_answer([one]),
            "thought and call": short_answer([one], thinks=True),
            "two calls": short_answer([one, two]),
        }
        self._pasts = pasts(self._call)
        self._until = now() + MAX_SLOW_RENDERINGS * writer.template.limits.rendering_seconds
        self._known: dict[str, WrittenTail | None] = {}

    @property
    def is_over(self) -> bool:
        """True if the time limit was exceeded."""
        return now() >= self._until

    def continuation(self) -> Continuation:
        """Render all probes and return the findings."""
        calls = self._written((QUESTION, self._kinds["call"], self._result(0)))
        kinds = {name: kind for name, kind in self._kinds.items() if calls or not kind.calls}
        ends = {name: self._end(kind) for name, kind in kinds.items()}
        last = {name: self._last_end(kind) for name, kind in kinds.items()}
        needs, counts = self._needs(kinds.values())
        if needs is Needs.HISTORY and self._is_read_back(kinds.values()):
            needs = Needs.NUMBER
        tail = self._tail((QUESTION, self._kinds["content"], _USER)) or ""
        return Continuation(
            ends={name: end for name, end in ends.items() if end is not None},
            last_ends={name: end for name, end in last.items() if end is not None},
            needs_system=frozenset(role for kind in kinds.values() for role in self._needs_system(kind)),
            needs=Needs.HISTORY if self.is_over else needs,
            counts=counts,
            restates_tools="Wurzeltool" in tail,
            drops_thoughts=frozenset(self._drops()),
            witness=self._witness(),
        )

    def _call(self, number: int) -> SaidCall:
        return SaidCall(name="probe_tool", id=self._counted(number, "probe_tool"))

    def _result(self, number: int) -> Said:
        return result_of(self._call(number), str(number))

    def _written(self, messages: Conversation, *, asks: bool = True) -> WrittenTail | None:
        key = repr((messages, asks))
        if key not in self._known:
            try:
                self._known[key] = written(self._writer, messages, asks=asks) if not self.is_over else None
            except (TemplateError, RequestError):
                self._known[key] = None
        return self._known[key]

    def _tail(self, messages: Conversation, *, asks: bool = True) -> str | None:
        found = self._written(messages, asks=asks)
        return None if found is None else found.tail

    def _needs(self, kinds: Collection[Said]) -> tuple[Needs, bool]:
        """Return the part of a conversation that determines the text after an answer.

        The second value is True if that text numbers the calls.
        """
        found = self._compared((kind, after) for kind in kinds for after in self._longest(kind))
        if found == (Needs.ANSWER, False):
            return found
        return self._compared((kind, after) for kind in kinds for after in self._next_of(kind))

    def _longest(self, kind: Said) -> Sequence[Conversation]:
        """Return the longest sequence of messages that can follow an answer. Long sequences are the most likely to reveal a dependency."""
        taken = [after for after in self._next_of(kind) if self._tail((QUESTION, kind, *after)) is not None]
        return [max(taken, key=len)] if taken else []

    def _compared(self, asked: Iterable[tuple[Said, Conversation]]) -> tuple[Needs, bool]:
        """Compare the text after these answers for several histories, and return the findings in the form that `_needs` documents."""
        first, needs, counts = {Position.behind(past): past for past in reversed(self._pasts)}, Needs.ANSWER, False
        for (kind, after), past in product(asked, self._pasts):
            if self._tail((*self._pasts[0], kind, *after)) is None:
                continue
            tail = self._tail((*past, kind, *after))
            for before, need in ((first[Position.behind(past)], Needs.HISTORY), (self._pasts[0], Needs.POSITION)):
                other = self._tail((*before, kind, *after))
                if tail is None or other is None or tail == other:
                    continue
                if counts_calls(other, tail, count_calls(past) - count_calls(before)):
                    counts = True
                else:
                    needs = max(needs, need, key=list(Needs).index)
        return needs, counts

    def _is_read_back(self, kinds: Collection[Said]) -> bool:
        """Return whether the template writes the same text after an answer if the original messages are replaced by those recovered from
        the prompt.
        """
        read = False
        for past, system in product(self._pasts, ((), (_SYSTEM,))):
            messages = (*system, *past)
            prompt = self._text(messages, asks=True)
            for before in histories(prompt, self._writer, self._call) if prompt else ():
                read = True
                ends = ((kind, *after) for kind in kinds for after in self._next_of(kind))
                if any(self._tail((*messages, *end)) != self._tail((*before, *end)) for end in ends):
                    return False
        return read

    def _needs_system(self, kind: Said) -> Iterator[str]:
        for after in self._next_of(kind):
            short, long = (self._tail((*before, kind, *after)) for before in ((QUESTION,), (_SYSTEM, QUESTION)))
            if short is not None and long is not None and short != long:
                yield "system" if _SYSTEM in after else after[-1].role

    def _next_of(self, kind: Said) -> Iterator[Conversation]:
        """Yield sequences of messages that may follow an answer."""
        if kind.calls:
            results = tuple(map(self._result, range(len(kind.calls))))
            yield results
            yield (*results, _USER)
        if len(kind.calls) > 1:
            yield (*reversed(results),)
        yield (_USER,)
        if not kind.calls:
            yield (_SYSTEM, _USER)

    def _conversations(self) -> Iterator[Conversation]:
        """Yield conversations in which messages follow an answer, the short ones first."""
        said, thought, called = (self._kinds[name] for name in ("content", "thought", "call"))
        both, result = self._kinds["thought and call"], self._result(0)
        other, wondering = (
            short_answer([self._call(0)], thinks=thinks, needle="Otherword") for thinks in (False, True)
        )
        yield (QUESTION, said, _USER)
        yield (QUESTION, called, result)
        yield (QUESTION, thought, _USER)
        yield (QUESTION, both, result)
        yield (_SYSTEM, QUESTION, said, _USER)
        yield (QUESTION, other, result, said, _USER)
        yield (QUESTION, wondering, result, thought, _USER)

    def _end(self, kind: Said) -> str | None:
        """Return the text that ends an answer regardless of the next message."""
        tails = {after[0].role: self._tail((QUESTION, kind, *after)) for after in self._next_of(kind)}
        last = self._tail((QUESTION, kind), asks=False)
        found = [
            self._behind_closers(kind, tail)
            for tail in (*tails.values(), last if len(tails) < 2 else None)
            if tail is not None
        ]
        asked = self._written((QUESTION, kind), asks=False)
        header = asked.text.partition(str(QUESTION.content))[0] if asked else ""
        return _common_end([tail for tail in found if tail is not None], header, self._format)

    def _last_end(self, kind: Said) -> str | None:
        tail = self._tail((QUESTION, kind), asks=False)
        return None if tail is None else self._behind_closers(kind, tail)

    def _behind_closers(self, kind: Said, tail: str) -> str | None:
        at = behind(tail, closers(kind, self._format)) if kind.calls else 0
        if at is None:
            return None
        # Calls described in the prompt are part of the content, so the end of the content follows them.
        return tail[at + (behind(tail[at:], self._format.content.end) or 0) :]

    def _drops(self) -> Iterator[str]:
        thought, both = self._kinds["thought"], self._kinds["thought and call"]
        for role, answer, after in (("user", thought, _USER), ("tool", both, self._result(0))):
            more = self._written((QUESTION, answer, after))
            if more and THOUGHT not in more.text and self._format.reasoning.mode is not ReasoningMode.NONE:
                yield role

    def _witness(self) -> Rewritten | None:
        for conversation in self._conversations():
            longer = self._written(conversation)
            answers = [i for i, message in enumerate(conversation) if message.role == "assistant"]
            for i in answers if longer else ():
                if found := self._rewritten(conversation, i, longer.text if longer else ""):
                    return found
        return None

    def _rewritten(self, conversation: Conversation, index: int, longer: str) -> Rewritten | None:
        """Return the first change that the template makes to the conversation up to the answer at `index`, or None if there is no change.
        `longer` is the rendering of the complete conversation.
        """
        prompt = self._text(conversation[:index], asks=True)
        answer = self._text(conversation[: index + 1], asks=False)
        word = "Otherword" if "Otherword" in str(conversation[index]) else NEEDLE
        for shorter in (prompt, answer and answer[: answer.rfind(word) + len(word)]):
            if shorter and not longer.startswith(shorter):
                at = next(i for i in range(len(shorter)) if not longer.startswith(shorter[: i + 1]))
                asked = self._text(conversation[:index], asks=False)
                asking = shorter == prompt and asked is not None and longer.startswith(asked)
                return Rewritten(
                    conversation=conversation,
                    what="generation prompt" if asking else _what(shorter[at:], longer[at:], self._format),
                    before=shorter[max(at - 10, 0) : at + 30],
                    after=longer[max(at - 10, 0) : at + 30],
                )
        return None

    def _text(self, messages: Conversation, *, asks: bool) -> str | None:
        return self._writer.text(messages, asks=asks) if messages and not self.is_over else None


def _what(before: str, after: str, format: Format) -> str:
    marks = [mark for mark in (format.reasoning.start.strip(), format.reasoning.end.strip()) if mark]
    # The template may also drop empty reasoning, such as `<think>\n\n</think>`.
    if any(before.count(word) > after.count(word) for word in (THOUGHT, *marks)):
        return "thoughts"
    for word, what in ((_SYSTEM.content, "system"), ("Wurzeltool", "tools")):
        # Compare positions too, because the template may move the tools from the first question to the last.
        heads = [text.partition(QUESTION.content)[0] for text in (before, after)]
        if before.count(word) != after.count(word) or heads[0].count(word) != heads[1].count(word):
            return what
    return "whitespace" if "".join(after.split()).startswith("".join(before.split())) else "text"


def _common_end(tails: Sequence[str], header: str, format: Format) -> str | None:
    """Return the end-of-turn marker at the start of all `tails`, with the whitespace around it. Returns "" if the tails have no such marker
    in common.

    A marker at the end of the user's `header`, such as `<|user|>`, belongs to the next message and doesn't count.
    """
    if not tails:
        return None
    for end in ends_of_turn(format, format.reasoning.end):
        if not header.rstrip().endswith(end) and all(tail.lstrip().startswith(end) for tail in tails):
            stop = tails[0].index(end) + len(end)
            shared = commonprefix(tails)[stop:]
            return tails[0][:stop] + shared[: len(shared) - len(shared.lstrip())]
    return ""


def _in_words(message: Said) -> str:
    if message.role == "assistant":
        return ("thought + " if message.reasoning else "") + ("call" if message.calls else "content")
    return "result" if message.role == "tool" else message.role
