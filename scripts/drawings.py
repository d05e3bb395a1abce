"""Draw the pictures in docs/images from a template, the layers in pyproject.toml and benchmark results.

python scripts/drawings.py

It also defines the colours of parts on the site.

Rules: no picture is drawn by hand. The data comes from the code or from benchmarks/results, and a test compares each
picture with the current data. Pictures need no font, script or network, because each piece of text has a fixed width.
The colours are those of the playground's light and dark themes. Lengths are in pixels, and in columns for text.
"""

from __future__ import annotations

import ast
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import Any

from environment import ROOT

from unrender import ChatTemplate, Turn
from unrender.cli.terminal import event_line
from unrender.format.picture import PicturePiece
from unrender.printable import printable_line
from unrender.testing import numbered_id

FOLDER = ROOT / "docs" / "images"
EXAMPLE = ROOT / "src" / "unrender" / "cli" / "example"
ANSWER = (EXAMPLE / "answer.txt").read_text(encoding="utf-8").rstrip("\n")
CHUNK, PACE = 4, 0.15
"""Characters per chunk of the film, and seconds between chunks."""
STEP = 34
"""Pixels from one layer to the next."""
_TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
_ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Will it rain in Paris?"}]
GALLERY = ROOT / "docs" / "reference" / "gallery.json"
_SHOWN: Mapping[str, str] = {
    "openai-gpt-oss-120b": "gpt-oss-120b",
    "Kimi-K2-Thinking": "Kimi-K2-Thinking",
    "Qwen3-Coder": "Qwen3-Coder",
}
"""Models whose formats the README shows, and their names there."""
_NARROW = 620
"""Width in pixels at which a picture is still readable on a phone."""
_LEGEND = ("reasoning", "content", "marker", "name", "argument")
_FILM = (
    ".a{opacity:0;animation:a 1ms linear forwards}@keyframes a{to{opacity:1}}"
    "@media(prefers-reduced-motion:reduce){.a{opacity:1;animation:none}}"
)
SHEET = ROOT / "src" / "unrender" / "playground" / "page" / "playground.css"
COLUMN, LINE = 8.4, 20
"""Width of a character and height of a line in pixels."""
_THEMED = re.compile(r"--(\w+): light-dark\((#\w+), (#\w+)\)")
_UNDERLINED = re.compile(r"((?:\.\w+(?:, )?)+) \{ background: var\(--(\w+)\); border-bottom: 2px \w+ ([^;]+);")
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

Run = tuple[str, str]
"""A text, and the class that colours it; "" for plain text."""
RESULTS = ROOT / "benchmarks" / "results"
_COLOURS = ("reasoning", "content", "name", "argument", "id", "malformed")
_SHARES = {
    "valid": ("valid", "reasoning"),
    "function": ("right function", "name"),
    "arguments": ("right arguments", "argument"),
}
"""Results of answers in the picture, by field: words and colour."""
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 50, 420, 250


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


def example() -> ChatTemplate:
    """Return the template that `unrender example` writes."""
    return ChatTemplate.from_string((EXAMPLE / "chat_template.jinja").read_text(encoding="utf-8"), cache=False)


def answer() -> str:
    """Return a picture of the README's template: its format as a row of parts, and an answer in the same colours."""
    template = example()
    rows = template.analysis._pictures()
    drawing = Drawing(title="A format, and an answer with its parts coloured", width=840, height=226)
    drawing.run(20, 24, ("what is derived: how any answer is written", "quiet"))
    for place, row in enumerate(rows):
        drawing.row(20, 50 + place * LINE, map(shown_piece, row), gap=2)
    drawing.run(20, 90, ("what is read: an answer", "quiet"))
    for place, line in enumerate(lines(list(read(_turn(template), ANSWER)))):
        drawing.row(20, 116 + place * (LINE + 2), line)
    drawing.row(20, 202, [(role, role) for role in _LEGEND], gap=COLUMN)
    return drawing.text()


