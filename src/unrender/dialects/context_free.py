"""Converts a parsing expression grammar (PEG) to context-free rules, which all dialects can express.

Strategy: roles and cuts are dropped. "All text up to a stop" is not a context-free operator. So each `Until` is joined with its
continuation into one `Stopped`: text up to the first stop, the stop itself, and the continuation after this stop. If an `Until` ends its
rule, its continuation is moved into the rule, but only up to the literal that always stops the text. So one rule for a call can be shared
by all places where calls occur.

Rules: the result allows exactly the text that the PEG allows. Text is rejected if the PEG would end it at an earlier stop. A lookahead is
never dropped: if the literals after it aren't enough to decide it, lowering raises an error. The number of rules is linear in the source's
rules.

>>> lowered = lower(nodes.Grammar(nodes.Sequence((nodes.Until(("</a>",)), nodes.Literal("</a>!")))))
>>> lowered.rules["text"]
Stopped(stops=('</a>',), branches=(('</a>', Ref(rule='rest')),), at_end=False, exact=())
>>> lowered.rules["rest"]
Literal(text='!')
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from types import MappingProxyType
from typing import ParamSpec, TypeGuard, TypeVar

from unrender import nodes
from unrender.dialects.lexer_conflicts import Beginnings, FirstSets, Group, TextMix, TextSplit, followers
from unrender.dialects.stops import Openness, Rest, RulePlace, RulePlaces, flat, leaves_first, linked
from unrender.errors import GrammarError
from unrender.limits import MAX_OPTIONS, MAX_PIECES, STANDARD
from unrender.nodes.patterns import any_pattern

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stopped:
    """Text up to the first of `stops`, without the stop itself.

    `branches` contains the stops that may follow, with the rule after each stop. If any other stop follows, the text doesn't match. With
    `at_end`, the text may also continue to the end of the output without a stop. `exact` contains complete strings that end with a stop,
    and the rule after each string. For these strings, the rule in `exact` is used instead of the stop's branch.
    """

    stops: tuple[str, ...]
    branches: tuple[tuple[str, nodes.Ref], ...]
    at_end: bool
    exact: tuple[tuple[str, nodes.Ref], ...] = ()


def longer_stops(stops: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the longer stops that end with each stop, and that take precedence over it."""
    found: dict[str, tuple[str, ...]] = {}
    known = frozenset(stops)
    # `>>f` is a suffix of `>>>f`, so text that ends with the longer stop also ends with the shorter one.
    for other in stops:
        for at in range(1, len(other)):
            if other[at:] in known:
                found[other[at:]] = (*found.get(other[at:], ()), other)
    return found


@dataclass(frozen=True, slots=True)
class Lowered:
    """Context-free rules that are all reachable from `root`. `Stopped` occurs only at the top level of a rule.

    All other rules consist of `Literal`, `Chars`, `Sequence`, `Choice`, `Optional`, `Repeat` (without separator), `Ref` and `JsonValue`.
    """

    root: str
    rules: Mapping[str, nodes.Node | Stopped]
    unsure: bool = False
    """True if there were too many alternatives to compare. A lexer may then reject text that the grammar allows."""


def lower(grammar: nodes.Grammar, *, for_lexer: bool = True, steps: int = STANDARD.grammar_steps) -> Lowered:
    """Return the context-free form of an expanded grammar, which contains no call nodes.

    With `for_lexer`, alternatives that a lexer would confuse are rewritten, since a lexer prefers the longest literal.

    Raises `GrammarError` for a lookahead that no context-free rule can express, and for a grammar that takes more than `steps` steps.
    """
    lowering = _Lowering(grammar.rules, steps, for_lexer=for_lexer)
    root = lowering.rest((grammar.root,))
    lowering.finish()
    unsure = lowering.first_sets is not None and (lowering.first_sets.unsure or lowering.apart > MAX_PIECES)
    # Break reference cycles: `places` and `beginnings` contain bound methods of `lowering`, which would keep the grammar in memory until
    # garbage collection.
    del lowering.places, lowering.beginnings
    return Lowered(root.rule, reachable(root.rule, lowering.table, lowering.below), unsure)


def bounded_nesting(write: Callable[P, R]) -> Callable[P, R]:
    """Decorate `write` to raise `GrammarError` instead of `RecursionError` for nodes that are nested too deeply."""

    @wraps(write)
    def bounded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return write(*args, **kwargs)
        except RecursionError:
            raise GrammarError("grammar: nested too deeply; define rules for its inner parts") from None

    return bounded


