"""Formats as data: saved, declared, compared and drawn."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from answers import said_in
from cases import cases
from properties.families import FAMILIES, TAG_AND_JSON, Family
from rows import patched
from splitting import fed
from vendor import vendor_templates

from unrender import ChatTemplate, Message, Parser
from unrender.errors import FormatError, FormatVersionError
from unrender.format import (
    FORMAT_VERSION,
    Arguments,
    CallSyntax,
    Codec,
    Content,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Spelling,
    ToolMode,
    TurnTexts,
)
from unrender.format.data import differences
from unrender.format.declared import Declared, Signs, declared_formats
from unrender.format.picture import pictures
from unrender.types import Request, Tool
from unrender.verify import Verdict, verify_format


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_format_survives_json(family: Family) -> None:
    """A format survives a round trip through JSON, indented or not."""
    format = family.format

    assert Format.from_json(format.to_json()) == format
    assert Format.from_json(format.to_json(indent=None)) == format


@pytest.mark.parametrize("version", ["0", "3", '"1"', "null", "true", "1.5"])
def test_another_version_is_a_clear_error(version: str) -> None:
    """A version that this release doesn't support is an error."""
    with pytest.raises(FormatVersionError, match="expected 1 or"):
        Format.from_json(f'{{"version": {version}}}')


@cases
def test_a_broken_format_names_the_place(text: str, message: str) -> None:
    """An error in a format's JSON names the place and the expected value."""
    with pytest.raises(FormatError, match=message):
        Format.from_json(text)


@cases
def test_the_position_of_the_id_follows_from_the_skeleton(family: str, position: str) -> None:
    """The id is before the name, between name and arguments, or after the arguments."""
    [format] = [found.format for found in FAMILIES if found.name == family]

    assert format.tools.call_id == position


SAVED = json.loads((Path(__file__).parent / "version_1.json").read_text(encoding="utf-8"))
"""Formats as saved by releases with version 1. Together they have every field except new ones."""
NEW = ("checked", "sorted_keys")
"""Fields that are newer than version 1. Rows of `tests/corpus` cover them."""


@pytest.mark.parametrize("data", SAVED)
def test_formats_of_version_1_are_read(data: dict[str, Any]) -> None:
    """Every value keeps its meaning. The format is saved with the current version, without derived fields."""
    data = copy.deepcopy(data)
    format = Format.from_dict(data)

    for saved, syntax in zip(
        (data.get("tools", {}), *data.get("tolerated", ())), (format.tools, *format.tolerated), strict=True
    ):
        said = {name: path for name, path in saved.pop("envelope", {}).items() if name != "list_field"}
        assert saved.pop("mode", "none") == syntax.mode
        envelope = json.loads(json.dumps(asdict(syntax.envelope))) if syntax.envelope else {}
        assert said == {name: value for name, value in envelope.items() if value}
    assert Format.from_dict(data) == format
    assert format.to_dict() == data | {"version": FORMAT_VERSION}


def test_the_saved_formats_have_every_field() -> None:
    """The saved formats contain every field, so that a renamed field is detected. Newer fields are listed."""
    text = json.dumps([SAVED, {"escapes": (), "closers": ()}])
    kinds = (Format, TurnTexts, Reasoning, Content, CallSyntax, Arguments, Codec, Spelling)

    assert [item.name for kind in kinds for item in fields(kind) if f'"{item.name}": ' not in text] == list(NEW)


GONE: list[tuple[str, Any, Any]] = [
    ("repeats", True, False),
    ("as_string", True, False),
    ("codec.entities", [["&", "&amp;"]], []),
    ("codec.escaped_containers", True, False),
]


