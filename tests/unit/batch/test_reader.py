"""Tests of the reader with every kind of row."""

from __future__ import annotations

import json
import pickle
from unittest.mock import patch

import pytest
from byte_tokenizer import byte_level
from unit.batch.conftest import BROKEN, CALL, CUT, PLAIN, TEMPLATE, TOOLS

from unrender import ChatTemplate, RequestError
from unrender.batch import Reader
from unrender.format import Format

TEXTS = [CALL, PLAIN, CUT, BROKEN, None]
STATUSES = ["complete", "complete", "truncated", "malformed", "unreadable"]


def test_reads_columns(reader):
    """Parsed messages are added as columns, and existing columns are kept."""
    read = reader({"text": TEXTS, "id": [1, 2, 3, 4, 5]})

    assert read["id"] == [1, 2, 3, 4, 5]
    assert read["status"] == STATUSES
    assert read["reasoning"] == ["rain?", "", "", "", ""]
    assert read["content"][:2] == ["One moment.", "It rains."]
    assert json.loads(read["tool_calls"][0])[0]["function"] == {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    assert read["tool_calls"][1:] == ["[]"] * 4


def test_agrees_with_a_turn(template, reader):
    """The columns contain the same messages as `Turn.parse` returns."""
    turn = template.prepare([{"role": "user", "content": "Hello"}], tools=TOOLS)
    read = reader({"text": TEXTS[:4]})

    for at, text in enumerate(TEXTS[:4]):
        message = turn.parse(text)
        assert (message.content, message.reasoning) == (read["content"][at], read["reasoning"][at])


def test_says_what_is_wrong(reader):
    """Warnings contain the position, the expected text, and incomplete calls."""
    warnings = [json.loads(found) for found in reader({"text": TEXTS})["warnings"]]

    assert warnings[0] == warnings[1] == []
    assert warnings[2][-1] == "the call of 'get_weather' is truncated"
    assert warnings[3][0] == "character 34: expected a JSON value, found 'o'"
    assert warnings[4] == ["text: expected the answer's text, found nothing"]


SPECIAL = """{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for call in m.tool_calls or [] %}<call>
{{- {"name": call.function.name, "arguments": call.function.arguments} | tojson }}</call>{% endfor %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


def test_token_ids_tell_quoted_markers_from_calls():
    """A marker in ordinary tokens is text, with and without the row's text. Padding after the answer isn't a part of it."""
    call = '<call>{"name": "get_weather", "arguments": {"city": "Rome"}}</call>'
    quoted = f"{call}\n"
    tokenizer = byte_level(special=("<call>", "</call>", "<|end|>", "<pad>"))
    tokens = [*byte_level(special=()).encode(quoted).ids, *tokenizer.encode(f"{call}<|end|>").ids]
    reader = pickle.loads(pickle.dumps(Reader(ChatTemplate.from_string(SPECIAL), tools=TOOLS, tokenizer=tokenizer)))
    text = f"{quoted}{call}<|end|>"

    for batch in (
        {"text": [text], "token_ids": [tokens]},
        {"token_ids": [[*tokens, tokenizer.token_to_id("<pad>")]]},
    ):
        read = reader(batch)
        assert read["content"] == [quoted]
        assert len(json.loads(read["tool_calls"][0])) == 1
    assert len(json.loads(reader({"text": [text]})["tool_calls"][0])) == 2


@pytest.mark.parametrize(
    ("row", "warning"),
    [
        ({"token_ids": [1]}, "a row without text needs a tokenizer"),
        ({"text": PLAIN, "token_ids": "1"}, "expected a list of integers, found '1'"),
    ],
)
def test_unreadable_token_ids(reader, row, warning):
    """A row without text needs a tokenizer, and ids are integers."""
    reading = reader.read(row)

    assert reading.status == "unreadable"
    assert warning in reading.warnings[0]


def ids(calls: str) -> list[str]:
    """Return the ids of calls in JSON."""
    return [call["id"] for call in json.loads(calls)]


def test_ids_are_the_same_in_every_run(template):
    """Ids depend only on the answer's text and the call's position."""
    one = CALL + CALL
    found = [
        ids(calls) for _ in range(2) for calls in Reader(template, tools=TOOLS)({"text": [one, CALL]})["tool_calls"]
    ]

    assert found[:2] == found[2:]
    assert len({id for row in found for id in row}) == len(found[0]) + len(found[1])


def test_reads_other_columns(template):
    """Columns can have other names, and additional columns can have a prefix."""
    reader = Reader(template, tools=TOOLS, text="generated_text", prefix="read_")

    assert (
        reader({"generated_text": [PLAIN], "content": ["mine"]}).items()
        >= {
            "content": ["mine"],
            "read_content": ["It rains."],
        }.items()
    )


def test_prompt_opens_reasoning(reader):
    """A row's prompt shows whether reasoning is open. Otherwise, its end marker is reported."""
    read = reader({"text": ["rain?</think>\nYes"] * 2, "prompt": ["<|user|>\nx<|end|>\n<|assistant|>\n<think>", None]})

    assert (read["reasoning"], read["content"]) == (["rain?"] * 2, ["Yes"] * 2)
    assert read["status"] == ["complete", "malformed"]


def test_messages_are_rendered(template):
    """A conversation is rendered with the template's variables. It can be a list or JSON."""
    reader = Reader(template, tools=TOOLS, prefill="", thinking=True)
    asked = [{"role": "user", "content": "Rain?", "tool_calls": None}]
    read = reader({"text": ["rain?</think>\nYes"] * 3, "messages": [asked, json.dumps(asked), None]})

    assert read["reasoning"] == ["rain?"] * 3
    assert read["status"] == ["complete", "complete", "malformed"]


def test_variables_decide_what_is_begun(template):
    """Without a prompt, the template's prefill is used."""
    read = [Reader(template, thinking=thinking)({"text": ["rain?</think>Yes"]}) for thinking in (True, False)]

    assert [batch["reasoning"] for batch in read] == [["rain?"], ["rain?"]]
    assert [batch["status"] for batch in read] == [["complete"], ["malformed"]]


def test_last_message_is_the_answer(reader):
    """Without a text, the content of the last message is parsed."""
    messages = [{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": CALL}]
    read = reader({"messages": [messages, messages[:1]]})

    assert json.loads(read["tool_calls"][0])[0]["function"]["name"] == "get_weather"
    assert read["status"] == ["complete", "unreadable"]


def test_calls_of_a_conversation_share_no_id(template):
    """Ids of the conversation aren't reused."""
    reader = Reader(template, tools=TOOLS)
    (id,) = ids(reader({"text": [CALL]})["tool_calls"][0])
    call = {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
    messages = [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "no"},
    ]

    assert ids(reader({"text": [CALL], "messages": [messages]})["tool_calls"][0]) != [id]


def test_tools_of_a_row_win(reader):
    """A row's own tools are used. If they're malformed, only that row is unreadable."""
    others = [{"type": "function", "function": {"name": "other"}}]
    read = reader({"text": [CALL] * 5, "tools": [others, json.dumps(others), None, "{", [{"name": 3}]]})

    assert [json.loads(calls) != [] for calls in read["tool_calls"]] == [False, False, True, False, False]
    assert read["status"][3:] == ["unreadable"] * 2
    assert json.loads(read["warnings"][3])[0].startswith("tools: expected JSON")
    assert json.loads(read["warnings"][4])[0].startswith("tools[0]")


def test_unknown_tools_may_have_any_name(template):
    """Without tools, any name is a tool. With an empty list, no name is."""
    assert [Reader(template, tools=tools)({"text": [CALL]})["tool_calls"][0] != "[]" for tools in (None, [])] == [
        True,
        False,
    ]


def test_engine_says_that_an_answer_was_cut_off(reader):
    """An answer that reached the maximum length is truncated."""
    read = reader({"text": ["It rai", "It rains."], "finish_reason": ["length", "stop"]})

    assert read["status"] == ["truncated", "complete"]


@pytest.mark.parametrize("value", [3, 1.5, b"bytes", ["a"], {"a": 1}, True, float("nan")])
def test_no_value_raises(reader, value):
    """An unexpected value never raises, and doesn't affect other rows."""
    columns = ("text", "prompt", "messages", "tools")
    for name in columns:
        read = reader({"text": [PLAIN] * 2, name: [None if name != "text" else PLAIN, value]})
        assert read["content"][0] == "It rains."
        assert read["status"][1] in ("complete", "unreadable")


def test_a_defect_is_told(reader):
    """A bug in unrender affects only one row, which reports the bug."""
    with patch("unrender.batch.Parser.finish", side_effect=KeyError("x")):
        row = reader({"text": [PLAIN]})

    assert (row["status"], "defect of unrender" in row["warnings"][0]) == (["unreadable"], True)


def test_warnings_are_bounded(reader):
    """A hostile answer causes a limited number of short warnings."""
    (found,) = reader({"text": ['<call name="get_weather">' * 500 + "x" * 5000]})["warnings"]
    warnings = json.loads(found)

    assert 0 < len(warnings) <= 20
    assert max(map(len, warnings)) < 400


def test_format_alone_renders_nothing(template):
    """A format parses rows with texts and prompts, but not rows with messages."""
    reader = Reader(template.format, tools=TOOLS)
    read = reader({"text": [CALL, CALL], "messages": [None, [{"role": "user", "content": "Rain?"}]]})

    assert read["status"] == ["complete", "unreadable"]
    assert isinstance(reader.format, Format)


def test_pickle_needs_no_analysis(reader):
    """A pickled reader includes the format, so workers don't analyse."""
    sent = pickle.dumps(reader)

    with patch("unrender.analysis.derivation.analyze", side_effect=AssertionError("analysed")):
        assert pickle.loads(sent)({"text": [CALL]})["reasoning"] == ["rain?"]


def test_reads_numpy_like_arrays(reader):
    """Columns of arrays are converted with `tolist`."""

    class Array:
        def __len__(self):
            return 1

        def tolist(self):
            return [PLAIN]

    assert reader({"text": Array()})["content"] == ["It rains."]


@pytest.mark.parametrize("batch", ["text", 3, [{"text": "a"}]])
def test_refuses_what_is_no_batch(reader, batch):
    """A batch that isn't a mapping is an error."""
    with pytest.raises(RequestError, match=r'batch: expected a mapping, found .*; use \{"text": '):
        reader(batch)


def test_half_characters_can_be_stored(reader):
    """Lone surrogates are replaced, so that Arrow can store every column."""
    read = reader({"text": [r'<call name="get_weather">{"city": "\ud83d"}</call>', "\ud83d"]})

    assert "".join(read["tool_calls"] + read["content"]).encode()
    assert read["content"][1] == "\ufffd"


def test_a_batch_without_known_columns_is_an_error(reader):
    """A batch without answers names the columns that it has."""
    with pytest.raises(RequestError, match=r"batch: expected a column 'text' or 'messages', found \['id'\]"):
        reader({"id": [1, 2]})


def test_takes_a_path(tmp_path):
    """The source can be the path of a template."""
    path = tmp_path / "chat_template.jinja"
    path.write_text(TEMPLATE, encoding="utf-8")

    assert Reader(path)({"text": [PLAIN]})["content"] == ["It rains."]
    assert isinstance(ChatTemplate.from_file(path), ChatTemplate)


def test_arrow_stores_the_columns(reader):
    """Every column has the type string."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table(reader(pa.table({"text": TEXTS, "content": [1, 2, 3, 4, 5]}).to_pydict()))

    assert table.schema.names == ["text", "content", "reasoning", "tool_calls", "status", "warnings"]
    assert table.column("status").to_pylist() == STATUSES
    assert set(map(str, table.schema.types)) == {"string"}
