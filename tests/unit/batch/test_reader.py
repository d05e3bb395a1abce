"""Tests of the reader with every kind of row."""

from __future__ import annotations

import json
import pickle
from unittest.mock import patch

import pytest
from byte_tokenizer import byte_level
from cases import cases
from unit.batch.conftest import BROKEN, CALL, CUT, PLAIN, TEMPLATE, TOOLS

from unrender import ChatTemplate, RequestError
from unrender.batch import Reader
from unrender.format import Format

TEXTS = [CALL, PLAIN, CUT, BROKEN, None]
STATUSES = ["complete", "complete", "truncated", "malformed", "unreadable"]


@cases
def test_columns(template, why, settings, batch, expected, warnings):
    """A batch gets the columns of its row, with text that Arrow can store. `calls` are names and arguments, and warnings start as expected."""
    read = Reader(template, **{"tools": TOOLS} | settings)(batch)
    calls = [json.loads(calls) for calls in read.get("tool_calls", ())]
    read["calls"] = [[call["function"]["name"] + call["function"]["arguments"] for call in each] for each in calls]
    found = [json.loads(each) for each in read.get("warnings", ())]

    assert {name: read[name] for name in expected} == expected, why
    assert json.dumps([read["content"], read.get("tool_calls")], ensure_ascii=False).encode()
    for starts, each in zip(warnings or (), found, strict=bool(warnings)):
        assert list(map(str.startswith, each, starts)) == [True] * max(len(each), len(starts))


@cases
def test_refuses_what_is_no_batch(reader, batch, error):
    """A batch that isn't a mapping, or has no answers, is an error that names what was found."""
    with pytest.raises(RequestError, match=error):
        reader(batch)


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


def test_a_row_without_text_needs_a_tokenizer(reader):
    """Ids alone can't be read without the tokenizer, and the warning says so."""
    reading = reader.read({"token_ids": [1]})

    assert (reading.status, "a row without text needs a tokenizer" in reading.warnings[0]) == ("unreadable", True)


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
