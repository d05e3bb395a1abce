"""Finds which stop comes first after free text, and what may follow that stop.

Strategy: a continuation is taken apart only until a stop is complete. Where it goes on with a rule, that is a place of its
own (`Place`), worked out once, however many continuations lead there. So the places form a graph, and the stops that can
be met are handed up along its edges. A chain of a thousand optional arguments costs a thousand places, not a thousand
lists of a thousand arguments.

The small tools of lowering are here too: `unfolded` takes one step into a node, and `flat`, `sequence` and `choice` put
nodes together.

Rules: exact. Of several stops, the one that is complete first counts. What begins with something other than literal text
cannot be told from the text before it, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from unrender import nodes
from unrender.errors import GrammarError
from unrender.nodes import EMPTY, Choice, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence

_UNMARKED = str.maketrans("", "", nodes.MARKS)


Rest = tuple[Node, ...]
Stops = tuple[str, ...]
Sight = tuple[int, str, bool]
"""A lookahead: where it looks, for which text, and whether that has to be there."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The text of a continuation read since the free text ended, the lookaheads not yet decided, and the rest."""

    read: str
    sights: tuple[Sight, ...]
    rest: Rest

    def settled(self) -> Continuation | None:
        """Return the state without the lookaheads that can be decided; None when one of these fails."""
        if not self.sights:
            return self
        # `</a` is too short to tell whether `</abc>` is there.
        open_ones = tuple(sight for sight in self.sights if len(self.read) < sight[0] + len(sight[1]))
        decided = (sight for sight in self.sights if sight not in open_ones)
        met = all(self.read.startswith(text, at) == wanted for at, text, wanted in decided)
        return Continuation(self.read, open_ones, self.rest) if met else None

    def after(self, stop: str) -> Rest:
        """Return what is left after `stop`, which must be the beginning of the text."""
        text = self.read[len(stop) :]
        return (Literal(text), *self.rest) if text else self.rest


Key = tuple[Stops, Continuation]
"""The stops that are looked for, and the state where; each place has its own key."""


@dataclass(slots=True, eq=False)
class RulePlace:
    """The continuations of one state: its `own`, by the stop they begin with, and those of the places `below`."""

    own: dict[str, list[Rest]] = field(default_factory=dict)
    below: list[RulePlace] = field(default_factory=list)
    found: dict[str, None] = field(default_factory=dict)
    """Every stop that can be met, here or below."""
    at_end: bool = False
    """The output may end here, without any stop."""

    def after(self, stop: str) -> tuple[list[Rest], list[RulePlace]]:
        """Return what may follow `stop`: continuations of this place, and the places below that know more."""
        return self.own.get(stop, []), [place for place in self.below if stop in place.found]


@dataclass(slots=True)
class RulePlaces:
    """All places made so far; `rule` returns the node of a rule, `step` counts the work."""

    rule: Callable[[str], Node]
    step: Callable[[], None]
    known: dict[Key, RulePlace] = field(default_factory=dict)

    def place(self, stops: Stops, rest: Rest) -> RulePlace:
        """Return the place after free text that ends at `stops`."""
        fresh: list[RulePlace] = []
        queue: list[tuple[Key, RulePlace]] = []
        place = self._place((stops, Continuation("", (), rest)), queue, fresh)
        while queue:
            key, found = queue.pop()
            self._explore(key, found, queue, fresh)
        _hand_up(fresh)
        return place

    def _place(self, key: Key, queue: list[tuple[Key, RulePlace]], fresh: list[RulePlace]) -> RulePlace:
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = RulePlace()
            queue.append((key, known))
            fresh.append(known)
        return known

    def _explore(self, key: Key, place: RulePlace, queue: list[tuple[Key, RulePlace]], fresh: list[RulePlace]) -> None:
        """Fill `place`; places below it that are new are put into `queue` and `fresh`."""
        stops, start = key
        seen: set[Continuation] = set()
        states = [self._entered(start)]
        while states:
            self.step()
            # For the stop `</think>`, the continuation `</`, then `think>`, is read on until the stop is complete.
            state = states.pop().settled()
            if state is None or state in seen:
                continue
            seen.add(state)
            if stop := _met(state, stops):
                place.own.setdefault(stop, []).append(state.after(stop))
            elif self._is_place(state):
                place.below.append(self._place((stops, state), queue, fresh))
            elif (following := _following(state)) is not None:
                states.extend(reversed(following))
            else:
                _end(state, stops, place)
        place.found = dict.fromkeys(place.own)

    def _entered(self, state: Continuation) -> Continuation:
        """Return the state; if a rule comes next in it, with the rule's own node in its place."""
        if not self._is_place(state):
            return state
        head = state.rest[0]
        assert isinstance(head, Ref)
        return Continuation(state.read, state.sights, (self.rule(head.rule), *state.rest[1:]))

    def _is_place(self, state: Continuation) -> bool:
        head = state.rest[0] if state.rest else None
        return isinstance(head, Ref) and not isinstance(self.rule(head.rule), JsonValue)


def _met(state: Continuation, stops: Stops) -> str:
    """Return the text up to the first stop that is complete; all of it when it is longer than any two stops."""
    # A literal so long that holds no stop serves as a stop itself.
    if state.sights or not state.read:
        return ""
    return first_stop(state.read, stops) or (
        state.read if len(state.read) > 2 * max(map(len, stops), default=1) else ""
    )


