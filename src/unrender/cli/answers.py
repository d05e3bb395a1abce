"""Commands for one turn: `preview` makes up an answer, `parse`, `explain`, `rescue` and `replay` parse one, and `grammar` prints a grammar."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import BufferedIOBase
from typing import Any, cast

import click

from unrender import ChatTemplate, Event, Malformed, Parser, RequestError
from unrender.batch import rescue
from unrender.cli.inputs import (
    STANDARD_STREAM,
    BadInput,
    InputPath,
    JsonFile,
    RequestOptions,
    all_option,
    conversation_options,
    json_of,
    json_option,
    parse_json,
    request_options,
    text_of_file,
)
from unrender.cli.templates import answers
from unrender.cli.terminal import (
    INDENT,
    ROLE_STYLES,
    event_data,
    event_line,
    print_block,
    print_document,
    print_event,
    print_heading,
    print_json,
    print_line,
    print_rows,
    print_sentence,
    remark,
    width,
)
from unrender.dialects import ENGINE_OF
from unrender.examples import example_answer
from unrender.explain import Explanation, Replay, explain, page_of, replay
from unrender.limits import MAX_BLOCK

_FIELDS = ("messages", "tools", "tool_choice", "response_format", "parallel_tool_calls", "chat_template_kwargs")
"""The supported fields of an OpenAI request."""
_STREAM_FIELDS = ("", "data", "event", "id", "retry")
"""Field names of an event stream. A line with an empty field name is a comment."""
_DONE = "[DONE]"
"""Last event of OpenAI's streams."""


@click.command(short_help="Show prompt, answer and message.")
@request_options
@click.argument("conversation", type=InputPath())
@click.option(
    "--answer", metavar="FILE", type=InputPath(), help="File with the model's raw answer, instead of a generated one."
)
@click.option("--seed", default=0, show_default=True, help="Seed of the generated answer.")
@click.option("--prompt", "only_prompt", is_flag=True, help="Print only the exact prompt.")
@json_option
def preview_command(
    conversation: str, *, request: RequestOptions, answer: str | None, seed: int, only_prompt: bool, as_json: bool
) -> None:
    """Render a request, make up a valid answer, and parse it.

    CONVERSATION is a JSON file (- for standard input): a list of messages, or the body of a request to an OpenAI
    server. Options override the request's tools and choices. The exit code is 1 if part of the answer couldn't be parsed.
    """
    request = _with_body(request, conversation)
    turn = request.turn()
    if only_prompt:
        print_document(turn.prompt)
        return
    text = example_answer(turn, request.messages, seed) if answer is None else text_of_file(answer)
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
    """Combine a conversation file with the options. Raises `BadInput` with the path if the file is invalid."""
    body = json_of(path)
    if isinstance(body, list):
        return replace(request, messages=body)
    if not isinstance(body, dict) or "messages" not in body:
        raise BadInput(f"{path}: expected a list of messages, or an object with `messages`")
    # Options take precedence over the file, unless their values are the defaults.
    unset = RequestOptions(source=request.source)
    left = [name for name in _FIELDS if getattr(request, name) == getattr(unset, name)]
    return replace(request, **{name: body[name] for name in left if body.get(name) is not None})


def _events(parser: Parser, output: Iterable[str]) -> Iterator[Event]:
    for chunk in output:
        yield from parser.feed(chunk)
    yield from parser.finish()


def _complaints(parser: Parser, output: Iterable[str], show: Callable[[Event], None] | None = None) -> list[str]:
    """Parse an output, and return one sentence about each problem.

    `show` is called with each event as soon as the event is final.
    """
    malformed = []
    for event in _events(parser, output):
        if show:
            show(event)
        if isinstance(event, Malformed):
            malformed.append(event_line(event))
    failed = [call for call in parser.message.failed_calls if call.name]
    return [
        *malformed,
        *(f"the call of {call.name} is {call.status}, and isn't part of the message" for call in failed),
    ]


