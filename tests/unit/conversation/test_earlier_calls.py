"""Tests of the arguments of earlier calls."""

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
    """Arguments that are nested too deeply to be rendered stay text."""
    assert object_of(text) is None
    assert values_of(text) == {"arguments": text.strip()}


def test_what_a_template_takes_is_as_it_was():
    """Arguments that the template supports are passed on unchanged, without a note: objects, or any text with `as_text`."""
    assert read({"a": 1}, as_text=False) == ({"a": 1},)
    assert read('{"a": 1}', as_text=False) == ('{"a": 1}',)
    assert read('{"a": ', as_text=True) == ('{"a": ',)
    assert read(None, as_text=False) == read("", as_text=True) == ("{}",)
    assert read([1], as_text=True) == ("[1]",)


def test_what_a_template_cannot_take_is_a_note_that_names_the_call():
    """A template that supports only objects gets the arguments that can be parsed, and a note names the call."""
    values, note = read('{"a": "x", "b', as_text=False)

    assert values == {"a": "x", "arguments": '"b'}
    assert note.startswith("messages[1].tool_calls[0].function.arguments: ")
    assert 'found \'{"a": ' in note


def test_the_conversation_is_not_changed():
    """The caller's messages aren't modified. Calls may lack the `function` object."""
    messages = conversation("")
    messages[1]["tool_calls"].append({"name": "g", "arguments": None})

    (_, said), _ = read_messages(messages, as_text=False)

    assert said.calls[1] == SaidCall(name="g", arguments="{}")
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == ""


def test_text_is_json():
    """Values that aren't text are written as JSON, without escaping non-ASCII characters."""
    assert arguments_text({"city": "Zürich"}) == '{"city": "Zürich"}'
