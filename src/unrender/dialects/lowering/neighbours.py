"""Separates literals from the free text beside them, into texts that a lexer can tell apart.

A lexer that prefers the longest lexeme reads free text on after any literal, up to a stop. So what begins with a literal
is followed until a stop is complete in it: that text is a lexeme of its own (`exact`), and after it goes on what follows
the literal, or what follows the same free text. What free text says as well is left out.

Rules: exact. What meets something else than literal text before a stop is handed back (`left`); more than `MOST_WAYS` ways are
not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unrender import nodes
from unrender.dialects.lowering.flattening import flat
from unrender.dialects.lowering.leads import Lead
from unrender.dialects.lowering.stops import Place, Rest, Stops, first_stop, unfolded
from unrender.limits import MOST_WAYS
from unrender.nodes import Literal, Node, Ref, Until


@dataclass(slots=True)
class Beside:
    """Free text up to `stops` and after it one of `rests`; and other options that may begin at the same place.

    `place` is where the rests begin; `exact` and `left` are the results of `take`.
    """

    stops: Stops
    rests: tuple[Rest, ...]
    place: Place
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
        ways = unfolded(head, tail)
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


def followers(place: Place, stop: str, most: int = MOST_WAYS) -> list[Rest]:
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
