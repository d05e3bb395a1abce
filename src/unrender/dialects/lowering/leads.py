"""Groups the ways in which text can go on, so that a lexer can tell the groups apart by their first literal.

A lexer that prefers the longest literal would lose an option whose literal another one's begins with: such options are
taken apart after what they share. All others stay as they are, so that the rules that they name stay shared.

Rules: beside free text, which is longer than any literal, literals stay whole. An option with more than `MOST_WAYS` ways to
begin is not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from unrender import nodes
from unrender.dialects.lowering.stops import Rest, unfolded
from unrender.limits import MOST_WAYS
from unrender.nodes import Literal, Node, Ref, Until


@dataclass(frozen=True, slots=True)
class Lead:
    """One way in which an option begins: literal text, then `rest`.

    `at` is the number of the option; `rule` is the rule that holds the text.
    """

    text: str
    rest: Rest
    at: int
    rule: str | None = None

    @property
    def origin(self) -> object:
        """What distinguishes two leads with the same text."""
        return self.rule or self.rest

    def after(self, length: int) -> Rest:
        """Return what is left after the first `length` characters."""
        text = self.text[length:]
        return (Literal(text), *self.rest) if text else self.rest


@dataclass(frozen=True, slots=True)
class Group:
    """Options that begin with the same text: the text they share, and the rest of each.

    A group may also be one option, unchanged.
    """

    shared: str
    options: tuple[Rest, ...]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Free text up to `stops` with one of `rests` after it, and the other options at the same place."""

    stops: tuple[str, ...]
    rests: tuple[Rest, ...]
    others: tuple[Lead, ...]


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Finds how options begin.

    `rule` returns the node of a rule, or None to treat the rule as it is.

    `rule` returns the node of a rule; None for a rule that is not looked into.
    """

    rule: Callable[[str], Node | None]

    def mixture(self, options: list[Rest]) -> Mixture | None:
        """Return free text and the options beside it.

        None when no option is free text, or when two options have different stops.
        """
        leads: list[Lead] = []
        for at, option in enumerate(options):
            found = self.leads(option, at)
            if not found:
                return None
            leads += found
        texts = [lead for lead in leads if lead.rest and isinstance(lead.rest[0], Until) and not lead.text]
        stops = {lead.rest[0] for lead in texts}
        if len(stops) != 1:
            return None
        (until,) = stops
        assert isinstance(until, Until)
        rests = tuple(dict.fromkeys(lead.rest[1:] for lead in texts))
        return Mixture(until.stops, rests, tuple(lead for lead in leads if lead not in texts))

    def groups(self, options: list[Rest]) -> list[Group]:
        """Return the options in groups, no two of which begin alike."""
        leads = [lead for at, option in enumerate(options) for lead in self.leads(option, at)]
        clashing: set[int] = set()
        if all(lead.text or not lead.rest for lead in leads):
            found = _grouped(lead for lead in leads if lead.text)
            clashing.update(lead.at for group in found if _differ(group) for lead in group)
        groups = [Group("", (option,)) for at, option in enumerate(options) if at not in clashing]
        return groups + [_group(group) for group in _grouped(lead for lead in leads if lead.at in clashing)]

    def leads(self, option: Rest, at: int) -> list[Lead]:
        """Return the ways in which an option begins; none when there are too many.

        A way that begins with free text has no text of its own.
        """
        found: list[Lead] = []
        rests: list[tuple[Rest, str | None]] = [(option, None)]
        seen: set[Rest] = set()
        while rests and len(found) <= MOST_WAYS:
            rest, rule = rests.pop()
            if rest in seen:
                continue
            seen.add(rest)
            head = rest[0] if rest else None
            match head:
                case Literal(text) | nodes.Layout(text) if text:
                    found.append(Lead(text, rest[1:], at, rule))
                    continue
                case Literal() | nodes.Layout() | nodes.Mark():
                    rests.append((rest[1:], rule))
                    continue
                case Ref(name):
                    rule = name
                    node = self.rule(name)
                    ways = None if node is None else [(node, *rest[1:])]
                case None:
                    ways = None
                case _:
                    ways = unfolded(head, rest[1:])
            if ways is None:
                found.append(Lead("", rest, at))
            else:
                rests.extend((way, rule) for way in reversed(ways))
        return found if len(found) <= MOST_WAYS else []


def _grouped(leads: Iterable[Lead]) -> list[list[Lead]]:
    """Return leads in groups: those that begin with the text of the first one."""
    groups: list[list[Lead]] = []
    for lead in sorted(leads, key=lambda lead: lead.text):
        if groups and groups[-1][0].text and lead.text.startswith(groups[-1][0].text):
            groups[-1].append(lead)
        else:
            groups.append([lead])
    return groups


def _differ(leads: list[Lead]) -> bool:
    return len({(lead.text, lead.origin) for lead in leads}) > 1


def _group(leads: list[Lead]) -> Group:
    shared = leads[0].text if len(leads) > 1 else ""
    return Group(shared, tuple(lead.after(len(shared)) for lead in leads))
