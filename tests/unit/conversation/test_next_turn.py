"""Tests of the turn after an answer: described tools, changed requests, images, notes, invalid arguments and long chains."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import warnings

import pytest
from cases import cases

from unrender import ChatTemplate, Policy, RequestError
from unrender.errors import ExtendError, TemplateWarning
from unrender.turn import ParsedAnswer

PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
LAST_SYSTEM = (
    "{% set ns = namespace(system='') %}{% if messages[0].role == 'system' %}{% set ns.system = messages[0].content ~ '\\n\\n' %}"
    "{% set messages = messages[1:] %}{% endif %}{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}"
    "[ASK]{% if loop.last or loop.nextitem is undefined %}{{ ns.system }}{% endif %}{{ m.content }}[/ASK]"
    "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
)
IMAGES = (
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"properties": {"city": {"type": "string"}}}}}
CALL = '<tool_call>\n{"name": "now", "arguments": {"city": "Oslo"}}\n</tool_call>'
ASK, AGAIN = {"role": "user", "content": "Hello"}, {"role": "user", "content": "Bye"}


def chat(source=PLAIN):
    return ChatTemplate.from_string(source, bos_token="<s>", eos_token="</s>")


def image(name):
    return {"type": "image_url", "image_url": {"url": f"http://example.org/{name}.png"}}


def test_described_tools_are_the_same_from_a_bare_prompt():
    """Calls are parsed in the described syntax, whether unrender or somebody else rendered the prompt."""
    template, result = chat(), {"role": "tool", "name": "now", "content": "noon"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemplateWarning)
        turn = template.prepare([ASK], tools=[TOOL])
        bare = template.prepare_rendered(turn.prompt, tools=[TOOL])
        whole = template.prepare([ASK, turn.parse(CALL), result, AGAIN], tools=[TOOL])

        assert bare.parse(CALL).tool_calls[0].name == "now"
        assert turn.next(CALL, [result, AGAIN]).prompt == whole.prompt
        assert bare.next(CALL, [result, AGAIN]).prompt == whole.prompt


@pytest.mark.parametrize("changed", [{"tool_choice": "none"}, {"parallel_tool_calls": False}, {"tools": []}])
def test_a_request_that_the_prompt_describes_cannot_change(changed):
    """The prompt describes the tools of one request, so a later request can't change them."""
    turn = chat().prepare([ASK], tools=[TOOL])

    with pytest.raises(ExtendError) as error:
        turn.next("Hi!", [AGAIN], **changed)
    assert error.value.reason == "tools"


@pytest.mark.parametrize(
    ("answer", "more", "found"),
    [
        (None, {}, "answer: expected text or a ParsedAnswer, found None"),
        (b"Hi!", {}, "answer: expected text or a ParsedAnswer, found b'Hi!'"),
        ("Hi!", {"thoughts": "some"}, "thoughts: expected 'all' or 'template' or 'tool_cycle', found 'some'"),
        ("Hi!", {"unfinished": None}, "unfinished: expected 'error' or 'text', found None"),
    ],
)
def test_an_argument_of_another_kind_is_a_clear_error(answer, more, found):
    """An argument of a wrong type is a `RequestError` that names the argument."""
    with pytest.raises(RequestError, match="^" + found.replace("(", "\\(") + "$"):
        chat().prepare([ASK]).next(answer, [AGAIN], **more)


def test_a_system_message_before_the_last_question_is_not_read_off_a_prompt():
    """Text of earlier turns before the last question isn't mistaken for the system message."""
    template, system = chat(LAST_SYSTEM), {"role": "system", "content": "Be brief."}
    said = [system, ASK, {"role": "assistant", "content": "Hi!"}, ASK]
    turn = template.prepare(said)
    right = template.prepare([*said, {"role": "assistant", "content": "Well"}, AGAIN]).prompt.rpartition("Well")[2]

    with pytest.warns(TemplateWarning, match="now in the prompt twice"):
        assert turn.next("Well", [AGAIN]).prompt == turn.prompt + "Well" + right
    with pytest.raises(ExtendError, match="repeats the system message"):
        template.prepare_rendered(turn.prompt).next("Well", [AGAIN])
    assert turn.next("Well", [AGAIN], restate=False).prompt == turn.prompt + "Well</s>[ASK]Bye[/ASK]"


