"""Properties of codecs on all axes."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from cases import cases

from unrender.format import Codec, Containers, Strings, Typing, Words
from unrender.format.data import decode
from unrender.values.notations import Lexicon, notation_of, single_quoted

OF_STRINGS = {
    Strings.QUOTED: {"string_open": "<|", "string_close": "|>"},
}
CODECS = [
    Codec(
        strings=strings,
        words=words,
        containers=containers,
        typed_by=Typing.SCHEMA if strings.unquoted else Typing.SYNTAX,
        item_tag="item",
        **OF_STRINGS.get(strings, {}),
    )
    for strings, words, containers in product(Strings, Words, Containers)
]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: f"{codec.strings}-{codec.words}-{codec.containers}")
def test_every_axis_has_words_and_a_sentence(codec):
    """Strings, words and containers each have a description of their own."""
    notation = notation_of(codec)
    strings, words, containers = notation.sentences

    others = [notation_of(other).sentences for other in CODECS]
    assert all((strings, words, containers))
    assert len({other[0] for other in others}) == len(Strings)
    assert len({other[1] for other in others}) == len(Words)
    assert len({other[2] for other in others}) == len(Containers)


@pytest.mark.parametrize("strings", Strings)
def test_a_string_ends_at_its_quotes_or_has_none(strings):
    """A string is written with the grammar's quotes, or with none."""
    [codec] = [c for c in CODECS if c.strings is strings and c.words is Words.JSON and c.containers is Containers.JSON]
    notation = notation_of(codec)
    quotes = {(quotes.open, quotes.close) for quotes in notation.scalars.quotes}
    written = notation.write("x")

    assert (written == "x") == notation.unquoted
    assert notation.unquoted or any(written == f"{opened}x{closed}" for opened, closed in quotes)


def test_json_is_known_as_json():
    """Arguments can be passed on unchanged only if strings, words and containers are JSON."""
    assert [codec for codec in CODECS if notation_of(codec).is_json] == [Codec(item_tag="item")]


def test_losses_name_what_they_cost():
    """Each loss of an export names the affected capability as verification does."""
    concerns = {concern for codec in CODECS for loss in notation_of(codec).losses for concern in loss.concerns}

    assert concerns == {"objects", "arrays", "null"}


def tokens(lexicon: Lexicon) -> dict[str, Any]:
    return {
        "name": lexicon.name,
        "quotes": [[found.open, found.close] for found in lexicon.quotes],
        "words": [lexicon.null, lexicon.true, lexicon.false],
        "separators": [lexicon.item_separator, lexicon.key_separator],
        "flexible": lexicon.flexible,
        "bare_keys": lexicon.bare_keys,
    }


@cases
def test_a_codec_is_known_as_its_row_says(codec, written, known):
    """A row lists four texts as strings, the tokens, the descriptions for the model, and the losses of exports."""
    notation = notation_of(decode(Codec, codec, where="codec"))
    verbatim = notation.verbatim

    assert [notation.write(text) for text in ("a\"b'", "é<&", "", ">")] == written
    assert known == {
        "exported": notation.exported.name,
        "scalars": tokens(notation.scalars),
        "inside": tokens(notation.inside),
        "kind": notation.object_kind,
        "sentences": list(notation.sentences),
        "losses": [[loss.what, *loss.concerns] for loss in notation.losses],
        "verbatim": verbatim and [verbatim.open, verbatim.close, verbatim.own],
        "is_json": notation.is_json,
    }


def test_single_quotes_are_escaped():
    """Double quotes aren't escaped."""
    assert single_quoted('"é\n', ascii_only=False) == "'\"é\\n'"
