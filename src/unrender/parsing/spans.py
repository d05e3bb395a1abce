"""Spans whose meaning is known later than they are: roles and ends in, the same with another role for their tail out."""

from __future__ import annotations

from unrender.grammar.nodes import Role


def relabel(roles: list[Role], ends: list[int], start: int, role: Role) -> None:
    """Give all text from `start` on, as far as there are spans, the role `role`."""
    end = ends[-1]
    while ends and ends[-1] > start:
        last = roles.pop()
        ends.pop()
    if start > (ends[-1] if ends else 0):
        roles.append(last)
        ends.append(start)
    roles.append(role)
    ends.append(end)
