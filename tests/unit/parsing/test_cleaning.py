"""Cleaner: the text of broken calls is content only when the answer has no call."""

from __future__ import annotations

from unrender.parsing.cleaning import BrokenText, Cleaner
from unrender.parsing.events import ContentText, ToolCallStarted

CALL = ToolCallStarted(0, "id", "f")


def test_broken_text_is_content_when_no_call_comes() -> None:
    """Everything behind broken text waits for the end, and comes in order."""
    cleaner = Cleaner()

    assert cleaner.take([ContentText("a"), BrokenText("f{"), ContentText("b")]) == [ContentText("a")]
    assert cleaner.take([ContentText("c")]) == []
    assert cleaner.finish() == [ContentText("f{"), ContentText("b"), ContentText("c")]


def test_broken_text_is_dropped_when_a_call_comes() -> None:
    """The first call releases what waited, without the broken text; from then on broken text is dropped at once."""
    cleaner = Cleaner()
    cleaner.take([BrokenText("f{"), ContentText("b")])

    assert cleaner.take([CALL]) == [ContentText("b"), CALL]
    assert cleaner.take([BrokenText("g{"), ContentText("c")]) == [ContentText("c")]
    assert cleaner.finish() == []


def test_a_copy_is_independent() -> None:
    """What a copy takes does not show in the original."""
    cleaner = Cleaner()
    cleaner.take([BrokenText("f{")])
    cleaner.copy().take([CALL])

    assert cleaner.finish() == [ContentText("f{")]
