"""The next turn of every template: the prompt grows as the template would write it, or an error gives the reason.

Rules: Jinja alone renders a whole conversation, and the text after its answer is the expected text
(`tests/next_turns.py`). `pytest -m full` checks all cases of all templates, and the number of refusals.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from answers import all_template_paths, template_named
from composed.composition import drawn_sources
from next_turn_cases import AGAIN, TOOLS, USER
from next_turns import Judge

from unrender import ChatTemplate

FEW, MANY = 24, 400
SAMPLE, MOST_REFUSED = 30, 0.002
FAULTS = ("wrong", "pieces", "accepted", "raised")


SOURCES: dict[str, str | Path] = {**all_template_paths(), **drawn_sources(range(FEW))}
"""Templates by name: our own, the vendors' if available, and composed ones."""


def judged(source: str | Path, every: int) -> tuple[Counter[str], list[str]]:
    """Return the count of each verdict for a template, and the failures."""
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    chat = ChatTemplate.from_string(text, bos_token="<s>", eos_token="</s>")
    verdicts = [*Judge(chat, text).verdicts(every=every)]
    return Counter(verdict.word for verdict in verdicts), [str(it) for it in verdicts if it.word in FAULTS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.few(4)
@pytest.mark.parametrize("name", sorted(SOURCES))
def test_prompts_grow_by_what_the_template_writes(name):
    """For a sample of answers and conversations, the prompt is extended as the template writes it."""
    _, wrong = judged(SOURCES[name], SAMPLE)

    assert wrong[:3] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("closer", ["", "</answer>", "</answer><|end|>"])
def test_what_closes_content_is_written_once_behind_described_calls(closer):
    """Calls of injected tools are content, so the answer may already contain the end of content. It's written once."""
    turn = template_named("answer-wrapped").prepare([USER], tools=TOOLS)
    call = '<tool_call>\n{"name": "get_time", "arguments": {"zone": "CET"}}\n</tool_call>'
    answer = f"<think></think><answer>{call}{closer}"

    appended = "".join(piece.text for piece in turn.next(answer, [AGAIN]).appended)

    assert closer + appended == f"</answer><|end|><|user|>{AGAIN['content']}<|end|><|assistant|>"


@pytest.mark.full
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore")
def test_all_prompts_grow_and_few_are_refused():
    """All answers after all conversations of many templates extend the prompt, and few are refused."""
    many = {**SOURCES, **drawn_sources(range(FEW, MANY))}
    found = {name: judged(source, 1) for name, source in many.items()}
    counts = sum((count for count, _ in found.values()), Counter[str]())

    assert {name: wrong[:1] for name, (_, wrong) in found.items() if wrong} == {}
    assert counts["refused"] <= MOST_REFUSED * counts.total()


@pytest.mark.filterwarnings("ignore")
def test_results_stay_under_their_calls_in_later_turns():
    """If the whole conversation is rendered again, a client's own result ids match the calls they answer."""
    (text,) = drawn_sources([327]).values()
    chained = [*Judge(ChatTemplate.from_string(text, bos_token="<s>", eos_token="</s>"), text).chained()]

    assert len(chained) > 5
    assert [str(it) for it in chained if it.word in FAULTS] == []
