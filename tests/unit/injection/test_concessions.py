"""Rewriting conversations that a template refuses."""

from __future__ import annotations

from unrender.format import Format
from unrender.injection.history import CONCESSIONS

IDS, ORPHANS, THOUGHTS, SILENCE, WORDS = (concession.rewrite for concession in CONCESSIONS)
USER = {"role": "user", "content": "Hi"}


def called(*ids):
    calls = [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(id, content="done"):
    return {"role": "tool", "tool_call_id": id, "content": content}


def test_ids_are_mapped_alike_for_calls_and_results():
    """Every call gets an id of its own, in the order of the conversation, and results follow the latest call of their id."""
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
    """Calls without ids get some, and so do their results, in their order."""
    written = IDS([called(None, ""), {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}], Format())

    assert [message.get("tool_call_id") for message in written] == [None, "call00000", "call00001"]


def test_results_of_no_call_are_the_users_words():
    """A result that answers no call before it is said by the user, together with what the user says next to it."""
    written = ORPHANS([USER, result("a", "out"), called("b"), result("b"), USER], Format())

    assert [message["role"] for message in written] == ["user", "assistant", "tool", "user"]
    assert written[0]["content"] == 'Hi\n<tool_response name="">\nout\n</tool_response>'


def test_answers_that_say_nothing_are_left_out():
    """An empty answer goes, and the user's words around it are one message; reasoning, calls and content stay."""
    thought = {"role": "assistant", "content": "", "reasoning_content": "Hm."}

    assert SILENCE([USER, {"role": "assistant", "content": None}, USER], Format()) == [{**USER, "content": "Hi\nHi"}]
    assert SILENCE([USER, thought, called("a")], Format()) == [USER, thought, called("a")]
    assert THOUGHTS([thought], Format()) == [{"role": "assistant", "content": ""}]


def test_calls_and_results_become_text():
    """Without a syntax of its own, a template gets calls in the declared one."""
    written = WORDS([USER, called("a"), result("a"), USER], Format())

    assert [message["role"] for message in written] == ["user", "assistant", "user"]
    assert written[1]["content"].strip().startswith("<tool_call>")
    assert "tool_calls" not in written[1]


def test_what_needs_no_concession_stays():
    """A conversation of questions and answers is the same after every step."""
    plain = [USER, {"role": "assistant", "content": "Hello"}, USER]

    assert all(concession.rewrite(plain, Format()) == plain for concession in CONCESSIONS)
