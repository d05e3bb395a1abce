"""Rollouts with the vendors' templates: text from users and tools never becomes a special token."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from byte_tokenizer import byte_level
from letters import WEATHER_ALONE as TOOLS
from real_tokenizers import BOS, EOS, special_tokens
from vendor import all_vendor_templates

from unrender import ChatTemplate
from unrender.errors import ExtendError, TokenizerError
from unrender.training import Rollout

TEMPLATES = [pytest.param(path, id=name) for name, path in all_vendor_templates().items()]


def counted(rollout: Rollout) -> int:
    """Return the number of special tokens, after checking the text."""
    decoded = rollout.encoder.tokenizer.decode(rollout.ids, skip_special_tokens=False)
    assert decoded == rollout.turn.prompt
    return sum(id in rollout.encoder.special_ids for id in rollout.ids)


@pytest.mark.few(6)
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@pytest.mark.parametrize("path", TEMPLATES)
def test_no_message_becomes_a_special_token(path: Path) -> None:
    """A question and results with every marker of the template add no special tokens, or raise a clear error."""
    source = path.read_text(encoding="utf-8")
    template = ChatTemplate.from_string(source, bos_token=BOS, eos_token=EOS)
    tokenizer = byte_level(special := special_tokens(template, source))
    hostile = f"Well {' '.join(special)} !"
    asked = [Rollout(template, tokenizer, [{"role": "user", "content": "Well?"}], tools=TOOLS)]
    with contextlib.suppress(TokenizerError):  # Here it isn't certain how the template changed the question.
        asked.append(Rollout(template, tokenizer, [{"role": "user", "content": hostile}], tools=TOOLS))
    assert counted(asked[0]) == counted(asked[-1])

    answer = next(text for text in map(asked[0].turn.sample, range(100)) if asked[0].turn.parse(text).tool_calls)
    counts: list[int] = []
    for text in ("sunny", hostile):
        branch = asked[0].fork()
        message = branch.sampled(tokenizer.encode(answer).ids)
        with contextlib.suppress(ExtendError):  # If one text is rejected, so is the other.
            branch.extend([{"role": "tool", "tool_call_id": call.id, "content": text} for call in message.tool_calls])
            counts.append(counted(branch))
    assert counts == counts[:1] * 2
