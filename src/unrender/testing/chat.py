"""Tests the parsing of one output at all splits, with lenient and strict parsers and with grammars.

Outputs are split as an engine might split them. Joined together, the chunks are always the complete text.

Strategy: the expected and the parsed message are compared as Python source, i.e. as calls of `expect`. If a test fails, its error can
therefore show an expectation that would pass. `given` and `output` only collect arguments. `expect` runs the case, and raises
`AssertionError` if it fails.
"""

from __future__ import annotations

import difflib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from unrender import ChatTemplate, Event, Message, ParseError, Parser, ToolCall, Turn
from unrender.errors import UnrenderError
from unrender.explain import joined_events
from unrender.limits import MAX_PLACES
from unrender.printable import printable_lines
from unrender.signatures import checked
from unrender.types import CallStatus
from unrender.verify.grammars import refusals

_RANDOM_SIZES = (3, 12, 60)


@checked
def splits(text: str) -> Iterator[list[str]]:
    """Yield chunkings of `text`: unsplit, in single characters, split in two at each position, in chunks of four, and random.

    >>> list(splits("ab"))[:3]
    [['ab'], ['a', 'b'], ['a', 'b']]
    """
    yield [text]
    yield pieces(text, 1)
    yield from halves(text)
    yield pieces(text, 4)
    for largest in _RANDOM_SIZES:
        yield random_pieces(text, largest)


def pieces(text: str, size: int) -> list[str]:
    """Return `text` cut into pieces of `size` characters. The last piece may be shorter."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def halves(text: str) -> Iterator[list[str]]:
    """Yield `text` split in two, at every position or at `MAX_PLACES` of them."""
    # Round the step up, so that there are at most `MAX_PLACES` cuts. A long output may then be cut only at every third position.
    step = max(1, -(-len(text) // MAX_PLACES))
    for i in range(1, len(text), step):
        yield [text[:i], text[i:]]


def random_pieces(text: str, largest: int, seed: int = 0) -> list[str]:
    """Return `text` cut into pieces of 1 to `largest` characters. The same `seed` gives the same pieces."""
    chance = random.Random(f"{seed}:{largest}:{len(text)}")  # noqa: S311 - reproducible, not secret
    cut: list[str] = []
    at = 0
    while at < len(text):
        cut.append(text[at : at + chance.randint(1, largest)])
        at += len(cut[-1])
    return cut


_QUESTION = ({"role": "user", "content": "Hello"},)
"""The default conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """An expected call, created by `call` or `broken_call`."""

    name: str
    arguments: Mapping[str, Any] | str
    """The arguments, or their partial JSON text if the call is incomplete."""
    status: CallStatus = "complete"

    def source(self) -> str:
        """Return the Python expression that creates this call. The expression distinguishes 1, 1.0 and true, but not the order of
        arguments.
        """
        if isinstance(self.arguments, str):
            status = "" if self.status == "truncated" else f", status={str(self.status)!r}"
            return f"broken_call({self.name!r}, {self.arguments!r}{status})"
        arguments = json.loads(json.dumps(self.arguments, sort_keys=True))
        return f"call({self.name!r}, {arguments!r})" if arguments else f"call({self.name!r})"


@checked
def call(name: str, values: Mapping[str, Any] | None = None, /, **more: Any) -> ExpectedCall:
    """Return a complete call. Pass arguments whose names aren't Python identifiers as a mapping.

    >>> call("get_weather", city="Paris") == call("get_weather", {"city": "Paris"})
    True
    """
    return ExpectedCall(name=name, arguments={**(values or {}), **more})


@checked
def broken_call(name: str, arguments: str, *, status: CallStatus = "truncated") -> ExpectedCall:
    """Return a failed call: a truncated call or, with the status "invalid", a broken one. The call's text becomes content.

    `arguments` is the JSON text of its arguments so far.
    """
    return ExpectedCall(name=name, arguments=arguments, status=status)


def source_of(
    *,
    reasoning: str = "",
    content: str = "",
    tool_calls: Sequence[ExpectedCall] = (),
    failed_calls: Sequence[ExpectedCall] = (),
) -> str:
    """Return the Python source of a call of `expect`. Empty arguments are left out."""
    rows = [f"{name}={text!r}" for name, text in (("reasoning", reasoning), ("content", content)) if text]
    for name, calls in (("tool_calls", tool_calls), ("failed_calls", failed_calls)):
        rows += [f"{name}=[{', '.join(item.source() for item in calls)}]"] if calls else []
    if len(rows) < 2:
        return f".expect({', '.join(rows)})"
    return "".join([".expect(\n", *(f"    {row},\n" for row in rows), ")"])


def source_of_message(message: Message) -> str:
    """Return the call of `expect` that passes for the message."""
    calls, failed = (list(map(_expected, calls)) for calls in (message.tool_calls, message.failed_calls))
    return source_of(reasoning=message.reasoning, content=message.content, tool_calls=calls, failed_calls=failed)


