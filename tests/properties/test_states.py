"""A parser saved as JSON data continues like the original, and other data is rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from properties.attacks import Reading, markers, readings
from properties.families import CONTENT, FAMILIES, JSON_ENVELOPE, REQUEST, TAGGED, Family
from splitting import fed, merged

from unrender import ChatTemplate, ParseError, Parser
from unrender.errors import StateError
from unrender.testing import numbered_id

each_reading = pytest.mark.parametrize("reading", readings(), ids=lambda reading: reading.name)
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
CALL = '<tool_call>\n{"name": "now", "arguments": {"city": "Rome"}}\n</tool_call>'
CUTS = 40
"""Number of positions in each output. All kinds occur over all formats."""
ODD = (None, True, -1, 0, 1, 7, 1 << 70, 1.5, "", "x", "{[", [], [1], ["a"], {}, {"kind": "content", "text": "x"})


def moved(parser: Parser, reading: Reading) -> Parser:
    """Return the parser restored from the JSON text of its state."""
    return Parser._restored(reading.format, reading.request, json.loads(json.dumps(parser.state())), ids=numbered_id)


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
        whole = reading.parser()
        events = [*whole.feed(text), *whole.finish()]
        parser = reading.parser()
        before = []
        cuts = Random(text).sample(range(len(text) + 1), min(len(text) + 1, CUTS))
        for at, character in enumerate([*text, ""]):
            if at not in cuts:
                before += parser.feed(character)
                continue
            other = moved(parser, reading)
            assert other.message == parser.message
            assert other.spans == parser.spans
            rest = [*other.feed(text[at:]), *other.finish()]
            assert merged([*before, *rest]) == merged(events)
            assert (other.message, other.spans) == (whole.message, whole.spans)
            before += parser.feed(character)


def test_a_strict_parser_stays_strict() -> None:
    """A restored parser raises at the same position as the original."""
    parser = Parser(JSON_ENVELOPE.format, REQUEST, strict=True)
    parser.feed(CALL + "\n<tool_call>")

    other = Parser._restored(JSON_ENVELOPE.format, REQUEST, parser.state())

    with pytest.raises(ParseError) as raised:
        other.feed("nothing")
    assert raised.value.position == len(CALL) + 1


def test_a_state_is_as_large_as_what_was_fed() -> None:
    """The state contains no other growing data, neither the prompt nor the parsed text."""

    def size(words: int) -> int:
        parser = Parser(JSON_ENVELOPE.format, REQUEST, prompt="word " * words)
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
    parser = Parser(TAGGED.format, REQUEST, special_tokens=["<tool_call>", "<function="])
    parser.feed("a <tool_call> b <func", special=False)

    other = Parser._restored(TAGGED.format, REQUEST, json.loads(json.dumps(parser.state())), ids=numbered_id)
    other.feed("tion=now>", special=False)
    other.finish()

    assert other.message.content == "a <tool_call> b <function=now>"


def test_text_of_which_nothing_is_known_follows_text_that_waits() -> None:
    """Half a special token in ordinary text is held back, and later text follows it."""
    for rest in ("x", "tion=now>"):
        parser = Parser(TAGGED.format, REQUEST, special_tokens=["<tool_call>", "<function="])
        parser.feed("a <func", special=False)
        fed(parser, [rest])

        assert parser.message.content == f"a <func{rest}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: [], "state: expected an object, found list"),
        (lambda state: state | {"version": 3}, r"state\.version: expected 7, the version of this release, found 3"),
        (lambda state: state | {"version": "4"}, r"state\.version: expected 7, .* found '4'"),
        (lambda state: state | {"finished": 1}, r"state\.finished: expected true or false, found 1"),
        (lambda state: state | {"ids": "x"}, r"state\.ids: expected a list, found 'x'"),
        (lambda state: state | {"known_ids": [1]}, r"state\.known_ids: expected a list of strings, found \[1\]"),
        (lambda state: state | {"policy": None}, r"state\.policy: expected an object, found NoneType"),
        (lambda state: state | {"policy": {}}, r"state\.policy\.unknown_tools: expected a string, found 'nothing'"),
        (
            lambda state: state | {"fed": [{"kind": "x", "text": ""}]},
            r"state\.fed\[0\]\.kind: expected one of special, ",
        ),
        (lambda state: state | {"fed": [{"kind": "unknown", "text": "x"}]}, r"state\.message: expected [0-9a-f]{32}, "),
        (
            lambda state: state | {"special_tokens": list(map(chr, range(5000)))},
            r"state\.fed: expected text that the parser accepts",
        ),
        (lambda state: {}, r"state\.version: expected 7, .* found 'nothing'"),
    ],
)
def test_what_is_no_state_is_refused(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    """For a state of an older release or a modified state, the error names the place."""
    state = Parser(JSON_ENVELOPE.format, REQUEST).state()

    with pytest.raises(StateError, match=message):
        Parser._restored(JSON_ENVELOPE.format, REQUEST, change(state))


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
        return Parser._restored(family.format, REQUEST, forged, ids=numbered_id)
    except StateError as error:
        digest = re.search(r"state\.message: expected ([0-9a-f]{32})", str(error))
        if digest is None:
            raise
        return Parser._restored(family.format, REQUEST, forged | {"message": digest[1]}, ids=numbered_id)


@pytest.mark.few(10)
@each_family
def test_a_forged_state_is_refused_or_harmless(family: Family) -> None:
    """Even with a valid digest, every value is checked. An accepted state gives a parser that raises on no text."""
    random = Random(family.name)
    output = family.outputs[-1] + family.outputs[0]
    refused = 0
    for at in random.sample(range(len(output)), 12):
        parser = Parser(family.format, REQUEST, prompt=family.prompt, ids=numbered_id)
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
