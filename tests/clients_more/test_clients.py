"""Popular clients work with the gateway: answers, streams, tools, structured answers, and errors.

`python3 scripts/run.py clients-more` installs them; without them the tests aren't collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clients_more.programs import CLIENTS, Person
from engines import installed

HELLO = "Hello there, ünïcödé."


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, address: str) -> Any:
    """Return each client."""
    made, api = CLIENTS[request.param]
    if not installed(made.package):
        pytest.skip(f"{made.package} is not installed")
    return made(address, api)


def can(client: Any, what: str) -> None:
    """Skip the test if the package doesn't support the feature."""
    if not hasattr(client, what):
        pytest.skip(f"{client.package} has none")


def test_answer_is_read(client: Any) -> None:
    """An answer's text doesn't include the reasoning before it."""
    said = client.chat("Hello")

    assert said == HELLO or client.package == "instructor"


def test_stream_is_read(client: Any) -> None:
    """A streamed answer arrives in several pieces that add up to it."""
    can(client, "streamed")
    pieces = client.streamed("Hello")

    assert len([piece for piece in pieces if piece]) > 1
    assert "".join(pieces) == HELLO or client.package == "instructor"


def test_tool_is_called(client: Any) -> None:
    """A call is parsed and run, and its result reaches the model."""
    can(client, "tool")

    assert "It rains." in client.tool("Rain?") or client.package == "smolagents"


def test_structured_answer_is_read(client: Any) -> None:
    """A forced call or a response format gives a `Person`."""
    assert isinstance(client.structured("Who?"), Person)


def test_error_is_understood(client: Any) -> None:
    """A prompt that is too long raises the package's own kind of error, and the package doesn't retry."""
    with pytest.raises(Exception) as caught:
        client.chat("too long")

    assert client.refusal in [kind.__name__ for error in causes(caught.value) for kind in type(error).mro()]
    assert "9999" in str(caught.value)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
