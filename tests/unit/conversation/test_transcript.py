"""Tests of conversations that a template refuses, and of fields with values of every type."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from rendering_rows import template_of
from tables import table

from unrender import ChatTemplate, Limits, TemplateError, UnrenderError
from unrender.conversation.transcript import SharedTime
from unrender.rendering import Rendering, Template
from unrender.training import assistant_mask

TEMPLATES = Path(__file__).parents[2] / "templates"
REQUEST: dict[str, Any] = table("transcript")["REQUEST"]
VALUES = (
    None,
    5,
    1.5,
    [],
    {},
    "",
    True,
    [[]],
    {"a": {"b": [None]}},
    [{}],
    [{"type": 5}],
    b"x",
    {1},
    {1: 2},
    object,
    "\ud800",
)
USER = {"role": "user", "content": "Hi"}


def places(value, path=()):
    """Yield the path of every field."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(path, value):
    """Return the request with the value at a path replaced."""
    request = deepcopy(REQUEST)
    holder: Any = request
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return request


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["json-tags", "bracket-id", "plain"])
def test_a_field_of_any_type_is_taken_or_refused_by_name(name):
    """Any value in any field of a request raises only the documented errors."""
    template, unexpected = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja"), []
    for path, value in product(places(REQUEST), VALUES):
        request = changed(path, value)
        for ask in (
            lambda request=request: template.prepare(**request),
            lambda request=request: assistant_mask(template, request["messages"], tools=request["tools"]),
        ):
            try:
                ask()
            except UnrenderError:
                pass
            except Exception as error:  # noqa: BLE001 -- the test reports it
                unexpected.append((path, value, error))

    assert unexpected == []


"""A template whose macro for parameters supports only single types."""


SLOW = "{% set n = namespace(x=0) %}{% for i in range(90000) %}{% for j in range(9) %}{% set n.x = n.x + 1 %}{% endfor %}{% endfor %}"
LONG = "{% if messages[2] %}WORK{% endif %}"
SAYS = "{% for m in messages %}<{{ m.role }}>{{ m.content | e }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TALK = [
    {"role": "system", "content": "Be <kind>"},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Ho"},
    {"role": "system", "content": "Be nice"},
    {"role": "user", "content": "Hi"},
]


def test_all_renderings_of_a_conversation_share_their_time():
    """A slow refusal isn't repeated for every concession. The first error is raised within two renderings' time."""
    source = SAYS + LONG.replace("WORK", SLOW.replace("90000", "2000") + "{{ raise_exception('no') }}")
    template = ChatTemplate.from_string(source, limits=Limits(rendering_seconds=0.25))
    template.analysis  # noqa: B018 -- made once, in time of its own
    start = thread_time()

    with pytest.raises(TemplateError, match=": no$"):
        template.prepare(TALK)

    assert thread_time() - start < 2 * 0.25 + 0.2


def test_what_takes_too_long_is_never_rendered():
    """Each rendering gets the remaining time. If too little is left, rendering doesn't start."""
    template = template_of("{{ messages[0].content }}", limits=Limits(rendering_seconds=1.0))
    time = SharedTime(left=1.5)
    seen = []

    def render(limited: Template) -> Rendering:
        seen.append(limited.limits.rendering_seconds)
        return Rendering(text="x")

    time.spend(template, render)
    time.left, time.kept = 0.8, 0.3
    time.spend(template, render)
    time.left = 0.3
    refused = time.spend(template, render)

    assert seen == [1.0, pytest.approx(0.5)]
    assert (refused.exhausted, time.cut) == (True, True)
