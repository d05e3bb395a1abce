"""The table of limits."""

from __future__ import annotations

from unrender import limits
from unrender.bounds import Allowance, Bounds, Budget, Limits
from unrender.limits import LIMITS


def test_every_limit_is_in_the_table_once() -> None:
    """Under its own name, with its value, and a reason that is a sentence."""
    names = [limit.name for limit in LIMITS]

    assert len(set(names)) == len(names) > 100
    assert all(getattr(limits, limit.name) == limit.default > 0 for limit in LIMITS)
    assert [limit.name for limit in LIMITS if not limit.reason.endswith(".") or not limit.subject] == []


def test_bounds_are_limits_of_the_table() -> None:
    """Each default that a caller may change is one of them."""
    defaults = {limit.default for limit in LIMITS}
    bounds = Bounds()
    for part in (bounds.rendering, bounds.analysis, bounds.analysis.each, bounds.grammar):
        assert isinstance(part, Limits | Allowance | Budget)
        values = [getattr(part, name) for name in type(part).__slots__ if name != "each"]
        assert set(values) <= defaults
