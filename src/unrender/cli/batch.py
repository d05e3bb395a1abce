"""Commands of the group `batch`: `read` and `audit` take files of recorded answers, `replay` one answer's stream."""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import click

from unrender import Event
from unrender.batch import Audit, Loss, Progress, Reader, Tally, audit_files, read_files
from unrender.batch.audit import audit_page
from unrender.cli.inputs import (
    BadInput,
    Command,
    InputPath,
    OutputPath,
    RequestOptions,
    check_printed,
    conversation_options,
    decorated,
    jobs_option,
    json_option,
    load,
    parse_json,
    read_json,
    read_text,
    set_option,
    template_argument,
    template_name_option,
    write_text,
)
from unrender.cli.terminal import (
    BOLD,
    DIM,
    INDENT,
    aside,
    event_data,
    event_line,
    print_heading,
    print_json,
    print_line,
    print_rows,
    print_table,
    progress,
    remark,
)
from unrender.explain import Replay, replay
from unrender.limits import MAX_SHOWN_ITEMS
from unrender.outputs import STANDARD_STREAM
from unrender.printable import printable_line

_ROLES = ("text", "prompt", "messages", "tools", "finish_reason")
_STREAM_FIELDS = ("", "data", "event", "id", "retry")
"""What lines of an event stream begin with; an empty name is a comment."""
_DONE = "[DONE]"
"""How OpenAI's streams end."""


def _columns(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    columns = {}
    for setting in given:
        role, equals, name = setting.partition("=")
        if not equals or role not in _ROLES:
            raise click.BadParameter(f"expected ROLE=NAME with one of the roles {', '.join(_ROLES)}, found {setting!r}")
        columns["tools_column" if role == "tools" else role] = name
    return columns


def _of_rows(command: Command) -> Command:
    """Give a command the arguments TEMPLATE and FILES, and options that say what is in them; it gets a `reader` for them."""

    @functools.wraps(command)
    def wrapped(template: str, template_name: str | None, **values: Any) -> None:
        tools, columns, settings = (values.pop(name) for name in ("tools", "columns", "settings"))
        command(Reader(load(template, name=template_name), tools=tools, **{**columns, **settings}), **values)

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
    files_argument = click.argument("files", nargs=-1, required=True, type=InputPath())
    options = (jobs_option("Processes that read."), tools_option, column_option, set_option, template_name_option)
    return decorated(wrapped, template_argument, files_argument, *options, json_option)


@click.command(short_help="Turn files of recorded answers into one of messages.")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=OutputPath(dir_okay=False),
    help="The file to write, or - for standard output.",
)
@click.option("--keep", metavar="NAME", multiple=True, help="A column of the input to keep in the output, e.g. id.")
@click.option("--force", is_flag=True, help="Begin anew, and replace OUT.")
@_of_rows
def read_command(
    reader: Reader, files: tuple[str, ...], output: str, *, jobs: int, keep: tuple[str, ...], force: bool, as_json: bool
) -> None:
    """Read the answers in FILES and write the messages they mean to OUT, in the same order.

    FILES are JSONL, also compressed (.gz, .zst), Parquet, or - for JSONL on standard input; OUT is any of these forms, - being
    standard output; the summary is then on standard error.
    A row holds the answer in `text`, and may hold its `prompt` or `messages`, its `tools` and its `finish_reason`.

    A command that was interrupted continues where it was when you run it again. Rows that cannot be read are written to
    OUT.bad.jsonl, with the reason; what is written to standard output cannot be continued, and they are told on standard
    error. The exit code is 1 when there are such rows.
    """
    with _shown_pace() as show:
        tally = read_files(reader, files, output, jobs=jobs, keep=keep, force=force, on_progress=show)
    with aside() if output == STANDARD_STREAM else nullcontext():
        if as_json:
            print_json(tally.data())
        else:
            _show_tally(tally, output)
    if reader.any_tool and tally.calls:
        remark("no tools were given, so any name counts as a tool's in rows without their own; --tools FILE names them")
    sys.exit(bool(tally.statuses["unreadable"]))


@contextmanager
def _shown_pace() -> Iterator[Callable[[Progress], None]]:
    """Return what shows how far a job has come while the block runs."""
    with progress(0) as shown:
        yield lambda at: shown.show(_pace(at))


def _pace(at: Progress) -> str:
    """Return in words how far a job has come."""
    share = "" if at.share is None else f"  {at.share:.0%}"
    remaining = "" if at.remaining is None else f"  {_time(at.remaining)} left"
    return f"{at.rows:,} answers  {at.rate:,.0f} a second{share}{remaining}"


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _show_tally(tally: Tally, output: str) -> None:
    statuses = [(status, tally.statuses[status]) for status in ("complete", "truncated", "malformed", "unreadable")]
    rows = [(status, f"{count:,}  {count / tally.rows:.1%}") for status, count in statuses if count]
    print_rows([(output, f"{tally.rows - tally.statuses['unreadable']:,} messages"), *rows])
    if tally.calls:
        print_heading("Calls", f"{sum(calls.total() for calls in tally.calls.values()):,}")
        head = ("tool", "complete", "truncated", "invalid", "")
        most = sorted(tally.calls.items(), key=lambda item: -item[1].total())[:MAX_SHOWN_ITEMS]
        print_table(head, [(name, *(f"{calls[kind]:,}" for kind in head[1:4]), "") for name, calls in most])
    _show_reasons("Malformed: what was expected", tally.reasons)
    _show_reasons("Unreadable rows", tally.refusals)


