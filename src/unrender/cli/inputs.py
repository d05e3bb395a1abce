"""Loads the inputs of a command line: files, templates, JSON, and the options of a request.

Rules: on invalid input, the command exits with code 2 and a message that names the input. Every argument or option for a file is an
`InputPath`. `-` stands for standard output, or for standard input, which only one argument can read. Files are written atomically: symbolic
links are followed, and file permissions are preserved. Anything other than a regular file, such as a pipe, a terminal or `/dev/null`, is
written to directly. Every error names the file.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from unrender import ChatTemplate, Turn, UnrenderError
from unrender.cli.terminal import print_document
from unrender.signatures import expected_one_of

STANDARD_STREAM = "-"
"""Path that stands for standard output, or for standard input when reading."""


_QUESTION = [{"role": "user", "content": "Hello"}]
_FORMATS = ("text", "json_object")
_MODEL_FILES = ("tokenizer_config.json", "chat_template.jinja", "chat_template.json", "processor_config.json")
_READ = "unrender.read"
"""Key in click's context for a flag that is set when standard input has been read."""
_NOT_VARIABLES = frozenset(signature(ChatTemplate.prepare).parameters) - {"documents", "template_kwargs"}
"""Arguments of `prepare` that can't be set as template variables, because they have their own options."""


class BadInput(click.ClickException):
    """An invalid input. The command then exits with code 2."""

    exit_code = 2


def json_of(path: str) -> Any:
    """Return the value in a JSON file, or in standard input for `-`. Raises `BadInput` with the path if the file isn't JSON."""
    return parse_json(_bytes_of(path), path)


def parse_json(text: str | bytes, where: str) -> Any:
    """Return the value that a JSON text represents. Raises `BadInput` with `where` if the text isn't JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"{where}: expected JSON: {error}") from error
    except RecursionError as error:
        raise BadInput(f"{where}: expected JSON, found lists or objects nested too deeply") from error


def text_of_file(path: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises `BadInput` if the file can't be read.

    Bytes that aren't valid UTF-8 become U+FFFD, because models may generate such bytes.
    """
    return _bytes_of(path).decode("utf-8", "replace")