def _show_text(title: str, summary: str, text: str) -> None:
    print_heading(title, summary)
    print_block([(text, "")], indent=INDENT)


@click.command(short_help="Turn output into a message.")
@conversation_options
@click.argument("output", type=InputPath(), default=STANDARD_STREAM)
@click.option("--stream", is_flag=True, help="Print each event as soon as it is certain.")
@json_option
def parse_command(output: str, *, request: RequestOptions, stream: bool, as_json: bool) -> None:
    """Parse a model's output, and print the message.

    OUTPUT is a file, by default standard input. Without --tools, any name counts as a tool. With --stream, events are printed as the output
    arrives, one per line; with --json, each line is JSON. The exit code is 1 if part of the output couldn't be parsed.
    """
    turn = request.turn()
    if request.tools is None and request.tool_choice == "auto":
        turn = replace(turn, request=replace(turn.request, tools=None))
    parser = turn.parser()
    if output == STANDARD_STREAM and sys.stdin is None:
        raise BadInput("standard input is closed")
    from_file = output != STANDARD_STREAM
    pieces = [text_of_file(output)] if from_file else chunks(cast(BufferedIOBase, sys.stdin.buffer))
    show = (lambda event: print_json(event_data(event), indent=None)) if as_json else print_event
    complaints = _complaints(parser, pieces, show if stream else None)
    if not stream:
        print_json(parser.message.to_openai())
        for complaint in complaints:
            remark(complaint)
    message = parser.message
    if turn.request.tools is None and (message.tool_calls or message.failed_calls):
        remark("without --tools FILE, any name counts as a tool")
    sys.exit(bool(complaints))


@click.command(short_help="Find calls that a server left in a message's text.")
@click.argument("message", type=InputPath())
@click.option("--tools", required=True, metavar="FILE", type=JsonFile(), help="A JSON file with OpenAI's `tools`.")
@json_option
def rescue_command(message: str, *, tools: Any, as_json: bool) -> None:
    """Find tool calls that a server left in the content or the reasoning of MESSAGE, without a template.

    MESSAGE is a JSON file (- for standard input): an assistant message, or the response of an OpenAI server. The command prints the
    corrected message. The exit code is 1 if it has no calls.
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
    """Yield decoded text as its bytes arrive. A character whose bytes are split over two chunks is part of the second one."""
    return codecs.iterdecode(iter(lambda: source.read1(MAX_BLOCK), b""), "utf-8", "replace")


@click.command(short_help="Explain how an answer is parsed.")
@conversation_options
@click.argument("output", type=InputPath())
@click.option("--prompt", metavar="FILE", type=InputPath(), help="File with the model's actual prompt, or its end.")
@all_option
@json_option
def explain_command(
    output: str, *, request: RequestOptions, prompt: str | None, everything: bool, as_json: bool
) -> None:
    """Explain how an output is parsed, where parsing stopped, and how to fix it.

    OUTPUT is a file with the model's raw output, or - for standard input. Calls are found only with --tools. The exit code is 1 if
    something can't be parsed, or looks wrong.
    """
    text = text_of_file(output)
    loaded = request.load()
    begun = None if prompt is None else text_of_file(prompt)
    explanation = explain(loaded, text, messages=request.messages, prompt=begun, **request.arguments)
    if as_json:
        print_json(explanation.to_dict())
    else:
        _show_explanation(explanation, loaded, everything=everything)
    sys.exit(not explanation.clean)


def _show_explanation(explanation: Explanation, template: ChatTemplate, *, everything: bool) -> None:
    """Print the explanation's page. With `everything`, more sections are printed."""
    for line in page_of(explanation, columns=width(), everything=everything):
        pieces = [(text, ROLE_STYLES.get(style, style)) for text, style in line]
        is_part = line[0][0].isspace()  # These lines fit the width already.
        (print_line if is_part else print_sentence)(*pieces)
    others = len(explanation.hints[1:])
    if others and not everything:
        print_line(f"{others} more problem{'s' * (others > 1)}: --all")
    if not everything:
        return
    if others:
        print_heading("More problems")
        print_rows([(hint.name, str(hint)) for hint in explanation.hints[1:]])
    if explanation.expected:
        print_heading("Could come next")
        print_rows([("", " or ".join(explanation.expected))])
    print_heading("What the model should write", "«…» are its own words")
    for answer in answers(template.analysis, explanation.format):
        print_block(answer, indent=INDENT)


