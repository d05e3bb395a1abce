"""Parts of a format: their fields and locations, and invariants. A Format that can't be parsed and written unambiguously is an error.

Each row of `tests/corpus/format_checks.jsonl` is a format, with the error that names the field if it is invalid.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from properties.families import FAMILIES, REQUEST
from recipes import rows_of
from splitting import fed

import unrender
from unrender import ChatTemplate, Parser
from unrender.errors import FormatError
from unrender.format import (
    Arguments,
    CallSyntax,
    Containers,
    Envelope,
    Format,
    Reasoning,
    Slot,
    Strings,
    TurnTexts,
    Typing,
    Words,
)
from unrender.format.data import decode
from unrender.format.declared import declared_formats

NAME, ARGUMENTS, ID, KEY, VALUE, TYPE = Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.KEY, Slot.VALUE, Slot.TYPE


@cases
def test_what_is_between_two_arguments(arguments: dict[str, Any], between: str) -> None:
    """The text between two arguments includes the text after a value, the separator, and the text before the next key."""
    assert decode(Arguments, arguments, where="").between == between


@cases
def test_values_that_nothing_of_their_own_ends(arguments: dict[str, Any], open_ended: bool) -> None:
    """A value is open-ended if it has no quotes, and only whitespace follows it."""
    assert decode(Arguments, arguments, where="").open_ended is open_ended


MARKED = CallSyntax(
    function=("<f ", NAME, ">", ARGUMENTS, "</f>"),
    arguments=Arguments(entry=("<p ", KEY, "=", TYPE, ">", VALUE, "</p>")),
)
BARE = CallSyntax(function=(NAME, ARGUMENTS), arguments=Arguments(entry=(KEY, VALUE)))


@cases
def test_markers_by_the_names_of_the_field(view: str, marked: str) -> None:
    """A marker is the text next to its slot, or empty if there is none."""
    assert getattr(MARKED, view) == marked
    assert getattr(BARE, view) == ""
    assert getattr(CallSyntax(), view) == ""


@cases
def test_reasoning_that_a_text_closes(markers: dict[str, str], text: str, closed: bool) -> None:
    """Reasoning is closed if the text contains the end marker outside the start marker. An empty end closes nothing."""
    assert Reasoning(**markers).closed_in(text) is closed


@cases
def test_an_end_within_the_start(markers: dict[str, str], expected: bool) -> None:
    """Whitespace around the end marker is ignored, and whitespace alone doesn't count."""
    assert Reasoning(**markers).ends_within_start is expected


@pytest.mark.parametrize(("field", "expected"), [({}, True), ({"name_field": ("name",)}, False)])
def test_a_name_that_is_a_key(field: dict[str, Any], expected: bool) -> None:
    """A call without a field for its name has the name as the key of its arguments."""
    assert Envelope(**field).name_is_key is expected


def test_a_slot_is_no_text():
    """Strings that equal a slot's name are literals, so a format with a string differs from one with the slot."""
    assert Slot.KEY != "key"
    assert (Slot.KEY, "=") != ("key", "=")
    assert ("key", Slot.KEY).count(Slot.KEY) == 1
    assert {Slot.KEY: 1}[Slot.KEY] == 1
    assert pickle.loads(pickle.dumps(Slot.KEY)) is Slot.KEY

    with pytest.raises(FormatError, match="expected the slot `name`"):
        Format(tools=CallSyntax(call_start="<f>", function=("name", Slot.ARGUMENTS)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Strings, ["json", "python", "raw", "quoted", "single"]),
        (Words, ["json", "python", "python_null"]),
        (Containers, ["json", "python", "bare", "xml"]),
        (Typing, ["syntax", "schema", "attribute"]),
    ],
)
def test_the_words_of_saved_formats_stay(kind: type[Strings], words: list[str]) -> None:
    """Formats are saved with these words, so changing one requires a new version. Only raw strings have no quotes."""
    assert [item.value for item in kind] == words
    assert [item for item in kind if getattr(item, "unquoted", False)] == [item for item in kind if item == "raw"]


SOURCE = "{{ messages[-1].content }}{# <|mine|> #}"
MINE = {
    "name": "mine",
    "why": "Our models say this before anything else.",
    "evidence": {"all": ["<|mine|>"]},
    "format": {"version": 1, "ignored": ["<|mine|>"]},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder that the environment variable names."""
    monkeypatch.setenv("UNRENDER_FORMATS", str(tmp_path))
    return tmp_path


def write(folder, without=(), **changes):
    data = {key: value for key, value in {**MINE, **changes}.items() if key not in without}
    (folder / "mine.json").write_text(json.dumps(data), encoding="utf-8")


def test_folder_of_the_variable_completes_formats(folder):
    """A declared format in the variable's folder applies by evidence and by name."""
    write(folder)

    assert Format.named("mine").ignored == ("<|mine|>",)
    assert "mine" in ChatTemplate.from_string(SOURCE).format.declared
    assert "mine" not in ChatTemplate.from_string("{{ messages[-1].content }}").format.declared


def test_folder_in_the_configuration_counts(tmp_path, monkeypatch):
    """The folder `unrender/formats` of the user's configuration needs no variable."""
    folder = tmp_path / "unrender" / "formats"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    write(folder)

    assert [declared.origin for declared in declared_formats() if declared.name == "mine"] == [
        str(folder / "mine.json")
    ]


@pytest.mark.slow
def test_installed_packages_bring_formats(tmp_path):
    """An installed package with an entry point provides its files."""
    package, metadata = tmp_path / "ours", tmp_path / "ours-1.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    write(package)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[unrender.formats]\nours = ours\n", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(Path(unrender.__file__).parents[1])])

    found = subprocess.run(
        [sys.executable, "-c", "import unrender; print(unrender.Format.named('mine').ignored)"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.stdout == "('<|mine|>',)\n", found.stderr


@cases
def test_malformed_file_is_named(folder, said, changes, without):
    """An error in a user's file names the file and the field."""
    write(folder, without, **changes)

    with pytest.raises(FormatError) as refused:
        declared_formats()

    assert str(refused.value).startswith(f"{folder / 'mine.json'}: {said}")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "9" * 5000, "\xff"])
