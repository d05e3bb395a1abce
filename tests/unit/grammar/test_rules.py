"""Names of rules."""

from __future__ import annotations

from unrender.nodes import Rules


def test_no_name_is_given_twice():
    """A name with a number may be asked for, and is not given to another rule that gets that number."""
    rules = Rules()

    names = [rules.reserve(hint) for hint in ("a", "a-2", "a", "A!", "a-2", "")]

    assert names == ["a", "a-2", "a-3", "a-4", "a-2-2", "rule"]
