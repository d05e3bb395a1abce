"""Finds the first stop after free text, the continuation after that stop, and the nodes that end in free text.

Strategy: a continuation is expanded only until a stop is complete. If a continuation starts with a rule, the rule is a separate place
(`RulePlace`), which is computed once for all continuations that lead to it. Places form a graph, and possible stops are propagated along
its edges. So a chain of a thousand optional arguments needs only a thousand places, instead of a thousand lists of a thousand arguments.
`Openness` is computed as a least fixed point over the rules: a rule is recomputed only if a rule that it refers to has changed.

This module also contains helper functions for lowering. `unfoldings` expands a node by one step, and `flat` flattens sequences. `linked`,
`inverted`, `leaves_first` and `until_settled` traverse rules that refer to each other.

Rules: stops and continuations are never approximated. Text ends at the stop that is complete first. A continuation must start with literal
text, since it couldn't be distinguished from the free text otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar, assert_never

from unrender import nodes
from unrender.errors import GrammarError
from unrender.nodes import Chars, Choice, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence, Until

_UNMARKED = str.maketrans("", "", nodes.MARKS)


T = TypeVar("T")
Rest = tuple[Node, ...]
Stops = tuple[str, ...]
Sight = tuple[int, str, bool]
"""A lookahead: its position, its text, and whether the text is required (True) or forbidden (False)."""


@dataclass(frozen=True, slots=True)
class Lookahead:
    """A state while a continuation is read: the text after the free text, the undecided lookaheads, and the remaining nodes."""

    read: str
    sights: tuple[Sight, ...]
    rest: Rest

    def settled(self) -> Lookahead | None:
        """Return the state without the lookaheads that can already be decided, or None if one of them fails."""
        if not self.sights:
            return self
        # A lookahead stays open while the text is too short to decide it, e.g. `</a` for the lookahead `</abc>`.
        open_ones = tuple(sight for sight in self.sights if len(self.read) < sight[0] + len(sight[1]))
        decided = (sight for sight in self.sights if sight not in open_ones)
        met = all(self.read.startswith(text, at) == wanted for at, text, wanted in decided)
        return Lookahead(self.read, open_ones, self.rest) if met else None

    def after(self, stop: str) -> Rest:
        """Return the nodes that remain after `stop`, which must be a prefix of `read`."""
        text = self.read[len(stop) :]
        return (Literal(text), *self.rest) if text else self.rest


Key = tuple[Stops, Lookahead]
"""The key of a place, which consists of its stops and its state."""


@dataclass(slots=True, eq=False)
class RulePlace:
    """The continuations of one state. `own` maps each stop to the continuations after it, and `below` contains places with more
    continuations.
    """

    own: dict[str, list[Rest]] = field(default_factory=dict)
    below: list[RulePlace] = field(default_factory=list)
    found: dict[str, None] = field(default_factory=dict)
    """All possible stops of this place and the places below."""
    at_end: bool = False
    """True if the output may end at this place, without a stop."""

    def after(self, stop: str) -> tuple[list[Rest], list[RulePlace]]:
        """Return this place's own continuations after `stop`, and the places below that have more of them."""
        return self.own.get(stop, []), [place for place in self.below if stop in place.found]


