"""Find the text that is missing after an answer, and split it into the pieces of each message.

An answer may end anywhere: in its reasoning, in content, in a call, or after the end of the turn. The template, however, always renders
complete answers. Text that the answer already contains isn't appended again, and an open part is closed.

To separate the text of new messages from the template's own text, the same conversation is rendered again, with marks around each text of
the new messages (see `pieces`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from os.path import commonprefix

from unrender.conversation.messages import RESULTS, Conversation, Said, with_texts, words_in
from unrender.conversation.next_turn.continuation import Continuation
from unrender.conversation.next_turn.stubs import (
    THOUGHT,
    Stub,
    WrittenTail,
    answer_kind,
    behind,
    closers,
    ends_of_turn,
)
from unrender.conversation.pieces import RenderedConversation
from unrender.conversation.transcript import Writer
from unrender.errors import ExtendError
from unrender.format import Format
from unrender.machine import id_maker
from unrender.machine.frames import Span
from unrender.messages import Message, Request, ToolCall
from unrender.nodes import Role
from unrender.prompt import Piece, PieceKind
from unrender.turn import ParsedAnswer, Turn, Unfinished

_WORD = "Vexquill"
_PLANTED = "Wobblefern{}x{}z"
_SAID = (Role.CONTENT, Role.NAME)
_IN_CALLS = (Role.NAME, Role.ID, Role.KEY, Role.VALUE, Role.ARGUMENT)
_TOKEN = re.compile(r"(?=.*\w).*[<>\[\]{}|]")
"""Matches text with brackets and letters, which is unlikely to occur in prose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A parsed answer, split into its text and its end."""

    message: Message
    """The parsed message."""
    calls: tuple[ToolCall, ...]
    """The calls that may have results. Failed calls that aren't part of the message come last."""
    written_ids: tuple[str, ...]
    """The id of each of the `calls`, as written in the answer, or "" for a call without an id."""
    text: str
    """The answer without the sampled end of the turn and the whitespace around that end."""
    space: str
    """Whitespace at the end of the answer."""
    layout: str = ""
    """Whitespace before the sampled end of the turn."""
    sampled: str = ""
    """The end-of-turn marker if the model sampled it, else ""."""
    thinks: bool = False
    """True if the answer ended inside reasoning."""
    in_call: bool = False
    """True if the answer ended inside a call or its end marker."""


def read_answer(turn: Turn, answer: ParsedAnswer, unfinished: Unfinished, ends: Collection[str]) -> Answered:
    """Split a parsed answer into its text and its end. `ends` are additional end-of-turn markers, besides those of the turn's format.

    Raises `ExtendError` for text after the end of the turn, and for an end of the turn inside reasoning. An answer whose only call was cut
    off is also an error, unless `unfinished` allows it.
    """
    # Markers in ordinary tokens are text, so they must not be found.
    parser, whole = answer.parser, answer.parser._record.quoted_text
    if (
        turn.request.reasoning_format == "none"
    ):  # Separate reasoning from content even if the request asks for both as one text.
        turn = replace(turn, request=replace(turn.request, reasoning_format="auto"))
        parser = parser._parsed_again(turn.request)
    message = parser.message
    calls = tuple(dict.fromkeys((*message.tool_calls, *message.failed_calls)))
    complete = any(call.status == "complete" for call in calls)
    text, sampled = _without_end(turn, whole, ends)
    last = next((span for span in reversed(parser.spans) if whole[span.start : min(span.end, len(text))].strip()), None)
    thinks = not complete and _thinks(turn, text, last.role if last else None)
    if thinks and sampled:
        if not turn.format.reasoning.closed_in(sampled):
            raise ExtendError(f"the answer ends with {sampled!r} inside reasoning", "answer")
        # A marker such as `<|end|>` may end both reasoning and a turn. If it occurs inside reasoning, it ends only the reasoning.
        text, sampled, thinks = whole.rstrip(), "", False
    _check_ends(turn, whole, parser.spans)
    if not complete and unfinished == "error" and any(call.status in ("open", "truncated") for call in calls):
        raise ExtendError("the answer has an incomplete call", "call")
    if not calls and parser._fold.reported:  # A broken call without a name is reported, but not listed.
        calls = (
            ToolCall(
                name="", arguments_json="{}", id=id_maker(turn.format.tools)(len(turn.known_ids), ""), status="invalid"
            ),
        )
    written = parser._machine.ids.written
    return Answered(
        message=message,
        calls=calls,
        written_ids=tuple(written.get(call.id, "") for call in calls),
        text=text,
        space=whole[len(whole.rstrip()) :],
        layout=whole[len(text) : whole.rindex(sampled)] if sampled else "",
        sampled=sampled or answer.padding.strip(),
        thinks=thinks,
        in_call=last is not None and _is_in_call(turn, text, parser.spans, last),
    )


