"""The chat handler in the real llama-cpp-python, with a random model and llama.cpp's own tokens, grammars and sampling.

The package is built from its sources, so it's tested where it's installed: `python3 scripts/run.py llama` sets it up.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from random_gguf import write_gguf

import unrender
from unrender import ChatTemplate
from unrender.errors import FormatWarning
from unrender.format import ToolMode
from unrender.integrations.llama_cpp import ChatHandler

llama_cpp = pytest.importorskip("llama_cpp")

SOURCE = (Path(unrender.__file__).parent / "gateway" / "sampler.jinja").read_text(encoding="utf-8")
CITIES = ["Paris", "Rome"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": CITIES}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("get_weather", "get_time")]
USER = [{"role": "user", "content": "Hello"}]
CONTROL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>", "<|endoftext|>")
ANY = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
SEEDS = range(8)
EOS = "<|eos|>"
TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "templates").glob("*.jinja"))


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """Return a random model in the real package, with control tokens as markers. Two tokens end an answer."""
    path = tmp_path_factory.mktemp("gguf") / "random.gguf"
    write_gguf(path, SOURCE, CONTROL, ("<think>", "</think>"), eos="<|end|>")
    handler = ChatHandler(enable_thinking=False)
    return llama_cpp.Llama(str(path), n_ctx=2048, n_threads=1, verbose=False, chat_handler=handler)


def answers(llama, **request):
    """Return the choices of answers to the same request with several seeds."""
    request = {"max_tokens": 250, **ANY, **request}
    return [llama.create_chat_completion(USER, seed=seed, **request)["choices"][0] for seed in SEEDS]


def ended(choices):
    """Return the choices that ended by themselves. A random model may write layout for a long time."""
    found = [choice for choice in choices if choice["finish_reason"] != "length"]
    assert found
    return found


def made(message):
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", ())
    ]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"get_weather", "get_time"}),
        ({"type": "function", "function": {"name": "get_time"}}, {"get_time"}),
    ],
    ids=["required", "named"],
)
def test_a_call_that_is_due_is_made(llama, choice, names):
    """Every answer that ends is a call of a tool in its schema, even from a random model."""
    for answer in ended(answers(llama, tools=TOOLS, tool_choice=choice)):
        calls = made(answer["message"])
        assert answer["finish_reason"] == "tool_calls"
        assert calls
        assert all(name in names and set(arguments) == {"city"} for name, arguments in calls)
        assert all(arguments["city"] in CITIES for _, arguments in calls)


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}},
        {"type": "json_object", "schema": SCHEMA},
    ],
    ids=["OpenAI's", "the library's"],
)
def test_a_schema_is_kept(llama, form):
    """A response format applies from the first token."""
    for answer in ended(answers(llama, response_format=form)):
        assert json.loads(answer["message"]["content"])["city"] in CITIES
        assert answer["finish_reason"] == "stop"


def test_every_syntax_is_held(tmp_path):
    """In every call syntax, the required calls of a random model fit the tool's schema."""
    templates = [path for path in TEMPLATES if calls_of(path) is not ToolMode.NONE]
    assert len(templates) > 60
    called = 0
    for path in templates:
        llama = model_of(path, tmp_path / "random.gguf")
        for seed in range(2):
            request = {"tools": TOOLS[:1], "tool_choice": "required", "max_tokens": 200, "seed": seed, **ANY}
            openers = likelier(llama, "".join(template_of(path).format.tools.openers[:1]).strip())
            answer = llama.create_chat_completion(USER, logits_processor=[openers], **request)["choices"][0]
            if answer["finish_reason"] == "length":
                continue
            assert answer["finish_reason"] == "tool_calls", path.stem
            called += 1
            assert all(arguments["city"] in CITIES for _, arguments in made(answer["message"])), path.stem
        llama.close()

    assert called >= 70  # The other answers were still in layout or reasoning.


def model_of(path, file):
    """Return a random model with a template, and the template's special tokens."""
    template = template_of(path)
    own = [token for token in template.format.preserved_tokens if token not in ("<s>", "</s>", "<unk>", EOS)]
    write_gguf(file, path.read_text(encoding="utf-8"), [*own, EOS], (), eos=EOS)
    return llama_cpp.Llama(str(file), n_ctx=1024, n_threads=1, verbose=False, chat_handler=ChatHandler(template))


def likelier(llama, text):
    """Return a logits processor that makes the special token at the start of a text twenty times as likely."""
    first = llama.tokenize(text.encode(), add_bos=False, special=True)[:1]
    special = [token for token in first if len(llama.detokenize([token], special=True)) > 1]

    def processor(_, logits):
        logits = logits.copy()
        logits[special] += 3
        return logits

    return processor


def template_of(path):
    return ChatTemplate.from_string(path.read_text(encoding="utf-8"), bos_token="<s>", eos_token=EOS)


def calls_of(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FormatWarning)
        return template_of(path).format.tools.mode


def test_a_stream_is_the_whole_answer(llama):
    """The deltas of a stream add up to the whole answer with the same seed."""
    request = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 250, "seed": 3, **ANY}
    whole = llama.create_chat_completion(USER, **request)["choices"][0]
    chunks = [chunk["choices"][0] for chunk in llama.create_chat_completion(USER, stream=True, **request)]

    calls = [call["function"] for chunk in chunks for call in chunk["delta"].get("tool_calls", ())]
    assert "".join(call.get("name", "") for call in calls) == "".join(name for name, _ in made(whole["message"]))
    assert "".join(call["arguments"] for call in calls) == "".join(
        call["function"]["arguments"] for call in whole["message"]["tool_calls"]
    )
    assert chunks[-1]["finish_reason"] == whole["finish_reason"]


def test_markers_of_the_prompt_are_tokens(llama):
    """The prompt is the template's, with its special tokens as tokens. Usage counts them."""
    prompt = ChatTemplate.from_string(SOURCE).prepare(USER, enable_thinking=False).prompt
    usage = llama.create_chat_completion(USER, max_tokens=1)["usage"]

    assert usage["prompt_tokens"] == len(llama.tokenize(prompt.encode(), True, True)) < len(prompt)


def test_every_token_that_ends_an_answer_ends_it(llama):
    """A model may have several end tokens, and none of them is content."""
    (other,) = llama.tokenize(b"<|endoftext|>", add_bos=False, special=True)
    assert other != llama.token_eos()

    def ending(_, logits):
        logits = logits.copy()
        logits[other] += 100
        return logits

    answer = answers(llama, logits_processor=[ending])[0]
    assert (answer["message"]["content"], answer["finish_reason"]) == ("", "stop")
