"""The limits as listed in the documentation's table, and those that callers can change in one place."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
import reference
from engines import gbnf, lark, structural_tag

from unrender import ChatTemplate, GrammarError, Limits, TemplateError, limits
from unrender.errors import SchemaWarning

LISTED = list(reference.listed_limits())


def test_every_limit_is_listed_once() -> None:
    """Each limit is listed with a positive value, a subject, and a reason that is a sentence."""
    assert [limit.name for limit in LISTED if "." not in limit.name] == [
        name for name in vars(limits) if name.isupper() and name != "STANDARD"
    ]
    assert [
        limit.name for limit in LISTED if not limit.reason.endswith(".") or not limit.subject or limit.value <= 0
    ] == []


def test_limits_of_a_caller_are_listed() -> None:
    """Each field of `Limits` is listed with its default."""
    listed = {limit.name: limit.value for limit in LISTED}

    assert (
        asdict(limits.STANDARD).items()
        == {name.removeprefix("Limits."): most for name, most in listed.items() if "." in name}.items()
    )


SOURCE = (Path(__file__).resolve().parents[1] / "templates" / "json-tags.jinja").read_text(encoding="utf-8")
HELLO = [{"role": "user", "content": "Hello"}]
PARAMETERS = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(20)}}
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": PARAMETERS}}]


@pytest.mark.parametrize(("characters", "fits"), [(len(SOURCE) - 1, False), (len(SOURCE), True)])
def test_a_source_is_as_long_as_it_may_be(tmp_path: Path, characters: int, *, fits: bool) -> None:
    """The length limit applies wherever the template comes from."""
    path = tmp_path / "chat_template.jinja"
    path.write_text(SOURCE, encoding="utf-8")
    limits = Limits(template_characters=characters)

    for load in (ChatTemplate.from_file, ChatTemplate.from_pretrained):
        if fits:
            assert load(path, limits=limits)._with_tools.source == SOURCE
        else:
            with pytest.raises(TemplateError, match=f"at most {characters} characters"):
                load(path, limits=limits)


def test_analysis_has_the_renderings_that_it_is_given() -> None:
    """Beyond the limit, nothing is derived. The same template with the default limit isn't affected."""
    few = ChatTemplate.from_string(SOURCE, limits=Limits(analysis_renderings=3))
    enough = ChatTemplate.from_string(SOURCE)

    assert few.analysis.renderings == 3
    assert "more variants than 3 renderings" in few.analysis.diagnostics[0]
    assert few.prepare(HELLO).format != enough.prepare(HELLO).format
    assert enough.format.tools.call_start


def test_a_grammar_has_the_parts_that_it_is_given() -> None:
    """A tool beyond the limit accepts any arguments. Exceeding the total is an error. The default allows both."""
    one = ChatTemplate.from_string(SOURCE, limits=Limits(tool_parts=10))
    all_together = ChatTemplate.from_string(SOURCE, limits=Limits(grammar_parts=10))
    exact = ChatTemplate.from_string(SOURCE).prepare(HELLO, tools=TOOLS).constraint("llama.cpp").grammar

    with pytest.warns(SchemaWarning, match="more than 10"):
        assert len(one.prepare(HELLO, tools=TOOLS).constraint("llama.cpp").grammar) < len(exact)
    turn = all_together.prepare(HELLO, tools=TOOLS)
    for write in (partial(gbnf, turn), partial(lark, turn), partial(structural_tag, turn), lambda: turn.sample(0)):
        with pytest.raises(GrammarError, match="21 parts, more than 10"):
            write()