@pytest.mark.parametrize("place", ["tools", "tolerated[0]"])
@pytest.mark.parametrize(("name", "said", "default"), GONE)
def test_what_is_gone_since_version_1_is_named(place: str, name: str, said: Any, default: Any) -> None:
    """A removed field with an effect is an error, and one with its default is ignored."""

    def saved(value: Any) -> dict[str, Any]:
        field = name.rpartition(".")[2]
        inner = {"codec": {field: value}} if "." in name else {field: value}
        syntax = TAG_AND_JSON.format.to_dict()["tools"] | {"arguments": inner}
        return {"version": 1, "tools": syntax} | (
            {} if place == "tools" else {"tolerated": [syntax], "tools": {"mode": "none"}}
        )

    with pytest.raises(
        FormatError, match=re.escape(f"format.{place}.arguments.{name}: this field of version 1 was removed")
    ):
        Format.from_dict(saved(said))
    assert Format.from_dict(saved(default)).to_dict()["version"] == FORMAT_VERSION


@cases
def test_words_that_are_gone_since_version_1_are_named(arguments: dict[str, Any], place: str) -> None:
    """The error lists the allowed words."""
    with pytest.raises(FormatError, match=f"format.tools.{place}: expected one of"):
        Format.from_dict({"version": 1, "tools": {"arguments": arguments}})


@pytest.mark.parametrize("data", [{"tools": 1}, {"tools": {"arguments": 1}}, {"tolerated": 1}, {"tolerated": [1]}])
def test_version_1_is_checked_as_version_2_is(data: dict[str, Any]) -> None:
    """Data that isn't a format is an error that names the place."""
    with pytest.raises(FormatError, match="expected"):
        Format.from_dict({"version": 1} | data)


@pytest.mark.parametrize("declared", declared_formats(), ids=lambda declared: declared.name)
def test_a_declared_format_says_why(declared: Declared) -> None:
    """A declared format has a reason, and survives a round trip through JSON."""
    assert declared.why.endswith(".")
    assert Format.from_json(declared.format.to_json()) == declared.format


@pytest.mark.few(9)
@pytest.mark.slow
@pytest.mark.parametrize("declared", declared_formats(), ids=lambda declared: declared.name)
def test_what_a_declared_format_generates_is_read(declared: Declared) -> None:
    """Every answer that the format's grammars allow is parsed correctly."""
    verdicts = {finding.capability: finding.verdict for finding in verify_format(declared.format).findings}

    assert verdicts["generated answers"] is Verdict.PASSED


def test_names_are_unique() -> None:
    """Names of declared formats are unique."""
    names = [declared.name for declared in declared_formats()]

    assert len(set(names)) == len(names)


def test_a_format_is_found_by_name() -> None:
    """An unknown name is an error that lists the known ones."""
    assert Format.named("none") == Format(undeclared_reasoning=False)
    with pytest.raises(FormatError, match="expected one of .*'none'.*, found 'nope'"):
        Format.named("nope")


@pytest.mark.parametrize(
    ("source", "found"), [("a b", True), ("a c", True), ("a", False), ("b", False), ("a b x", False)]
)
def test_evidence_is_what_the_source_has_and_has_not(source: str, found: bool) -> None:
    """Evidence requires all of some texts, any of others, and none of the rest."""
    assert Signs(all=("a",), any=("b", "c"), none=("x",)).found_in(source) is found


PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "on": {"type": "boolean"}}


def _tool(name: str, properties: dict[str, Any]) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties})


REQUEST = Request(tools=(_tool("get_weather", PROPERTIES), _tool("ping", {})))
Called = tuple[str, dict[str, Any], str]
PARIS: Called = ("get_weather", {"city": "Paris", "days": 3}, "call00001")
ROME: Called = ("get_weather", {"city": "Città di Roma", "on": False}, "call00002")
SHAPES: dict[str, tuple[str, str, tuple[Called, ...]]] = {
    "a call": ("", "", (PARIS,)),
    "no arguments": ("", "", (("ping", {}, "call00001"),)),
    "two calls": ("", "", (PARIS, ROME)),
    "after content": ("Let me look.", "", (PARIS,)),
    "after reasoning": ("", "Weather.\n\n1. a < b", (PARIS,)),
    "content after reasoning": ("It rains.", "Weather.", ()),
}


