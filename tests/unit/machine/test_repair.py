"""The cost of parsing damaged calls."""

from __future__ import annotations

from typing import Any

import pytest

from unrender import ChatTemplate
from unrender.answer.build import answer_of, calls_of
from unrender.answer.views import CallView
from unrender.machine.calls.mending import mend

SOURCE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for call in m.tool_calls or [] %}{% set f = call.function %}"
    "<call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>\n"
    "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</call>{% endfor %}</>{% endfor %}<assistant>"
)
TOOL = {"name": "plan", "parameters": {"properties": {"title": {"type": "string"}, "hour": {"type": "string"}}}}


class Counted(str):  # noqa: SLOT000 -- one text
    """A text that counts the characters read by slicing or counting."""

    looked = 0

    def __getitem__(self, key) -> str:
        found = super().__getitem__(key)
        self.looked += len(found)
        return found

    def count(self, *asked: Any) -> int:
        self.looked += len(self) - asked[1]
        return super().count(*asked)


@pytest.mark.parametrize("place", ["\n<parameter=hour>\n</parameter>\n-", "</function> "])
def test_long_value_costs_its_length(place):
    """A value with many copies of its call's markers is read in one pass: twice the value costs twice as much."""
    turn = ChatTemplate.from_string(SOURCE).prepare_rendered(tools=[TOOL])
    view = CallView(calls_of(turn.format, turn.request)[0], answer_of(turn.format, turn.request))
    looked = []
    for times in (200, 400):
        text = Counted(
            f"<call>\n<function=plan>\n<parameter=title>\n{place * times}</parameter></parameter></function>"
        )
        mend(view, text, 0, turn.request)
        looked.append(text.looked)

    assert looked[1] < 2.2 * looked[0]
