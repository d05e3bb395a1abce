"""Formats derived from code that renders conversations: a library (`scripts/run.py renderers`) and an endpoint."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from random_gguf import write_gguf
from tables import table

from unrender import ChatTemplate
from unrender.verify import verify

TOOLS: list[dict[str, Any]] = table("test_rendering_code")["TOOLS"]
CALLED = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Aix"}}\n</tool_call><|end|>'
USER = {"role": "user", "content": "Rain?"}


@pytest.fixture(scope="module")
def renderer():
    """Return a function that renders conversations with the installed `mistral_common`."""
    common = pytest.importorskip("mistral_common")
    from mistral_common.protocol.instruct.request import ChatCompletionRequest  # noqa: PLC0415
    from mistral_common.protocol.instruct.validator import ValidationMode  # noqa: PLC0415
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy  # noqa: PLC0415
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer  # noqa: PLC0415

    vocabulary = Path(common.__file__).parent / "data" / "tekken_240911.json"
    # One validator rejects conversations that end in an answer, the other those that don't.
    tokenizers = {
        ends: MistralTokenizer.from_file(str(vocabulary), mode=mode)
        for ends, mode in ((False, ValidationMode.test), (True, ValidationMode.finetuning))
    }

    def render(messages, tools=None):
        tokenizer = tokenizers[messages[-1]["role"] == "assistant"]
        request = ChatCompletionRequest.from_openai(messages=messages, tools=tools)
        tokens = tokenizer.encode_chat_completion(request).tokens
        return tokenizer.decode(tokens, special_token_policy=SpecialTokenPolicy.KEEP)

    return render


def test_calls_of_a_real_library_are_read(renderer):
    """An answer that the library writes is read back: content, and calls with ids and arguments."""
    template = ChatTemplate.from_renderer(renderer, bos_token="<s>", eos_token="</s>")
    turn = template.prepare([USER], tools=TOOLS)
    arguments = {"city": 'Aix "en" Provence\n', "days": 3}
    function = {"name": "get_weather", "arguments": json.dumps(arguments)}
    calls = [{"id": f"abcdefgh{at}", "type": "function", "function": function} for at in range(2)]
    for answer in ({"content": "", "tool_calls": calls}, {"content": "No [rain]."}):
        written = renderer([USER, {"role": "assistant", **answer}], TOOLS)
        message = turn.parse(written[len(written.partition("[/INST]")[0]) + len("[/INST]") :])

        assert message.content == answer["content"]
        assert [call.id for call in message.tool_calls] == [call["id"] for call in answer.get("tool_calls", ())]
        assert all(json.loads(call.arguments_json) == arguments for call in message.tool_calls)
    assert template.analysis.given_up == ()


def test_the_format_of_a_real_library_passes(renderer):
    """No derived capability fails."""
    report = verify(ChatTemplate.from_renderer(renderer, bos_token="<s>", eos_token="</s>"))

    assert report.failed == ()


_KEPT: list[Any] = []


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a template's source, and the address of a llama-server that renders it."""
    xllamacpp = pytest.importorskip("xllamacpp")
    source = files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("gguf") / "random.gguf"
    write_gguf(path, source, ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>"), (), eos="<|end|>")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.warmup, parameters.n_parallel, parameters.cpuparams.n_threads = False, 1, 1
    parameters.prefill_assistant = False  # The same as `llama-server --no-prefill-assistant`.
    server = xllamacpp.Server(parameters)
    _KEPT.append(server)  # The server runs until the process ends, like the gateway's own.
    return source, server.listening_address


@pytest.mark.engine
def test_an_endpoint_that_renders_is_a_renderer(served):
    """Prompts from llama-server's `/apply-template` have the same format as the template itself."""
    source, address = served

    def write(messages, tools=None, add_generation_prompt=True, enable_thinking=True):
        asked = {"messages": messages, "tools": tools or [], "add_generation_prompt": add_generation_prompt}
        asked["chat_template_kwargs"] = {"enable_thinking": enable_thinking}
        request = Request(f"{address}/apply-template", json.dumps(asked).encode())
        with urlopen(request) as response:
            return json.load(response)["prompt"]

    template = ChatTemplate.from_renderer(write, eos_token="<|end|>")
    turn = template.prepare([USER], tools=TOOLS, enable_thinking=False)

    assert template.format == ChatTemplate.from_string(source, eos_token="<|end|>").format
    assert turn.prompt == write([USER], TOOLS, enable_thinking=False)
    assert [call.name for call in turn.parse(CALLED).tool_calls] == ["get_weather"]