def _show_reasons(title: str, reasons: Counter[str]) -> None:
    if reasons:
        print_heading(title)
        print_rows([(f"{count:,}", reason) for reason, count in reasons.most_common(MAX_SHOWN_ITEMS)])


@click.command(short_help="Find what a server's parser dropped.")
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
@_of_rows
def audit_command(
    reader: Reader, files: tuple[str, ...], *, jobs: int, message: str, html: str | None, as_json: bool
) -> None:
    """Read the answers in FILES, and compare them with the messages that a server made of them.

    FILES are as for `unrender batch read`. A row holds the answer as the model wrote it in `text`, and what the server gave in
    `message`. The exit code is 1 when something was lost.
    """
    check_printed(html, "--html", as_json=as_json)
    with _shown_pace() as show:
        found = audit_files(reader, files, message=message, jobs=jobs, on_progress=show)
    if html is not None:
        write_text(html, audit_page(found, f"What was lost: {', '.join(map(printable_line, files))}"))
    if as_json:
        print_json(found.data())
    elif html != STANDARD_STREAM:
        _show_audit(found)
    sys.exit(found.same < found.rows)


def _show_audit(found: Audit) -> None:
    same = f"{found.same:,}  {_share(found.same, found.rows)}"
    compared = [("answers", f"{found.rows:,}"), ("as they were meant", same)]
    print_rows([*compared, ("not compared", f"{found.unreadable.total():,}")])
    if losses := [(loss.value, found.losses[loss.value]) for loss in Loss if found.losses[loss.value]]:
        print_heading("Answers by what was lost")
        rows = [(name, f"{times:,}", _share(times, found.rows), "") for name, times in losses]
        print_table(("", "answers", "share", ""), rows)
    if found.calls:
        print_heading("Calls", f"{found.calls.total():,}, {found.wrong.total():,} lost or changed")
        tools = found.calls.most_common(MAX_SHOWN_ITEMS)
        rows = [(name, f"{n:,}", f"{found.wrong[name]:,}", "") for name, n in tools]
        print_table(("tool", "calls", "wrong", ""), rows)
    _show_reasons("Rows that could not be compared", found.unreadable)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


@click.command(short_help="Show what came out when.")
@conversation_options
@click.argument("chunks", type=InputPath())
@json_option
def replay_command(chunks: str, *, request: RequestOptions, as_json: bool) -> None:
    """Feed recorded chunks to the parser, event by event, and try all other chunkings.

    CHUNKS is a JSON list, a file with a JSON value on each line, or a recorded event stream (`data:` lines); - is standard input. A
    chunk is a string, an object with `text` or `content`, or a streamed completion of an OpenAI server. The exit code is 1 when
    another chunking gives another result.
    """
    result = replay(request.turn().parser, read_chunks(chunks))
    if as_json:
        print_json(_data(result))
    else:
        _show_replay(result)
    sys.exit(bool(result.differences))


def read_chunks(path: str) -> list[str]:
    """Return the chunks in a file. Raises `BadInput`, naming the chunk, when one has no text."""
    text = read_text(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        lines = ((number, _said(line)) for number, line in enumerate(text.split("\n"), 1))
        found = [parse_json(line, f"{path}, line {number}") for number, line in lines if line]
    chunks = found if isinstance(found, list) else [found]
    return [_text(chunk, f"{path}: chunk {number}") for number, chunk in enumerate(chunks, 1)]


def _said(line: str) -> str:
    """Return what a line says: all of it, or the data of a line of an event stream, whose other lines say nothing of the answer."""
    field, _, value = line.strip().partition(":")
    if field not in _STREAM_FIELDS:
        return line.strip()
    return "" if field != "data" or value.strip() == _DONE else value.strip()


def _text(chunk: Any, where: str) -> str:
    if isinstance(chunk, dict) and isinstance(choices := chunk.get("choices"), list):
        choice = choices[0] if choices else {}
        chunk = choice.get("delta", choice) if isinstance(choice, dict) else choice
    if isinstance(chunk, dict):
        chunk = chunk.get("text", chunk.get("content")) or ""
    if not isinstance(chunk, str):
        raise BadInput(f"{where}: expected a string, or an object with `text` or `content`, found {chunk!r:.60}")
    return chunk


def _show_replay(result: Replay) -> None:
    for step in result.steps:
        held = f"  ({step.held} characters held back)" if step.held else ""
        print_line(("end of output" if step.chunk is None else repr(step.chunk), BOLD), (held, DIM))
        for event in step.events:
            print_line(f"{INDENT}{event_line(event)}")
    print_heading("Other chunkings", f"{result.tried} tried, {len(result.differences) or 'none'} differ")
    for difference in result.differences[:3]:
        print_heading(difference.chunking)
        recorded, other = (set(map(event_line, events)) for events in (result.events, difference.events))
        for sign, lines in (("-", recorded - other), ("+", other - recorded)):
            for line in sorted(lines):
                print_line(f"{INDENT}{sign} {line}")


def _data(result: Replay) -> dict[str, Any]:
    def plain(events: Iterable[Event]) -> list[dict[str, Any]]:
        return list(map(event_data, events))

    differences = (
        {"chunking": found.chunking, "message": found.message.to_openai(), "events": plain(found.events)}
        for found in result.differences
    )
    return {
        "steps": [{"chunk": step.chunk, "events": plain(step.events), "held": step.held} for step in result.steps],
        "message": result.message.to_openai(),
        "tried": result.tried,
        "differences": list(differences),
    }
