"""`unrender format declared`: lists the declared formats in effect, or checks files before they are."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from unrender import FormatError
from unrender.cli.endings import UNUSABLE
from unrender.cli.inputs import BadInput, InputPath, json_option, read_source
from unrender.cli.output import print_heading, print_rows
from unrender.cli.terminal import print_json
from unrender.formats import Declared, declared_formats, read_declared
from unrender.verify import verify_format


@click.command(short_help="List declared formats, or check files.")
@click.argument("files", nargs=-1, type=InputPath())
@json_option
def declared_command(files: tuple[str, ...], *, as_json: bool) -> None:
    """List the declared formats in effect: unrender's own, and those of packages, UNRENDER_FORMATS and your folder.

    With FILES (- for standard input), check these instead, as if they were in effect. The exit code is 1 when a file is
    malformed, when its name is taken, or when an answer that its grammars generate cannot be read, and 2 when a file
    cannot be.
    """
    found = [_checked(file) for file in files] if files else list(declared_formats())
    if as_json:
        print_json([_data(item) for item in found])
    else:
        for item in found:
            if isinstance(item, _Wrong):
                print_heading(item.what, item.why)
            else:
                print_heading(item.name, item.origin)
                print_rows([("why", item.why), ("applies", _applies(item))])
    sys.exit(max((item.code for item in found if isinstance(item, _Wrong)), default=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """A file that is no declared format."""

    why: str
    what: str = "malformed"
    code: int = 1


def _checked(file: str) -> Declared | _Wrong:
    """Return the declared format in a file, or what is wrong with it."""
    try:
        item = read_declared(read_source(file), where=file, origin=file)
        taken = {known.name: known for known in declared_formats() if known.origin != str(Path(file).absolute())}
    except BadInput as error:
        return _Wrong(what="not read", why=error.message, code=UNUSABLE)
    except FormatError as error:
        return _Wrong(why=str(error))
    if item.name in taken:
        return _Wrong(why=f"{file}: name: expected one that is not taken, found {item.name!r}")
    refuted = verify_format(item.format).refuted
    if refuted:
        example = refuted[0].counterexample
        return _Wrong(
            why=f"{file}: format: {refuted[0].capability}: refuted by {example.answer if example else ''!r:.200}"
        )
    return item


def _applies(item: Declared) -> str:
    if item.evidence is None:
        return "by name"
    parts = [
        f"{what} {', '.join(map(repr, texts))}"
        for what, texts in (
            ("all of", item.evidence.all),
            ("one of", item.evidence.any),
            ("none of", item.evidence.none),
        )
        if texts
    ]
    return f"to sources with {'; '.join(parts)}" if parts else "to every template"


def _data(item: Declared | _Wrong) -> dict[str, str]:
    if isinstance(item, _Wrong):
        return {"error": item.why}
    return {"name": item.name, "why": item.why, "origin": item.origin, "applies": _applies(item)}
