"""Calls: their ids, leftovers, repair, and the policy."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from cases import cases
from properties import families
from properties.families import COUNTED, ID_FIRST
from splitting import fed
from turn_rows import SOURCES

from unrender import (
    ChatTemplate,
    ContentText,
    Parser,
    Policy,
    RequestError,
    ToolCallStarted,
    machine,
)
from unrender.answer.build import answer_of, calls_of
from unrender.answer.views import CallView
from unrender.format import Format
from unrender.machine import BrokenText
from unrender.machine.calls.mending import mend
from unrender.parser.message import Cleaner
from unrender.testing import numbered_id
from unrender.types import Request, Tool

NOW = Tool(name="now")
REQUEST = Request(tools=(NOW,))
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
FORMAT = Format.named("tool-call-json")
TEMPLATE = ChatTemplate.from_string(SOURCES["calls"])
QUESTION = {"role": "user", "content": "When?"}
OFFERED = {"type": "function", "function": {"name": "now"}}
ANSWER = '<call>{"name": "now", "arguments": {}}</call>'


def ids(parser: Parser, *chunks: str) -> list[str]:
    fed(parser, chunks)
    return [call.id for call in parser.message.tool_calls]


def test_two_requests_share_no_id() -> None:
    """Ids are nine random letters and digits, even for the same prompt."""
    found = [id for _ in range(20) for id in ids(Parser(FORMAT, REQUEST, prompt="same"), CALL * 5)]
    assert len(set(found)) == 100
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in found)


def test_parsing_the_same_text_twice_gives_different_ids() -> None:
    """Two samples of one request share no id."""
    turn = TEMPLATE.prepare([QUESTION], tools=[OFFERED])
    first, second = (turn.parse(ANSWER).tool_calls[0].id for _ in range(2))
    assert first != second


def test_ids_can_be_injected_and_do_not_depend_on_chunks() -> None:
    """The same function gives the same ids for every chunking, by position and name."""
    turn = TEMPLATE.prepare([QUESTION], tools=[OFFERED])
    whole = [call.id for call in turn.parse(ANSWER * 2, ids=numbered_id).tool_calls]
    assert whole == ids(turn.parser(ids=numbered_id), *ANSWER * 2) == ["call00000", "call00001"]
    by_name = TEMPLATE.prepare_rendered(tools=[OFFERED]).parser(ids=lambda position, name: f"{name}/{position}")
    assert ids(by_name, ANSWER) == ["now/0"]


def test_copies_share_no_id_of_later_calls() -> None:
    """Calls before the copy keep their ids, and later ones have different ids."""
    parser = Parser(FORMAT, REQUEST)
    parser.feed(CALL)
    copy = parser.copy()
    first, second = ids(parser, CALL), ids(copy, CALL)
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_a_counter_that_was_written_before_is_counted_on() -> None:
    """An id that is already taken is replaced by the next count."""
    call = "<|call_begin|>functions.now:0<|args_begin|>{}<|call_end|>"
    first, later = (
        Parser(COUNTED.format, families.REQUEST, known_ids=known)
        for known in ((), ("functions.now:0", "functions.go:1"))
    )
    assert ids(first, f"<|calls_begin|>{call * 3}<|calls_end|>") == [
        "functions.now:0",
        "functions.now:1",
        "functions.now:2",
    ]
    assert ids(later, f"<|calls_begin|>{call}<|calls_end|>") == ["functions.now:2"]


@pytest.mark.parametrize("made", ["same", ""])
def test_a_maker_that_repeats_itself_still_gives_unique_ids(made: str) -> None:
    """If the function returns the same id again, or an empty one, random ids replace it."""
    found = ids(Parser(FORMAT, REQUEST, ids=lambda _position, _name: made), CALL * 3)
    assert found[0] == made or not made
    assert len({*found} - {""}) == 3


def test_a_maker_is_asked_a_hundred_times() -> None:
    """The function is called for at most a hundred positions, each once."""
    asked: list[int] = []

    def same(position: int, _name: str) -> str:
        asked.append(position)
        return "same"

    ids(Parser(FORMAT, REQUEST, ids=same, known_ids=["x", "same"]), CALL)
    assert asked == [*range(2, 102)]


def test_made_ids_are_recorded_in_order() -> None:
    """An id that the model didn't write, or that is taken, is generated. Others are kept."""
    output = ID_FIRST.outputs[0]
    [first, *others] = ids(Parser(ID_FIRST.format, families.REQUEST), output)
    parser = Parser(ID_FIRST.format, families.REQUEST, ids=numbered_id, known_ids=[first])

    assert ids(parser, output) == ["call00001", *others]
    assert parser.state()["ids"] == ["call00001"]


