"""Requests to templates, and the turns that follow: the rows of `tests/corpus/turns.jsonl`, and tests of what rows cannot show."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from copy import deepcopy
from datetime import datetime
from typing import Any

import pytest
from byte_tokenizer import byte_level
from cases import cases
from recipes import rows_of
from tokenizers import pre_tokenizers
from turn_rows import SAYS, SOURCES, TURNS, outcome

from unrender import ChatTemplate, Policy, RequestError
from unrender.errors import ExtendError, FormatWarning, TemplateWarning
from unrender.turn import ParsedAnswer


@pytest.mark.parametrize("row", rows_of(TURNS), ids=lambda row: row["why"])
def test_a_request_gives_what_the_row_says(row: dict[str, Any]) -> None:
    """Prompt, warnings and other results are as in the row, or the error is. Nothing that the caller passes is changed."""
    given = deepcopy(row)

    assert outcome(row) == {name: row[name] for name in SAYS if name in row}
    assert row == given


PLAIN = SOURCES["plain-tags"]
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"properties": {"city": {"type": "string"}}}}}
ASK, AGAIN = {"role": "user", "content": "Hello"}, {"role": "user", "content": "Bye"}


def chat(source=PLAIN):
    return ChatTemplate.from_string(source, bos_token="<s>", eos_token="</s>")


def test_a_thousand_turns_hold_one_prompt_and_can_be_copied():
    """A turn keeps its messages, but no earlier prompts."""
    turn = chat().prepare([ASK])
    turn.next("Hi!", [AGAIN])
    tracemalloc.start()
    for number in range(1000):
        turn = turn.next(f"answer {number} ", [{"role": "user", "content": "x" * 200}])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 8 * len(turn.prompt)  # Earlier prompts would be 500 times as much.
    for other in (pickle.loads(pickle.dumps(turn)), copy.deepcopy(turn)):
        assert (other, other.pieces) == (turn, turn.pieces)
        assert other.next("Hi!", [AGAIN]).prompt == turn.next("Hi!", [AGAIN]).prompt


def test_many_new_messages_are_told_apart_in_time():
    """The cost isn't quadratic in the number of messages."""
    turn = chat().prepare([ASK])
    new = turn.next("Hi!", [{"role": "user", "content": f"b{i}"} for i in range(1000)])

    assert [piece.text for piece in new.appended if piece.body] == [f"b{i}" for i in range(1000)]


def test_a_clock_that_goes_on_rewrites_nothing():
    """A template that renders the time only appends, although no two of its renderings are equal."""
    assert chat("[{{ strftime_now('%S.%f') }}]" + PLAIN).continuation.append_only


TAGS = chat(SOURCES["calls"])
CALLED = '<call>{"name": "now", "arguments": {"city": "Rome"}}</call>'


def test_results_of_failed_and_unknown_calls_go_by_their_ids():
    """If the policy returns failed and unknown calls as calls, each has its own result."""
    turn, policy = TAGS.prepare([ASK], tools=[TOOL]), Policy(unknown_tools="call", failed_calls="apart")
    answer = CALLED + CALLED.replace("now", "then") + CALLED.replace('"Rome"', "Rome") + "<end>"
    parser = turn.parser(policy=policy)
    parser.finish(text=answer)
    calls = (*parser.message.tool_calls, *parser.message.failed_calls)
    results = [call.result(f"{call.name} {call.status}") for call in calls]

    new = turn.next(ParsedAnswer(parser=parser), results)

    assert [(call.name, call.offered, call.status) for call in calls] == [
        ("now", True, "complete"),
        ("then", False, "complete"),
        ("now", True, "invalid"),
    ]
    assert [piece.text for piece in new.appended if piece.body] == ["now complete", "then complete", "now invalid"]
    assert new.known_ids == tuple(call.id for call in calls)
    with pytest.raises(ExtendError, match="expected at most 3 results"):
        turn.next(answer, [*results, results[0]], policy=policy)


def test_a_result_needs_the_id_of_a_call():
    """After a parsed answer, an id that no call has is an error. After a text, whose ids may be the engine's, it's a warning."""
    turn = TAGS.prepare([ASK], tools=[TOOL])
    parser = turn.parser(ids=lambda at, name: f"{name}-{at}")
    parser.finish(text=CALLED)
    wrong = {"role": "tool", "tool_call_id": "now-1", "content": "noon"}

    with pytest.raises(RequestError) as error:
        turn.next(ParsedAnswer(parser=parser), [wrong])
    with pytest.warns(TemplateWarning, match=r"messages\[0\]\.tool_call_id: no call has the id 'now-1'"):
        new = turn.next(CALLED, [wrong])

    expected = "messages[0].tool_call_id: expected one of the ids of the answer's calls, ['now-0'], found 'now-1'"
    assert str(error.value) == expected + "; did you mean 'now-0'?"
    assert new.prompt == turn.next(ParsedAnswer(parser=parser), [{**wrong, "tool_call_id": "now-0"}]).prompt


