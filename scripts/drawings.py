"""A template, the layers' contract and measured costs → the pictures in docs/images.

python scripts/drawings.py

Rules: nothing is drawn by hand. Each picture comes from what the code says or does, and is the same each time, so that a test can
compare it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import environment
import plots
from svg import COLUMN, LINE, Drawing, Run

from unrender import ChatTemplate, Turn
from unrender.cli.output import event_line
from unrender.explain.picture import Piece, pictures
from unrender.machine.ids import numbered_id
from unrender.printable import printable_line

FOLDER = environment.ROOT / "docs" / "images"
README = environment.ROOT / "README.md"
ANSWER = '<think>I\'ll look it up.</think>\nOne moment.\n<call name="get_weather">{"city": "Paris"}</call><|end|>'
CHUNK, PACE = 4, 0.15
"""Characters of a chunk of the film, and the seconds until the next one."""
STEP = 34
"""Pixels from one layer to the next."""
_TOOL = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
_ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Will it rain in Paris?"}]
_LEGEND = ("reasoning", "content", "marker", "name", "argument")
_FILM = (
    ".a{opacity:0;animation:a 1ms linear forwards}@keyframes a{to{opacity:1}}"
    "@media(prefers-reduced-motion:reduce){.a{opacity:1;animation:none}}"
)


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")


def example() -> ChatTemplate:
    """Return the template that the README shows."""
    found = re.search(
        r"^<!-- file: chat_template.jinja\n(.*?)^-->$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found, "README.md has no template"
    return ChatTemplate.from_string(found[1], cache=False)


def answer() -> str:
    """Return the picture of the README's template: its format as a row of parts, and an answer in the same colours."""
    template = example()
    rows = pictures(template.format, template.analysis.capabilities)
    drawing = Drawing(title="A format, and an answer with its parts coloured", width=840, height=226)
    drawing.run(20, 24, ("what is derived: how any answer is written", "quiet"))
    for place, row in enumerate(rows):
        drawing.row(20, 50 + place * LINE, map(shown_piece, row), gap=2)
    drawing.run(20, 90, ("what is read: an answer", "quiet"))
    for place, line in enumerate(lines(list(read(_turn(template), ANSWER)))):
        drawing.row(20, 116 + place * (LINE + 2), line)
    drawing.row(20, 202, [(role, role) for role in _LEGEND], gap=COLUMN)
    return drawing.text()


def shown_piece(piece: Piece) -> Run:
    """Return a part of a format as it is drawn: line breaks as arrows."""
    return piece.text.replace("\n", "↵"), piece.role


def read(turn: Turn, text: str) -> Iterator[Run]:
    """Yield an answer in runs, each with the role that the parser gives it."""
    parser = turn.parser(ids=numbered_id)
    parser.feed(text)
    parser.finish()
    for span in parser.spans:
        yield text[span.start : span.end], str(span.role)


def lines(runs: list[Run]) -> list[list[Run]]:
    """Break runs into lines where their text does; the break stays as an arrow."""
    found: list[list[Run]] = [[]]
    for text, role in runs:
        first, *more = text.replace("\n", "↵\n").split("\n")
        found[-1].append((first, role))
        found += [[(line, role)] for line in more]
    return [[run for run in line if run[0]] for line in found if any(text for text, _ in line)]


def terminal() -> str:
    """Return the film of an answer that comes in chunks: what of it is certain when, and what the command prints then."""
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
    """Yield for each chunk, and for the end: how many characters are certain, and the lines that are printed."""
    parser = turn.parser(ids=numbered_id)
    for at in range(0, len(ANSWER), CHUNK):
        events = parser.feed(ANSWER[at : at + CHUNK])
        yield parser.settled, list(map(event_line, events))
    yield len(ANSWER), list(map(event_line, parser.finish()))


def _draw_film(drawing: Drawing, runs: list[Run], settled: list[int]) -> None:
    """Draw each character when it comes, and its colour when that is certain."""
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
    """The step that brings it."""
    certain: int
    """The step that tells its role."""


def _cast(runs: list[Run], settled: list[int]) -> list[list[_Character]]:
    """Return the lines of an answer, of which `settled` characters are certain at each step."""
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
    """Return the picture of the layers that `lint-imports` holds the packages to; what is lower never imports what is higher."""
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
    tools = tomllib.loads((environment.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    for layer in tools["importlinter"]["contracts"][0]["layers"]:
        yield re.findall(r"\w+", layer)


def _said(name: str) -> str:
    """Return the first line of a module's docstring."""
    source = environment.ROOT / "src" / "unrender"
    path = source / f"{name}.py" if (source / f"{name}.py").exists() else source / name / "__init__.py"
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return said.partition("\n")[0]


PICTURES: Mapping[str, Callable[[], str]] = {
    "answer.svg": answer,
    "terminal.svg": terminal,
    "layers.svg": layers,
    **plots.PICTURES,
}
"""The file of each picture, and what draws it."""

if __name__ == "__main__":
    main()
