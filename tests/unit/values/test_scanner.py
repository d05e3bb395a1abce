"""Scanners: the fast path, limits, and ends. `tests/corpus/values.jsonl` has the values that they read."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from properties.families import RAW_BY_SCHEMA, RAW_LINES, RAW_OPTIONS
from splitting import splits
from tables import table

from unrender import Parser
from unrender.answer.build import calls_in, calls_in_syntax
from unrender.answer.follow import open_ends
from unrender.format import Arguments, CallSyntax, Format, Slot
from unrender.limits import MAX_PARSED_DEPTH
from unrender.types import Request, Tool
from unrender.values import Status
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import JSON_STRING, Finder, Flow
from unrender.values.raw import RawScanner, TagStyle, read_tree
from unrender.values.scanner import LiteralScanner, LiteralStyle
from unrender.values.unmarked_ends import Follow

END = Finder(("</v>", "\n</v>"))

LENIENT = LiteralStyle()
STRICT = LiteralStyle(strict=True)
BARE = LiteralStyle(quote_open='<|"|>', quote_close='<|"|>', bare_keys=True)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def scanned(text: str, style: LiteralStyle = LENIENT) -> tuple[str, str, Status]:
    """Scan `text` for every chunking. Return the JSON text, the rest, and the status, which must all agree."""
    outcomes = [_scan(chunks, style) for chunks in splits(text)]
    assert len(set(outcomes)) == 1, outcomes
    return outcomes[0]


def _scan(chunks: list[str], style: LiteralStyle) -> tuple[str, str, Status]:
    scanner, buffer, result, status = LiteralScanner(style), "", "", Status.MORE
    for i, chunk in enumerate([*chunks, ""]):
        buffer += chunk
        if status is Status.MORE:
            end, piece, status = scanner.copy().scan(buffer, 0, final=i == len(chunks))
            scanner.scan(buffer, 0, final=i == len(chunks))
            buffer, result = buffer[end:], result + piece
    return result, buffer, status


@pytest.mark.slow
@given(value=JSON_VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_json_comes_out_as_it_went_in(value: object, ascii_only: bool, indent: int | None) -> None:
    """The output of json.dumps inside a list is kept, character for character."""
    text = json.dumps([value], ensure_ascii=ascii_only, indent=indent)

    for style in (LENIENT, STRICT):
        assert scanned(text + "</x>", style) == (text, "</x>", Status.DONE)


def test_objects_in_deep_lists_are_read_alike() -> None:
    """Near the depth limit, the result is the same character by character."""
    scanner = LiteralScanner(LENIENT)

    assert (
        scanner.scan("[" * 510 + '{"a" : [1, "b"] ,"c":2}', 0, final=False)[1] == "[" * 510 + '{"a" : [1, "b"] ,"c":2}'
    )


@pytest.mark.parametrize(("depth", "status"), [(MAX_PARSED_DEPTH, Status.MORE), (MAX_PARSED_DEPTH + 1, Status.FAILED)])
@pytest.mark.parametrize("style", [LENIENT, STRICT, BARE])
def test_nesting_is_bounded(depth: int, status: Status, style: LiteralStyle) -> None:
    """The limit is the same for every chunking and in every notation."""
    text = "[" * depth
    whole, single, given = LiteralScanner(style), LiteralScanner(style), ""
    for character in text:
        _, piece, found = single.scan(character, 0, final=False)
        given += piece

    assert whole.scan(text, 0, final=False) == (min(depth, 512), "[" * min(depth, 512), status)
    assert (given, found) == ("[" * min(depth, 512), status)


@cases
def test_well_formed_text_goes_straight_through(begun: str, text: str, taken: list[object] | None) -> None:
    """`take` accepts the same text as `scan`, or none."""
    scanner = LiteralScanner(LENIENT)
    scanner.scan(begun, 0, final=False)
    other = scanner.copy()
    if not text:
        assert scanner.flow is not None
        return

    assert scanner.take(text) == (taken and tuple(taken))
    if taken is not None:
        end, json_text, _ = other.scan(text, 0, final=False)
        assert [json_text, end] == taken
        assert [getattr(scanner, name) for name in ("state", "stack", "comma")] == [
            getattr(other, name) for name in ("state", "stack", "comma")
        ]


@cases
def test_what_goes_straight_through(begun: str, style: dict[str, Any], flows: bool) -> None:
    """The fast path takes text in brackets or JSON strings, but not near the depth limit."""
    scanner = LiteralScanner(LiteralStyle(**style))
    scanner.scan(begun, 0, final=False)

    assert (scanner.flow is scanner) is flows


def test_raw_text_goes_straight_through() -> None:
    """Inside a string, text is taken up to a possible end or a character that JSON escapes."""
    begun, held, listed = (RawScanner(END, frozenset(types)) for types in (("string",), ("integer",), ("array",)))
    assert begun.flow is None
    begun.scan("a", 0, final=False)
    held.scan("1", 0, final=False)
    listed.scan("[", 0, final=False)
    assert (held.flow, listed.flow) == (None, None)
    flow = begun.flow
    assert flow is not None

    assert [flow.take(text) for text in ("b c", 'b"', "b<", "b</v>", "b\n")] == [("b c", 3), None, ("b", 1), None, None]


def test_what_follows_a_value_is_not_punctuation_alone() -> None:
    """Without a closing marker, a list that may be something else is held back until its end."""
    follow = open_ends(calls_in(RAW_LINES.format)[0])

    assert RawScanner(follow, frozenset(("array", "null"))).scan("[1] x", 0, final=False) == (5, "", Status.MORE)


@cases
def test_a_value_collects_the_keys_of_its_outermost_object(text: str, key: str) -> None:
    """The keys are the same for the whole text, in chunks, and on the fast path."""
    for size in (1, 2, 3, 7, len(text)):
        scanner = LiteralScanner(LiteralStyle(loose_keys=True))
        left = ""
        for start in range(0, len(text), size):
            left += text[start : start + size]
            taken = scanner.flow and scanner.flow.take(left)
            used = taken[1] if taken else scanner.scan(left, 0, final=False)[0]
            left = left[used:]

        assert (left, scanner.duplicate) == ("", key), size


@pytest.mark.parametrize(("depth", "read"), [(64, 64), (65, 64), (100, 64)])
def test_nesting_of_tags_is_bounded(depth: int, read: int) -> None:
    """Tags beyond the limit are text."""
    value = json.loads(
        read_tree(
            "<a>" * depth + "1" + "</a>" * depth, TagStyle("<", "</", ">", "item"), ArgumentTypes(Tool(name="f")), None
        )
    )
    levels = 0
    while isinstance(value, dict):
        value, levels = value["a"], levels + 1

    assert (levels, value) == (read, 1 if depth == read else "<a>" * (depth - read) + "1" + "</a>" * (depth - read))


@pytest.mark.parametrize(
    ("text", "value"), [("'it''s'\n", "it's"), ("''''\n", "'"), ("''\n", ""), ("'a''''b'\n", "a''b")]
)
def test_quote_that_is_escaped_by_another_is_no_end(text: str, value: str) -> None:
    """A quote at the end of a chunk may be half of an escaped quote, as in YAML and SQL."""
    style = LiteralStyle(quote_open="'", quote_close="'", marks=Finder(("'", "''")), escapes=(("'", "''"),))

    assert scanned(text, style) == (json.dumps(value), "\n", Status.DONE)


FLOW = Flow(["</think>", "<a>"], '"', last="\n\n")


@cases
def test_how_much_goes_through(text: str, taken: list[object] | None) -> None:
    """Text with a literal or one of the characters isn't taken. Ends of turn matter only at the end of a chunk."""
    assert FLOW.take(text) == (taken and tuple(taken))
    assert pickle.loads(pickle.dumps(FLOW)).take(text) == FLOW.take(text)