@dataclass(slots=True)
class RulePlaces:
    """All places created so far. `rule` returns the node of a rule, and `step` counts steps."""

    rule: Callable[[str], Node]
    step: Callable[[], None]
    known: dict[Key, RulePlace] = field(default_factory=dict)

    def place(self, stops: Stops, rest: Rest) -> RulePlace:
        """Return the place for `rest` after free text that ends at `stops`."""
        fresh: list[tuple[Key, RulePlace]] = []
        place = self._place((stops, Lookahead("", (), rest)), fresh)
        for key, found in fresh:
            self._explore(key, found, fresh)
        _hand_up([found for _, found in fresh])
        return place

    def _place(self, key: Key, fresh: list[tuple[Key, RulePlace]]) -> RulePlace:
        known = self.known.get(key)
        if known is None:
            # Register the place before filling it, because the items of a list lead back to their own place.
            known = self.known[key] = RulePlace()
            fresh.append((key, known))
        return known

    def _explore(self, key: Key, place: RulePlace, fresh: list[tuple[Key, RulePlace]]) -> None:
        """Compute the continuations of `place`, and add new places below it to `fresh`."""
        stops, start = key
        seen: set[Lookahead] = set()
        # If the state starts with a rule, continue with the node of that rule.
        head = self._next_rule(start)
        states = [start if head is None else replace(start, rest=(self.rule(head.rule), *start.rest[1:]))]
        while states:
            self.step()
            # Read literals until a stop is complete, e.g. `</` and `think>` for the stop `</think>`.
            state = states.pop().settled()
            if state is None or state in seen:
                continue
            seen.add(state)
            if stop := _met(state, stops):
                place.own.setdefault(stop, []).append(state.after(stop))
            elif self._next_rule(state):
                place.below.append(self._place((stops, state), fresh))
            elif (following := _following(state)) is not None:
                states.extend(reversed(following))
            else:
                _end(state, stops, place)
        # Stops of the places below are added later, after all of these places have been explored.
        place.found = dict.fromkeys(place.own)

    def _next_rule(self, state: Lookahead) -> Ref | None:
        head = state.rest[0] if state.rest else None
        # Never expand a JSON value, because engines parse it by its schema.
        return head if isinstance(head, Ref) and not isinstance(self.rule(head.rule), JsonValue) else None


def _met(state: Lookahead, stops: Stops) -> str:
    """Return the text up to the first complete stop, or "" if no stop is complete.

    Text that is more than twice as long as the longest stop serves as a stop itself.
    """
    # Undecided lookaheads may still reject the text.
    if state.sights or not state.read:
        return ""
    # If the text is longer than that, a literal must follow the free text, so the free text ends where the literal starts.
    return first_stop(state.read, stops) or (
        state.read if len(state.read) > 2 * max(map(len, stops), default=1) else ""
    )


def _following(state: Lookahead) -> list[Lookahead] | None:
    """Return the states that one more step leads to, or None if no literal text follows."""
    if not state.rest:
        return None
    head, tail = state.rest[0], state.rest[1:]
    match head:
        case Literal(more) | nodes.Layout(more) | nodes.Mark(more):
            return [Lookahead(state.read + more, state.sights, tail)]
        case nodes.Peek(Literal(text)):
            return [Lookahead(state.read, (*state.sights, (len(state.read), text, True)), tail)]
        case nodes.Negate(Literal(text)):
            return [Lookahead(state.read, (*state.sights, (len(state.read), text, False)), tail)]
    ways = unfoldings(head, tail)
    return None if ways is None else [Lookahead(state.read, state.sights, way) for way in ways]


def _end(state: Lookahead, stops: Stops, place: RulePlace) -> None:
    """Treat the text read so far as a stop, because no more literal text follows."""
    if any(wanted for _, _, wanted in state.sights):
        return  # A lookahead requires text, but no more text follows.
    # For example, if `ab` and any letters may follow text up to `</x>`, only `ab` shows where the text ends. So `ab` becomes a stop.
    if state.read:
        place.own.setdefault(state.read, []).append(state.rest)
    elif not state.rest:
        place.at_end = True
    else:
        raise GrammarError(
            f"text up to {stops} cannot be distinguished from the text after it: {state.rest[:1]!r:.120}"
        )


