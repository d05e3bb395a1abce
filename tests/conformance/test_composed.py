"""Templates that nobody wrote: parts of the field's conventions joined at random, and what they write is read back.

`pytest -m full` joins more of them.
"""

from __future__ import annotations

import pytest
from composed.composition import drawn, template
from cut_outs import lost

from unrender import ChatTemplate

FEW, MANY = 16, 800


def composed(seed: int) -> ChatTemplate:
    return ChatTemplate.from_string(template(drawn(seed)), bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize("seed", range(FEW))
def test_what_a_composed_template_writes_is_read_back(seed):
    """Each answer means what it was made to say, whole and character by character."""
    assert lost(composed(seed)) == {}, str(drawn(seed))


@pytest.mark.full
def test_what_many_composed_templates_write_is_read_back():
    """The same for many."""
    assert {str(drawn(seed)): list(found) for seed in range(FEW, MANY) if (found := lost(composed(seed)))} == {}


def test_the_same_number_gives_the_same_template():
    """A failure is replayed by its number, and numbers differ."""
    sources = [template(drawn(seed)) for seed in range(FEW)]

    assert sources == [template(drawn(seed)) for seed in range(FEW)]
    assert len(set(sources)) == FEW
