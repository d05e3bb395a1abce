"""`unrender chat`: renders a conversation, answers it, and prints what the answer means."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from unrender import Malformed, Message, Turn
from unrender.cli.inputs import BadInput, InputPath, RequestOptions, json_of, json_option, read_text, request_options
from unrender.cli.output import INDENT, event_line, print_heading, unfinished
from unrender.cli.terminal import NO_STYLE, print_block, print_document, print_json, remark

_FIELDS = {
    "messages": "messages",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "response_format": "response_format",
    "parallel_tool_calls": "parallel",
    "chat_template_kwargs": "settings",
}
"""The fields of a request to a server that are read → what they are here."""
_UNSET: Mapping[str, Any] = {
    "tools": None,
    "tool_choice": "auto",
    "response_format": None,
    "parallel": True,
    "settings": {},
}
"""The values of options that are not given."""


@click.command(short_help="Show prompt, answer and message.")
@request_options
@click.argument("conversation", type=InputPath())
@click.option(
    "--answer", metavar="FILE", type=InputPath(), help="The model's raw answer, instead of one that is made up."
)
@click.option("--seed", default=0, show_default=True, help="Another seed makes up another answer.")
@click.option("--prompt", "only_prompt", is_flag=True, help="Print the prompt, exactly, and nothing else.")
@json_option
def chat_command(
    conversation: str, *, request: RequestOptions, answer: str | None, seed: int, only_prompt: bool, as_json: bool
) -> None:
    """Render a conversation, answer it as a model that is always right, and read the answer back.

    CONVERSATION is a JSON file (- for standard input): a list of messages, or the body of a request to an OpenAI
    server. The request's tools and choices are used where no option is given. The exit code is 1 when a part of the
    answer could not be read.
    """
    turn = _with_body(request, conversation).turn()
    if only_prompt:
        print_document(turn.prompt)
        return
    text = turn.sample(seed) if answer is None else read_text(answer)
    message, complaints = _read(turn, text)
    if as_json:
        print_json({"prompt": turn.prompt, "answer": text, "message": message.to_openai(), "complaints": complaints})
    else:
        _show(turn, text, message, "made up" if answer is None else answer)
        for complaint in complaints:
            remark(complaint)
    sys.exit(bool(complaints))


def _with_body(request: RequestOptions, path: str) -> RequestOptions:
    """Add what a file says of a conversation to what the options say. Raises `BadInput`, naming the file."""
    body = json_of(path)
    if isinstance(body, list):
        return replace(request, messages=body)
    if not isinstance(body, dict) or "messages" not in body:
        raise BadInput(f"{path}: expected a list of messages, or an object with `messages`")
    said = {ours: body[theirs] for theirs, ours in _FIELDS.items() if body.get(theirs) is not None}
    options = {name: value for name, unset in _UNSET.items() if (value := getattr(request, name)) != unset}
    return replace(request, **said | options)


def _read(turn: Turn, text: str) -> tuple[Message, list[str]]:
    parser = turn.parser()
    events = [*parser.feed(text), *parser.finish()]
    malformed = [event_line(event) for event in events if isinstance(event, Malformed)]
    return parser.message, [*malformed, *unfinished(parser.message)]


def _show(turn: Turn, text: str, message: Message, origin: str) -> None:
    print_heading("Prompt", f"{len(turn.prompt)} characters")
    print_block([(turn.prompt, NO_STYLE)], indent=INDENT)
    print_heading("Answer", origin)
    print_block([(text, NO_STYLE)], indent=INDENT)
    print_heading("Message")
    shown: dict[str, Any] = message.to_openai()
    print_block([(json.dumps(shown, indent=2, ensure_ascii=False), NO_STYLE)], indent=INDENT)