def syntaxes() -> Iterator[tuple[str, Format]]:
    """Yield each declared format once per call syntax, with that syntax as its own."""
    for declared in declared_formats():
        found = declared.format
        own = [found.tools] if found.tools.mode is not ToolMode.NONE else []
        for at, tools in enumerate((*own, *found.tolerated)):
            yield f"{declared.name} {at}", _written_in(found, tools)


def _written_in(format: Format, tools: CallSyntax) -> Format:
    return replace(format, tools=tools, tolerated=tuple(other for other in format.tolerated if other != tools))


SYNTAXES = dict(syntaxes())


def read(format: Format, chunks: list[str]) -> Message:
    parser = Parser(format, REQUEST)
    fed(parser, chunks)
    return parser.message


@pytest.mark.few(120)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SYNTAXES)
def test_what_a_declared_format_writes_is_read(name: str, shape: str) -> None:
    """An answer in the format is parsed correctly, as a whole and character by character."""
    format, (content, reasoning, calls) = SYNTAXES[name], SHAPES[shape]
    calls = calls if format.tools.parallel else calls[:1]
    if reasoning and not format.reasoning.end:
        pytest.skip("the format declares no reasoning")
    text = said_in(format, content=content, reasoning=reasoning, calls=calls)

    for chunks in ([text], list(text)):
        message = read(format, chunks)
        found = [(call.name, json.loads(call.arguments_json), call.status) for call in message.tool_calls]

        assert found == [(name, values, "complete") for name, values, _ in calls], text
        assert (message.content.strip(), message.reasoning.strip()) == (content, reasoning), text
        if Slot.ID in format.tools.function:
            assert [call.id for call in message.tool_calls] == [id for *_, id in calls]


CALL = (Slot.NAME, ">", Slot.ARGUMENTS)
FORMAT = Format(
    turn=TurnTexts(end="<|end|>"),
    tools=CallSyntax(function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>")),
    tolerated=(CallSyntax(function=CALL),),
)


@cases
def test_a_difference_is_named_by_the_smallest_part(why: str, changes: dict[str, Any], found: list[list[Any]]) -> None:
    """A difference has its path and both values, which are plain data. A skeleton is one text, in which slots are marked."""
    other = Format.from_dict(patched(FORMAT.to_dict(), changes))

    assert [[it.path, it.before, it.after, str(it)] for it in differences(FORMAT, other)] == found


PATHS = sorted(vendor_templates().values(), key=lambda path: path.stem)


def test_an_answer_is_its_markers_and_slots_in_order():
    """Empty markers are left out, and each piece names its field."""
    made = Format(
        turn=TurnTexts(end="<end>", reasoning_to_content="\n"),
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>"),
    )
    (row,) = pictures(made)

    assert [(piece.text, piece.role, piece.field) for piece in row] == [
        ("<r>", "marker", "reasoning.start"),
        ("reasoning", "reasoning", "reasoning"),
        ("</r>", "marker", "reasoning.end"),
        ("\n", "marker", "turn.reasoning_to_content"),
        ("content", "content", "content"),
        ("<end>", "marker", "turn.end"),
    ]


def test_calls_end_as_they_were_seen_to_end():
    """If a turn ends differently after calls, so does the picture of a call."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}"
        "{{ c.function.arguments | tojson }}</call>{% endfor %}{{ '<wait>' if m.tool_calls else '<end>' }}{% endfor %}"
    )
    template = ChatTemplate.from_string(source, cache=False)
    (row,) = template.analysis._pictures()

    assert (row[-1].text, row[-1].field) == ("<wait>", "turn.ends")


@pytest.mark.parametrize("path", PATHS[::6], ids=lambda path: path.stem)
def test_every_part_names_a_field_of_the_format(path):
    """For any template, the fields in a picture exist and contain the marker."""
    template = ChatTemplate.from_file(path)
    rows = template.analysis._pictures()

    assert rows
    for piece in (piece for row in rows for piece in row if piece.role == "marker"):
        held = attrgetter(piece.field)(template.format)
        assert piece.text in (held if isinstance(held, tuple) else (held,))