def test_what_a_template_would_write_otherwise_is_noted_once():
    """A note names the first message that the template would render differently. Later turns don't repeat the note."""
    turn = chat(LAST_SYSTEM).prepare([{"role": "system", "content": "Be brief."}, ASK])

    with pytest.warns(TemplateWarning):
        turn = turn.next("Hi!", [AGAIN])
    assert [note.partition(":")[0] for note in turn.warnings] == ["messages[0]"]
    assert turn.next("Hi!", [AGAIN]).warnings == ()


def test_text_behind_an_end_inside_a_thought_is_an_error():
    """The parser continues after the end, but no template writes text there."""
    source = PLAIN.replace(
        "<{{ m.role }}>", "<{{ m.role }}>{% if m.reasoning %}<think>{{ m.reasoning }}</think>{% endif %}"
    )
    source = source.replace("</>", "<|end|>").replace("<assistant>", "<assistant><think>")
    turn = chat(source).prepare([ASK])

    assert turn.prefill == "<think>"
    for answer in ("Hm<|end|> Hi!", "Hm</think>Hi!<|end|>Hi!"):
        with pytest.raises(ExtendError, match="after the end of the answer|inside reasoning"):
            turn.next(answer, [AGAIN])


def test_images_of_several_turns_are_in_order():
    """Each image has the index of its message in the whole conversation."""
    see = {"role": "user", "content": [image("two"), {"type": "text", "text": "And this?"}, image("three")]}
    turn = chat(IMAGES).prepare([{"role": "user", "content": [image("one")]}])
    new = turn.next("A cat", [see]).next("A dog", [AGAIN, {"role": "user", "content": [image("four")]}])

    assert [one.message for one in new.media] == [0, 2, 2, 5]
    assert new.prompt.count("<image>") == 4


def test_an_image_that_is_not_shown_is_named_by_its_new_message():
    """The index in the error counts only the new messages."""
    with pytest.raises(RequestError, match=r"^messages\[1\]\.content\[0\]: the template doesn't support image parts"):
        chat().prepare([ASK]).next("Hi!", [AGAIN, {"role": "user", "content": [image("one")]}])


def test_a_new_variable_that_nobody_reads_is_noted_once():
    """The note is in the turn that sets the variable, but not in later ones."""
    turn = chat().prepare([ASK])

    with pytest.warns(TemplateWarning, match="volume"):
        new = turn.next("Hi!", [AGAIN], volume=3)
    assert [note.partition(":")[0] for note in new.warnings] == ["volume"]
    assert new.next("Hi!", [AGAIN]).warnings == ()


def test_documents_that_are_not_shown_are_noted_once():
    """The note is in the first turn only, although every later turn keeps the documents."""
    turn = chat().prepare([ASK], documents=[{"text": "News"}])

    assert [note.partition(":")[0] for note in turn.warnings] == ["documents"]
    assert turn.next("Hi!", [AGAIN]).next("Hi!", [AGAIN]).warnings == ()


def test_a_result_of_the_old_role_is_told_apart():
    """OpenAI's older role `function` is a result, as `tool` is."""
    turn = CALLS_KEEP.prepare([ASK], tools=[TOOL])
    new = turn.next(
        '<call>{"name": "now", "arguments": {"city": "Rome"}}</call>',
        [{"role": "function", "name": "now", "content": "noon"}],
    )

    assert [piece.text for piece in new.appended if piece.message == 0] == ["<function>", "noon", "<end>"]


def test_nothing_that_was_given_is_changed():
    """The caller's messages aren't modified, and the pieces add up to the new prompt."""
    said = [{"role": "tool", "content": {"hour": [12]}}, {"role": "user", "content": [{"type": "text", "text": "So?"}]}]
    before = copy.deepcopy(said)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TemplateWarning)
        turn = chat().prepare([ASK], tools=[TOOL])
        new = turn.next(CALL, said)

    assert said == before
    assert new.prompt == turn.prompt + CALL + "".join(piece.text for piece in new.appended)


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
        assert other == turn
        assert other.next("Hi!", [AGAIN]).prompt == turn.next("Hi!", [AGAIN]).prompt


