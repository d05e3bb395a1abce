"""The programs that are compiled for hand-made formats, instruction by instruction, into `tests/programs` for review.

Usage: `python3 scripts/golden_programs.py`. Read the diff before committing it: a line that changes is a text that is read
otherwise, or by other steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import environment

sys.path.append(str(environment.ROOT / "tests"))

from properties.families import (
    BARE_JSON,
    BARE_KEYS,
    COUNTED,
    ID_BETWEEN,
    JSON_ENVELOPE,
    JSON_ID_LAST,
    JSON_WITH_IDS,
    KEY_AND_VALUE,
    KEYWORDS,
    NESTED_TAGS,
    PYTHON_CALLS,
    RAW_OPTIONS,
    RECIPIENT,
    REQUEST,
    TAGGED,
    TYPED,
)

from unrender.explain.disassembly import listing
from unrender.format import (
    Arguments,
    CallSyntax,
    Content,
    ContentMode,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    ToolMode,
)
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser

PROGRAMS = environment.ROOT / "tests" / "programs"
_FAMILIES = (
    *(COUNTED, JSON_ENVELOPE, JSON_WITH_IDS, JSON_ID_LAST, BARE_JSON, ID_BETWEEN, RECIPIENT, TAGGED, KEY_AND_VALUE),
    *(TYPED, PYTHON_CALLS, BARE_KEYS, NESTED_TAGS, RAW_OPTIONS, KEYWORDS),
)
_WORDS = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON,
    section_start="<calls>\n",
    section_end="\n</calls>",
    call_start="call ",
    separator=";\n",
    function=(Slot.NAME, " for ", Slot.ANY, " with ", Slot.ARGUMENTS),
    arguments=Arguments(start="args:", when_empty="nothing"),
    whole=True,
)
_UNMARKED = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, " ", Slot.ARGUMENTS), separator="\n", arguments=Arguments()
)
_EMPTY = replace(
    TAGGED.format.tools,
    arguments=replace(TAGGED.format.tools.arguments, start="<args>\n", end="</args>\n", when_empty=""),
)
_THOUGHT = Reasoning(mode=ReasoningMode.TAG_BASED, start="<t", end="<t/>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A format and a request, whose program is printed."""

    name: str
    format: Format
    request: Request = REQUEST

    def lines(self) -> list[str]:
        """Return the program, one instruction on each line."""
        return [str(line) for line in listing(Parser(self.format, self.request))]

    @property
    def path(self) -> Path:
        """The file of the program."""
        return PROGRAMS / f"{self.name}.txt"


def compiled() -> Iterator[Compiled]:
    """Yield what is compiled: some of the hand-made formats, and what they leave out."""
    for family in _FAMILIES:
        yield Compiled(name=family.name, format=_declared(family.format))
    few = Request(tools=(Tool(name="now"),))
    yield Compiled(name="words", format=_declared(Format(tools=_WORDS)))
    yield Compiled(name="nothing_for_no_arguments", format=_declared(Format(tools=_EMPTY)), request=few)
    yield Compiled(name="unmarked", format=_declared(Format(tools=_UNMARKED)), request=few)
    yield Compiled(name="begins_alike", format=_declared(Format(reasoning=_THOUGHT)))
    json = _declared(JSON_ENVELOPE.format)
    wrapped = Content(mode=ContentMode.ALWAYS_WRAPPED, start="\n<say> ", end=" </say>\n")
    yield Compiled(name="wrapped", format=replace(json, content=wrapped, tools=CallSyntax()))
    plain = replace(json, reasoning=Reasoning(), tools=CallSyntax())
    yield Compiled(name="undeclared_reasoning", format=replace(plain, undeclared_reasoning=True))
    yield Compiled(name="json_answer", format=plain, request=Request(response_schema={"type": "object"}))
    yield Compiled(name="cleaned", format=replace(json, cleans_content=True))


def _declared(format: Format) -> Format:
    """Return the format without the well-known markers of reasoning that it does not have: they would fill the pages."""
    return replace(format, undeclared_reasoning=False)


def main() -> None:
    """Write all programs, and remove those of formats that are gone."""
    kept = set()
    for item in compiled():
        item.path.write_text("\n".join(item.lines()) + "\n", encoding="utf-8")
        kept.add(item.path)
    for path in set(PROGRAMS.glob("*.txt")) - kept:
        path.unlink()


if __name__ == "__main__":
    main()
