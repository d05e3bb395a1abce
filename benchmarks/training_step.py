"""One step of GRPO on conversations of a real model, on the CPU: `trl` with TRL's trainer, `verl` with verl's agent loop and losses.

python benchmarks/training_step.py trl | verl [--model coder-small] [--samples 2]

Strategy: the model calls a tool, reads its result and answers. The reward is 1 for an answer with the temperature, less a little for its
length, so that samples differ. The step trains a LoRA adapter on exactly the ids that were sampled. The conversations and the trainer's own
log are printed.
"""

# ruff: noqa: PLC0415 -- only one of the trainers is imported

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from real_models import MODELS, model_file
from reporting import arguments

try:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
except ImportError as error:
    sys.exit(f"needs the trainers' packages ({error}): run `python3 scripts/run.py training-step`")

from unrender import Policy
from unrender.conversation.tools import read_request

QUESTION = "Call get_temperature for Bergen, then tell me the temperature there in one sentence."
DEGREES = 12
LONGEST, TURNS = 240, 3
"""Maximum numbers of tokens and of answers in a conversation."""
POLICY = Policy(unknown_tools="call", failed_calls="apart", repair="offered")
"""The model writes its calls in a block of code."""


def get_temperature(city: str) -> dict[str, Any]:
    """Return the temperature in a city.

    Args:
        city: The city's name.
    """
    return {"city": city, "degrees": DEGREES}


def main() -> None:
    """Train for one step, and print what happened."""
    own = {"model": {"choices": MODELS, "default": "coder-small"}, "samples": {"type": int, "default": 2}}
    given = arguments(__doc__, "trainer", **own)
    set_seed(0)
    model, tokenizer = loaded(model_file(given.model))
    TRAINERS[given.trainer](model, tokenizer, given.samples)


def loaded(path: Path) -> tuple[Any, Any]:
    """Return the model with a new LoRA adapter, and its tokenizer, from a GGUF file."""
    import peft

    folder = path.with_suffix("")
    if not folder.exists():  # Reading a GGUF file takes minutes.
        read = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
        AutoTokenizer.from_pretrained(**read).save_pretrained(folder)
        plain = AutoModelForCausalLM.from_pretrained(**read, dtype=torch.float32)
        plain.hf_quantizer = None  # The weights aren't quantized any more.
        del plain.config.quantization_config
        plain.save_pretrained(folder)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"])), tokenizer


def score(answer: str) -> float:
    """Return 1 for an answer with the temperature, less a thousandth for each character."""
    return float(str(DEGREES) in answer) - len(answer) / 1000


def reward(conversation: Sequence[Sequence[Mapping[str, Any]]], ended: Sequence[str], **_: Any) -> list[float]:
    """Print the conversations, and return the score of each last answer."""
    for messages, why in zip(conversation, ended, strict=True):
        print(f"--- ended: {why}")
        for message in messages:
            calls = [call["function"] for call in message.get("tool_calls", ())]
            print(f"{message['role']}: {calls or message['content']!r}")
    return [score(messages[-1]["content"] or "") for messages in conversation]


