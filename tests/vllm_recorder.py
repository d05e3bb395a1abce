"""Records every model answer in vLLM's own tests, with the result of vLLM's parser, as one JSON line each.

A pytest plug-in: `pytest -p vllm_recorder TESTS`, with the file's name in `$UNRENDER_RECORD`. Only tests that pass are
recorded, so each line has at least the result that vLLM's test expects. No answer is stored in this repository.

Strategy: the reading methods of every parser class are wrapped, and only the outermost call counts. The tests need
tokenizers from the Hub. One fake tokenizer replaces all of them, and the markers in the parsers' sources are its
special tokens.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import pkgutil
import re
import types
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("vllm.tool_parsers", "vllm.reasoning", "vllm.parser")
WHOLE = ("extract_tool_calls", "extract_reasoning", "parse")
STREAMED = ("extract_tool_calls_streaming", "extract_reasoning_streaming", "parse_delta")
_MARKER = re.compile(r"[\"'](<[|｜]?[^<>\s=\"'{}\\]+>|\[/?[A-Z_]+\]|functools)[\"']")
_records: list[dict[str, Any]] = []
_streams: dict[int, tuple[Any, dict[str, Any]]] = {}
"""The text that each parser has streamed in this test. Keeping the parser prevents reuse of its id."""
_depth = 0


def pytest_configure(config: pytest.Config) -> None:
    """Wrap the parsers and replace the Hub before any test module is imported."""
    classes = {id(item): item for module in _modules() for item in vars(module).values() if isinstance(item, type)}
    for cls in classes.values():
        if cls.__module__.startswith(PACKAGES):
            for name in (*WHOLE, *STREAMED, "__init__"):
                if isinstance(theirs := vars(cls).get(name), types.FunctionType):
                    setattr(cls, name, _kept(theirs) if name == "__init__" else _recorded(theirs, name))
    stand_in = functools.cache(lambda: _tokenizer(Path(str(config.rootpath))))
    hub: Any = importlib.import_module("transformers").AutoTokenizer
    tokenizers: Any = importlib.import_module("vllm.tokenizers")
    tokenizers.get_tokenizer = hub.from_pretrained = lambda *_, **__: stand_in()


def pytest_runtest_setup() -> None:
    """Discard the readings made during collection."""
    _records.clear()
    _streams.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Write the readings of a test that passed, as lines of the file."""
    report: Any = yield
    if call.when == "call":
        found = [*_records, *(stream for _, stream in _streams.values())]
        if report.passed and not hasattr(report, "wasxfail"):
            with Path(os.environ["UNRENDER_RECORD"]).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps({"test": item.nodeid, **record}) + "\n" for record in found)
    return report


