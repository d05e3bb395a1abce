"""Finds alternatives that a lexer could confuse, and rewrites them so that it can distinguish them.

If both `</a` and `</ab` may follow, a lexer that prefers the longest literal may miss `</a`, because it tries `</ab` first. `FirstSets`
contains the possible starts of a node, and its possible continuations at places where the node might also have ended. A start is identified
by its first literal, except for free text, which can start with anything and is identified by its stops.

- Options that start with literals are grouped by their common prefix (`Beginnings.groups`). All other options stay unchanged, so rules that
  are shared remain shared.
- Free text is longer than any literal next to it, and a lexer reads it up to a stop. So an option that starts with a literal is expanded
  until it contains a complete stop (`TextSplit`). The text up to this stop becomes a separate lexeme (`exact`). After the lexeme, either
  the rest of the option or the continuation of the free text follows. An option is dropped if the free text already allows all of its text.

Rules: rewriting never changes the text that a grammar allows. If a node has more than `MAX_OPTIONS` starts, its conflicts aren't detected.
At most `MAX_COMPARED` starts are compared per grammar. If either limit is exceeded, `FirstSets.unsure` is set. `TextSplit.left` contains
the options in which something other than literal text precedes a stop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from unrender import nodes
from unrender.dialects.stops import (
    Links,
    Openness,
    Rest,
    RulePlace,
    Stops,
    first_stop,
    flat,
    linked_alone,
    unfoldings,
    until_settled,
)
from unrender.limits import MAX_COMPARED, MAX_OPTIONS
from unrender.nodes import Choice, Literal, Node, Optional, Ref, Repeat, Sequence, Until


class FirstLiteral(NamedTuple):
    """The first literal of a node. `origin` is the name of the rule that contains the literal, or a number that identifies the nodes after
    it.
    """

    text: str
    origin: int | str


Heads = frozenset[FirstLiteral | Until]
"""The literals and the free text that a node may start with."""
# Markers with a common start differ after at most three literals: `<call><name>f`, `<call><name>g` and `<call><id>`.
DEPTH = 3
"""Maximum number of consecutive literals that are compared to distinguish two alternatives."""
_NONE: Heads = frozenset()
# No real literal is empty, so an empty literal can stand for "too many heads".
_MANY: Heads = frozenset((FirstLiteral("", 0),))


class FirstSets:
    """Computes the possible starts and continuations of rules and nodes."""

    def __init__(self, links: Links, openness: Openness) -> None:
        self.unsure: bool = False
        """True if there were too many starts to compare."""
        self._openness = openness
        self._rules = dict(links.rules)
        self._continuations: dict[FirstLiteral, Heads] = {}
        self._rests: list[Rest] = []
        self._numbers: dict[Rest, int] = {}
        self._heads: dict[str, Heads] = {}
        self._ends: dict[str, Heads] = {}
        self._compared = 0
        self._headed = self._settled = False
        self._known_heads: dict[int, tuple[Node, Heads]] = {}
        self._known_ends: dict[int, tuple[Node, Heads]] = {}
        self._settle(links)

    def add(self, name: str, node: Node) -> None:
        """Add a rule that refers only to known rules and to itself."""
        self._rules[name] = node
        self._settle(linked_alone(name, node))

    def _settle(self, links: Links) -> None:
        self._headed = self._settled = False
        # Most rules start and end with a literal. Their starts and continuations are final at once.
        words = {name: word for name, node in links.rules.items() if (word := _first_word(node))}
        self._heads.update((name, frozenset((FirstLiteral(word, name),))) for name, word in words.items())
        others = {name: node for name, node in links.rules.items() if name not in words}
        until_settled(
            others, links.users, self._heads, lambda name, it: frozenset(_within(name, h) for h in self.heads(it))
        )
        self._headed = True
        unended = {name: node for name, node in links.rules.items() if not _ends_in_word(node)}
        until_settled(unended, links.users, self._ends, lambda _, node: self.ends(node))
        self._settled = True

    def _once(self, known: dict[int, tuple[Node, Heads]], node: Node, find: Callable[[Node], Heads]) -> Heads:
        """Return the result of `find`, cached by the node's identity. Results are cached only when the sets of all rules are final."""
        found = known.get(id(node)) or (node, find(node))
        if self._settled:
            known[id(node)] = found
        return found[1]

    def heads(self, node: Node) -> Heads:
        """Return the possible starts of `node`."""
        if type(node) is Ref:
            return self._heads.get(node.rule, _NONE)
        return self._once(self._known_heads, node, self._find_heads)

    def _find_heads(self, node: Node) -> Heads:
        match node:
            case Literal() | nodes.Layout() | Sequence() | nodes.Tag() | nodes.Atomic():
                return self.first_of((node,))
            case Until():
                return frozenset((node,))
            case Optional(inner):
                return self.heads(inner)
            case Repeat(inner, _, _, separator):
                # Each round is a separate lexeme, after which the separator and another round may follow.
                again: Rest = () if separator is None else (Optional(Sequence((separator, inner))),)
                return self.first_of((inner, *again))
            case Choice(options):
                return _union(list(map(self.heads, options)))
            case Ref() | nodes.Leaf() | nodes.Peek() | nodes.Negate():
                return _NONE

    def first_of(self, parts: Rest) -> Heads:
        """Return the possible starts of `parts` in sequence."""
        found: list[Heads] = []
        plain = flat(parts)
        for at, part in enumerate(plain):
            # Stop at a literal, with which most sequences start, because it's never empty.
            if isinstance(part, Literal) and part.text:
                found.append(frozenset((FirstLiteral(part.text, self._number(plain[at + 1 :])),)))
                break
            found.append(self.heads(part))
            if not self._openness.nullable(part):
                break
        return _union(found)

    def confused(self, options: Iterable[Node]) -> bool:
        """Return whether a lexer would confuse any of `options`."""
        if self._compared > MAX_COMPARED:
            return False
        by_text: dict[str, list[set[FirstLiteral]]] = {}
        # The number of comparisons per grammar is limited. If the limit is exceeded, options are written unchanged, and `unsure` is set.
        every = [self.heads(option) for option in options]
        self._compared += sum(map(len, every))
        self.unsure |= self._compared > MAX_COMPARED or (_MANY in every and len(every) > 1)
        # A lexer confuses free text with any other option, and a literal with its prefix, e.g. `</ab` with `</a`.
        free = any(isinstance(head, Until) for heads in every for head in heads)
        for heads in every:
            for text, found in _by_text(heads).items():
                by_text.setdefault(text, []).append(found)
        if (free and len(every) > 1) or any(b.startswith(a) for a, b in pairwise(sorted(by_text)) if a):
            return True
        # If two options start with the same literal, e.g. `", "`, the lexer reads it as one lexeme, so the parts after it must distinguish
        # the options.
        return any(
            self._part_ways(group[at], set().union(*group[:at]), DEPTH)
            for group in by_text.values()
            for at in range(1, len(group))
        )

    def clash(self, some: Heads, others: Heads, depth: int = DEPTH) -> bool:
        """Return whether a lexer may confuse two nodes that start with `some` and `others`.

        A lexer confuses a literal with its prefix, and any literal with free text. If both nodes start with the same literal, both remain
        possible after it, so the nodes' continuations must not clash either.
        """
        # A node that starts with a character class or with JSON has no heads, and isn't compared.
        if not some or not others:
            return False
        self._compared += len(some) + len(others)
        # With too many starts (`_MANY`) or comparisons, the result is unknown.
        if _MANY in (some, others) or self._compared > MAX_COMPARED:
            self.unsure = True
            return False
        if any(isinstance(head, Until) for head in (*some, *others)):
            return True
        mine, theirs = _by_text(some), _by_text(others)
        if _longer(mine, theirs) or _longer(theirs, mine):
            return True
        return any(self._part_ways(mine[text], theirs[text], depth) for text in mine.keys() & theirs.keys())

    def _part_ways(self, some: set[FirstLiteral], others: set[FirstLiteral], depth: int) -> bool:
        """Return whether a lexer may confuse continuations of the same literal.

        At most `depth` more literals are compared. If all of these literals are equal, the continuations count as confused.
        """
        if others <= some:  # If the rules or continuations are equal, there is only one alternative.
            return False
        mine, theirs = (_union(list(map(self._following, heads))) for heads in (some, others - some))
        return not mine or not theirs or depth == 0 or self.clash(mine, theirs, depth - 1)

    def _following(self, head: FirstLiteral) -> Heads:
        """Return the possible starts of the nodes after a literal."""
        # If a rule starts with the literal, the rule also contains the continuation: after `<`, the rule `"<", word, ">"` continues with
        # `word`.
        if head not in self._continuations:
            body = self.heads(self._rules[head.origin]) if isinstance(head.origin, str) else ()
            inner = [one for one in body if isinstance(one, FirstLiteral) and one.text == head.text]
            numbers = [one.origin for one in (inner if isinstance(head.origin, str) else [head])]
            following = [self.first_of(self._rests[at]) for at in numbers if isinstance(at, int)]
            self._continuations[head] = _union(following)
        return self._continuations[head]

    def _number(self, rest: Rest) -> int:
        # Represent a continuation by a number, since heads are hashed often, and a continuation may be long. The heads of a rule need no
        # number (`_within`).
        if not self._headed:
            return 0
        number = self._numbers.setdefault(rest, len(self._rests))
        if number == len(self._rests):
            self._rests.append(rest)
        return number

    def ends(self, node: Node) -> Heads:
        """Return the possible continuations of `node` at places where the node might also have ended."""
        if type(node) is Literal:
            return _NONE
        if type(node) is Ref:
            return self._ends.get(node.rule, _NONE)
        return self._once(self._known_ends, node, self._find_ends)

    def _find_ends(self, node: Node) -> Heads:
        match node:
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.ends(inner)
            case Optional(inner):
                return _union([self.heads(inner), self.ends(inner)])
            case Repeat(inner, _, high, separator):
                # After a round of `("," a)*`, another round may follow or the repetition may end, so `,` is a possible continuation.
                again = () if high == 1 else (separator, inner) if separator else (inner,)
                may_end = (self.heads(inner),) if node.minimum == 0 else ()
                return _union([self.first_of(again), self.ends(inner), *may_end])
            case Sequence(parts):
                return self._ends_of(parts)
            case Choice(options):
                found = [self.ends(option) for option in options]
                return _union([*found, self.heads(node)] if self._openness.nullable(node) else found)
            case Ref() | nodes.Leaf() | nodes.Peek() | nodes.Negate():
                return _NONE

    def _ends_of(self, parts: tuple[Node, ...]) -> Heads:
        found: list[Heads] = []
        # `"a" b?` may end after `a`, so the starts of `b` are possible continuations.
        for part in reversed(parts):
            found.append(self.ends(part))
            if not self._openness.nullable(part):
                break
            found.append(self.heads(part))
        return _union(found)


