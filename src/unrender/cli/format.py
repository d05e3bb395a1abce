"""Commands of the group `format`: `show`, `diff`, `list` and `export`.

This module also defines the command `example`, which writes the files used in the documentation.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click

from unrender import ChatTemplate
from unrender.cli.inputs import (
    BadInput,
    InputPath,
    JsonFile,
    json_of,
    json_option,
    load_template,
    read_source,
    template_argument,
    template_name_option,
    text_of_file,
    write_text,
)
from unrender.cli.templates import show_report
from unrender.cli.terminal import (
    UNUSABLE,
    print_block,
    print_heading,
    print_json,
    print_line,
    print_rows,
    remark,
)
from unrender.errors import FormatError
from unrender.export import Exported, Target, read_response_template
from unrender.format import Format
from unrender.format.data import differences
from unrender.format.declared import Declared, declared_formats, read_declared
from unrender.verify import verify_format
from unrender.verify.response_templates import verify_export

_KEY = "response_template"
_EXAMPLE = Path(__file__).parent / "example"
_EXAMPLES = ("chat_template.jinja", "tools.json", "answer.txt")


@click.command("example", short_help="Write files to try the commands on.")
@click.argument("folder", default=".", type=click.Path(file_okay=False))
def example_command(folder: str) -> None:
    """Write example files into FOLDER, by default the current one: a template, tools and a model's answer.

    They are chat_template.jinja, tools.json and answer.txt. If one of them exists with other content, nothing is written, and the exit code
    is 2.
    """
    files = {name: (_EXAMPLE / name).read_text(encoding="utf-8") for name in _EXAMPLES}
    for path in (Path(folder) / name for name in files):
        if path.exists() and text_of_file(str(path)) != files[path.name]:
            raise BadInput(f"{path}: exists with other content; choose another folder")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}") from error
    for name, text in files.items():
        write_text(str(Path(folder) / name), text)
    print_line("  ".join(files))


@click.command("show", short_help="Print the format as JSON.")
@template_argument
@template_name_option
def show_command(template: str, *, template_name: str | None) -> None:
    """Print the derived format as JSON, to save, compare or edit. TEMPLATE may also be a name that `unrender format list` prints."""
    print_json(_format(template, name=template_name).to_dict())


@click.command(short_help="Compare two formats.")
@click.argument("before", metavar="A", type=InputPath())
@click.argument("after", metavar="B", type=InputPath())
@json_option
def diff_command(before: str, after: str, *, as_json: bool) -> None:
    """Compare the formats of A and B, each a template or a file written by `unrender format show`.

    Differences are listed by field. The exit code is 1 if there are any.
    """
    found = differences(_format(before), _format(after))
    if as_json:
        print_json([asdict(difference) for difference in found])
    else:
        for difference in found:
            print_block([(str(difference), "")])
    sys.exit(bool(found))


def _format(source: str, *, name: str | None = None) -> Format:
    """Return the Format in a file, a declared format, or the format of a template."""
    path = Path(source)
    if not path.exists() and source in {declared.name for declared in declared_formats()}:
        return Format.named(source)
    data = json_of(source) if path.suffix == ".json" and path.is_file() else None
    # Only the JSON of a Format contains a version and no template, so load any other JSON file as a template.
    if not isinstance(data, dict) or "version" not in data or "chat_template" in data:
        return load_template(source, name=name).format
    try:
        return Format.from_dict(data)
    except FormatError as error:
        raise BadInput(f"{source}: {error}") from error


@click.command(short_help="List declared formats, or check files.")
@click.argument("files", nargs=-1, type=InputPath())
@json_option
def list_command(files: tuple[str, ...], *, as_json: bool) -> None:
    """List the declared formats in effect: unrender's own, and those of packages, UNRENDER_FORMATS and your folder.

    With FILES (- for standard input), check these instead. The exit code is 1 if a file is malformed, if its name is taken, or if an answer
    generated from its grammars can't be parsed. The exit code is 2 if a file can't be read.
    """
    found = [_checked(file) for file in files] if files else list(declared_formats())
    if as_json:
        print_json([_data(item) for item in found])
    else:
        for item in found:
            if isinstance(item, Declared):
                print_heading(item.name, item.origin)
                print_rows([("why", item.why), ("applies", _applies(item))])
            else:
                print_heading("not read" if isinstance(item, BadInput) else "malformed", str(item))
    codes = [UNUSABLE if isinstance(item, BadInput) else 1 for item in found if not isinstance(item, Declared)]
    sys.exit(max(codes, default=0))


def _checked(file: str) -> Declared | BadInput | FormatError:
    """Return the declared format in a file, or the problem with the file."""
    try:
        item = read_declared(read_source(file), where=file, origin=file)
        taken = {known.name for known in declared_formats() if known.origin != str(Path(file).absolute())}
    except (BadInput, FormatError) as error:
        return error
    if item.name in taken:
        return FormatError(f"{file}: name: expected an unused name, found {item.name!r}")
    for finding in verify_format(item.format).failed:
        answer = finding.counterexample.answer if finding.counterexample else ""
        return FormatError(f"{file}: format: {finding.capability}: failed for {answer!r:.200}")
    return item


def _applies(item: Declared) -> str:
    if item.evidence is None:
        return "by name"
    needed = {"all of": item.evidence.all, "one of": item.evidence.any, "none of": item.evidence.none}
    parts = [f"{what} {', '.join(map(repr, texts))}" for what, texts in needed.items() if texts]
    return f"to sources with {'; '.join(parts)}" if parts else "to every template"


def _data(item: Declared | BadInput | FormatError) -> dict[str, str]:
    if not isinstance(item, Declared):
        return {"error": str(item)}
    return {"name": item.name, "why": item.why, "origin": item.origin, "applies": _applies(item)}


@click.command(short_help="Write the format for other parsers.")
@template_argument
@template_name_option
@click.option(
    "--field-names",
    type=click.Choice(get_args(Target)),
    default="transformers",
    show_default=True,
    help="Engine whose field names to use; SGLang uses vLLM's.",
)
@click.option(
    "--write",
    "config",
    metavar="FILE",
    type=InputPath(),
    help="Write it into this tokenizer_config.json instead of printing it; - reads one from standard input.",
)
@click.option("--check", "checks", is_flag=True, help="Test it with transformers on rendered answers.")
@click.option("--declared", metavar="FILE", type=JsonFile(), help="Check this response template instead.")
@json_option
def export_command(
    template: str,
    *,
    template_name: str | None,
    field_names: Target,
    config: str | None,
    checks: bool,
    declared: Any,
    as_json: bool,
) -> None:
    """Print the format as a Hugging Face response template.

    Parts that the response template can't express are listed on standard error. If it can't express the calls, the exit code is 2. The
    options --check and --declared need transformers, and print the result of the check instead. If transformers parses an answer
    differently, the exit code is 1 and nothing is written.
    """
    loaded = load_template(template, name=template_name)
    if declared is None:
        exported = loaded.response_template(target=field_names)
    else:  # The response template may be stored in a tokenizer's configuration file.
        exported = read_response_template(declared.get(_KEY, declared) if isinstance(declared, dict) else declared)
    checked = checks or declared is not None
    held = not checked or _check(loaded, exported, template, as_json=as_json)
    if config is not None and held:
        _write(exported, config)
    elif not checked:
        print_json(exported.template)
    for omission in exported.omissions:
        remark(f"not expressed: {omission.what}")
    sys.exit(not held)


def _write(exported: Exported, path: str) -> None:
    """Add a response template to a JSON file without changing its other fields."""
    config = json_of(path)
    if not isinstance(config, dict):
        raise BadInput(f"{path}: expected a JSON object, found {type(config).__name__}")
    text = json.dumps({**config, _KEY: exported.template}, indent=2, ensure_ascii=False)
    write_text(path, text + "\n")


def _check(loaded: ChatTemplate, exported: Exported, name: str, *, as_json: bool) -> bool:
    """Print the results, and return True if no check failed."""
    report = verify_export(loaded, exported)
    if as_json:
        print_json(report.to_dict())
    else:
        show_report(name, report)
    return not report.failed
