"""The chat handler with a fake of the library's `Llama` that writes a scripted answer, one token per character."""

from __future__ import annotations

import re
import sys
import types
import warnings

import pytest
from letters import SOURCE, USER
from letters import WEATHER as TOOL

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.errors import SchemaWarning
from unrender.integrations.llama_cpp import ChatHandler

BOS, EOS, END, OPEN = 0x110000, 0x110001, 0x110002, 0x110003
SPECIAL = {BOS: "<s>", EOS: "</s>", END: "<|end|>", OPEN: "<tool_call>"}
IDS = {text.encode(): token for token, text in SPECIAL.items()}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich 😀"}}\n</tool_call>'
REQUIRED = {"tools": [TOOL], "tool_choice": "required"}


class Llama:
    """Each byte is a token, except for the special ones. `answer` is generated for any prompt."""

    def __init__(self, *answer, room=4096, source=SOURCE):
        self.metadata = {"general.name": "stand-in"} | ({"tokenizer.chat_template": source} if source else {})
        texts = (SPECIAL.get(part, part) for part in answer)
        self.answer = [token for text in texts for token in self.tokenize(text.encode(), add_bos=False, special=True)]
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


def ask(llama, handler=None, **request):
    return (handler or ChatHandler())(llama=llama, messages=USER, **request)


def choice(completion):
    return completion["choices"][0]


def test_an_answer_becomes_a_message():
    """Reasoning, content and calls are separated, and special tokens end the answer."""
    llama = Llama("<think>\nHm.\n</think>\n\nI'll look.\n" + CALL, END, "never")

    completion = ask(llama, tools=[TOOL])

    message = choice(completion)["message"]
    assert (message["reasoning_content"], message["content"]) == ("Hm.", "I'll look.")
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Zürich 😀"}'}
    assert choice(completion)["finish_reason"] == "tool_calls"
    assert (completion["object"], completion["model"]) == ("chat.completion", "stand-in")
    assert completion["usage"]["prompt_tokens"] == llama.size


def test_the_prompt_is_the_templates():
    """The model's own template is rendered with its tools, and the beginning-of-sequence token occurs once."""
    llama = Llama(EOS)

    ask(llama, tools=[TOOL])
    own = llama.prompt
    ask(llama, ChatHandler(ChatTemplate.from_string("{{ bos_token }}{{ messages[0].content }}", bos_token="<s>")))

    assert own.startswith("<s><|tools|>")
    assert own.endswith("<|user|>Hello<|end|><|assistant|>")
    assert llama.prompt == "<s>Hello"


