"""TRL's own GRPO trainer, with rollouts of many turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from byte_tokenizer import byte_tokenizer
from datasets import Dataset
from letters import CALL, HOSTILE, SOURCE, SPECIAL, WORDS
from tables import table
from trl import GRPOConfig, GRPOTrainer

from unrender.integrations.trl import install, rollout_func

T: Any = table("trainers")


def weather(city: str) -> str:
    """Return the weather.

    Args:
        city: A city.
    """
    assert city == "Paris"
    return HOSTILE


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return install(byte_tokenizer(SPECIAL, eos="<|end|>", pad="<pad>", template=SOURCE))


def trainer(tokenizer: Any, folder: Path, rewards: Any, **settings: Any) -> GRPOTrainer:
    """Return a trainer of a model with random weights."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), **T["LLAMA"])
    longest = settings.pop("longest", 1024)
    arguments = GRPOConfig(output_dir=str(folder), max_completion_length=longest, **T["GRPO"])
    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": "Weather in Paris?"}]}] * 2)
    return GRPOTrainer(
        model=transformers.LlamaForCausalLM(config),
        args=arguments,
        reward_funcs=rewards,
        processing_class=tokenizer,
        train_dataset=rows,
        **settings,
    )


def test_a_step_of_training_on_conversations(tokenizer: Any, tmp_path: Path) -> None:
    """Each sample is one row. The trainer's mask marks sampled tokens, and a tool's text is never an end of turn."""
    asked: list[list[list[int]]] = []
    seen: dict[str, Any] = {}

    def generate(prompts: Any, _: Any) -> Any:
        asked.append([list(prompt) for prompt in prompts])
        ids = tokenizer.encode(CALL if len(asked) == 1 else WORDS, add_special_tokens=False)
        return [ids] * len(prompts), [[-0.5] * len(ids)] * len(prompts)

    def reward(conversation: Any, ended: Any, **_: Any) -> list[float]:
        said = [[(message["role"], message["content"]) for message in messages] for messages in conversation]
        assert said == [[("assistant", ""), ("tool", HOSTILE), ("assistant", "It is sunny.")]] * len(said)
        assert ended == ["answered"] * len(said)
        return [float(number) for number in range(len(said))]

    made = rollout_func([weather], generate=generate)

    def kept(prompts: Any, running: Any) -> Any:
        seen.update(made(prompts, running))
        return dict(seen)

    training = trainer(tokenizer, tmp_path, reward, rollout_func=kept)
    training.train()

    assert len(asked) == 2
    assert all(later[: len(first)] == first for first, later in zip(*asked, strict=True))
    first, ids, mask, logprobs = (seen[name][0] for name in ("prompt_ids", "completion_ids", "env_mask", "logprobs"))
    assert len(ids) == len(mask) == len(logprobs)
    assert tokenizer.decode([id for id, own in zip(ids, mask, strict=True) if own]) == CALL + WORDS
    assert (
        tokenizer.decode([id for id, own in zip(ids, mask, strict=True) if not own])
        == f"<|tool|>{HOSTILE}<|end|><|assistant|>"
    )
    assert [*first, *ids].count(tokenizer.convert_tokens_to_ids("<|end|>")) == 5
    assert training.state.log_history[0]["completions/mean_length"] == sum(mask)


def test_the_trainer_samples(tokenizer: Any, tmp_path: Path) -> None:
    """Without `generate`, the trainer's own generation answers. Random text ends at the maximum completion length."""
    turns: list[int] = []

    def respond(message: Any) -> list[dict[str, Any]]:
        turns.append(len(message.content))
        return [{"role": "user", "content": "Go on."}]

    training = trainer(
        tokenizer,
        tmp_path,
        lambda completions, **_: [0.0] * len(completions),
        longest=60,
        rollout_func=rollout_func(respond=respond, turns=3),
    )
    training.train()

    assert 1 <= len(turns) <= 4
    assert training.state.global_step == 1
