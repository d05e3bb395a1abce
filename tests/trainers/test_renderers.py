"""Our renderer compared with the handwritten ones in Prime Intellect's `renderers`, on the same templates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from byte_tokenizer import byte_tokenizer
from renderers import create_renderer
from renderers.base import Renderer, ToolCallParseStatus, build_training_sample
from renderers.configs import CustomRendererConfig, _config_class_for
from tables import table
from vendor import vendor_templates

T: Any = table("test_renderers")
TOOLS = T["TOOLS"]
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Paris?"}]
MARKER = re.compile(r"<\|?[\w/|\"=:.-]+\|?>|\]~!?b?\[|\]~b\]|\[e~\[|\[gMASK\]|\[EOS\]")


@dataclass(frozen=True)
class Family:
    """One of their renderers, and the template that it implements."""

    template: str
    eos: str
    bos: str = ""
    more: tuple[str, ...] = ()
    """Tokens that their renderer requires and the template lacks."""
    stop: tuple[str, str] = ("", "")
    """Text that is sampled after content and after calls if their rendering doesn't include it."""
    one_call: bool = False
    id: str = "call_{}abcdefg"


THINK = ("<think>", "</think>")
CALLS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
FAMILIES = {name: Family(**family) for name, family in T["FAMILIES"].items()}
OTHER_PROMPTS = {
    "kimi-k2": "another template of theirs writes tools without spaces",
    "llama-3": "theirs has the day of the template's training, and the template today's",
}
pytestmark = pytest.mark.skipif(
    any(family.template not in vendor_templates() for family in FAMILIES.values()), reason="no vendor templates"
)


@cache
def tokenizer(name: str) -> Any:
    family = FAMILIES[name]
    source = vendor_templates()[family.template].read_text(encoding="utf-8")
    special = {*MARKER.findall(source), *THINK, *CALLS, *family.more, family.eos, *([family.bos] if family.bos else [])}
    made = byte_tokenizer(sorted(special), eos=family.eos, template=source)
    if family.bos:
        made.bos_token = family.bos
    return made


@cache
def renderers(name: str, **settings: Any) -> tuple[Renderer, Renderer]:
    """Return both renderers."""
    custom = CustomRendererConfig(
        import_path="unrender.integrations.renderers.Renderer", thinking_retention="all", **settings
    )
    theirs = _config_class_for(name)(thinking_retention="all", **settings)
    return create_renderer(tokenizer(name), theirs), create_renderer(tokenizer(name), custom)


def answers(name: str) -> dict[str, dict[str, Any]]:
    """Return answers of every kind."""
    family = FAMILIES[name]
    calls = [
        {"type": "function", "id": family.id.format(i), "function": {"name": "weather", "arguments": {"city": city}}}
        for i, city in enumerate(("Paris", "Rome"))
    ]
    plain: dict[str, dict[str, Any]] = {
        "content": {"content": "It rains."},
        "thought": {"reasoning_content": "Hm.", "content": "It rains."},
        "call": {"content": "", "tool_calls": calls[:1]},
        "calls": {"content": "", "tool_calls": calls},
        "content and call": {"content": "Let me see.", "tool_calls": calls[:1]},
        "thought and call": {"reasoning_content": "Hm.", "content": "", "tool_calls": calls[:1]},
    }
    return {
        kind: {"role": "assistant", **said} for kind, said in plain.items() if not (kind == "calls" and family.one_call)
    }


