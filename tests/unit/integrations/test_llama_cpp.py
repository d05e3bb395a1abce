"""The chat handler with a fake of the library's `Llama` that writes a scripted answer, one token per character."""

from __future__ import annotations

import re
import sys
import types

import pytest
from cases import cases
from letters import SOURCE, USER
from letters import WEATHER as TOOL
from tables import at

from unrender import ChatTemplate, UnrenderError
from unrender.errors import SchemaWarning
from unrender.integrations.llama_cpp import ChatHandler

BOS, EOS, END = 0x110000, 0x110001, 0x110002
SPECIAL = {BOS: "<s>", EOS: "</s>", END: "<|end|>", 0x110003: "<tool_call>"}
IDS = {text.encode(): token for token, text in SPECIAL.items()}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich 😀"}}\n</tool_call>'


class Llama:
    """Each byte is a token, except for the special ones. `answer` is generated for any prompt."""

    def __init__(self, *answer, room=4096, source=SOURCE):
        self.metadata = {"general.name": "stand-in"} | ({"tokenizer.chat_template": source} if source else {})
        self.answer = [token for part in answer for token in self.tokenize(part.encode(), add_bos=False, special=True)]
        self.prompt, self.sampling, self.seed, self.room = "", {}, None, room
        self.model = "model"

    def tokenize(self, text, add_bos=True, special=False):
        assert special
        parts = re.split(b"(" + b"|".join(re.escape(word.encode()) for word in SPECIAL.values()) + b")", text)
        tokens = [[IDS[part]] if part in IDS else list(part) for part in parts]
        return [BOS] * add_bos + [token for part in tokens for token in part]

    def detokenize(self, tokens, prev_tokens=None, special=False):
        return b"".join(SPECIAL[token].encode() * special if token in SPECIAL else bytes([token]) for token in tokens)

    def generate(self, tokens, **sampling):
        self.sampling = sampling
        self.prompt = b"".join(self.detokenize([token], special=True) for token in tokens).decode()
        self.tokens, self.size = tokens, len(tokens)
        yield from self.answer

    def token_bos(self):
        return BOS

    def token_eos(self):
        return EOS

    def n_ctx(self):
        return self.room

    def set_seed(self, seed):
        self.seed = seed


@pytest.fixture(autouse=True)
def grammars(monkeypatch):
    """Replace the library's module with a fake. Return the list of created grammars."""
    made = []

    def ends(vocabulary, token):
        return vocabulary == "vocabulary of model" and token == EOS

    def from_string(text, verbose):
        made.append(text)
        return f"grammar {len(made)}"

    library = types.SimpleNamespace(
        LlamaGrammar=types.SimpleNamespace(from_string=from_string),
        llama_model_get_vocab="vocabulary of {}".format,
        llama_vocab_is_eog=ends,
        llama_vocab_n_tokens=lambda _: EOS + 3,
        llama_vocab_get_attr=lambda _, token: 8 if token in SPECIAL else 4,
    )
    monkeypatch.setitem(sys.modules, "llama_cpp", library)
    return made


def ask(model, request, handler=None, template=""):
    """Return a fake model, and its completion of a request. `model` and `handler` are arguments."""
    llama = Llama(*model.get("answer", ()), **{name: model[name] for name in model if name != "answer"})
    own = (ChatTemplate.from_string(template, bos_token="<s>"),) if template else ()
    return llama, ChatHandler(*own, **(handler or {}))(llama=llama, **{"messages": USER, **request})


@cases
def test_an_answer_becomes_a_completion(grammars, why, model, handler, template, request_, found):
    """The completion, the model's arguments and the created grammars have the parts of their row."""
    llama, completion = ask(model, request_, handler, template)
    tokens = list(llama.tokens)
    seen = {"completion": completion, "llama": llama, "grammars": grammars, "ends": tokens.count(END)}

    assert {path: at(seen, path) for path in found} == found, why
    assert tokens.count(BOS) == 1
    assert all("root ::=" in grammar for grammar in grammars)


def test_a_stream_adds_up_to_the_message():
    """Deltas contain the same parts, the role first and the finish reason last."""
    _, completion = ask(
        {"answer": ["<think>\nHm.\n</think>\n\nOk.\n" + CALL, "</s>"]}, {"tools": [TOOL], "stream": True}
    )
    chunks = list(completion)

    choices = [chunk["choices"][0] for chunk in chunks]
    deltas = [choice["delta"] for choice in choices]
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == "Ok."
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hm."
    assert "".join(call["arguments"] for call in calls) == '{"city": "Zürich 😀"}'
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(chunks) - 1) + ["tool_calls"]
    assert {(chunk["object"], chunk["id"]) for chunk in chunks} == {("chat.completion.chunk", chunks[0]["id"])}


def test_a_schema_beside_json_object_is_kept(grammars):
    """The library's own form of a response format has the same effect as OpenAI's."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    for form in (
        {"type": "json_object", "schema": schema},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
    ):
        ask({}, {"response_format": form})

    assert grammars[0] == grammars[1]


def test_strict_tools_of_a_free_answer_warn():
    """A strict tool that isn't required is parsed, with a warning that no grammar enforces its schema."""
    strict = {**TOOL, "function": dict(TOOL["function"], strict=True)}
    with pytest.warns(SchemaWarning, match="strict tools are enforced only"):
        _, completion = ask({"answer": ["Ok.\n" + CALL + "</s>"]}, {"tools": [strict]})

    assert completion["choices"][0]["finish_reason"] == "tool_calls"


@cases
def test_what_is_not_supported_is_refused(model, request_, error):
    """An unsupported option is an error, and the error for a model without a template explains what to pass."""
    with pytest.raises(UnrenderError, match=error):
        ask(model, request_)
