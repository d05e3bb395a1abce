"""What a template writes is read back: answers cut out of rendered conversations, of many shapes, after many kinds of turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from cut_outs import lost
from vendor import ROOT, all_vendor_templates

from unrender import ChatTemplate

OWN = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
PATHS: dict[str, Path] = {**OWN, **all_vendor_templates()}
_ALONE = {"content", "lines", "content and call"}
_REASONED = {"reasoning", "reasoning and call", "all"}
LOSSY: dict[str, tuple[set[str], str]] = {
    "CohereForAI-c4ai-command-r-plus-tool_use": (
        {*_ALONE, "call", "calls", "same calls", "no arguments"},
        "an instruction of the system's follows each answer, and looks like a part of it",
    ),
    "NVIDIA-Nemotron-Nano-v2": (
        _ALONE,
        "the last answer is written after the prompt's own `<think>` without a closer, as an answer that goes on",
    ),
    "openai-gpt-oss-120b": ({"content and call"}, "content beside calls is written in the channel of reasoning"),
    "Apriel-1.6-15b-Thinker-fixed": (
        _REASONED,
        "only the words of the prompt tell reasoning, and the history has none",
    ),
    "delimiter": ({"reasoning"}, "as above"),
}
"""Templates of which some shapes of answers cannot be read back: which, and why no reader could."""


@pytest.mark.parametrize("name", PATHS)
def test_what_a_template_writes_is_read_back(name):
    """Each answer means what it was made to say, whole and character by character; what is lossy is lost indeed."""
    found = lost(ChatTemplate.from_file(PATHS[name], bos_token="<s>", eos_token="</s>"))

    expected, _ = LOSSY.get(name, (set(), ""))
    assert {label.partition(",")[0] for label in found} == expected, found
