"""Prose that mentions the start of a call. Grammars forbid text that continues as a call. Parsers read it as a call, or report it."""

from __future__ import annotations

import pytest
from cases import case_rows, cases
from engines import gbnf_reader, installed, lark_reader, tag_reader
from lexing import remainder_of
from tables import table

from unrender import Malformed, Parser, Turn
from unrender.format import Format
from unrender.types import Request, Tool

REQUEST = Request(tools=(Tool(name="get_weather"), Tool(name="search")))
FORMATS = {name: Format.from_dict(data) for name, data in table("test_mentions")["FORMATS"].items()}
PROSE = ("Calls begin so: {}", "`{}` begins a call, they say.")


def turn_of(name: str, request: Request = REQUEST) -> Turn:
    return Turn(prompt="", format=FORMATS[name], request=request)


def read(format: Format, text: str) -> tuple[str, list[Malformed]]:
    parser = Parser(format, REQUEST)
    events = [*parser.feed(text), *parser.finish()]
    return parser.message.content, [event for event in events if isinstance(event, Malformed)]


@cases
def test_prose_mentions_what_is_no_call(name: str, mention: str) -> None:
    """A mention is allowed, parsed as content without a report, and doesn't trigger a lazy grammar."""
    format, texts = FORMATS[name], [prose.format(mention) for prose in PROSE]
    (trigger,) = turn_of(name).constraint("llama.cpp").triggers

    assert remainder_of(turn_of(name)).refused(texts) == []
    assert [read(format, text) for text in texts] == [(text, []) for text in texts]
    assert trigger.kind != "word" or not any(trigger.value in text for text in texts)


@cases
def test_what_begins_a_call_is_no_prose(name: str, begun: str) -> None:
    """The start of a call is refused if no call follows."""
    texts = [prose.format(begun) for prose in PROSE]

    assert remainder_of(turn_of(name)).refused(texts) == texts


def test_a_broken_call_is_reported() -> None:
    """A marker that starts calls by itself is reported without a call after it. Other markers are reported only with a tool's name."""
    assert read(FORMATS["token"], "so <tool_call> it is")[1]
    assert read(FORMATS["token"], "so <function=get_weather it is")[1]
    assert read(FORMATS["tag"], "so <function=sunny> it is")[1]


def test_names_are_cut_to_a_bounded_length() -> None:
    """With many tools, names are cut to bound the states of free text. In bare JSON, any name then counts as a call."""
    many = Request(tools=tuple(Tool(name=f"{letter}_tool") for letter in "abcdefghijklmnopqrst"))

    assert remainder_of(turn_of("bare", many)).refused(['So {"name": "Anna"}', 'So {"name": 7}']) == [
        'So {"name": "Anna"}'
    ]
    assert remainder_of(turn_of("token", many)).refused(["<function=zzz", "<function=abc"]) == ["<function=abc"]


@pytest.mark.engine
@pytest.mark.skipif(not (installed("llguidance") and installed("xgrammar")), reason="the engines are not installed")
@pytest.mark.parametrize("name", FORMATS)
def test_the_engines_agree(name: str, request: pytest.FixtureRequest) -> None:
    """Each dialect allows the mentions and refuses the beginnings of calls."""
    turn = turn_of(name)
    rows = [row for row in case_rows(request.path.with_name("cases.jsonl")) if row.get("name") == name]
    free, forced = (
        [prose.format(row[kind]) for row in rows if kind in row for prose in PROSE] for kind in ("mention", "begun")
    )

    for accepts in (
        lark_reader(turn.constraint("llguidance").grammar),
        gbnf_reader(turn.constraint("llama.cpp").grammar),
        tag_reader(turn.constraint("xgrammar").grammar),
    ):
        assert ([text for text in free if not accepts(text)], list(filter(accepts, forced))) == ([], [])
