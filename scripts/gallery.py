"""Templates and declared formats → the gallery: how the answers of each are written, as rows of coloured parts.

Rules: a product of the build, never committed. Of vendors' templates it shows what was derived, and no word of their own text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

import environment

from unrender import ChatTemplate, Format
from unrender.explain.picture import Piece, calls, pictures
from unrender.formats import declared_formats
from unrender.rendering.capabilities import Capabilities

OWN = environment.ROOT / "tests" / "templates"
_HEAD = """# Gallery

How answers are written: each row is derived from a template, or declared, and drawn from the Format.
Point at a part to see the field of the Format that it comes from. `↵` is a line break.

"""
_LEGEND = ("reasoning", "content", "marker", "name", "argument", "id")


def page() -> str:
    """Return the page."""
    sections = (
        (
            "Templates of our own",
            "Short templates, one for each family of formats; the tests read them.",
            derived(own()),
        ),
        ("Declared formats", "What no template shows, as data with a reason.", declared()),
        ("Vendors' templates", "What is derived from templates that models come with.", derived(vendors())),
    )
    legend = row([Piece(text=role, role=role, field="") for role in _LEGEND])
    return _HEAD + legend + "".join(f"## {title}\n\n{said}\n\n{''.join(shown)}" for title, said, shown in sections)


def own() -> list[Path]:
    """Return the templates of our own."""
    return sorted(OWN.glob("*.jinja"))


def vendors() -> list[Path]:
    """Return the vendors' templates that are at hand, by name; none when they were not fetched."""
    shared = environment.ROOT.parent / "shared"
    first = (os.environ.get("UNRENDER_TEMPLATES"), shared / "templates", environment.ROOT / ".cache" / "templates")
    folders = [
        next((Path(folder) for folder in first if folder and Path(folder).is_dir()), Path()),
        shared / "more-templates",
    ]
    return sorted((path for folder in folders if folder != Path() for path in folder.glob("*.jinja")), key=_name)


def derived(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the pictures of templates, under a heading for each kind of call."""
    read = [(path, ChatTemplate.from_file(path)) for path in paths]
    read.sort(key=lambda item: (item[1].format.tools.mode, item[0].stem.lower()))
    for mode, found in groupby(read, key=lambda item: item[1].format.tools.mode):
        yield f"### {'No calls' if mode == 'none' else mode.replace('_', ' ')}\n\n"
        for path, template in found:
            yield item(path.stem, template.format, template.analysis.capabilities, _first_words(path))


def declared() -> Iterator[str]:
    """Yield the pictures of the library's declared formats: all that they read, in rows."""
    for found in declared_formats():
        yield item(found.name, found.format, Capabilities(), found.why)
        yield "".join(row(calls(syntax)) for syntax in found.format.tolerated)


def item(name: str, format_: Format, capabilities: Capabilities, said: str) -> str:
    """Return a format's picture under its name."""
    rows = "".join(map(row, pictures(format_, capabilities)))
    return f"<p><strong>{escape(name)}</strong> {escape(said)}</p>\n\n{rows}"


def row(pieces: Iterable[Piece]) -> str:
    """Return parts as a row of HTML; each says where it comes from."""
    return f'<div class="answer">{"".join(map(_part, pieces))}</div>\n\n'


def _part(piece: Piece) -> str:
    slot = " slot" if piece.role != "marker" else ""
    shown = escape(piece.text.replace("\n", "↵"))
    return f'<span class="p-{piece.role}{slot}" title="{escape(piece.field)}">{shown}</span>'


def _first_words(path: Path) -> str:
    """Return what a template of our own says of itself, in its first comment."""
    if path.parent != OWN:
        return ""
    found = re.match(r"\{#-?\s*(.*?)\s*-?#\}", path.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def _name(path: Path) -> str:
    return path.stem.lower()