def read_source(path: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises `BadInput` if the file can't be read or isn't UTF-8."""
    try:
        return _bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: expected UTF-8 text, found byte {error.object[error.start]:#x}") from error


def _bytes_of(path: str) -> bytes:
    if path == STANDARD_STREAM and sys.stdin is None:
        raise BadInput(f"{path}: standard input is closed")
    try:
        return sys.stdin.buffer.read() if path == STANDARD_STREAM else Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    except ValueError as error:  # A ValueError means that the path contains a null character.
        raise BadInput(f"{path}: {error}") from error


def write_text(path: str, text: str) -> None:
    """Write a complete file, or print the text for `-`. Raises `BadInput` with the path if the file can't be written."""
    if path == STANDARD_STREAM:
        print_document(text.removesuffix("\n"))
        return
    try:
        _write_whole(Path(os.path.realpath(path)), text.encode(errors="backslashreplace"))
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error


def _write_whole(out: Path, data: bytes) -> None:
    """Write a file atomically. Readers see either the old or the new contents, and if writing fails, the old contents are kept."""
    exists = out.exists()
    if exists and not out.is_file():
        out.write_bytes(data)
        return
    # Create the temporary file in the same folder, because renaming is atomic only within a file system.
    new = out.with_name(f".unrender-{uuid4().hex}.tmp")
    try:
        with new.open("xb") as file:
            if exists:
                shutil.copymode(out, new)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # Without `fsync`, a power cut after the rename could leave an empty file.
        new.replace(out)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def load_template(source: str, *, name: str | None = None) -> ChatTemplate:
    """Return the template at a path (file, model directory, GGUF), with a hub id, or from standard input for `-`.

    `name` selects one of several templates. If the template can't be loaded, raises `BadInput` with the source.
    """
    try:
        if source == STANDARD_STREAM:
            return ChatTemplate.from_string(read_source(source))
        template = ChatTemplate.from_pretrained(source)
        sources = template._loaded.sources
        if not any(mark in text for text in sources.values() for mark in ("{{", "{%")):
            raise BadInput(
                f"{source}: expected a Jinja template, found text without {{{{ and {{%; check the arguments' order"
            )
        if name is None:
            return template
        if name not in sources:
            raise BadInput(expected_one_of(source, sorted(sources), name, what="the templates "))
        return ChatTemplate(replace(template._loaded, sources={name: sources[name]}))
    except UnrenderError as error:
        # Name the source if the error doesn't. For a folder, the error already names the file in it.
        named = source in str(error)
        raise BadInput(str(error) if named else f"{source}: {error}") from error


def titled(source: str) -> str:
    """Return the display name of a template, which is the name of its file or folder, or its hub id."""
    path = Path(source)
    return path.resolve().name or source if path.exists() else source


def expanded(template: str) -> Iterator[str]:
    """Yield the path itself, or the paths of all templates in a directory that isn't a model."""
    path = Path(template)
    # A model's folder counts as a single template, even if it contains several.
    found = sorted(path.glob("*.jinja")) if path.is_dir() and not any((path / f).exists() for f in _MODEL_FILES) else []
    yield from map(str, found) if found else (template,)


class InputPath(click.Path):
    """A file or folder to read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Fails if standard input is used for more than one argument."""
        path = super().convert(value, param, ctx)
        if ctx is not None and path == STANDARD_STREAM:
            if ctx.meta.get(_READ):
                self.fail("standard input (-) can only be read once", param, ctx)
            ctx.meta[_READ] = True
        return path


class JsonFile(InputPath):
    """A JSON file to read. The command gets its value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value in the file. Fails if the file can't be read or isn't JSON."""
        path = super().convert(value, param, ctx)
        try:
            return json_of(path)
        except BadInput as error:
            self.fail(error.message, param, ctx)


def read_settings(_context: click.Context, _option: click.Parameter, settings: tuple[str, ...]) -> dict[str, Any]:
    """Return `NAME=VALUE` settings as a mapping. Values that aren't valid JSON are text."""
    return dict(map(_setting, settings))


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or name in _NOT_VARIABLES:
        raise click.BadParameter(f"expected NAME=VALUE, found {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value  # The value is plain text, e.g. `reasoning_effort=high`.
    except ValueError as error:
        raise click.BadParameter(f"{name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """A template, and the request described by the options, with the names of an OpenAI request."""

    source: str
    """A path or a hub id."""
    template_name: str | None = None
    messages: Any = None
    tools: Any = None
    tool_choice: Any = "auto"
    response_format: Any = None
    parallel_tool_calls: bool = True
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> ChatTemplate:
        """Return the template. Raises `BadInput` with the source if the template can't be loaded."""
        return load_template(self.source, name=self.template_name)

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments of `ChatTemplate.prepare` except the messages."""
        names = ("tools", "tool_choice", "response_format", "parallel_tool_calls")
        return {**{name: getattr(self, name) for name in names}, **self.chat_template_kwargs}

    def turn(self) -> Turn:
        """Return the turn for the request, by default for a single question. Raises the errors of `ChatTemplate.prepare`."""
        return self.load().prepare(_QUESTION if self.messages is None else self.messages, **self.arguments)


def _response_format(context: click.Context, option: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    return {"type": value} if value in _FORMATS else JsonFile().convert(value, option, context)


Command = Callable[..., None]
Decorator = Callable[[Command], Command]

template_argument = click.argument("template", type=InputPath())
all_option = click.option("--all", "everything", is_flag=True, help="Print everything, not one screen.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
template_name_option = click.option(
    "--template-name", metavar="NAME", help="Name of the template, if a model has several, e.g. tool_use."
)
set_option = click.option(
    "--set",
    "chat_template_kwargs",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_settings,
    help="A variable of the template, e.g. enable_thinking=false.",
)
_MESSAGES = click.option(
    "--messages", metavar="FILE", type=JsonFile(), help="A JSON file with the conversation so far."
)
_REQUEST: tuple[Decorator, ...] = (
    click.option("--tools", metavar="FILE", type=JsonFile(), help="A JSON file with OpenAI's `tools`."),
    click.option(
        "--tool-choice",
        metavar="CHOICE",
        default="auto",
        show_default=True,
        help="auto, none, required, or a tool's name.",
    ),
    click.option(
        "--parallel/--no-parallel", "parallel_tool_calls", default=True, help="Allow several calls in one answer."
    ),
    click.option(
        "--response-format",
        metavar="FORMAT",
        callback=_response_format,
        help="json_object, or a JSON file with OpenAI's `response_format`.",
    ),
    set_option,
    template_name_option,
)


def request_options(command: Command, *, more: Sequence[Decorator] = ()) -> Command:
    """Add the argument TEMPLATE and the options of a request to a command, which gets them as the argument `request`."""

    @functools.wraps(command)
    def wrapped(template: str, **values: Any) -> None:
        named = {item.name for item in fields(RequestOptions)} & values.keys()
        request = RequestOptions(source=template, **{name: values.pop(name) for name in named})
        command(request=request, **values)

    return decorated(wrapped, template_argument, *more, *_REQUEST)


def conversation_options(command: Command) -> Command:
    """Add `request_options` and the option --messages to a command."""
    return request_options(command, more=(_MESSAGES,))


def decorated(command: Command, *decorators: Decorator) -> Command:
    """Return a command with `decorators` applied, so that its arguments and options are in the order of the help text."""
    return functools.reduce(lambda found, decorator: decorator(found), reversed(decorators), command)