@cases
def test_a_flow_takes_what_no_literal_can_change(
    literals: list[str], characters: str, last: str, text: str, taken: list[object] | None
) -> None:
    """Text up to a possible literal is taken. After twelve matching characters, the machine's instructions decide."""
    assert Flow(literals, characters, last).take(text) == (taken and tuple(taken))


def test_nothing_ends_text_without_literals() -> None:
    """All text is taken."""
    assert (Flow().take("x"), Flow([""]).take("x")) == (("x", 1), ("x", 1))


@cases
def test_text_inside_a_json_string(text: str, taken: list[object] | None) -> None:
    """Text is taken up to a quotation mark, a backslash or a control character."""
    assert JSON_STRING.take(text) == (taken and tuple(taken))


CALLS = Format.from_dict(table("test_unmarked_ends")["CALLS"]).tools
SPACED = replace(CALLS, arguments=replace(CALLS.arguments, entry=(Slot.KEY, " ", Slot.VALUE)))
TYPES = {"city": "string", "days": "integer", "tags": "array", "exact": "boolean"}
REQUEST = Request(
    tools=(
        Tool(name="f", parameters={"properties": {name: {"type": kind} for name, kind in TYPES.items()}}),
        Tool(name="g"),
    )
)


def follow_of(syntax: CallSyntax, ends: tuple[str, ...] = (), **names: tuple[str, ...]) -> Follow:
    return replace(open_ends(calls_in_syntax(Format(), syntax), ends), **names)


def parser() -> Parser:
    return Parser(Format(tools=CALLS), REQUEST)


