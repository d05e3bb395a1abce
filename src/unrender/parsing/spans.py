"""Changes the role of the last spans, when their meaning becomes known only later."""

from __future__ import annotations

from unrender.grammar.nodes import Role


def relabel(roles: list[Role], ends: list[int], start: int, role: Role) -> None:
    """Give all text from `start` to the last span's end the role `role`."""
    end = ends[-1]
    while ends and ends[-1] > start:
        last = roles.pop()
        ends.pop()
    if start > (ends[-1] if ends else 0):
        roles.append(last)
        ends.append(start)
    roles.append(role)
    ends.append(end)
