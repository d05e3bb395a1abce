"""The fixture in pytest."""

from __future__ import annotations

import pytest

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


def test_a_case_that_holds_passes(project):
    """The fixture needs no import, and finds a template in the test's folder."""
    project("chat('template.jinja').output('Hi').expect(content='Hi')").assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_case_that_fails_shows_the_difference(project):
    """The report shows the difference, an expectation to paste, and the line of the test."""
    result = project("chat('template.jinja').output('Hi').expect(content='Ho')")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- .expect(content='Ho')*",
            "*+ .expect(content='Hi')*",
            "*  .expect(content='Hi')*",
            "suite/test_it.py:2: AssertionError",
        ]
    )


def test_a_chain_without_an_end_fails(project):
    """A case without `expect` fails its test."""
    result = project("chat('template.jinja').output('Hi')")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*cases that never called expect*: 1;*"])


def test_a_test_that_failed_before_is_not_blamed_twice(project):
    """If a test has already failed, a missing `expect` isn't reported."""
    project("chat('template.jinja').output(undefined).expect()").assert_outcomes(failed=1)
