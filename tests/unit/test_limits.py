"""The limits as listed in the documentation's table."""

from __future__ import annotations

from dataclasses import asdict

import reference

from unrender import limits

LISTED = list(reference.listed_limits())


def test_every_limit_is_listed_once() -> None:
    """Each limit is listed with a positive value, a subject, and a reason that is a sentence."""
    assert [limit.name for limit in LISTED if "." not in limit.name] == [
        name for name in vars(limits) if name.isupper() and name != "STANDARD"
    ]
    assert [
        limit.name for limit in LISTED if not limit.reason.endswith(".") or not limit.subject or limit.value <= 0
    ] == []


def test_limits_of_a_caller_are_listed() -> None:
    """Each field of `Limits` is listed with its default."""
    listed = {limit.name: limit.value for limit in LISTED}

    assert (
        asdict(limits.STANDARD).items()
        == {name.removeprefix("Limits."): most for name, most in listed.items() if "." in name}.items()
    )
