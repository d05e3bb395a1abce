"""The same conversation gives the same prompt in every process: no addresses, randomness or hash order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cases import thinned
from tables import table

from unrender import ChatTemplate

T = table("determinism")
VALUES, WAYS = T["VALUES"], T["WAYS"]
SOURCE = "{% macro m() %}{% endmacro %}{% block b %}{% endblock %}{% for q in [1, 2] %}BODY{% endfor %}"
HERE = Path(__file__).resolve()


class Given:
    """A caller's value without a text of its own."""


def renderings(step: int) -> list[str]:
    """Return text and error of every nth value and kind of output."""
    bodies = [way.replace("VALUE", value) for value in VALUES for way in WAYS][::step]
    results = [
        ChatTemplate.from_string(SOURCE.replace("BODY", body))._with_tools.render([{"role": "user"}], given=Given())
        for body in bodies
    ]
    return [f"{result.text}|{result.error}" for result in results]


@pytest.mark.slow
@thinned(7)
def test_no_address_reaches_a_rendering(step):
    """All renderings are the same in two processes, and contain no memory addresses."""
    script = f"import sys; sys.path[:0] = {[str(HERE.parent), str(HERE.parents[2])]!r}; import {HERE.stem} as t; print(t.renderings({step}))"
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=120)
        for _ in range(2)
    ]

    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) > 10 * len(VALUES) * len(WAYS) / step
    assert "0x" not in runs[0].stdout


def test_opaque_values_keep_a_readable_text():
    """Addresses and Python's internal names are missing, but authors still recognise a value printed by mistake."""
    rendering = ChatTemplate.from_string(
        "{{ messages.append }} {{ [joiner()] }} {{ range }} {{ [raise_exception, dict] }}"
    )._with_tools.render([])

    assert rendering.text == "<method append> [<jinja2.utils.Joiner object>] <callable> [<callable>, <callable>]"


def test_address_in_a_text_is_kept():
    """Text of a conversation that looks like an address is kept."""
    assert (
        ChatTemplate.from_string("{{ text }}{{ [text] }}")._with_tools.render([], text="x at 0xff").text
        == "x at 0xff['x at 0xff']"
    )
