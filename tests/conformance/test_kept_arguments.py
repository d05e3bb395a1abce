"""Arguments are never lost in silence: neither what a template writes of them, nor what a model writes not quite so."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kept_arguments import calls, lost, misread, mutated
from vendor import ROOT, all_vendor_templates

from unrender import ChatTemplate

OWN = {path.stem: path for path in sorted((ROOT / "tests" / "templates").glob("*.jinja"))}
PATHS: dict[str, Path] = {**OWN, **all_vendor_templates()}
CALLS = 6
"""Calls with random values that each template writes."""


@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@pytest.mark.parametrize("name", PATHS)
def test_arguments_are_kept(name: str) -> None:
    """A call is read as it was meant, and of a text that is not quite a call no word is lost without an event that names it."""
    chat, rng = ChatTemplate.from_file(PATHS[name], bos_token="<s>", eos_token="</s>"), random.Random(name)
    written = list(calls(chat, rng, CALLS)) if chat.format.tools.function else []

    assert [found for call in written if (found := misread(chat, call, rng))] == []
    assert [
        (how, found) for call in written for how, text in mutated(call, rng) if (found := lost(chat, call, text, rng))
    ] == []