def sampled(name: str, message: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return a prompt, and the ids of a sampled answer with its stop token, according to their renderer."""
    theirs, tokens = renderers(name)[0], tokenizer(name)
    prompt = list(theirs.render(ASKED, tools=TOOLS, add_generation_prompt=True).token_ids)
    whole = theirs.render([*ASKED, message], tools=TOOLS)
    own = zip(whole.token_ids, whole.sampled_mask, whole.message_indices, strict=True)
    completion = [id for id, was_sampled, index in own if was_sampled and index == len(ASKED)]
    stops = theirs.get_stop_token_ids()
    if whole.token_ids[: len(prompt)] == prompt:
        rest = whole.token_ids[len(prompt) :]
        completion = rest[: max((at + 1 for at, id in enumerate(rest) if id in stops), default=len(rest))]
    if tokens.decode(prompt).rstrip().endswith("<think>") and "</think>" not in tokens.decode(completion):
        completion = [*tokens.encode("Hm.\n</think>\n\n", add_special_tokens=False), *completion]
    stop = FAMILIES[name].stop[bool(message.get("tool_calls"))]
    return prompt, [*completion, *([tokens.convert_tokens_to_ids(stop)] if stop else [])]


def following(message: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the messages that may follow an answer."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "name": "weather", "content": "sunny"}
        for call in message.get("tool_calls", ())
    ]
    user = {"role": "user", "content": "And Rome?"}
    return {"user": [user], **({"results": results, "results and user": [*results, user]} if results else {})}


@pytest.mark.parametrize("name", FAMILIES)
def test_bridges_are_theirs(name: str) -> None:
    """Wherever they bridge, ids, their messages and content flags equal theirs. Where they don't, we still bridge."""
    theirs, ours = renderers(name)
    assert isinstance(ours, Renderer)
    for kind, message in answers(name).items():
        prompt, completion = sampled(name, message)
        for said, new in following(message).items():
            wanted, made = (r.bridge_to_next_turn(prompt, completion, new, tools=TOOLS) for r in (theirs, ours))
            assert made is not None, (kind, said)
            assert made.token_ids[: len(prompt) + len(completion)] == prompt + completion
            assert not any(made.sampled_mask)
            if wanted is not None:
                assert tokenizer(name).decode(made.token_ids) == tokenizer(name).decode(wanted.token_ids), (kind, said)
                assert made.token_ids == wanted.token_ids
                assert sum(made.tokens_per_message()) == sum(wanted.tokens_per_message())


@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_read_as_theirs(name: str) -> None:
    """Content, reasoning and calls are the same. Each call has its token range."""
    theirs, ours = renderers(name)
    for kind, message in answers(name).items():
        prompt, completion = sampled(name, message)
        wanted, made = (r.parse_response(completion, tools=TOOLS, prompt_ids=prompt) for r in (theirs, ours))
        assert made.content.strip() == wanted.content.strip(), kind
        assert (made.reasoning_content or "").strip() == (wanted.reasoning_content or "").strip(), kind
        assert [(call.name, call.arguments, call.status) for call in made.tool_calls] == [
            (call.name, call.arguments, call.status) for call in wanted.tool_calls
        ], kind
        assert made.reasoning_complete
        for call in made.tool_calls:
            assert tokenizer(name).decode(completion[slice(*call.token_span)]) == call.raw
            assert call.raw.count("weather") == 1


@pytest.mark.parametrize("name", FAMILIES)
def test_prompts_are_theirs(name: str) -> None:
    """The first prompt has the same ids and message bodies. A template keeps the start of conversations as they list it."""
    theirs, ours = renderers(name)
    wanted, made = (r.render(ASKED, tools=TOOLS, add_generation_prompt=True) for r in (theirs, ours))

    def body_of(rendered: Any, number: int) -> str:
        places = zip(rendered.token_ids, rendered.message_indices, rendered.is_content, strict=True)
        return str(tokenizer(name).decode([id for id, at, body in places if body and at == number]))

    if name not in OTHER_PROMPTS:
        assert tokenizer(name).decode(made.token_ids) == tokenizer(name).decode(wanted.token_ids)
    assert ours.is_prefix_stable is theirs.is_prefix_stable
    assert [body_of(made, number) for number in (0, 1)] == [body_of(wanted, number) for number in (0, 1)]


@pytest.mark.parametrize("name", ["qwen3", "glm-4.5", "minimax-m2", "kimi-k2"])
def test_thoughts_are_retained_as_configured(name: str) -> None:
    """By default, a new question renders the prompt anew if the template would drop reasoning; results don't."""
    config = CustomRendererConfig(import_path="unrender.integrations.renderers.Renderer")
    ours = create_renderer(tokenizer(name), config)
    prompt, completion = sampled(name, answers(name)["thought and call"])
    new = following(answers(name)["thought and call"])
    bridged = {said: ours.bridge_to_next_turn(prompt, completion, new[said], tools=TOOLS) is not None for said in new}

    drops = name != "kimi-k2"
    assert bridged == {"user": not drops, "results": True, "results and user": not drops}


def test_broken_calls_have_a_status() -> None:
    """Each attempted call is listed with its text. Only complete ones are OK."""
    theirs, ours = renderers("qwen3")
    whole = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    texts = {
        whole.replace('{"city": "Paris"}', "{city}"): ToolCallParseStatus.INVALID_JSON,
        whole[:-30]: ToolCallParseStatus.UNCLOSED_BLOCK,
        whole.replace("weather", "time"): ToolCallParseStatus.UNKNOWN_TOOL,
    }
    for text, status in texts.items():
        ids = tokenizer("qwen3").encode(f"Hm.\n{whole}\n{text}<|im_end|>", add_special_tokens=False)
        (first, second) = ours.parse_response(ids, tools=TOOLS).tool_calls
        assert (first.status, second.status) == (ToolCallParseStatus.OK, status)
        assert (first.raw, second.raw.removesuffix("<|im_end|>")) == (whole, text)
        assert theirs.parse_response(ids, tools=TOOLS).tool_calls[0].status == first.status


def test_a_cut_thought_is_incomplete() -> None:
    """Reasoning that the limit cut off is marked as incomplete."""
    for name in ("qwen3", "glm-4.5"):
        theirs, ours = renderers(name)
        ids = tokenizer(name).encode("<think>\nHm. I", add_special_tokens=False)
        wanted, made = (r.parse_response(ids, tools=TOOLS) for r in (theirs, ours))
        assert (made.reasoning_complete, wanted.reasoning_complete) == (False, False)
        assert (made.content, made.reasoning_content.strip()) == ("", wanted.reasoning_content.strip())


@pytest.mark.parametrize("name", ["qwen3", "kimi-k2", "llama-3"])
def test_training_samples_are_masked_as_theirs(name: str) -> None:
    """`build_training_sample` trains on the same tokens if generation prompts are only headers."""
    for kind, message in answers(name).items():
        samples = [build_training_sample(r, [*ASKED, message], tools=TOOLS) for r in renderers(name)]
        wanted, made = ([id for id, own in zip(s.token_ids, s.loss_mask, strict=True) if own] for s in samples)
        assert tokenizer(name).decode(made) == tokenizer(name).decode(wanted), kind
        assert made == wanted


def test_stops_are_theirs() -> None:
    """Our stops include every stop of theirs that the template or the tokenizer contains."""
    assert {
        name: [tokenizer(name).decode([id]) for id in renderers(name)[1].get_stop_token_ids()]
        for name in ("qwen3", "glm-4.5", "minimax-m2")
    } == {
        "qwen3": ["<|im_end|>"],
        "glm-4.5": ["<|user|>", "<|observation|>", "<|endoftext|>"],
        "minimax-m2": ["[e~["],
    }