def models() -> str:
    """Return a picture of three vendors' formats from the gallery, as rows of parts that wrap."""
    kept = json.loads(GALLERY.read_text(encoding="utf-8"))
    drawing = Drawing(
        title="How three models write an answer with a tool call, derived from their templates", width=_NARROW, height=0
    )
    y = 26.0
    for name, shown in _SHOWN.items():
        drawing.run(20, y, (shown, "quiet"))
        x, y = 20.0, y + LINE + 4
        for text, role, _ in kept[name]["rows"][-1]:
            piece = text.replace("\n", "↵")
            if x + len(piece) * COLUMN > _NARROW - 20:
                x, y = 20.0, y + LINE + 2
            x = drawing.run(x, y, (piece, role)) + 2
        y += LINE + 12
    drawing.row(20, y, [(role, role) for role in _LEGEND], gap=COLUMN)
    drawing.height = int(y) + 24
    return drawing.text()


def shown_piece(piece: PicturePiece) -> Run:
    """Return the text of a part, with line breaks as arrows."""
    return piece.text.replace("\n", "↵"), piece.role


def read(turn: Turn, text: str) -> Iterator[Run]:
    """Yield the parts of an answer with their roles."""
    parser = turn.parser(ids=numbered_id)
    parser.feed(text)
    parser.finish()
    for span in parser.spans:
        yield text[span.start : span.end], str(span.role)


def lines(runs: list[Run]) -> list[list[Run]]:
    """Split runs into lines at line breaks, which are shown as arrows."""
    found: list[list[Run]] = [[]]
    for text, role in runs:
        first, *more = text.replace("\n", "↵\n").split("\n")
        found[-1].append((first, role))
        found += [[(line, role)] for line in more]
    return [[run for run in line if run[0]] for line in found if any(text for text, _ in line)]


def terminal() -> str:
    """Return an animated picture of a streamed answer, with the certain part and the printed lines at each step."""
    steps = list(_steps(_turn(example())))
    printed = [(at, line) for at, (_, events) in enumerate(steps) for line in events]
    coloured = list(read(_turn(example()), ANSWER))
    top = 50 + (LINE + 2) * len(lines(coloured))
    drawing = Drawing(
        title="An answer, read while it streams", width=840, height=top + 48 + LINE * len(printed), style=_FILM
    )
    drawing.run(20, 24, ("the model writes, four characters at a time", "quiet"))
    _draw_film(drawing, coloured, [settled for settled, _ in steps])
    drawing.run(20, top + 14, ("$ unrender parse chat_template.jinja --tools tools.json --stream", "good"))
    for place, (at, line) in enumerate(printed):
        with drawing.group(_when(at)):
            drawing.run(20, top + 36 + LINE * place, (printable_line(line), ""))
    return drawing.text()


def _steps(turn: Turn) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of certain characters and the printed lines, for each chunk and for the end."""
    parser = turn.parser(ids=numbered_id)
    for at in range(0, len(ANSWER), CHUNK):
        events = parser.feed(ANSWER[at : at + CHUNK])
        yield parser._settled, list(map(event_line, events))
    yield len(ANSWER), list(map(event_line, parser.finish()))


def _draw_film(drawing: Drawing, runs: list[Run], settled: list[int]) -> None:
    """Draw each character when it arrives, and its colour once its role is certain."""
    for place, line in enumerate(_cast(runs, settled)):
        y = 46.0 + (LINE + 2) * place
        for (certain, role), run in groupby(enumerate(line), lambda item: (item[1].certain, item[1].role)):
            found = list(run)
            with drawing.group(_when(certain)):
                drawing.run(20 + found[0][0] * COLUMN, y, (" " * len(found), role))
        for fed, run in groupby(enumerate(line), lambda item: item[1].fed):
            found = list(run)
            with drawing.group(_when(fed)):
                drawing.run(20 + found[0][0] * COLUMN, y, ("".join(item.text for _, item in found), ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Character:
    text: str
    role: str
    fed: int
    """The step that feeds it."""
    certain: int
    """The step that determines its role."""


def _cast(runs: list[Run], settled: list[int]) -> list[list[_Character]]:
    """Return the lines of an answer. `settled` contains the number of certain characters at each step."""
    found: list[list[_Character]] = [[]]
    written = [(character, role) for text, role in runs for character in text]
    for at, (character, role) in enumerate(written):
        certain = next(step for step, size in enumerate(settled) if size > at)
        shown = "↵" if character == "\n" else character
        found[-1].append(_Character(text=shown, role=role, fed=at // CHUNK, certain=certain))
        if character == "\n":
            found.append([])
    return found


def _when(step: int) -> str:
    return f' class="a" style="animation-delay:{step * PACE:.2f}s"'


def _turn(template: ChatTemplate) -> Turn:
    return template.prepare(_ASKED, tools=[{"type": "function", "function": _TOOL}])


def layers() -> str:
    """Return a picture of the layers that `lint-imports` checks. A lower layer never imports a higher one."""
    rows = [names for names in contract() if names != ["__main__"]]
    drawing = Drawing(
        title="The layers of unrender: imports go downwards only", width=840, height=18 + STEP * len(rows)
    )
    for place, names in enumerate(rows):
        x = 20.0
        for name in names:
            with drawing.group(title=_said(name)):
                drawing.box(x, 12 + STEP * place, len(name) * COLUMN + 24, 26, "plain")
                drawing.run(x + 12, 25 + STEP * place, (name, ""))
            x += len(name) * COLUMN + 34
    return drawing.text()


def contract() -> Iterator[list[str]]:
    """Yield the packages of each layer, the highest first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    for layer in tools["importlinter"]["contracts"][0]["layers"]:
        yield re.findall(r"\w+", layer)


