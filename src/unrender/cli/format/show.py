"""`unrender format show`: prints a template's Format as JSON."""

from __future__ import annotations

import click

from unrender.cli.inputs import load, template_argument, template_name_option
from unrender.cli.terminal import print_json


@click.command("show", short_help="Print the format as JSON.")
@template_argument
@template_name_option
def show_command(template: str, *, template_name: str | None) -> None:
    """Print the derived format as JSON, to be kept, compared or edited."""
    print_json(load(template, name=template_name).format.to_dict())
