"""Verdicts on the grammars of a format, the engines that read them, and texts that a template never writes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases import cases
from engines import gbnf_reader, installed, lark_reader, tag_reader
from unit.verify.conftest import sound, template_named

from unrender import GrammarError, Turn
from unrender.grammar import Grammar, literal
from unrender.verify import Verdict
from unrender.verify import grammars as module
from unrender.verify.grammars import check_grammars, unwritten
from unrender.verify.renditions import Candidate


def judged(monkeypatch, read, engine="json"):
    """Check one dialect with a reader of the test's own."""
    monkeypatch.setattr(module, "_DIALECTS", {"own": module._Dialect(engine, "llama.cpp", read)})
    generated, _, own = check_grammars(sound(), 0)
    return generated, own


def recorder(asked):
    """Return a reader that accepts and records every answer."""

    def accepts(text):
        asked.append(text)
        return True

    return lambda grammar: accepts


def test_what_is_generated_is_read():
    """Two answers are generated for each request and parsed without an error. The finding lists the requests."""
    generated = next(check_grammars(sound(), 0))

    assert str(generated) == (
        "generated answers: passed (14 of 14): asked for tools, one call at most, no call, some call, this call, no tools, a schema"
    )


def test_a_dialect_whose_engine_is_not_there_is_skipped(monkeypatch):
    """Only the engine can judge a dialect."""
    _, own = judged(monkeypatch, None, engine="no_such_engine")

    assert str(own) == "own: skipped: no_such_engine is not installed"


@pytest.mark.parametrize("error", [ValueError("line 3"), GrammarError("line 3")])
def test_a_grammar_that_is_refused_fails(monkeypatch, error):
    """An engine's error about a grammar is a failed finding."""

    def read(grammar):
        raise error

    _, own = judged(monkeypatch, read)

    assert own.verdict is Verdict.FAILED
    assert (own.counterexample.expected, own.counterexample.found) == ("a grammar for tools", "line 3")


def test_generated_and_written_answers_are_accepted(monkeypatch):
    """The engine gets the generated answers, and the template's own answers that the request allows."""
    asked = []

    _, own = judged(monkeypatch, recorder(asked))

    call = '<call name="get_weather">{"text": "Rome", "count": 3}</call>'
    schema = '{"city": "Rome"}<|end|>'
    assert (own.verdict, own.held, own.total) == (Verdict.PASSED, len(asked), len(asked))
    assert asked[2:10] == [
        "Rain is likely.<|end|>",
        "<think>Look at the sky.</think>Rain is likely.<|end|>",
        f"{call}<|end|>",
        '<think>Look it up.</think><call name="find_place">{"flag": true}</call><|end|>',
        f'{call}<call name="find_place">{{"flag": true}}</call><|end|>',
        f"Let me see.{call}<|end|>",
        schema,
        f"<think>Look at the map.</think>{schema}",
    ]
    assert asked[-2:] == asked[8:10]


def test_an_answer_may_be_accepted_without_its_end(monkeypatch):
    """An engine that stops at the end of turn never sees the end itself."""
    _, own = judged(monkeypatch, lambda grammar: lambda text: "<|end|>" not in text)

    assert own.verdict is Verdict.PASSED


def test_an_answer_that_is_not_accepted_fails(monkeypatch):
    """The shortest rejected answer is the counterexample."""
    _, own = judged(monkeypatch, lambda grammar: lambda text: "Rain" not in text)

    assert own.verdict is Verdict.FAILED
    assert own.held == own.total - 8  # Two answers for each of: tools, one call at most, no call, no tools.
    assert own.counterexample.answer == "Rain is likely.<|end|>"
    assert own.counterexample.expected == "accepted, asked for tools"
    assert own.counterexample.found == "refused by the grammar"