def _said(name: str) -> str:
    """Return the first line of a module's docstring."""
    source = ROOT / "src" / "unrender"
    path = source / f"{name}.py" if (source / f"{name}.py").exists() else source / name / "__init__.py"
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]


# Plots of benchmark results.

Curves = Mapping[str, Mapping[str, float]]
"""Names of curves, and their costs by size."""
Bars = Iterable[tuple[str, Iterable[tuple[str, Mapping[str, int]]]]]
"""Groups with their names, and in each group labels with the lengths of their parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The logarithmic ranges of a plot, and their marks."""

    sizes: Sequence[float]
    costs: Sequence[float]

    def place(self, size: float, cost: float) -> tuple[float, float]:
        """Return the position of a point in the picture."""
        return _LEFT + _share(size, self.sizes) * _WIDTH, _TOP + (1 - _share(cost, self.costs)) * _HEIGHT


def streaming() -> str:
    """Return a plot of the cost of a chunk by the answer's length, relative to a parser that does nothing."""
    found = _result("streaming")
    curves = {
        case["title"]: {size: cost / case["nothing"][size] for size, cost in case["costs"].items()}
        for case in found["cases"]
    }
    return plot("What a chunk costs, over a parser that does nothing", curves, unit="characters", said=found["command"])


def grammars() -> str:
    """Return a plot of the cost of grammars by the number of new tools."""
    found = _result("request")
    curves = {row["dialect"].replace("_", " "): row["cold"] for row in found["dialects"]}
    return plot("What a grammar costs, in ms, tools never seen", curves, unit="tools", said=found["command"])


def next_cost() -> str:
    """Return a plot of the cost of the next prompt by the conversation's length, relative to the second turn."""
    found = _result("next_turn")
    least = found["cost"]["Turn.next"]["2"]
    curves = {way: {turn: spent / least for turn, spent in times.items()} for way, times in found["cost"].items()}
    return plot("What the next prompt costs, over turn 2 by Turn.next", curves, unit="turn", said=found["command"])


def next_first() -> str:
    """Return a plot of the time to the first token, by turn."""
    found = _result("next_turn")
    curves = {name: {turn: one["seconds"] for turn, one in times.items()} for name, times in found["first"].items()}
    return plot("Seconds to the first token of an agent's answers", curves, unit="turn", said=found["command"])


def worth() -> str:
    """Return bars of a small model's correct answers in percent, with and without a grammar, by category."""
    found = _result("grammar_worth")
    title = "Of a hundred answers: valid calls, the right function, the right arguments"
    # Right arguments imply a right function, which implies a valid answer, so the bars overlap.
    return bars(title, _SHARES, _grouped(found["rows"], "category", "mode"), 3.8, found["command"], stacked=False)


def next_kept() -> str:
    """Return bars of the templates that keep an agent's prompts, before and after."""
    found = _result("next_turn")
    parts = {"all": ("all 19 turns", "reasoning"), "some": ("some", "argument"), "none": ("none", "malformed")}
    title = "Templates whose prompts all begin with the last one and the answer"
    return bars(title, parts, _grouped(found["kept"], "case", "way"), 6, found["command"])


def drift() -> str:
    """Return bars of the calls that each parser finds in malformed answers, and of wrong or invented calls."""
    parts = {"given": ("given", "reasoning"), "wrong": ("wrong or invented", "malformed")}
    rows = ((name.replace("`", ""), counts) for name, counts in _result("drift")["readers"].items())
    return bars("Calls found in answers with mistakes", parts, [("", rows)], 3)


