"""`unrender grammar`: a template and a request into the text of a grammar."""

from __future__ import annotations

from typing import Any

import click

from unrender.chat_template import Turn
from unrender.cli.inputs import (
    QUESTION,
    load,
    messages_option,
    settings_option,
    template_argument,
    tools_option,
)
from unrender.cli.terminal import print_document, print_json

_DIALECTS = {"gbnf": Turn.gbnf, "lark": Turn.lark, "structural-tag": Turn.structural_tag}


@click.command(short_help="Print a grammar for engines.")
@template_argument
@click.option("--dialect", type=click.Choice(list(_DIALECTS)), required=True, help="What the grammar is written in.")
@tools_option
@messages_option
@settings_option
@click.option("--tool-choice", default="auto", show_default=True, help="auto, none, required, or a tool's name.")
@click.option("--parallel/--no-parallel", default=True, help="Whether several calls may be written.")
def grammar(
    template: str,
    *,
    dialect: str,
    tools: Any,
    messages: Any,
    settings: dict[str, Any],
    tool_choice: str,
    parallel: bool,
) -> None:
    """Print the grammar that constrains an answer to the derived format.

    It starts where the prompt ends: with --messages after that conversation, else after a single question. What of a tool's
    schema the dialect cannot express is named on standard error, and wider in the grammar.
    """
    turn = load(template).prepare(
        QUESTION if messages is None else messages,
        tools=tools,
        tool_choice=_read_choice(tool_choice),
        parallel_tool_calls=parallel,
        **settings,
    )
    emitted = _DIALECTS[dialect](turn)
    if isinstance(emitted, str):
        print_document(emitted)
    else:
        print_json(emitted)


def _read_choice(choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
