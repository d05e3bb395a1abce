"""Gives each character that is consumed its role, and makes an event of what is text.

Rules: white space between calls is carried: it is content if more content follows, and layout if none does; so it is not
final before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from unrender.limits import MAX_NAME
from unrender.machine.buffer import Buffer
from unrender.machine.events import ContentText, ReasoningText
from unrender.machine.handmade.tagged import IN_CALLS, Note
from unrender.nodes import Role

_VALUES = frozenset((Role.ARGUMENT, Role.VALUE))


class Ledger(Buffer):
    """A reading that accounts for all text that it consumes."""

    base: int
    lists = (*Buffer.lists, "carried", "carried_spans")
    __slots__ = ("answered", "carried", "carried_spans", "name", "roles", "tag")

    def __init__(self, program: tuple[Any, ...], roles: dict[Role, Role]) -> None:
        super().__init__(program)
        self.roles: dict[Role, Role] = roles
        self.carried: list[str] = []
        """White space between calls: content when more content follows them."""
        self.carried_spans: list[int] = []
        self.answered: bool = False
        """Content has begun; until then white space between parts is layout."""
        self.tag: Role | None = None
        """The tag that is open, in a grammar made by hand: what is consumed in it has its role."""
        self.name: str = ""
        """The name of the tagged call, as far as it was read."""

    def take(self, role: Role, end: int) -> None:
        """Consume the text up to `end` as `role`, without an event."""
        if end <= self.at:
            return
        if self.tag is not None:
            self.take_tagged(end, None)
            return
        self.at: int = end
        roles = self.span_roles
        if self.carried_spans or not roles:
            self.add_span(role, self.base + end)
        elif roles[-1] is role:
            self.span_ends[-1] = self.base + end
        else:
            roles.append(role)
            self.span_ends.append(self.base + end)

    def take_value(self, end: int, value: str) -> None:
        """Consume a piece of a value that a grammar made by hand reads; `value` is its JSON."""
        if self.tag is None:
            self.take(Role.MARKER, end)
        else:
            self.take_tagged(end, value)

    def take_tagged(self, end: int, value: str | None) -> None:
        """Consume the text of the tag that is open; `value` is its JSON, where it is read as a value."""
        tag = self.tag
        assert tag is not None
        if tag not in IN_CALLS:
            self.text(tag, end)
            return
        text = self.buffer[self.at : end]
        if tag is Role.NAME and len(self.name) <= MAX_NAME:
            self.name += text
        if value is not None and tag in _VALUES:
            if text or value:
                self.events.append(Note(value, value=True))
        elif text and tag is not Role.CALL:
            self.events.append(Note(text))
        self.at = end
        if text:
            self.add_span(IN_CALLS[tag], self.base + end)

    def text(self, role: Role, end: int) -> None:
        """Consume the text up to `end` and emit it."""
        start = self.at
        if end <= start:
            return
        if self.roles:
            role = self.roles.get(role, role)
        if self.carried and role is Role.CONTENT:
            self.bring()
        if self.given and role is Role.CONTENT and start < -self.base:
            start = -self.base
        if text := self.buffer[start:end]:
            self.events.append(ReasoningText(text) if role is Role.REASONING else ContentText(text))
        self.add_span(role, self.base + end)
        self.at = end

    def carry(self, end: int) -> None:
        """Consume white space between calls. It is layout, unless there is content on both sides of the calls."""
        if end == self.at or not self.answered or self.frames:
            self.take(Role.LAYOUT, end)
            return
        self.carried.append(self.buffer[self.at : end])
        self.carried_spans.append(len(self.span_roles))
        self.span_roles.append(Role.LAYOUT)
        self.span_ends.append(self.base + end)
        self.at = end

    def bring(self) -> None:
        """Make the white space that was carried content."""
        self.events.append(ContentText("".join(self.carried)))
        for index in self.carried_spans:
            self.span_roles[index] = Role.CONTENT
        self.carried, self.carried_spans = [], []

    def add_span(self, role: Role, end: int) -> None:
        """Give the role to all text up to `end` that is not in a span. Carried white space is kept apart."""
        roles = self.span_roles
        apart = not roles or roles[-1] is not role or (self.carried_spans and self.carried_spans[-1] == len(roles) - 1)
        if apart:
            roles.append(role)
            self.span_ends.append(end)
        else:
            self.span_ends[-1] = end

    # What is final.

    def final_spans(self) -> list[tuple[Role, int]]:
        """Return the role and the end of each final span; what may yet become content is not final."""
        return up_to(super().final_spans(), self.final_end)

    @property
    def final_end(self) -> int:
        """The end of the last final span. White space that is carried may yet become content."""
        end = super().final_end
        if self.final or not self.carried_spans:
            return end
        first = self.carried_spans[0]
        return min(end, self.span_ends[first - 1] if first else 0)


def relabel(roles: list[Role], ends: list[int], start: int, end: int, role: Role) -> int:
    """Give all text from `start` to `end` the role `role`; return how many more spans there are now.

    >>> roles, ends = [Role.CONTENT, Role.MARKER], [2, 9]
    >>> relabel(roles, ends, 4, 6, Role.CONTENT), ends
    (2, [2, 4, 6, 9])
    """
    first, last = bisect_right(ends, start), bisect_left(ends, end)
    begins = ends[first - 1] if first else 0
    new = [(roles[first], start)] if start > begins else []
    new.append((role, end))
    if ends[last] > end:
        new.append((roles[last], ends[last]))
    old = last + 1 - first
    roles[first : last + 1] = [role for role, _ in new]
    ends[first : last + 1] = [stop for _, stop in new]
    return len(new) - old


def up_to(spans: list[tuple[Role, int]], end: int) -> list[tuple[Role, int]]:
    """Return the roles and ends of spans, cut at the position `end`."""
    cut = next((i for i, (_, stop) in enumerate(spans) if stop > end), None)
    if cut is None:
        return spans
    kept = spans[:cut]
    return kept if kept and kept[-1][1] == end else [*kept, (spans[cut][0], end)]


def merged_spans(spans: list[tuple[Role, int]]) -> list[tuple[Role, int]]:
    """Join neighbours of the same role."""
    after = (*(role for role, _ in spans[1:]), None)
    return [span for span, role in zip(spans, after, strict=False) if span[0] is not role]
