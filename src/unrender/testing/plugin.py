"""The pytest plugin: the fixture `chat`, whose cases cannot be left unfinished.

Rules: pytest imports this module in every run in which unrender is installed, be the project ours or not. So it imports nothing
heavy, nothing that may be missing, and nothing that a pytest from before the extra `testing` does not have.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pytest

if TYPE_CHECKING:
    from unrender.testing.chat import Chat

_FAILED: WeakSet[pytest.Item] = WeakSet()
"""Tests that have failed."""


@pytest.fixture
def chat(request: pytest.FixtureRequest) -> Iterator[Chat]:
    """Begin a test of a chat template: `chat("template.jinja").given(…).output("…").expect(…)`.

    Paths are searched for beside the test's file and then in the current folder. A chain that began and did not reach
    `expect` or `expect_tolerated` fails the test.
    """
    from unrender.testing.chat import Chat  # noqa: PLC0415 - see the rules above

    cases = Chat((request.path.parent, Path()))
    yield cases
    if cases.unfinished and request.node not in _FAILED:
        pytest.fail(
            f"chat: {len(cases.unfinished)} of the cases begun never reached expect(…), so nothing was tested",
            pytrace=False,
        )


@pytest.hookimpl(hookwrapper=True)  # Of both styles of wrappers, the one that every pytest knows.
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Remember that a test has failed: its unfinished cases are then no error."""
    outcome = yield
    if outcome.excinfo is None and outcome.get_result().failed:
        _FAILED.add(item)
