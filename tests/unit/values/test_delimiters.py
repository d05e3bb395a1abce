"""Where a verbatim string ends, whose delimiter may be in its text."""

from __future__ import annotations

import pytest

from unrender.values.atoms import closing, closing_in_code


@pytest.mark.parametrize(
    ("text", "ends", "end"),
    [
        ('it"', (), 2),
        ('it", more', (), 2),
        ('a "b" c", d', (), 7),
        ('a" /', (), 4),
        ('a" /', ("/",), 1),
    ],
)
def test_a_quotation_mark_closes_where_a_value_can_end(text, ends, end):
    """Before a separator, a bracket, what follows the value, or nothing at all; the length where it does not."""
    found = closing(text, 0, '"', ends, final=True)

    assert found == end or (end == len(text) and found == -len(text) - 1)


def test_a_delimiter_of_more_characters_closes_at_once():
    """What may be its beginning is not certain."""
    assert closing("ab|>, c|>", 0, "|>", (), final=False) == 2
    assert closing("ab|", 0, "|>", (), final=False) == -3


@pytest.mark.parametrize(
    ("blank", "final", "end"), [(0, False, -2), (255, False, -2), (256, False, -259), (255, True, 1), (256, True, -259)]
)
def test_white_space_after_a_quotation_mark_is_waited_out(blank, final, end):
    """As long as a value may end after it: 255 characters."""
    assert closing('a"' + " " * blank, 0, '"', (), final=final) == end


@pytest.mark.parametrize(("blank", "end"), [(255, 1), (256, -260)])
@pytest.mark.parametrize("sign", [",", ":", ")", "]", "}"])
def test_a_sign_that_comes_too_late_closes_nothing(blank, end, sign):
    """Between the quotation mark and the sign there is at most so much white space."""
    assert closing('a"' + " " * blank + sign, 0, '"', (), final=True) == end


def test_the_first_quotation_mark_that_closes_counts():
    """From where the string begins, not before it, and no later one."""
    for text in ('a", b="c")', 'a" b", b="c")'):
        end = text.index('",')
        assert closing(text, 0, '"', (), final=False) == end
        assert closing_in_code(text, 0, '"', final=False) == end
        assert closing_in_code('",x=' + text, 4, '"', final=False) == 4 + end
        assert closing('",x=' + text, 4, '"', (), final=False) == 4 + end
    assert closing("a|>b|>", 0, "|>", (), final=False) == 1
    assert closing("a|>b|>", 2, "|>", (), final=False) == 4
    assert closing("|", 0, "|>>", (), final=False) == -1
    assert closing("a|>", 0, "|>>", (), final=False) == -2
    assert closing("|>", 1, "|>>", (), final=False) == -3


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ('it")', 2),
        ('it", key=1)', 2),
        ('it" , key = 1)', 2),
        ('it",)', 2),
        ('f("x")", n=1)', 6),
        ('say "no", then", n=1)', 14),
    ],
)
def test_an_argument_in_code_ends_where_the_call_goes_on(text, end):
    """With a bracket that no quotation mark follows, or with the next argument's name."""
    assert closing_in_code(text, 0, '"', final=True) == end


@pytest.mark.parametrize("text", ['it"', 'it" ', 'it",', 'it", ke', 'it", key ', 'it")'])
def test_an_argument_in_code_waits_for_what_follows(text):
    """Until it is known, text is certain up to the quotation mark; the end of the output decides."""
    assert closing_in_code(text, 0, '"', final=False) == -3
    assert closing_in_code('it"', 0, '"', final=True) == 2
    assert closing_in_code('it" no', 0, '"', final=False) == -7
