"""Templates that nobody wrote: parts of the field's conventions joined at random, and what they write is read back.

`pytest -m full` joins more of them.
"""

from __future__ import annotations

import pytest
from composed.composition import drawn, template
from cut_outs import lost

from unrender import ChatTemplate, FormatWarning

FEW, MANY = 16, 800
UNREAD = {"numbered lines": "only a number and a tool's name show a call"}
"""Calls that no Format describes yet, and why."""


def composed(seed: int) -> ChatTemplate:
    return ChatTemplate.from_string(template(drawn(seed)), bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("seed", range(FEW))
def test_what_a_composed_template_writes_is_read_back(seed):
    """Each answer means what it was made to say, whole and character by character."""
    assert lost(composed(seed)) == {}, str(drawn(seed))


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::unrender.FormatWarning")
def test_what_many_composed_templates_write_is_read_back():
    """The same for many."""
    seeds = [seed for seed in range(FEW, MANY) if drawn(seed).calls not in UNREAD]

    assert {str(drawn(seed)): list(found) for seed in seeds if (found := lost(composed(seed)))} == {}


@pytest.mark.parametrize("calls", UNREAD)
def test_what_is_not_read_is_said(calls):
    """A template of such calls says so in its analysis, and reads everything else."""
    seed = next(seed for seed in range(MANY) if drawn(seed).calls == calls)
    with pytest.warns(FormatWarning) as warned:
        found = lost(composed(seed))

    assert any(str(warning.message).startswith("calls are read: is not claimed") for warning in warned)
    assert [shape for shape in found if "call" not in shape and "all" not in shape and "arguments" not in shape] == []


def test_the_same_number_gives_the_same_template():
    """A failure is replayed by its number, and numbers differ."""
    sources = [template(drawn(seed)) for seed in range(FEW)]

    assert sources == [template(drawn(seed)) for seed in range(FEW)]
    assert len(set(sources)) == FEW
