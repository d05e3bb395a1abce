"""Our renderer with every available template. `renderers` supports only a few of them."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

import pytest
from byte_tokenizer import byte_tokenizer
from letters import WEATHER_ALONE as TOOLS
from real_tokenizers import BOS, EOS, special_tokens
from renderers import create_renderer
from renderers.configs import CustomRendererConfig
from vendor import all_vendor_templates

from unrender import ChatTemplate

TEMPLATES = [pytest.param(path, id=name) for name, path in all_vendor_templates().items()]
USER = {"role": "user", "content": "Weather?"}


@pytest.mark.few(20)
@pytest.mark.parametrize("path", TEMPLATES)
def test_prompts_only_grow(path: Path) -> None:
    """Answers with calls are parsed, bridges start with the earlier ids, and no ids raise an error."""
    source = path.read_text(encoding="utf-8")
    special = {*special_tokens(ChatTemplate.from_string(source), source)} - {EOS}
    tokenizer = byte_tokenizer(sorted(special), eos=EOS, template=source)
    tokenizer.bos_token = BOS
    config = CustomRendererConfig(import_path="unrender.integrations.renderers.Renderer", thinking_retention="all")
    ours = create_renderer(tokenizer, config)

    prompt = ours.render([USER], tools=TOOLS, add_generation_prompt=True)
    body = [id for id, is_body in zip(prompt.token_ids, prompt.is_content, strict=True) if is_body]
    assert tokenizer.decode(body) == USER["content"]
    turn = ours._template.prepare_rendered(tokenizer.decode(prompt.token_ids), tools=TOOLS)
    answer = next(text for text in map(turn.sample, count()) if turn.parse(text).tool_calls)
    completion = tokenizer.encode(answer, add_special_tokens=False)
    read = ours.parse_response(completion, tools=TOOLS, prompt_ids=prompt.token_ids)

    assert [(call.name, call.status.value) for call in read.tool_calls] == [("weather", "ok")] * len(
        turn.parse(answer).tool_calls
    )
    results = [
        {"role": "tool", "tool_call_id": call.id, "name": "weather", "content": "sunny"} for call in read.tool_calls
    ]
    for new in (results, [USER], [*results, USER]):
        bridge = ours.bridge_to_next_turn(prompt.token_ids, completion, new, tools=TOOLS)
        if bridge is not None:
            before = [*prompt.token_ids, *completion]
            assert bridge.token_ids[: len(before)] == before
            assert {*bridge.message_indices} - {-1} <= {*range(len(new))}
            lists = (bridge.token_ids, bridge.message_indices, bridge.sampled_mask, bridge.is_content)
            assert len({*map(len, lists)}) == 1
    drawn = random.Random(0)
    for _ in range(5):
        ids = [drawn.choice([drawn.randrange(len(tokenizer)), *completion]) for _ in range(60)]
        assert ours.parse_response(ids, tools=TOOLS, prompt_ids=prompt.token_ids) is not None
        ours.bridge_to_next_turn(prompt.token_ids, ids, results, tools=TOOLS)
