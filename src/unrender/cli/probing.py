"""The command `probe`: what a running engine does, and how its model writes calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from unrender.cli.inputs import BadInput, json_option, load_template, write_text
from unrender.cli.serving import KEY, extra
from unrender.cli.terminal import print_json, print_line, print_sentence, print_table, progress

if TYPE_CHECKING:
    from unrender.probe import ProbeReport

_KINDS = ("llama-server", "vllm", "sglang", "openai", "ollama")
_COUNTED = ("own", "repaired", "other", "broken", "silent", "uninvited", "text", "error", "right")
"""Columns of the table of answers: the kinds of answers, and those that are right."""


@click.command(short_help="Find out what a running engine and its model do.")
@click.argument("url")
@click.option("--backend", "kind", type=click.Choice(_KINDS), help="The kind of engine.  [default: found out]")
@click.option(
    "--model", "template", metavar="TEMPLATE", help="Model with the chat template; llama-server reports its own."
)
@click.option("--engine-model", metavar="NAME", default="", help="Name of the model at the engine, if it has several.")
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=170.0, show_default=True, help="Approximate time limit."
)
@click.option("--compare", metavar="URL", help="Probe a second engine with the same template, and compare the two.")
@click.option("-o", "--output", metavar="FILE", help="Write the format with the observed call syntaxes.")
@click.option("--page", "page_file", metavar="FILE", help="Write the report as an HTML page.")
@json_option
def probe_command(
    url: str,
    *,
    template: str | None,
    compare: str | None,
    output: str | None,
    page_file: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask a running engine for prompts and tool calls, and report what goes wrong, and why.

    URL is the engine's address. Its key is read from UNRENDER_ENGINE_KEY. The exit code is 1 if a cause of trouble was found.
    """
    with extra("gateway"):
        from unrender.probe import page  # noqa: PLC0415 - an extra
    loaded = load_template(template) if template else None
    reports = [_probed(address, loaded, **options) for address in (url, compare) if address]
    if output is not None:
        write_text(output, reports[0].format.to_json() + "\n")
    if page_file is not None:
        write_text(page_file, page(*reports))
    if as_json:
        print_json([report.to_dict() for report in reports] if compare else reports[0].to_dict())
    elif output != "-" and page_file != "-":
        for report in reports:
            _print(report)
    return int(not all(report.ok for report in reports))


def _probed(url: str, loaded: Any, *, engine_model: str, **options: Any) -> ProbeReport:
    from unrender.gateway.backends import EngineError  # noqa: PLC0415 - an extra
    from unrender.probe import probe  # noqa: PLC0415

    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url}: expected the engine's address, e.g. http://127.0.0.1:8080")
    key = os.environ.get(KEY, "")
    try:
        with progress(url) as told:
            return probe(url, loaded, key=key, model=engine_model, told=told, **options)
    except EngineError as error:
        raise BadInput(f"{url}: {error.message}") from error


def _print(report: ProbeReport) -> None:
    for line in report.lines():
        print_sentence(line)
    print_line()
    rows = [[name, str(asked), *(str(kinds.get(it, 0)) for it in _COUNTED)] for name, asked, kinds in report.parts]
    print_table(["answers", "all", *_COUNTED], rows)
