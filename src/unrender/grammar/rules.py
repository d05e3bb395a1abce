"""Collects nodes as named rules, and shares equal ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from unrender.nodes import Node, Ref

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(slots=True)
class Rules:
    """Rules under construction: each distinct node gets one name, in lower-case letters, digits and `-`."""

    table: dict[str, Node] = field(default_factory=dict)
    _names: dict[Node, str] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)
    _reserved: set[str] = field(default_factory=set)

    def add(self, hint: str, node: Node) -> Ref:
        """Return a reference to the rule for `node`. If there is none yet, it is made and named after `hint`."""
        if isinstance(node, Ref):
            return node
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = self.reserve(hint)
            self.table[name] = node
        return Ref(name)

    def reserve(self, hint: str) -> str:
        """Return a free name like `hint`. The caller must define its rule."""
        base = _NOT_IN_NAMES.sub("-", hint.lower()).strip("-")[:40] or "rule"
        name = base
        while name in self._reserved or name in self.table:
            count = self._taken[base] = self._taken.get(base, 1) + 1
            name = f"{base}-{count}"
        self._reserved.add(name)
        return name

    def define(self, name: str, node: Node) -> Ref:
        """Define the rule `name` as `node`."""
        self.table[name] = node
        return Ref(name)

    def merge(self, rules: Mapping[str, Node]) -> None:
        """Add `rules` under their own names."""
        self.table.update(rules)
