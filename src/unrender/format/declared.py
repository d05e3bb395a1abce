"""Loads declared formats: data files for syntax that no template shows, each with a reason.

`declared_formats` reads the library's own JSON files and those in users' folders (an environment variable, a configuration folder,
installed packages). A file contains the fields `name`, `why` and `format`. A file with the additional field `evidence` completes derived
formats whose template matches the evidence. The template's source must contain all strings in `all`, one of those in `any`, and none of
those in `none`. Empty evidence matches every template. `markers/reasoning.json` lists reasoning markers that are always parsed, each with a
reason. `read_regular` safely reads a file, and `user_folder` finds the folders.

Rules: reading a file never blocks and is bounded in memory, even if the path is a pipe, a device or a huge file. Evidence and code refer to
markers, never to model names. All files pass the same checks, and errors name the file and the field.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from unrender.cache import kept
from unrender.errors import FormatError
from unrender.format import CallSyntax, ContentMode, Format, Reasoning, ReasoningMode, Slot, ToolMode
from unrender.format.data import decode
from unrender.limits import MAX_DOCUMENT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_OWN = resources.files("unrender") / "formats"
"""The library's own declared formats."""
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags that keep `open` from blocking on a pipe without a writer."""


def named_path(name: str) -> Path | None:
    """Return the absolute path for a setting such as `~/kept`. Returns None if the home folder is unknown."""
    try:
        return Path(name).expanduser().absolute()
    except RuntimeError:
        return None


def user_folder(variable: str, usual: str) -> Path | None:
    """Return the folder set in the XDG environment variable `variable`, or else the folder `usual` in the user's home.

    As the XDG specification requires, a relative path in the variable is ignored.
    """
    set_to = Path(os.environ.get(variable, ""))
    return set_to if set_to.is_absolute() else named_path(f"~/{usual}")


def read_regular(path: Path, *, most: int) -> bytes:
    """Return the contents of a regular file. Raises `OSError` for any other kind of file, or if it's larger than `most` bytes."""
    _check(path.stat(), path, most)  # Check before opening the file, because opening a device may have side effects.
    descriptor = os.open(path, os.O_RDONLY | _AT_ONCE)
    with os.fdopen(descriptor, "rb") as file:
        # Check again, because the file may have been replaced since the first check.
        _check(os.fstat(descriptor), path, most)
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"expected at most {most} bytes, but the file is growing")
    return content


def _check(status: os.stat_result, path: Path, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"expected a regular file: {path}")
    if status.st_size > most:
        raise OSError(f"expected at most {most} bytes, found {status.st_size}")


