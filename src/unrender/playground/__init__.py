"""The playground: an interactive page, and a function that answers its requests.

`answer` maps a request's name and JSON data to a JSON response. It runs on a local server (`unrender.playground.server`), or on Pyodide in
the browser: `write_site` writes a folder for any static host, with the page and archives of the installed Python files. The page works the
same way on the server and on Pyodide.

Rules: all data from the page is untrusted. `answer` is a pure function, and never raises: the response to an invalid request is an object
with the single field `error`. The library's limits for templates, grammars and verification apply. A field with an invalid type or size
raises `BadQuestion`, which names the field.
"""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from html import escape
from importlib import metadata
from importlib.resources import files
from itertools import accumulate, product
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, TypeVar

from unrender import ChatTemplate, Event, GrammarError, TemplateError, Turn, UnrenderError, __version__
from unrender.cache import kept
from unrender.conversation.next_turn import Extender
from unrender.dialects import ENGINE_OF
from unrender.examples.values import example_value
from unrender.explain import explain
from unrender.format import Format
from unrender.format.data import differences
from unrender.format.picture import calls_in_words, pictures, reasoning_in_words
from unrender.limits import MAX_DOCUMENT, MAX_PIECES
from unrender.openai import deltas
from unrender.signatures import expected_one_of
from unrender.training import assistant_mask
from unrender.types import Trigger
from unrender.verify import CHECKS, verify
from unrender.verify.hostile import forged_text

__all__ = ["QUESTIONS", "answer"]


FieldType = TypeVar("FieldType")

_WORDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
_QUESTION: list[Any] = [{"role": "user", "content": "Hello"}]
_THINKING: Mapping[str, Mapping[str, bool]] = {
    "": {},
    "on": {"enable_thinking": True},
    "off": {"enable_thinking": False},
}
"""Maps each position of the page's thinking switch to template variables."""


class BadQuestion(UnrenderError):
    """A field of a request is invalid. The message names the field."""


def field(data: Mapping[str, Any], name: str, kind: type[FieldType], default: FieldType) -> FieldType:
    """Return a field of the request, or `default` if the field is missing or null.

    If the field has another type, or is a string of more than `MAX_DOCUMENT` characters, raises `BadQuestion` with the field's name.
    """
    value = data.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadQuestion(f"{name}: expected {_WORDS[kind]}, found {value!r:.80}")
    if isinstance(value, str) and len(value) > MAX_DOCUMENT:
        raise BadQuestion(f"{name}: expected at most {MAX_DOCUMENT} characters, found {len(value)}")
    return value


def template_of(data: Mapping[str, Any]) -> ChatTemplate:
    """Return the template with the source and tokens in `data`, and with the format in `data`, if any.

    The template's analysis is cached only in memory. Raises `TemplateError` or `FormatError` if the source or the format is invalid.
    """
    source, bos_token, eos_token = (field(data, name, str, "") for name in ("source", "bos_token", "eos_token"))
    return _template(source, bos_token, eos_token, json.dumps(field(data, "format", dict, {})))


def format_of(data: Mapping[str, Any]) -> Format:
    """Return the request's `format`, or the format of its template. Raises `FormatError` or `TemplateError` if the format or template is
    invalid.
    """
    given = field(data, "format", dict, {})
    return Format.from_dict(given) if given else template_of(data).format


@kept(1_000_000)
def _template(source: str, bos_token: str, eos_token: str, format: str) -> ChatTemplate:
    given = Format.from_json(format) if format != "{}" else None
    return ChatTemplate.from_string(source, bos_token=bos_token, eos_token=eos_token, format=given, cache=False)


def turn_of(data: Mapping[str, Any]) -> tuple[ChatTemplate, Turn]:
    """Return the template and the turn for the conversation. Raises the errors of `ChatTemplate.prepare`."""
    template = template_of(data)
    return template, template.prepare(conversation(data), **settings(data), **choices(data))


def conversation(data: Mapping[str, Any]) -> list[Any]:
    """Return the messages of the conversation, or a single question if there are none."""
    return field(data, "messages", list, _QUESTION) or _QUESTION


def settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `prepare` for rendering: the tools and the template's variables."""
    switch = field(data, "thinking", str, "")
    if switch not in _THINKING:
        raise BadQuestion(expected_one_of("thinking", _THINKING, switch))
    return {"tools": field(data, "tools", list, []) or None, **_THINKING[switch]}


