"""How one argument value is written."""

from __future__ import annotations

import pytest

from unrender.format.codec import Codec, Containers, Strings, Typing, Words


@pytest.mark.parametrize(
    ("strings", "unquoted"),
    [
        (Strings.JSON, False),
        (Strings.PYTHON, False),
        (Strings.RAW, True),
        (Strings.QUOTED, False),
        (Strings.SINGLE, False),
    ],
)
def test_a_marker_ends_strings_without_quotes(strings: Strings, unquoted: bool) -> None:
    """Raw strings have none."""
    assert strings.unquoted is unquoted


def test_every_way_to_write_strings_is_in_the_table_above() -> None:
    """A new one must say whether it has quotes."""
    assert len(Strings) == 5


def test_a_codec_writes_json_if_nothing_is_said() -> None:
    """On one line, with the separators of `json.dumps`, types told by quotes."""
    codec = Codec()

    assert (codec.strings, codec.words, codec.containers) == (Strings.JSON, Words.JSON, Containers.JSON)
    assert codec.typed_by is Typing.SYNTAX
    assert (codec.item_separator, codec.key_separator, codec.indent) == (", ", ": ", 0)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Strings, ["json", "python", "raw", "quoted", "single"]),
        (Words, ["json", "python", "python_null"]),
        (Containers, ["json", "python", "bare", "xml"]),
        (Typing, ["syntax", "schema", "attribute"]),
    ],
)
def test_the_words_of_saved_formats_stay(kind: type[Strings], words: list[str]) -> None:
    """Formats are saved with these words: a change of one is a new version."""
    assert [item.value for item in kind] == words