__all__ = ["Declared", "Signs", "declared_formats", "read_declared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Evidence for a declared format: strings that the template's source must contain, and strings that it must not contain."""

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "" in (*self.all, *self.any, *self.none):
            raise FormatError("expected texts, found an empty one", "evidence")

    def found_in(self, source: str) -> bool:
        """Return True if `source` contains all required strings and none of the forbidden ones."""
        some = not self.any or any(text in source for text in self.any)
        return some and all(text in source for text in self.all) and not any(text in source for text in self.none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A complete or partial format for syntax that no rendering shows. It's handwritten data, with the reason for the format."""

    name: str
    why: str
    format: Format
    evidence: Signs | None = None
    origin: str = ""
    """Path of the file. The path is empty for the library's own formats."""

    def __post_init__(self) -> None:
        for field, text in (("name", self.name), ("why", self.why)):
            if not text.strip():
                raise FormatError(f"expected a text, found {text!r}", field)


def read_declared(text: str, *, where: str, origin: str = "") -> Declared:
    """Parse a declared format from JSON. Raises `FormatError` with `where` and the field if the format is malformed."""
    try:
        declared: Declared = decode(Declared, json.loads(text), where="")
    except FormatError as error:
        raise FormatError(f"{where}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON: {error}") from None
    return replace(declared, origin=origin)


def read_text_of(path: Path) -> str:
    """Return the contents of a user's file. Raises `FormatError` with the path if the file can't be read."""
    try:
        return read_regular(path, most=MAX_DOCUMENT).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected a readable file of UTF-8 text: {error}") from None


@cache
def known_reasoning() -> tuple[Reasoning, ...]:
    """Return the well-known reasoning markers, each pair as a `Reasoning`."""
    data = json.loads((_OWN / "markers" / "reasoning.json").read_text("utf-8"))
    pairs = [(pair["start"], pair["end"]) for pair in data["markers"]]
    return tuple(Reasoning(mode=ReasoningMode.TAG_BASED, start=start, end=end) for start, end in pairs)


@cache
def known_calls() -> tuple[Declared, ...]:
    """Return call syntaxes that models generate regardless of their template, each as a format."""
    return _listed("calls.json")


@cache
def common_calls() -> tuple[Declared, ...]:
    """Return common call syntaxes for explaining an unexpected output, each as a format with a descriptive name."""
    return _listed("common.json")


def _listed(file: str) -> tuple[Declared, ...]:
    data = json.loads((_OWN / "markers" / file).read_text("utf-8"))
    return tuple(decode(Declared, item, where="") for item in data["formats"])


# Users' files.

GROUP = "unrender.formats"
"""Entry point group. Each entry point is a package with JSON files, or the path of a folder."""
FORMATS_VARIABLE = "UNRENDER_FORMATS"
"""Environment variable that contains a list of folders, separated as in `PATH`."""


def folders() -> tuple[Path, ...]:
    """Return the existing folders: first those from packages, then the environment variable, then the user's configuration.

    If a folder doesn't exist, raises `FormatError` with the source of its path.
    """
    found = [*_installed()]
    for name in filter(None, os.environ.get(FORMATS_VARIABLE, "").split(os.pathsep)):
        path = named_path(name)
        if path is None or not path.is_dir():
            raise FormatError(f"{FORMATS_VARIABLE}: expected folders, found {name!r}")
        found.append(path)
    configuration = user_folder("XDG_CONFIG_HOME", ".config")
    if configuration and (own := configuration / "unrender" / "formats").is_dir():
        found.append(own)
    return tuple(found)


@cache
def _installed() -> tuple[Path, ...]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import

    return tuple(map(_folder, sorted(entry_points(group=GROUP), key=lambda point: point.name)))


def _folder(point: EntryPoint) -> Path:
    try:
        target = point.load()
    except Exception as error:
        raise FormatError(f"entry point {point.name!r} of {GROUP}: {type(error).__name__}: {error}") from error
    path = Path(str(resources.files(target))) if isinstance(target, ModuleType) else Path(target)
    if not path.is_dir():
        raise FormatError(
            f"entry point {point.name!r} of {GROUP}: expected a package or a folder, found {str(target)!r}"
        )
    return path


# All declared formats.


def declared_formats() -> tuple[Declared, ...]:
    """Return all declared formats: the library's own, sorted by name, and the users', sorted by folder and file.

    Files are read once per process. Raises `FormatError` with the path if a file is malformed or reuses a name.
    """
    return _all(texts_of_users())


def texts_of_users() -> tuple[tuple[Path, str], ...]:
    """Return the contents of the users' files for `declared_formats`, as read by this process.

    Raises `FormatError` with the path if a file can't be read.
    """
    return _texts(folders())


@kept(100_000)
def _texts(found: tuple[Path, ...]) -> tuple[tuple[Path, str], ...]:
    paths = [path for folder in found for path in sorted(folder.glob("*.json"))]
    return tuple((path, read_text_of(path)) for path in paths)


@kept(200_000)
def _all(texts: tuple[tuple[Path, str], ...]) -> tuple[Declared, ...]:
    known = {declared.name: declared for declared in _own()}
    for path, text in texts:
        declared = read_declared(text, where=str(path), origin=str(path))
        if declared.name in known:
            taken = known[declared.name].origin or "unrender's own"
            raise FormatError(f"{path}: name: expected an unused name, found {declared.name!r} ({taken})")
        known[declared.name] = declared
    return tuple(known.values())


def with_declared(format: Format, declared: Declared) -> Format:
    """Return `format` extended with a declared format. Raises `FormatError` if the two formats conflict."""
    added = declared.format
    merged = format._with(
        reasoning=added.reasoning if format.reasoning.mode is ReasoningMode.NONE else format.reasoning,
        content=added.content if format.content.mode is ContentMode.PLAIN else format.content,
        tools=added.tools if format.tools.mode is ToolMode.NONE else format.tools,
        spellings=tuple(dict.fromkeys((*format.spellings, *added.spellings))),
        ignored=tuple(dict.fromkeys((*format.ignored, *added.ignored))),
    )
    others = [tools for tools in (*format.tolerated, *added.tolerated) if not _same_syntax(tools, merged.tools)]
    merged = merged._with(tolerated=tuple(dict.fromkeys(others)))
    return format if merged == format else replace(merged, declared=(*format.declared, declared.name))


@cache
def _own() -> tuple[Declared, ...]:
    found = sorted(_OWN.iterdir(), key=lambda file: file.name)
    return tuple(
        read_declared(file.read_text("utf-8"), where=file.name) for file in found if file.name.endswith(".json")
    )


def _same_syntax(one: CallSyntax, other: CallSyntax) -> bool:
    """Return True if both syntaxes parse the same calls and differ at most in whitespace around markers."""
    shapes = [(*tools.markers[:2], *tools.function, *tools.arguments.entry) for tools in (one, other)]
    return len({tuple(part if isinstance(part, Slot) else part.strip() for part in shape) for shape in shapes}) == 1
