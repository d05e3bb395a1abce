"""Describes the answer that a test expects: compares it with a message, and writes it as Python."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unrender import CallStatus, Message, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """A call as a test expects it, made by `call` or `broken_call`."""

    name: str
    arguments: Mapping[str, Any] | str
    """The values or, of a call that is not complete, the JSON text as far as it came."""
    status: CallStatus = CallStatus.COMPLETE

    def source(self) -> str:
        """Return the Python expression that makes this call."""
        if isinstance(self.arguments, str):
            status = "" if self.status is CallStatus.TRUNCATED else f", status={str(self.status)!r}"
            return f"broken_call({self.name!r}, {self.arguments!r}{status})"
        if all(key.isidentifier() for key in self.arguments):
            return f"call({', '.join([repr(self.name), *(f'{k}={v!r}' for k, v in self.arguments.items())])})"
        return f"call({self.name!r}, {dict(self.arguments)!r})"


def call(name: str, values: Mapping[str, Any] | None = None, /, **more: Any) -> ExpectedCall:
    """Return a complete call. Arguments whose names are not Python names are passed as a mapping.

    >>> call("get_weather", city="Paris") == call("get_weather", {"city": "Paris"})
    True
    """
    return ExpectedCall(name=name, arguments={**(values or {}), **more})


def broken_call(name: str, arguments: str, *, status: str = CallStatus.TRUNCATED) -> ExpectedCall:
    """Return a dead call: it was cut off or, with status "invalid", is broken. Its text is content.

    `arguments` is its JSON text so far.
    """
    return ExpectedCall(name=name, arguments=arguments, status=CallStatus(status))


_OF_CALLS = ("tool_calls", "dead_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A whole answer as a test expects it. Parts that are not given are expected to be empty."""

    reasoning: str = ""
    content: str = ""
    tool_calls: Sequence[ExpectedCall] = field(default_factory=tuple)
    dead_calls: Sequence[ExpectedCall] = field(default_factory=tuple)

    @classmethod
    def of(cls, message: Message) -> Expectation:
        """Return the expectation that the message fulfils."""
        calls, dead = (tuple(map(_expected, calls)) for calls in (message.tool_calls, message.dead_calls))
        return cls(reasoning=message.reasoning, content=message.content, tool_calls=calls, dead_calls=dead)

    def differences(self, found: Expectation) -> list[str]:
        """Return lines that show where `found` differs; none if it does not.

        `-` was expected, `+` was found.
        """
        return [
            line
            for name in ("reasoning", "content", *_OF_CALLS)
            for line in _difference(name, getattr(self, name), getattr(found, name))
        ]

    def source(self) -> str:
        """Return a call of `expect` that states this, as Python."""
        rows = [f"{name}={value!r}" for name in ("reasoning", "content") if (value := getattr(self, name))]
        for name in _OF_CALLS:
            calls = [item.source() for item in getattr(self, name)]
            rows += [f"{name}=[{', '.join(calls)}]"] if calls else []
        return f".expect({', '.join(rows)})" if len(rows) < 2 else ".expect(\n" + "".join(map(_row, rows)) + ")"


def _row(text: str) -> str:
    return f"    {text},\n"


def _expected(found: ToolCall) -> ExpectedCall:
    arguments = json.loads(found.arguments) if found.status is CallStatus.COMPLETE else found.arguments
    return ExpectedCall(name=found.name, arguments=arguments, status=found.status)


def _difference(name: str, expected: Any, found: Any) -> Iterator[str]:
    if isinstance(expected, str):
        if expected != found:
            yield from (name, *_compared(_lines(expected), _lines(found)))
    elif list(map(_exact, expected)) != list(map(_exact, found)):
        yield from (name, *_compared([item.source() for item in expected], [item.source() for item in found]))


def _exact(item: ExpectedCall) -> tuple[str, str, str]:
    """Return the call as text to compare: 1, 1.0 and true differ in it, the order of arguments does not."""
    return item.name, json.dumps(item.arguments, sort_keys=True), item.status


def _lines(text: str) -> list[str]:
    """Return the lines as Python strings, in which white space can be seen."""
    return [repr(line) for line in text.splitlines(keepends=True)] or ["''"]


def _compared(expected: list[str], found: list[str]) -> Iterator[str]:
    """Yield the lines of both, marked by which one has them; difflib's hint lines show the characters."""
    yield from (f"  {line.rstrip()}" for line in difflib.ndiff(expected, found))
