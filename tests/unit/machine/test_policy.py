"""The words of a policy for ambiguous text. `tests/corpus/answers` has their effects."""

from __future__ import annotations

import pytest

from unrender import Policy, RequestError


def test_a_policy_takes_plain_words() -> None:
    """Type checkers accept the words: mypy checks this file."""
    assert Policy(unknown_tools="call", tool_calls="streamed", undeclared_reasoning="content") != Policy()


@pytest.mark.parametrize("name", ["unknown_tools", "tool_calls", "undeclared_reasoning"])
def test_a_word_that_a_field_does_not_have_is_an_error(name: str) -> None:
    """The error names the field and its allowed words."""
    for given in ("sometimes", 5, None, []):
        with pytest.raises(RequestError, match=f"{name}: expected '.* or '"):
            Policy(**{name: given})