def with_trl(model: Any, tokenizer: Any, samples: int) -> None:
    """Train with TRL's GRPO trainer."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from unrender.integrations.trl import install, rollout_func

    trainer = GRPOTrainer(
        model=model,
        args=GRPOConfig(
            output_dir=".cache/training-step",
            max_steps=1,
            per_device_train_batch_size=samples,
            num_generations=samples,
            max_completion_length=LONGEST,
            learning_rate=1e-4,
            use_cpu=True,
            report_to=[],
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
        ),
        processing_class=install(tokenizer),
        reward_funcs=reward,
        rollout_func=rollout_func([get_temperature], turns=TURNS, policy=POLICY),
        train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": QUESTION}]}] * samples),
    )
    trainer.train()
    _log(trainer.state.log_history[0])


def with_verl(model: Any, tokenizer: Any, samples: int) -> None:
    """Sample with verl's `ToolAgentLoop`, and train with verl's advantages and policy loss."""
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, get_policy_loss_fn
    from verl.workers.config import ActorConfig

    from unrender.integrations import verl

    verl.install(policy=POLICY)
    outputs = asyncio.run(_verl_conversations(model, tokenizer, samples))
    for output in outputs:
        print("---", repr(tokenizer.decode(output.response_ids)))
    scores = [score(tokenizer.decode(_last_answer(output), skip_special_tokens=True)) for output in outputs]

    longest = max(len(output.response_ids) for output in outputs)
    mask = torch.tensor([_padded(output.response_mask, longest) for output in outputs], dtype=torch.float32)
    old = torch.tensor([_padded(output.response_logprobs, longest) for output in outputs])
    rewards = torch.zeros_like(mask)
    rewards[:, 0] = torch.tensor(scores)
    advantages, _ = compute_grpo_outcome_advantage(rewards, mask, ["question"] * samples)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=1e-4)
    config = ActorConfig(strategy="fsdp", ppo_micro_batch_size_per_gpu=1, rollout_n=samples)
    logprobs = torch.stack([_logprobs(model, output, longest) for output in outputs])
    loss, metrics = get_policy_loss_fn("vanilla")(old, logprobs, advantages, mask, "token-mean", config)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    _log({"loss": loss.item(), "grad_norm": norm.item(), "reward": sum(scores) / samples, **metrics})


async def _verl_conversations(model: Any, tokenizer: Any, samples: int) -> list[Any]:
    """Return the outputs of verl's agent loop, with the model as its engine."""
    from verl_loop import agent_loop

    schema = read_request([get_temperature])[0].plain[0]

    class Engine:
        async def generate(self, *, prompt_ids: list[int], **_: Any) -> Any:
            prompt = torch.tensor([prompt_ids])
            # The saved model has no settings for sampling. Without them, all samples of a group are equal, and the loss is 0.
            sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0}
            limit = LONGEST // TURNS
            made = model.generate(
                prompt, max_new_tokens=limit, output_logits=True, return_dict_in_generate=True, **sampling
            )
            ids = made.sequences[0, len(prompt_ids) :]
            scores = torch.log_softmax(torch.stack(made.logits)[:, 0], -1).gather(1, ids[:, None])[:, 0]
            return SimpleNamespace(
                token_ids=ids.tolist(), log_probs=scores.tolist(), routed_experts=None, num_preempted=0, extra_fields={}
            )

    question = [{"role": "user", "content": QUESTION}]
    outputs = []
    for _ in range(samples):
        limits = {"response_length": LONGEST, "max_assistant_turns": TURNS}
        loop = agent_loop(tokenizer, Engine(), schema, lambda **given: json.dumps(get_temperature(**given)), **limits)
        loop.loop = asyncio.get_running_loop()
        outputs.append(await loop.run({}, raw_prompt=list(question)))
    return outputs


def _last_answer(output: Any) -> list[int]:
    """Return the ids after the last tool result."""
    after = len(output.response_mask) - output.response_mask[::-1].index(0) if 0 in output.response_mask else 0
    return list(output.response_ids[after:])


def _padded(values: Sequence[float], length: int) -> list[float]:
    return [*values, *[0.0] * (length - len(values))]


def _logprobs(model: Any, output: Any, longest: int) -> Any:
    """Return the model's log probabilities of a response, padded."""
    ids = torch.tensor([[*output.prompt_ids, *output.response_ids]])
    count = len(output.response_ids)
    logits = model(ids).logits[0, -count - 1 : -1]
    found = torch.log_softmax(logits, -1).gather(1, ids[0, -count:, None])[:, 0]
    return torch.nn.functional.pad(found, (0, longest - count))


def _log(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        print(f"{name:40} {value:.4g}" if isinstance(value, float) else f"{name:40} {value}")


TRAINERS = {"trl": with_trl, "verl": with_verl}

if __name__ == "__main__":
    main()
