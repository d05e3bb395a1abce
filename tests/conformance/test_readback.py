"""What a template writes is read back: answers cut out of rendered conversations, of many shapes, after many kinds of turns."""

from __future__ import annotations

from pathlib import Path

import pytest
from cut_outs import lost
from vendor import ROOT, all_vendor_templates

from unrender import ChatTemplate

OWN = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
PATHS: dict[str, Path] = {**OWN, **all_vendor_templates()}
LOSSY = {
    "CohereForAI-c4ai-command-r-plus-tool_use": "an instruction of the system's follows each answer",
    "NVIDIA-Nemotron-Nano-v2": "the last answer is written inside open reasoning, to be continued",
    "openai-gpt-oss-120b": "content beside calls is written as reasoning",
    "Apriel-1.6-15b-Thinker-fixed": "only the words of the prompt tell reasoning, and the history has none",
    "delimiter": "as above",
}
"""Templates of which some renderings cannot be read back, and why."""


@pytest.mark.parametrize("name", PATHS)
def test_what_a_template_writes_is_read_back(name):
    """Each answer means what it was made to say, whole and character by character; what is lossy is lost indeed."""
    found = lost(ChatTemplate.from_file(PATHS[name], bos_token="<s>", eos_token="</s>"))

    assert bool(found) == (name in LOSSY), found