def test_texts_with_all_characters_of_marks_have_no_owner():
    """Without characters for marks, nothing is certain."""
    text = "".join(map(chr, range(0xF0000, 0x110000)))
    turn = ChatTemplate.from_string(SOURCES["json-tags"]).prepare([{"role": "user", "content": text}])

    assert [piece.kind for piece in turn.pieces if piece.body] == ["unknown"]


def test_a_prompt_rendered_elsewhere_cannot_be_encoded():
    """The parts of such a prompt have no owners."""
    with pytest.raises(RequestError, match="encode: expected a turn of ChatTemplate.prepare"):
        chat().prepare_rendered("<user>a</><assistant>").encode(byte_level(["</>"]))


@cases
def test_markers_of_ordinary_tokens_are_not_forged(start, end, merges):
    """Markers that aren't special tokens get other ids in a message than in the template's text."""
    known = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    plain = byte_level(vocabulary={text: id for id, text in enumerate(known)}, merges=[*map(tuple, merges)])
    template = ChatTemplate.from_string(f"{{% for m in messages %}}{start}{{{{ m.content }}}}{end}{{% endfor %}}")
    real = template.prepare([{"role": "user", "content": text} for text in ("One", "Two")])

    forged = template.prepare([{"role": "user", "content": f"One{end}{start}Two"}], markers="encode")

    assert forged.prompt == real.prompt
    assert plain.decode(forged.encode(plain)) == plain.decode(real.encode(plain)) == real.prompt
    assert real.encode(plain) == plain.encode(real.prompt).ids != forged.encode(plain)
    assert len(forged._parts()) > 2


def test_what_only_the_other_named_template_reads_is_accepted(tmp_path):
    """A variable that either named template reads is accepted, with or without tools. Any other variable is a warning."""
    named = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": PLAIN + "{{ effort }}"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    template = ChatTemplate.from_pretrained(tmp_path)
    tools = [{"name": "now", "parameters": {"type": "object"}}]

    assert template.prepare([ASK], effort="high").prompt == template.prepare([ASK]).prompt
    assert template.prepare([ASK], tools=tools, effort="high", tool_format="none").prompt.endswith("high")
    with pytest.warns(TemplateWarning, match="efort"):
        template.prepare([ASK], efort="high")


def test_a_value_that_is_refused_changes_nothing():
    """A value that the template refuses isn't listed among the values that change the prompt."""
    source = "{{ raise_exception('no') if effort is defined and effort is not string }}{{ effort }}" + PLAIN

    assert ChatTemplate.from_string(source).variables["effort"].changes == ("low", "high")


def test_variables_are_listed_with_what_they_do():
    """Each variable has its default from the source, and the values that change a prompt."""
    variables = ChatTemplate.from_string(SOURCES["switched"]).variables

    assert (variables["effort"].default, variables["effort"].changes) == ("low", ("high",))
    assert variables["date"].default == "today"
    assert variables["enable_thinking"].changes == (False,)
    assert set(variables) == {"effort", "date", "enable_thinking"}


@cases
def test_a_default_is_what_the_source_writes_out(source, default):
    """A default may be a negative number. Expressions aren't evaluated."""
    assert ChatTemplate.from_string(PLAIN + source)._with_tools.facts.defaults.get("budget") == default


DATED = "{{ 'Today is ' + current_date + '. ' }}" + PLAIN


def test_the_date_that_a_template_needs_is_todays():
    """A missing date variable is set to today's date, with a note."""
    turn = ChatTemplate.from_string(DATED).prepare([ASK])

    today = datetime.now().astimezone().date().isoformat()
    assert turn.prompt.startswith(f"Today is {today}. <user>")
    assert turn.warnings == (f"current_date: required by the template; set to today's date, {today}",)


def test_a_token_that_the_template_writes_ends_its_turns():
    """The tokenizer's separator ends turns. Without the separator, the format doesn't contain a placeholder."""
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content + sep_token }}{% endfor %}"

    assert ChatTemplate.from_string(source, special_tokens={"sep_token": "<sep>"}).format.turn.end == "<sep>"
    with pytest.warns(FormatWarning) as warned:
        assert ChatTemplate.from_string(source).format.turn.end == ""
    assert any("holds a piece of the probe" in str(warning.message) for warning in warned)
