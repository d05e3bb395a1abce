"""Formats derived from Python functions: DeepSeek's encoders, which vLLM's wheel contains.

The files are read without importing vLLM; `python3 scripts/run.py plugins` runs them.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from importing import module_at
from splitting import fed
from tables import table

from unrender import ChatTemplate
from unrender.verify import verify

_VLLM = find_spec("vllm")
if _VLLM is None or not _VLLM.submodule_search_locations:
    pytest.skip(
        "vllm is needed, whose wheel carries the encoders: use `python3 scripts/run.py plugins`",
        allow_module_level=True,
    )
FILES = sorted(Path(_VLLM.submodule_search_locations[0], "tokenizers").glob("deepseek_v*_encoding.py"))

USER = {"role": "user", "content": "Rain?"}
T: Any = table("test_encoders")


def test_there_are_encoders():
    """The newest vLLM still includes the encoders."""
    assert len(FILES) >= 3


@pytest.fixture(scope="module", params=FILES, ids=lambda file: file.stem)
def encoder(request) -> Any:
    return module_at(request.param)


@pytest.fixture(scope="module")
def write(encoder):
    """Return the renderer for `ChatTemplate.from_renderer` that calls this encoder."""

    def write(messages, tools=None, thinking=False):
        # The encoders have different names for reasoning.
        messages = [{"reasoning": message.get("reasoning_content"), **message} for message in messages]
        if tools:
            described = messages.pop(0) if messages[0]["role"] == "system" else {"role": "system"}
            messages.insert(0, described | {"tools": tools})
        return encoder.encode_messages(messages, thinking_mode="thinking" if thinking else "chat")

    return write


@pytest.fixture(scope="module")
def template(encoder, write):
    return ChatTemplate.from_renderer(write, bos_token=encoder.bos_token, eos_token=encoder.eos_token)


@pytest.mark.parametrize("said", T["ANSWERS"].values(), ids=T["ANSWERS"])
def test_what_an_encoder_writes_is_read_back(said, template, write):
    """Reasoning, content, and calls with typed arguments are read back, whole and character by character."""
    turn = template.prepare([USER], tools=T["TOOLS"], thinking=True)
    written = write([USER, {"role": "assistant", **said}], T["TOOLS"], thinking=True)
    assert written.startswith(turn.prompt)
    answer = written.removeprefix(turn.prompt)
    parser = turn.parser()
    fed(parser, answer)

    for message in (turn.parse(answer), parser.message):
        assert (message.reasoning, message.content) == (said.get("reasoning_content", ""), said["content"])
        calls = [[call.name, call.arguments] for call in message.tool_calls]
        assert calls == (T["MADE"] if "tool_calls" in said else [])


def test_the_format_of_an_encoder_passes(template):
    """Analysis drops nothing, no capability fails, and the switch for thinking is found."""
    report = verify(template)

    assert template.analysis.given_up == ()
    assert report.failed == ()
    assert template.capabilities.thinking_on == (("thinking", True),)
