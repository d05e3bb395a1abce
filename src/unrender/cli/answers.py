"""Commands of one turn: `chat` answers a conversation, `parse`, `explain` and `rescue` read an answer, `grammar` writes what constrains one."""

from __future__ import annotations

import codecs
import json
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BufferedIOBase
from itertools import groupby, islice, pairwise
from typing import Any, cast

import click

from unrender import ChatTemplate, Event, Malformed, Parser, RequestError
from unrender.batch import rescue
from unrender.cli.description import answers
from unrender.cli.inputs import (
    BadInput,
    InputPath,
    RequestOptions,
    claim_standard_input,
    conversation_options,
    json_of,
    json_option,
    read_json,
    read_text,
    request_options,
)
from unrender.cli.terminal import (
    BOLD,
    DIM,
    INDENT,
    NARROWEST,
    NO_STYLE,
    RED,
    ROLES,
    Row,
    event_data,
    event_line,
    print_block,
    print_document,
    print_event,
    print_heading,
    print_json,
    print_line,
    print_rows,
    remark,
    shortened,
    width,
)
from unrender.dialects.constraint import Engine
from unrender.examples import example_answer
from unrender.explain import Explanation, explain
from unrender.explain.picture import listing
from unrender.format import ToolMode
from unrender.grammar import Role
from unrender.limits import MAX_BLOCK, MAX_COUNTED, MAX_SHOWN
from unrender.types import Span

_ENGINES: Mapping[str, Engine] = {"gbnf": "llama.cpp", "lark": "llguidance", "structural-tag": "xgrammar"}
_FIELDS = {
    "messages": "messages",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "response_format": "response_format",
    "parallel_tool_calls": "parallel",
    "chat_template_kwargs": "settings",
}
"""The fields of a request to a server that are read → what they are here."""
_SHOWN_AS = {Role.LAYOUT: "marker", Role.MARKER: "marker"}
"""White space between markers is shown with them."""
_STOPPED = "^ stopped"


@click.command(short_help="Show prompt, answer and message.")
@request_options
@click.argument("conversation", type=InputPath())
@click.option(
    "--answer", metavar="FILE", type=InputPath(), help="The model's raw answer, instead of one that is made up."
)
@click.option("--seed", default=0, show_default=True, help="Another seed makes up another answer.")
@click.option("--prompt", "only_prompt", is_flag=True, help="Print the prompt, exactly, and nothing else.")
@json_option
def chat_command(
    conversation: str, *, request: RequestOptions, answer: str | None, seed: int, only_prompt: bool, as_json: bool
) -> None:
    """Render a conversation, make up an answer as a sensible model might write it, and read that back.

    CONVERSATION is a JSON file (- for standard input): a list of messages, or the body of a request to an OpenAI
    server. The request's tools and choices are used where no option is given. The exit code is 1 when a part of the
    answer could not be read.
    """
    request = _with_body(request, conversation)
    turn = request.turn()
    if only_prompt:
        print_document(turn.prompt)
        return
    text = example_answer(turn, request.conversation, seed) if answer is None else read_text(answer)
    parser = turn.parser()
    complaints = _complaints(parser, [text])
    message = parser.message.to_openai()
    if as_json:
        print_json({"prompt": turn.prompt, "answer": text, "message": message, "complaints": complaints})
    else:
        shown = json.dumps(message, indent=2, ensure_ascii=False)
        _show_text("Prompt", f"{len(turn.prompt)} characters", turn.prompt)
        _show_text("Answer", "made up" if answer is None else answer, text)
        _show_text("Message", "", shown)
        for complaint in complaints:
            remark(complaint)
    sys.exit(bool(complaints))


def _with_body(request: RequestOptions, path: str) -> RequestOptions:
    """Add what a file says of a conversation to what the options say. Raises `BadInput`, naming the file."""
    body = json_of(path)
    if isinstance(body, list):
        return replace(request, messages=body)
    if not isinstance(body, dict) or "messages" not in body:
        raise BadInput(f"{path}: expected a list of messages, or an object with `messages`")
    said = {ours: body[theirs] for theirs, ours in _FIELDS.items() if body.get(theirs) is not None}
    # What an option says wins over the file; an option that is not given has its default, and wins over nothing.
    unset = RequestOptions(source=request.source)
    given = {name: getattr(request, name) for name in _FIELDS.values()}
    return replace(request, **said | {name: value for name, value in given.items() if value != getattr(unset, name)})