def _hand_up(fresh: list[RulePlace]) -> None:
    """Propagate the possible stops of each place to the places that lead to it."""
    users: dict[int, list[RulePlace]] = {}
    for place in fresh:
        for below in place.below:
            users.setdefault(id(below), []).append(place)
    # Places may refer to each other in cycles, like the items of a list. Stop when no place changes.
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
    """Return the expansions of `head`, each followed by `tail`, or None if `head` is text or a rule."""
    match head:
        case Sequence(parts):
            return [(*parts, *tail)]
        case Choice(options):
            return [(option, *tail) for option in options]
        case Optional(inner):
            return [(inner, *tail), tail]
        case nodes.Tag(_, inner) | nodes.Atomic(inner):
            return [(inner, *tail)]
        case nodes.Cut():
            return [tail]
        case nodes.End():
            return [()]
        case Repeat():
            return list(_rounds(head, tail))
        case Ref() | nodes.Leaf() | nodes.Peek() | nodes.Negate():
            return None


def _rounds(node: Repeat, tail: Rest) -> Iterator[Rest]:
    # Put the separator at the start of every round except the first: `a{2,5}` separated by `,` is `a`, then `("," a){1,4}`.
    if node.maximum != 0:
        less = None if node.maximum is None else node.maximum - 1
        again = node.node if node.separator is None else Sequence((node.separator, node.node))
        more = Repeat(again, max(node.minimum - 1, 0), less)
        yield (node.node, *tail) if less == 0 else (node.node, more, *tail)
    if node.minimum == 0:
        yield tail


def first_stop(text: str, stops: Stops) -> str:
    """Return `text` up to the end of the first complete stop, or "" if `text` contains no stop.

    The sampler's marks in `text` are ignored in the search, but kept in the result.
    """
    # The sampler marks the start and end of roles, even within a marker. In `</\ufdd0x>`, the stop is `</x>`.
    plain = text.translate(_UNMARKED)
    end = min((plain.index(stop) + len(stop) for stop in stops if stop in plain), default=0)
    if len(plain) == len(text) or not end:
        return text[:end]
    places = [at for at, character in enumerate(text, 1) if character not in nodes.MARKS]
    return text[: places[end - 1]]


def flat(parts: Rest) -> Rest:
    """Flatten `parts` into one sequence.

    Sequences and tags are flattened, adjacent literals are joined, and nodes without text are dropped.
    """
    if len(parts) == 1 and isinstance(inside := parts[0], Sequence):
        return flat(inside.parts)
    if _is_flat(parts):
        return parts
    found: list[Node] = []
    queue = list(reversed(parts))
    while queue:
        part = queue.pop()
        match part:
            case Ref():
                found.append(part)
            case Literal(text) | nodes.Layout(text):
                # `"</", "x>"` becomes `"</x>"`, because a stop may span several literals.
                if found and isinstance(last := found[-1], Literal):
                    found[-1] = Literal(last.text + text)
                elif text:
                    found.append(part if isinstance(part, Literal) else Literal(text))
            case Sequence(inner):
                queue.extend(inner[::-1])
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                queue.append(inner)
            case nodes.Cut() | nodes.End():
                continue
            case nodes.Leaf() | Choice() | Optional() | Repeat() | nodes.Peek() | nodes.Negate():
                found.append(part)
            case _:
                assert_never(part)
    return tuple(found)


def _is_flat(parts: Rest) -> bool:
    """Return whether `parts` are already flat, as they usually are."""
    before: type[Node] = Ref
    for part in parts:
        kind = type(part)
        if kind in _FLATTENED or (isinstance(part, Literal) and (before is kind or not part.text)):
            return False
        before = kind
    return True


_FLATTENED = frozenset((Sequence, nodes.Tag, nodes.Atomic, nodes.Cut, nodes.End, nodes.Layout))


_CLOSED: frozenset[Stops] = frozenset()