def _expected(found: ToolCall) -> ExpectedCall:
    arguments = found.arguments if found.status == "complete" else found.arguments_json
    return ExpectedCall(name=found.name, arguments=arguments, status=found.status)


@checked
class Chat:
    """Starts test cases. The fixture `chat` is an instance of this class. Relative paths are resolved against the `folders`, in order."""

    def __init__(self, folders: Sequence[Path] = (Path(),)) -> None:
        self._folders = folders
        self._cases: list[Case] = []

    def __call__(self, template: ChatTemplate | str | PathLike[str]) -> Case:
        """Start a case for a template, which is a `ChatTemplate` or an argument of `ChatTemplate.from_pretrained`."""
        __tracebackhide__ = True
        try:
            case = Case(template if isinstance(template, ChatTemplate) else self._load(template))
        except UnrenderError as error:
            raise error.with_traceback(None) from None  # The test's own line is the place of the mistake.
        self._cases.append(case)
        return case

    @property
    def unfinished(self) -> tuple[Case, ...]:
        """Cases for which `expect` was never called."""
        return tuple(case for case in self._cases if not case.finished)

    def _load(self, path: str | PathLike[str]) -> ChatTemplate:
        places = (folder / path for folder in self._folders)
        return ChatTemplate.from_pretrained(next((place for place in places if place.exists()), path))


class Case:
    """One answer and its expected message."""

    def __init__(self, template: ChatTemplate) -> None:
        self.finished: bool = False
        """True once `expect` has been called."""
        self._template = template
        self._messages: Sequence[Mapping[str, Any]] = _QUESTION
        self._request: dict[str, Any] = {}
        self._output: str | None = None

    def given(self, messages: Sequence[Mapping[str, Any]] | None = None, **request: Any) -> Case:
        """Set the conversation and other arguments of `ChatTemplate.prepare`, e.g. `tools`."""
        self._messages = messages or self._messages
        self._request |= request
        return self

    def output(self, text: str) -> Case:
        """Set the output, which is the text that the model generated."""
        self._output = text
        return self

    def expect(
        self,
        *,
        reasoning: str = "",
        content: str = "",
        tool_calls: Sequence[ExpectedCall] = (),
        failed_calls: Sequence[ExpectedCall] = (),
        tolerated: bool = False,
    ) -> None:
        """Check the message at every split, with lenient and strict parsers. Also check that grammars allow the output.

        Grammars are checked with the installed engines (llguidance, xgrammar). With `tolerated`, only the lenient parser is used, and the
        output must deviate from the format. Raises `AssertionError`, which shows the difference, the split, the events so far, and an
        expectation that would pass.
        """
        __tracebackhide__ = True
        self.finished = True  # Set this first, so that a case that fails below isn't also reported as unfinished.
        if self._output is None:
            raise AssertionError("no output to read: call output(…) before expect(…)")
        turn, output = self._template.prepare(self._messages, **self._request), self._output
        expected = source_of(reasoning=reasoning, content=content, tool_calls=tool_calls, failed_calls=failed_calls)
        message = self._check(turn, output, expected, strict=False)
        if tolerated:
            _, refusal = _read(turn.parser(strict=True), [output])
            if not refusal and not refusals(turn, output, message):
                found = "nothing to tolerate: the output follows the format"
                raise AssertionError(self._report(found, advice=["remove tolerated=True"]))
            return
        # The strict parser must return the same message. If only the lenient parser accepts the output, the output deviates from the format.
        self._check(turn, output, expected, strict=True)
        if refused := refusals(turn, output, message):
            found = f"the message is as expected, but these grammars don't allow the output: {', '.join(refused)}"
            advice = ["pass tolerated=True if a grammar doesn't have to allow this output"]
            raise AssertionError(self._report(found, advice=advice))

    def _check(self, turn: Turn, output: str, expected: str, *, strict: bool) -> Message:
        """Parse the output at all splits, and return the message."""
        __tracebackhide__ = True
        mode = "strict" if strict else "lenient"
        message = Message()
        for chunks in splits(output):
            parser = turn.parser(strict=strict)
            events, refusal = _read(parser, chunks)
            if refusal:
                advice = ["pass tolerated=True if this deviation should be accepted"]
                said = f"the strict parser rejects it: {refusal}"
                raise AssertionError(self._report(said, mode, chunks, events, advice))
            message = parser.message
            found = source_of_message(message)
            if found != expected:
                said = "the message differs (- expected, + found)"
                lines = [line.rstrip() for line in difflib.ndiff(expected.splitlines(), found.splitlines())]
                advice = ["if the new message is correct, expect it:", *found.splitlines()]
                if "tool_calls" in expected and not turn.request.tools:
                    advice = ["no tools were given, so no text can be a call: given(tools=[…])"]
                raise AssertionError(self._report("\n".join([said, *lines]), mode, chunks, events, advice))
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


def _read(parser: Parser, chunks: Sequence[str]) -> tuple[list[Event], ParseError | None]:
    """Parse the chunks to the end. Returns the events, and the error that a strict parser raised."""
    events: list[Event] = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.finish()
    except ParseError as refusal:
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