def test_file_that_is_no_json_is_named(folder, text):
    """A file that can't be parsed at all is named, too."""
    (folder / "mine.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(FormatError, match="mine.json: expected "):
        declared_formats()


def test_folder_that_is_not_there_is_named(tmp_path, monkeypatch):
    """A missing folder in the variable is an error."""
    monkeypatch.setenv("UNRENDER_FORMATS", f"{tmp_path}{os.pathsep}/no/where")

    with pytest.raises(FormatError, match="UNRENDER_FORMATS: expected folders, found '/no/where'"):
        declared_formats()


MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_TEXT = 128, 32, 1_000, 16_000
CHECKS = Path(__file__).parents[2] / "corpus" / "format_checks.jsonl"


def problem_of(data: dict[str, Any]) -> str | None:
    """Return the error of a format, or None if it is valid and survives a round trip."""
    try:
        made = Format.from_dict({"version": 2, **data})
    except FormatError as error:
        return str(error)
    assert Format.from_dict(made.to_dict()) == made
    return None


def test_a_format_has_the_problem_that_the_row_says() -> None:
    """A format that can't be parsed or written is an error with the field's path. Other formats are valid."""
    for row in rows_of(CHECKS):
        assert problem_of(row["format"]) == row.get("problem"), row


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"turn": {"end": "x" * MAX_MARKER}}, None),
        ({"turn": {"end": "x" * (MAX_MARKER + 1)}}, "format.turn.end: expected at most"),
        ({"turn": {"end": "\n" * MAX_LAYOUT + "<e>"}}, None),
        ({"turn": {"end": "\n" * (MAX_LAYOUT + 1) + "<e>"}}, "format.turn.end: .* whitespace at either end"),
        ({"turn": {"content_to_tools": " " * (MAX_LAYOUT + 1)}}, "format.turn.content_to_tools: .* whitespace, found"),
        ({"tools": {"why": "x" * (MAX_TEXT + 1)}}, f"format.tools.why: expected at most {MAX_TEXT}"),
        (
            {"turn": {"headers": ["<h>"] * (MAX_ITEMS + 1)}},
            f"format.turn.headers: expected at most {MAX_ITEMS} entries",
        ),
        ({"spellings": [{"marker": "<t>", "others": ["x"] * 20_000}]}, r"format.spellings\[0\].others: "),
        ({"preserved_tokens": [f"<t{i}>" for i in range(100_000)]}, "format.preserved_tokens: "),
        ({"ignored": [f"{i}" * 300 for i in range(100, 120)]}, f"format: .* {MAX_TEXT} characters"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_texts_and_lists_are_bounded(data: dict[str, Any], problem: str | None) -> None:
    """Limits apply to a marker, its whitespace, a list, and all texts together."""
    if problem is None:
        assert problem_of(data) is None
        return
    with pytest.raises(FormatError, match=problem):
        Format.from_dict({"version": 2, **data})


def test_no_way_leads_to_a_format_that_breaks_an_invariant() -> None:
    """A format is checked however it is created: directly, by `replace`, or from JSON."""
    long = TurnTexts(end="x" * (MAX_MARKER + 1))

    with pytest.raises(FormatError, match="format.turn.end"):
        Format(turn=long)
    with pytest.raises(FormatError, match="format.turn.end"):
        replace(FAMILIES[0].format, turn=long)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"version":' * 50_000 + "1" + "}" * 50_000,
        '{"version": ' + "1" * 5_000 + "}",
        '{"version": 2, "tools": {"index_start": ' + "1" * 5_000 + "}}",
        '{"version": [[[[1]]]]}',
        '{"version": 2, "spellings": [{"marker": "x"}]}',
        '{"version": 2, "content": {"mode": {"a": []}}}',
    ],
    ids=["deep list", "deep object", "long version", "long number", "list", "missing field", "object for a word"],
)
def test_json_that_is_no_format_is_a_format_error(text: str) -> None:
    """Deep, long or incomplete JSON raises only `FormatError`."""
    with pytest.raises(FormatError):
        Format.from_json(text)


@pytest.mark.slow
def test_data_of_any_depth_is_a_format_error() -> None:
    """The error message shows very deep data without traversing all of it."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for data in ({"version": deep}, {"version": 2, "turn": deep}, {"version": 2, "tools": {"index_start": 10**5_000}}):
        with pytest.raises(FormatError):
            Format.from_dict(data)


def test_an_end_of_sequence_token_that_is_no_marker_is_left_out() -> None:
    """A tokenizer's end-of-sequence token that is too long for a Format is ignored."""
    format = FAMILIES[0].format

    assert format._ended_by("x" * 40_000) == format
    assert format._ended_by("<eos>").turn.ends == ("<eos>",)


@pytest.mark.slow
def test_the_largest_format_is_read_in_bounded_time() -> None:
    """A parser of the largest allowed format works in bounded time."""
    ignored = [f"<{i}" + "x" * (MAX_MARKER - 10) + ">" for i in range(MAX_TEXT // MAX_MARKER)]
    format = Format.from_json(json.dumps({"version": 2, "ignored": ignored}))
    parser = Parser(format, REQUEST)

    fed(parser, [ignored[3] + "Hi" + ignored[7]])

    assert parser.message.content == "Hi"
