"""Generated ids into messages and events: with a stand-in for a tokenizer, and with the library itself when installed."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from unrender import ContentText, MessageFinished, TemplateError
from unrender.integrations.transformers import chat_template, read_ids, streamer

SOURCE = (Path(__file__).resolve().parents[2] / "templates" / "json-tags.jinja").read_text(encoding="utf-8")
USER = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
OUTPUT = '<think>\nHm.\n</think>\n\nOk.\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call><|end|>'
PAD = 0


class Tokenizer:
    """Each character is a token."""

    name_or_path = "stand-in"
    bos_token = None
    eos_token = "</s>"
    pad_token_id = PAD

    def __init__(self, source=SOURCE):
        self.chat_template = source

    def decode(self, ids, *, skip_special_tokens, clean_up_tokenization_spaces):
        assert not skip_special_tokens
        assert not clean_up_tokenization_spaces
        return "".join("<pad>" if i == PAD else chr(i) for i in ids)


class TextStreamer:
    """A stand-in for the library's: it holds words back until they are whole."""

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
    """Special tokens are decoded, as they open calls, and padding is left out."""
    tokenizer = Tokenizer()
    ids = [*map(ord, OUTPUT), PAD, PAD, PAD]

    message = read_ids(turn_of(tokenizer, tools=[TOOL]), tokenizer, ids)

    assert (message.reasoning, message.content) == ("Hm.", "Ok.")
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("now", "{}")]


def test_the_finish_reason_counts():
    """A call that the token limit cut off is truncated."""
    tokenizer = Tokenizer()
    ids = [*map(ord, OUTPUT[: OUTPUT.index("}}")])]

    (call,) = read_ids(turn_of(tokenizer, tools=[TOOL]), tokenizer, ids, finish_reason="length").tool_calls

    assert call.status == "truncated"


def test_the_tokenizers_template_is_used():
    """Named templates and the tokens come along."""
    template = chat_template(Tokenizer({"default": "{{ messages[0].content }}{{ eos_token }}", "tool_use": SOURCE}))

    assert template.prepare(USER).prompt == "Hello</s>"
    assert template.prepare(USER, tools=[TOOL]).prompt.startswith("<|tools|>")


@pytest.mark.parametrize("source", [None, "", {}])
def test_a_tokenizer_without_a_template_is_named(source):
    """The error says which tokenizer has none."""
    with pytest.raises(TemplateError, match="stand-in: expected a chat_template"):
        chat_template(Tokenizer(source))


def test_events_come_while_text_is_generated(library):
    """The prompt is skipped, words are read when they are whole, and the end is an event."""
    tokenizer = Tokenizer()
    seen = []
    stream = streamer(turn_of(tokenizer), tokenizer, seen.append)

    stream.put([*map(ord, "prompt")])
    for character in "Good day":
        stream.put([ord(character)])
    before = list(seen)
    stream.end()

    assert before == [[ContentText("Good ")]]
    assert seen[1:] == [[ContentText("day"), MessageFinished()]]
    assert stream.parser.message.content == "Good day"


@pytest.mark.engine
def test_the_library_itself_streams():
    """A random model's own output, by transformers' `generate`, streams to the message that its ids mean."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    bytewise = tokenizers.Tokenizer(tokenizers.models.BPE({token: i for i, token in enumerate(sorted(alphabet))}, []))
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise, pad_token="<pad>", eos_token="<|end|>")
    tokenizer.chat_template = SOURCE
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_layer=1, n_head=1, n_embd=8, n_positions=512,
        bos_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    turn = turn_of(tokenizer, tools=[TOOL])
    inputs = tokenizer(turn.prompt, return_tensors="pt")
    stream = streamer(turn, tokenizer, lambda events: None)

    output = model.generate(
        **inputs, max_new_tokens=64, do_sample=True, pad_token_id=tokenizer.pad_token_id, streamer=stream
    )

    message = read_ids(turn, tokenizer, output[0][inputs["input_ids"].shape[1] :])
    assert message.content
    assert stream.parser.message == message
