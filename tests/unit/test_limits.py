"""The limits, as the table in the documentation lists them."""

from __future__ import annotations

import reference

from unrender import Bounds, limits
from unrender.bounds import Allowance, Budget, Limits

LISTED = list(reference.listed_limits())


def test_every_limit_is_listed_once() -> None:
    """Each name of the module is there, with a positive value, a subject, and a reason that is a sentence."""
    assert [limit.name for limit in LISTED] == [name for name in vars(limits) if name.isupper()]
    assert [
        limit.name for limit in LISTED if not limit.reason.endswith(".") or not limit.subject or limit.value <= 0
    ] == []


def test_bounds_are_listed_limits() -> None:
    """Each default that a caller may change is one of them."""
    values = {limit.value for limit in LISTED}
    bounds = Bounds()
    for part in (bounds.rendering, bounds.analysis, bounds.analysis.each, bounds.grammar):
        assert isinstance(part, Limits | Allowance | Budget)
        assert {getattr(part, name) for name in type(part).__slots__ if name != "each"} <= values
