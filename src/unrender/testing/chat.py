"""Tests one output and its meaning: at all splits, leniently and strictly, and against the grammars.

Strategy: `given` and `output` only collect; `expect` and `expect_tolerated` run, and either fails with `AssertionError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from unrender import ChatTemplate, Event, MalformedOutput, Message, Parser, Turn
from unrender.explain import joined_events
from unrender.printable import printable_lines
from unrender.testing.chunks import splits
from unrender.testing.expectation import Expectation, ExpectedCall
from unrender.verify import refusals

_QUESTION = ({"role": "user", "content": "Hello"},)
"""The conversation when none is given."""
_DIFFERS = "the output means something else (- expected, + found)"


class Chat:
    """Begins cases; the fixture `chat` is one. Relative paths are searched for in `folders`, in order."""

    def __init__(self, folders: Sequence[Path] = (Path(),)) -> None:
        self._folders = folders
        self._cases: list[Case] = []

    def __call__(self, template: ChatTemplate | str | PathLike[str]) -> Case:
        """Begin a case for a template: loaded, or whatever `ChatTemplate.from_pretrained` takes."""
        case = Case(template if isinstance(template, ChatTemplate) else self._load(template))
        self._cases.append(case)
        return case

    @property
    def unfinished(self) -> tuple[Case, ...]:
        """The cases that began and never reached `expect`."""
        return tuple(case for case in self._cases if not case.finished)

    def _load(self, path: str | PathLike[str]) -> ChatTemplate:
        places = (folder / path for folder in self._folders)
        return ChatTemplate.from_pretrained(next((place for place in places if place.exists()), path))


class Case:
    """One answer and what it must mean."""

    def __init__(self, template: ChatTemplate) -> None:
        self.finished: bool = False
        """True when `expect` or `expect_tolerated` was reached."""
        self._template = template
        self._messages: Sequence[Mapping[str, Any]] = _QUESTION
        self._request: dict[str, Any] = {}
        self._output: str | None = None

    def given(self, messages: Sequence[Mapping[str, Any]] | None = None, **request: Any) -> Case:
        """Set the conversation and anything else that `ChatTemplate.prepare` takes, e.g. `tools`."""
        self._messages = messages or self._messages
        self._request |= request
        return self

    def output(self, text: str) -> Case:
        """Set the output, i.e. the text that the model wrote."""
        self._output = text
        return self

    def expect(
        self,
        *,
        reasoning: str = "",
        content: str = "",
        tool_calls: Sequence[ExpectedCall] = (),
        dead_calls: Sequence[ExpectedCall] = (),
    ) -> None:
        """Check that the output means this at every split, leniently and strictly, and that grammars allow it.

        Grammars are checked with the engines that are installed (llguidance, xgrammar). Raises `AssertionError`, which
        shows the difference, the split, the events so far, and the expectation that would have held.
        """
        __tracebackhide__ = True
        turn, output = self._prepared()
        expected = Expectation(reasoning=reasoning, content=content, tool_calls=tool_calls, dead_calls=dead_calls)
        message = self._check(turn, output, expected, strict=False)
        self._check(turn, output, expected, strict=True)
        refused = refusals(turn, output, message)
        if refused:
            raise AssertionError(
                self._report(
                    f"the output means what is expected, but the grammars do not allow it: {', '.join(refused)}",
                    advice=("use expect_tolerated if a constrained model need not be able to write this",),
                )
            )

    def expect_tolerated(
        self,
        *,
        reasoning: str = "",
        content: str = "",
        tool_calls: Sequence[ExpectedCall] = (),
        dead_calls: Sequence[ExpectedCall] = (),
    ) -> None:
        """Check that the output means this at every split, although it deviates from the format.

        Raises `AssertionError` as `expect` does, and when the output does not deviate at all.
        """
        __tracebackhide__ = True
        turn, output = self._prepared()
        expected = Expectation(reasoning=reasoning, content=content, tool_calls=tool_calls, dead_calls=dead_calls)
        message = self._check(turn, output, expected, strict=False)
        _, refusal = _read(turn.parser(strict=True), [output])
        if not refusal and not refusals(turn, output, message):
            raise AssertionError(
                self._report("there is nothing to tolerate: the output is as the format has it", advice=("use expect",))
            )

    def _prepared(self) -> tuple[Turn, str]:
        __tracebackhide__ = True
        self.finished = True
        if self._output is None:
            raise AssertionError("no output to read: call output(…) before expect(…)")
        return self._template.prepare(self._messages, **self._request), self._output

    def _check(self, turn: Turn, output: str, expected: Expectation, *, strict: bool) -> Message:
        """Read the output at all splits; returns the message."""
        __tracebackhide__ = True
        mode = "strict" if strict else "lenient"
        message = Message()
        for chunks in splits(output):
            parser = turn.parser(strict=strict)
            events, refusal = _read(parser, chunks)
            if refusal:
                advice = ["use expect_tolerated if this deviation is to be read"]
                raise AssertionError(
                    self._report(f"the strict parser refuses: {refusal}", mode, chunks, events, advice)
                )
            message = parser.message
            found = Expectation.of(message)
            difference = expected.differences(found)
            if difference:
                advice = ["if what was found is right, expect it:", *found.source().splitlines()]
                raise AssertionError(self._report("\n".join([_DIFFERS, *difference]), mode, chunks, events, advice))
        return message

    def _report(
        self,
        finding: str,
        mode: str = "",
        chunks: Sequence[str] = (),
        events: Sequence[Event] = (),
        advice: Sequence[str] = (),
    ) -> str:
        lines = [finding, "", f"template  {self._template!r}"]
        lines += [f"parser    {mode}", f"split     {_described(chunks)}"] if mode else []
        lines += ["", "events so far", *(f"  {event!r}" for event in joined_events(events))] if events else []
        return printable_lines("\n".join([*lines, "", *advice]))


def _read(parser: Parser, chunks: Sequence[str]) -> tuple[list[Event], MalformedOutput | None]:
    """Feed the chunks and finish; returns the events, and what a strict parser raised after them."""
    events: list[Event] = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.finish()
    except MalformedOutput as refusal:
        return events, refusal
    return events, None


def _described(chunks: Sequence[str]) -> str:
    match len(chunks):
        case 0 | 1:
            return "none, the whole output at once"
        case 2:
            return f"in two: {chunks[0][-30:]!r} | {chunks[1][:30]!r}"
    if all(len(chunk) == 1 for chunk in chunks):
        return "into single characters"
    return f"into {len(chunks)} chunks: {' | '.join(map(repr, chunks[:6]))} | …"
