"""Puts the parts of an answer into the order in which a model writes them, with what the template writes between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unrender.answer.markers import trail
from unrender.answer.nodes import Calls
from unrender.format import Content, Format, ReasoningMode
from unrender.messages.wire import Request, ToolChoice
from unrender.nodes import Choice, JsonValue, Literal, Node, Optional, Role, Tag, Until, in_sequence


def ending(format: Format) -> Node:
    """Return the layout that a model writes between a closing marker and the token that ends the turn, or its end."""
    # Before the end "\n<end>" the model writes "\n", or nothing where the engine strips both.
    before = trail(format)
    ways = tuple(Literal(before[at:]) for at in range(len(before) + 1))
    return Choice(ways) if len(ways) > 2 else Optional(ways[0]) if before else Literal("")


@dataclass(frozen=True, slots=True)
class Order:
    """Puts the parts of an answer into the order in which they are written."""

    format: Format
    request: Request
    calls: Calls | None
    """Those in the format's own syntax, where calls may be made."""
    stops: tuple[str, ...]
    """What no free text holds."""

    def whole_answer(self) -> Node:
        """Return the whole answer, after the header where no prompt writes it."""
        unasked = self.format.turn.unasked
        return in_sequence(Optional(Literal(unasked)), self.answer()) if unasked else self.answer()

    def answer(self) -> Node:
        """Return the answer after its header: reasoning or none, and what follows it."""
        turn, markers = self.format.turn, self.format.reasoning
        if markers.holds_calls and turn.tools_first and self.calls is not None:
            return self.calls_or_answer(self.calls)
        direct = self.direct()
        if not markers.end:
            return direct
        answer = self.content_and_calls(turn.reasoning_to_content, turn.reasoning_to_tools, self.format.content)
        thought = Tag(Role.REASONING, Until(self.stops))
        start, end = self.format.opening, markers.end
        # What is written for no reasoning, `<think></think>` for example, alone or with the joint after it; the prompt
        # may have written it already.
        empty = dict.fromkeys(text for text in (markers.empty, turn.prefill_no_thinking) if markers.closed_in(text))
        # After an end like a word only white space shows that it is one.
        joints = [
            text.removeprefix(start + end) for text in empty if text.startswith(start + end) and _ends_apart(text)
        ]
        unseen = [self.content_and_calls("", "", self.format.content)] if markers.unseen else []
        after = Choice((answer, *unseen, *(in_sequence(Literal(joint), direct) for joint in joints)))
        inside = [in_sequence(thought, Literal(end), after)]
        if markers.holds_calls and self.calls is not None:
            inside.append(in_sequence(thought, Literal(turn.reasoning_to_tools), self.calls))
        # Reasoning that nothing opens begins at once: what is before its end cannot be anything else.
        shown = markers.mode is not ReasoningMode.DELIMITER or bool(turn.prefill)
        others: list[Node] = [direct] if shown else []
        if markers.unseen and shown:  # Every answer may be one after reasoning that history has dropped.
            others.append(
                self.content_and_calls(turn.reasoning_to_content, turn.reasoning_to_tools, self.format.wrapper_alone)
            )
        for text in empty:
            if not text.startswith(start + end):
                following = Choice((answer, direct)) if _ends_apart(text) else answer
                closed = in_sequence(_write_words_for_none(text.removeprefix(start), start, end), following)
                (inside if text.startswith(start) else others).append(closed)
        # The prompt may have opened reasoning: the grammar of the rest drops `start`.
        opened = Literal(start) if markers.start else Optional(Literal(start))  # Words of the prompt are not a marker.
        return Choice((in_sequence(opened, Choice(tuple(inside))), *others))

    def direct(self) -> Node:
        """Return an answer without reasoning."""
        turn, wrapper, beside = self.format.turn, self.format.wrapper_alone, self.format.content_with_calls
        answer = self.content_and_calls(turn.start_to_content, turn.start_to_tools, wrapper)
        # A wrapper that only tells content from calls may be missing where no call can be made.
        missing = wrapper.start and not self.request.tools and beside is not None and not beside.start
        return Choice((answer, self.content(turn.start_to_content, Content()))) if missing else answer

    def calls_or_answer(self, calls: Calls) -> Node:
        """Return calls, inside reasoning or alone, or an answer without any: what ends reasoning begins content, so no call follows it."""
        # `ReasoningPart: …\nAction: f` or `ReasoningPart: …\nFinal Answer: Hi`, and never `Final Answer:\nAction: f`.
        turn = self.format.turn
        start, thought = Literal(self.format.opening), Tag(Role.REASONING, Until(self.stops))
        thinking = in_sequence(start, thought, Literal(turn.reasoning_to_tools))
        run = in_sequence(calls, ending(self.format))
        called = in_sequence(Choice((thinking, Literal(turn.start_to_tools))), run)
        wanted = self.request.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED)
        return called if wanted else Choice((replace(self, calls=None).answer(), called))

    def content_and_calls(self, to_content: str, to_tools: str, wrapper: Content) -> Node:
        """Return content and calls, each after its joint."""
        turn = self.format.turn
        content = self.content(to_content, wrapper)
        ended = self.ending_of_content(wrapper)
        if self.calls is None:
            return in_sequence(content, ended)
        run = self.calls
        last = in_sequence(run, ending(self.format))
        beside = wrapper if self.format.content_with_calls is None else self.format.content_with_calls
        followed = in_sequence(Literal(turn.content_to_tools), last)
        wanted = self.request.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED)
        only_calls = in_sequence(Literal(to_tools), run if turn.tools_first and not wanted else last)
        if beside is not wrapper and beside.wraps_empty:
            only_calls = in_sequence(Literal(to_content + beside.start + beside.end), followed)
        shown = self.calls.openers or turn.content_to_tools.strip()
        # What may come is now: calls alone, content alone, or one before the other. The request and the joints decide.
        if wanted:
            # The prompt may have opened the content's wrapper, which then has to be closed before the calls.
            opened = in_sequence(self.content(to_content, beside), followed)
            return Choice((only_calls, opened)) if beside.start and shown else only_calls
        if self.request.response_schema is not None:
            return Choice(
                (in_sequence(content, ended), only_calls)
            )  # JSON is the whole answer, or a call in its place.
        if not turn.tools_first and not (shown or (self.calls.on_lines and self.calls.tools)):
            return Choice((content, only_calls))  # After content, nothing would show that a call begins.
        if not turn.tools_first and beside is wrapper:
            return Choice((in_sequence(content, Choice((followed, ended))), only_calls))
        if not turn.tools_first:
            spoken = in_sequence(self.content(to_content, beside), followed)
            return Choice((in_sequence(content, ended), spoken, only_calls))
        if turn.tools_to_content.strip():
            return Choice((content, only_calls))  # What follows the calls is a turn of its own.
        calls_first = in_sequence(only_calls, self.content(turn.tools_to_content, wrapper))
        if not turn.tools_to_content + wrapper.start + wrapper.end:
            return Choice((content, calls_first))  # Content may be empty.
        return Choice((content, only_calls, calls_first))

    def ending_of_content(self, wrapper: Content) -> Node:
        """Return the layout that may end an answer of content: free text has it in itself, what is closed and JSON have not."""
        closed = wrapper.end.strip() or self.request.response_schema is not None
        return ending(self.format) if closed else Literal("")

    def content(self, joint: str, wrapper: Content) -> Node:
        return in_sequence(Literal(joint + wrapper.start), self.text(), Literal(wrapper.end))

    def text(self) -> Node:
        if self.request.response_schema is not None:
            return Tag(Role.CONTENT, JsonValue(self.request.response_schema))
        return Tag(Role.CONTENT, Until(self.stops))


def _write_words_for_none(text: str, start: str, end: str) -> Node:
    """Return what is written for no reasoning, after the opener: some formats have words for it."""
    # `<think>I need not think.</think>`: the words are the reasoning, so they come back when the answer is read.
    words, closer, rest = text.partition(end.strip())
    if words.strip() in ("", start.strip()):
        return Literal(text)
    return in_sequence(Tag(Role.REASONING, Literal(words)), Literal(closer + rest))


def _ends_apart(text: str) -> bool:
    """Return whether a word after `text` cannot be taken for a part of it."""
    return not text[-1].isalnum()
