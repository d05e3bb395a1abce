"""Arguments of earlier calls, as a model has written them."""

from __future__ import annotations

import pytest

from unrender.conversation.messages import SaidCall, arguments_text, object_of, read_messages, values_of


def conversation(arguments):
    call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]


def read(arguments, *, as_text):
    (_, said), notes = read_messages(conversation(arguments), as_text=as_text)
    return said.calls[0].arguments, *notes


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, '{"a": ' * 600 + "1" + "}" * 600])
def test_deep_nesting_stays_text(text):
    """Arguments nested more deeply than anything can be rendered stay text."""
    assert object_of(text) is None
    assert values_of(text) == {"arguments": text.strip()}


def test_what_a_template_takes_is_as_it_was():
    """Objects, and with `as_text` all text, go to the template unchanged, without a note."""
    assert read({"a": 1}, as_text=False) == ({"a": 1},)
    assert read('{"a": 1}', as_text=False) == ('{"a": 1}',)
    assert read('{"a": ', as_text=True) == ('{"a": ',)
    assert read(None, as_text=False) == read("", as_text=True) == ("{}",)
    assert read([1], as_text=True) == ("[1]",)


def test_what_a_template_cannot_take_is_a_note_that_names_the_call():
    """A template that writes objects alone gets values, and the caller is told of which call."""
    values, note = read('{"a": "x", "b', as_text=False)

    assert values == {"a": "x", "arguments": '"b'}
    assert note.startswith("messages[1].tool_calls[0].function.arguments: ")
    assert 'found \'{"a": ' in note


def test_the_conversation_is_not_changed():
    """The caller's messages stay as they are; calls may be flat."""
    messages = conversation("")
    messages[1]["tool_calls"].append({"name": "g", "arguments": None})

    (_, said), _ = read_messages(messages, as_text=False)

    assert said.calls[1] == SaidCall(name="g", arguments="{}")
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == ""


def test_text_is_json():
    """Values that are not text are written as JSON, with all characters as they are."""
    assert arguments_text({"city": "Zürich"}) == '{"city": "Zürich"}'
