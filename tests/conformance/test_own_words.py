"""Its own words: each dialect accepts what the template writes for the same request, in every shape that it renders.

Prompts of first and later turns, with and without tools, thinking on and off, and every `tool_choice` that allows the answer.
"""

from __future__ import annotations

import pytest
from answers import all_template_paths, template_named, template_paths
from cut_outs import ANSWERS, BEFORE
from own_words import own_words, refused

pytestmark = pytest.mark.engine

UNWRITTEN = {
    "NVIDIA-Nemotron-Nano-v2": "the last answer is written as one to be continued, inside the reasoning that the prompt opens",
    "call-words": "commas and brackets in a value that nothing closes: the grammar keeps them out",
    "vllm-toolace": "the same",
}
"""Templates of which some renderings are not accepted, and why."""
PACKAGED = template_paths()
FEW = ["content", "calls", "no arguments", "all"]


@pytest.mark.parametrize("name", all_template_paths())
def test_what_the_template_writes_first_is_accepted(name: str) -> None:
    """A few shapes, after a question; for templates that no package has, all of them."""
    shapes = {shape: ANSWERS[shape] for shape in (FEW if name in PACKAGED else ANSWERS)}

    found = refused(own_words(template_named(name), turns={"first": BEFORE["first"]}, shapes=shapes))

    assert bool(found) == (name in UNWRITTEN), found


@pytest.mark.full
@pytest.mark.parametrize("name", all_template_paths())
def test_what_the_template_writes_is_accepted_everywhere(name: str) -> None:
    """All shapes after all turns."""
    found = refused(own_words(template_named(name)))

    assert bool(found) == (name in UNWRITTEN), found
