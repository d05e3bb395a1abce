"""vLLM's own tests, read by the plug-in: our result equals the one that its parsers' tests expect.

`python3 scripts/run.py plugins` downloads vLLM's tests and records their answers (`tests/vllm_recorder.py`). Without
the recording, these tests are skipped with a message. `vllm_fixtures.toml` pairs vLLM's parsers with the templates that
write their formats, and gives a reason for each difference.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from answers import all_template_paths
from driven import USER, template, tokenizer
from driven_vllm import chat, folded, ids, items, parser_class, responses, streamed
from engines import installed
from splitting import pieces, splits

RECORDS = Path(os.environ.get("UNRENDER_VLLM_RECORDS", Path(sys.prefix) / "vllm-tests" / "records.jsonl"))
TABLE: Any = tomllib.loads(Path(__file__).with_name("vllm_fixtures.toml").read_text(encoding="utf-8"))
if not all(map(installed, ("vllm", "torch"))):
    pytest.skip("vllm is needed", allow_module_level=True)
if not RECORDS.exists():
    pytest.skip(
        f"no recording of vLLM's tests in {RECORDS}: use `python3 scripts/run.py plugins`", allow_module_level=True
    )
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
LONG = 2000
NAMES = sorted({name for names in TABLE["templates"].values() for name in names} & all_template_paths().keys())
KINDS = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


def digest(record):
    """Return a key of an answer. Many tests record the same answer at many chunkings."""
    told = [record[key] for key in ("parsers", "tools", "switches", "text")]
    return hashlib.sha256(json.dumps([*told, record["method"].removesuffix("_streaming")]).encode()).hexdigest()[:8]


@pytest.fixture(scope="module", autouse=True)
def plugin():
    """Load the plug-in as vLLM does, by its entry point."""
    importlib.import_module("vllm.plugins").load_general_plugins()


@cache
def fixtures():
    """Return each distinct answer once, by key. A whole reading takes precedence over a streamed one."""
    with RECORDS.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    records.sort(key=lambda record: ("finished" in record, not record.get("finished")))
    found: dict[str, Any] = {}
    for record in records:
        record["method"] = record["method"].replace("parse_delta", "parse")
        whole = all(not isinstance(value(text), str) for _, text in record["calls"])
        if whole and (record["choice"] in (None, "auto") or not record["tools"]):
            found.setdefault(digest(record), record)
    return found


def written_by(name):
    """Return the answers that a template may write, by key."""
    parsers = {parser for parser, names in TABLE["templates"].items() if name in names}
    return {
        key: record
        for key, record in fixtures().items()
        if not parsers.isdisjoint(record["parsers"]) and _may_write(name, record)
    }


def _may_write(name, record):
    reads_reasoning = record["method"] != "extract_tool_calls" and any(map(_of_reasoning, record["parsers"]))
    return not reads_reasoning or bool(template(name).format.reasoning.end.strip())


def offered(record):
    """Return the fixture's tools, plus a tool for each unknown one that it calls, typed by the expected arguments."""
    tools = {tool["function"]["name"]: tool for tool in record["tools"] if tool and tool["function"].get("name")}
    made: dict[str, Any] = {}
    for name, arguments in record["calls"]:
        values = value(arguments)
        if name and name not in tools and isinstance(values, dict):
            made.setdefault(name, {}).update({key: {"type": KINDS[type(item)]} for key, item in values.items()})
    for name, properties in made.items():
        parameters = {"type": "object", "properties": properties}
        tools[name] = {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}
    tools = tools or {"stub": {"type": "function", "function": {"name": "stub"}}}
    return [tool | {"function": {"description": name} | _said(tool["function"])} for name, tool in tools.items()]


def _said(function):
    return {key: item for key, item in function.items() if item is not None}


def value(text):
    """Return the JSON value. Empty text means no arguments, and invalid JSON is returned as text."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _known(name, switches):
    """Return the switches that the template has. The one for thinking has the same name in all templates."""
    same = {"enable_thinking" if key == "thinking" else key: value for key, value in switches.items()}
    return {key: same[key] for key in same.keys() & {*template(name)._with_tools.variables, "enable_thinking"}}


def prompt_for(record, name, tools):
    """Return a prompt that ends where the answer starts, since fixtures don't include what their prompt started."""
    turn = template(name).prepare(USER, tools=tools or None, tool_format="none", **_known(name, record["switches"]))
    markers, texts = turn.format.reasoning, turn.format.turn
    start, end = markers.start.strip(), markers.end.strip()
    bare = turn.prompt.removesuffix(turn.prefill) if turn.prefill else turn.prompt
    if not end:
        return turn.prompt
    opens = bool(texts.prefill.strip()) and not markers.closed_in(texts.prefill)
    if start and record["text"].lstrip().startswith(start):
        return bare
    if (end in record["text"] and (not start or start not in record["text"].partition(end)[0])) or record["reasoning"]:
        return bare + (texts.prefill if opens or not start else markers.start)
    if not opens:
        return bare + turn.prefill
    closed = texts.prefill_no_thinking
    return bare + (closed if markers.closed_in(closed) else texts.prefill + markers.end)


