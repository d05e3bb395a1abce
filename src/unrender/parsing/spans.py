"""Changes the role of the last spans, or leaves them out, when their meaning becomes known only later."""

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


def up_to(spans: list[tuple[Role, int]], end: int) -> list[tuple[Role, int]]:
    """Return the roles and ends of spans, cut at the position `end`."""
    cut = next((i for i, (_, stop) in enumerate(spans) if stop > end), None)
    if cut is None:
        return spans
    kept = spans[:cut]
    return kept if kept and kept[-1][1] == end else [*kept, (spans[cut][0], end)]
