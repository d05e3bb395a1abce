"""Tests of the whole analysis: golden formats, and inputs that must not change a format."""

from __future__ import annotations

import sys
from pathlib import Path

import corpus
import hypothesis
import hypothesis.strategies as st
import pytest
from recipes import UNEXPECTED
from rendering_rows import template_of
from tables import table

from unrender.analysis import analyze
from unrender.analysis.ask import BOS, EOS, carries_needle
from unrender.format import ContentMode, Format, ReasoningMode, ToolMode

TEMPLATES = sorted(corpus.TEMPLATES.glob("*.jinja"))
MOST_RENDERINGS = 80
each_template = pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)


def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.few(46)
@each_template
def test_format_is_golden(path):
    """The derived format equals the reviewed one. `scripts/corpus.py` rewrites the reviewed formats."""
    golden = Format.from_json((corpus.GOLDEN / f"{path.stem}.json").read_text(encoding="utf-8"))

    assert corpus.derived_format(path) == golden


AMBIGUOUS = {"call-words": "a call with texts: "}
"""Diagnostics by template for two values that render alike. A text in quotation marks looks like a string of code: `f(a="b")`."""


@pytest.mark.few(8)
@pytest.mark.slow
@each_template
def test_no_needle_is_left(path):
    """No marker contains a piece of a probe, no rendered text is left unexplained, and the number of renderings is bounded."""
    analysis = analyze(template_of(source(path)))

    assert not carries_needle(analysis.format.to_json())
    unexplained = [text for text in analysis.diagnostics if text != "tool calls are not rendered"]
    assert [text for text in unexplained if not text.startswith(AMBIGUOUS.get(path.stem, "\n"))] == []
    assert analysis.renderings <= MOST_RENDERINGS


OTHER_WORDS = {
    "USER": "Whatisup",
    "USER2": "Andnowwhat",
    "CONTENT": "Allfine",
    "CONTENT2": "Notsofine",
    "REASONING": "Letmesee",
    "RESULT": "Tensticks",
    "WORD": "pebble",
    "NAMES": ("open_gate", "count_all", "walk_off"),
    "KEYS": ("alpha_key", "beta_key", "delta_key"),
    "IDS": ("abcdefgh1", "abcdefgh2", "abcdefgh3"),
    "NUMBERS": (51001, 52002, 53003),
}
_OTHER_TEXTS = [word for words in OTHER_WORDS.values() for word in ((words,) if isinstance(words, str) else words)]
OTHER_WORDS["NEEDLES"] = (BOS, EOS, *(word for word in _OTHER_TEXTS if isinstance(word, str)))


@pytest.mark.few(8)
@pytest.mark.slow
@each_template
def test_format_does_not_depend_on_needles(path, monkeypatch):
    """The format doesn't change with other words for questions, answers, tools, keys, ids and values."""
    template = template_of(source(path))
    before = analyze(template).format
    modules = [module for name, module in sys.modules.items() if name.startswith("unrender.analysis.")]
    for module in modules:
        for name in OTHER_WORDS.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, OTHER_WORDS[name])

    assert analyze(template).format == before


def test_every_mode_is_met():
    """The reviewed formats cover all modes of reasoning, content and calls."""
    formats = [Format.from_json(path.read_text(encoding="utf-8")) for path in corpus.GOLDEN.glob("*.json")]

    assert {format.reasoning.mode for format in formats} == set(ReasoningMode)
    assert {format.content.mode for format in formats} == set(ContentMode)
    assert {format.tools.mode for format in formats} == set(ToolMode)


def test_a_defect_of_analysis_is_a_diagnostic(monkeypatch):
    """If analysis fails, the template can still be rendered, and answers are parsed as content."""

    def broken(*_args: object, **_kwargs: object) -> None:
        raise ValueError("empty separator")

    monkeypatch.setitem(analyze.__globals__, "find_frame", broken)

    analysis = analyze(template_of("hello"))

    assert analysis.format == Format()
    assert analysis.diagnostics == (f"{UNEXPECTED}: ValueError: empty separator; the format is content alone",)


PIECES = st.sampled_from(table("test_derivation")["PIECES"])


@pytest.mark.slow
@hypothesis.given(st.lists(PIECES, max_size=9), st.lists(PIECES, max_size=3))
def test_odd_templates_are_analysed(pieces, tail):
    """A template of any pieces in any order has a format without needles."""
    body = "".join(pieces)
    end = "".join(piece for piece in tail if "m." not in piece)

    analysis = analyze(template_of(f"{{% for m in messages %}}{body}{{% endfor %}}{end}"))

    assert not carries_needle(analysis.format.to_json())
    assert Format.from_json(analysis.format.to_json()) == analysis.format
