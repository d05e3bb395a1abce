"""What a server lost of an answer, and the page that shows it."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from unit.batch.conftest import CALL, PLAIN

from unrender import Message, ToolCall
from unrender.batch import Audit, BatchError, Loss, audit_files
from unrender.batch.audit import audit_page, compared

FUNCTION = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
RIGHT = {"content": "One moment.", "reasoning_content": "rain?", "tool_calls": [{"function": FUNCTION}]}


ROWS = Path(__file__).with_name("recorded.jsonl").read_text(encoding="utf-8").splitlines()
"""What servers recorded of `CALL`, and what they lost: nothing, in whichever form they recorded it, or parts by name."""


@pytest.mark.parametrize("row", ROWS)
def test_losses_have_their_reasons(reader, row):
    """Each way to lose a part has its name; a message that says the same lost nothing."""
    recorded, losses = json.loads(row).values()
    found = compared(reader.read({"text": CALL}).message, recorded, reader.format)

    assert [finding.loss.name for finding in found] == losses


@pytest.mark.parametrize(
    ("meant", "recorded", "losses"),
    [
        ("5", '"5"', [Loss.ARGUMENT_TYPE]),
        ("1", "1.0", []),
        ("1", "true", [Loss.ARGUMENT_VALUE]),
        ("true", '"true"', [Loss.ARGUMENT_TYPE]),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', []),
    ],
)
def test_values_are_compared_as_json(reader, meant, recorded, losses):
    """Another spelling of the same value is none of a server's losses; another type is."""
    message = Message(tool_calls=(ToolCall(name="f", arguments=f'{{"x": {meant}}}', id="1"),))
    call = {"function": {"name": "f", "arguments": f'{{"x": {recorded}}}'}}
    found = compared(message, {"content": "", "tool_calls": [call]}, reader.format)

    assert [finding.loss for finding in found] == losses


def test_calls_of_one_name_are_taken_in_order(reader):
    """Of several calls of a tool, the missing one is the last."""
    calls = tuple(ToolCall(name="f", arguments=f'{{"x": {x}}}', id=str(x)) for x in range(3))
    recorded = {"tool_calls": [{"function": {"name": "f", "arguments": call.arguments}} for call in calls[:2]]}
    (finding,) = compared(Message(tool_calls=calls), recorded, reader.format)

    assert (finding.loss, finding.meant, finding.tool) == (Loss.CALL_DROPPED, 'f({"x": 2})', "f")


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Write answers with messages, right, wrong and none, and return the path."""
    monkeypatch.chdir(tmp_path)
    rows = [{"text": CALL, "message": RIGHT}, {"text": CALL, "message": {"content": CALL}}, {"text": PLAIN}, {"no": 1}]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 5), encoding="utf-8")
    return "a.jsonl"


def test_files_add_up(reader, answers):
    """Answers are counted by loss, calls by tool, and a few examples of each loss are kept with their place."""
    audit = audit_files(reader, [answers, answers])

    assert audit.data() == {
        "rows": 30,
        "same": 10,
        "losses": {Loss.MESSAGE: 10, Loss.CALL_IN_CONTENT: 10, Loss.REASONING_IN_CONTENT: 10},
        "calls": {"get_weather": 20},
        "wrong": {"get_weather": 10},
        "unreadable": {"text: expected the answer's text": 10},
    }
    places = [example.place for example in audit.examples[Loss.CALL_IN_CONTENT]]
    assert places == [f"a.jsonl, line {at}" for at in (2, 6, 10)]


def test_a_missing_file_is_named(reader):
    """A file that is not there ends the audit with its name."""
    with pytest.raises(BatchError, match="missing.jsonl"):
        audit_files(reader, ["missing.jsonl"])


class Page(HTMLParser):
    """Notes the tags and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data):
        self.words.append(data)


HOSTILE = "</pre></svg></title><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x00 'a\" &amp;"


def test_the_page_obeys_no_answer(reader):
    """Whatever is in records, files or names of tools, the page shows it as text, and is well-formed."""
    call = {"name": HOSTILE, "arguments": json.dumps({HOSTILE: 1})}
    text = f'<call name="{HOSTILE}">{{"a": 1}}</call>'
    audit = Audit()
    for recorded in ({"content": HOSTILE, "tool_calls": [{"function": call}]}, {"content": HOSTILE}, HOSTILE):
        for meant in (
            Message(content=HOSTILE, tool_calls=(ToolCall(name=HOSTILE, arguments="{}", id="1"),)),
            Message(),
        ):
            reading = reader.read({"text": text})
            audit.take(HOSTILE, reading, compared(meant, recorded, reader.format))
    audit.calls[HOSTILE] = 3
    audit.unreadable[HOSTILE] = 1
    written = audit_page(audit, HOSTILE)
    shown = Page(written)

    assert shown.tags & {"script", "img", "iframe", "link", "object"} == set()
    assert "\u202e" not in written
    assert "\x00" not in written
    assert any("<script>alert(1)</script>" in words for words in shown.words)
    for svg in written.split("<svg")[1:]:
        ET.fromstring("<svg" + svg.partition("</svg>")[0] + "</svg>")


def test_the_page_says_what_was_lost(reader, answers):
    """The page has the numbers, a bar for each loss and tool, and examples."""
    written = audit_page(audit_files(reader, [answers]), "What was lost")
    words = "\n".join(Page(written).words)

    assert "10 of 15 answers (66.7%)" in words
    assert "5 of 10" in words
    assert words.count("a call is left in the content as text") == 3
    assert "a.jsonl, line 2" in words


def test_an_audit_without_losses_has_a_page():
    """Without a single answer there is still a page."""
    assert "0 of 0 answers" in audit_page(Audit(), "Nothing")
