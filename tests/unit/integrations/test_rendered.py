"""Prompts rendered by an engine: the turn is derived from the end of the prompt, in ids and in text."""

from __future__ import annotations

import pytest
from cases import cases
from letters import NOW as TOOL
from letters import SOURCE, USER, Letters

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.integrations.rendered import (
    ReasoningGate,
    ReasoningTokens,
    closing_tag,
    constraint_of,
    engine_template,
    open_parser,
    rendered_turn,
    said,
    tail_text,
)

TEMPLATE = ChatTemplate.from_string(SOURCE, eos_token="</s>")
PROMPT = TEMPLATE.prepare(USER, tools=[TOOL]).prompt


def test_the_end_of_a_prompt_tells_what_is_begun():
    """A turn made from the end of a prompt equals the one from `prepare`."""
    turn = rendered_turn(TEMPLATE, PROMPT[-40:], tools=[TOOL])
    thinking = rendered_turn(TEMPLATE, PROMPT + "<think>\n")

    assert (turn.prefill, turn.stop) == ("", ("<|end|>", "</s>"))
    assert turn.request.tools == TEMPLATE.prepare(USER, tools=[TOOL]).request.tools
    assert thinking.parse("Hm.\n</think>\n\nYes").reasoning == "Hm."
    with pytest.raises(RequestError, match="tool_choice"):
        rendered_turn(TEMPLATE, PROMPT, tools=[TOOL], tool_choice="any")


def test_only_the_end_of_a_prompt_is_decoded():
    """Decoding a long prompt costs no more than decoding a short one."""
    letters = Letters()

    assert tail_text(letters, [*map(ord, "x" * 100_000 + "end")], 3) == "end"
    assert letters.decoded == 3
    assert tail_text(letters, []) == ""


@cases
def test_what_a_continued_answer_had_is_not_said_again(prefill, more, expected):
    """Only new text is returned, wherever the answer stopped."""
    turn = rendered_turn(TEMPLATE, PROMPT + prefill, continued=True)
    parser = open_parser(turn, continued=True)
    found = said([*parser.feed(more), *parser.finish()])

    assert turn.prefill == prefill
    assert [found.reasoning, found.content] == expected


def test_events_become_one_delta():
    """Reasoning, content and calls in pieces are separated."""
    parser = rendered_turn(TEMPLATE, PROMPT, tools=[TOOL]).parser()
    found = said(
        parser.feed('<think>\nHm.\n</think>\n\nOk.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>')
    )

    assert (found.reasoning, found.content) == ("Hm.", "Ok.")
    assert [call["function"].get("name") for call in found.calls] == ["now", None]
    assert "".join(call["function"]["arguments"] for call in found.calls) == "{}"


def test_reasoning_tokens_count_once_each():
    """The count grows with the answer, and no token is read twice."""
    letters, answer = Letters(), "<think>\nHm.\n</think>\n\nYes"
    ids = [*map(ord, answer)]
    counter = ReasoningTokens(rendered_turn(TEMPLATE, PROMPT), letters)
    counts = [counter.count(ids[:at]) for at in range(len(ids) + 1)]

    assert counts == sorted(counts)
    assert counts[-1] == len("Hm.")
    assert counter.continues(ids)
    assert not counter.continues([0, *ids])
    assert letters.decoded < 20 * len(ids)


@cases
def test_the_gate_opens_where_reasoning_ends(prefill, answer, length):
    """The gate opens after reasoning, or as soon as the text can't start reasoning. It stays closed until then."""
    gate, before = ReasoningGate(TEMPLATE, Letters()), [*map(ord, PROMPT + prefill)]
    opens = [at for at in range(1, len(answer) + 1) if gate.over([*before, *map(ord, answer[:at])], 1)]

    assert not gate.over_in_prompt(before)
    assert opens[:1] == ([] if length is None else [length])
    assert gate.over_in_prompt([*before, *map(ord, "<think>\n\n</think>\n\n")]) or prefill


def test_a_format_without_reasoning_has_no_gate():
    """Without reasoning, there is nothing to wait for."""
    gate = ReasoningGate(ChatTemplate.from_string("{{ messages[-1].content }}"), Letters())

    assert gate.over_in_prompt([104])
    assert gate.over([104, 105], 1)


def test_what_is_due_is_held_and_what_cannot_be_is_named():
    """A required call has a tag. A part of the prefill that the tag can't include is reported as a loss."""
    held = constraint_of(rendered_turn(TEMPLATE, PROMPT, tools=[TOOL], tool_choice="required"))
    odd = rendered_turn(
        TEMPLATE, PROMPT + "<think>\nwords that nobody wrote\n</think>and more", tools=[TOOL], continued=True
    )

    assert held.tag is not None
    assert held.losses == ()
    assert closing_tag(rendered_turn(TEMPLATE, PROMPT, tools=[TOOL]))["format"]["type"] == "or"
    found = constraint_of(odd)
    assert found.tag is not None or found.losses
    unknown = constraint_of(
        rendered_turn(
            TEMPLATE, PROMPT + "<think>\n</think></think>", tools=[TOOL], tool_choice="required", continued=True
        )
    )
    assert unknown.tag is not None
    assert unknown.losses


def test_the_template_is_the_tokenizers_or_a_files(tmp_path, monkeypatch):
    """A file named in the environment takes precedence. Without any template, the error says what to set."""
    assert engine_template(Letters()).format == TEMPLATE.format
    bare = Letters(None)
    with pytest.raises(TemplateError, match="Letters without one.*UNRENDER_CHAT_TEMPLATE"):
        engine_template(bare)
    (tmp_path / "own.jinja").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setenv("UNRENDER_CHAT_TEMPLATE", str(tmp_path / "own.jinja"))
    assert engine_template(bare).format == TEMPLATE.format


def test_plug_ins_read_calls_of_other_formats_where_the_environment_says_so(monkeypatch):
    """`UNRENDER_REPAIR` is a word of the policy. An unknown word is an error at the server's start."""
    text = 'Sure.\n<function_calls>\n<invoke name="now">\n</invoke>\n</function_calls>'
    names = []
    for word in ("format", "offered"):
        monkeypatch.setenv("UNRENDER_REPAIR", word)
        parser = open_parser(rendered_turn(TEMPLATE, PROMPT, tools=[TOOL]))
        parser.feed(text)
        parser.finish()
        names.append([call.name for call in parser.message.tool_calls])
    assert names == [[], ["now"]]
    monkeypatch.setenv("UNRENDER_REPAIR", "all")
    with pytest.raises(ValueError, match="UNRENDER_REPAIR: expected 'format' or 'offered' or 'none', found 'all'"):
        engine_template(Letters())