def test_many_new_messages_are_told_apart_in_time():
    """The cost isn't quadratic in the number of messages."""
    turn = chat().prepare([ASK])
    new = turn.next("Hi!", [{"role": "user", "content": f"b{i}"} for i in range(1000)])

    assert [piece.text for piece in new.appended if piece.body] == [f"b{i}" for i in range(1000)]


COUNTING = ChatTemplate.from_string(
    "{% set ns = namespace(n=0) %}{% for m in messages %}"
    "{% if m.role == 'tool' %}<result {{ ns.n }}>{{ m.content }}<end>{% set ns.n = ns.n + 1 %}"
    "{% else %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}<end>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.mark.parametrize("id", ["abcdefgh7", "abcdefghi", None])
def test_results_are_counted_where_answers_have_no_ids(id):
    """The number counts results in the conversation and ignores the caller's id. It can't be derived from a bare prompt."""
    tools = [{"name": "now", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
    answer = '<call>{"name": "now", "arguments": {"city": "Rome"}}</call><end>'
    result = {"role": "tool", "name": "now", "content": "noon", **({"tool_call_id": id} if id else {})}
    turn = COUNTING.prepare([{"role": "user", "content": "When?"}], tools=tools)

    for number in range(3):
        turn = turn.next(answer, [result])
        assert turn.prompt.endswith(f"</call><end><result {number}>noon<end><assistant>")

    with pytest.raises(ExtendError) as error:
        COUNTING.prepare_rendered(turn.prompt, tools=tools).next(answer, [result])
    assert error.value.reason == "state"


PARTS = ChatTemplate.from_string(
    "{% for m in messages %}{% if m.reasoning_content %}{{ 'thinker:\n' ~ m.reasoning_content ~ '\n---\n' }}{% endif %}"
    "{{ m.role ~ ':\n' ~ (m.content or '') }}{% for c in m.tool_calls or [] %}"
    "{{ '>>>' ~ c.function.name ~ '\n' ~ (c.function.arguments | tojson) }}{% endfor %}{{ '\n---\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant:\n' }}{% endif %}"
)


def test_an_end_of_thoughts_that_ends_turns_ends_calls():
    """A sampled `---` after a call ends the turn, and a line break follows it."""
    tools = [{"name": "now", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
    turn = PARTS.prepare([{"role": "user", "content": "When?"}], tools=tools)
    answer = '>>>now\n{"city": "Rome"}\n---'

    following = turn.next(answer, [{"role": "tool", "content": "noon"}])

    assert following.prompt.removeprefix(turn.prompt + answer).startswith("\n")


ROUNDS = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content ~ '\\n' }}{% elif m.role == 'assistant' %}{{ 'A: ' ~ m.content ~ '\\n' }}"
    "{% else %}{{ '[Round ' ~ (loop.index0 // 2 + 1) ~ ']\\nQ: ' ~ m.content ~ '\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'A:' }}{% endif %}"
)


@pytest.mark.parametrize("system", [[], [{"role": "system", "content": "Be brief."}]])
@pytest.mark.parametrize("turns", [0, 1, 30])
@pytest.mark.parametrize(
    "source", [ROUNDS, ROUNDS.replace("m.content ~ '\\n' }}{% elif", "raise_exception('no') }}{% elif")]
)
def test_a_number_of_messages_is_read_off_a_prompt(source, system, turns):
    """The round number depends on the system message, which is visible in the prompt."""
    template = chat(source)
    before = [*system, *([ASK, {"role": "assistant", "content": "Hi!"}] * turns), ASK]
    whole = template.prepare([*before, {"role": "assistant", "content": "Well"}, AGAIN, ASK]).prompt

    assert template.prepare_rendered(template.prepare(before).prompt).next(" Well", [AGAIN, ASK]).prompt == whole


@cases
def test_a_number_of_messages_that_a_prompt_does_not_show_is_refused(prompt):
    """A prompt with only part of a conversation, or with wrong numbers, is an error."""
    with pytest.raises(ExtendError) as error:
        chat(ROUNDS).prepare_rendered(prompt).next(" Well", [AGAIN])
    assert error.value.reason == "state"


def thinking(start, end, *, says="", closes="\n\n"):
    """Return a template whose answers have a thought between `start` and `end`, and `says` after content."""
    return chat(
        "{% for m in messages %}{% if m.role == 'assistant' %}{{ 'A: ' }}{% if m.reasoning_content %}"
        f"{{{{ {start!r} ~ m.reasoning_content ~ {end!r} }}}}{{% endif %}}{{% if m.content %}}{{{{ m.content ~ {says!r} }}}}"
        f"{{% endif %}}{{{{ {closes!r} }}}}{{% else %}}{{{{ 'Q: ' ~ m.content ~ '\\n' }}}}{{% endif %}}{{% endfor %}}"
        "{% if add_generation_prompt %}{{ 'A: ' }}{% endif %}"
    )


@pytest.mark.parametrize(
    ("template", "answer", "appended"),
    [
        (thinking("<think>", "</think>", says="\n"), "<think>Hm</think>\n\n</s>", "Q: Bye\nA: "),
        (thinking("<think>", "</think>", says="\n"), "<think>Hm</think>", "\n\nQ: Bye\nA: "),
        (thinking("# Thinking\n\n", "\n\n# Answer\n\n"), "# Thinking\n\nHm\n\n# Answer", "\n\n\n\nQ: Bye\nA: "),
    ],
)
def test_a_thought_alone_ends_as_the_template_ends_it(template, answer, appended):
    """Whitespace in the answer isn't repeated, and text that only follows content isn't appended."""
    turn = template.prepare([ASK])

    assert turn.next(answer, [AGAIN]).prompt.removeprefix(turn.prompt + answer) == appended


def test_a_clock_that_goes_on_rewrites_nothing():
    """A template that renders the time only appends, although no two of its renderings are equal."""
    assert chat("[{{ strftime_now('%S.%f') }}]" + PLAIN).continuation.append_only


CALLS_KEEP = chat(
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content and (m.tool_calls or loop.last) %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def test_a_thought_that_is_kept_with_its_call_is_no_reason_to_render_anew():
    """The thought is kept with a call, so `next` appends. Without a call the template drops it, which is an error."""
    turn = CALLS_KEEP.prepare([ASK], tools=[TOOL])
    call = '<think>Hm</think><call>{"name": "now", "arguments": {"city": "Rome"}}</call>'
    result = {"role": "tool", "name": "now", "content": "noon"}

    assert turn.next(call, [result, AGAIN], thoughts="template").prompt.endswith("<user>Bye<end><assistant>")
    with pytest.raises(ExtendError) as error:
        turn.next("<think>Hm</think>Hi!", [AGAIN], thoughts="template")
    assert error.value.reason == "thoughts"


@cases
def test_a_message_may_hold_the_words_of_stubs(word):
    """Stubs contain made-up words. If a message contains the same words, the stubs get others."""
    user, turn = {"role": "user", "content": f"Is {word} a word?"}, CALLS_KEEP.prepare([ASK], tools=[TOOL])

    new = turn.next(f"<think>{word}</think>{word}", [user])
    assert new.prompt == turn.prompt + f"<think>{word}</think>{word}<end><user>Is {word} a word?<end><assistant>"
    assert [piece.text for piece in new.appended if piece.body] == [user["content"]]
    with pytest.raises(ExtendError, match="leaves out reasoning"):
        turn.next(f"<think>{word}</think>{word}", [user], thoughts="template")


@pytest.mark.parametrize("end", ["<|end|>", "[e~["])
def test_nothing_comes_behind_an_end(end):
    """Text, a second end and a header after the end of a turn are errors, but an EOS token isn't."""
    turn = chat(PLAIN.replace("</>", end + "{{ '\\n' }}")).prepare([ASK])

    assert turn.next(f"Hi{end}</s>", [AGAIN]).prompt.endswith(f"Hi{end}</s>\n<user>Bye{end}\n<assistant>")
    for more in ("Words", end, f"\n{end}", "\n<assistant>", "\n<assistant>More"):
        with pytest.raises(ExtendError, match="after the end of the answer") as error:
            turn.next(f"Hi{end}{more}", [AGAIN])
        assert error.value.reason == "answer"


def test_an_empty_answer_goes_on_as_the_end_of_the_prompt_does():
    """An empty answer is continued as in a complete rendering, even after a result."""
    template = chat(
        "{% for m in messages %}{% if m.role == 'tool' %}<r>{{ m.content }}</r>{% else %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}"
        "<call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}<end>{% endif %}{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role == 'user' %}<assistant>{% endif %}"
    )
    before = [
        ASK,
        {"role": "assistant", "tool_calls": [{"id": "abcdefghi", **TOOL}]},
        {"role": "tool", "content": "noon"},
    ]
    turn = template.prepare(before, tools=[TOOL])
    whole = template.prepare([*before, {"role": "assistant", "content": ""}, AGAIN], tools=[TOOL]).prompt

    for start in (turn, template.prepare_rendered(turn.prompt, tools=[TOOL])):
        assert start.next("", [AGAIN]).prompt == whole


TAGS = chat(
    "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
CALLED = '<call>{"name": "now", "arguments": {"city": "Rome"}}</call>'


@pytest.mark.parametrize(
    ("answer", "appended"),
    [
        (CALLED.replace("</call>", "<end>"), ""),
        (CALLED[:-3], "ll><end>"),
        (CALLED.replace("</call>", "</tool>"), "<end>"),
        (f"```\n{CALLED}\n```", "<end>"),
        (CALLED.replace("Rome", 'Ro"me'), "<end>"),
        (CALLED.replace('"Rome"', "Rome"), "<end>"),
        (CALLED.replace("now", "then"), "<end>"),
    ],
)
def test_a_call_is_answered_as_it_was_read(answer, appended):
    """Repaired, failed and unknown calls can be answered with a result. The missing rest of a call's end marker is appended."""
    turn = TAGS.prepare([ASK], tools=[TOOL])
    new = turn.next(answer, [{"role": "tool", "name": "now", "content": "noon"}])

    assert new.prompt == f"{turn.prompt}{answer}{appended}<tool>noon<end><assistant>"


@pytest.mark.parametrize(
    "answer", [CALLED.replace("now", "then"), CALLED.replace("call>", "CALL>"), "A <call> is code"]
)
def test_what_is_read_as_content_is_ended_as_content(answer):
    """Text that only resembles a call isn't an incomplete call."""
    turn = TAGS.prepare([ASK], tools=[TOOL])

    assert turn.next(answer, [AGAIN]).prompt == f"{turn.prompt}{answer}<end><user>Bye<end><assistant>"


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


def test_a_call_that_was_cut_off_is_an_error_unless_it_is_text():
    """An incomplete call is an error, unless it is kept as text. Then a result with an error message can follow."""
    turn, answer = TAGS.prepare([ASK], tools=[TOOL]), CALLED[:-12]

    with pytest.raises(ExtendError) as error:
        turn.next(answer, [AGAIN])
    assert error.value.reason == "call"
    assert turn.next(answer, [AGAIN], unfinished="text").prompt.endswith(f"{answer}<end><user>Bye<end><assistant>")
    result = {"role": "tool", "content": "cut off"}
    assert turn.next(answer, [result], unfinished="text").prompt.endswith(f"{answer}<end><tool>cut off<end><assistant>")


TWO_ENDS = PLAIN.replace("</>", "<|im_end|>{% if m.role == 'assistant' %}<|endofturn|>{% endif %}")


@pytest.mark.parametrize("sampled", ["", "<|im_end|>", "<|im_end|><|endofturn|>", "<|im_end|></s>"])
def test_an_end_of_several_tokens_is_written_once(sampled):
    """A model may stop after any token of the end, and the rest is appended."""
    turn = chat(TWO_ENDS).prepare([ASK])
    rest = "<|im_end|><|endofturn|>".removeprefix(sampled) if "</s>" not in sampled else ""

    assert turn.stop == ("</s>", "<|im_end|>")
    assert turn.parse(f"Hi!{sampled}").content == "Hi!"
    assert (
        turn.next(f"Hi!{sampled}", [AGAIN]).prompt == f"{turn.prompt}Hi!{sampled}{rest}<user>Bye<|im_end|><assistant>"
    )


def test_the_first_token_of_an_end_is_no_end_where_it_occurs_elsewhere():
    """A tag that also ends other parts doesn't stop generation."""
    said = "{% if m.reasoning %}<|open|>{{ m.reasoning }}<|close|>{% endif %}{{ m.content }}"
    source = PLAIN.replace("{{ m.content }}", said).replace("</>", "<|close|><|end|>")

    assert chat(source).prepare([ASK]).stop == ("<|close|><|end|>", "</s>")