def reachable(
    root: str, table: Mapping[str, nodes.Node | Stopped], below: Mapping[str, list[str]] = MappingProxyType({})
) -> Mapping[str, nodes.Node | Stopped]:
    """Return the rules of `table` that `root` needs, with `root` first. `below` contains the names of the rules that a rule refers to, if
    they are already known.
    """
    found: dict[str, nodes.Node | Stopped] = {}
    queue = [root]
    for name in queue:
        if name not in found:
            found[name] = table[name]
            queue.extend(below[name] if name in below else rule_references(table[name]))
    return found


def rule_references(node: nodes.Node | Stopped) -> list[str]:
    """Return the names of the rules that `node` refers to, in the order of their first use."""
    if isinstance(node, Stopped):
        return [branch.rule for _, branch in (*node.branches, *node.exact)]
    return nodes.references(node)


Exact = tuple[tuple[str, tuple[Rest, ...]], ...]


class _Lowering:
    """Lowers one grammar. A rule gets its name at the first reference and is written later, so chains of rules need no deep recursion."""

    def __init__(self, source: Mapping[str, nodes.Node], steps: int, *, for_lexer: bool) -> None:
        self.source = source
        self.most = steps
        self.links = linked(source)
        self.openness = Openness(self.links)
        self.places = RulePlaces(self.rule, self.step)
        self.beginnings = Beginnings(self.looked_into)
        self.ends_itself = False
        """True if no part of the current rule ends in free text."""
        self.first_sets = FirstSets(self.links, self.openness) if for_lexer else None
        # Find recursive rules, which must not be expanded for a lexer. Rules between two cycles count as recursive, too.
        ending = (leaves_first(self.links.below), leaves_first(self.links.users)) if for_lexer else (source,)
        self.recursive = frozenset(source).difference(*ending)
        self.table: dict[str, nodes.Node | Stopped] = {}
        self.bounded = frozenset(name for name in source if not self.openness.endings(nodes.Ref(name)))
        """Rules that don't end in free text."""
        # Without a lexer, it doesn't matter what precedes or follows such a rule. So the rule keeps its name, and usually its node.
        own = frozenset[str]() if for_lexer else self.bounded
        self.own = own if "root" not in own and all(map(nodes.RULE_NAME.fullmatch, own)) else frozenset[str]()
        self.rules = nodes.Rules(dict.fromkeys(self.own, nodes.EMPTY))
        self.below: dict[str, list[str]] = {}
        self.known: dict[object, nodes.Ref] = {}
        self.choices: dict[tuple[int, str], RulePlace] = {}
        self.loops: dict[nodes.Node, nodes.Node] = {}
        self.looped: dict[str, nodes.Node] = {}
        self.pending: deque[tuple[str, Callable[[], nodes.Node | Stopped]]] = deque()
        self.steps = 0
        self.apart = 0

    def step(self) -> None:
        # The number of rules is linear in the source, and each step has a limited cost. Limit the number of steps, so that a request fails
        # before it takes minutes.
        self.steps += 1
        if self.steps > self.most:
            raise GrammarError(f"grammar: more than {self.most} steps to write it; offer fewer tools, or simpler ones")

    def finish(self) -> None:
        """Write the pending rules."""
        while self.pending:
            self.step()
            name, write = self.pending.popleft()
            self.table[name] = write()

    def later(self, key: object, hint: str, write: Callable[[], nodes.Node | Stopped]) -> nodes.Ref:
        """Return a reference to the rule for `key`. A new rule gets a name based on `hint`, and is written later."""
        # A continuation has only one rule, even if many paths lead to it. So the number of rules stays linear.
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = nodes.Ref(self.rules.reserve(hint))
            self.pending.append((found.rule, write))
        return found

    def rule(self, name: str) -> nodes.Node:
        return self.looped.get(name) or self.source[name]

    def looked_into(self, name: str) -> nodes.Node | None:
        """Return the node of a rule, or None if the rule must not be expanded."""
        node = self.rule(name)
        return None if name in self.recursive or isinstance(node, nodes.JsonValue) else node

    def rest(self, parts: Rest) -> nodes.Ref:
        """Return a reference to the rule for `parts` in sequence. If the last part is free text, the text may continue to the end of the
        output.
        """
        first = parts[0] if parts else nodes.EMPTY
        # A single rule that doesn't end in free text is used directly.
        if len(parts) == 1 and self.known and isinstance(first, nodes.Ref) and not self.openness.endings(first):
            return self.named(first.rule)
        hint = "root" if not self.known else first.rule if isinstance(first, nodes.Ref) else "rest"
        return self.later(("rest", parts), hint, lambda: self.joined(parts))

    def joined(self, parts: Rest) -> nodes.Node:
        """Return the context-free form of `parts` in sequence. If a part ends in free text, it is joined with the parts up to a literal
        that always stops the text.

        A part is also joined if a lexer would confuse its continuation with the parts after it.
        """
        # Without a lexer, parts are written separately if none of them ends in free text.
        if self.first_sets is None and (self.ends_itself or not any(map(self.openness.endings, parts))):
            return nodes.sequence_of([self.closed(part) for part in parts])
        # In `Until("</a>"), name, "</a>"`, the free text may contain the name, so all three parts become one `Stopped`.
        done: list[nodes.Node] = []
        plain = flat(parts)
        at = 0
        while at < len(plain):
            end = self.joined_to(plain, at)
            done.append(self.continued(plain[at], plain[at + 1 : end]) if end > at else self.closed(plain[at]))
            at = max(end, at + 1)
        return nodes.sequence_of(done)

    def joined_to(self, parts: Rest, at: int) -> int:
        """Return the end index of the parts that must be joined with the part at `at`. Returns `at` if the part doesn't have to be joined."""
        if isinstance(parts[at], (nodes.Literal, nodes.Chars)):
            return at
        if not self.ends_itself and (endings := self.openness.endings(parts[at])):
            return _closed_at(endings, parts, at + 1)
        if self.first_sets is None or at + 1 == len(parts):
            return at
        # For example, if `", and"` follows `(", " entry)?`, a lexer that has read `, ` can't decide whether the optional part follows.
        ends = self.first_sets.ends(parts[at])
        return len(parts) if ends and self.first_sets.clash(ends, self.first_sets.first_of(parts[at + 1 :])) else at

    def chosen(self, options: Rest) -> nodes.Node:
        """Return a choice of options that don't end in free text. Options that a lexer would confuse are rewritten."""
        if self.first_sets is not None and self.first_sets.confused(options):
            return self.factored([flat((option,)) for option in options])
        return any_pattern([self.closed(option) for option in options])

    def continued(self, node: nodes.Node, rest: Rest) -> nodes.Node:
        """Return `node`, which may end in free text, joined with `rest`, which contains the stop."""
        match node:
            case nodes.Until(stops):
                return self.text(stops, rest)
            # `("a" text / "b")` before `</x>` becomes `"a" text "</x>" / "b" "</x>"`, because each option needs the stop after it.
            case nodes.Choice(options):
                return self.factored([flat((option, *rest)) for option in options])
            case nodes.Optional(inner):
                return self.factored([flat((inner, *rest)), rest])
            case nodes.Repeat():
                return self.rest(flat((self.loop(node), *rest)))
            case nodes.Ref(name):
                return self.rest(flat((self.rule(name), *rest)))
        raise GrammarError(f"{type(node).__name__} cannot be followed by other text")

    def loop(self, node: nodes.Repeat) -> nodes.Node:
        """Return a repetition as a chain of rules, one for each round. Each rule refers to the rule of the next round."""
        if node not in self.loops:
            again = () if node.separator is None else (node.separator,)
            name = f"loop {len(self.loops)}"
            rounds = max(node.minimum, 1) if node.maximum is None else node.maximum
            # Two to three rounds of `a` become `a a (a)?`, with one rule for each round. The last rule of an unbounded repetition refers to
            # itself.
            for count in range(rounds, 0, -1):
                more = nodes.Sequence((*again, nodes.Ref(f"{name} {min(count + 1, rounds)}")))
                tail = more if count < node.minimum else nodes.Optional(more)
                body = node.node if count == rounds and node.maximum is not None else nodes.Sequence((node.node, tail))
                self.looped[f"{name} {count}"] = body
                self.openness.add(f"{name} {count}", body)
                if self.first_sets is not None:
                    self.first_sets.add(f"{name} {count}", body)
            # A repetition `{0,0}` is empty. With `{0,…}`, the first round is optional.
            first = nodes.Ref(f"{name} 1")
            self.loops[node] = nodes.EMPTY if node.maximum == 0 else first if node.minimum else nodes.Optional(first)
        return self.loops[node]

    def text(self, stops: tuple[str, ...], rest: Rest) -> nodes.Ref:
        """Return the rule for `Until(stops)` joined with `rest`."""
        key = ("text", stops, rest, ())
        return self.later(key, "text", lambda: self.stopped(stops, self.places.place(stops, rest)))

    def stopped(self, stops: tuple[str, ...], place: RulePlace, exact: Exact = ()) -> Stopped:
        """Return the node for text up to one of `stops`. The continuations after each stop are those of `place`."""
        # Text up to `</x>` before `\n</x>!` has the stops `</x>` and `\n</x>`. Only the second stop has a branch, which continues with `!`.
        # So `a</x>!` is rejected, because the parser would end the text at the stop without the line break.
        branches = tuple((stop, self.branch(place, stop)) for stop in place.found)
        others = tuple((text, self.either(options)) for text, options in exact)
        return Stopped(tuple(dict.fromkeys((*stops, *place.found))), branches, place.at_end, others)

    def mixed(self, mixture: TextMix) -> nodes.Node:
        """Return a choice between free text and other options."""
        stops, rests = mixture.stops, mixture.rests
        # The result matches e.g. any text up to `</a>`, or exactly `<b>x</a>` with its own continuation. Exact strings take precedence over
        # the stop.
        rest = rests[0] if len(rests) == 1 else (nodes.Choice(tuple(map(nodes.Sequence, rests))),)
        beside = TextSplit(stops, rests, self.places.place(stops, rest), self.looked_into)
        beside.take(mixture.others)
        exact = tuple((text, tuple(options)) for text, options in beside.exact.items())
        text = self.later(("text", stops, rest, exact), "text", lambda: self.stopped(stops, beside.place, exact))
        return any_pattern([text, *([self.factored(beside.left)] if beside.left else [])])

    def either(self, options: tuple[Rest, ...]) -> nodes.Ref:
        """Return the rule for a choice of `options`, with common prefixes factored out."""
        return self.later(("options", options), "branch", lambda: self.factored(list(options)))

    def branch(self, place: RulePlace, stop: str) -> nodes.Ref:
        """Return the rule for the text after `stop`."""
        # In a chain of optional arguments, most places only lead to the next place. Skip such places, which don't need rules of their own.
        place = self.firstchoice(place, stop)
        own, below = place.after(stop)
        if len(own) == 1 and not below:
            return self.rest(flat(own[0]))
        return self.later((id(place), stop), "branch", lambda: self.branched(place, stop))

    def firstchoice(self, place: RulePlace, stop: str) -> RulePlace:
        """Return the first place on the path from `place` that has several continuations or ends the path."""
        # Cache the end of the path for each place. Without the cache, a chain of a thousand places would be traversed a thousand times.
        passed: list[RulePlace] = []
        while (id(place), stop) not in self.choices:
            passed.append(place)
            own, below = place.after(stop)
            if own or len(below) != 1:
                self.choices[id(place), stop] = place
            else:
                place = below[0]
        found = self.choices[id(place), stop]
        self.choices.update(((id(other), stop), found) for other in passed)
        return found

    def branched(self, place: RulePlace, stop: str) -> nodes.Node:
        own, below = place.after(stop)
        # If a lexer would confuse some options, list all options in this rule. Otherwise, leave them in the rules of the places below.
        if not below or self.is_confused(options := followers(place, stop)):
            return self.factored(list(map(flat, own)) if not below else options)
        return any_pattern([*map(self.rest, map(flat, own)), *(self.branch(other, stop) for other in below)])

    def is_confused(self, options: list[Rest]) -> bool:
        """Return whether a lexer would confuse some of `options`. Long lists of options aren't compared."""
        if self.first_sets is None:
            return False
        # Don't compare long lists, e.g. of 150 optional arguments in any order, because this would take too long. Set `unsure` instead.
        self.first_sets.unsure |= len(options) > MAX_OPTIONS
        return len(options) <= MAX_OPTIONS and self.first_sets.confused(map(nodes.Sequence, options))

    def factored(self, options: list[Rest]) -> nodes.Node:
        """Return a choice of `options`. If a lexer would confuse some of them, common prefixes are factored out, and free text is combined
        into one option.
        """
        options = list(dict.fromkeys(options))
        # Limit the number of pieces: to tell the options of `(a|b)*a(a|b){18}` apart by character, an automaton would need 250,000 states.
        if self.first_sets is None or len(options) == 1 or self.apart > MAX_PIECES:
            return any_pattern([self.rest(option) for option in options])
        # Factoring copies shared rules, so factor out only options that a lexer would confuse.
        if not self.first_sets.confused(map(nodes.Sequence, options)):
            return any_pattern([self.rest(option) for option in options])
        self.apart += len(options)
        if mixture := self.beginnings.mixture(options):
            return self.mixed(mixture)
        return any_pattern(list(dict.fromkeys(map(self.group, self.beginnings.groups(options)))))

    def group(self, group: Group) -> nodes.Node:
        self.step()
        options = tuple(flat(option) for option in group.options)
        return (
            nodes.sequence_of([nodes.Literal(group.shared), self.either(options)])
            if group.shared
            else self.rest(options[0])
        )

    def closed(self, node: nodes.Node) -> nodes.Node:
        """Return the context-free form of a node that doesn't end in free text."""
        match node:
            case nodes.Ref(name):
                return self.named(name)
            case nodes.Sequence(parts):
                return self.joined(parts)
            # Users write patterns such as `[a-z]{0}`, but no dialect supports zero repetitions.
            case nodes.Chars(maximum=0):
                return nodes.EMPTY
            case nodes.Literal() | nodes.Chars() | nodes.JsonValue():
                return node
            case nodes.Choice(options):
                return self.chosen(options)
            case nodes.Layout(text) | nodes.Mark(text):
                return nodes.Literal(text)
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.closed(inner)
            case nodes.Optional(inner):
                found = self.closed(inner)
                return replace(found, minimum=0) if _at_least_once(found) else nodes.Optional(found)
            case nodes.Repeat(inner, low, high, separator):
                return self.repeated(self.closed(inner), low, high, separator)
            case nodes.Cut() | nodes.End():
                return nodes.EMPTY
        raise nodes.refusal_of(node, f"cannot be written as a context-free rule: {node!r:.120}")

    def named(self, name: str) -> nodes.Ref:
        found = self.known.get(name)
        if found is None:
            found = self.kept(name) if name in self.own else self.later(name, name, lambda: self.ruled(name))
        return found

    def kept(self, name: str) -> nodes.Ref:
        """Return a reference to a rule that keeps its name. The rule's node is also kept if dialects can write it unchanged."""
        waiting = [name]
        for here in waiting:
            if here in self.known:
                continue
            self.known[here] = nodes.Ref(here)
            if here in self.links.plain and self.bounded.issuperset(self.links.below[here]):
                self.table[here] = self.source[here]
                self.below[here] = self.links.below[here]
                waiting += self.below[here]
            else:
                self.pending.append((here, partial(self.ruled, here)))
        return self.known[name]

    def ruled(self, name: str) -> nodes.Node:
        """Return the context-free form of a rule of the source grammar."""
        below = self.links.below.get(name, [])
        # If this rule contains no free text, and refers to no rule that ends in free text, none of its parts ends in free text.
        self.ends_itself = name in self.source and name not in self.links.texts and self.bounded.issuperset(below)
        if self.ends_itself and name in self.own:
            self.below[name] = below
        found = self.closed(self.rule(name))
        self.ends_itself = False
        return found

    def repeated(self, node: nodes.Node, low: int, high: int | None, separator: nodes.Node | None) -> nodes.Node:
        if node == nodes.EMPTY or high == 0:
            return nodes.EMPTY
        if separator is None:
            return (
                replace(node, minimum=0)
                if (low, high) == (0, 1) and _at_least_once(node)
                else nodes.Repeat(node, low, high)
            )
        # `a{2,4}` with separator `, ` becomes `a (", " a){1,3}`. With a minimum of 0, this sequence is optional: `(a (", " a){0,3})?`.
        again = nodes.sequence_of([self.closed(separator), node])
        more = self.repeated(again, max(low - 1, 0), None if high is None else high - 1, None)
        whole = nodes.sequence_of([node, more])
        return whole if low > 0 else nodes.Optional(whole)


def _closed_at(endings: Collection[tuple[str, ...]], parts: Rest, start: int) -> int:
    """Return the index after the first literal from `start` on that contains a stop from each element of `endings`."""
    # In `text, name, "</x>", rest`, all parts up to `</x>` become one rule. `rest` stays a separate rule, which all calls share.
    for at in range(start, len(parts)):
        part = parts[at]
        if isinstance(part, nodes.Literal) and all(any(stop in part.text for stop in stops) for stops in endings):
            return at + 1
    return len(parts)


def _at_least_once(node: nodes.Node) -> TypeGuard[nodes.Repeat | nodes.Chars]:
    return isinstance(node, (nodes.Repeat, nodes.Chars)) and node.minimum == 1