def _without_end(turn: Turn, answer: str, ends: Collection[str]) -> tuple[str, str]:
    """Split an answer into the text before the sampled end of the turn and the end itself, such as `<|im_end|></s>`."""
    text, left = answer.rstrip(), [*ends_of_turn(turn.format, *ends)]
    while end := next((end for end in left if text.endswith(end)), ""):
        text = text.removesuffix(end).rstrip()
        left.remove(end)
    return text, answer[len(text) :].strip()


def _is_in_call(turn: Turn, text: str, spans: Sequence[Span], last: Span) -> bool:
    """Return whether an answer ended before its last call's end marker was complete. `last` is the span of the last visible character."""
    closer = turn.format.tools.markers.closer.strip()
    if last.role is Role.MALFORMED:  # Another text in the place of the end marker ends a call too.
        return closer.startswith(text[last.start :].strip())
    after = max((span.end for span in spans if span.role in _IN_CALLS), default=0)
    return last.role not in (Role.CONTENT, Role.REASONING) and closer not in text[after:]


def _thinks(turn: Turn, text: str, last: Role | None) -> bool:
    """Return whether an answer ended inside reasoning. `last` is the role of its last visible character, or None if it's empty."""
    reasoning = turn.format.reasoning
    if last is Role.REASONING:
        return True
    if last is not None and not (reasoning.start.strip() and text.endswith(reasoning.start.strip())):
        return False
    # The parser of an answer of markers alone has no reasoning yet. So one more word shows how further text would be parsed.
    parser = turn.parser()
    parser.finish(text=text + _WORD)
    return _WORD in parser.message.reasoning


def _check_ends(turn: Turn, answer: str, spans: Sequence[Span]) -> None:
    """Raise `ExtendError` if there is text after the end of the turn. End-of-turn markers inside argument values are ignored."""
    ends, said, over, ended = ends_of_turn(turn.format), False, 0, ""
    for span in spans:
        text, words = answer[span.start : span.end], span.role is Role.CONTENT
        if span.role is Role.NAME:
            ended = ""  # A part of the message has just started, so the previous marker didn't end the turn.
        if ended and words and text.strip():
            break
        said = said or (span.role in _SAID and bool(text.strip()))
        said = said or (span.role is Role.MARKER and text.strip() in ends and not turn.format.reasoning.closed_in(text))
        if said and not ended and (words or span.role is Role.MARKER):
            # The parser may treat an end-of-turn marker such as `[/END]` as content if text follows it, so search content too.
            ended = next((end for end in ends if end in text and (_TOKEN.search(end) or not words)), "")
            over = span.start + text.find(ended) + len(ended)
    if not ended:
        return
    behind = answer[over:].strip()
    for end in ends:
        behind = behind if end == ended else behind.removeprefix(end).strip()
    if behind:
        raise ExtendError(
            f"expected nothing after the end of the answer, found {behind!r:.60} after {ended!r}", "answer"
        )


@dataclass(frozen=True, slots=True)
class Extended:
    """Text that was appended to a prompt and its answer, with the data that it was rendered from."""

    stub: Stub
    answer: Said
    """A short placeholder of the same kind as the answer."""
    new: Conversation
    lead: str
    """Text that is added to close the answer, although the template wouldn't write it there."""
    end: str
    """Text that ends the answer, without the part that the answer already contains."""
    rest: str
    """The template's text after the end of the answer."""

    @property
    def text(self) -> str:
        """The complete appended text."""
        return self.lead + self.end + self.rest


def appended_pieces(extended: Extended) -> tuple[Piece, ...]:
    """Return the appended text in pieces. Raises `ExtendError` if the template mixes the text of different messages."""
    pieces = [Piece(text=extended.lead), Piece(text=extended.end)]
    runs, owner, closings = _runs(extended), None, dict[tuple[str, str | None], str]()
    for at, (index, text) in enumerate(runs):
        if index is not None:
            owner, role = index, extended.new[index].role
            kind: PieceKind = "result" if role in RESULTS else "content"
            where = f"messages[{index}].content"
            pieces.append(Piece(text=text, kind=kind, message=index, role=role, where=where))
            continue
        # Between two messages is the end of the first one and the start of the second one.
        following = next((other for other, _ in runs[at:] if other is not None), None)
        closing = text if owner == following else "" if owner is None else _closing(extended, owner, closings)
        shared = len(commonprefix([text, closing]))
        pieces += [Piece(text=text[:shared], message=owner), Piece(text=text[shared:], message=following)]
    return tuple(piece for piece in pieces if piece.text)