def test_what_the_format_does_not_claim_is_not_asked_of_the_engine(monkeypatch):
    """If analysis dropped calls, the engine doesn't get the template's answers with calls."""
    asked = []
    monkeypatch.setattr(module, "_DIALECTS", {"own": module._Dialect("json", "llama.cpp", recorder(asked))})
    format = replace(sound().format, tools=type(sound().format.tools)(), tolerated=())
    list(check_grammars(replace(sound(), format=format, gave_up=True), 0))

    assert asked
    assert not any("<call" in text for text in asked)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_request_that_has_no_grammar(monkeypatch, by_hand):
    """All findings have the same reason, and no engine is used. A format fails; a handwritten grammar is skipped."""

    def sample(*_):
        raise GrammarError("no answer is short enough")

    monkeypatch.setattr("unrender.turn.Turn.sample", sample)

    candidate = replace(sound(), grammar=Grammar(literal("Hi")) if by_hand else None)
    verdict = "skipped: no answer is short enough" if by_hand else "failed (0 of 1)"
    names = ("generated answers", "written answers", "grammar in Lark", "grammar in GBNF", "structural tag")
    assert [str(found) for found in check_grammars(candidate, 0)] == [f"{name}: {verdict}" for name in names]


@cases
def test_a_generated_answer_that_is_not_read_fails(monkeypatch, written, found):
    """A grammar fails if it generates text that the parser rejects or reads as cut off."""
    monkeypatch.setattr("unrender.turn.Turn.sample", lambda *_: written)
    generated = next(check_grammars(sound(), 0))

    assert generated.verdict is Verdict.FAILED
    assert generated.counterexample.answer == written
    assert generated.counterexample.expected == "an answer that is read"
    assert generated.counterexample.found.startswith(found)


needs_llguidance = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
needs_xgrammar = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
ANSWERS = [("ab", True), ("abab", True), ("é", True), ("", False), ("a", False), ("aba", False), ("abé", False)]


def test_what_is_installed():
    """`installed` finds an engine without importing it."""
    assert installed("json")
    assert not installed("no_such_engine")


@needs_llguidance
@pytest.mark.parametrize(("text", "accepted"), ANSWERS)
def test_lark(text, accepted):
    """Only whole answers are accepted by llguidance, without missing or additional text."""
    assert lark_reader('start: "ab"+ | "é"')(text) is accepted


@needs_llguidance
def test_a_lark_reader_is_asked_again():
    """Earlier calls of a reader don't affect later ones."""
    accepts = lark_reader('start: "ab"')

    assert [accepts("a"), accepts("ab"), accepts("b"), accepts("ab")] == [False, True, False, True]


@needs_llguidance
def test_a_lark_grammar_that_is_refused():
    """The error has the engine's own message."""
    with pytest.raises(ValueError, match="missing"):
        lark_reader("start: missing")


@needs_xgrammar
@pytest.mark.parametrize(("text", "accepted"), ANSWERS)
def test_gbnf(text, accepted):
    """Only whole answers of a grammar are accepted by xgrammar."""
    assert gbnf_reader('root ::= "ab"+ | "é"')(text) is accepted


@needs_xgrammar
def test_structural_tag():
    """Only whole answers of a structural tag are accepted by xgrammar."""
    accepts = tag_reader({"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}})

    assert [accepts("ab"), accepts("a")] == [True, False]


CALL = '<call name="find_place">{"text": "Rome"}</call>'


def found(candidate: Candidate, text: str) -> str:
    return unwritten(candidate, Turn(prompt="", request=candidate.request, format=candidate.format), text)


@cases
def test_a_liberty_counts_as_written(text):
    """A grammar may write layout, headers and empty parts that the template doesn't write."""
    assert found(sound(), text) == ""


@cases
def test_what_ends_reasoning_is_never_before_calls(text, marker):
    """If calls are inside reasoning, the end of reasoning starts content."""
    assert found(Candidate.of(template_named("words-as-markers")), text).split(" ")[0].strip() == marker


def test_a_marker_that_no_answer_has_is_found():
    """If the format's calls end in an unknown marker, the marker is reported."""
    tools = replace(sound().format.tools, call_end="<done>")
    candidate = replace(sound(), format=replace(sound().format, tools=tools, tolerated=()))

    assert found(candidate, f"{CALL}<done>") == "<done>"