def _following(state: Continuation) -> list[Continuation] | None:
    """Return the states one step on; None where no literal text follows."""
    if not state.rest:
        return None
    head, tail = state.rest[0], state.rest[1:]
    match head:
        case Literal(more) | nodes.Layout(more) | nodes.Mark(more):
            return [Continuation(state.read + more, state.sights, tail)]
        case nodes.Peek(Literal(text)):
            return [Continuation(state.read, (*state.sights, (len(state.read), text, True)), tail)]
        case nodes.Negate(Literal(text)):
            return [Continuation(state.read, (*state.sights, (len(state.read), text, False)), tail)]
    ways = unfoldings(head, tail)
    return None if ways is None else [Continuation(state.read, state.sights, way) for way in ways]


def _end(state: Continuation, stops: Stops, place: RulePlace) -> None:
    """Take what has been read for a stop of its own, where nothing more can be told."""
    if any(wanted for _, _, wanted in state.sights):
        return  # A lookahead wants text that does not come.
    if state.read:
        place.own.setdefault(state.read, []).append(state.rest)
    elif not state.rest:
        place.at_end = True
    else:
        raise GrammarError(f"text up to {stops} cannot be told from what follows: {state.rest[:1]!r:.120}")


def _hand_up(fresh: list[RulePlace]) -> None:
    """Hand the stops that can be met below up to the places above."""
    users: dict[int, list[RulePlace]] = {}
    for place in fresh:
        for below in place.below:
            users.setdefault(id(below), []).append(place)
    # Places may refer to each other in circles, as a list's items do: handing up ends when nobody learns anything new.
    queue = list(fresh)
    while queue:
        place = queue.pop()
        known = len(place.found) + place.at_end
        for below in place.below:
            place.found.update(below.found)
            place.at_end |= below.at_end
        if len(place.found) + place.at_end > known:
            queue.extend(users.get(id(place), ()))


def unfoldings(head: Node, tail: Rest) -> list[Rest] | None:
    """Return the options into which `head` unfolds, each followed by `tail`; None when `head` is text or a rule."""
    match head:
        case Sequence(parts):
            return [(*parts, *tail)]
        case Choice(options):
            return [(option, *tail) for option in options if not isinstance(option, nodes.Tolerated)]
        case Optional(inner):
            return [(inner, *tail), tail]
        case nodes.Tag(_, inner) | nodes.Atomic(inner):
            return [(inner, *tail)]
        case nodes.Cut() | nodes.Tolerated():
            return [tail]
        case nodes.End():
            return [()]
        case Repeat():
            return list(_rounds(head, tail))
    return None


def _rounds(node: Repeat, tail: Rest) -> Iterator[Rest]:
    if node.maximum != 0:
        less = None if node.maximum is None else node.maximum - 1
        again = node.node if node.separator is None else Sequence((node.separator, node.node))
        more = Repeat(again, max(node.minimum - 1, 0), less)
        yield (node.node, *tail) if less == 0 else (node.node, more, *tail)
    if node.minimum == 0:
        yield tail


def first_stop(text: str, stops: Stops) -> str:
    """Return `text` up to the end of the first stop to be complete in it; "" when it holds none.

    Marks in the text are ignored in the search, and kept in the result.
    """
    plain = text.translate(_UNMARKED)
    end = min((plain.index(stop) + len(stop) for stop in stops if stop in plain), default=0)
    if len(plain) == len(text) or not end:
        return text[:end]
    places = [at for at, character in enumerate(text, 1) if character not in nodes.MARKS]
    return text[: places[end - 1]]


def flat(parts: Rest) -> Rest:
    """Return `parts` as a flat list.

    Sequences and tags are taken apart, neighbouring literals are joined, and nodes without text are left out.
    """
    found: list[Node] = []
    queue = list(reversed(parts))
    while queue:
        part = queue.pop()
        match part:
            case Sequence(inner):
                queue.extend(reversed(inner))
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                queue.append(inner)
            case nodes.Cut() | nodes.Tolerated() | nodes.End():
                continue
            case Literal(text) | nodes.Layout(text):
                if found and isinstance(last := found[-1], Literal):
                    found[-1] = Literal(last.text + text)
                elif text:
                    found.append(Literal(text))
            case _:
                found.append(part)
    return tuple(found)


def sequence_of(parts: list[Node]) -> Node:
    """Return `parts` as a sequence. Nested sequences are merged and neighbouring literals joined."""
    merged: list[Node] = []
    for item in (item for part in parts for item in (part.parts if isinstance(part, Sequence) else (part,))):
        if not isinstance(item, Literal):
            merged.append(item)
        elif merged and isinstance(last := merged[-1], Literal):
            merged[-1] = Literal(last.text + item.text)
        elif item.text:
            merged.append(item)
    if not merged:
        return EMPTY
    return merged[0] if len(merged) == 1 else Sequence(tuple(merged))


def choice_of(options: list[Node]) -> Node:
    """Return a node for one of `options`."""
    return options[0] if len(options) == 1 else Choice(tuple(options))
