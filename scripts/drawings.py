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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape

from environment import ROOT, import_layers

FOLDER = ROOT / "docs" / "images"
STEP = 34
"""Pixels from one layer to the next."""
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
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 50, 420, 250
_PLOT = 150


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


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


def layers() -> str:
    """Return a picture of the layers that `lint-imports` checks. A lower layer never imports a higher one."""
    rows = [names for names in import_layers() if names != ["__main__"]]
    drawing = Drawing(
        title="The layers of unrender: imports go downwards only", width=840, height=18 + STEP * len(rows)
    )
    for place, names in enumerate(rows):
        x = 20.0
        for name in names:
            with drawing.group(_said(name)):
                drawing.box(x, 12 + STEP * place, len(name) * COLUMN + 24, 26, "plain")
                drawing.run(x + 12, 25 + STEP * place, (name, ""))
            x += len(name) * COLUMN + 34
    return drawing.text()


def _said(name: str) -> str:
    """Return the first line of a module's docstring."""
    source = ROOT / "src" / "unrender"
    path = source / f"{name}.py" if (source / f"{name}.py").exists() else source / name / "__init__.py"
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]


# The plot of a benchmark's results.

_SIZES, _COSTS = (1_000, 4_000, 16_000, 64_000, 256_000), (1, 2, 5, 10, 20, 50)
"""Marks of the plot's logarithmic axes."""


def streaming() -> str:
    """Return a plot of the cost of a chunk by the answer's length, relative to a parser that does nothing."""
    found = json.loads((RESULTS / "streaming.json").read_text(encoding="utf-8"))
    title = "What a chunk costs, over a parser that does nothing"
    drawing = Drawing(title=title, width=840, height=_TOP + _HEIGHT + 80)
    drawing.run(20, 24, (title, ""))
    _draw_axes(drawing)
    curves = {
        case["title"]: [_place(float(size), cost / case["nothing"][size]) for size, cost in case["costs"].items()]
        for case in found["cases"]
    }
    labels = -math.inf
    ranked = sorted(curves.items(), key=lambda item: item[1][-1][1])
    for colour, (name, curve) in zip(_COLOURS * 2, ranked, strict=False):
        labels = max(curve[-1][1], labels + LINE)
        drawing.curve(curve, f"curve c-{colour}")
        drawing.run(_LEFT + _WIDTH + 24, labels, (name, colour))
    drawing.run(20, _TOP + _HEIGHT + 60, ("python benchmarks/streaming.py", "quiet"))
    return drawing.text()


def _draw_axes(drawing: Drawing) -> None:
    for cost in _COSTS:
        _, y = _place(_SIZES[0], cost)
        drawing.curve([(_LEFT, y), (_LEFT + _WIDTH, y)], "edge")
        drawing.run(_LEFT - 8 - COLUMN * len(str(cost)), y, (str(cost), "quiet"))
    for size in _SIZES:
        x, y = _place(size, _COSTS[0])
        shown = f"{size // 1000}k"
        drawing.run(x - COLUMN * len(shown) / 2, y + 16, (shown, "quiet"))
    drawing.run(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 36, ("characters", "quiet"))


def _place(size: float, cost: float) -> tuple[float, float]:
    """Return the position of a point in the picture."""
    across, up = (math.log(value / marks[0], marks[-1] / marks[0]) for value, marks in ((size, _SIZES), (cost, _COSTS)))
    return _LEFT + across * _WIDTH, _TOP + (1 - up) * _HEIGHT


def bfcl() -> str:
    """Return a plot of the right answers to BFCL's tasks by category and way, with confidence intervals."""
    found = json.loads((RESULTS / "bfcl.json").read_text(encoding="utf-8"))
    rows, title = found["rows"], f"Right answers in BFCL v4, {found['model']}"
    colours = dict(zip(dict.fromkeys(row["way"] for row in rows), _COLOURS, strict=False))
    categories = list(dict.fromkeys(row["category"] for row in rows))
    bottom = _TOP + LINE * (len(rows) + len(categories))
    drawing = Drawing(title=title, width=840, height=bottom + 50)
    drawing.run(20, 24, (title, ""))
    for percent in range(0, 101, 25):
        x = _PLOT + percent * 4
        drawing.curve([(x, _TOP), (x, bottom)], "edge")
        drawing.run(x - COLUMN, bottom + 16, (f"{percent}%", "quiet"))
    y = _TOP
    for category in categories:
        drawing.run(20, y + LINE / 2, (category, ""))
        for row in (row for row in rows if row["category"] == category):
            y += LINE
            low, high = (_PLOT + 400 * share for share in row["interval"])
            right = _PLOT + 400 * row["right"] / row["asked"]
            drawing.curve([(low, y), (high, y)], f"curve c-{colours[row['way']]}")
            drawing.curve([(right, y - 5), (right, y + 5)], f"curve c-{colours[row['way']]}")
        y += LINE
    for at, (way, colour) in enumerate(colours.items()):
        drawing.run(_PLOT + 430, _TOP + LINE * (at + 1), (way, colour))
    drawing.run(20, bottom + 36, ("python benchmarks/bfcl.py", "quiet"))
    return drawing.text()


# SVG.


@dataclass(kw_only=True, slots=True)
class Drawing:
    """A picture under construction: a description for screen readers, and the elements in order."""

    title: str
    width: int
    height: int
    elements: list[str] = field(default_factory=list)

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
    def group(self, title: str) -> Iterator[None]:
        """Group the elements that are drawn in the `with` block, with a title as a tooltip."""
        self.elements.append(f"<g><title>{escape(title)}</title>")
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
            f"<style>{_style()}</style>",
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
    "layers.svg": layers,
    "streaming.svg": streaming,
    "bfcl.svg": bfcl,
}
"""The file of each picture, and the function that draws it."""

if __name__ == "__main__":
    main()
