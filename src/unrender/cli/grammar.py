"""`unrender grammar`: prints the grammar for a template and a request."""

from __future__ import annotations

import click

from unrender import Turn
from unrender.cli.inputs import RequestOptions, conversation_options
from unrender.cli.terminal import print_document, print_json

_DIALECTS = {"gbnf": Turn.gbnf, "lark": Turn.lark, "structural-tag": Turn.structural_tag}


@click.command(short_help="Print a grammar for engines.")
@conversation_options
@click.option("--dialect", type=click.Choice(list(_DIALECTS)), required=True, help="What the grammar is written in.")
def grammar_command(*, request: RequestOptions, dialect: str) -> None:
    """Print the grammar that constrains an answer to the derived format.

    The grammar starts where the prompt ends: after the conversation in --messages, or after a single question. Parts of
    a tool's schema that the dialect cannot express are listed on standard error; there the grammar allows more than the
    schema.
    """
    emitted = _DIALECTS[dialect](request.turn())
    if isinstance(emitted, str):
        print_document(emitted)
    else:
        print_json(emitted)
