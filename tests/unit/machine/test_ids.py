"""Call ids are unique in their conversation and between requests, injectable, and accepted by the template."""

from __future__ import annotations

import pickle
import re

from properties import families
from properties.families import ID_FIRST
from splitting import fed

from unrender import ChatTemplate, Parser
from unrender.format import Arguments, CallSyntax, Format, Slot
from unrender.testing import numbered_id
from unrender.types import Request, Tool

NOW = Tool(name="now")
REQUEST = Request(tools=(NOW,))
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
FORMAT = Format.named("tool-call-json")
COUNTED = Format(
    tools=CallSyntax(
        call_start="<call>",
        call_end="</call>",
        function=("functions.", Slot.NAME, ":", Slot.INDEX, "<args>", Slot.ARGUMENTS),
        arguments=Arguments(),
        id_parts=(0, 4),
    )
)
TEMPLATE = ChatTemplate.from_string(
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}<args>{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
QUESTION = {"role": "user", "content": "When?"}
OFFERED = {"type": "function", "function": {"name": "now"}}
ANSWER = "<call>now<args>{}</call>"


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
    text = "<call>functions.now:0<args>{}</call>"
    assert ids(Parser(COUNTED, REQUEST), text) == ["functions.now:0"]
    assert ids(Parser(COUNTED, REQUEST), text * 3) == ["functions.now:0", "functions.now:1", "functions.now:2"]
    later = Parser(COUNTED, REQUEST, known_ids=["functions.now:0", "functions.go:1"])
    assert ids(later, text) == ["functions.now:2"]


def test_a_maker_that_repeats_itself_still_gives_unique_ids() -> None:
    """If the function returns the same id again, random ids replace it."""
    found = ids(Parser(FORMAT, REQUEST, ids=lambda _position, _name: "same"), CALL * 3)
    assert found[0] == "same"
    assert len(set(found)) == 3


def test_no_id_is_empty() -> None:
    """If the function returns an empty id, a random id replaces it."""
    found = ids(Parser(FORMAT, REQUEST, ids=lambda _position, _name: ""), CALL * 3)
    assert len(set(found) - {""}) == 3


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
    parser = pickle.loads(pickle.dumps(Parser(COUNTED, REQUEST)))
    assert ids(parser, "<call>functions.now:0<args>{}</call>") == ["functions.now:0"]