def _modules() -> Iterator[types.ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for info in pkgutil.walk_packages(package.__path__, f"{name}."):
            try:
                yield importlib.import_module(info.name)
            except ImportError:
                continue  # This parser's model needs a missing package.


def _recorded(theirs: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the wrapped method, which records its outermost calls."""
    note = _note_whole if name in WHOLE else _note_piece

    @functools.wraps(theirs)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _depth  # noqa: PLW0603 (one thread runs the tests)
        _depth += 1
        try:
            found = theirs(self, *args, **kwargs)
        finally:
            _depth -= 1
        if not _depth:
            note(self, name, args, kwargs, found)
        return found

    return wrapped


def _kept(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapped constructor, which stores the template's switches with the parser."""

    @functools.wraps(theirs)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("chat_template_kwargs"):
            self.recorded_switches = kwargs["chat_template_kwargs"]
        theirs(self, *args, **kwargs)

    return wrapped


def _note_whole(parser: Any, name: str, args: Any, kwargs: Any, found: Any) -> None:
    text = args[0] if args else kwargs.get("model_output", kwargs.get("text"))
    if not isinstance(text, str):
        return
    record = _begun(parser, name, [*args, *kwargs.values()])
    if name == "extract_tool_calls":
        found = None, found.content, [call.function for call in found.tool_calls or ()]
    reasoning, content, calls = (*found, None)[:3]
    record |= {"text": text, "reasoning": reasoning or "", "content": content or ""}
    record["calls"] = [[call.name, call.arguments] for call in calls or ()]
    _records.append(record)


def _note_piece(parser: Any, name: str, args: Any, kwargs: Any, found: Any) -> None:
    named = ("delta_text",) if name == "parse_delta" else ("previous_text", "current_text", "delta_text")
    given = {**dict(zip(named, args, strict=False)), **kwargs}
    text, fresh = given["delta_text"], given.get("current_text") == given["delta_text"]
    stream = _streams.get(id(parser), (None, None))[1]
    if stream is None or (fresh and not given.get("previous_text") and stream["text"]):
        if stream is not None:
            _records.append(stream)
        stream = _begun(parser, name, [*args, *kwargs.values()])
        stream |= {"text": "", "reasoning": "", "content": "", "calls": []}
        _streams[id(parser)] = parser, stream
    stream["text"] += text
    stream["finished"] = bool(given.get("finished"))
    for kind in ("reasoning", "content"):
        stream[kind] += getattr(found, kind, None) or ""
    for call in getattr(found, "tool_calls", None) or ():
        calls = stream["calls"]
        calls += [["", ""] for _ in range(call.index + 1 - len(calls))]
        calls[call.index][0] += call.function.name or ""
        calls[call.index][1] += call.function.arguments or ""


def _begun(parser: Any, name: str, given: list[Any]) -> dict[str, Any]:
    """Return the parser and the request as the start of a record."""
    parts = [type(parser), getattr(parser, "tool_parser_cls", None), getattr(parser, "reasoning_parser_cls", None)]
    engine = getattr(parser, "parser_engine_config", None)
    requests = [item for item in given if hasattr(item, "tools") and hasattr(item, "tool_choice")]
    offered = getattr(requests[0], "tools", None) if requests else None
    offered = offered or getattr(parser, "tools", None) or getattr(parser, "_tools", None)
    return {
        "method": name,
        "parsers": [part.__name__ for part in parts if isinstance(part, type)] + ([engine.name] if engine else []),
        "tools": [_tool(tool) for tool in offered] if isinstance(offered, list | tuple) else [],
        "choice": _plain(getattr(requests[0], "tool_choice", None)) if requests else None,
        "switches": _plain(vars(parser).get("recorded_switches")) or {},
    }


def _tool(tool: Any) -> Any:
    plain = _plain(tool)
    return {"type": "function", "function": plain.get("function", plain)} if isinstance(plain, dict) else None


def _plain(value: Any) -> Any:
    value = value.model_dump() if hasattr(value, "model_dump") else value
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None


def _tokenizer(root: Path) -> Any:
    """Return a tokenizer of single characters, and of all markers in the parsers' sources."""
    tokenizers, transformers = importlib.import_module("tokenizers"), importlib.import_module("transformers")
    folder = Path(importlib.import_module("vllm").__path__[0])
    sources = [path.read_text(encoding="utf-8") for part in ("tool_parsers", "reasoning", "parser") for path in (folder / part).rglob("*.py")]  # fmt: skip
    tests = [path.read_text(encoding="utf-8") for path in root.rglob("*.py")]
    alphabet = sorted(
        {chr(code) for code in range(0x250)}.union(*tests) | {chr(code) for code in range(0x1F300, 0x1FAFF)}
    )
    model = tokenizers.models.BPE(vocab={letter: id for id, letter in enumerate(alphabet)}, merges=[])
    single = tokenizers.Tokenizer(model)
    single.decoder = tokenizers.decoders.Fuse()
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=single, eos_token="<|endoftext|>")
    markers = sorted({marker for source in sources for marker in _MARKER.findall(source)})
    wrapped.add_special_tokens({"additional_special_tokens": markers})
    return wrapped
