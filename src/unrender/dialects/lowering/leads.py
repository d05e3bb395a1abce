"""Takes options apart that begin alike, so that a lexer can tell them apart.

A lexer that prefers the longest literal loses `</a` beside `</ab`: it has read the longer one before it looks further.

- Options that begin with literals are put into groups, each with the text that it shares (`Beginnings.groups`). All other
  options stay as they are, so that the rules that they name stay shared.
- Free text beside literals is longer than any of them, and a lexer reads it on up to a stop. So what begins with a literal
  is followed until a stop is complete in it (`Beside`). That text is a lexeme of its own (`exact`). After it goes on what
  follows the literal, or what follows the same free text. What free text covers as well is left out.

Rules: exact. An option with more than `MOST_WAYS` ways to begin is not looked into. What meets something other than literal
text before a stop is handed back (`left`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unrender import nodes
from unrender.dialects.lowering.stops import Rest, RulePlace, Stops, first_stop, flat, unfoldings
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
            # Two options that begin with the same rule are one way to begin: a lexer has nothing to tell apart.
            differing = (group for group in found if len({(lead.text, lead.origin) for lead in group}) > 1)
            clashing.update(lead.at for group in differing for lead in group)
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
                    ways = unfoldings(head, rest[1:])
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


def _group(leads: list[Lead]) -> Group:
    shared = leads[0].text if len(leads) > 1 else ""
    return Group(shared, tuple(lead.after(len(shared)) for lead in leads))


@dataclass(slots=True)
class Beside:
    """Free text up to `stops` and after it one of `rests`; and other options that may begin at the same place.

    `place` is where the rests begin; `exact` and `left` are the results of `take`.
    """

    stops: Stops
    rests: tuple[Rest, ...]
    place: RulePlace
    rule: Callable[[str], Node | None]
    exact: dict[str, list[Rest]] = field(default_factory=dict)
    left: list[Rest] = field(default_factory=list)

    @property
    def all_stops(self) -> Stops:
        """The stops of the free text, and the stops with which the rests begin."""
        return tuple(dict.fromkeys((*self.stops, *self.place.found)))

    def take(self, leads: Iterable[Lead]) -> None:
        """Separate the options `leads` from the free text beside them."""
        every = self.all_stops
        waiting = [(lead.text, lead.rest) for lead in leads]
        seen: set[tuple[str, Rest]] = set()
        while waiting:
            text, rest = waiting.pop(0)
            if (text, rest) in seen:
                continue
            seen.add((text, rest))
            # Beside text up to `</a>`, the literal `<b>` and its content `x</a>` are the exact text `<b>x</a>`.
            if stopped := first_stop(text, every):
                left_over = text[len(stopped) :]
                self.exact.setdefault(stopped, []).append(flat((Literal(left_over), *rest)))
            elif self.is_said(text, rest):
                continue
            elif len(seen) > MOST_WAYS or (ways := self.one_step_on(text, rest)) is None:
                self.left.append(flat((Literal(text), *rest)))
            else:
                waiting.extend(ways)
        self.settle()

    def one_step_on(self, text: str, rest: Rest) -> list[tuple[str, Rest]] | None:
        """Return `rest` one step further; None where something other than a literal follows."""
        if not rest:
            return None
        head, tail = rest[0], rest[1:]
        match head:
            case Literal(more) | nodes.Layout(more):
                return [(text + more, tail)]
            case Ref(name):
                node = self.rule(name)
                return None if node is None else [(text, (node, *tail))]
        ways = unfoldings(head, tail)
        return None if ways is None else [(text, way) for way in ways]

    def is_said(self, text: str, rest: Rest) -> bool:
        """Return whether free text covers `text` and what follows it.

        It does if `text` is at the end, or if more free text with the same continuation follows.
        """
        if not rest:
            return self.place.at_end
        head = rest[0]
        return (
            isinstance(head, Until) and head.stops == self.stops and rest[1:] in self.rests and not self.straddled(text)
        )

    def straddled(self, text: str) -> bool:
        """Return whether a stop may begin in `text` and end in what follows, where it counts as another stop."""
        # For the stop `</a>`, a text that ends in `</` is no part of free text yet: `a>` may follow.
        own = frozenset(self.stops)
        for stop in self.all_stops:
            cuts = (at for at in range(1, len(stop)) if text.endswith(stop[:at]))
            if any(stop in own or stop[at:] in self.place.found for at in cuts):
                return True
        return False

    def settle(self) -> None:
        """Add to each exact text what may follow the same free text.

        Exact texts that allow no more than the free text are left out.
        """
        for text in list(self.exact):
            stop = max((stop for stop in self.all_stops if text.endswith(stop)), key=len)
            known = list(dict.fromkeys(followers(self.place, stop)))
            options = dict.fromkeys((*known, *self.exact[text]))
            if len(options) == len(known):
                del self.exact[text]
            else:
                self.exact[text] = list(options)


def followers(place: RulePlace, stop: str, most: int = MOST_WAYS) -> list[Rest]:
    """Return what may follow `stop`; with more than `most` options, only about that many."""
    found: list[Rest] = []
    waiting = [place]
    seen = {id(place)}
    while waiting and len(found) <= most:
        own, below = waiting.pop().after(stop)
        found += map(flat, own)
        fresh = [other for other in below if id(other) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh
    return found
