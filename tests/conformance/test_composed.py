"""Randomly composed templates: their answers are read back.

`pytest -m full` composes more of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from answers import BEFORE, lost, own_words, refused
from composed.composition import drawn, template
from composed.parts import FRAMES
from engines import installed

from unrender import ChatTemplate
from unrender.errors import FormatWarning

FEW, MANY = 16, 800
UNREAD = {"numbered lines": "only a number and a tool's name show a call"}
"""Calls that no Format describes yet, with the reason."""
ODD = {
    390: "the header ends in EOS, and is not a marker where the prompt with tools is another one",
    486: "nothing but the header's word `to=` shows a call, and only calls show it",
    495: "the header's space is in history alone, and the prompt with tools is another one",
}
"""Single templates that aren't parsed or generated correctly."""
CUT = (16, 123, 187, 247, 402, 711)
"""Templates whose own answers were once rejected by the grammars."""


def composed(seed: int) -> ChatTemplate:
    return ChatTemplate.from_string(template(drawn(seed)), bos_token="<s>", eos_token="</s>")


def ends_in_eos(seed: int) -> bool:
    """Return whether EOS ends reasoning as a message of its own. An engine never continues to such an answer."""
    recipe = drawn(seed)
    ended = "eos_token" in FRAMES[recipe.frame].answer[1] or recipe.oddity == "eos after the end"
    return recipe.thoughts == "a message of its own" and ended


def read_ones(seeds: Iterable[int]) -> list[int]:
    return [seed for seed in seeds if drawn(seed).calls not in UNREAD and seed not in ODD and not ends_in_eos(seed)]


def refused_by(seed: int) -> list[tuple[str, str, str]]:
    """Return the template's own answers that a dialect rejects."""
    return refused(own_words(composed(seed), turns={place: BEFORE[place] for place in ("first", "after a tool")}))


@pytest.mark.few(6)
@pytest.mark.parametrize("seed", range(FEW))
def test_what_a_composed_template_writes_is_read_back(seed):
    """Each answer is parsed into its intended message, whole and character by character."""
    assert lost(composed(seed)) == {}, str(drawn(seed))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
def test_what_many_composed_templates_write_is_read_back():
    """Each answer of many composed templates is parsed into its intended message."""
    seeds = read_ones(range(FEW, MANY))

    assert {f"{seed}: {drawn(seed)}": list(found) for seed in seeds if (found := lost(composed(seed)))} == {}


@pytest.mark.engine
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
@pytest.mark.parametrize("seed", CUT)
def test_grammars_accept_what_a_composed_template_writes(seed):
    """Every dialect accepts the template's own answers, for all tools and choices."""
    assert refused_by(seed) == [], str(drawn(seed))


@pytest.mark.full
@pytest.mark.engine
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
def test_grammars_accept_what_many_composed_templates_write():
    """Every dialect accepts the answers of many composed templates."""
    found = {f"{seed}: {drawn(seed)}": refused_by(seed) for seed in read_ones(range(MANY))}

    assert {name: answers for name, answers in found.items() if answers} == {}


@pytest.mark.parametrize("calls", UNREAD)
def test_what_is_not_read_is_said(calls):
    """If calls can't be parsed, the analysis reports it, and everything else is parsed."""
    seed = next(seed for seed in range(MANY) if drawn(seed).calls == calls)
    with pytest.warns(FormatWarning) as warned:
        found = lost(composed(seed))

    assert any(str(warning.message).startswith("calls are read: is not claimed") for warning in warned)
    assert [shape for shape in found if "call" not in shape and "all" not in shape and "arguments" not in shape] == []


def test_the_same_number_gives_the_same_template():
    """A number reproduces a template, and different numbers give different templates."""
    sources = [template(drawn(seed)) for seed in range(FEW)]

    assert sources == [template(drawn(seed)) for seed in range(FEW)]
    assert len(set(sources)) == FEW
