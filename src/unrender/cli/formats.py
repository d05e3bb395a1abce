"""`unrender format`: a template into the JSON of its Format."""

from __future__ import annotations

import click

from unrender.cli.inputs import load, template_argument


@click.command("format", short_help="Print the format as JSON.")
@template_argument
def format_(template: str) -> None:
    """Print the derived format as JSON, to be kept, compared or edited."""
    click.echo(load(template).format.to_json())
