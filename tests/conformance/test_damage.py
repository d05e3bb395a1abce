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
from composed.composition import drawn, template
from damaged import answers, damages, judged, quotations

from unrender import ChatTemplate
from unrender.errors import ExtendError

FEW, MANY, CASES = 24, 400, 60


def sources() -> dict[str, str | Path]:
    """Return templates by name: our own, the vendors' if available, and composed ones."""
    return {**all_template_paths(), **{f"composed {seed}": template(drawn(seed)) for seed in range(FEW)}}


def found(source: str | Path, most: int | None) -> Iterator[str]:
    """Yield the errors in a template's answers, for at most `most` cases."""
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    chat = ChatTemplate.from_string(text, bos_token="<s>", eos_token="</s>")
    cases = [
        (turn, case)
        for _, turn, text, said in answers(chat)
        for case in chain(damages(text, said), quotations(text, said))
    ]
    for turn, case in cases if most is None else Random(7).sample(cases, min(most, len(cases))):
        if (word := judged(chat, turn, case)) in ("wrong", "false"):
            yield f"{word}: {case.label}: {case.text!r}"


@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@pytest.mark.few(20)
@pytest.mark.parametrize("name", sorted(sources()))
def test_no_call_comes_of_damage_or_quotations(name):
    """A sample of each template's damaged and quoted answers is parsed correctly."""
    assert list(found(sources()[name], CASES)) == []


def unanswered(source: str | Path, most: int) -> Iterator[str]:
    """Yield the answers that the parser and `Turn.next` read differently.

    The next turn needs a result for each call, an error for a failed call, and otherwise a user message.
    """
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    chat = ChatTemplate.from_string(text, bos_token="<s>", eos_token="</s>")
    cases = [
        (turn, case.text + end)
        for _, turn, text, said in answers(chat)
        for case in chain(damages(text, said), quotations(text, said))
        for end in ("", *turn.format.turn.all_ends[:1])
    ]
    for turn, answer in Random(7).sample(cases, min(most, len(cases))):
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
@pytest.mark.parametrize("name", sorted(sources()))
def test_what_is_read_can_be_answered(name):
    """The parser and the next turn agree, even on damaged answers."""
    assert list(unanswered(sources()[name], CASES)) == []


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
def test_no_call_comes_of_any_damage_or_quotation():
    """All damaged and quoted answers of many templates are parsed correctly."""
    many = {**sources(), **{f"composed {seed}": template(drawn(seed)) for seed in range(FEW, MANY)}}

    assert {name: problems for name, source in many.items() if (problems := list(found(source, None)))} == {}
