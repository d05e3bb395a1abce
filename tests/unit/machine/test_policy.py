"""The words with which a caller says how to read what can be read in two ways; `tests/corpus/answers` has what comes of them."""

from __future__ import annotations

import pytest

from unrender.machine.policy import CallRelease, CallsInReasoning, Policy, UndeclaredReasoning, UnknownTools


def test_the_words_of_a_policy() -> None:
    """States and configurations name them."""
    kinds = (UnknownTools, CallsInReasoning, UndeclaredReasoning, CallRelease)

    assert [[word.value for word in kind] for kind in kinds] == [
        ["content", "call"],
        ["rescue", "ignore"],
        ["read", "content"],
        ["complete", "written"],
    ]


@pytest.mark.parametrize("release", list(CallRelease))
def test_a_word_is_as_good_as_its_member(release: CallRelease) -> None:
    """Both make the same policy."""
    assert Policy(calls=release.value) == Policy(calls=release)


@pytest.mark.parametrize("name", ["unknown_tools", "calls_in_reasoning", "calls", "undeclared_reasoning"])
def test_a_word_that_a_field_does_not_have_is_an_error(name: str) -> None:
    """The error names the field and its words."""
    for given in ("sometimes", 5, None, []):
        with pytest.raises(ValueError, match=f"{name}: expected one of "):
            Policy(**{name: given})