class Openness:
    """Computes whether rules and nodes may be empty, and which free text they may end in."""

    def __init__(self, links: Links) -> None:
        self._empty: dict[str, bool] = {}
        self._endings: dict[str, frozenset[Stops]] = {}
        self._known: dict[int, tuple[Node, frozenset[Stops]]] = {}
        self._settle(links)

    def add(self, name: str, node: Node) -> None:
        """Add a rule that refers only to known rules and to itself."""
        self._settle(linked_alone(name, node))

    def _settle(self, links: Links) -> None:
        # A rule with a literal is never empty, and a rule without free text doesn't end in it. Skip these rules, which are the most common
        # ones.
        uncertain = {name: node for name, node in links.rules.items() if not _holds_word(node)}
        until_settled(uncertain, links.users, self._empty, lambda _, node: self.nullable(node))
        free = {name: node for name, node in links.rules.items() if name in links.free}
        until_settled(free, links.users, self._endings, lambda _, node: self._unsettled(node))

    def nullable(self, node: Node) -> bool:
        """Return whether `node` may be empty. Text up to a stop never counts as empty."""
        # The most common types come first, because this method is called for every node.
        if type(node) is Ref:
            return self._empty.get(node.rule, False)
        if type(node) is Literal:
            return not node.text
        if type(node) is Sequence:
            return all(map(self.nullable, node.parts))
        match node:
            case nodes.Layout(text):
                return text == ""
            case Choice(options):
                return any(map(self.nullable, options))
            case Chars(minimum=0) | Optional() | nodes.Cut() | nodes.Mark() | nodes.End():
                return True
            case nodes.Peek() | nodes.Negate():
                return True
            case Repeat(inner, low, _, _):
                return low == 0 or self.nullable(inner)
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.nullable(inner)
            case Literal() | Ref() | Sequence() | Chars() | Until() | nodes.AnswerPart():
                return False
            case JsonValue() | nodes.PythonValue() | nodes.Quoted():
                return False

    def endings(self, node: Node) -> frozenset[Stops]:
        """Return the stops of every piece of free text that `node` may end in."""
        if type(node) is Literal:
            return _CLOSED
        if type(node) is Ref:
            return self._endings.get(node.rule, _CLOSED)
        # Cache by identity, because comparing nodes compares all nodes below them. The cache keeps the node, so its id isn't reused.
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, self._find(node, self.endings))
        return known[1]

    def _unsettled(self, node: Node) -> frozenset[Stops]:
        """Return the provisional endings of `node`, while the endings of the rules are still being computed. The result isn't cached in `_known`."""
        return self._find(node, self._unsettled)

    def _find(self, node: Node, below: Callable[[Node], frozenset[Stops]]) -> frozenset[Stops]:
        match node:
            case Ref(name):
                return self._endings.get(name, _CLOSED)
            case Sequence(parts):
                return self._find_last(parts, below)
            case Literal() | Chars():
                return _CLOSED
            case Until(stops):
                return frozenset((stops,))
            case nodes.Tag(_, inner) | nodes.Atomic(inner) | Optional(inner) | Repeat(inner):
                return below(inner)
            case Choice(options):
                return _CLOSED.union(*map(below, options))
            case nodes.Leaf() | nodes.Peek() | nodes.Negate():
                return _CLOSED

    def _find_last(self, parts: tuple[Node, ...], below: Callable[[Node], frozenset[Stops]]) -> frozenset[Stops]:
        # Look past parts that may be empty: `Until("</a>"), Optional("!")` may end in the free text, because `!` is optional.
        found = _CLOSED
        for part in reversed(parts):
            found |= below(part)
            if type(part) is not Until and not self.nullable(part):
                break
        return found


@dataclass(frozen=True, slots=True)
class Links:
    """Rules and the references between them, in both directions."""

    rules: Mapping[str, Node]
    below: Mapping[str, list[str]]
    users: Mapping[str, list[str]]
    free: frozenset[str]
    """Rules that contain free text, or refer to a rule that does. No other rule ends in free text."""
    texts: frozenset[str]
    """Rules that contain free text themselves."""
    plain: frozenset[str] = frozenset()
    """Rules that dialects can write unchanged."""


def linked(rules: Mapping[str, Node]) -> Links:
    """Return rules with the references between them."""
    below: dict[str, list[str]] = {}
    texts: list[str] = []
    plain: set[str] = set()
    for name, node in rules.items():
        below[name], ends_itself, is_plain = _looked_through(node)
        if not ends_itself:
            texts.append(name)
        if is_plain:
            plain.add(name)
    users = inverted(below)
    free = nodes.reached(texts, lambda name: users.get(name, ()))
    return Links(rules, below, users, free, frozenset(texts), frozenset(plain))


