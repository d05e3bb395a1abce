"""Measured costs → plots: what the benchmarks wrote into benchmarks/results, as curves over logarithmic axes.

Rules: a figure is what a file says; the command that measured it is written below each plot.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import environment
from svg import COLUMN, LINE, Drawing

RESULTS = environment.ROOT / "benchmarks" / "results"
_COLOURS = ("reasoning", "content", "name", "argument", "id", "malformed")
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 50, 420, 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What one thing costs: a value for each size."""

    title: str
    points: Mapping[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The ranges of a plot, both logarithmic, and the marks beside them."""

    sizes: Sequence[float]
    costs: Sequence[float]

    def place(self, size: float, cost: float) -> tuple[float, float]:
        """Return where a point lies in the picture."""
        return _LEFT + _share(size, self.sizes) * _WIDTH, _TOP + (1 - _share(cost, self.costs)) * _HEIGHT


def streaming() -> str:
    """Return the plot of what a chunk costs as an answer grows, over a parser that does nothing."""
    found = _result("streaming.json")
    curves = [
        Curve(
            title=case["title"],
            points={int(size): cost / case["nothing"][size] for size, cost in case["costs"].items()},
        )
        for case in found["cases"]
    ]
    return plot("What a chunk costs, over a parser that does nothing", curves, unit="characters", said=found["command"])


def grammars() -> str:
    """Return the plot of what grammars of unknown tools cost, by their number."""
    found = _result("request.json")
    curves = [
        Curve(
            title=row["dialect"].replace("_", " "), points={int(count): spent for count, spent in row["cold"].items()}
        )
        for row in found["dialects"]
    ]
    return plot("What a grammar costs, in ms, tools never seen", curves, unit="tools", said=found["command"])


def plot(title: str, curves: list[Curve], *, unit: str, said: str) -> str:
    """Return a picture of curves, each with its name beside it, and `said` below."""
    sizes = sorted({size for curve in curves for size in curve.points})
    costs = [cost for curve in curves for cost in curve.points.values()]
    axes = Axes(sizes=sizes, costs=list(_marks(min(costs), max(costs))))
    drawing = Drawing(title=title, width=840, height=_TOP + _HEIGHT + 80)
    drawing.run(20, 24, (title, ""))
    _draw_axes(drawing, axes, unit)
    names = _spread([axes.place(sizes[-1], curve.points[sizes[-1]])[1] for curve in curves])
    for place, (curve, name) in enumerate(zip(curves, names, strict=True)):
        colour = _COLOURS[place % len(_COLOURS)]
        points = [axes.place(size, cost) for size, cost in sorted(curve.points.items())]
        drawing.curve(points, f"curve c-{colour}")
        drawing.run(_LEFT + _WIDTH + 24, name, (curve.title, colour))
    drawing.run(20, _TOP + _HEIGHT + 60, (said, "quiet"))
    return drawing.text()


def _draw_axes(drawing: Drawing, axes: Axes, unit: str) -> None:
    for cost in axes.costs:
        _, y = axes.place(axes.sizes[0], cost)
        drawing.curve([(_LEFT, y), (_LEFT + _WIDTH, y)], "edge")
        drawing.run(_LEFT - 8 - COLUMN * len(f"{cost:g}"), y, (f"{cost:g}", "quiet"))
    for size in axes.sizes:
        x, y = axes.place(size, axes.costs[0])
        shown = f"{size / 1000:g}k" if size >= 1000 else f"{size:g}"
        drawing.run(x - COLUMN * len(shown) / 2, y + 16, (shown, "quiet"))
    drawing.run(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 36, (unit, "quiet"))


def _marks(least: float, most: float) -> Iterator[float]:
    """Yield numbers such as 1, 2, 5, 10, the first not above the least, the last not below the most."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    round_ones = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    first = max(place for place, mark in enumerate(round_ones) if mark <= least)
    for mark in round_ones[first:]:
        yield mark
        if mark >= most:
            return


def _spread(wanted: list[float]) -> list[float]:
    """Return lines for texts, near where they are wanted, none on another."""
    found = [0.0] * len(wanted)
    last = -math.inf
    for place in sorted(range(len(wanted)), key=wanted.__getitem__):
        last = found[place] = max(wanted[place], last + LINE)
    return found


def _share(value: float, marks: Sequence[float]) -> float:
    return (math.log(value) - math.log(marks[0])) / (math.log(marks[-1]) - math.log(marks[0]))


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


PICTURES: Mapping[str, Callable[[], str]] = {"streaming.svg": streaming, "grammars.svg": grammars}
"""The file of each plot, and what draws it."""
