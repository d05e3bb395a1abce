"""JoinedScanner: a list without brackets becomes JSON, its items typed by the schema."""

from __future__ import annotations

import json
import time

import pytest
from properties.invariants import check
from splitting import splits

from unrender.format import Arguments, CallSyntax, Codec, Containers, Format, Slot, Strings, ToolMode, Typing
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import Finder
from unrender.values.joined import JoinedScanner, is_list, read_items
from unrender.values.raw import RawScanner
from unrender.values.scanner import Status

END = Finder(("</v>", "\n</v>"))
ITEMS = {
    "strings": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": ["array", "null"], "items": {"type": "integer"}},
    "lists": {"type": "array", "items": {"type": "array"}},
    "any": {"type": "array"},
    "either": {"type": ["array", "string"]},
}
TYPES = ArgumentTypes(Tool(name="f", parameters={"type": "object", "properties": ITEMS}))


def scanned(key: str, text: str, separator: str = ",") -> object:
    """Scan `text` and its end marker at every chunking; returns the value, which must not differ."""
    results = {_scan(key, chunks, separator) for chunks in splits(text + "</v>")}
    assert len(results) == 1, results
    return json.loads(results.pop())


def _scan(key: str, chunks: list[str], separator: str) -> str:
    scanner: RawScanner = JoinedScanner(END, TYPES.types(key), separator)
    buffer, result, status = "", "", Status.MORE
    for chunk in chunks:
        buffer += chunk
        if status is Status.MORE:
            scanner = scanner.copy()
            end, piece, status = scanner.scan(buffer, 0, final=False)
            buffer, result = buffer[end:], result + piece
    assert status is Status.DONE
    return result


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("strings", "a,b", ["a", "b"]),
        ("strings", "a", ["a"]),
        ("strings", "", []),
        ("strings", ",a,", ["", "a", ""]),
        ("any", "a,[1,2],b,{},[c,d]", ["a", [1, 2], "b", {}, "[c", "d]"]),
        ("lists", "[1],a,[2,3]", [[1], "a", [2, 3]]),
        ("any", "[c,[1,2]", ["[c", "[1", "2]"]),
        ("strings", "7,true", ["7", "true"]),
        ("strings", '["a", "b,c"]', ["a", "b,c"]),
        ("strings", "[1, 2]", ["[1", " 2]"]),
        ("strings", '{"a": 1, "b"}', ['{"a": 1', ' "b"}']),
        ("numbers", "1,2", [1, 2]),
        ("numbers", "7", [7]),
        ("numbers", "null", None),
        ("lists", "[1,2],[3]", [[1, 2], [3]]),
        ("any", '{"a": 1, "b": [2, 3]},x,4', [{"a": 1, "b": [2, 3]}, "x", 4]),
        ("any", "[1, 2]", [1, 2]),
        ("any", "{a,[b,7", ["{a", "[b", 7]),
    ],
)
def test_items_are_typed_by_the_schema(key, text, expected):
    """A list is JSON where the schema admits that; else each item is what the schema wants of items."""
    assert scanned(key, text) == expected


@pytest.mark.parametrize("kinds", [("object",), ("array", "object"), ()])
def test_items_that_are_objects_hold_separators(kinds: tuple[str, ...]) -> None:
    """Inside their brackets."""
    assert json.loads(read_items('{"a": 1, "b": [2,3]},{}', ",", frozenset(kinds))) == [{"a": 1, "b": [2, 3]}, {}]


def test_layout_after_a_separator_is_no_part_of_an_item():
    """Only the space that the format writes is left out; a model may leave it out as well."""
    assert scanned("strings", "a, b,c,  d", ", ") == ["a", "b", "c", " d"]


def test_text_that_may_be_a_string_is_one():
    """Where the schema admits both, or says nothing, nothing shows that commas separate items."""
    assert [key for key in (*ITEMS, "unknown") if is_list(TYPES.types(key))] == ["strings", "numbers", "lists", "any"]


def test_brackets_that_are_not_closed_cost_little():
    """Reading items takes time in proportion to the text, whatever it holds."""

    def seconds(size: int) -> float:
        start = time.process_time()
        read_items("[1," * size, ",", frozenset())
        return time.process_time() - start

    seconds(100)
    assert seconds(8_000) < 12 * seconds(2_000) + 0.05


def test_lists_end_where_the_call_can_go_on():
    """Inside a call as in code, a list ends before the next argument's name, or where the call ends."""
    arguments = Arguments(
        start="(",
        end=")",
        entry=(Slot.KEY, "=", Slot.VALUE),
        separator=", ",
        codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA, containers=Containers.JOINED, item_separator=","),
    )
    syntax = CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        call_start="<|do|>",
        call_end="<|done|>",
        function=(Slot.NAME, Slot.ARGUMENTS),
        arguments=arguments,
    )
    request = Request(tools=(Tool(name="f", parameters={"type": "object", "properties": ITEMS}),))

    message = check(
        lambda: Parser(Format(tools=syntax), request), "<|do|>f(strings=a,(b),'c, any=, either=d,e)<|done|>"
    )

    [call] = message.tool_calls
    assert json.loads(call.arguments) == {"strings": ["a", "(b)", "'c"], "any": [], "either": "d,e"}


def test_items_that_are_no_lists_hold_no_separator() -> None:
    """Brackets are text then, wherever they come."""
    assert read_items("1,[2,3]", ",", frozenset(("integer",))) == '[1, "[2", "3]"]'
    assert read_items("[1,2],3", ",", frozenset(("array",))) == "[[1,2], 3]"
