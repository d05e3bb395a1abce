"""A tiny, randomly initialised model generates under llguidance's masks, and the parser reads its output.

Optional: it runs if torch and transformers are installed (`python3 scripts/run.py transformers`).
"""

from __future__ import annotations

import importlib
import json

import jsonschema
import pytest
from answers import PARAMETERS, QUESTION, TOOL_SETS, template_named, template_paths
from engines import END_TOKEN, installed, lark_matcher
from tables import table

from unrender import Malformed

NEEDED = ("torch", "transformers", "llguidance")
LENGTH = 600
EAGER_TO_END = 6.0
"""Bonus for the end token and for characters that close strings, since the untrained model never ends a text."""
CLOSING = b'"}]<'

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not all(map(installed, NEEDED)), reason="torch, transformers and llguidance are needed"),
]


@pytest.mark.parametrize("asked", ["auto", "required"])
@pytest.mark.parametrize("name", [name for name in template_paths() if name in ("json-tags", "json-array", "tag-json")])
def test_a_model_that_knows_nothing_answers_in_the_format(name, asked):
    """Under the mask, even random output is an answer without a malformed part."""
    turn = template_named(name).prepare(QUESTION, tools=TOOL_SETS["one"], tool_choice=asked)

    text = generate(turn.constraint("llguidance").grammar)
    parser = turn.parser()
    events = [*parser.feed(text), *parser.finish()]

    assert [event for event in events if isinstance(event, Malformed)] == []
    for call in parser.message.tool_calls:
        assert call.status == "complete"
        jsonschema.validate(json.loads(call.arguments_json), PARAMETERS[call.name])


def generate(grammar: str) -> str:
    """Return the output of a tiny model, one byte per token. Skips the test if the model doesn't end its answer."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    torch.manual_seed(3)
    ends = {"vocab_size": END_TOKEN + 1, "bos_token_id": END_TOKEN, "eos_token_id": END_TOKEN}
    config = transformers.GPT2Config(n_positions=LENGTH, **ends, **table("test_generation")["MODEL"])
    model = transformers.GPT2LMHeadModel(config).eval()
    matcher = lark_matcher(grammar)
    said = [ord("\n")]
    while len(said) < LENGTH:
        with torch.no_grad():
            scores = model(torch.tensor([said])).logits[0, -1]
        scores[[END_TOKEN, *CLOSING]] += EAGER_TO_END
        allowed = torch.tensor(list(matcher.compute_logit_bias()), dtype=torch.bool)
        token = int(torch.multinomial(torch.softmax(scores.masked_fill(~allowed, -torch.inf), 0), 1))
        if token == END_TOKEN:
            return bytes(said[1:]).decode()
        assert matcher.consume_token(token)
        said.append(token)
    pytest.skip("the model did not come to an end")
