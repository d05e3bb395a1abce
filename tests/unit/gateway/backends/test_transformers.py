"""A real transformers, with a tiny random model: what it generates, masks, counts and gives up is not ours.

Optional: it runs where torch and transformers are installed (`python3 scripts/run.py engines`).
"""

from __future__ import annotations

import asyncio
import importlib
import json
from contextlib import aclosing
from importlib.resources import files
from typing import Any

import pytest

from unrender.verify.engines import installed

NEEDED = ("torch", "transformers", "llguidance", "aiohttp", "openai", "anthropic")
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not all(map(installed, NEEDED)), reason="torch, transformers and llguidance are needed"),
]

CITIES = ["Paris", "Rome"]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": CITIES}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
HELLO: Any = [{"role": "user", "content": "Hello"}]
SPECIAL = ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
MASKS = [name for name in ("llguidance", "xgrammar") if installed(name)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a directory with a random model, a tokenizer of bytes and special tokens, and a chat template."""
    transformers, torch = importlib.import_module("transformers"), importlib.import_module("torch")
    path = tmp_path_factory.mktemp("model")
    tokenizer = tokenizer_of_bytes(transformers)
    tokenizer.chat_template = files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")
    tokenizer.save_pretrained(path)
    torch.manual_seed(1)
    torch.set_num_threads(1)  # More of them spin while they wait for each other, which a busy machine makes long.
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=2048, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    return path


def tokenizer_of_bytes(transformers):
    """Return a tokenizer in which each byte is a token, beside the special ones."""
    tokenizers = importlib.import_module("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE(vocab={letter: id for id, letter in enumerate(alphabet)}, merges=[])
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[0])
    wrapped.add_special_tokens({"additional_special_tokens": list(SPECIAL[1:])})
    return wrapped


def served(folder, **settings):
    """Return the model of these settings."""
    from unrender.gateway.config import read  # noqa: PLC0415 - only where its packages are

    own = {"backend": "transformers", "path": str(folder), "name": "m", "variables": {"enable_thinking": False}}
    return read({"models": [own | settings]}).models[0]


@pytest.fixture(scope="module", params=MASKS)
def model(request, folder):
    """Return the model under each library that masks."""
    return served(folder, masks=request.param)


@pytest.fixture(scope="module")
def one(folder):
    """Return the model under the library that is taken by itself."""
    return served(folder)


def completed(model, **request):
    """Return the whole completion, as the client has validated it."""
    from serving import openai_client  # noqa: PLC0415

    from unrender.gateway import app  # noqa: PLC0415

    client: Any = openai_client(app([model]))
    request = {"model": "m", "messages": HELLO, "max_tokens": 200} | request
    return asyncio.run(client.chat.completions.create(**request))


def ended(model, **request):
    """Return the first choice of a few that came to an end, as layout may go on for long."""
    for seed in range(6):
        (choice,) = completed(model, seed=seed, **request).choices
        if choice.finish_reason != "length":
            return choice
    return pytest.fail("no answer came to its end")


def test_required_call_is_made(model):
    """A required call is made in the tool's schema, by a model that knows nothing."""
    choice = ended(model, tools=[TOOL], tool_choice="required", parallel_tool_calls=False)

    (call,) = choice.message.tool_calls
    assert json.loads(call.function.arguments)["city"] in CITIES


def test_schema_is_kept(model):
    """A response format is kept from the first token on."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}

    assert json.loads(ended(model, response_format=form).message.content)["city"] in CITIES


def test_engine_is_tried(model):
    """Tried, it holds to a grammar, and lets markers through."""
    assert asyncio.run(model.probe())

    assert model.found.grammar is True
    assert model.found.markers is not False  # A random model may spell a marker in ordinary tokens.


def test_same_seed_gives_the_same_answer(one):
    """The seed decides; temperature 0 needs none; the engine counts tokens."""
    for more in ({"seed": 3}, {"temperature": 0}):
        first, second = (completed(one, max_tokens=12, **more) for _ in range(2))
        assert first.choices[0].message.content == second.choices[0].message.content
        assert first.usage == second.usage
        assert 0 < first.usage.completion_tokens <= 12
        assert first.usage.prompt_tokens > 5


def test_stream_adds_up_and_has_log_probabilities(one):
    """Streamed and whole answers say the same, and tokens of the content come with alternatives."""
    from serving import openai_client  # noqa: PLC0415

    from unrender.gateway import app  # noqa: PLC0415

    async def run():
        client: Any = openai_client(app([one]))
        request = {"model": "m", "messages": HELLO, "max_tokens": 20, "seed": 5, "logprobs": True, "top_logprobs": 2}
        stream = await client.chat.completions.create(stream=True, **request)
        chunks = [chunk.choices[0] async for chunk in stream]
        return await client.chat.completions.create(**request), chunks

    whole, chunks = asyncio.run(run())

    tokens = whole.choices[0].logprobs.content
    assert "".join(choice.delta.content or "" for choice in chunks) == whole.choices[0].message.content
    assert tokens == [token for choice in chunks if choice.logprobs for token in choice.logprobs.content]
    assert all(token.logprob < 0 and len(token.top_logprobs) == 2 for token in tokens)


def test_stop_text_ends_the_answer(one):
    """A stop text of the client's ends the content before it."""
    whole = completed(one, seed=2, max_tokens=60).choices[0].message.content
    stop = next(character for character in whole[3:] if character.isascii() and character.isprintable())

    stopped = completed(one, seed=2, max_tokens=60, stop=stop).choices[0].message.content

    assert stopped == whole.partition(stop)[0]


def test_client_that_goes_stops_the_model(one):
    """When nobody wants the rest, the model stops at its next token, and is free for the next answer."""
    from unrender.gateway import Job  # noqa: PLC0415

    turn = one.turns.template.prepare(HELLO)

    async def first():
        async with aclosing(one.backend.generate(Job(turn=turn, request_id="1", seed=1))) as pieces:
            async for _ in pieces:
                return

    async def run():
        await first()
        await asyncio.wait_for(first(), 20)  # It would take minutes for all of the context.
        return one.backend._thread._work_queue.qsize()

    assert asyncio.run(run()) == 0


def test_what_cannot_be_is_named(one, folder, tmp_path):
    """A prompt that is too long, a refused grammar, and a directory without a model are errors that say so."""
    import openai  # noqa: PLC0415

    from unrender.gateway import EngineError, EngineGrammar  # noqa: PLC0415
    from unrender.gateway.failure import Failure  # noqa: PLC0415

    with pytest.raises(openai.BadRequestError, match="at most 2047 tokens"):
        completed(one, messages=[{"role": "user", "content": "x" * 3000}])
    with pytest.raises(EngineError, match="refused"):
        one.backend.matcher(EngineGrammar(dialect="any", text="{"))
    with pytest.raises(Failure, match=tmp_path.name):
        served(tmp_path)
