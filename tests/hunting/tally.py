"""Results of a hunt: inputs tried, inputs rejected, and one minimised failure of each kind.

A generator is a module in this folder with three names:

- `NAME: str`, for `--only` and for the files of its regressions;
- `hunt(random, deadline, keep) -> Tally`: draw inputs until `spent()` passes `deadline`, check each, minimise failures
  and write them with `keep_failure`;
- `replay(text) -> Failure | None`: check one stored input again.

`scripts/hunt.py` runs them in separate processes with limits of memory and time. CI runs each for a few inputs and
replays all files of `regressions/`.
"""

from __future__ import annotations

import hashlib
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

from hypothesis import HealthCheck, Phase, settings

MINIMISING = 10.0
"""Maximum processor time for minimising one failing input, in seconds."""
REGRESSIONS = Path(__file__).resolve().parent / "regressions"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One broken guarantee."""

    kind: str
    """A short name for the guarantee and its failure, the same for all inputs that fail in the same way."""
    detail: str
    """The expected and the actual result."""
    input: str
    """The smallest failing input, as `replay` reads it."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The result of a hunt."""

    tried: int = 0
    refused: int = 0
    """Number of tried inputs that were rejected with a documented error."""
    failures: tuple[Failure, ...] = ()
    """One failure per kind."""

    def __add__(self, other: Tally) -> Tally:
        """Return the sum of two hunts. Of two failures of a kind, keep the smaller one."""
        smallest: dict[str, Failure] = {}
        for failure in (*self.failures, *other.failures):
            known = smallest.get(failure.kind)
            if known is None or len(failure.input) < len(known.input):
                smallest[failure.kind] = failure
        return Tally(
            tried=self.tried + other.tried, refused=self.refused + other.refused, failures=tuple(smallest.values())
        )


def drawing(**more: Any) -> settings:
    """Return settings with which Hypothesis only draws inputs, since a hunt minimises them itself."""
    plain: dict[str, Any] = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
    return settings(**plain | {"phases": (Phase.generate,)} | more)


class Generator(Protocol):
    """The interface of a generator module."""

    NAME: str

    def hunt(self, random: Random, deadline: float, keep: Path) -> Tally:
        """Draw and check inputs until `deadline`, a value of `spent()`. Write failures into the folder `keep`."""
        ...

    def replay(self, text: str) -> Failure | None:
        """Return the failure of one input, or None."""
        ...


def spent() -> float:
    """Return the seconds of processor time used by this process and its finished children."""
    return sum(os.times()[:4])


def place_of(error: BaseException) -> str:
    """Return the file and the function that raised, which distinguish kinds of failures."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.name}"


def keep_failure(folder: Path, name: str, failure: Failure) -> Path:
    """Write a failure's input into `folder` as `NAME-DIGEST.txt`, character for character, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    data = failure.input.encode("utf-8", "surrogatepass")
    path = folder / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
    path.write_bytes(data)
    return path


def kept_inputs(name: str, folder: Path = REGRESSIONS) -> list[str]:
    """Return the stored inputs of the generator `name`, in file order."""
    return [path.read_bytes().decode("utf-8", "surrogatepass") for path in sorted(folder.glob(f"{name}-*.txt"))]


def minimised(
    failure: Failure, parts: Sequence[str], joined: Callable[[str], str], replay: Callable[[str], Failure | None]
) -> Failure:
    """Return the failure with the fewest parts that fails in the same way. `joined` makes an input of their text."""
    until = spent() + MINIMISING
    size = len(parts) // 2
    while size and spent() < until:
        at, smaller = 0, False
        while at < len(parts) and spent() < until:
            shorter = [*parts[:at], *parts[at + size :]]
            found = replay(joined("".join(shorter)))
            if found and found.kind == failure.kind:
                parts, failure, smaller = shorter, found, True
            else:
                at += size
        size = size // 2 if not smaller or size > 1 else size
    return failure
