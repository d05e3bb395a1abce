"""Nothing is lost, and every way of feeding gives the same result, for all kinds of Formats and texts."""

from __future__ import annotations

import json
from random import Random

import pytest
from hunting import outputs
from judge.laws import check_judged, same
from judge.outcome import Outcome

from unrender.errors import FormatError
from unrender.explain import joined_events
from unrender.format import Format
from unrender.testing import numbered_id

SEEDS = 12
FORMATS = 8
"""Number of Formats for each seed."""
LONGEST = 120
"""Maximum length of an answer whose prefixes are read, in characters."""
BEGINNINGS = 30
"""Number of prefixes. All kinds occur over all formats."""


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_drawn_texts_obey_the_judge(seed: int) -> None:
    """Texts of random Formats pass the judge; `scripts/hunt.py --only outputs` tries as many as time allows."""
    random = Random(seed)
    for _ in range(FORMATS):
        try:
            reading = outputs.drawn(random)
        except FormatError:
            continue
        for text in outputs.texts(reading, random):
            check_judged(reading.turn, text, random.randrange(1 << 16))


@pytest.mark.few(16)
@pytest.mark.parametrize("name", outputs.names())
def test_any_beginning_of_an_answer_is_read_alike(name: str) -> None:
    """Each prefix of an answer is read the same when fed, passed to `finish`, parsed at once, or restored."""
    reading = outputs.named(name)
    assert reading is not None
    turn = reading.turn
    text = max(reading.outputs, key=len)[:LONGEST]
    parser = turn.parser(ids=numbered_id)
    before, begun = [], 0
    for at in sorted(Random(name).sample(range(len(text) + 1), min(len(text) + 1, BEGINNINGS))):
        before += [event for character in text[begun:at] for event in parser.feed(character)]
        begun = at
        fed, restored, given = (
            parser.copy(),
            turn.restore(parser.state(), ids=numbered_id),
            turn.parser(ids=numbered_id),
        )
        found = [
            Outcome(joined_events([*so_far, *one.finish(text=last)]), one.message, one.spans)
            for one, so_far, last in ((fed, before, ""), (restored, before, ""), (given, [], text[:at]))
        ]
        for way, outcome in zip(("restored", "finish(text)"), found[1:], strict=True):
            same(f"{way} at {at}", found[0], outcome)
        assert turn.parse(text[:at], ids=numbered_id) == found[0].message


def test_a_failure_can_be_replayed() -> None:
    """A stored failure contains everything for a replay: the Format, the prompt, the tools and the text."""
    case = {"prompt": "", "offers": True, "text": "Hi", "seed": 0, "format": Format().to_dict()}

    assert outputs.replay(json.dumps(case)) is None
