"""Test templates and hand-made formats → golden formats and readings: what is derived, and how texts are read, for review.

python scripts/goldens.py

Read the diff before committing it: each line is a change that users see. Texts of readings stay as they were drawn; only how they
are read is written anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from environment import ROOT

sys.path.append(str(ROOT / "tests"))

from properties.attacks import markers
from properties.by_hand import BY_HAND, FORMAT
from properties.families import FAMILIES, REQUEST
from splitting import fed, merged

from unrender.analysis import analyze
from unrender.format import Format
from unrender.machine.ids import numbered_id
from unrender.nodes import Grammar, Role
from unrender.parser.streaming import Parser
from unrender.rendering.template import Template

TEMPLATES = ROOT / "tests" / "templates"
FORMATS = ROOT / "tests" / "formats"
READINGS = ROOT / "tests" / "readings"
BROKEN = 10
"""Broken outputs of each format."""
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A format, or a grammar made by hand, and outputs that it reads."""

    name: str
    format: Format
    prompt: str = ""
    grammar: Grammar | None = None
    outputs: tuple[str, ...]
    markers: tuple[str, ...] = ()

    def parser(self) -> Parser:
        """Return a new parser."""
        return Parser(self.format, REQUEST, prompt=self.prompt, grammar=self.grammar, ids=numbered_id)

    def restored(self, state: Mapping[str, Any]) -> Parser:
        """Return the parser that a state was taken from."""
        return Parser.restore(self.format, REQUEST, state, grammar=self.grammar, ids=numbered_id)


def readers() -> Iterator[Reader]:
    """Yield all formats of `properties.families`, and all grammars of `properties.by_hand`."""
    for family in FAMILIES:
        found = (*family.markers, *markers(family.format))
        yield Reader(
            name=family.name, format=family.format, prompt=family.prompt, outputs=family.outputs, markers=found
        )
    for made in BY_HAND:
        name = f"by_hand_{made.title}".replace(" ", "_")
        yield Reader(name=name, format=FORMAT, grammar=made.grammar, outputs=made.outputs)


def main() -> None:
    """Write all goldens, and remove those whose template or format is gone."""
    formats = {
        FORMATS / f"{path.stem}.json": derived(path).to_json() + "\n" for path in sorted(TEMPLATES.glob("*.jinja"))
    }
    read = {
        path_of(reader): json.dumps(list(read_anew(reader)), ensure_ascii=False, indent=1) + "\n"
        for reader in readers()
    }
    for folder, texts in ((FORMATS, formats), (READINGS, read)):
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        for path in set(folder.glob("*.json")) - texts.keys():
            path.unlink()


def derived(path: Path) -> Format:
    """Return what is derived from the template itself, without what declared formats add to what is read."""
    format = analyze(Template(path.read_text(encoding="utf-8"))).format
    return replace(format, tolerated=(), spellings=(), ignored=(), declared=(), preserved_tokens=())


def read_anew(reader: Reader) -> Iterator[dict[str, Any]]:
    """Yield how each text of a reader is read; texts are drawn where there are none yet."""
    path = path_of(reader)
    texts = [item["text"] for item in recorded(path)] if path.exists() else list(drawn(reader))
    for text in texts:
        yield reading(reader.parser(), text, [text])


def path_of(reader: Reader) -> Path:
    """Return the file of a reader's readings."""
    return READINGS / f"{reader.name}.json"


def recorded(path: Path) -> list[dict[str, Any]]:
    """Return the readings in a file."""
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def reading(parser: Parser, text: str, chunks: Sequence[str]) -> dict[str, Any]:
    """Return what a parser makes of a text that comes in `chunks`, as JSON data."""
    events = merged(fed(parser, chunks))
    dead = [str(call) for call in parser.message.dead_calls]
    return {
        "text": text,
        "events": [str(event) for event in events],
        **({"dead": dead} if dead else {}),
        "spans": spans(parser),
    }


def spans(parser: Parser) -> str:
    """Return which stretches of the text have which role, e.g. `content 0-3, layout 3-5`."""
    return ", ".join(f"{Role(span.role).value} {span.start}-{span.end}" for span in parser.spans)


def drawn(reader: Reader) -> Iterator[str]:
    """Yield the outputs, and some that are broken."""
    random = Random(reader.name)  # noqa: S311 -- texts are not a secret
    yield from dict.fromkeys(reader.outputs)
    for _ in range(BROKEN):
        output = random.choice(reader.outputs)[:LONGEST]
        at, further = (random.randrange(len(output) + 1) for _ in range(2))
        inserted = random.choice([*reader.markers, '"', "{", "}", "]", "\\", "<", " \n", "```", "null", "1"])
        yield random.choice([output[:at], output[:at] + inserted + output[at:], output[:at] + output[further:]])


if __name__ == "__main__":
    main()
