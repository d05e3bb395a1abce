"""Recorded chunks, event by event, and against all other chunkings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from unrender import ChatTemplate, ContentText, Format, MessageFinished, Parser, ReasoningText
from unrender.explain import replay
from unrender.format import Reasoning, ReasoningMode
from unrender.types import Request

TEMPLATES = Path(__file__).parents[2] / "templates"
FORMAT = Format(reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"))
PARSER = partial(Parser, FORMAT, Request())


class LosesChunkEnds(Parser):
    """A parser with the mistake that replay is there to find: what it reads depends on the chunks."""

    __slots__ = ()

    def feed(self, text, **kwargs):
        return super().feed(text[:-1] if len(text) > 2 else text, **kwargs)


def test_steps_show_what_came_out_when():
    """Each chunk has its events, and says how much of it is held back."""
    result = replay(PARSER, ["<thi", "nk>Rain?</think>Hel", "lo"])

    assert [(step.chunk, step.events, step.held) for step in result.steps] == [
        ("<thi", (), 4),
        ("nk>Rain?</think>Hel", (ReasoningText("Rain?"), ContentText("Hel")), 0),
        ("lo", (ContentText("lo"),), 0),
        (None, (MessageFinished(),), 0),
    ]


def test_other_chunkings_agree():
    """All at once, single characters and every cut in two give the same message and the same events."""
    result = replay(PARSER, ["<think>Rain?", "</think>Hello"])

    assert result.tried == 2 + len("<think>Rain?</think>Hello") - 1
    assert result.differences == ()
    assert result.message.reasoning == "Rain?"


def test_difference_is_found():
    """A parser whose message depends on the chunks is caught, with the chunking that shows it."""
    result = replay(partial(LosesChunkEnds, FORMAT, Request()), ["He", "ll", "o"])

    assert result.message.content == "Hello"
    assert "all at once" in [difference.chunking for difference in result.differences]
    assert result.differences[0].message.content == "Hell"


@pytest.mark.parametrize("chunks", [[], [""], ["", "a", ""]], ids=repr)
def test_empty_chunks(chunks):
    """No chunks and empty chunks are not a difference."""
    assert replay(ChatTemplate.from_string("{{ messages }}").prepare_rendered().parser, chunks).differences == ()


def test_long_outputs_are_cut_at_some_places():
    """An output too long to be cut everywhere is cut in evenly spread places, fewer than it has characters."""
    result = replay(PARSER, ["a" * 20_000])

    assert 50 < result.tried < 1000


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>'


@pytest.mark.parametrize("text", ["Hello", f"A{CALL}B", f"<think>{CALL}</think>{CALL}", "<tool_call>x" * 3])
def test_what_is_settled_is_what_spans_tell(text):
    """After every character, the number of settled characters is where the last span ends."""
    template = ChatTemplate.from_file(TEMPLATES / "json-tags.jinja")
    parser = template.prepare([{"role": "user", "content": "x"}], tools=[{"name": "get_weather"}]).parser()

    for char in text:
        parser.feed(char)
        assert parser._settled == (max(parser.spans[-1].end, 0) if parser.spans else 0)
    parser.finish()
    assert parser._settled == len(text)
