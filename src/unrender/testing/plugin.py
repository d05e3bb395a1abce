"""The pytest plugin: the fixture `chat`, whose cases cannot be left unfinished.

Rules: pytest imports this module in every run in which unrender is installed, so it imports nothing heavy itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from unrender.testing.chat import Chat

_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def chat(request: pytest.FixtureRequest) -> Iterator[Chat]:
    """Begin a test of a chat template: `chat("template.jinja").given(…).output("…").expect(…)`.

    Paths are searched for beside the test's file and then in the current folder. A chain that began and did not reach
    `expect` or `expect_tolerated` fails the test.
    """
    from unrender.testing.chat import Chat  # noqa: PLC0415 - see the rules above

    cases = Chat((request.path.parent, Path()))
    yield cases
    if cases.unfinished and not request.node.stash.get(_FAILED, False):
        pytest.fail(
            f"chat: {len(cases.unfinished)} of the cases begun never reached expect(…), so nothing was tested",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test has failed: its unfinished cases are then no error."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