def _by_text(heads: Heads) -> dict[str, set[FirstLiteral]]:
    found: dict[str, set[FirstLiteral]] = {}
    for head in heads:
        if isinstance(head, FirstLiteral):
            found.setdefault(head.text, set()).add(head)
    return found


def _longer(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether one of `some` is a proper prefix of one of `others`."""
    texts = sorted(others)
    # In sorted order, a prefix is directly followed by the longer strings, as in `</a`, `</ab`.
    return any((at := bisect_right(texts, one)) < len(texts) and texts[at].startswith(one) for one in some)


def _first_word(node: Node) -> str:
    """Return the literal that a node starts with. Returns "" if the node's top level doesn't contain the complete literal."""
    parts = node.parts if type(node) is Sequence else (node,)
    # Adjacent literals form one: `"<", "call>"` is `<call>`. So return the first literal only if no literal can follow it directly.
    alone = len(parts) == 1 or (parts and isinstance(parts[1], _NO_WORD))
    return parts[0].text if alone and type(parts[0]) is Literal else ""


def _ends_in_word(node: Node) -> bool:
    last = node.parts[-1] if type(node) is Sequence and node.parts else node
    return isinstance(last, nodes.JsonValue) or (type(last) is Literal and last.text != "")


_NO_WORD = (Ref, Until, Choice, Optional, Repeat, nodes.Chars, nodes.JsonValue)


def _within(rule: str, head: FirstLiteral | Until) -> FirstLiteral | Until:
    """Return `head` with `rule` as its origin if the origin is a number."""
    return head if isinstance(head, Until) or isinstance(head.origin, str) else FirstLiteral(head.text, rule)


def _union(found: list[Heads]) -> Heads:
    if len(found) == 1:
        return found[0]
    heads = _NONE.union(*found)
    return _MANY if len(heads) > MAX_OPTIONS or not _MANY.isdisjoint(heads) else heads


@dataclass(frozen=True, slots=True)
class Alternative:
    """One possible start of an option: `text`, then `rest`.

    `at` is the index of the option. `rule` is the rule that contains the text.
    """

    text: str
    rest: Rest
    at: int
    rule: str | None = None

    def after(self, length: int) -> Rest:
        """Return the text after the first `length` characters of `text`, together with `rest`."""
        text = self.text[length:]
        return (Literal(text), *self.rest) if text else self.rest


@dataclass(frozen=True, slots=True)
class Group:
    """Options with a common prefix: `shared` is the prefix, and `options` contains the rest of each option.

    A group may also consist of a single option, which stays unchanged. `shared` is then "".
    """

    shared: str
    options: tuple[Rest, ...]


@dataclass(frozen=True, slots=True)
class TextMix:
    """A choice between free text and other options. The free text ends at one of `stops`, and one of `rests` follows."""

    stops: tuple[str, ...]
    rests: tuple[Rest, ...]
    others: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Finds the possible starts of options.

    `rule` returns the node of a rule, or None if the rule must not be expanded.
    """

    rule: Callable[[str], Node | None]

    def mixture(self, options: list[Rest]) -> TextMix | None:
        """Combine the options into a choice between free text and other options.

        Returns None if no option is free text, or if the free text of two options has different stops.
        """
        leads: list[Alternative] = []
        for at, option in enumerate(options):
            found = self.leads(option, at)
            if not found:
                return None
            leads += found
        texts = [lead for lead in leads if lead.rest and isinstance(lead.rest[0], Until) and not lead.text]
        stops = {head.stops for lead in texts if isinstance(head := lead.rest[0], Until)}
        if len(stops) != 1:
            return None
        rests = tuple(dict.fromkeys(lead.rest[1:] for lead in texts))
        return TextMix(stops.pop(), rests, tuple(lead for lead in leads if lead not in texts))

    def groups(self, options: list[Rest]) -> list[Group]:
        """Return the options grouped by their common prefix. Options of different groups never start with the same text."""
        leads = [lead for at, option in enumerate(options) for lead in self.leads(option, at)]
        clashing: set[int] = set()
        # If any option starts with something other than a literal, its start is unknown, so all options stay unchanged.
        if all(lead.text or not lead.rest for lead in leads):
            found = _grouped(lead for lead in leads if lead.text)
            # If all options start with the same rule, leave them unchanged, since a lexer then has only one alternative.
            differing = (group for group in found if len({(lead.text, lead.rule or lead.rest) for lead in group}) > 1)
            clashing.update(lead.at for group in differing for lead in group)
        groups = [Group("", (option,)) for at, option in enumerate(options) if at not in clashing]
        for group in _grouped(lead for lead in leads if lead.at in clashing):
            shared = group[0].text if len(group) > 1 else ""
            groups.append(Group(shared, tuple(lead.after(len(shared)) for lead in group)))
        return groups

    def leads(self, option: Rest, at: int) -> list[Alternative]:
        """Return the possible starts of an option, or an empty list if there are too many.

        If a start isn't literal text, its `text` is empty.
        """
        found: list[Alternative] = []
        rests: list[tuple[Rest, str | None]] = [(option, None)]
        seen: set[Rest] = set()
        while rests and len(found) <= MAX_OPTIONS:
            rest, rule = rests.pop()
            # `list = list? "x"` starts with itself, so each rest is expanded only once.
            if rest in seen:
                continue
            seen.add(rest)
            head = rest[0] if rest else None
            match head:
                case Literal(text) | nodes.Layout(text) if text:
                    found.append(Alternative(text, rest[1:], at, rule))
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
                found.append(Alternative("", rest, at))
            else:
                rests.extend((way, rule) for way in reversed(ways))
        return found if len(found) <= MAX_OPTIONS else []


def _grouped(leads: Iterable[Alternative]) -> list[list[Alternative]]:
    """Return the possible starts `leads` in groups. In each group, all texts start with the text of the first member."""
    # In sorted order, a prefix directly precedes the longer strings, as in `</a`, `</ab`, `</abc>`.
    groups: list[list[Alternative]] = []
    for lead in sorted(leads, key=lambda lead: lead.text):
        if groups and groups[-1][0].text and lead.text.startswith(groups[-1][0].text):
            groups[-1].append(lead)
        else:
            groups.append([lead])
    return groups


@dataclass(slots=True)
class TextSplit:
    """A choice between free text and other options. The free text ends at one of `stops`, and one of `rests` follows it.

    `place` contains the continuations of the free text. `take` stores its results in `exact` and `left`.
    """

    stops: Stops
    rests: tuple[Rest, ...]
    place: RulePlace
    rule: Callable[[str], Node | None]
    exact: dict[str, list[Rest]] = field(default_factory=dict)
    left: list[Rest] = field(default_factory=list)

    @property
    def all_stops(self) -> Stops:
        """The stops of the free text, and the strings at the start of `rests` that serve as stops."""
        return tuple(dict.fromkeys((*self.stops, *self.place.found)))

    def take(self, leads: Iterable[Alternative]) -> None:
        """Separate the options `leads` from the free text. Options whose text contains a stop are stored in `exact`, and all other options
        in `left`.
        """
        every = self.all_stops
        waiting = [(lead.text, lead.rest) for lead in leads]
        seen: set[tuple[str, Rest]] = set()
        while waiting:
            text, rest = waiting.pop(0)
            if (text, rest) in seen:
                continue
            seen.add((text, rest))
            # The literal `<b>` before the content `x</a>` becomes the exact string `<b>x</a>`, as an exception from text up to `</a>`.
            if stopped := first_stop(text, every):
                left_over = text[len(stopped) :]
                self.exact.setdefault(stopped, []).append(flat((Literal(left_over), *rest)))
            elif self.is_said(text, rest):
                continue
            elif len(seen) > MAX_OPTIONS or (ways := self.one_step_on(text, rest)) is None:
                self.left.append(flat((Literal(text), *rest)))
            else:
                waiting.extend(ways)
        self.settle()

    def one_step_on(self, text: str, rest: Rest) -> list[tuple[str, Rest]] | None:
        """Return the ways to expand `text` and `rest` by one step, or None if `rest` doesn't continue with a literal."""
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
        """Return whether the free text already allows `text` followed by `rest`.

        This is the case if `rest` is empty and the output may end after the free text, or if `rest` is free text with the same stops and
        continuation.
        """
        # Text up to `</x>` may start with `<b>`, so it allows `"<b>", text`. The text doesn't allow `"</", text`, because `x>` after `</`
        # would complete the stop.
        if not rest:
            return self.place.at_end
        head = rest[0]
        return (
            isinstance(head, Until) and head.stops == self.stops and rest[1:] in self.rests and not self.straddled(text)
        )

    def straddled(self, text: str) -> bool:
        """Return whether a stop may start in `text` and end after it. The free text then doesn't allow `text` with every continuation."""
        # For example, `a>` may follow text that ends in `</`, which completes the stop `</a>`.
        own = frozenset(self.stops)
        for stop in self.all_stops:
            cuts = (at for at in range(1, len(stop)) if text.endswith(stop[:at]))
            if any(stop in own or stop[at:] in self.place.found for at in cuts):
                return True
        return False

    def settle(self) -> None:
        """Add the continuations of the free text to each exact string.

        Exact strings are dropped if they allow nothing that the free text doesn't allow.
        """
        # Suppose that any text may precede `</x>!`, and that another option is the literal `<b></x>?`. Then `<b></x>` is an exact string,
        # followed by `?` or `!`, because `<b>` may also be the text before `</x>!`. In contrast, the literal `<b></x>!` would add no
        # continuation, so it would be dropped.
        for text in list(self.exact):
            stop = max((stop for stop in self.all_stops if text.endswith(stop)), key=len)
            known = list(dict.fromkeys(followers(self.place, stop)))
            options = dict.fromkeys((*known, *self.exact[text]))
            if len(options) == len(known):
                del self.exact[text]
            else:
                self.exact[text] = list(options)


def followers(place: RulePlace, stop: str) -> list[Rest]:
    """Return the continuations after `stop`, at most about `MAX_OPTIONS`."""
    found: list[Rest] = []
    # References between places may be cyclic, so visit each place once.
    waiting = [place]
    seen = {id(place)}
    while waiting and len(found) <= MAX_OPTIONS:
        own, below = waiting.pop().after(stop)
        found += map(flat, own)
        fresh = [other for other in below if id(other) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh
    return found
