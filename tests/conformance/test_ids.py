"""Templates' requirements for ids are detected. Generated ids, our own ids and ids in the history meet them."""

from __future__ import annotations

import re

from cases import cases

from unrender import ChatTemplate

TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]
QUESTION = [{"role": "user", "content": "What time is it?"}]
WITH_ID = "<call>{{ c.function.name }}<id>{{ c.id }}<args>{{ c.function.arguments | tojson }}</call>"
WITHOUT = "<call>{{ c.function.name }}<args>{{ c.function.arguments | tojson }}</call>"


def template(call: str, *, calls: str = "false", results: str = "false", complaint: str) -> ChatTemplate:
    """Return a template that raises the message if `calls` holds for a call `c`, or `results` for a result `m`."""
    return ChatTemplate.from_string(
        "{% for m in messages %}{% if m.role == 'tool' and RESULTS %}{{ raise_exception('COMPLAINT') }}{% endif %}"
        "<{{ m.role }}>{{ m.tool_call_id }}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "{% if CALLS %}{{ raise_exception('COMPLAINT') }}{% endif %}CALL{% endfor %}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}".replace("RESULTS", results)
        .replace("CALLS", calls)
        .replace("COMPLAINT", complaint)
        .replace("CALL", call)
    )


@cases
def test_ids_are_as_a_template_demands(why, call, texts, form):
    """The call is parsed, generated ids meet the requirement, and an id of another system is converted."""
    chat = template({"WITH_ID": WITH_ID, "WITHOUT": WITHOUT}[call], **texts)
    turn = chat.prepare(QUESTION, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    message = turn.parse(turn.sample(seed=1))

    assert [found.name for found in message.tool_calls] == ["now"]
    # Only ids in the history are restricted to digits. A model isn't restricted when it writes one.
    assert re.fullmatch(form.replace("[0-9]", "[0-9a-zA-Z]"), message.tool_calls[0].id)
    for own in (message.tool_calls[0].id, "call_of-another_system"):
        said = {"role": "assistant", "tool_calls": [message.tool_calls[0].to_openai() | {"id": own}]}
        prompt = chat.prepare([*QUESTION, said, {"role": "tool", "tool_call_id": own, "content": ":noon"}]).prompt
        (result,) = re.findall("<tool>(.*?):noon", prompt)
        written = re.findall("<id>(.*?)<", prompt.rpartition("<assistant><call>")[2])
        assert re.fullmatch(form, result)
        assert set(written) <= {result}


def test_an_id_that_is_taken_stays():
    """An id that the template accepts isn't changed."""
    chat = template(WITH_ID, calls="c.id | length != 12", complaint="ids must have 12 characters")
    function = {"name": "now", "arguments": "{}"}
    said = {"role": "assistant", "tool_calls": [{"id": "abcdefghijk0", "type": "function", "function": function}]}

    assert "<id>abcdefghijk0<" in chat.prepare([*QUESTION, said]).prompt


def test_other_complaints_are_not_about_ids():
    """If a template rejects calls for another reason, analysis finds no requirement for ids."""
    chat = template(WITH_ID, calls="true", complaint="no valid call, try at most 12")

    assert not chat.capabilities.requires_short_id
    assert not chat.capabilities.supports_tool_calls
