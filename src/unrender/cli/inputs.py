"""Reads arguments and options: templates, JSON files, and the settings that a template reads.

Rules: whatever is wrong with an input ends the command with code 2 and a sentence that names the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import click

from unrender.chat_template import ChatTemplate
from unrender.cli.paths import InputPath
from unrender.cli.terminal import print_document
from unrender.errors import UnrenderError
from unrender.files import STANDARD, standard_input, write_whole
from unrender.rendering.loading import load_pretrained


class BadInput(click.ClickException):
    """An input cannot be used; ends the command with code 2."""

    exit_code = 2


def read_json(_context: click.Context, _option: click.Parameter, path: str | None) -> Any:
    """Return the content of a JSON file; None without a file. A usage error says what is wrong with it."""
    if path is None:
        return None
    try:
        return json_of(path)
    except BadInput as error:
        raise click.BadParameter(error.message) from error


def json_of(path: str) -> Any:
    """Return the content of a JSON file, or of standard input for `-`. Raises `BadInput`, naming it, when it is not JSON."""
    return parse_json(_read(path), path)


def parse_json(text: str | bytes, where: str) -> Any:
    """Return the value of a JSON text. Raises `BadInput`, naming where it comes from, when it is not JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"{where}: expected JSON: {error}") from error
    except RecursionError as error:
        raise BadInput(f"{where}: expected JSON, found lists or objects nested too deeply") from error


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises `BadInput` when there is none.

    Bytes that are not UTF-8 are shown as U+FFFD, since models write such.
    """
    return _read(path).decode("utf-8", "replace")


def read_source(path: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises `BadInput` when there is none, or it is not UTF-8."""
    try:
        return _read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: expected UTF-8 text, found byte {error.object[error.start]:#x}") from error


def _read(path: str) -> bytes:
    try:
        return standard_input() if path == STANDARD else Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except ValueError as error:  # a null character
        raise BadInput(f"{path}: {error}") from error


def read_settings(_context: click.Context, _option: click.Parameter, settings: tuple[str, ...]) -> dict[str, Any]:
    """Return `NAME=VALUE` settings as a mapping. A value that is valid JSON is read as JSON, any other as text."""
    return dict(map(_setting, settings))


template_argument = click.argument("template", type=InputPath())
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

QUESTION = [{"role": "user", "content": "Hello"}]
"""The conversation that an answer is taken to continue when none is given."""


def load(source: str, *, name: str | None = None) -> ChatTemplate:
    """Return the template at a path (file, model directory, GGUF), under a hub id, or on standard input for `-`.

    `name` chooses one of several templates. Raises `BadInput`, naming the source, when there is none.
    """
    try:
        if source == STANDARD:
            return ChatTemplate.from_string(read_source(source))
        return ChatTemplate.from_pretrained(source) if name is None else _named(source, name)
    except UnrenderError as error:
        named = source in str(error)
        raise BadInput(str(error) if named else f"{source}: {error}") from error


def _named(source: str, name: str) -> ChatTemplate:
    loaded = load_pretrained(source)
    if name not in loaded.sources:
        raise BadInput(f"{source}: expected one of the templates {sorted(loaded.sources)}, found {name!r}")
    return ChatTemplate(replace(loaded, sources={name: loaded.sources[name]}))


def write_text(path: str, text: str) -> None:
    """Write a file as a whole, or print it for `-`. Raises `BadInput`, naming the path, when it cannot be written."""
    if path == STANDARD:
        print_document(text.removesuffix("\n"))
        return
    try:
        write_whole(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def check_printed(path: str | None, option: str, *, as_json: bool) -> None:
    """Raise a usage error where two things would be printed on standard output."""
    if path == STANDARD and as_json:
        raise click.UsageError(f"{option} - and --json both print on standard output; name a file for one of them")


_MODEL_FILES = ("tokenizer_config.json", "chat_template.jinja", "chat_template.json", "processor_config.json")


def expanded(template: str) -> Iterator[str]:
    """Yield the path itself; for a directory that does not hold a model, yield all templates in it."""
    path = Path(template)
    found = sorted(path.glob("*.jinja")) if path.is_dir() and not any((path / f).exists() for f in _MODEL_FILES) else []
    yield from map(str, found) if found else (template,)


_NOT_VARIABLES = frozenset(signature(ChatTemplate.prepare).parameters) - {"documents", "template_kwargs"}
"""What is asked with options of its own."""


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or name in _NOT_VARIABLES:
        raise click.BadParameter(f"expected NAME=VALUE, found {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
    except ValueError as error:
        raise click.BadParameter(f"{name}: {error}") from error