def test_a_value_streams() -> None:
    """Text leaves as soon as it can't be the start of an end."""
    reading = parser()
    reading.feed("[f(city=Rome, Italy and so")

    assert reading.message.tool_calls[0].arguments_json == '{"city": "Rome, Italy and so'


@pytest.mark.slow
def test_the_search_for_ends_is_linear() -> None:
    """Text with many possible ends is read in linear time."""

    def seconds(size: int) -> float:
        text = "[f(city=" + ", a " * size
        best = 1e9
        for _ in range(5):
            reading, start = parser(), time.process_time()
            for at in range(0, len(text), 4):
                reading.feed(text[at : at + 4])
            best = min(best, time.process_time() - start)
        return best

    # Four times the text: linear work takes four times as long, quadratic work sixteen times.
    assert seconds(8_000) < 10 * seconds(2_000)


def test_an_end_can_be_pickled() -> None:
    """A program with an end can be sent to another process."""
    follow = pickle.loads(pickle.dumps(follow_of(CALLS)))

    assert follow.find("Rome)]", 0) == (4, ")]")


def test_markers_of_any_length_are_searched_for() -> None:
    """Even a marker of maximum length ends a value."""
    closer = "\n" + "]" * 900
    arguments = Arguments(entry=("\n", Slot.KEY, "=", Slot.VALUE), codec=RAW_BY_SCHEMA)
    function = ("[do:", Slot.NAME, "]", Slot.ARGUMENTS, closer)
    follow = follow_of(CallSyntax(function=function, arguments=arguments))

    assert follow.decided(f"Rome{closer}", 0) == (4, closer)
    assert follow.decided(f"Rome{closer[:-1]}", 0) == (4, "")
    assert follow.decided(f"Rome{closer[:-1]}.", 0)[0] > 4


LINES = RAW_LINES.format.tools
OPTIONS = RAW_OPTIONS.format.tools
CLOSED = replace(CALLS, function=(*CALLS.function, ";"))
SYNTAXES = {"calls": CALLS, "spaced": SPACED, "lines": LINES, "options": OPTIONS, "closed": CLOSED}


def follow_said(syntax: str, ends: list[str], names: list[str] | None = None) -> Follow:
    """Return the ends in a row: a syntax, the text that may follow its calls, and the names of arguments."""
    return follow_of(SYNTAXES[syntax], tuple(ends), **({} if names is None else {"names": tuple(names)}))


@cases
def test_where_a_value_ends(syntax: Any, text: str, decided: list[Any], at_the_end: list[Any]) -> None:
    """The end is found from any place in the buffer, before more text and at the end of the output."""
    follow = follow_said(*syntax)
    assert [list(follow.decided(text, 0)), list(follow.find(text, 0))] == [decided, at_the_end]
    at, mark = follow.decided("~~" + text, 2)
    assert [at - 2, mark] == decided


def test_what_is_before_the_value_does_not_end_it() -> None:
    """Text before a value doesn't end it, even if it looks like an end."""
    assert follow_of(LINES).decided("\nb", 1) == (2, "")
    assert follow_of(LINES).decided("\nb", 0) == (0, "")


@cases
def test_whether_another_argument_follows(syntax: Any, text: str, first: bool, final: bool, found: Any) -> None:
    """The result is None while it depends on later text."""
    assert follow_said(*syntax).goes_on("~" + text, 1, first=first, final=final) is found


def test_what_is_known_of_a_syntax() -> None:
    """A syntax may or may not have closing markers, and may or may not be code."""
    assert [(f.closed, f.in_code) for f in (follow_of(CALLS), follow_of(OPTIONS))] == [
        (True, True),
        (False, False),
    ]


def test_names_are_remembered() -> None:
    """The same names give the same object. Without names, or with too many, any name counts."""
    follow = follow_of(LINES)
    made = follow.among(("a", "b"))

    assert made.names == ("a", "b")
    assert follow.among(("a", "b")) is made
    assert follow.among(()) is follow
    assert follow.among(tuple(f"n{i}" for i in range(256))).names[255] == "n255"
    assert follow.among(tuple(f"n{i}" for i in range(257))) is follow
    assert follow_of(CALLS).among(("a",)).names == ("a",)


def test_names_of_many_tools_are_forgotten() -> None:
    """Names of many tools don't fill the memory."""
    follow = follow_of(LINES)
    sizes = []
    for i in range(300):
        follow.among((f"n{i}",))
        sizes.append(len(follow._named))

    assert max(sizes) == 256


@pytest.mark.parametrize(("size", "found"), [(64, True), (65, False)])
def test_names_and_gaps_are_bounded(size: int, found: bool) -> None:
    """Names and gaps beyond the limit start no argument."""
    for text in (f"Rome, {'x' * size}=3", f"Rome,{' ' * size}days=3"):
        assert bool(follow_of(CALLS).decided(text, 0)[1]) is found
