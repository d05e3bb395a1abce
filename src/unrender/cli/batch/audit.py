"""`unrender batch audit`: compares recorded answers with the messages a server made of them, and prints the losses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from unrender.batch import Audit, Loss, Reader, audit_files
from unrender.batch.outputs import STANDARD
from unrender.batch.page import audit_page
from unrender.cli.batch.read import column_option, jobs_option, pace, tools_option
from unrender.cli.inputs import (
    InputPath,
    OutputPath,
    check_printed,
    json_option,
    load,
    set_option,
    template_name_option,
    write_text,
)
from unrender.cli.output import print_heading, print_rows, print_table
from unrender.cli.terminal import print_json, progress
from unrender.limits import MOST_SUMMED
from unrender.printable import printable_line


@click.command(short_help="Show what a server lost of its answers.")
@click.argument("template", type=InputPath())
@click.argument("files", nargs=-1, required=True, type=InputPath())
@click.option(
    "--message",
    metavar="NAME",
    default="message",
    show_default=True,
    help="The column with the message, or the whole chat completion, that the server gave.",
)
@click.option(
    "--html",
    metavar="OUT",
    type=OutputPath(dir_okay=False),
    help="Write a page with plots and examples as well; - prints it instead.",
)
@jobs_option
@tools_option
@column_option
@set_option
@template_name_option
@json_option
def audit_command(
    template: str,
    files: tuple[str, ...],
    *,
    message: str,
    html: str | None,
    jobs: int | None,
    tools: Any,
    columns: Mapping[str, str],
    settings: Mapping[str, Any],
    template_name: str | None,
    as_json: bool,
) -> None:
    """Read the answers in FILES, and compare them with the messages that a server made of them.

    FILES are as for `unrender batch read`. A row holds the answer as the model wrote it in `text`, and what the server gave in
    `message`. The exit code is 1 when something was lost.
    """
    check_printed(html, "--html", as_json=as_json)
    reader = Reader(load(template, name=template_name), tools=tools, **{**columns, **settings})
    with progress(0) as shown:
        found = audit_files(
            reader,
            files,
            message=message,
            jobs=jobs or os.cpu_count() or 1,
            on_progress=lambda at: shown.show(pace(at)),
        )
    if html is not None:
        write_text(html, audit_page(found, f"What was lost: {', '.join(map(printable_line, files))}"))
    if as_json:
        print_json(found.data())
    elif html != STANDARD:
        _show(found)
    raise SystemExit(1 if found.same < found.rows else 0)


def _show(found: Audit) -> None:
    print_rows(
        [
            ("answers", f"{found.rows:,}"),
            ("as they were meant", f"{found.same:,}  {_share(found.same, found.rows)}"),
            ("not compared", f"{found.unreadable.total():,}"),
        ]
    )
    losses = [(loss.value, found.losses[loss.value]) for loss in Loss if found.losses[loss.value]]
    if losses:
        print_heading("Answers by what was lost")
        rows = [(name, f"{times:,}", _share(times, found.rows), "") for name, times in losses]
        print_table(("", "answers", "share", ""), rows)
    if found.calls:
        print_heading("Calls", f"{found.calls.total():,}, {found.wrong.total():,} lost or changed")
        tools = found.calls.most_common(MOST_SUMMED)
        print_table(
            ("tool", "calls", "wrong", ""), [(name, f"{n:,}", f"{found.wrong[name]:,}", "") for name, n in tools]
        )
    if found.unreadable:
        print_heading("Rows that could not be compared")
        print_rows([(f"{times:,}", reason) for reason, times in found.unreadable.most_common(MOST_SUMMED)])


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"
