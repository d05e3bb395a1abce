"""Returns random samples of a grammar, like the answers of a model that makes no errors. These samples are used for fuzzing, demos and
tests.

Strategy: a random walk through the context-free rules. The minimum number of steps to complete each rule is computed beforehand. Once
the budget is spent, the walk takes the shortest path, so recursion ends. Free text consists of pieces that are hard to parse: quotes,
brackets, line breaks, prefixes of markers, other scripts.

The grammar's tags become marks in the sampled text. The marks are then removed, and their positions become the parts of the sample.
Marks are noncharacters, which no text contains.

Rules: the same seed returns the same text on every platform and in every Python release.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from unrender import nodes
from unrender.dialects.context_free import Lowered, Stopped, bounded_nesting, lower, rule_references
from unrender.dialects.stops import inverted
from unrender.errors import GrammarError
from unrender.limits import MAX_DOCUMENT, MAX_PIECES, MAX_PLACES
from unrender.nodes.patterns import Ranges, complement, holds

_WORDS = (
    *("hello", "world", "the", "weather", "in", "Paris", "is", "7", "degrees", "true", "null", "None", "02134", "3.5"),
    *("a<b&&c>d", "{x}", "[y]", "(z)", '"quoted"', "'single'", "\\", "back\\slash", "naïve", "東京", "😀"),
    *("<b>", "</b>", "&", "&amp;", "```", "#", "-", ":", ",", ";", "=", "/", "//", "\n", "\n\n", "\t"),
)
_LETTERS = "aeiorstnXYZ0179 "
_ODD = "\"'\\<>&{}[]/:,\n\té東😀"

_REDRAWS = 20
"""Maximum number of further attempts if an object in the sampled text has a duplicate key."""

_OPENERS = dict(zip(nodes.Role, nodes.MARKS, strict=False))
_CLOSER = nodes.MARKS[-1]
_ROLES = {mark: role for role, mark in _OPENERS.items()}
_UNMARKED = str.maketrans("", "", nodes.MARKS)


@dataclass(frozen=True, slots=True)
class SampledPart:
    """`text[start:end]` of a sample, with the `role` that the grammar's tag specifies. Parts may contain other parts."""

    role: nodes.Role
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A sampled text and its tagged parts, sorted by their start."""

    text: str
    parts: tuple[SampledPart, ...]


@bounded_nesting
def drawer(grammar: nodes.Grammar, *, budget: int = MAX_PLACES) -> Callable[[int], Sample]:
    """Return a function that maps a seed to a random sample of an expanded grammar. The same seed always gives the same sample.

    The grammar is lowered only once. `budget` limits the size of samples, and is roughly the number of free choices. Raises `GrammarError`
    if the grammar has no finite samples, or if it contains JSON values that aren't spelled out.

    >>> drawer(nodes.Grammar(nodes.Tag(nodes.Role.CONTENT, nodes.Literal("Hi"))))(1)
    Sample(text='Hi', parts=(SampledPart(role=<Role.CONTENT: 'content'>, start=0, end=2),))
    """
    lowered = lower(_marked(grammar), for_lexer=False)
    costs = rule_costs(lowered.rules)
    if costs[lowered.root] >= ENDLESS:
        raise GrammarError(f"rule {lowered.root!r}: it matches no finite text")

    @bounded_nesting
    def drawn(seed: int) -> Sample:
        seeds: list[int | str] = [seed, *(f"{seed} {number}" for number in range(_REDRAWS))]
        for one in seeds:
            draw = random.Random(one)  # noqa: S311 - nothing secret is drawn
            found = _unmarked(_Walk(lowered, costs, draw, budget).drawn())
            if not repeats_a_key(found.text):
                break
        return found

    return drawn


def _marked(grammar: nodes.Grammar) -> nodes.Grammar:
    """Return the grammar with a mark before and after each tagged part."""

    def mark(node: nodes.Node) -> nodes.Node:
        if not isinstance(node, nodes.Tag):
            return node
        return nodes.Sequence((nodes.Mark(_OPENERS[node.role]), node.node, nodes.Mark(_CLOSER)))

    rules = {name: nodes.rewrite(node, mark) for name, node in grammar.rules.items()}
    return nodes.Grammar(nodes.rewrite(grammar.root, mark), rules)


def _unmarked(marked: str) -> Sample:
    parts: list[SampledPart] = []
    opened: list[int] = []
    text: list[str] = []
    for character in marked:
        if character in _ROLES:
            opened.append(len(parts))
            parts.append(SampledPart(_ROLES[character], len(text), len(text)))
        elif character == _CLOSER:
            at = opened.pop()
            parts[at] = replace(parts[at], end=len(text))
        else:
            text.append(character)
    return Sample("".join(text), tuple(parts))


class _Walk:
    """A single random walk through the rules. `left` is the remaining budget."""

    def __init__(self, lowered: Lowered, costs: Mapping[str, int], draw: random.Random, budget: int) -> None:
        self.root = lowered.root
        self.rules = lowered.rules
        self.costs = costs
        self.draw = draw
        self.left = budget
        self.length = 0

    def drawn(self) -> str:
        """Return a random text that matches the root rule. Uses a stack of pending nodes instead of recursion."""
        text: list[str] = []
        waiting: list[nodes.Node] = [nodes.Ref(self.root)]
        while waiting:
            piece, following = self.step(waiting.pop())
            text.append(piece)
            waiting.extend(reversed(following))
            self.length += len(piece)
            if self.length > MAX_DOCUMENT:
                raise GrammarError(
                    f"sample: longer than {MAX_DOCUMENT} characters; the grammar requires a text of that length"
                )
        return "".join(text)

    def step(self, node: nodes.Node) -> tuple[str, Sequence[nodes.Node]]:
        """Visit one node of the walk. Returns the text that this step adds, and the nodes to visit in place of `node`."""
        match node:
            case nodes.Literal(text):
                return text, ()
            case nodes.Chars():
                return self.characters(node), ()
            case nodes.Sequence(parts):
                return "", parts
            case nodes.Choice(options):
                return "", (self.option(options),)
            case nodes.Optional(inner):
                return "", (inner,) if self.left > 0 and self.draw.random() < 0.6 else ()
            case nodes.Repeat(inner, low, high, None):
                return "", (inner,) * self.count(low, high)
            case nodes.Ref(name):
                self.left -= 1
                rule = self.rules[name]
                return self.text(rule) if isinstance(rule, Stopped) else ("", (rule,))
        raise nodes.refusal_of(node, "cannot be sampled")

    def option(self, options: tuple[nodes.Node, ...]) -> nodes.Node:
        # Once the budget is spent, take the shortest path, so that `list = "[" (list / "1") "]"` ends.
        if self.left > 0:
            able = [option for option in options if cost(option, self.costs) < ENDLESS]
            return able[self.draw.randrange(len(able))]
        return min(options, key=lambda option: cost(option, self.costs))

    def count(self, low: int, high: int | None) -> int:
        """Return a random number of repetitions, usually a small one."""
        self.left -= 1
        count = low
        if self.left > 0:
            most = low + (8 if self.draw.random() < 0.3 else 2)
            count = self.draw.randint(low, most if high is None else min(high, most))
        if count > MAX_DOCUMENT:
            raise GrammarError(f"sample: {count} repetitions; a text may have {MAX_DOCUMENT} characters")
        return count

    def characters(self, node: nodes.Chars) -> str:
        ranges = complement(node.ranges) if node.negated else node.ranges
        likely = [c for c in _LETTERS if holds(ranges, c)]
        odd = [c for c in _ODD if holds(ranges, c)]
        # Write at most one optional space for a class of whitespace, since tabs or long runs of spaces would test nothing new.
        if likely == [" "]:
            return " " * self.draw.randint(node.minimum, max(node.minimum, 1))
        return "".join(self.character(ranges, likely, odd) for _ in range(self.count(node.minimum, node.maximum)))

    def character(self, ranges: Ranges, likely: list[str], odd: list[str]) -> str:
        pool = odd if odd and (not likely or self.draw.random() < 0.25) else likely
        if pool and self.draw.random() < 0.8:
            return pool[self.draw.randrange(len(pool))]
        low, high = ranges[self.draw.randrange(len(ranges))]
        return chr(self.draw.randint(ord(low), min(ord(high), ord(low) + 60)))

    def text(self, node: Stopped) -> tuple[str, Sequence[nodes.Node]]:
        """Return text up to and including a stop, and a tuple with the rule after the stop. At the end of the output, the tuple is empty."""
        able = [(stop, ref) for stop, ref in node.branches if self.costs[ref.rule] < ENDLESS]
        pick = self.draw.randrange(len(able) + node.at_end)
        # Free text contains no marks, so remove the marks from stops.
        stops = tuple(dict.fromkeys(text for stop in node.stops if (text := stop.translate(_UNMARKED))))
        if self.left <= 0 and node.at_end:
            pick = len(able)
        if pick == len(able):
            return self.words(stops, ""), ()
        stop, following = able[pick]
        return self.words(stops, stop.translate(_UNMARKED)) + stop, (following,)

    def words(self, stops: tuple[str, ...], ending: str) -> str:
        """Return free text that precedes `ending`. The text plus `ending` contains no stop string, except at the very end."""
        text = ""
        for _ in range(self.count(0, 12)):
            piece = self.word(stops)
            if self.draw.random() < 0.7:
                piece += " "
            # Two words may form a stop together, such as `<` and `/x>`. In that case, skip the second word.
            if not _stopped(text + piece, ending, stops):
                text += piece
        return text

    def word(self, stops: tuple[str, ...]) -> str:
        if stops and self.draw.random() < 0.1:
            stop = stops[self.draw.randrange(len(stops))]
            return stop[: self.draw.randrange(len(stop))]
        return _WORDS[self.draw.randrange(len(_WORDS))]


def _stopped(text: str, ending: str, stops: tuple[str, ...]) -> bool:
    """Return whether `text` followed by `ending` contains a complete stop before its end, or ends with a longer stop than `ending`."""
    before = (text + ending)[:-1] if ending else text
    longer = (stop for stop in stops if len(stop) > len(ending) and stop.endswith(ending)) if ending else ()
    return any(stop in before for stop in stops) or any((text + ending).endswith(stop) for stop in longer)


ENDLESS = 10**9
"""The cost that marks a node without finite samples."""


def rule_costs(rules: Mapping[str, nodes.Node | Stopped]) -> dict[str, int]:
    """Return the cost of each rule, or `ENDLESS` for a rule without finite samples.

    The cost of a rule is recomputed whenever the cost of a rule that it refers to decreases.
    """
    costs = dict.fromkeys(rules, ENDLESS)
    users = inverted({name: rule_references(node) for name, node in rules.items()})
    queue = list(rules)
    while queue:
        changed: dict[str, None] = {}
        # Most rules come before the rules that they refer to, so one round in reverse order is usually enough.
        for name in reversed(queue):
            found = 1 + cost(rules[name], costs)
            if found < costs[name]:
                costs[name] = found
                changed.update(dict.fromkeys(users.get(name, ())))
        queue = list(changed)
    return costs


def cost(node: nodes.Node | Stopped, costs: Mapping[str, int]) -> int:
    """Return the minimum number of references to rules in a sample of `node`."""
    match node:
        case nodes.Ref(name):
            return costs[name]
        case nodes.Sequence(parts):
            return min(sum(cost(part, costs) for part in parts), ENDLESS)
        case nodes.Choice(options):
            return min((cost(option, costs) for option in options), default=ENDLESS)
        case nodes.Repeat(inner, low, _, _):
            return min(low * cost(inner, costs), ENDLESS)
        case Stopped(at_end=False):
            return min((costs[ref.rule] for _, ref in (*node.branches, *node.exact)), default=ENDLESS)
        case Stopped() | nodes.Literal() | nodes.Chars() | nodes.Optional():
            return 0
    raise nodes.refusal_of(node, "cannot be sampled")


_PIECE = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{}\[\],:]|[^"'{}\[\],:]+|.""", re.DOTALL)


def repeats_a_key(text: str) -> bool:
    """Return whether an object in `text` has a duplicate key.

    >>> [repeats_a_key(text) for text in ('{"a": {"b": 1}, "b": 2}', '[{a: 1, "b": ",", a: 2}]')]
    [False, True]
    """
    starts = [i for i, character in enumerate(text) if character == "{"][:MAX_PLACES]
    return any(_repeats(text, start) for start in starts)


def _repeats(text: str, start: int) -> bool:
    keys: set[str] = set()
    depth, key = 0, ""
    for found in islice(_PIECE.finditer(text, start), MAX_PIECES):
        piece = found.group()
        if piece in ("{", "["):
            depth += 1
        elif piece in ("}", "]"):
            depth -= 1
        if depth == 0:
            break
        if depth == 1 and piece == ":":
            if key in keys:
                return True
            keys.add(key)
        key = "" if piece in (",", "{", ":") else key + piece.strip("\"' \t\r\n")
    return False
