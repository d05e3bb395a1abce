"""Damaged, cut off or quoted answers of a template: none becomes a call that nobody wrote.

Rules: a damaged call is parsed with the written arguments, or rejected with a report. A quoted call is text. The judge
in `tests/damaged.py` doesn't use the derived format. `pytest -m full` checks all cases of all templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from answers import all_template_paths
from composed.composition import drawn_sources
from damaged import Case, answers, damages, judged, quotations

from unrender import ChatTemplate, Turn
from unrender.errors import ExtendError

FEW, MANY, CASES = 24, 400, 60
SOURCES: dict[str, str | Path] = {**all_template_paths(), **drawn_sources(range(FEW))}
"""Templates by name: our own, the vendors' if available, and composed ones."""
each_source = pytest.mark.parametrize("name", sorted(SOURCES))


def damaged(source: str | Path, most: int | None) -> Iterator[tuple[ChatTemplate, Turn, Case]]:
    """Yield a template's damaged and quoted answers, at most `most`."""
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    chat = ChatTemplate.from_string(text, bos_token="<s>", eos_token="</s>")
    cases = [
        (chat, turn, case)
        for _, turn, text, said in answers(chat)
        for case in chain(damages(text, said), quotations(text, said))
    ]
    yield from cases if most is None else Random(7).sample(cases, min(most, len(cases)))


def found(source: str | Path, most: int | None) -> list[str]:
    """Return the errors in a template's answers, for at most `most` cases."""
    words = ((judged(*case), case[-1]) for case in damaged(source, most))
    return [f"{word}: {case.label}: {case.text!r}" for word, case in words if word in ("wrong", "false")]


@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@pytest.mark.few(20)
@each_source
def test_no_call_comes_of_damage_or_quotations(name):
    """A sample of each template's damaged and quoted answers is parsed correctly."""
    assert found(SOURCES[name], CASES) == []


def unanswered(source: str | Path, most: int) -> Iterator[str]:
    """Yield the answers that the parser and `Turn.next` read differently.

    The next turn needs a result for each call, an error for a failed call, and otherwise a user message.
    """
    ended = (
        (turn, case.text + end)
        for _, turn, case in damaged(source, most)
        for end in ("", *turn.format.turn.all_ends[:1])
    )
    for turn, answer in ended:
        message = turn.parse(answer)
        complete = [call for call in message.tool_calls if call.status == "complete"]
        new = [call.result("Wobble") for call in complete or message.failed_calls]
        try:
            prompt = turn.next(answer, new or [{"role": "user", "content": "Wobble"}], unfinished="text").prompt
        except ExtendError as error:
            if "inside reasoning" not in str(error):
                yield f"{error}: {answer!r}"
        else:
            if not (prompt.startswith(turn.prompt + answer) and "Wobble" in prompt[len(turn.prompt + answer) :]):
                yield f"not extended: {answer!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.few(12)
@each_source
def test_what_is_read_can_be_answered(name):
    """The parser and the next turn agree, even on damaged answers."""
    assert list(unanswered(SOURCES[name], CASES)) == []


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
def test_no_call_comes_of_any_damage_or_quotation():
    """All damaged and quoted answers of many templates are parsed correctly."""
    many = {**SOURCES, **drawn_sources(range(FEW, MANY))}

    assert {name: problems for name, source in many.items() if (problems := found(source, None))} == {}