@click.command(short_help="Print a grammar for engines.")
@conversation_options
@click.option(
    "--dialect",
    type=click.Choice([name.replace("_", "-") for name in ENGINE_OF]),
    required=True,
    help="Dialect of the grammar.",
)
def grammar_command(*, request: RequestOptions, dialect: str) -> None:
    """Print the grammar that constrains an answer to the derived format.

    The grammar starts after the prompt: the conversation in --messages, or a single question. Parts of a tool's schema that the dialect
    can't express are listed on standard error; for these, the grammar allows more than the schema.
    """
    grammar = request.turn().constraint(ENGINE_OF[dialect.replace("-", "_")]).grammar
    if dialect == "structural-tag":
        print_json(json.loads(grammar))
    else:
        print_document(grammar)


@click.command(short_help="Show the events of each chunk.")
@conversation_options
@click.argument("chunks", type=InputPath())
@json_option
def replay_command(chunks: str, *, request: RequestOptions, as_json: bool) -> None:
    """Show the events for recorded chunks, and compare other chunkings.

    CHUNKS is a JSON list, a file with one JSON value per line, or a recorded event stream (`data:` lines); - is standard input. A
    chunk is a string, an object with `text` or `content`, or a streamed completion of an OpenAI server. The exit code is 1 if another
    chunking gives another result.
    """
    result = replay(request.turn().parser, read_chunks(chunks))
    if as_json:
        print_json(_data(result))
    else:
        _show_replay(result)
    sys.exit(bool(result.differences))


def read_chunks(path: str) -> list[str]:
    """Return the chunks in a file. If a chunk has no text, raises `BadInput` with the number of the chunk."""
    text = text_of_file(path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        lines = ((number, _said(line)) for number, line in enumerate(text.split("\n"), 1))
        found = [parse_json(line, f"{path}, line {number}") for number, line in lines if line]
    chunks = found if isinstance(found, list) else [found]
    return [_text(chunk, f"{path}: chunk {number}") for number, chunk in enumerate(chunks, 1)]


def _said(line: str) -> str:
    """Return a line without the parts that an event stream adds. For a `data:` line, the data is returned."""
    field, _, value = line.strip().partition(":")
    if field not in _STREAM_FIELDS:
        return line.strip()
    return "" if field != "data" or value.strip() == _DONE else value.strip()


def _text(chunk: Any, where: str) -> str:
    if isinstance(chunk, dict) and isinstance(choices := chunk.get("choices"), list):
        choice = choices[0] if choices else {}
        chunk = choice.get("delta", choice) if isinstance(choice, dict) else choice
    elif isinstance(chunk, dict) and chunk.get("role") not in (None, "assistant"):
        raise BadInput(f"{where}: expected a chunk of an answer, found a message of the role {chunk['role']!r:.60}")
    if isinstance(chunk, dict):
        chunk = chunk.get("text", chunk.get("content")) or ""
    if not isinstance(chunk, str):
        raise BadInput(f"{where}: expected a string, or an object with `text` or `content`, found {chunk!r:.60}")
    return chunk


def _show_replay(result: Replay) -> None:
    for step in result.steps:
        held = f"  ({step.held} characters held back)" if step.held else ""
        print_line(("end of output" if step.chunk is None else repr(step.chunk), "bold"), (held, "dim"))
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
