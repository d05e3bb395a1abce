"""The pytest plug-in with the fixture `chat`. A case without an expectation fails the test.

Rules: pytest imports this module in every run, in any project, if unrender is installed. So the module imports nothing slow or optional,
and only names that older versions of pytest also define.
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
"""The tests that have failed so far."""


@pytest.fixture
def chat(request: pytest.FixtureRequest) -> Iterator[Chat]:
    """Test a chat template: `chat("template.jinja").given(…).output("…").expect(…)`.

    Paths are relative to the test file's folder, or else to the current folder. The test fails if a chain of calls doesn't end with
    `expect`.
    """
    from unrender.testing.chat import Chat  # noqa: PLC0415 - see the rules above

    cases = Chat((request.path.parent, Path()))
    yield cases
    if cases.unfinished and request.node not in _FAILED:
        pytest.fail(
            f"chat: cases that never called expect(…): {len(cases.unfinished)}; they tested nothing",
            pytrace=False,
        )


@pytest.hookimpl(hookwrapper=True)  # Use the style of hook wrapper that every version of pytest supports.
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Record failed tests, because their unfinished cases aren't reported."""
    outcome = yield
    if outcome.excinfo is None and outcome.get_result().failed:
        _FAILED.add(item)
