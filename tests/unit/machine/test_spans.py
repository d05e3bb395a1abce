"""Spans whose tail has another role after all."""

from __future__ import annotations

import pytest

from unrender.machine.ledger import relabel
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
    relabel(roles, ends, start, C)

    assert list(zip(roles, ends, strict=True)) == expected
