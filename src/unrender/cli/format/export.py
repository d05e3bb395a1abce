"""`unrender format export`: writes the response template that transformers, vLLM and SGLang read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from unrender import ChatTemplate, Exported, Target, read_response_template
from unrender.cli.format.description import Row
from unrender.cli.inputs import (
    BadInput,
    InputPath,
    json_of,
    json_option,
    load,
    read_json,
    template_argument,
    template_name_option,
    write_text,
)
from unrender.cli.output import print_heading, print_rows
from unrender.cli.terminal import print_json, remark
from unrender.cli.verify import finding_row
from unrender.limits import LONGEST_PRINTED_VALUE
from unrender.verify import verify_export

_KEY = "response_template"


@click.command(short_help="Write the format for other parsers.")
@template_argument
@template_name_option
@click.option(
    "--field-names",
    type=click.Choice([str(target) for target in Target]),
    default=str(Target.TRANSFORMERS),
    show_default=True,
    help="Whose name reasoning has; SGLang takes vLLM's.",
)
@click.option(
    "--write",
    "config",
    metavar="FILE",
    type=InputPath(),
    help="Put it into this tokenizer_config.json instead of printing it; - reads one and prints it.",
)
@click.option("--check", "checks", is_flag=True, help="Let transformers read the template's renderings with it.")
@click.option(
    "--declared", metavar="FILE", type=InputPath(), callback=read_json, help="Check this response template instead."
)
@json_option
def export_command(
    template: str,
    *,
    template_name: str | None,
    field_names: str,
    config: str | None,
    checks: bool,
    declared: Any,
    as_json: bool,
) -> None:
    """Print the format as a Hugging Face response template.

    Parts that the response template cannot express are listed on standard error. A format whose calls it cannot express
    at all is refused with exit code 2. With --check or --declared, which need transformers, the result of the check is
    printed instead; if transformers reads an answer otherwise than unrender, the exit code is 1 and nothing is written.
    """
    loaded = load(template, name=template_name)
    exported = loaded.response_template(target=Target(field_names)) if declared is None else _declared(declared)
    checked = checks or declared is not None
    held = not checked or _check(loaded, exported, template, as_json=as_json)
    if config is not None and held:
        _write(exported, config)
    elif not checked:
        print_json(exported.template)
    for omission in exported.omissions:
        remark(f"not expressed: {omission.what}")
    sys.exit(not held)


def _declared(data: Any) -> Exported:
    """Read a response template, or the one in a tokenizer's configuration."""
    return read_response_template(data.get(_KEY, data) if isinstance(data, dict) else data)


def _write(exported: Exported, path: str) -> None:
    """Put a response template into a JSON file; what else is in the file stays."""
    config = json_of(path)
    if not isinstance(config, dict):
        raise BadInput(f"{path}: expected a JSON object, found {type(config).__name__}")
    text = json.dumps({**config, _KEY: exported.template}, indent=2, ensure_ascii=False)
    write_text(path, text + "\n")


def _check(loaded: ChatTemplate, exported: Exported, name: str, *, as_json: bool) -> bool:
    """Print what held, and return whether all did."""
    report = verify_export(loaded, exported)
    if as_json:
        print_json(report.to_dict())
    else:
        print_heading(name, "read by transformers")
        print_rows([finding_row(finding) for finding in report.findings])
        for finding in report.refuted:
            example = finding.counterexample
            if example:
                print_heading(finding.capability, f"read differently, fed {example.chunking}")
                print_rows([("answer", repr(example.answer)), *_differences(example.expected, example.found)])
    return not report.refuted


def _differences(ours: str, theirs: str) -> Iterator[Row]:
    """Yield the parts of two messages that differ; a parser that raised has no message."""
    mine, other = json.loads(ours), json.loads(theirs)
    if isinstance(other, str):
        yield "transformers", _short(other)
        return
    for part in mine:
        if mine[part] != other[part]:
            yield f"{part} unrender", _short(mine[part])
            yield f"{part} transformers", _short(other[part])


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_PRINTED_VALUE else text[:LONGEST_PRINTED_VALUE] + " …"
