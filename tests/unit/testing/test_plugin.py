"""The fixture in pytest."""

from __future__ import annotations

import pytest
from cases import cases

pytest_plugins = ["pytester"]

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def project(pytester):
    folder = pytester.mkdir("suite")
    (folder / "template.jinja").write_text(TEMPLATE)

    def run(body):
        (folder / "test_it.py").write_text(f"def test_it(chat):\n    {body}\n")
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly")

    return run


@cases
def test_the_fixture(project, why, body, outcomes, lines):
    """The fixture needs no import, and finds a template in the test's folder. Its report has these lines."""
    result = project(body)

    result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(lines)
