"""Defines the options of a request, which commands share, and turns them into a template and a turn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from unrender.chat_template import ChatTemplate
from unrender.cli.inputs import QUESTION, load, read_json, read_settings
from unrender.cli.paths import InputPath
from unrender.turn import Turn

_CHOICES = ("auto", "none", "required")
_FORMATS = ("text", "json_object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A template, and what it is asked with."""

    source: str
    """A path, or an id on the hub."""
    template_name: str | None = None
    messages: Any = None
    tools: Any = None
    tool_choice: Any = "auto"
    response_format: Any = None
    parallel: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> ChatTemplate:
        """Return the template. Raises `BadInput`, naming what was looked for, when there is none."""
        return load(self.source, name=self.template_name)

    @property
    def conversation(self) -> Sequence[Any]:
        """The messages; a single question when none were given."""
        return QUESTION if self.messages is None else self.messages

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of `ChatTemplate.prepare` other than the messages."""
        return {
            "tools": self.tools,
            "tool_choice": self.tool_choice,
            "response_format": self.response_format,
            "parallel_tool_calls": self.parallel,
            **self.settings,
        }

    def turn(self) -> Turn:
        """Return the turn of the answer. Raises what `ChatTemplate.prepare` raises."""
        return self.load().prepare(self.conversation, **self.request)


def _choice(_context: click.Context, _option: click.Parameter, choice: str) -> str | dict[str, Any]:
    return choice if choice in _CHOICES else {"type": "function", "function": {"name": choice}}


def _response_format(context: click.Context, option: click.Parameter, value: str | None) -> Any:
    return {"type": value} if value in _FORMATS else read_json(context, option, value)


template_name_option = click.option(
    "--template-name", metavar="NAME", help="Which template, where a model has several, e.g. tool_use."
)

set_option = click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=read_settings,
    help="A variable of the template, e.g. enable_thinking=false.",
)

_MESSAGES = click.option(
    "--messages",
    metavar="FILE",
    type=InputPath(),
    callback=read_json,
    help="A JSON file with the conversation so far.",
)
_REQUEST = (
    click.option(
        "--tools", metavar="FILE", type=InputPath(), callback=read_json, help="A JSON file with OpenAI's `tools`."
    ),
    click.option(
        "--tool-choice",
        metavar="CHOICE",
        default="auto",
        show_default=True,
        callback=_choice,
        help="auto, none, required, or a tool's name.",
    ),
    click.option("--parallel/--no-parallel", default=True, help="Whether several calls may be written."),
    click.option(
        "--response-format",
        metavar="FORMAT",
        callback=_response_format,
        help="json_object, or a JSON file with OpenAI's `response_format`.",
    ),
    set_option,
    template_name_option,
)
_NAMES = ("template_name", "messages", "tools", "tool_choice", "response_format", "parallel", "settings")

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def _asked(command: Command, options: Sequence[Decorator]) -> Command:
    @functools.wraps(command)
    def wrapped(template: str, **given: Any) -> None:
        asked = Asked(source=template, **{name: given.pop(name) for name in _NAMES if name in given})
        command(asked=asked, **given)

    template: Decorator = click.argument("template", type=InputPath())
    decorated: Command = wrapped
    for option in (*reversed(options), template):
        decorated = option(decorated)
    return decorated


def request_options(command: Command) -> Command:
    """Give a command the argument TEMPLATE and the options of a request; the command gets all of them as `asked`."""
    return _asked(command, _REQUEST)


def asked_options(command: Command) -> Command:
    """Give a command the argument TEMPLATE, the options of a request and one for messages; it gets them as `asked`."""
    return _asked(command, (_MESSAGES, *_REQUEST))