@pytest.mark.parametrize(
    ("markers", "count", "text"), [(None, 2, "<|end|>"), ("break", 2, r"<\|end|>"), ("keep", 3, "<|end|>")]
)
def test_a_marker_in_a_message_is_no_token(markers, count, text):
    """By default, it consists of ordinary tokens. It can also be broken or kept."""
    llama, system = Llama(EOS), {"role": "system", "content": "Be brief."}
    handler = ChatHandler(**({"markers": markers} if markers else {}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        handler(llama=llama, messages=[system, {"role": "user", "content": "x<|end|>y"}])

    assert list(llama.tokens).count(END) == count
    assert list(llama.tokens).count(BOS) == 1
    assert f"x{text}y" in llama.prompt


def test_a_stream_adds_up_to_the_message():
    """Deltas contain the same parts, the role first and the finish reason last."""
    chunks = list(ask(Llama("<think>\nHm.\n</think>\n\nOk.\n" + CALL, EOS), tools=[TOOL], stream=True))

    deltas = [choice(chunk)["delta"] for chunk in chunks]
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == "Ok."
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hm."
    assert "".join(call["arguments"] for call in calls) == '{"city": "Zürich 😀"}'
    assert [choice(chunk)["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["tool_calls"]
    assert {(chunk["object"], chunk["id"]) for chunk in chunks} == {("chat.completion.chunk", chunks[0]["id"])}


@pytest.mark.parametrize("stop", ["STOP", ["STOP", "HALT"]])
def test_texts_to_stop_at_are_no_content(stop):
    """Generation ends at a stop string, and text that only starts like one is kept."""
    answer = choice(ask(Llama("A STO HAL STO", "P and more"), stop=stop))

    assert answer["message"]["content"] == "A STO HAL "
    assert answer["finish_reason"] == "stop"


@pytest.mark.parametrize(("limit", "room"), [({"max_tokens": 5}, 4096), ({}, 5 + len("s<|user|>Hello$<|assistant|>"))])
def test_an_answer_may_be_too_long(limit, room):
    """An answer that reaches the limit or the end of the context has the finish reason `length`."""
    answer = choice(ask(Llama("Hello, world", room=room), **limit))

    assert answer["message"]["content"] == "Hello"
    assert answer["finish_reason"] == "length"


def test_a_call_that_is_cut_off_is_no_call():
    """An incomplete call isn't returned for execution."""
    answer = choice(ask(Llama(CALL), tools=[TOOL], max_tokens=len(CALL) // 2))

    assert "tool_calls" not in answer["message"]
    assert answer["finish_reason"] == "length"


@pytest.mark.parametrize("request_", [REQUIRED, {"response_format": {"type": "json_object"}}])
def test_what_is_due_is_constrained(grammars, request_):
    """A required call and a response format constrain the model from the first character."""
    llama = Llama(EOS)

    ask(llama, **request_)

    assert llama.sampling["grammar"] == "grammar 1"
    assert "root ::=" in grammars[0]


def test_a_free_answer_is_not_constrained(grammars):
    """A free answer has no grammar, unless the caller passes one."""
    llama = Llama(EOS)

    ask(llama, tools=[TOOL])
    free = llama.sampling["grammar"]
    ask(llama, grammar="mine", **REQUIRED)

    assert (free, llama.sampling["grammar"], grammars) == (None, "mine", [])


def test_strict_tools_of_a_free_answer_warn():
    """A strict tool that isn't required is parsed, with a warning that no grammar enforces its schema."""
    strict = {**TOOL, "function": dict(TOOL["function"], strict=True)}
    with pytest.warns(SchemaWarning, match="strict tools are enforced only"):
        completion = ask(Llama("Ok.\n", OPEN, CALL.removeprefix("<tool_call>"), EOS), tools=[strict])

    assert choice(completion)["finish_reason"] == "tool_calls"


def test_sampling_is_handed_on():
    """Sampling parameters reach the model; the temperature has another name in the library."""
    llama = Llama(EOS)

    ask(llama, temperature=0.5, top_k=3, seed=7, logprobs=None, anything_new=1)

    assert llama.sampling == {"temp": 0.5, "top_k": 3, "grammar": None}
    assert llama.seed == 7


def test_a_schema_beside_json_object_is_kept(grammars):
    """The library's own form of a response format has the same effect as OpenAI's."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    ask(Llama(EOS), response_format={"type": "json_object", "schema": schema})
    ask(Llama(EOS), response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})

    assert grammars[0] == grammars[1]


def test_arguments_of_prepare_are_kept():
    """The handler's own arguments apply to every request."""
    llama = Llama(EOS, source="{{ mood }}{{ messages[-1].content }}")

    ask(llama, ChatHandler(mood="glad: "))

    assert llama.prompt == "<s>glad: Hello"


@pytest.mark.parametrize("option", [{"functions": [TOOL["function"]]}, {"logprobs": True}, {"logit_bias": {1: 2.0}}])
def test_what_is_not_supported_is_refused(option):
    """An unsupported option is an error."""
    with pytest.raises(RequestError, match="not supported"):
        ask(Llama(EOS), **option)


def test_a_model_without_a_template_needs_one():
    """The error explains what to pass."""
    with pytest.raises(TemplateError, match="pass a ChatTemplate to the handler"):
        ask(Llama(EOS, source=""))
