"""Free text is unchanged: a format's own words in the middle of content come back character for character.

Only special tokens may be dropped from free text. A header, end of turn or wrapper made of words counts only in its own
place. Elsewhere the same words are content.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from answers import QUESTION, Said, all_template_paths, template_named, written
from splitting import fed, splits
from tables import table

from unrender import ChatTemplate, Turn
from unrender.format import Format

_SPECIAL = ("<", "|", "[/", "[T", "[A", "[E", "[S", "[I", "[B", "◁")
"""Characters and parts of special tokens. The judge shares no code with the parser."""


def words_of(format: Format) -> list[str]:
    """Return the markers made of words: headers, ends of turn, wrappers, and starts of reasoning."""
    turn = format.turn
    texts = [*turn.headers, turn.unasked, turn.end, *turn.ends, format.reasoning.start, format.reasoning.end]
    texts += [text for wrapper in format._wrappers for text in (wrapper.start, wrapper.end)]
    texts += [turn.reasoning_to_content, turn.content_to_tools, turn.tools_to_content, turn.start_to_tools]
    found = dict.fromkeys(text.strip() for text in texts)
    return [text for text in found if len(text) > 1 and not any(sign in text for sign in _SPECIAL)]


def planted(words: str) -> Iterator[str]:
    """Yield texts with the words in mid-sentence, on their own line, and at the start of a line."""
    yield f"Question 1. {words} 42. And {words}so on."
    yield f"One.\n{words}\nTwo.\n\n{words} three\n{words}{words}\nfour."
    yield f"A {words}, x{words}y."


def check(template: ChatTemplate, turn: Turn, texts: list[str], *, thinking: bool) -> None:
    altered = {}
    for text in texts:
        answer = written(template, turn, Said(text), thinking=thinking)
        if answer is None:
            continue
        found = turn.parse(answer).content
        if found != text:
            altered[text] = found
        for chunks in splits(answer, 7):
            parser = turn.parser()
            fed(parser, chunks)
            assert parser.message.content == found, (answer, chunks)
    assert altered == {}


@pytest.mark.few(60)
@pytest.mark.parametrize("name", all_template_paths())
def test_words_of_a_format_in_content_come_back(name):
    """Content that contains the format's words is unchanged, for our own and the vendors' templates."""
    template = template_named(name)
    for thinking in (True, False):
        turn = template.prepare(QUESTION, enable_thinking=thinking)
        texts = [text for words in words_of(turn.format) for text in planted(words)]
        check(template, turn, texts, thinking=thinking)


T: Any = table("test_free_text")


def source(headers: tuple[str, str], end: str, *, prompted: str, thinks: bool) -> str:
    """Return a template with these headers and ends."""
    user, bot = (repr(text) for text in headers)
    thought = "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>\n{% endif %}" if thinks else ""
    return (
        "{% for m in messages %}{% if m.role == 'assistant' %}{{ " + bot + " }}" + thought + "{{ m.content }}{{ "
        f"{end!r}"
        " }}{% else %}{{ " + user + " + m.content + " + repr(end) + " }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ " + repr(prompted) + " }}{% endif %}"
    )


ODD = [
    (headers, end, prompted, thinks)
    for headers, end, thinks in itertools.product(T["HEADERS"], T["ENDS"], (False, True))
    for prompted in dict.fromkeys((headers[1], headers[1].rstrip(), ""))
]


@pytest.mark.few(24)
@pytest.mark.parametrize(("headers", "end", "prompted", "thinks"), ODD)
def test_words_of_odd_headers_in_content_come_back(headers, end, prompted, thinks):
    """Content is unchanged for templates whose headers and ends are words, punctuation or nothing."""
    with warnings.catch_warnings(action="ignore"):
        template = ChatTemplate.from_string(source(headers, end, prompted=prompted, thinks=thinks), eos_token="</s>")
        turn = template.prepare(QUESTION)
    own = [text.strip() for text in (*headers, end) if text.strip() not in ("", "</s>", "<|end|>")]
    check(template, turn, [text for words in own for text in planted(words)], thinking=True)