def _looked_through(node: Node) -> tuple[list[str], bool, bool]:
    """Return the rules that `node` refers to, whether `node` contains no free text, and whether dialects can write it unchanged."""
    found: dict[str, None] = {}
    ends_itself = plain = True
    waiting: list[Node] = [node]
    while waiting:
        here = waiting.pop()
        if type(here) is Ref:
            found[here.rule] = None
        elif type(here) is Literal:
            plain = plain and here.text != ""
        elif type(here) is Sequence:
            plain = plain and here.parts != ()
            waiting += here.parts[::-1]
        elif type(here) is Optional:
            waiting.append(here.node)
        else:
            waiting += nodes.children(here)[::-1]
            # A node that repeats zero times is dropped, together with its references. So treat its rule like one with free text, which is
            # processed again.
            ends_itself = ends_itself and type(here) is not Until and getattr(here, "maximum", None) != 0
            plain = plain and type(here) in _PLAIN and (type(here) is not Repeat or here.separator is None)
    return list(found), ends_itself, plain and ends_itself


_PLAIN = frozenset((Choice, Repeat, Chars, JsonValue))


def linked_alone(name: str, node: Node) -> Links:
    """Return the links of a single rule, which may refer only to itself and to known rules."""
    return Links({name: node}, {name: [name]}, {name: [name]}, frozenset((name,)), frozenset((name,)))


def leaves_first(below: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names in such an order that each comes after the names that it refers to. Names that lead to a cycle are omitted."""
    above = inverted(below)
    left = {name: len(set(others)) for name, others in below.items()}
    order = [name for name in {**left, **above} if not left.get(name)]
    for name in order:
        for user in above.get(name, ()):
            left[user] -= 1
            if left[user] == 0:
                order.append(user)
    return order


def inverted(below: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the reverse mapping: for each name, the names that refer to it."""
    above: dict[str, list[str]] = {}
    for name, others in below.items():
        for other in dict.fromkeys(others):
            above.setdefault(other, []).append(name)
    return above


def until_settled(
    rules: Mapping[str, Node], users: Mapping[str, list[str]], found: dict[str, T], compute: Callable[[str, Node], T]
) -> None:
    """Compute a value for each rule and store it in `found`. If a value changes, recompute the rules that refer to its rule.

    Each rule is computed after the rules that it refers to, so a chain of rules needs only one round.
    """
    # Cycles are rare outside JSON values, so nearly all rules are computed once.
    order = _nearly_sorted(rules, users)
    waiting = set(order)
    while waiting:
        for name in order:
            if name in waiting:
                waiting.discard(name)
                value = compute(name, rules[name])
                if name not in found or value != found[name]:
                    found[name] = value
                    waiting.update(user for user in users.get(name, ()) if user in rules)


def _holds_word(node: Node) -> bool:
    """Return whether `node` has a nonempty literal at its top level, so that `node` is never empty."""
    parts = node.parts if type(node) is Sequence else (node,)
    return any(type(part) is Literal and part.text for part in parts)


def _nearly_sorted(rules: Mapping[str, Node], users: Mapping[str, list[str]]) -> list[str]:
    """Return the names of the rules, each after the names that its rule refers to. The order within a cycle is arbitrary."""
    order: dict[str, None] = {}
    seen: set[str] = set()
    for root in rules:
        # Don't use recursion, because a thousand optional arguments form a path of a thousand rules.
        path = [] if root in seen else [(root, iter(users.get(root, ())))]
        seen.add(root)
        while path:
            name, above = path[-1]
            for user in above:
                if user not in seen and user in rules:
                    seen.add(user)
                    path.append((user, iter(users.get(user, ()))))
                    break
            else:
                order[name] = None
                path.pop()
    return list(reversed(order))
