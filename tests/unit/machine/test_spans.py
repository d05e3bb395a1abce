"""Spans whose tail has another role after all."""

from __future__ import annotations

import pytest

from unrender.machine.ledger import merged, relabel
from unrender.nodes import Role

M, N, C = Role.MARKER, Role.NAME, Role.CONTENT


@pytest.mark.parametrize(
    ("spans", "start", "expected"),
    [
        ([(M, 3), (N, 6)], 0, [(C, 6)]),
        ([(M, 3), (N, 6)], 3, [(M, 3), (C, 6)]),
        ([(M, 3), (N, 6)], 2, [(M, 2), (C, 6)]),
        ([(M, 3), (N, 6)], 4, [(M, 3), (N, 4), (C, 6)]),
        ([(M, 3), (N, 6), (M, 9)], 4, [(M, 3), (N, 4), (C, 9)]),
        ([(M, 5)], 0, [(C, 5)]),
    ],
)
def test_all_text_from_a_place_on(spans: list[tuple[Role, int]], start: int, expected: list[tuple[Role, int]]) -> None:
    """A span that begins before it is cut there."""
    roles, ends = [role for role, _ in spans], [end for _, end in spans]
    more = relabel(roles, ends, start, ends[-1], C)

    assert list(zip(roles, ends, strict=True)) == expected
    assert more == len(expected) - len(spans)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 3, [(C, 3), (N, 6), (M, 9)]),
        (1, 2, [(M, 1), (C, 2), (M, 3), (N, 6), (M, 9)]),
        (2, 4, [(M, 2), (C, 4), (N, 6), (M, 9)]),
        (-2, 2, [(C, 2), (M, 3), (N, 6), (M, 9)]),
        (3, 9, [(M, 3), (C, 9)]),
    ],
)
def test_text_between_two_places(start: int, end: int, expected: list[tuple[Role, int]]) -> None:
    """What comes after it keeps its role."""
    roles, ends = [M, N, M], [3, 6, 9]

    assert relabel(roles, ends, start, end, C) == len(expected) - 3
    assert list(zip(roles, ends, strict=True)) == expected


def test_neighbours_of_one_role_become_one_span() -> None:
    """It ends where the last of them does."""
    assert merged([(M, 1), (C, 2), (C, 5), (M, 6)]) == [(M, 1), (C, 5), (M, 6)]
    assert merged([]) == []
