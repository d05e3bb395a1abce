"""`unrender explain`: says why a model's output was read as it was."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise

import click

from unrender import ChatTemplate, Span
from unrender.cli.format.description import MARKER_STYLE, Row, answers
from unrender.cli.inputs import InputPath, RequestOptions, conversation_options, json_option, read_text
from unrender.cli.output import INDENT, print_heading, print_rows
from unrender.cli.terminal import (
    BOLD,
    BOLD_CYAN,
    CYAN,
    DIM,
    NARROWEST,
    NO_STYLE,
    RED,
    print_block,
    print_json,
    print_line,
    shortened,
    width,
)
from unrender.explain import Explanation, Line, explain, listing
from unrender.format import ToolMode
from unrender.grammar import Role
from unrender.limits import LONGEST_STRETCH, MOST_STRETCHES

_STYLES = {"marker": MARKER_STYLE, "malformed": RED, "name": BOLD_CYAN, "argument": CYAN}
_SHOWN_AS = {Role.LAYOUT: "marker", Role.MARKER: "marker"}
"""White space between markers is shown with them."""
_STOPPED = "^ stopped"


@click.command(short_help="Say why an output was read so.")
@conversation_options
@click.argument("output", type=InputPath())
@click.option(
    "--prompt", metavar="FILE", type=InputPath(), help="The prompt that the model was really given, or its tail."
)
@click.option("--program", is_flag=True, help="Print the parser's instructions instead, one on a line.")
@json_option
def explain_command(output: str, *, request: RequestOptions, prompt: str | None, program: bool, as_json: bool) -> None:
    """Show how an output is read, where reading a call stopped, and what would help.

    OUTPUT is a file with the model's raw output, or - for standard input. Calls are looked for only with --tools. The
    exit code is 1 when something could not be read, or looks wrong.
    """
    if program:
        _print_program(listing(request.turn().parser()), as_json=as_json)
        return
    text = read_text(output)
    loaded = request.load()
    begun = None if prompt is None else read_text(prompt)
    explanation = explain(loaded, text, messages=request.conversation, prompt=begun, **request.arguments)
    if as_json:
        print_json(explanation.to_dict())
    else:
        _show(explanation, loaded)
    sys.exit(not explanation.clean)


def _show(explanation: Explanation, template: ChatTemplate) -> None:
    print_line((_summary(explanation), BOLD))
    print_heading("Output", f"{len(explanation.output)} characters, as they were read")
    stretches = _stretches(explanation)
    for label, text in islice(stretches, MOST_STRETCHES):
        _print_stretch(label, text)
    if next(stretches, None):
        print_line(INDENT, "… and more; --json has all")
    if explanation.calls:
        print_heading("Calls")
        print_rows([(call.name, f"{call.status} {call.arguments}") for call in explanation.calls])
    if explanation.stops:
        print_heading("Reading stopped")
        print_rows([("", str(stop)) for stop in explanation.stops])
    if explanation.expected[:1] not in (("text",), ("reasoning",), ()):
        print_heading("Could come next")
        print_rows([("", " or ".join(explanation.expected))])
    if explanation.tolerances:
        print_heading("Read all the same", "the template writes it otherwise")
        print_rows([("", sentence) for sentence in explanation.tolerances])
    if explanation.nearest:
        print_heading("Another syntax would have read it", explanation.nearest.name)
        print_rows([("", call) for call in explanation.nearest.calls])
    if explanation.hints:
        print_heading("Hints")
        print_rows([(hint.name, str(hint)) for hint in explanation.hints])
    if not explanation.clean and explanation.format.tools.mode is not ToolMode.NONE:
        print_heading("What the model should write", "«…» are its own words")
        for answer in answers(explanation.format, template.capabilities):
            print_block(answer, indent=INDENT)


def _print_program(lines: Sequence[Line], *, as_json: bool) -> None:
    if as_json:
        print_json([{"address": line.address, "name": line.name, "fields": line.fields} for line in lines])
        return
    for line in lines:
        print_line(str(line))


def _summary(explanation: Explanation) -> str:
    calls = Counter(call.status for call in explanation.calls)
    parts = [f"{count} {status} call{'s' * (count > 1)}" for status, count in calls.items()] or ["no call"]
    return f"{', '.join(parts)} read; " + ("nothing is wrong" if explanation.clean else "something is wrong")


def _stretches(explanation: Explanation) -> Iterator[Row]:
    """Yield role and text of each stretch, and between them where reading stopped."""
    stops = {stop.position: stop for stop in explanation.stops}
    # Neighbours with one label and no stop between them are one stretch: `<call name="` and `f` differ, two markers do not.
    for _, run in groupby(_pieces(explanation.spans, sorted(stops)), key=lambda piece: piece[:2]):
        pieces = list(run)
        (_, label, start, _), (*_, end) = pieces[0], pieces[-1]
        yield label, explanation.output[start:end]
        if end in stops:
            yield _STOPPED, f"expected {stops[end].expected}"


def _pieces(spans: Sequence[Span], stops: Sequence[int]) -> Iterator[tuple[int, str, int, int]]:
    """Yield how many stops lie before a piece of a span, its label, its start and its end; no stop lies inside."""
    for span in spans:
        inside = stops[bisect_right(stops, span.start) : bisect_left(stops, span.end)]
        cuts = [span.start, *inside, span.end]
        for start, end in pairwise(cuts):
            yield bisect_right(stops, start), _SHOWN_AS.get(span.role, str(span.role)), start, end


def _print_stretch(label: str, text: str) -> None:
    quoted = text if label == _STOPPED else repr(shortened(text, LONGEST_STRETCH))
    columns, first = max(width() - len(INDENT) - 12, NARROWEST), True
    for at in range(0, len(quoted), columns):
        name = label.ljust(12) if first else " " * 12
        print_line(INDENT, (name, DIM), (quoted[at : at + columns], _STYLES.get(label, NO_STYLE)))
        first = False