def choices(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `prepare` that constrain the answer."""
    given = {name: data[name] for name in ("tool_choice", "response_format") if data.get(name) is not None}
    return {"parallel_tool_calls": field(data, "parallel_tool_calls", bool, default=True), **given}


_THOUGHT, _SAID = "They ask about the weather. I can look it up.", "Let me look."
_DRAWN = 4
"""Number of random answers to generate. Only the longest one is shown, because many answers are empty or contain only content."""
_EXPLAINED = 100_000
"""Maximum length of an output to explain, because the output is parsed about a dozen times."""


def answer(question: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to one of `QUESTIONS`, or `{"error": …}` with a message.

    The response's `warnings` are the warnings issued by the library.

    >>> answer("prompt", {"source": "<user>{{ messages[0].content }}</user>"})["prompt"]
    '<user>Hello</user>'
    >>> answer("prompt", {"source": "{% if"})
    {'error': "template, line 1: unexpected 'end of template'"}
    """
    if question not in QUESTIONS:
        return {"error": expected_one_of("question", QUESTIONS, question)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = QUESTIONS[question](data)
        except UnrenderError as error:
            return {"error": str(error)}
    # Leave out duplicates, because the same warning may be issued several times.
    said = dict.fromkeys(str(warning.message) for warning in caught)
    return found | {"warnings": list(said)}


def _format(data: Mapping[str, Any]) -> dict[str, Any]:
    template = template_of(data)
    analysis = template.analysis
    if not analysis.evidence:
        # Without evidence, the format has only default values, so check that the template can be rendered at all.
        _must_render(template)
    return {
        "format": template.format.to_dict(),
        "pictures": _drawn(template),
        "facts": [
            f"reasoning: {reasoning_in_words(template.format, template.capabilities.thinking_off)}",
            f"calls: {calls_in_words(template.format)}",
        ],
        "evidence": [
            {"name": found.comparison, **asdict(found), "split": asdict(found.split)} for found in analysis.evidence
        ],
        "diagnostics": list(analysis.diagnostics),
        "version": __version__,
        "checks": CHECKS,
        "renderings": analysis.renderings,
    }


def _must_render(template: ChatTemplate) -> None:
    try:
        template.prepare(_QUESTION)
    except UnrenderError as error:
        raise TemplateError(f"no rendering succeeded: {error}") from error


def _drawn(template: ChatTemplate) -> list[list[dict[str, Any]]]:
    return [list(map(asdict, row)) for row in template.analysis._pictures()]


def _prompt(data: Mapping[str, Any]) -> dict[str, Any]:
    template, turn = turn_of(data)
    same = ("prompt", "prefill", "thinking", "stop", "preserved_tokens")
    return {
        **{name: getattr(turn, name) for name in same},
        "triggers": [asdict(trigger) for trigger in _triggers(turn)],
        "tool_prompt": turn.tool_prompt is not None,
        "attack": forged_text(template),
        **_owners(turn),
        **_written(template, turn, data),
    }


def _owners(turn: Turn) -> dict[str, Any]:
    """Return the ranges of texts of messages and tools, each with its role and its path, and the ranges of markers in these texts."""
    pieces = turn.pieces
    ends = [*accumulate(len(piece.text) for piece in pieces)]
    ranges = [(end - len(piece.text), end, piece) for end, piece in zip(ends, pieces, strict=True) if piece.body]
    assert isinstance(turn._source, Extender)
    markers = re.compile("|".join(map(re.escape, turn._source.known_markers)) or "(?!)")
    found = [(start, mark) for start, _, piece in ranges for mark in markers.finditer(piece.text)]
    return {
        "owners": [[start, end, piece.role or "tools", piece.where] for start, end, piece in ranges],
        "marked": [[start + mark.start(), start + mark.end()] for start, mark in found],
    }


def _triggers(turn: Turn) -> tuple[Trigger, ...]:
    try:
        return turn.constraint("llama.cpp").triggers
    except GrammarError:
        return ()


def _written(template: ChatTemplate, turn: Turn, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ranges of the prompt that the model wrote, and the start of the generation prompt."""
    try:
        mask = assistant_mask(template, conversation(data), **settings(data))
    except UnrenderError as error:
        return {"written": [], "history": None, "mask": str(error)}
    if not turn.prompt.startswith(mask.text):
        why = "the prompt doesn't start with the rendered conversation"
        return {"written": [], "history": None, "mask": why}
    return {"written": [[part.start, part.end] for part in mask.written], "history": len(mask.text), "mask": ""}


def _sample(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer.

    If the field `legible` is true, the template renders the answer from readable text. Otherwise, the answer is the longest of a few random
    answers.
    """
    template, turn = turn_of(data)
    if field(data, "legible", bool, default=False) and (written := _legible(template, turn, data)):
        return {"output": written}
    seed = field(data, "seed", int, 0)
    return {"output": max(map(turn.sample, range(seed, seed + _DRAWN)), key=len)}


def _legible(template: ChatTemplate, turn: Turn, data: Mapping[str, Any]) -> str:
    """Return a rendered answer with reasoning, content and a call, or with those parts that can be parsed back."""
    tools = (turn.request.tools or ())[:1]
    values = [example_value(tool.parameters) for tool in tools]
    calls = [(tool.name, value if isinstance(value, dict) else {}) for tool, value in zip(tools, values, strict=True)]
    bodies = [
        {"id": "call00000", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for name, arguments in calls
    ]
    for called, thought, said in product((calls, []), (_THOUGHT, ""), (_SAID, "")):
        parts = {"reasoning_content": thought, "tool_calls": bodies if called else None}
        answered = {"role": "assistant", "content": said} | {name: part for name, part in parts.items() if part}
        with suppress(UnrenderError):
            mask = assistant_mask(template, [*conversation(data), answered], **settings(data))
            written = "".join(mask.text[part.start : part.end] for part in mask.written[-1:])
            message = turn.parse(written)
            found = [(call.name, call.arguments) for call in (*message.tool_calls, *message.failed_calls)]
            if written and (message.reasoning.strip(), message.content.strip(), found) == (thought, said, called):
                return written
    return ""


def _read(data: Mapping[str, Any]) -> dict[str, Any]:
    _, turn = turn_of(data)
    chunks = field(data, "chunks", list, [])
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise BadQuestion(f"chunks: expected texts, found {chunk!r:.80}")
    if chunks:  # Keep the chunks of a recorded stream. If there are too many, join adjacent chunks.
        together = max(1, -(-len(chunks) // MAX_PIECES))
        joined = ["".join(chunks[at : at + together]) for at in range(0, len(chunks), together)]
        return _film(turn, joined) | {"chunk": 0}
    text = field(data, "output", str, "")
    # The number of steps is limited, so 50,000 single characters are fed ten at a time.
    size = max(field(data, "chunk", int, 4), 1, -(-len(text) // MAX_PIECES))
    return _film(turn, [text[at : at + size] for at in range(0, len(text), size)]) | {"chunk": size}


def _film(turn: Turn, chunks: Iterable[str]) -> dict[str, Any]:
    """Parse an output chunk by chunk into steps for the page's slider. Positions count characters."""
    # Use the same ids for repeated requests.
    parser, steps, fed = turn.parser(ids=lambda position, _name: f"call{position:05}"), [], 0
    for chunk in chunks:
        events = parser.feed(chunk)
        fed += len(chunk)
        steps.append({"fed": fed, "settled": parser._settled, **_said(events)})
    steps.append({"fed": fed, **_said(parser.finish()), "settled": fed})
    message = parser.message
    return {
        "steps": steps,
        "spans": [{"role": str(span.role), "start": span.start, "end": span.end} for span in parser.spans],
        "message": message.to_openai(),
        "failed_calls": [f"{call.name or 'no name'}: {call.status}" for call in message.failed_calls],
        "finish_reason": message.finish_reason(),
    }


def _said(events: Sequence[Event]) -> dict[str, Any]:
    named = [{"event": type(event).__name__, **asdict(event)} for event in events]
    return {"events": named, "deltas": list(deltas(events))}


def _explanation(data: Mapping[str, Any]) -> dict[str, Any]:
    output = field(data, "output", str, "")
    if len(output) > _EXPLAINED:
        raise BadQuestion(f"output: expected at most {_EXPLAINED} characters, found {len(output)}")
    asked = {**settings(data), **choices(data)}
    return explain(template_of(data), output, messages=conversation(data), **asked).to_dict()


def _grammar(data: Mapping[str, Any]) -> dict[str, Any]:
    dialect = field(data, "dialect", str, "gbnf").replace("-", "_")
    if dialect not in ENGINE_OF:
        raise BadQuestion(expected_one_of("dialect", ENGINE_OF, dialect))
    _, turn = turn_of(data)
    written = turn.constraint(ENGINE_OF[dialect]).grammar
    if dialect == "structural_tag":
        written = json.dumps(json.loads(written), indent=2, ensure_ascii=False)
    return {"grammar": written}


def _compare(data: Mapping[str, Any]) -> dict[str, Any]:
    one, other = (format_of(field(data, name, dict, {})) for name in ("before", "after"))
    return {
        "differences": [asdict(difference) for difference in differences(one, other)],
        "pictures": {name: _row(field(data, name, dict, {})) for name in ("before", "after")},
    }


def _row(data: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Return sample answers of a template or a format. A format alone is assumed to allow content and calls in one answer."""
    if data.get("source"):
        return _drawn(template_of(data))
    return [list(map(asdict, row)) for row in pictures(format_of(data))]


def _checks(data: Mapping[str, Any]) -> dict[str, Any]:
    """Run all checks of a format, or only the named one. The page runs the checks one at a time to show progress."""
    only = field(data, "check", str, "")
    if only not in ("", *CHECKS):
        raise BadQuestion(expected_one_of("check", CHECKS, only))
    return {**verify(template_of(data), only=[only] if only else ()).to_dict()}


QUESTIONS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        "format": _format,
        "checks": _checks,
        "prompt": _prompt,
        "sample": _sample,
        "read": _read,
        "explanation": _explanation,
        "grammar": _grammar,
        "compare": _compare,
    }
)
"""Maps request names to their handlers."""


_NEEDED = ("jinja2", "markupsafe")
_PAGE = files("unrender.playground").joinpath("page")
_ASKED: Mapping[str, Any] = {"thinking": "", "tool_choice": None, "parallel_tool_calls": True}
"""The initial state of the page's switches."""
_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{origin}; style-src 'self'; connect-src 'self'{origin}; worker-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def write_site(folder: Path, *, pyodide: str) -> tuple[Path, ...]:
    """Write the page and its Python code into `folder`, and return the paths of the files. The folder is created if necessary.

    `pyodide` is the URL of Pyodide. It may be relative to the page. Raises `OSError` if a file can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    contents = _contents(pyodide.rstrip("/") + "/")
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return tuple(folder / name for name in contents)


def _contents(where: str) -> dict[str, bytes]:
    """Return the contents of the folder's files by name. `where` is the URL of Pyodide."""
    contents = {file.name: file.read_bytes() for file in _PAGE.iterdir()}
    contents["index.html"] = _alone(contents["index.html"].decode(), where).encode()
    contents["stored.json"] = _stored()
    contents["unrender.zip"] = _archive(_modules("unrender", Path(str(files("unrender")))))
    contents["needed.zip"] = _archive(pair for name in _NEEDED for pair in _distribution(name))
    return contents


@cache
def _stored() -> bytes:
    """Return the responses for the page's examples: for each request name, pairs of a request's fields and the response.

    Python takes a while to load in the browser. Until Python is ready, the page shows these responses.
    """
    stored: dict[str, list[Any]] = {}
    page = json.loads(_PAGE.joinpath("examples.json").read_bytes())
    for example in page["examples"]:
        template = {"source": example["source"], "bos_token": "", "eos_token": "", "format": example["format"]}
        asked = {**template, **_ASKED, "messages": page["messages"], "tools": page["tools"]}
        sample = asked | {"legible": True}
        output = {"output": answer("sample", sample)["output"]}
        each = [
            ("format", template),
            ("prompt", asked),
            ("sample", sample),
            ("read", asked | output | {"chunk": 4}),
            ("explanation", asked | output),
            ("grammar", asked | {"dialect": "gbnf"}),
        ]
        # Checks take seconds, so include them only for the first example.
        each += [("checks", template | {"check": check}) for check in CHECKS if not stored]
        for question, fields in each:
            stored.setdefault(question, []).append([fields, answer(question, fields)])
    return json.dumps(stored).encode()


def _alone(html: str, where: str) -> str:
    """Return the HTML of the page that runs on Pyodide. It includes the content security policy that a server would send in a header."""
    origin = f" {'/'.join(where.split('/')[:3])}" if "://" in where else ""
    said = f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY.format(origin=origin))}">'
    runtime = f'<meta name="pyodide" content="{escape(where)}">'
    return html.replace('<meta name="pyodide" content="">', f"{said}\n{runtime}", 1)


def _modules(name: str, root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a pure-Python package, with their paths in the archive."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts:
            yield str(PurePosixPath(name, *path.relative_to(root).parts)), path.read_bytes()


def _distribution(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the installed files of a distribution, including licences but excluding compiled files."""
    for found in metadata.files(name) or ():
        path = Path(str(found.locate()))
        if path.suffix not in {".pyc", ".so", ".pyd"} and ".." not in found.parts and path.is_file():
            yield str(found), path.read_bytes()


def _archive(contents: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a reproducible zip archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents:
            # Use a fixed timestamp, so that the same files always produce the same archive.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return data.getvalue()
