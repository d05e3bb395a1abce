"""`unrender batch read`: reads files of recorded answers into one file of messages."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import click

from unrender.batch import Progress, Reader, Tally, read_files
from unrender.batch.outputs import STANDARD
from unrender.cli.format.description import Row
from unrender.cli.inputs import InputPath, OutputPath, json_option, load, read_json, set_option, template_name_option
from unrender.cli.output import print_heading, print_rows, print_table
from unrender.cli.terminal import aside, print_json, progress
from unrender.limits import MOST_SUMMED

_ROLES = ("text", "prompt", "messages", "tools", "finish_reason")


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    columns = {}
    for setting in given:
        role, equals, name = setting.partition("=")
        if not equals or role not in _ROLES:
            raise click.BadParameter(f"expected ROLE=NAME with one of the roles {', '.join(_ROLES)}, found {setting!r}")
        columns["tools_column" if role == "tools" else role] = name
    return columns


tools_option = click.option(
    "--tools",
    metavar="FILE",
    type=InputPath(),
    callback=read_json,
    help="A JSON file with OpenAI's `tools`, for rows without their own; without it, any name is a tool's.",
)
column_option = click.option(
    "--column",
    "columns",
    metavar="ROLE=NAME",
    multiple=True,
    callback=_columns,
    help="Where to find the text (the answer), prompt, messages, tools or finish_reason, e.g. text=generated_text.",
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(1), help="Processes that read.  [default: as many as there are processors]"
)


@click.command(short_help="Turn files of recorded answers into one of messages.")
@click.argument("template", type=InputPath())
@click.argument("files", nargs=-1, required=True, type=InputPath())
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=OutputPath(dir_okay=False),
    help="The file to write, or - for standard output.",
)
@jobs_option
@tools_option
@column_option
@click.option("--keep", metavar="NAME", multiple=True, help="A column of the input to keep in the output, e.g. id.")
@set_option
@template_name_option
@click.option("--force", is_flag=True, help="Begin anew, and replace OUT.")
@json_option
def read_command(
    template: str,
    files: tuple[str, ...],
    output: str,
    *,
    jobs: int | None,
    tools: Any,
    columns: Mapping[str, str],
    keep: tuple[str, ...],
    settings: Mapping[str, Any],
    template_name: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Read the answers in FILES and write the messages they mean to OUT, in the same order.

    FILES are JSONL, also compressed (.gz, .zst), Parquet, or - for JSONL on standard input; OUT is any of these forms, - being
    standard output; the summary is then on standard error.
    A row holds the answer in `text`, and may hold its `prompt` or `messages`, its `tools` and its `finish_reason`.

    A command that was interrupted continues where it was when you run it again. Rows that cannot be read are written to
    OUT.bad.jsonl, with the reason; what is written to standard output cannot be continued, and they are told on standard
    error. The exit code is 1 when there are such rows.
    """
    reader = Reader(load(template, name=template_name), tools=tools, **{**columns, **settings})
    with progress(0) as shown:
        tally = read_files(
            reader,
            files,
            output,
            jobs=jobs or os.cpu_count() or 1,
            keep=keep,
            force=force,
            on_progress=lambda at: shown.show(pace(at)),
        )
    with aside() if output == STANDARD else nullcontext():
        if as_json:
            print_json(tally.data())
        else:
            _show(tally, output)
    raise SystemExit(1 if tally.statuses["unreadable"] else 0)


def pace(at: Progress) -> str:
    """Return in words how far a job has come."""
    share = "" if at.share is None else f"  {at.share:.0%}"
    remaining = "" if at.remaining is None else f"  {_time(at.remaining)} left"
    return f"{at.rows:,} answers  {at.rate:,.0f} a second{share}{remaining}"


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _show(tally: Tally, output: str) -> None:
    bad = tally.statuses["unreadable"]
    print_rows([(output, f"{tally.rows - bad:,} messages"), *_statuses(tally)])
    if tally.calls:
        print_heading("Calls", f"{sum(calls.total() for calls in tally.calls.values()):,}")
        rows = sorted(tally.calls.items(), key=lambda item: -item[1].total())
        head = ("tool", "complete", "truncated", "invalid", "")
        print_table(
            head, [(name, *(f"{calls[kind]:,}" for kind in head[1:4]), "") for name, calls in rows[:MOST_SUMMED]]
        )
    for title, reasons in (("Malformed: what was expected", tally.reasons), ("Unreadable rows", tally.refusals)):
        if reasons:
            print_heading(title)
            print_rows(list(_commonest(reasons)))


def _statuses(tally: Tally) -> Iterator[Row]:
    for status in ("complete", "truncated", "malformed", "unreadable"):
        if count := tally.statuses[status]:
            yield status, f"{count:,}  {count / tally.rows:.1%}"


def _commonest(reasons: Counter[str]) -> Iterator[Row]:
    for reason, count in reasons.most_common(MOST_SUMMED):
        yield f"{count:,}", reason