def _grouped(rows: Iterable[Mapping[str, Any]], group: str, label: str) -> Bars:
    return ((name, [(row[label], row) for row in of]) for name, of in groupby(rows, lambda row: row[group]))


def bars(
    title: str, parts: Mapping[str, Run], groups: Bars, scale: float, said: str = "", *, stacked: bool = True
) -> str:
    """Return bars with `scale` pixels for each unit, and the text `said` below. `parts` are legends and colours."""
    drawing, y = Drawing(title=title, width=840, height=0), 88.0
    drawing.run(20, 24, (title, ""))
    drawing.row(20, 52, parts.values(), gap=COLUMN * 2)
    for name, rows in groups:
        drawing.run(20, y, (name, ""))
        y += LINE * bool(name)
        for label, values in rows:
            drawing.run(40, y, (label, "quiet"))
            x = 290.0
            for part, (_, role) in parts.items():
                width = scale * values.get(part, 0)
                if width:
                    drawing.box(x, y - 7, width, 14, f"u-{role}")
                x += width * stacked
            drawing.run(720, y, ("".join(f"{values.get(part, 0):4}" for part in parts), "quiet"))
            y += LINE
        y += 8
    drawing.run(20, y + 10, (said, "quiet"))
    drawing.height = int(y) + 30
    return drawing.text()


def plot(title: str, curves: Curves, *, unit: str, said: str) -> str:
    """Return a plot of curves with their names, and the text `said` below."""
    points = {name: sorted((float(size), cost) for size, cost in curve.items()) for name, curve in curves.items()}
    sizes = sorted({size for curve in points.values() for size, _ in curve})
    costs = [cost for curve in points.values() for _, cost in curve]
    axes = Axes(sizes=sizes, costs=list(_marks(min(costs), max(costs))))
    drawing = Drawing(title=title, width=840, height=_TOP + _HEIGHT + 80)
    drawing.run(20, 24, (title, ""))
    _draw_axes(drawing, axes, unit)
    names = _spread([axes.place(*curve[-1])[1] for curve in points.values()])
    for colour, (name, curve), y in zip(_COLOURS * 2, points.items(), names, strict=False):
        drawing.curve([axes.place(*point) for point in curve], f"curve c-{colour}")
        drawing.run(_LEFT + _WIDTH + 24, y, (name, colour))
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
    """Yield numbers such as 1, 2, 5, 10 that cover a range."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    round_ones = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    first = max(place for place, mark in enumerate(round_ones) if mark <= least)
    for mark in round_ones[first:]:
        yield mark
        if mark >= most:
            return


def _spread(wanted: list[float]) -> list[float]:
    """Return positions of labels near the given ones, without overlaps."""
    found = [0.0] * len(wanted)
    last = -math.inf
    for place in sorted(range(len(wanted)), key=wanted.__getitem__):
        last = found[place] = max(wanted[place], last + LINE)
    return found


def _share(value: float, marks: Sequence[float]) -> float:
    return (math.log(value) - math.log(marks[0])) / (math.log(marks[-1]) - math.log(marks[0]))


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


# SVG.


@dataclass(kw_only=True, slots=True)
class Drawing:
    """A picture under construction: a description for screen readers, and the elements in order."""

    title: str
    width: int
    height: int
    elements: list[str] = field(default_factory=list)
    style: str = ""

    def run(self, x: float, y: float, run: Run) -> float:
        """Draw a text on its background colour, if any. Return its end."""
        text, role = run
        width = len(text) * COLUMN
        if role in roles():
            self.elements.append(
                f'<rect class="f-{role}" x="{x:g}" y="{y - 9:g}" width="{width:g}" height="18" rx="3"/>'
            )
            self.elements.append(f'<rect class="u-{role}" x="{x:g}" y="{y + 7:g}" width="{width:g}" height="2"/>')
        if text.strip():
            shown = f"t-{role}" if role else "ink"
            self.elements.append(
                f'<text class="{shown}" x="{x:g}" y="{y + 5:g}" textLength="{width:g}" xml:space="preserve">{escape(text)}</text>'
            )
        return x + width

    def row(self, x: float, y: float, runs: Iterable[Run], *, gap: float = 0) -> float:
        """Draw texts one after the other. Return the end of the last text."""
        for run in runs:
            x = self.run(x, y, run) + gap
        return x - gap

    def box(self, x: float, y: float, width: float, height: float, shown: str) -> None:
        """Draw a box with round corners."""
        self.elements.append(
            f'<rect class="{shown}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
        )

    @contextmanager
    def group(self, attributes: str = "", *, title: str = "") -> Iterator[None]:
        """Group the elements that are drawn in the `with` block, with a title as a tooltip."""
        self.elements.append(f"<g{attributes}>" + (f"<title>{escape(title)}</title>" if title else ""))
        yield
        self.elements.append("</g>")

    def curve(self, points: Sequence[tuple[float, float]], shown: str) -> None:
        """Draw straight lines from point to point."""
        said = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.elements.append(f'<polyline class="{shown}" points="{said}"/>')

    def text(self) -> str:
        """Return the picture's source."""
        size = f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(self.title)}">',
            f"<title>{escape(self.title)}</title>",
            f"<style>{_style()}{self.style}</style>",
            f'<rect class="paper" width="{self.width}" height="{self.height}" rx="8"/>',
            *self.elements,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def themes() -> dict[str, tuple[str, str]]:
    """Return the playground's colours by name, light and dark."""
    return {name: (light, dark) for name, light, dark in _THEMED.findall(SHEET.read_text(encoding="utf-8"))}


