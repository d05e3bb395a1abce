"""Computes the least number of rules that a text of each rule needs: the shortest way out of a recursion."""

from __future__ import annotations

from collections.abc import Mapping

from unrender.emit.lowering import Stopped, references
from unrender.grammar.nodes import Choice, Node, Ref, Repeat, Sequence

ENDLESS = 10**9
"""The cost of what has no text that ends."""


def rule_costs(rules: Mapping[str, Node | Stopped]) -> dict[str, int]:
    """Return the cost of each rule; `ENDLESS` for a rule without a finite text.

    The cost of a rule is computed again when a rule that it refers to has become cheaper, the cheapest first.
    """
    costs = dict.fromkeys(rules, ENDLESS)
    users: dict[str, list[str]] = {}
    for name, node in rules.items():
        for below in set(references(node)):
            users.setdefault(below, []).append(name)
    queue = list(rules)
    while queue:
        changed: dict[str, None] = {}
        for name in reversed(queue):
            found = 1 + _rule_cost(rules[name], costs)
            if found < costs[name]:
                costs[name] = found
                changed.update(dict.fromkeys(users.get(name, ())))
        queue = list(changed)
    return costs


def cost(node: Node, costs: Mapping[str, int]) -> int:
    """Return the least number of rules that a text of `node` passes through."""
    match node:
        case Ref(name):
            return costs[name]
        case Sequence(parts):
            return min(sum(cost(part, costs) for part in parts), ENDLESS)
        case Choice(options):
            return min((cost(option, costs) for option in options), default=ENDLESS)
        case Repeat(inner, low, _, _):
            return min(low * cost(inner, costs), ENDLESS)
    return 0


def _rule_cost(node: Node | Stopped, costs: Mapping[str, int]) -> int:
    if not isinstance(node, Stopped):
        return cost(node, costs)
    following = [costs[ref.rule] for _, ref in (*node.branches, *node.exact)]
    return 0 if node.at_end else min(following, default=ENDLESS)