def _runs(extended: Extended) -> list[tuple[int | None, str]]:
    """Return the text after the answer in parts, with the index of the message whose content a part is, or None for the template's text."""
    new, stub = extended.new, extended.stub
    shown = RenderedConversation(stub.writer, new, Request()).of(new)
    owned = [*shown.attributed(extended.rest, lambda marked: stub.written(extended.answer, marked.messages).tail)]
    indexed = ((owner.message if owner.kind in ("content", "result") else None, text) for text, owner in owned)
    runs = [(index, "".join(text for _, text in run)) for index, run in groupby(indexed, key=itemgetter(0))]
    owners = [index for index, _ in groupby(index for index, _ in runs if index is not None)]
    once = sorted(owners) == sorted({index for _, index, _ in _texts(new)})
    if not once or any(text and owner.kind == "unknown" for text, owner in owned):
        raise ExtendError("the template doesn't write each new message once, in order", "unproved")
    return runs


def _closing(extended: Extended, index: int, known: dict[tuple[str, str | None], str]) -> str:
    """Return the text that the template writes after a message if no other message follows. The text is cached in `known` by kind of
    message.
    """
    last = extended.new[index]
    kind = (last.role, last.name)
    if kind not in known:
        messages = (*extended.new[:index], replace(last, content=_WORD))
        known[kind] = extended.stub.written(extended.answer, messages, asks=False).tail.partition(_WORD)[2]
    return known[kind]


def check_shown(stub: Stub, made: WrittenTail, answer: Said, new: Conversation) -> None:
    """Raise `ExtendError` if the template doesn't render a new message after the answer."""
    missing = [(word, index) for word, index, text in _texts(new) if text.strip() not in made.tail]
    # The template may have trimmed or escaped the text. To check this, render a unique word in its place.
    tail = stub.written(answer, _with_words(new)).tail if missing else ""
    for word, index in missing:
        if word not in tail:
            raise ExtendError(f"messages[{index}].content: not shown by the template after the answer", "messages")


def _texts(new: Conversation) -> Iterator[tuple[str, int, str]]:
    """For each piece of text in the messages, yield a unique word, the index of the message, and the text."""
    for i, message in enumerate(new):
        for k, text in enumerate(words_in(message.content)):
            if text.strip():
                yield _PLANTED.format(i, k), i, text


