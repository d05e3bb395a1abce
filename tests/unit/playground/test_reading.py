"""Films of an output: a step for each chunk."""

from __future__ import annotations

from functools import cache

import pytest

from unrender import ChatTemplate
from unrender.playground import reading
from unrender.playground.reading import film, recorded

SOURCE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"


@cache
def turn():
    return ChatTemplate.from_string(SOURCE).prepare([{"role": "user", "content": "Hi"}])


def fed(shown):
    return [step["fed"] for step in shown["steps"]]


@pytest.mark.parametrize(
    ("chunk", "size", "steps"),
    [
        (1, 1, [1, 2, 3, 4, 5, 5]),
        (2, 2, [2, 4, 5, 5]),
        (9, 9, [5, 5]),
        (0, 1, [1, 2, 3, 4, 5, 5]),
        (-3, 1, [1, 2, 3, 4, 5, 5]),
    ],
)
def test_a_film_has_a_step_for_each_chunk(chunk, size, steps):
    """Chunks have at least a character; the last step is the end."""
    shown = film(turn(), "abcde", chunk)

    assert (shown["chunk"], fed(shown)) == (size, steps)


@pytest.mark.parametrize(("most", "size", "steps"), [(5, 1, 6), (4, 2, 4), (2, 3, 3), (1, 5, 2)])
def test_a_film_has_so_many_steps_at_most(monkeypatch, most, size, steps):
    """A long output is fed in larger chunks."""
    monkeypatch.setattr(reading, "MOST_FILM_STEPS", most)
    shown = film(turn(), "abcde", 1)

    assert (shown["chunk"], len(shown["steps"])) == (size, steps)


@pytest.mark.parametrize(("most", "steps"), [(9, [1, 3, 6, 6]), (3, [1, 3, 6, 6]), (2, [3, 6, 6]), (1, [6, 6])])
def test_a_recorded_stream_keeps_its_chunks(monkeypatch, most, steps):
    """Neighbours are joined where there are too many."""
    monkeypatch.setattr(reading, "MOST_FILM_STEPS", most)
    shown = recorded(turn(), ["a", "bc", "def"])

    assert (shown["chunk"], fed(shown)) == (0, steps)


def test_nothing_is_a_film_of_its_end():
    """An empty output has one step."""
    assert fed(film(turn(), "", 4)) == [0]
    assert fed(recorded(turn(), [])) == [0]


def test_what_a_film_shows():
    """Events with their kind, the roles of the whole, and the message."""
    shown = film(turn(), "Hi<|end|>", 100)

    assert shown["message"] == {"role": "assistant", "content": "Hi"}
    assert shown["spans"] == [
        {"role": "content", "start": 0, "end": 2},
        {"role": "marker", "start": 2, "end": 9},
    ]
    assert (shown["dead_calls"], shown["finish_reason"]) == ([], "stop")
    assert shown["steps"][0]["events"][0] == {"event": "ContentText", "text": "Hi"}
    assert shown["steps"][0]["deltas"] == [{"content": "Hi"}]
    assert shown["steps"][-1]["events"][-1]["event"] == "MessageFinished"


def test_what_is_settled_is_told():
    """What may be the beginning of a marker is not settled before more of it comes, or the end."""
    assert [step["settled"] for step in film(turn(), "a<|", 3)["steps"]] == [1, 3]
