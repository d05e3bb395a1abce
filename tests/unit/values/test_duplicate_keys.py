"""Duplicate keys of an object that arrives in chunks."""

from __future__ import annotations

import pytest

from unrender.values.scanner import LiteralScanner, LiteralStyle

TEXT = '{"b": 1, ":a": null, "a": 2}'


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_key_that_starts_with_a_colon_is_another_key(cut):
    """A chunk that ends after `":` doesn't turn the key `:a` into `a`."""
    scanner = LiteralScanner(LiteralStyle())
    scanner.scan(TEXT[:cut], 0, final=False)
    scanner.scan(TEXT, cut, final=True)

    assert scanner.duplicate == ""


def test_repeated_key_is_found():
    """A key that starts with a colon counts as repeated if it occurs twice."""
    scanner = LiteralScanner(LiteralStyle())
    scanner.scan('{":a": 1, ":a": 2}', 0, final=True)

    assert scanner.duplicate == ":a"