def test_parsers_with_counted_ids_pickle() -> None:
    """A parser with counted ids can be pickled."""
    parser = pickle.loads(pickle.dumps(Parser(COUNTED.format, families.REQUEST)))
    assert len(ids(parser, *COUNTED.outputs[0])) == 2


STARTED = ToolCallStarted(0, "id", "f")


def events(text: str) -> list[Any]:
    found: list[Any] = eval(text, dict(vars(machine)))
    return found


@cases
def test_broken_text_waits_for_a_call(why: str, takes: list[tuple[str, str]], rest: str) -> None:
    """Each pair is the events that are taken and those that are released. The rest is released at the end."""
    cleaner = Cleaner()

    assert [cleaner.take(events(taken)) for taken, _ in takes] == [events(released) for _, released in takes]
    assert cleaner.finish() == events(rest)


def test_a_copy_is_independent() -> None:
    """Events of a copy don't change the original."""
    cleaner = Cleaner()
    cleaner.take([BrokenText("f{}")])
    cleaner.copy().take([STARTED])

    assert cleaner.finish() == [ContentText("f{}")]


@cases
def test_prose_that_mentions_a_marker_stays_and_streams(name: str, call: str, prose: str) -> None:
    """A marker in prose, before or after a call, removes no other text and holds back only itself."""
    parser = Parser(Format.named(name), REQUEST)
    fed(parser, [prose, call, prose])
    streaming = Parser(Format.named(name), REQUEST)
    for character in prose * 20:
        streaming.feed(character)

    assert parser.message.content == prose + prose
    assert len(parser.message.tool_calls) == 1
    assert len(streaming.message.content) > len(prose * 20) - 20


def test_an_unclosed_brace_holds_back_no_more_than_a_call_might_take() -> None:
    """Broken text is limited, so a brace that is never closed is content."""
    text = "functions.now:0{" + "not closed, " * 200
    parser = Parser(Format.named("kimi-simple"), REQUEST)
    for character in text:
        parser.feed(character)

    assert parser.message.content == text


SOURCE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for call in m.tool_calls or [] %}{% set f = call.function %}"
    "<call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>\n"
    "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</call>{% endfor %}</>{% endfor %}<assistant>"
)
TOOL = {"name": "plan", "parameters": {"properties": {"title": {"type": "string"}, "hour": {"type": "string"}}}}


class Counted(str):  # noqa: SLOT000 -- one text
    """A text that counts the characters read by slicing or counting."""

    looked = 0

    def __getitem__(self, key) -> str:
        found = super().__getitem__(key)
        self.looked += len(found)
        return found

    def count(self, *asked: Any) -> int:
        self.looked += len(self) - asked[1]
        return super().count(*asked)


@pytest.mark.parametrize("place", ["\n<parameter=hour>\n</parameter>\n-", "</function> "])
def test_long_value_costs_its_length(place):
    """A value with many copies of its call's markers is read in one pass: twice the value costs twice as much."""
    turn = ChatTemplate.from_string(SOURCE).prepare_rendered(tools=[TOOL])
    view = CallView(calls_of(turn.format, turn.request)[0], answer_of(turn.format, turn.request))
    looked = []
    for times in (200, 400):
        text = Counted(
            f"<call>\n<function=plan>\n<parameter=title>\n{place * times}</parameter></parameter></function>"
        )
        mend(view, text, 0, turn.request)
        looked.append(text.looked)

    assert looked[1] < 2.2 * looked[0]


def test_a_policy_takes_plain_words() -> None:
    """Type checkers accept the words: mypy checks this file."""
    assert Policy(unknown_tools="call", tool_calls="streamed", undeclared_reasoning="content") != Policy()


@pytest.mark.parametrize("name", ["unknown_tools", "tool_calls", "undeclared_reasoning"])
def test_a_word_that_a_field_does_not_have_is_an_error(name: str) -> None:
    """The error names the field and its allowed words."""
    for given in ("sometimes", 5, None, []):
        with pytest.raises(RequestError, match=f"{name}: expected '.* or '"):
            Policy(**{name: given})