def _events(parser: Parser, output: Iterable[str]) -> Iterator[Event]:
    for chunk in output:
        yield from parser.feed(chunk)
    yield from parser.finish()


def _complaints(parser: Parser, output: Iterable[str], show: Callable[[Event], None] | None = None) -> list[str]:
    """Read an output, and show each event as soon as it is certain. Return a sentence for each part that was not read."""
    malformed = []
    for event in _events(parser, output):
        if show:
            show(event)
        if isinstance(event, Malformed):
            malformed.append(event_line(event))
    failed = [call for call in parser.message.failed_calls if call.name]
    return [*malformed, *(f"the call of {call.name} is {call.status}, and no call of the message" for call in failed)]


def _show_text(title: str, summary: str, text: str) -> None:
    print_heading(title, summary)
    print_block([(text, NO_STYLE)], indent=INDENT)


@click.command(short_help="Turn output into a message.")
@conversation_options
@click.option("--stream", is_flag=True, help="Print each event as soon as it is certain.")
@json_option
def parse_command(*, request: RequestOptions, stream: bool, as_json: bool) -> None:
    """Read a model's output from standard input and print the message it means.

    Without --tools, any name counts as a tool's.
    With --stream, events are printed instead, one on a line, while the output comes in; with --json as well, each line
    is JSON. The exit code is 1 when a part of the output could not be read.
    """
    claim_standard_input()
    turn = request.turn()
    if request.tools is None and request.tool_choice == "auto":
        turn = replace(turn, request=replace(turn.request, tools=None))
    parser = turn.parser()
    if sys.stdin is None:
        raise BadInput("standard input is closed")
    output = chunks(cast(BufferedIOBase, sys.stdin.buffer))
    if stream and as_json:
        complaints = _complaints(parser, output, lambda event: print_json(event_data(event), indent=None))
    elif stream:
        complaints = _complaints(parser, output, print_event)
    else:
        complaints = _complaints(parser, output)
        print_json(parser.message.to_openai())
        for complaint in complaints:
            remark(complaint)
    message = parser.message
    if turn.request.tools is None and (message.tool_calls or message.failed_calls):
        remark("no tools were given, so any name counts as a tool's; --tools FILE names them")
    sys.exit(bool(complaints))


@click.command(short_help="Find calls that a server left in a message's text.")
@click.argument("message", type=InputPath())
@click.option(
    "--tools",
    required=True,
    metavar="FILE",
    type=InputPath(),
    callback=read_json,
    help="A JSON file with OpenAI's `tools`.",
)
@json_option
def rescue_command(message: str, *, tools: Any, as_json: bool) -> None:
    """Find the tool calls that a server left in the content or the reasoning of MESSAGE, without its template.

    MESSAGE is a JSON file (- for standard input): an assistant's message, or the response of an OpenAI server. The message is
    printed as it should have been. The exit code is 1 when it has no call, neither as it is nor as text.
    """
    body = json_of(message)
    if isinstance(body, dict) and isinstance(body.get("choices"), list) and body["choices"]:
        body = body["choices"][0].get("message")
    try:
        found = rescue(body, tools)
    except RequestError as error:
        raise BadInput(f"{message}: {error}") from error
    print_json(found.to_openai(), indent=None if as_json else 2)
    sys.exit(not found.tool_calls)


