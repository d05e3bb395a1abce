"""Find the part of the template's text after an answer that the answer doesn't contain yet.

An answer may end anywhere: in its reasoning, in content, after a call, or after the end of the turn. The template, however, always renders
complete answers. Text that the answer already contains isn't appended again, and open reasoning is closed.
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.conversation.messages import Conversation, Said
from unrender.conversation.next_turn.answered import Answered, ends_of_turn
from unrender.conversation.next_turn.continuation import Continuation
from unrender.conversation.next_turn.pieces import Extended
from unrender.conversation.next_turn.stubs import THOUGHT, Stub, WrittenTail, answer_kind, behind, closers
from unrender.conversation.transcript import Writer
from unrender.errors import ExtendError
from unrender.format import Format


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
        # If a marker such as `<|call|>` also ends the turn, a call is complete without the marker.
        if not text.endswith(closer) and closer in ends_of_turn(self.format, self.format.reasoning.end):
            return tail[behind(tail, closed.removesuffix(closer)) or at :]
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
