"""Objects that have a key twice, in any notation."""

from __future__ import annotations

import pytest

from unrender.dialects.sample import repeats_a_key, sample_text
from unrender.nodes import Grammar, Literal, Repeat


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ('{"a": 1, "b": 2}', False),
        ('{"a": 1, "b": 2, "a": 3}', True),
        ("{'': True, \"\": None}", True),
        ('{a:1,b:{a:1,c:[{"a": 2}]}}', False),
        ('it\'s {"x": [{"a": 1, "b": "}", "a": 2}]}', True),
        ('{"a": "a: 1, a: 2"}', False),
        ("no object: a: b, a: c", False),
        ("{" * 10_000, False),
    ],
)
def test_a_key_that_comes_twice_in_one_object(text: str, repeats: bool) -> None:
    """Keys of objects inside are others, and so is what strings hold."""
    assert repeats_a_key(text) is repeats


def test_such_a_text_is_drawn_again() -> None:
    """As long as there is another one; in the end the text is what the grammar gives."""
    one_or_two = Grammar(Repeat(Literal('{"a": 1'), 1, 1, None))
    doubled = Grammar(Literal('{"a": 1, "a": 2}'))

    assert sample_text(one_or_two, 1) == '{"a": 1'
    assert sample_text(doubled, 1) == '{"a": 1, "a": 2}'
