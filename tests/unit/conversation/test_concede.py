"""Tests of rewriting conversations that a template refuses."""

from __future__ import annotations

import pytest
from message_rows import plain

from unrender import ChatTemplate
from unrender.conversation.concede import CONCESSIONS, MOVES
from unrender.conversation.messages import conversation_of
from unrender.errors import TemplateWarning
from unrender.format import Format


def rewriting(concession):
    """Return a function that rewrites messages in OpenAI's form with a concession."""
    return lambda messages, format: plain(concession.rewrite(conversation_of(messages), format))


IDS, _, THOUGHTS, SILENCE, WORDS = map(rewriting, CONCESSIONS)
TEXT, JOINED, DEVELOPER, LATER, ASKED, ORPHANS, SYSTEM = map(rewriting, MOVES)
USER = {"role": "user", "content": "Hi"}


def called(*ids):
    calls = [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(id, content="done"):
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_ids_are_mapped_alike_for_calls_and_results():
    """Every call gets a new id, in the order of the conversation. A result follows the latest call with its old id."""
    written = IDS([USER, called("x", "y"), result("y"), result("x"), called("x"), result("x"), result("z")], Format())

    ids = [[call["id"] for call in message.get("tool_calls", ())] for message in written]
    assert ids == [[], ["call00000", "call00001"], [], [], ["call00002"], [], []]
    assert [message.get("tool_call_id") for message in written[2:]] == [
        "call00001",
        "call00000",
        None,
        "call00002",
        "z",
    ]


def test_results_without_an_id_answer_the_calls_in_order():
    """Calls without ids get ids, and their results get the same ids in order."""
    written = IDS([called(None, ""), {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}], Format())

    assert [message.get("tool_call_id") for message in written] == [None, "call00000", "call00001"]


def test_results_of_no_call_are_the_users_words():
    """A result without a call becomes a user message, merged with the user messages next to it."""
    written = ORPHANS([USER, result("a", "out"), called("b"), result("b"), USER], Format())

    assert [message["role"] for message in written] == ["user", "assistant", "tool", "user"]
    assert written[0]["content"] == 'Hi\n<tool_response name="">\nout\n</tool_response>'


def said(role, content):
    return {"role": role, "content": content}


def test_messages_of_one_role_are_joined():
    """Messages of one role are merged with all their fields. Results stay separate, because each belongs to a call."""
    first = {**said("assistant", "a"), "reasoning_content": "Hm.", "name": "x"}
    second = {**called("y"), "content": "b", "reasoning_content": "So."}

    joined = JOINED([said("system", "s"), said("system", "t"), first, second, result("y"), result("z")], Format())

    assert joined[0] == said("system", "s\nt")
    assert joined[1] == {**first, **second, "content": "a\nb", "reasoning_content": "Hm.\nSo."}
    assert joined[2:] == [result("y"), result("z")]


def test_words_move_to_another_role():
    """Developer messages become system messages. System messages become part of the next user message, which keeps its images."""
    image = {"type": "image", "image": "x"}
    system, developer, answer = said("system", "s"), said("developer", "d"), said("assistant", "a")

    assert DEVELOPER([system, developer, USER], Format()) == [said("system", "s\nd"), USER]
    assert LATER([system, USER, answer, said("system", "t"), USER], Format()) == [
        *(system, USER, answer),
        said("user", "t\n\nHi"),
    ]
    assert LATER([system, answer, system, answer], Format()) == [system, said("assistant", "a\na"), said("user", "s")]
    assert LATER([system], Format()) == [system]
    assert SYSTEM([system, said("user", [image])], Format()) == [
        said("user", [{"type": "text", "text": "s"}, {"type": "text", "text": "\n\n"}, image])
    ]


def test_an_answer_is_asked_for():
    """An empty user message is added before the first answer and after the last one, if none is there."""
    answer, empty = said("assistant", "a"), said("user", "")

    assert ASKED([said("system", "s"), answer], Format()) == [said("system", "s"), empty, answer, empty]
    assert ASKED([], Format()) == [empty]
    assert ASKED([USER, answer, USER], Format()) == [USER, answer, USER]


def test_parts_become_text():
    """Text parts are joined into a string, unless the message has other parts."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    shown = said("user", [*parts, {"type": "image", "image": "x"}])

    assert TEXT([said("user", parts), shown, {"role": "user", "content": None}], Format()) == [
        said("user", "ab"),
        shown,
        {"role": "user", "content": None},
    ]


def test_answers_that_say_nothing_are_left_out():
    """Empty answers are removed, and the user messages around them are merged. Answers with reasoning or calls stay."""
    thought = {"role": "assistant", "content": "", "reasoning_content": "Hm."}

    assert SILENCE([USER, {"role": "assistant", "content": None}, USER], Format()) == [{**USER, "content": "Hi\nHi"}]
    assert SILENCE([USER, thought, called("a")], Format()) == [USER, thought, called("a")]
    assert THOUGHTS([thought], Format()) == [{"role": "assistant", "content": ""}]


def test_earlier_answers_get_the_closer_that_the_template_splits_at():
    """Earlier answers get the end marker that the template splits at, unless they contain it."""
    template = ChatTemplate.from_string(
        "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and thinking %}"
        "{{ '<think></think>' + m.content.split('</think>')[1] }}{% else %}{{ m.content }}{% endif %}<end>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% if thinking %}<think>{% endif %}{% endif %}"
    )
    answers = [{"role": "assistant", "content": text} for text in ("One", "so</think>Two")]
    with pytest.warns(TemplateWarning, match="begin with the end of reasoning"):
        prompt = template.prepare([USER, answers[0], USER, answers[1], USER], enable_thinking=True).prompt

    assert prompt.count("<think></think>") == 2
    assert "One<end>" in prompt
    assert "</think>Two<end>" in prompt
    assert "so" not in prompt


def test_calls_and_results_become_text():
    """Calls and results become text in a declared syntax if the template has no call syntax."""
    written = WORDS([USER, called("a"), result("a"), USER], Format())

    assert [message["role"] for message in written] == ["user", "assistant", "user"]
    assert written[1]["content"].strip().startswith("<tool_call>")
    assert "tool_calls" not in written[1]


def test_what_needs_no_concession_stays():
    """A conversation of questions and answers is unchanged by every concession."""
    said = [USER, {"role": "assistant", "content": "Hello"}, USER]

    assert all(rewriting(concession)(said, Format()) == said for concession in CONCESSIONS)
