"""A parser saved as JSON data continues like the original, and other data is rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from cases import cases
from properties.attacks import markers, readings
from properties.families import CONTENT, FAMILIES, JSON_ENVELOPE, TAGGED, Family, Reading
from properties.invariants import check_copies
from splitting import fed

from unrender import ChatTemplate, ParseError, Parser
from unrender.errors import StateError
from unrender.testing import numbered_id

each_reading = pytest.mark.parametrize("reading", readings(), ids=lambda reading: reading.name)
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
CALL = '<tool_call>\n{"name": "now", "arguments": {"city": "Rome"}}\n</tool_call>'
CUTS = 40
"""Number of positions in each output. All kinds occur over all formats."""
ODD = (None, True, -1, 0, 1, 7, 1 << 70, 1.5, "", "x", "{[", [], [1], ["a"], {}, {"kind": "content", "text": "x"})


def broken(reading: Reading) -> str:
    """Return an output of the format with a marker inserted that breaks it."""
    output = max(reading.outputs, key=len)
    random = Random(reading.name)
    at = random.randrange(len(output) + 1)
    return output[:at] + random.choice(markers(reading.format) or ["<"]) + output[at:]


@pytest.mark.few(12)
@each_reading
def test_a_state_goes_on_like_the_original(reading: Reading) -> None:
    """Restored at many positions of a real output and of a broken one, a parser reads the rest like the original."""
    for text in (max(reading.outputs, key=len)[:200], broken(reading)[:200]):
        cuts = Random(text).sample(range(len(text) + 1), min(len(text) + 1, CUTS))
        check_copies(reading.parser, reading.restored, text, cuts)


def test_a_strict_parser_stays_strict() -> None:
    """A restored parser raises at the same position as the original."""
    parser = JSON_ENVELOPE.parser(strict=True)
    parser.feed(CALL + "\n<tool_call>")

    other = JSON_ENVELOPE.restored(parser.state())

    with pytest.raises(ParseError) as raised:
        other.feed("nothing")
    assert raised.value.position == len(CALL) + 1


def test_a_state_is_as_large_as_what_was_fed() -> None:
    """The state contains no other growing data, neither the prompt nor the parsed text."""

    def size(words: int) -> int:
        parser = JSON_ENVELOPE.parser(prompt="word " * words)
        parser.feed("word " * words + "<tool_c")
        return len(json.dumps(parser.state())) - 5 * words

    assert size(10_000) == size(10)


def test_a_state_of_a_turn() -> None:
    """A turn restores its parsers with their call ids, and finished ones stay finished."""
    template = ChatTemplate.from_string("{{ messages[-1].content }}", format=JSON_ENVELOPE.format)
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=[{"name": "now"}])
    parser = turn.parser(ids=numbered_id)
    parser.feed(CALL[:20])

    other = turn.restore(parser.state(), ids=numbered_id)
    for reader in (parser, other):
        fed(reader, [CALL[20:]])

    assert other.message == parser.message
    assert turn.restore(other.state(), ids=numbered_id).message == parser.message
    with pytest.raises(ValueError, match="after finish"):
        turn.restore(other.state(), ids=numbered_id).feed("x")


def test_quoted_tokens_are_kept() -> None:
    """A restored parser still knows which special tokens were quoted."""
    parser = TAGGED.parser(special_tokens=["<tool_call>", "<function="])
    parser.feed("a <tool_call> b <func", special=False)

    other = TAGGED.restored(parser.state())
    other.feed("tion=now>", special=False)
    other.finish()

    assert other.message.content == "a <tool_call> b <function=now>"


def test_text_of_which_nothing_is_known_follows_text_that_waits() -> None:
    """Half a special token in ordinary text is held back, and later text follows it."""
    for rest in ("x", "tion=now>"):
        parser = TAGGED.parser(special_tokens=["<tool_call>", "<function="])
        parser.feed("a <func", special=False)
        fed(parser, [rest])

        assert parser.message.content == f"a <func{rest}"


@cases
def test_what_is_no_state_is_refused(change: Any, message: str) -> None:
    """For a state of an older release or a modified state, the error names the place."""
    state = JSON_ENVELOPE.parser().state()

    with pytest.raises(StateError, match=message):
        JSON_ENVELOPE.restored({**state, **change} if change else change)


def test_a_state_that_its_parser_does_not_accept_is_refused() -> None:
    """A state with more special tokens than a parser supports names the fed text."""
    state = JSON_ENVELOPE.parser().state() | {"special_tokens": list(map(chr, range(5000)))}

    with pytest.raises(StateError, match=r"state\.fed: expected text that the parser accepts"):
        JSON_ENVELOPE.restored(state)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in JSON data."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


def restored(family: Family, state: dict[str, Any], path: tuple[Any, ...], value: Any) -> Parser:
    """Return the parser of a state with one value replaced and a matching digest."""
    forged: dict[str, Any] = json.loads(json.dumps(state))
    at: Any = forged
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    try:
        return family.restored(forged)
    except StateError as error:
        digest = re.search(r"state\.message: expected ([0-9a-f]{32})", str(error))
        if digest is None:
            raise
        return family.restored(forged | {"message": digest[1]})


@pytest.mark.few(10)
@each_family
def test_a_forged_state_is_refused_or_harmless(family: Family) -> None:
    """Even with a valid digest, every value is checked. An accepted state gives a parser that raises on no text."""
    random = Random(family.name)
    output = family.outputs[-1] + family.outputs[0]
    refused = 0
    for at in random.sample(range(len(output)), 12):
        parser = family.parser()
        parser.feed(output[:at])
        state = json.loads(json.dumps(parser.state()))
        # A parser whose state was changed to strict or finished may raise.
        for path in [path for path in places(state) if path[-1] not in ("strict", "finished")]:
            try:
                other = restored(family, state, path, random.choice(ODD))
            except StateError:
                refused += 1
                continue
            fed(other, [output[at:] + CONTENT])
            assert other.message is not None
            assert other.spans is not None
    assert refused > 0
