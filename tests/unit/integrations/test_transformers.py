"""Generated ids are converted to messages and events, with a fake tokenizer and the library itself if installed."""

from __future__ import annotations

import json
import sys
import threading
import time
import types

import pytest
from byte_tokenizer import byte_tokenizer
from engines import installed
from letters import NOW as TOOL
from letters import SOURCE, USER, Letters

from unrender import ContentText, GrammarError, MessageFinished, TemplateError
from unrender.integrations.transformers import (
    chat_template,
    logits_processor,
    read_ids,
    stopping_criteria,
    stream,
    streamer,
)

OUTPUT = '<think>\nHm.\n</think>\n\nOk.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call><|end|>'
PAD = Letters.pad_token_id


class TextStreamer:
    """A fake of the library's class. It holds back words until they are complete."""

    def __init__(self, tokenizer, *, skip_prompt, **decode):
        self.tokenizer, self.decode = tokenizer, decode
        self.waits, self.text = skip_prompt, ""

    def on_finalized_text(self, text, stream_end=False):
        raise NotImplementedError

    def put(self, ids):
        if self.waits:
            self.waits = False
            return
        self.text += self.tokenizer.decode(ids, **self.decode)
        whole, space, rest = self.text.rpartition(" ")
        self.text = rest
        self.on_finalized_text(whole + space)

    def end(self):
        self.on_finalized_text(self.text, stream_end=True)


@pytest.fixture
def library(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", types.SimpleNamespace(TextStreamer=TextStreamer))


def turn_of(tokenizer, **request):
    return chat_template(tokenizer).prepare(USER, **request)


def test_generated_ids_become_a_message():
    """Special tokens are decoded, since they start calls, and padding is dropped."""
    tokenizer = Letters()
    ids = [*map(ord, OUTPUT), PAD, PAD, PAD]

    message = read_ids(turn_of(tokenizer, tools=[TOOL]), tokenizer, ids)

    assert (message.reasoning, message.content) == ("Hm.", "Ok.")
    assert [(call.name, call.arguments_json) for call in message.tool_calls] == [("now", "{}")]


def test_the_finish_reason_counts():
    """A call that the token limit cut off is truncated."""
    tokenizer = Letters()
    ids = [*map(ord, OUTPUT[: OUTPUT.index("}}")])]

    (call,) = read_ids(turn_of(tokenizer, tools=[TOOL]), tokenizer, ids, finish_reason="length").failed_calls

    assert call.status == "truncated"


def test_the_tokenizers_template_is_used():
    """Named templates and special tokens are loaded from the tokenizer."""
    template = chat_template(Letters({"default": "{{ messages[0].content }}{{ eos_token }}", "tool_use": SOURCE}))

    assert template.prepare(USER).prompt == "Hello</s>"
    assert template.prepare(USER, tools=[TOOL]).prompt.startswith("<|tools|>")


@pytest.mark.parametrize("source", [None, "", {}])
def test_a_tokenizer_without_a_template_is_named(source):
    """The error names the tokenizer without a template."""
    with pytest.raises(TemplateError, match="stand-in: expected a chat_template"):
        chat_template(Letters(source))


def test_events_come_while_text_is_generated(library):
    """The prompt is skipped, words are parsed when complete, and the end is an event."""
    tokenizer = Letters()
    seen = []
    written = streamer(turn_of(tokenizer), tokenizer, seen.append)

    written.put([*map(ord, "prompt")])
    for character in "Good day":
        written.put([ord(character)])
    before = list(seen)
    written.end()

    assert before == [[ContentText("Good ")]]
    assert seen[1:] == [[ContentText("day"), MessageFinished()]]
    assert written.parser.message.content == "Good day"


@pytest.fixture(scope="module")
def random_model():
    """Return transformers' own classes: a tokenizer of bytes and special tokens, and a tiny random model."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    roles, parts = ("<|system|>", "<|user|>", "<|assistant|>"), ("<think>", "</think>", "<tool_call>", "</tool_call>")
    tokenizer = byte_tokenizer(("<|end|>", *roles, *parts), eos="<|end|>", pad="<pad>", template=SOURCE)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_layer=1, n_head=1, n_embd=8, n_positions=1024,
        bos_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return transformers.GPT2LMHeadModel(config).eval(), tokenizer


@pytest.mark.engine
def test_the_library_itself_streams(random_model):
    """A random model's output from transformers' `generate` streams the message of its ids."""
    model, tokenizer = random_model
    turn = turn_of(tokenizer, tools=[TOOL])
    inputs = tokenizer(turn.prompt, return_tensors="pt")
    stream_of = streamer(turn, tokenizer, lambda events: None)

    output = model.generate(**inputs, max_new_tokens=64, do_sample=True, pad_token_id=0, streamer=stream_of)

    message = read_ids(turn, tokenizer, output[0][inputs["input_ids"].shape[1] :])
    assert message.content
    assert stream_of.parser.message == message


CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
ASKED = {
    "required": {"tools": [WEATHER, TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    "named": {"tools": [WEATHER, TOOL], "tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
    "form": {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": CITY}}},
}
LIBRARIES = [name for name in ("llguidance", "xgrammar") if installed(name)]


@pytest.mark.engine
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_answer_of_a_random_model_is_what_was_asked(random_model, library, asked):
    """Each sequence of a batch is constrained separately: calls of available tools, or JSON of the schema."""
    torch = pytest.importorskip("torch")
    model, tokenizer = random_model
    turn = turn_of(tokenizer, **ASKED[asked])
    inputs = tokenizer(turn.prompt, return_tensors="pt", add_special_tokens=False)
    torch.manual_seed(1)

    output = model.generate(
        **inputs, max_new_tokens=300, do_sample=True, num_return_sequences=6, pad_token_id=tokenizer.pad_token_id,
        logits_processor=[logits_processor(turn, tokenizer, library=library)],
        stopping_criteria=[stopping_criteria(turn, tokenizer)],
    )  # fmt: skip

    ended = [ids for ids in output[:, inputs["input_ids"].shape[1] :] if tokenizer.eos_token_id in ids.tolist()]
    assert len(ended) >= 3
    for ids in ended:
        message = read_ids(turn, tokenizer, ids)
        texts = [call.arguments_json for call in message.tool_calls] or [message.content]
        assert not message.failed_calls
        assert bool(message.tool_calls) is (asked != "form")
        for text in texts:
            assert json.loads(text) == {} or json.loads(text)["city"] in ("Paris", "Rome")


@pytest.mark.engine
def test_events_stream_out_of_generate(random_model):
    """Events add up to the message. An exception in `generate` is raised, and leaving the loop stops the model."""
    model, tokenizer = random_model
    turn = turn_of(tokenizer)
    events = [*stream(model, tokenizer, turn, max_new_tokens=20, do_sample=True, pad_token_id=0)]

    assert events[-1] == MessageFinished()
    assert any(isinstance(event, ContentText) for event in events)
    with pytest.raises(ValueError, match="max_new_tokens"):
        [*stream(model, tokenizer, turn, max_new_tokens=0)]
    started = time.process_time()
    next(left := stream(model, tokenizer, turn, max_new_tokens=900, do_sample=True, pad_token_id=0))
    left.close()
    assert time.process_time() - started < 5
    assert not [thread for thread in threading.enumerate() if thread.name == "unrender-generate"]


def test_a_library_that_is_not_there_is_named():
    """The error lists the supported libraries."""
    with pytest.raises(GrammarError, match="expected one of llguidance, xgrammar"):
        logits_processor(turn_of(Letters()), Letters(), library="other")