def roles() -> dict[str, tuple[str, str]]:
    """Return the name of the colour, and the colour of the underline, for each role."""
    found = _UNDERLINED.findall(SHEET.read_text(encoding="utf-8"))
    return {name: (colour, line) for names, colour, line in found for name in re.findall(r"\w+", names)}


def _style() -> str:
    """Return the classes of both themes: `f-` fills, `u-` underlines, `t-` is text in a role."""
    said = [f"text{{font:14px {_FONT};white-space:pre}}.t-name{{font-weight:600}}.curve{{fill:none;stroke-width:2}}"]
    for place, wrapped in enumerate(("{}", "@media(prefers-color-scheme:dark){{{}}}")):
        colours = {name: pair[place] for name, pair in themes().items()}
        said.append(wrapped.format("".join(_rules(colours))))
    return "".join(said)


def _rules(colours: dict[str, str]) -> Iterable[str]:
    yield f".paper{{fill:{colours['panel']}}}.ink,[class^=t-]{{fill:{colours['ink']}}}.t-quiet{{fill:{colours['quiet']}}}"
    yield f".t-good{{fill:{colours['good']}}}.t-bad{{fill:{colours['bad']}}}"
    yield f".plain{{fill:{colours['paper']};stroke:{colours['edge']}}}.edge{{stroke:{colours['edge']};fill:none}}"
    for role, (colour, line) in roles().items():
        under = colours["quiet"] if line.startswith("var") else line
        yield f".f-{role}{{fill:{colours[colour]}}}.u-{role}{{fill:{under}}}.c-{role}{{stroke:{under}}}"


def role_sheet() -> str:
    """Return a style sheet with the same colours for HTML. Classes with `p-` are parts by role."""
    said = [
        ".answer{font-family:var(--md-code-font,monospace);font-size:.7rem;line-height:2;margin:0 0 .6rem;overflow-wrap:anywhere}",
        ".answer span{padding:.1rem .25rem;margin-right:2px;border-radius:3px;white-space:pre-wrap}.answer .slot{font-style:italic;overflow-wrap:normal}",
    ]
    for place, scheme in enumerate(("default", "slate")):
        colours = {name: pair[place] for name, pair in themes().items()}
        for role, (colour, line) in roles().items():
            under = colours["quiet"] if line.startswith("var") else line
            said.append(
                f"[data-md-color-scheme={scheme}] .p-{role}{{background:{colours[colour]};border-bottom:2px solid {under}}}"
            )
    return "\n".join(said) + "\n"


PICTURES: Mapping[str, Callable[[], str]] = {
    "models.svg": models,
    "answer.svg": answer,
    "terminal.svg": terminal,
    "layers.svg": layers,
    "streaming.svg": streaming,
    "grammars.svg": grammars,
    "worth.svg": worth,
    "next-cost.svg": next_cost,
    "next-kept.svg": next_kept,
    "next-first.svg": next_first,
    "drift.svg": drift,
}
"""The file of each picture, and the function that draws it."""

if __name__ == "__main__":
    main()