def plain(record, reasoning, content, calls):
    """Return the compared parts: texts without surrounding whitespace, and arguments as values.

    vLLM's parsers of calls don't return reasoning, and those of reasoning read no calls.
    """
    thought = "" if record["method"] == "extract_tool_calls" else (reasoning or "").strip()
    return thought, (content or "").strip(), [(name, value(text)) for name, text in calls or ()]


def expected(record):
    """Return the compared parts of the result that vLLM's test expects."""
    return plain(record, record["reasoning"], record["content"], record["calls"])


def _of_reasoning(parser):
    """Return whether a class or engine of vLLM reads reasoning. An engine has a lowercase name."""
    return "Reasoning" in parser or parser.islower()


def readings(record, name):
    """Yield the plug-in's results for the answer, whole and streamed for every chunking, through vLLM's classes."""
    tools, cls = offered_to(record), class_for(record, name)
    prompt = prompt_for(record, name, tools)
    request = chat(tools=tools or None)
    parser = cls(tokenizer(name), request.tools, model_config=None, chat_template_kwargs={})
    parser.set_prompt_token_ids(ids(name, prompt))
    reasoning, content, calls = parser.parse(record["text"], request, enable_auto_tools=True)
    yield plain(record, reasoning, content, [(call.name, call.arguments) for call in calls or ()])
    for chunks in splits(record["text"]) if len(record["text"]) < LONG else [pieces(record["text"], 50)]:
        yield plain(record, *folded(streamed(name, request, prompt, chunks or [""], cls)[0]))


def offered_to(record):
    """Return the tools of the request. Reasoning parsers get none."""
    return offered(record) if record["method"] != "extract_reasoning" else []


def class_for(record, name):
    """Return the plug-in's class, without reasoning where the fixture's parser reads none."""
    reads = record["method"] != "parse" or any(map(_of_reasoning, record["parsers"]))
    return parser_class(name, reasoning="unrender" if reads else None)


def responded(record, name):
    """Yield the content of a streamed response's items, in large and in small chunks."""
    tools = offered_to(record)
    prompt = prompt_for(record, name, tools)
    for size in (50,) if len(record["text"]) >= LONG else (50, 5):
        request = responses(tools=flat(tools), stream=True)
        chunks = pieces(record["text"], size) or [""]
        yield plain(record, *items(name, request, prompt, chunks, class_for(record, name)))


def flat(tools):
    """Return tools in the form of Responses. A namespace includes its tools."""
    functions = [tool["function"] for tool in tools]
    spaces = tuple(f"{function['name']}__" for function in functions if "tools" in function)
    return [{"type": "function", **function} for function in functions if not function["name"].startswith(spaces)]


def is_argued(record):
    return any(text in record["test"] for argued in TABLE["argued"] for text in argued["tests"])


@pytest.mark.parametrize("read", [readings, responded])
@pytest.mark.parametrize("name", NAMES)
def test_answers_in_vllms_own_tests_are_read_as_they_expect(name, read):
    """Whole, for every chunking, and streamed as a response, an answer is read as vLLM's test expects, or the difference has a reason."""
    wrong = {}
    for record in written_by(name).values():
        different = [] if is_argued(record) else [found for found in read(record, name) if found != expected(record)]
        if different:
            wrong[record["test"]] = (record["text"], expected(record), different[0])

    assert wrong == {}


@pytest.mark.parametrize("text", [text for argued in TABLE["argued"] for text in argued["tests"]])
def test_every_argument_is_needed(text):
    """Each listed difference exists, in a test that vLLM still has."""
    of_test = [(name, record) for name in NAMES for record in written_by(name).values() if text in record["test"]]

    assert any(next(readings(record, name)) != expected(record) for name, record in of_test) or any(
        len({json.dumps(found) for found in readings(record, name)}) > 1 for name, record in of_test
    )
