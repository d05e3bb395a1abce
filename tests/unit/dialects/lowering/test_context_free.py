"""PEG becomes context-free rules, exactly."""

from __future__ import annotations

import pytest

from unrender.dialects.lowering.context_free import Lowered, Stopped, lower
from unrender.errors import GrammarError
from unrender.nodes import (
    Atomic,
    Chars,
    Choice,
    Cut,
    End,
    Grammar,
    Layout,
    Literal,
    Negate,
    Optional,
    Peek,
    Ref,
    Repeat,
    Role,
    Sequence,
    Tag,
    Tolerated,
    Until,
    walk,
)

A, B, STOP = Literal("a"), Literal("b"), Literal("<x>")


def rules(root, **others) -> Lowered:
    return lower(Grammar(root, others))


def texts(lowered: Lowered) -> list[Stopped]:
    return [node for node in lowered.rules.values() if isinstance(node, Stopped)]


def test_what_only_the_parser_needs_falls_away():
    """Roles, cuts, atomic parts and tolerances leave plain nodes, neighbouring literals in one."""
    root = Sequence((Tag(Role.CONTENT, A), Cut(), Layout("\n"), Atomic(Choice((Tolerated(A), B))), Tolerated(A), End()))

    assert rules(root).rules == {"root": Literal("a\nb")}


def test_text_is_joined_with_its_stop():
    """`Until` and what follows it become one rule, the stop taken off the continuation."""
    (text,) = texts(rules(Sequence((Until(("<x>",)), Literal("<x>more")))))

    assert (text.stops, text.at_end) == (("<x>",), False)
    assert [stop for stop, _ in text.branches] == ["<x>"]


def test_layout_before_the_stop_belongs_to_the_stop():
    """The text ends before the layout that the template writes; the bare stop has no branch, so it cannot be written."""
    (text,) = texts(rules(Sequence((Until(("<x>",)), Literal("\n<x>")))))

    assert text.stops == ("<x>", "\n<x>")
    assert [stop for stop, _ in text.branches] == ["\n<x>"]


def test_text_at_the_end_needs_no_stop():
    """The last text of an answer may run to the end, but holds no stop."""
    (text,) = texts(rules(Until(("<x>",))))

    assert (text.stops, text.branches, text.at_end) == (("<x>",), (), True)


def test_a_rule_that_ends_in_text_is_continued_where_it_is_used():
    """The stop may be after the reference, or be brought by the next round of a repetition."""
    referred = rules(Sequence((Ref("text"), STOP)), text=Sequence((A, Until(("<x>",)))))
    repeated = rules(Repeat(Sequence((STOP, Until(("<x>",))))))

    assert [[stop for stop, _ in text.branches] for text in texts(referred)] == [["<x>"]]
    assert [([stop for stop, _ in text.branches], text.at_end) for text in texts(repeated)] == [(["<x>"], True)]


def test_a_bounded_repetition_is_written_out():
    """Each round of text is followed by what may follow that round."""
    lowered = rules(Repeat(Sequence((STOP, Until(("<x>",)))), 1, 2))

    assert [text.at_end for text in texts(lowered)] == [True, True]
    assert sorted(len(text.branches) for text in texts(lowered)) == [0, 1]


def test_lookaheads_after_text_choose_among_its_continuations():
    """A literal lookahead is decided when the grammar is written."""
    continuations = Choice((Literal("<x>a"), Literal("<x>b")))

    only_b = rules(Sequence((Until(("<x>",)), Peek(Literal("<x>b")), continuations)))
    not_b = rules(Sequence((Until(("<x>",)), Negate(Literal("<x>b")), continuations)))

    assert only_b.rules[texts(only_b)[0].branches[0][1].rule] == B
    assert not_b.rules[texts(not_b)[0].branches[0][1].rule] == A


@pytest.mark.parametrize("node", [Peek(A), Negate(A), Negate(Chars((("a", "b"),)))])
def test_other_lookaheads_are_refused_by_name(node):
    """What no context-free rule can say is an error, not silence."""
    with pytest.raises(GrammarError, match=f"{type(node).__name__} cannot be written as a context-free rule"):
        rules(Sequence((node, A)))


def test_text_before_something_open_is_refused():
    """When no stop can be told from what follows, that is said."""
    with pytest.raises(GrammarError, match="cannot be told from what follows"):
        rules(Sequence((Until(("<x>",)), Chars((("a", "z"),)))))


def test_a_missing_rule_is_named():
    """An undefined reference is an error."""
    with pytest.raises(GrammarError, match="rule 'nowhere' is not defined"):
        rules(Ref("nowhere"))


def literals(lowered: Lowered) -> set[str]:
    nodes = [part for node in lowered.rules.values() if not isinstance(node, Stopped) for part in walk(node)]
    return {part.text for part in nodes if isinstance(part, Literal)}


def test_literals_that_begin_alike_are_factored():
    """No option begins as a longer one does, which would hide it from a lexer."""
    letters = Chars((("a", "z"),))

    after_text = rules(Sequence((Until(("<x>",)), STOP, Choice((Sequence((A, letters)), Literal("a!end"))))))
    before_more = rules(Sequence((Repeat(Sequence((Literal("\n"), letters))), Literal("\nend"))))

    assert literals(after_text) == {"", "a", "!end"}
    assert literals(before_more) == {"\n", "end"}


def test_literals_beside_free_text_end_at_a_stop():
    """Text that begins as a literal does is told apart from other text where a stop is complete."""
    (text,) = texts(rules(Choice((Sequence((Until(("<x>",)), Literal("<x>a"))), Literal("\n<x>b")))))

    assert [(stop, rule) for stop, rule in text.branches] == [("<x>", Ref("rest"))]
    assert [exact for exact, _ in text.exact] == ["\n<x>"]


def test_what_free_text_says_is_left_out():
    """A literal that goes on as the free text beside it does adds nothing."""
    more = Sequence((Until(("<x>",)), Literal("<x>a")))

    (text,) = texts(rules(Choice((more, Sequence((Literal("\n"), more)), Literal("\n<x>a")))))

    assert text.exact == ()


def test_separators_are_written_out():
    """A separator is between repetitions only."""
    assert rules(Repeat(A, 1, None, B)).rules["root"] == Sequence((A, Repeat(Literal("ba"), 0, None)))
    assert rules(Repeat(A, 0, 1, B)).rules["root"] == Optional(A)


def test_only_reachable_rules_are_kept():
    """What the root does not need is left out."""
    assert set(rules(Ref("used"), used=A, unused=B).rules) == {"root", "used"}
