"""Tests of replaying recorded chunks, event by event, and in all other chunkings."""

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
    """A parser with a bug for replay to find: its result depends on the chunks."""

    __slots__ = ()

    def feed(self, text, **kwargs):
        return super().feed(text[:-1] if len(text) > 2 else text, **kwargs)


def test_steps_show_what_came_out_when():
    """Each chunk has its events, and the number of characters held back."""
    result = replay(PARSER, ["<thi", "nk>Rain?</think>Hel", "lo"])

    assert [(step.chunk, step.events, step.held) for step in result.steps] == [
        ("<thi", (), 4),
        ("nk>Rain?</think>Hel", (ReasoningText("Rain?"), ContentText("Hel")), 0),
        ("lo", (ContentText("lo"),), 0),
        (None, (MessageFinished(),), 0),
    ]


def test_other_chunkings_agree():
    """The whole text, single characters and every split in two give the same message and events."""
    result = replay(PARSER, ["<think>Rain?", "</think>Hello"])

    assert result.tried == 2 + len("<think>Rain?</think>Hello") - 1
    assert result.differences == ()
    assert result.message.reasoning == "Rain?"


def test_difference_is_found():
    """A parser whose message depends on the chunks is detected, with the chunking that shows the difference."""
    result = replay(partial(LosesChunkEnds, FORMAT, Request()), ["He", "ll", "o"])

    assert result.message.content == "Hello"
    assert "all at once" in [difference.chunking for difference in result.differences]
    assert result.differences[0].message.content == "Hell"


@pytest.mark.parametrize("chunks", [[], [""], ["", "a", ""]], ids=repr)
def test_empty_chunks(chunks):
    """Without chunks, or with empty chunks, there are no differences."""
    assert replay(ChatTemplate.from_string("{{ messages }}").prepare_rendered().parser, chunks).differences == ()


def test_long_outputs_are_cut_at_some_places():
    """A very long output is split at fewer positions, which are evenly spread."""
    result = replay(PARSER, ["a" * 20_000])

    assert 50 < result.tried < 1000


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "x"}}\n</tool_call>'


@pytest.mark.parametrize("text", ["Hello", f"A{CALL}B", f"<think>{CALL}</think>{CALL}", "<tool_call>x" * 3])
def test_what_is_settled_is_what_spans_tell(text):
    """After every character, the number of settled characters is the end of the last span."""
    template = ChatTemplate.from_file(TEMPLATES / "json-tags.jinja")
    parser = template.prepare([{"role": "user", "content": "x"}], tools=[{"name": "get_weather"}]).parser()

    for char in text:
        parser.feed(char)
        assert parser._settled == (max(parser.spans[-1].end, 0) if parser.spans else 0)
    parser.finish()
    assert parser._settled == len(text)
