"""Values that begin with a quotation mark: quoted where the call goes on after it, else text as it is."""

from __future__ import annotations

import pytest

from unrender.values.code_value import CodeValueScanner
from unrender.values.coercion import STRING
from unrender.values.finder import Finder
from unrender.values.raw import RawScanner
from unrender.values.scanner import Status

END = Finder((")", ", b="))


def scanner(types: frozenset[str] = STRING) -> CodeValueScanner:
    return CodeValueScanner(RawScanner(END, types))


@pytest.mark.parametrize(
    ("text", "final", "expected"),
    [
        ("'a')", False, (3, '"a"', Status.DONE)),
        ('"a" )', False, (3, '"a"', Status.DONE)),
        ("'a', b=1", False, (3, '"a"', Status.DONE)),
        ("'a", False, (2, "", Status.MORE)),
        ("'a", True, (2, '"a', Status.MORE)),
        ("'a'", False, (3, "", Status.MORE)),
        ("'a'  ", False, (3, "", Status.MORE)),
        ("'a', ", False, (3, "", Status.MORE)),
        ("'a'", True, (3, '"a"', Status.DONE)),
        ("'a' is)", False, (6, "\"'a' is\"", Status.DONE)),
        ("'a' is", False, (6, "\"'a' is", Status.MORE)),
        ("'a' is", True, (6, "\"'a' is", Status.MORE)),
        ("'a\nb')", False, (5, '"a\\nb"', Status.DONE)),
    ],
)
def test_what_follows_the_quotation_decides(text: str, final: bool, expected: tuple[int, str, Status]) -> None:
    """From any place of the buffer."""
    assert scanner().scan(text, 0, final=final) == expected
    at, said, status = scanner().scan("~~" + text, 2, final=final)
    assert (at - 2, said, status) == expected


def test_it_waits_over_several_chunks() -> None:
    """Nothing is said before it is decided; then all of it."""
    quoted, raw = scanner(), scanner()
    for made in (quoted, raw):
        assert made.scan("'a", 0, final=False) == (2, "", Status.MORE)
        assert made.scan("b'", 0, final=False) == (2, "", Status.MORE)
        assert (made.held, made.closed, made.settled, made.flow) == (["'a", "b'"], True, False, None)
    assert quoted.scan(")", 0, final=False) == (0, '"ab"', Status.DONE)
    assert raw.scan(" or", 0, final=False) == (3, "\"'ab' or", Status.MORE)
    assert raw.settled
    assert raw.flow is not None

    assert raw.scan(" c)", 0, final=False) == (2, ' c"', Status.DONE)


def test_a_copy_goes_on_alone() -> None:
    """With what it holds."""
    made = scanner()
    made.scan("'a'", 0, final=False)
    other = made.copy()
    assert (other.held, other.said, other.closed, other.settled) == (["'a'"], ['"a"'], True, False)
    assert other.scan(" or", 0, final=False)[1] == "\"'a' or"

    assert (made.settled, made.raw.begun) == (False, False)
    assert made.scan(")", 0, final=False) == (0, '"a"', Status.DONE)
    half = scanner()
    half.scan("'a", 0, final=False)
    fork = half.copy()
    fork.scan("b')", 0, final=False)
    assert half.literal.state != fork.literal.state
