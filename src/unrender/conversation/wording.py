"""Write the instructions for tool calls in a prompt, from the tools and a call syntax.

Strategy: A call's form is described by its markers in the format, with a capitalized word in place of each slot. The format's codec
determines how these words are explained. The example is encoded in the same way as calls in a grammar. No wording is specific to one
syntax.

Rule: Examples don't use the names of offered tools or values of their arguments. A small model would copy `"city": "text"` verbatim.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.answer.build import calls_in_syntax
from unrender.answer.encode import encode_calls, filled, run_of
from unrender.answer.nodes import ArgumentsPart, Calls
from unrender.format import CallSyntax, Format, Slot, Typing
from unrender.messages.wire import Request
from unrender.values.notations import notation_of

RESULT_OPEN = '<tool_response name="{name}">\n'
RESULT_CLOSE = "\n</tool_response>"
_ASKED, _TOOL, _VALUES = "Say good evening three times.", "repeat", {"words": "good evening", "times": 3}
"""An example question, and the name and arguments of the call that answers it."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """Description of the tools and their call syntax, for a system message."""

    calls: Calls
    request: Request
    tools_first: bool
    """True if the model writes content after calls."""
    results_as_text: bool
    """True if tool results are written as text in user messages."""

    def write(self, tools: Sequence[Mapping[str, Any]]) -> str:
        """Return the instructions for these tools, which are in OpenAI's wrapped format."""
        schemas = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        paragraphs = [
            "# Tools",
            "You can call functions. These are offered, each with the JSON Schema of its arguments:",
            schemas,
            "A call is written in exactly this form:",
            _form(self.calls, 1),
            _listed(_explained(self.calls)),
            *self._example([tool["function"]["name"] for tool in tools]),
            *self._several(),
            _listed(self._rules()),
        ]
        return "\n\n".join(paragraphs)

    def _example(self, taken: Collection[str]) -> Iterator[str]:
        name = f"{max(taken, key=len)}_{_TOOL}" if _TOOL in taken else _TOOL
        yield f'For example, if there were a function `{name}`, "{_ASKED}" would be answered with:'
        id = "1".zfill(self.calls.id_length) if self.calls.id_length else "call_1"
        yield encode_calls(self.calls, [(name, _VALUES, id)]).strip()

    def _several(self) -> Iterator[str]:
        if not self.request._one_call and self.calls.maximum is None:
            yield "Several calls in one answer stand together in this form:"
            yield _form(self.calls, 2)

    def _rules(self) -> Iterator[str]:
        choice = self.request.tool_choice
        if choice == "named":
            yield f"Answer with exactly one call of `{self.request.named_tool}`. Write nothing before it."
        elif self.request._one_call or self.calls.maximum is not None:
            yield "Write at most one call in an answer."
        if choice == "required":
            yield "Answer with a call. Write nothing before it."
        if choice == "auto" and self.request.response_schema is not None:
            yield "Call a function only when it is needed, and write nothing else then. Any other answer is JSON alone."
        elif choice == "auto":
            place = "after" if self.tools_first else "before"
            yield f"Call a function only when it is needed. What you say to the user comes {place} the calls."
        if self.results_as_text:
            opened = RESULT_OPEN.format(name="NAME").strip()
            yield f"Wait for the results, which the next message holds between `{opened}` and `{RESULT_CLOSE.strip()}`."


def call_form(syntax: CallSyntax) -> str:
    """Return the form of a call, with a capitalized word for each variable part.

    >>> from unrender import Format
    >>> print(call_form(Format.named("tool-call-json").tools))
    <tool_call>
    {"name": "NAME", "arguments": ARGUMENTS}
    </tool_call>
    """
    return _form(calls_in_syntax(Format(), syntax), 1)


def _form(calls: Calls, count: int) -> str:
    names = {slot: slot.name for slot in Slot}
    arguments = calls.arguments
    inside = filled(arguments.entry, names) if arguments.entry else Slot.ARGUMENTS.name
    call = filled(calls.function, {**names, Slot.ARGUMENTS: arguments.open.text + inside + arguments.close.text})
    return run_of(calls, [call] * count).strip()


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _explained(calls: Calls) -> Iterator[str]:
    """Yield a sentence for each capitalized word in the form of a call."""
    arguments = calls.arguments
    yield "NAME is the name of the function."
    if Slot.ID in calls.function:
        form = f" of {calls.id_length} letters or digits" if calls.id_length else ""
        yield f"ID is a name{form} that you give to this call, another one for each call."
    if Slot.INDEX in calls.function:
        yield f"INDEX counts your calls, from {calls.index_start}."
    if arguments.entry:
        yield from _explained_entry(arguments)
    else:
        yield f"ARGUMENTS is {notation_of(arguments.codec).object_kind} with all arguments by name."
    if arguments.empty is not None:
        yield f"Without arguments, write {_named(arguments.empty)} in their place."


def _explained_entry(arguments: ArgumentsPart) -> Iterator[str]:
    between = f", with {_named(arguments.separator.text)} between them" if arguments.separator.text else ""
    yield f"`{filled(arguments.entry, {slot: slot.name for slot in Slot}).strip()}` is written once for each argument{between}."
    yield f"KEY is the argument's name, VALUE its value: {'; '.join(notation_of(arguments.codec).sentences)}."
    if arguments.codec.typed_by is Typing.ATTRIBUTE:
        words = ", ".join(f"{word} for {kind}" for kind, word in arguments.codec.types)
        yield f"TYPE tells the type of the value: {words}."


def _named(text: str) -> str:
    """Return a description of common whitespace, such as "a line break". Any other text is returned in backquotes."""
    names = {"": "nothing", " ": "a space", "\n": "a line break", "\n\n": "an empty line"}
    return names.get(text, f"`{text}`")
