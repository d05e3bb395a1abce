"""Boxes, curves and rows of coloured text → the text of an SVG picture that needs no font, no script and no network.

Rules: lengths are pixels, of text its columns. Every run of text states its width, so that any monospaced font gives the same
picture. Colours are those of the playground, in both of its themes; the reader's system chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape

import environment

SHEET = environment.ROOT / "src" / "unrender" / "playground" / "page" / "playground.css"
COLUMN, LINE = 8.4, 20
"""Pixels of a character at the size of the text, and from one line to the next."""
_THEMED = re.compile(r"--(\w+): light-dark\((#\w+), (#\w+)\)")
_UNDERLINED = re.compile(r"((?:\.\w+(?:, )?)+) \{ background: var\(--(\w+)\); border-bottom: 2px \w+ ([^;]+);")
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

Run = tuple[str, str]
"""A text, and the class that colours it; "" for plain text."""


@dataclass(kw_only=True, slots=True)
class Drawing:
    """A picture that is being made: what is said of it to those who cannot see it, and its elements in order."""

    title: str
    width: int
    height: int
    elements: list[str] = field(default_factory=list)
    style: str = ""

    def run(self, x: float, y: float, run: Run) -> float:
        """Draw a text at a line's middle, on its colour where it has one; return where it ends."""
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
        """Draw texts one after the other; return where the last one ends."""
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
        """Put what is drawn in this block into one element, with a title that is shown where it is pointed at."""
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
    """Return the colour's name, and the colour of the underline, for each role that a text may have."""
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
    """Return a sheet with the same colours for HTML: `p-` is a part in its role, within `answer`."""
    said = [
        ".answer{font-family:var(--md-code-font,monospace);font-size:.7rem;line-height:2;margin:0 0 .6rem;overflow-wrap:anywhere}",
        ".answer span{padding:.1rem .25rem;margin-right:2px;border-radius:3px;white-space:pre-wrap}.answer .slot{font-style:italic}",
        ".playground{width:100%;height:85vh;border:1px solid var(--md-default-fg-color--lightest);border-radius:6px}",
    ]
    for place, scheme in enumerate(("default", "slate")):
        colours = {name: pair[place] for name, pair in themes().items()}
        for role, (colour, line) in roles().items():
            under = colours["quiet"] if line.startswith("var") else line
            said.append(
                f"[data-md-color-scheme={scheme}] .p-{role}{{background:{colours[colour]};border-bottom:2px solid {under}}}"
            )
    return "\n".join(said) + "\n"
