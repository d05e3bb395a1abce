"""The template hunter finds planted failures, and none in a few mutants."""

from __future__ import annotations

import time
from random import Random

import pytest
from hunting import templates
from hunting.mutation import MUTATIONS, mutate

from unrender import ChatTemplate


def test_mutants_are_the_same_for_the_same_seed() -> None:
    """A seed reproduces its mutants, and mutants differ from their originals."""
    source = templates.originals()[0]

    once = [mutate(source, Random(seed)) for seed in range(20)]

    assert once == [mutate(source, Random(seed)) for seed in range(20)]
    assert len(set(once) - {source}) > 10


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_every_mutation_changes_something(mutation: object) -> None:
    """Each mutation changes at least one of our templates, and none fails on an empty one."""
    assert callable(mutation)
    changed = [mutation(source, Random(1)) != source for source in templates.originals()[-10:]]

    assert any(changed)
    assert mutation("", Random(1)) == ""


def test_planted_failures_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception, endless work and a rejected template are distinguished."""

    def broken(_self: ChatTemplate, *_args: object, **_kwargs: object) -> None:
        raise KeyError("planted")

    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
    assert templates.look_at(source, verified=True) == (False, None)
    assert templates.look_at("{% if %}", verified=True) == (True, None)

    monkeypatch.setattr(ChatTemplate, "prepare", broken)
    failure = templates.look_at(source, verified=False)[1]
    assert failure is not None
    assert failure.kind == "prepare: KeyError at test_templates.py:broken"

    monkeypatch.setattr(templates, "_ALL_SECONDS", 1)
    monkeypatch.setattr(templates, "_PATIENCE", 4)
    monkeypatch.setattr(ChatTemplate, "prepare", lambda *_args, **_kwargs: time.sleep(30))
    failure = templates.look_at(source, verified=False)[1]
    assert failure is not None
    assert failure.kind == "prepare: no end"


@pytest.mark.parametrize("count", [8, pytest.param(25, marks=pytest.mark.full)])
def test_a_few_mutants_break_no_promise(count: int) -> None:
    """Mutants of our own templates compile or are rejected, and do nothing undocumented."""
    random = Random(7)
    sources = templates.originals()[-50:]

    failures = [templates.look_at(mutate(random.choice(sources), random), verified=False)[1] for _ in range(count)]

    assert [failure for failure in failures if failure] == []
