"""Whether a node generates a text, by way of a regular expression; for nodes without references."""

from __future__ import annotations

import re

from unrender.grammar import Node
from unrender.nodes.patterns import write_pattern


def generates(node: Node, text: str) -> bool:
    """Return whether `node`, which is regular, generates exactly `text`."""
    return re.fullmatch(write_pattern(node), text) is not None
