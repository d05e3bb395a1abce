"""Prompts that extend the previous prompt and answer, and prompts that don't."""

from __future__ import annotations

from cases import cases
from unit.verify.conftest import changed, sound

from unrender.verify.judge import check_history

KINDS = [
    "content, then a question",
    "reasoning, then a question",
    "call, then its result",
    "reasoning and call, then its result",
]


def told(candidate):
    return [str(finding).removeprefix(f"{finding.capability}: ") for finding in check_history(candidate)]


def test_a_template_that_keeps_all_it_wrote():
    """Prompt and answer are both unchanged after each kind of turn."""
    assert [finding.capability for finding in check_history(sound())] == KINDS
    assert told(sound()) == ["passed (2 of 2)"] * 4


@cases
def test_a_template_that_changes_what_it_wrote(old, new, verdicts):
    """Text that is missing from the next prompt fails. A conversation that the template rejects is skipped."""
    assert told(changed(old, new)) == verdicts


def test_the_counterexample_shows_both_prompts():
    """The counterexample has the original text and its replacement."""
    candidate = changed("{%- if message.reasoning_content %}", "{%- if message.reasoning_content and loop.last %}")
    example = list(check_history(candidate))[1].counterexample

    assert example.answer == "<think>Animals.</think>They are striped.<|end|>"
    assert example.expected.endswith("<|assistant|><think>Animals.</think>They are striped.<|end|>")
    assert example.found.startswith("<|user|>What about zebra crossings?<|end|><|assistant|>They are striped.<|end|>")
    assert len(example.found) == len(example.expected)
    assert example.chunking == "whole"
