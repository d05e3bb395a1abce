"""Entities of XML in text: what is one becomes its character, and an incomplete one at the end is found."""

from __future__ import annotations

import pytest

from unrender.format.entities import ENTITIES, unescape, unescaped_until


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("no entity", "no entity"),
        ("&amp;&lt;&gt;&quot;&apos;", "&<>\"'"),
        ("&#65;&#x41;&#x6a;&#x6A;", "AAjj"),
        ("&#9;&#0000065;", "\tA"),
        ("&#00000065;", "&#00000065;"),
        ("&#x10FFFF;&#1114111;", "\U0010ffff\U0010ffff"),
        ("&#1114112;&#x110000;", "&#1114112;&#x110000;"),
        ("&#0;&#x0;", "&#0;&#x0;"),
        ("&#55295;&#55296;&#57343;&#57344;", "\ud7ff&#55296;&#57343;\ue000"),
        ("&amp;lt;", "&lt;"),
        ("&amp &nbsp; &AMP; &#; &#x; &#xg; &;", "&amp &nbsp; &AMP; &#; &#x; &#xg; &;"),
        ("a & b && c &lt", "a & b && c &lt"),
    ],
)
def test_entities_become_characters(text: str, expected: str) -> None:
    """Names of XML and numbers of characters; everything else is text as it is."""
    assert unescape(text) == expected


@pytest.mark.parametrize(("character", "entities"), ENTITIES.items())
def test_what_templates_write_is_read(character: str, entities: tuple[str, ...]) -> None:
    """Each of the ways in which they escape a character."""
    assert {unescape(entity) for entity in entities} == {character}


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("", 0),
        ("ab", 2),
        ("&", 0),
        ("a&", 1),
        ("a&am", 1),
        ("a&quot", 1),
        ("a&quots", 7),
        ("a&amp;", 6),
        ("a & b", 5),
        ("a&#", 1),
        ("a&#1234567", 1),
        ("a&#12345678", 11),
        ("a&#x", 1),
        ("a&#x10FFFF", 1),
        ("a&#x10FFFF0", 11),
        ("a&#xg", 5),
        ("a&A", 3),
        ("&lt;&g", 4),
        ("x" * 50 + "&#1114111", 50),
        ("&" * 30, 29),
    ],
)
def test_an_entity_that_may_go_on_is_waited_for(text: str, until: int) -> None:
    """From its first character on; what cannot become one is certain."""
    assert unescaped_until(text) == until


def test_every_beginning_of_an_entity_is_waited_for() -> None:
    """Until its semicolon is there."""
    for entity in ("&amp;", "&lt;", "&apos;", "&quot;", "&#1114111;", "&#x10FFFF;"):
        for size in range(1, len(entity)):
            assert unescaped_until("text " + entity[:size]) == 5
        assert unescaped_until("text " + entity) == 5 + len(entity)
