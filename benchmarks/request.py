"""Measure the cost of a request (prompt, grammars, parser, analysis), compared with engines and libraries.

python benchmarks/request.py [TEMPLATE.jinja …] [--quick] [--json FILE]

Strategy: each figure is the median processor time of several runs. A ratio makes figures of different machines
comparable. "Cold" means new tools with new schemas; "known", new names only, as when tools come and go; "warm", no new
parts. Packages that aren't installed are listed, but not measured.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from reporting import ROOT, arguments, milliseconds, progress
from result_tables import finish

from unrender import ChatTemplate, TemplateError
from unrender.analysis import analyze, shape_context, shape_messages
from unrender.dialects import ENGINE_OF, Engine

TEMPLATES = sorted((ROOT / "tests" / "templates").rglob("*.jinja"))
COUNTS = (1, 10, 20, 50, 100)
HELLO = [{"role": "user", "content": "What is the weather in Rome? " * 20}]
PROSE = ("Rain is likely in the north, with 3 < x < 7 mm by noon. " * 9)[:500]
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "where"},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "options": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
    },
    "required": ["city"],
}
_serial = itertools.count()


def tools(count: int, *, new: bool = False, schemas: bool = False) -> list[dict[str, Any]]:
    """Return tools. `new` ones have new names, and with `schemas` also new arguments."""
    prefix = f"tool{next(_serial)}_" if new else "tool_"
    return [_tool(f"{prefix}{i}", renamed=schemas) for i in range(count)]


def _tool(name: str, *, renamed: bool) -> dict[str, Any]:
    """Return a tool, whose arguments have new names and words if no part of them may be cached."""
    text = json.dumps(PARAMETERS)
    for word in ("city", "days", "unit", "options", "tags", "celsius") if renamed else ():
        text = text.replace(f'"{word}"', f'"{word}_{name}"')
    function = {"name": name, "description": "Tell the weather", "parameters": json.loads(text)}
    return {"type": "function", "function": function}


def prepares(name: str, chat: ChatTemplate, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the milliseconds of `prepare` for known tools and of the rendering alone, for 1 and 50 tools."""
    render = partial(chat._with_tools.render, shape_messages(HELLO, chat.capabilities), add_generation_prompt=True)
    for count in (1, 50):
        offered = tools(count)
        chat.prepare(HELLO, tools=offered)
        alone = milliseconds(partial(render, **shape_context(offered, chat.capabilities)), runs)
        ours = milliseconds(partial(chat.prepare, HELLO, tools=offered), runs)
        yield {"template": name, "tools": count, "ours": ours, "rendering": alone}


def grammars(chat: ChatTemplate, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the milliseconds of each dialect's grammars: cold and known by number of tools, and warm."""

    def alone(count: int, engine: Engine, *, schemas: bool) -> float:
        """Return the median of a grammar for new tools, without the time of the prompt."""
        turns = [chat.prepare(HELLO, tools=tools(count, new=True, schemas=schemas)) for _ in range(max(3, runs // 3))]
        return statistics.median(milliseconds(partial(turn.constraint, engine), 1) for turn in turns)

    for dialect, engine in ENGINE_OF.items():
        cold, known = ({count: alone(count, engine, schemas=new) for count in COUNTS} for new in (True, False))
        warm = milliseconds(partial(chat.prepare(HELLO, tools=tools(50)).constraint, engine), runs)
        yield {"dialect": dialect, "cold": cold, "known": known, "warm": warm}


def others(chat: ChatTemplate, runs: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the milliseconds of engines and libraries for one tool and for fifty."""
    for name, make in OTHERS.items():
        try:
            work = make(chat)
            yield name, [milliseconds(partial(work, count), max(3, runs // 3)) for count in (1, 50)]
        except ImportError as error:
            progress(f"{name}: not measured: {error}")


def _converter(module: str, name: str) -> Callable[[ChatTemplate], Callable[[int], object]]:
    """Return a library's function that converts a JSON Schema."""

    def make(_: ChatTemplate) -> Callable[[int], object]:
        convert = getattr(import_module(module), name)
        return lambda count: convert(
            json.dumps({"anyOf": [tool["function"]["parameters"] for tool in tools(count, new=True)]})
        )

    return make


def _written(chat: ChatTemplate, count: int, engine: Engine) -> str:
    return chat.prepare(HELLO, tools=tools(count, new=True)).constraint(engine).grammar


def _xgrammar(chat: ChatTemplate) -> Callable[[int], object]:
    xgrammar = import_module("xgrammar")
    vocabulary = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)], stop_token_ids=[0])

    def work(count: int) -> object:
        grammar = xgrammar.Grammar.from_structural_tag(_written(chat, count, "xgrammar"))
        return xgrammar.GrammarCompiler(vocabulary, cache_enabled=False).compile_grammar(grammar)

    return work


def _llguidance(chat: ChatTemplate) -> Callable[[int], object]:
    matcher = import_module("llguidance").LLMatcher
    tokenizer = import_module("unrender.verify.grammars")._tokenizer()
    return lambda count: matcher(tokenizer, _written(chat, count, "llguidance"))


def _transformers(chat: ChatTemplate) -> Callable[[int], object]:
    render = import_module("transformers.utils.chat_template_utils").render_jinja_template
    source = chat._with_tools.source
    return lambda count: render([HELLO], tools=tools(count), chat_template=source, add_generation_prompt=True)


OTHERS: dict[str, Callable[[ChatTemplate], Callable[[int], object]]] = {
    "llama-cpp-python: json_schema_to_gbnf": _converter("llama_cpp.llama_grammar", "json_schema_to_gbnf"),
    "xllamacpp: json_schema_to_grammar (llama.cpp's own)": _converter("xllamacpp", "json_schema_to_grammar"),
    "xgrammar: our structural tag, written and compiled": _xgrammar,
    "llguidance: our Lark, written and compiled": _llguidance,
    "transformers: render_jinja_template": _transformers,
}


def main() -> None:
    """Print all results."""
    asked = arguments(__doc__, "templates", "--quick", "--json")
    runs = 5 if asked.quick else 50
    paths = asked.templates or TEMPLATES[:: 8 if asked.quick else 3]
    loaded = {path.stem: ChatTemplate.from_file(path, cache=False) for path in paths}
    prepared: list[Any] = []
    for name, chat in loaded.items():
        try:
            prepared += prepares(name, chat, runs)
        except TemplateError as error:
            progress(f"{name}: not measured: {error}")
    name, chat = next(item for item in loaded.items() if item[1].capabilities.supports_tool_calls)
    turn = chat.prepare(HELLO, tools=tools(10))
    works: dict[str, Callable[[], object]] = {
        "turn.parse, 500 characters": partial(turn.parse, PROSE),
        "turn.parser()": turn.parser,
        "parser.copy()": turn.parser().copy,
    }
    found = {
        "template": name,
        "prepare": prepared,
        "dialects": list(grammars(chat, runs)),
        "others": dict(others(chat, runs)),
        "answers": {title: milliseconds(work, runs * 5) * 1e3 for title, work in works.items()},
        "analyses": [milliseconds(partial(analyze, it._with_tools), max(2, runs // 10)) for it in loaded.values()],
    }
    finish(asked, "request", found, "prepare", "request", "beside")


if __name__ == "__main__":
    main()
