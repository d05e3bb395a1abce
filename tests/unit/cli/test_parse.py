"""`unrender parse`: output in, message or events out."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from unrender.cli.parse import chunks

ANSWER = '<think>rain?</think>\nOne moment.\n<call name="get_weather">{"city": "Paris"}</call><|end|>\n'


def test_prints_the_message(run):
    """Without options, the message is printed in OpenAI's form."""
    result = run("parse", "chat_template.jinja", "--tools", "tools.json", text=ANSWER)

    message = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (message["reasoning_content"], message["content"]) == ("rain?", "One moment.")
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Paris"}'}


def test_streams_a_line_per_event(run):
    """With --stream, each event is a line that begins with its kind."""
    result = run("parse", "chat_template.jinja", "--tools", "tools.json", "--stream", text=ANSWER)

    kinds = [line.split()[0] for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [kind for i, kind in enumerate(kinds) if kinds[i - 1] != kind or i == 0] == [
        "reasoning",
        "content",
        "call",
        "arguments",
        "call",
        "finished",
    ]


def test_streams_json_for_programs(run):
    """With --stream --json, each line is an event as JSON, and the fragments add up to the arguments."""
    result = run("parse", "chat_template.jinja", "--tools", "tools.json", "--stream", "--json", text=ANSWER)

    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert "".join(event["text"] for event in events if event["event"] == "ArgumentsText") == '{"city": "Paris"}'
    assert events[-1] == {"event": "MessageFinished"}


def test_says_what_was_cut_off(run):
    """A call that was cut off is named on standard error, and the exit code is 1."""
    result = run("parse", "chat_template.jinja", "--tools", "tools.json", text=ANSWER[:-30])

    assert result.exit_code == 1
    assert "get_weather" in result.stderr
    assert "truncated" in result.stderr
    assert "tool_calls" not in json.loads(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("nowhere.jinja",), "nowhere.jinja"),
        (("chat_template.jinja", "--tools", "chat_template.jinja"), "chat_template.jinja"),
        (("chat_template.jinja", "--tools", "nowhere.json"), "nowhere.json"),
        (("chat_template.jinja", "--set", "enable_thinking"), "NAME=VALUE"),
    ],
)
def test_names_an_input_that_cannot_be_used(run, arguments, named):
    """A missing or malformed input ends with exit code 2 and its name."""
    result = run("parse", *arguments, text="")

    assert result.exit_code == 2
    assert named in result.stderr


def test_chunks_keep_characters_whole():
    """A character whose bytes arrive in two reads comes out whole."""

    class Slow(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(1)

    assert "".join(chunks(Slow("a é 中 🙂".encode()))) == "a é 中 🙂"


def test_tool_choice_binds_the_message(run):
    """With --tool-choice none, a call is content."""
    result = run("parse", "chat_template.jinja", "--tools", "tools.json", "--tool-choice", "none", text=ANSWER)

    assert "tool_calls" not in json.loads(result.stdout)


def test_response_format_finds_the_json(run):
    """With --response-format, a JSON answer in a code fence is the content without its fence."""
    result = run("parse", "chat_template.jinja", "--response-format", "json_object", text='```json\n{"a": 1}\n```')

    assert json.loads(json.loads(result.stdout)["content"]) == {"a": 1}


def test_template_is_chosen_by_name(run):
    """Of several templates, the one that is named reads the output; an unknown name is a mistake that lists them."""
    source = Path("chat_template.jinja").read_text(encoding="utf-8")
    templates = [
        {"name": "default", "template": source.replace("think>", "thought>")},
        {"name": "other", "template": source},
    ]
    Path("model").mkdir()
    Path("model/tokenizer_config.json").write_text(json.dumps({"chat_template": templates}), encoding="utf-8")

    named = run("parse", "model", "--template-name", "other", text=ANSWER)
    unknown = run("parse", "model", "--template-name", "rag", text=ANSWER)

    assert json.loads(named.stdout)["reasoning_content"] == "rain?"
    assert unknown.exit_code == 2
    assert "expected one of the templates ['default', 'other'], found 'rag'" in unknown.stderr


def test_settings_are_variables_of_the_template(run):
    """What has an option of its own is not set as a variable."""
    result = run("parse", "chat_template.jinja", "--set", "messages=[]", text=ANSWER)

    assert result.exit_code == 2
    assert "expected NAME=VALUE, found 'messages=[]'" in result.stderr
