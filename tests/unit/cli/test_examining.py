"""Many templates at a time: outcomes in order, and processes that hang, die or fail."""

from __future__ import annotations

import os
import time
import warnings

import pytest

from unrender.cli.examining import examine
from unrender.errors import TemplateError


def ask(name: str) -> str:
    """Do what the name says, in another process."""
    match name:
        case "hangs":
            time.sleep(60)
        case "dies":
            os._exit(7)
        case "fails":
            raise TemplateError("no such luck")
        case "breaks":
            raise KeyError("oh")
        case "warns":
            warnings.warn("\x1b[31mmind", UserWarning, stacklevel=1)
    return name.upper()


@pytest.mark.slow
def test_each_name_has_its_outcome_in_order():
    """What hangs, dies or fails stops nothing, and everything comes in the order in which it was asked."""
    names = ["one", "hangs", "fails", "two", "dies", "breaks", "three"]

    outcomes = examine(names, ask, timeout=5, jobs=2)

    assert [outcome.name for outcome in outcomes] == names
    assert [outcome.result for outcome in outcomes] == ["ONE", None, None, "TWO", None, None, "THREE"]
    hangs, fails, dies, breaks = (outcomes[at].failure for at in (1, 2, 4, 5))
    assert hangs == "took longer than 5 s"
    assert fails == "no such luck"
    assert dies == "its process ended with code 7"
    assert breaks.startswith("KeyError: 'oh'; this is a defect of unrender")


def test_single_name_is_asked_here():
    """One template without a limit needs no process, and what goes wrong is raised."""
    assert examine(["one"], ask, timeout=None, jobs=2)[0].result == "ONE"
    with pytest.raises(TemplateError, match="no such luck"):
        examine(["fails"], ask, timeout=None, jobs=2)


@pytest.mark.slow
def test_warnings_of_processes_are_escaped(capfd):
    """What another process warns of reaches the terminal as text."""
    examine(["warns", "one"], ask, timeout=20, jobs=1)

    assert "warning: \\x1b[31mmind\n" in capfd.readouterr().err