def chunks(source: BufferedIOBase) -> Iterator[str]:
    """Yield text as its bytes arrive. A character whose bytes are split over chunks comes with the later chunk."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := source.read1(MAX_BLOCK):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


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
        lines = listing(request.turn().parser())
        if as_json:
            print_json([{"address": line.address, "name": line.name, "fields": line.fields} for line in lines])
        for line in () if as_json else lines:
            print_line(str(line))
        return
    text = read_text(output)
    loaded = request.load()
    begun = None if prompt is None else read_text(prompt)
    explanation = explain(loaded, text, messages=request.conversation, prompt=begun, **request.arguments)
    if as_json:
        print_json(explanation.to_dict())
    else:
        _show_explanation(explanation, loaded)
    sys.exit(not explanation.clean)


def _show_explanation(explanation: Explanation, template: ChatTemplate) -> None:
    print_line((_summary(explanation), BOLD))
    print_heading("Output", f"{len(explanation.output)} characters, as they were read")
    stretches = _stretches(explanation)
    for label, text in islice(stretches, MAX_COUNTED):
        _print_stretch(label, text)
    if next(stretches, None):
        print_line(INDENT, "… and more; --json has all")
    if explanation.calls:
        print_heading("Calls")
        print_rows([(call.name, f"{call.status} {call.arguments_json}") for call in explanation.calls])
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
        for answer in answers(explanation.format, template.capabilities, template.analysis.evidence):
            print_block(answer, indent=INDENT)


_TIMES = {1: "once", 2: "twice"}


def _summary(explanation: Explanation) -> str:
    calls = Counter(call.status for call in explanation.calls)
    parts = [f"{count} {status} call{'s' * (count > 1)}" for status, count in calls.items()] or ["no call"]
    stops = len(explanation.stops)
    wrong = f"reading stopped {_TIMES.get(stops, f'{stops} times')}" if stops else "something looks wrong"
    return f"{', '.join(parts)} read; {'nothing is wrong' if explanation.clean else wrong}"


def _stretches(explanation: Explanation) -> Iterator[Row]:
    """Yield role and text of each stretch, and between them where reading stopped."""
    stops = defaultdict[int, list[str]](list)
    for stop in explanation.stops:
        stops[stop.position].append(f"expected {stop.expected}")
    # Neighbours with one label and no stop between them are one stretch: `<call name="` and `f` differ, two markers do not.
    for (_, label), run in groupby(_pieces(explanation.spans, sorted(stops)), key=lambda piece: piece[:2]):
        pieces = list(run)
        start, end = pieces[0][2], pieces[-1][3]
        yield label, explanation.output[start:end]
        yield from ((_STOPPED, expected) for expected in stops.get(end, ()))


def _pieces(spans: Sequence[Span], stops: Sequence[int]) -> Iterator[tuple[int, str, int, int]]:
    """Yield how many stops lie before a piece of a span, its label, its start and its end; no stop lies inside."""
    # A stop inside a span cuts it: `Hello <ca` `^ stopped` `ll>` are one text to the parser, and two to the reader of this page.
    for span in spans:
        inside = stops[bisect_right(stops, span.start) : bisect_left(stops, span.end)]
        for start, end in pairwise([span.start, *inside, span.end]):
            yield bisect_right(stops, start), _SHOWN_AS.get(span.role, str(span.role)), start, end


def _print_stretch(label: str, text: str) -> None:
    quoted = text if label == _STOPPED else repr(shortened(text, MAX_SHOWN))
    columns = max(width() - len(INDENT) - 12, NARROWEST)
    for at in range(0, len(quoted), columns):
        name = "" if at else label
        print_line(
            INDENT,
            (name.ljust(12), DIM),
            (quoted[at : at + columns], ROLES.get(label, RED if label == _STOPPED else NO_STYLE)),
        )


@click.command(short_help="Print a grammar for engines.")
@conversation_options
@click.option("--dialect", type=click.Choice(list(_ENGINES)), required=True, help="What the grammar is written in.")
def grammar_command(*, request: RequestOptions, dialect: str) -> None:
    """Print the grammar that constrains an answer to the derived format.

    The grammar starts where the prompt ends: after the conversation in --messages, or after a single question. Parts of
    a tool's schema that the dialect cannot express are listed on standard error; there the grammar allows more than the
    schema.
    """
    grammar = request.turn().constraint(_ENGINES[dialect]).grammar
    if dialect == "structural-tag":
        print_json(json.loads(grammar))
    else:
        print_document(grammar)