def _with_words(new: Conversation) -> Conversation:
    planted = []
    for i, message in enumerate(new):
        words = (_PLANTED.format(i, k) if text.strip() else text for k, text in enumerate(words_in(message.content)))
        planted.append(replace(message, content=with_texts(message.content, words)))
    return tuple(planted)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an answer, and a template's rendering of a similar answer to compare it with."""

    prompts: Writer
    """The writer of the current prompt, since the next prompt may use other variables."""
    stub: Stub
    made: WrittenTail
    said: Answered
    answer: Said
    """A short placeholder of the same kind as the answer."""
    format: Format
    facts: Continuation

    def extended(self, new: Conversation) -> Extended:
        """Return the text to append: the rest of the answer, the `new` messages, and the generation prompt."""
        said, end = self.said, self.format.reasoning.end
        # A marker such as `### Answer` may be complete except for the line breaks around it. The parser is then still in reasoning.
        cut = said.thinks and not said.text.endswith(end.strip())
        lead = end if cut else ""
        rest = self._behind_calls() if self.answer.calls else self._behind_content()
        if not said.text and not said.sampled and (whole := self._said_nothing(new)) is not None:
            lead, rest = "", whole
        elif not self.answer.calls and not said.message.content.strip() and said.message.reasoning:
            between, rest = self._behind_thought(rest, new)
            # Truncated reasoning needs only the end of the reasoning and of the turn, without the whitespace before content.
            lead += "" if cut and not between.strip() else between
        if said.sampled:
            lead, rest = "", self._behind_end(rest)
        kept = not_again(lead + rest, said.space)
        lead, rest = kept[: max(len(kept) - len(rest), 0)], kept[max(len(kept) - len(rest), 0) :]
        after = self._behind_answer()
        end = rest.removesuffix(after) if rest.endswith(after) else ""
        return Extended(self.stub, self.answer, new, lead, end, rest.removeprefix(end))

    def _behind_answer(self) -> str:
        """Return the text that the template writes after a complete answer."""
        tail, format = self.made.tail, self.format
        closed = closers(self.answer, format) if self.answer.calls else format.content.end
        tail = tail[behind(tail, closed) or 0 :]
        return tail.removeprefix(self.facts.ends.get(answer_kind(self.answer), ""))

    def _behind_calls(self) -> str:
        tail, text, tools = self.made.tail, self.said.text, self.format.tools
        closer, section_end = tools.markers.closer.strip(), tools.markers.run_closer.strip()
        closed = closers(self.answer, self.format).rstrip().removesuffix(section_end).rstrip()
        at = behind(tail, closed)
        if at is None and closer in tail and (closer or section_end in tail):
            # The template may write text inside a call that isn't part of the format, such as an id. Skip it.
            at = tail.index(closer or section_end) + len(closer)
        if at is None:
            raise ExtendError("the template ends calls differently from its format", "unproved")
        # Skip the end of the section, which some templates omit after the first call.
        whole = at + (behind(tail[at:], section_end) or 0)
        whole += self._wrapped(tail[whole:])
        if self.said.sampled or not closer:
            return tail[whole:]
        if section_end and text.endswith(closer) and not text.endswith(section_end):
            return tail[at:]
        # If a marker such as `<|call|>` also ends the turn, a call is complete without the marker. A call whose end marker is missing is
        # closed, also if only the start of the marker was sampled.
        own_end = closer in ends_of_turn(self.format, self.format.reasoning.end)
        if not text.endswith((closer, section_end or closer)) and (own_end or self.said.in_call):
            begun = next(k for k in range(len(closer), -1, -1) if text.endswith(closer[:k]))
            before = tail[behind(tail, closed.removesuffix(closer)) or at :]
            return before if not begun else before[before.index(closer) + begun :]
        return tail[whole:]

    def _wrapped(self, rest: str) -> int:
        """Return the length of the marker after the calls that ends content or reasoning. Returns 0 if the answer doesn't contain such a
        marker.
        """
        # A marker that ends both reasoning and the turn counts as the end of the turn.
        over = ends_of_turn(self.format)
        for end in (self.format.content.end.strip(), self.format.reasoning.end.strip()):
            if (
                end
                and end not in over
                and (self.said.sampled or self.said.text.endswith(end))
                and (at := behind(rest, end)) is not None
            ):
                return at
        return 0

    def _behind_content(self) -> str:
        said, tail = self.said, self.made.tail
        start, end = self.format.content.start.strip(), self.format.content.end.strip()
        # Check for the content's start marker too, since reasoning may be inside the content's markers.
        begun = said.message.content.strip() or (start and said.text.lstrip().startswith(start))
        is_open = begun and not said.sampled and not said.text.endswith(end)
        at = None if not end or is_open else behind(tail, end)
        return tail if at is None else tail[at:]

    def _behind_end(self, rest: str) -> str:
        bare = rest.lstrip()
        if bare.startswith(self.said.sampled):
            return bare[len(self.said.sampled) :]
        # The sampled end of the turn (`<|return|>`) may differ from the one that the template writes before another message (`<|end|>`).
        end = self.facts.ends.get(answer_kind(self.answer), "").strip()
        return bare[len(end) :] if end and bare.startswith(end) else not_again(rest, self.said.layout)

    def _said_nothing(self, new: Conversation) -> str | None:
        """Return the text that the template writes after the prompt for an empty answer. Returns None if an empty answer changes the
        prompt.
        """
        writer, before = self.stub.writer, self.stub.before
        prompt = self.prompts.text(before, asks=True)
        text = writer.text((*before, Said(role="assistant", content=""), *new), asks=True)
        return text[len(prompt) :] if prompt and text and text.startswith(prompt) else None

    def _behind_thought(self, rest: str, new: Conversation) -> tuple[str, str]:
        """Return the text between reasoning and empty content, and the text after empty content."""
        answer = Said(role="assistant", content="", reasoning=THOUGHT)
        try:
            shown = self.stub.written(answer, new, needle=THOUGHT)
        except ExtendError:
            return "", rest
        at = behind(shown.tail, self.format.reasoning.end)
        if at is None:
            return "", rest
        whole = shown.tail[at:]
        if not whole.endswith(rest):  # The template omits the end of the turn after empty content.
            return "", whole
        between = whole.removesuffix(rest)
        markers = between.strip()
        return "" if markers and self.said.text.endswith(markers) else between, rest


def not_again(text: str, space: str) -> str:
    r"""Return the text without the part of its leading whitespace that `space` already contains, e.g. the line break in `</call>\n` and
    `\n<end>`.

    >>> not_again("\n<end>", " \n"), not_again("\n\n<end>", "\n")
    ('<end>', '\n<end>')
    """
    leading = text[: len(text) - len(text.lstrip())]
    return text[next(k for k in range(len(leading), -1, -1) if leading[:k] in space) :]
