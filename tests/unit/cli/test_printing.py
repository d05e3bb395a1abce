"""Tests of printing: terminals never receive control characters from data, and no text breaks a line in two."""

from __future__ import annotations

import contextlib
import io
import json
import time
import unicodedata

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from unrender import ReasoningText
from unrender.cli import terminal
from unrender.printable import excerpt_at

ALIVE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
HOSTILE = st.text(
    alphabet=st.one_of(st.characters(categories=sorted(ALIVE)), st.characters(), st.sampled_from("ab \n"))
)


def printed(write, *arguments, **named) -> str:
    """Return the text that a function prints into a pipe."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        write(*arguments, **named)
    return stream.getvalue()


def alive(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in ALIVE}


@given(HOSTILE, HOSTILE)
def test_a_line_is_one_line(text, other):
    """Lines, headings and remarks are always one line."""
    for said in (
        printed(terminal.print_line, text, (other, "bold")),
        printed(terminal.remark, text),
        printed(terminal.print_heading, text, other).removeprefix("\n"),
    ):
        assert alive(said) == {"\n"}
        assert said.count("\n") == 1


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=3))
def test_columns_hold_text_alone(rows):
    """Rows, tables and blocks contain no control characters except line breaks."""
    assert alive(printed(terminal.print_rows, rows)) == {"\n"}
    assert alive(printed(terminal.print_table, ["a", "b"], rows)) == {"\n"}
    texts = [(text, "") for row in rows for text in row]
    assert alive(printed(terminal.print_block, texts)) <= {"\n"}


@pytest.mark.slow
@given(st.recursive(HOSTILE, lambda inner: st.lists(inner) | st.dictionaries(HOSTILE, inner), max_leaves=5))
def test_json_keeps_its_value(value):
    """Printed JSON has the same value, including lone surrogates."""
    said = printed(terminal.print_json, value)

    assert alive(said) == {"\n"}
    assert json.loads(said) == json.loads(json.dumps(value))


class Terminal(io.StringIO):
    """A fake terminal."""

    def isatty(self) -> bool:
        return True


def test_documents_reach_pipes_exactly():
    """A document is unchanged in a pipe, and escaped on a terminal."""
    document, screen = "a\x1b\tb\nc", Terminal()

    with contextlib.redirect_stdout(screen):
        terminal.print_document(document)

    assert printed(terminal.print_document, document) == document + "\n"
    assert screen.getvalue() == "a\\x1b\\tb\nc\n"


@pytest.mark.parametrize("length", [1, 79, 80, 81, 500])
def test_blocks_are_folded(monkeypatch, length):
    """Long lines of a block are folded without loss."""
    monkeypatch.setenv("COLUMNS", "40")

    said = printed(terminal.print_block, [("x" * length, "red"), ("y", "")], indent="  ")

    assert all(len(line) <= 40 for line in said.splitlines())
    assert said.replace("\n", "").replace(" ", "") == "x" * length + "y"


@pytest.mark.slow
def test_printing_takes_time_by_the_length():
    """Printing takes linear time for very long lines, values and lists."""

    def cost(characters: int) -> float:
        start = time.process_time()
        assert printed(terminal.print_block, [("x" * characters, "")]).count("x") == characters
        return time.process_time() - start

    # Quadratic cost would be 16 times as much.
    assert any(cost(800_000) < 8 * cost(200_000) for _ in range(3))

    rows = printed(terminal.print_rows, [("a", "y" * 3_000_000)] * 100_000)
    assert "… 99600 more …" in rows
    assert len(rows) < 3_000_000


@cases
def test_an_excerpt_is_one_line(text, at, shown):
    """An excerpt contains the text around a position, and the column of the position."""
    assert excerpt_at(text, at, 20) == tuple(shown)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_words_of_a_table_stay_whole(monkeypatch, columns):
    """On a narrow terminal, the last column is printed below the row, without breaking words."""
    monkeypatch.setenv("COLUMNS", str(columns))
    rules = "history-not-prefix-stable, special-tokens-injectable, reasoning-dropped-from-history"

    said = printed(terminal.print_table, ["template", "errors", "rules"], [["a-name-of-a-template", "10", rules]])

    assert max(map(len, said.splitlines())) <= columns
    assert set(rules.split()) <= set(said.split())


def terminal_of_80_columns(monkeypatch) -> io.StringIO:
    """Replace standard output with a fake terminal, and return it."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    found = Terminal()
    monkeypatch.setattr("sys.stdout", found)
    return found


def test_verdicts_and_events_are_coloured_for_a_terminal(monkeypatch):
    """Verdicts and events are coloured, and pieces of a block keep their styles."""
    stream = terminal_of_80_columns(monkeypatch)
    terminal.print_block([("a", ""), ("b", "red")])
    terminal.print_rows([("calls", "failed: no end"), ("text", "passed (8)"), ("name", "pass it")])
    terminal.print_event(ReasoningText("hm"))

    shown = stream.getvalue()
    assert shown.startswith("a\x1b[31mb\x1b[0m\n")
    assert "\x1b[31mfailed: no end\x1b[0m" in shown
    assert "\x1b[32mpassed (8)\x1b[0m" in shown
    assert "  pass it\n" in shown.replace("\x1b[0m", "")
    assert shown.endswith("\x1b[35mreasoning   'hm'\x1b[0m\n")
