"""`unrender parse`: reads a model's output from standard input into an OpenAI message, or into events as it comes."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from typing import cast

import click

from unrender import Event, Malformed, Parser
from unrender.cli.inputs import BadInput, RequestOptions, claim_standard_input, conversation_options, json_option
from unrender.cli.output import event_data, event_line, unfinished
from unrender.cli.terminal import print_json, print_line, remark
from unrender.limits import READ_AT_MOST


@click.command(short_help="Turn output into a message.")
@conversation_options
@click.option("--stream", is_flag=True, help="Print each event as soon as it is certain.")
@json_option
def parse_command(*, request: RequestOptions, stream: bool, as_json: bool) -> None:
    """Read a model's output from standard input and print the message it means.

    With --stream, events are printed instead, one on a line, while the output comes in; with --json as well, each line
    is JSON. The exit code is 1 when a part of the output could not be read.
    """
    claim_standard_input()
    parser = request.turn().parser()
    if sys.stdin is None:
        raise BadInput("standard input is closed")
    output = chunks(cast(BufferedIOBase, sys.stdin.buffer))
    if stream:
        malformed = _report(parser, output, _print_json if as_json else _print_line)
    else:
        malformed = _report(parser, output, None)
        print_json(parser.message.to_openai())
    complaints = [*malformed, *unfinished(parser.message)]
    for complaint in [] if stream else complaints:
        remark(complaint)
    raise SystemExit(1 if complaints else 0)


def chunks(source: BufferedIOBase) -> Iterator[str]:
    """Yield text as its bytes arrive. A character whose bytes are split over chunks comes with the later chunk."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := source.read1(READ_AT_MOST):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def _report(parser: Parser, output: Iterable[str], show: Callable[[Event], None] | None) -> list[str]:
    malformed = []
    for event in _events(parser, output):
        if show:
            show(event)
        if isinstance(event, Malformed):
            malformed.append(event_line(event))
    return malformed


def _events(parser: Parser, output: Iterable[str]) -> Iterator[Event]:
    for chunk in output:
        yield from parser.feed(chunk)
    yield from parser.finish()


def _print_json(event: Event) -> None:
    print_json(event_data(event), indent=None)


def _print_line(event: Event) -> None:
    print_line(event_line(event))
