"""Measure the cost of a request (prompt, grammars, parser, answer, import), compared with engines and libraries.

python benchmarks/request.py [TEMPLATE.jinja …] [--quick] [--json FILE]

Strategy: each figure is the median processor time of several runs. A ratio makes figures of different machines
comparable. The bar is the target, with the share that was used. "Cold" means new tools with new schemas; "known
schemas", new names only, as when tools come and go; "warm", no new parts. Packages that aren't installed are listed,
but not measured.
"""

from __future__ import annotations

import importlib
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from reporting import arguments, save

from unrender import ChatTemplate, TemplateError, Turn
from unrender.analysis import analyze, shape_context, shape_messages
from unrender.dialects.constraint import ENGINE_OF, Engine

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = sorted((ROOT / "tests" / "templates").rglob("*.jinja"))
COUNTS = (1, 10, 20, 50, 100)
NEVER_SEEN = 20
"""Number of tools for which the limit of cold grammars applies."""
COLD_BAR, KNOWN_BAR = 0.5, 0.4
"""Maximum milliseconds of a grammar per tool, with new schemas and with known ones."""
ANSWER_BARS = {"turn.parse, 500 characters": 60, "turn.parser()": 30, "parser.copy()": 10}
"""Maximum microseconds for an answer."""
ANALYSIS_BAR = 60
"""Maximum milliseconds for all but a few templates."""
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
    names = [f"{prefix}{i}" for i in range(count)]
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": "Tell the weather",
                "parameters": _renamed(name) if schemas else PARAMETERS,
            },
        }
        for name in names
    ]


def _renamed(suffix: str) -> dict[str, Any]:
    """Return the parameters with new names and words, so that no part of them is cached."""
    text = json.dumps(PARAMETERS)
    for word in ("city", "days", "unit", "options", "tags", "celsius"):
        text = text.replace(f'"{word}"', f'"{word}_{suffix}"')
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def against(spent: float, bar: float) -> str:
    """Return a target, whether it's met, and the share that was used."""
    return f"bar {bar:g} {'met' if spent <= bar else 'MISSED'} ({spent / bar:.2f})"


def median(work: Callable[[], object], runs: int) -> float:
    """Return the median processor time of a call, in milliseconds."""
    spent = []
    for _ in range(runs):
        start = time.process_time()
        work()
        spent.append((time.process_time() - start) * 1e3)
    return statistics.median(spent)


def bare(template: ChatTemplate) -> Callable[[list[dict[str, Any]]], str]:
    """Return a function that renders with Jinja alone, set up as in transformers."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = time.strftime
    compiled = environment.from_string(template._with_tools.source)
    messages = shape_messages(HELLO, template.capabilities)

    def render(offered: list[dict[str, Any]]) -> str:
        context = shape_context(offered, template.capabilities)
        return compiled.render(messages=messages, add_generation_prompt=True, bos_token="", eos_token="", **context)

    return render


def _refuse(words: str) -> None:
    raise TemplateError(words)


def prepares(name: str, template: ChatTemplate, runs: int) -> Iterator[str]:
    """Yield a line for 1 and 50 tools: the time of `prepare` for known tools, and of Jinja alone."""
    render = bare(template)
    for count in (1, 50):
        offered = tools(count)
        template.prepare(HELLO, tools=offered)
        alone = median(partial(render, offered), runs)
        spent = median(partial(template.prepare, HELLO, tools=offered), runs)
        bar = 3 * alone + 0.2
        yield f"{name[:28]:28}{count:>4} tools {spent:8.3f} ms{alone:10.3f} ms{spent / alone:7.1f} ×{bar:10.3f} ms {spent <= bar}"


def grammars(template: ChatTemplate, runs: int) -> Iterator[Written]:
    """Yield the costs of each dialect's grammars: cold by number of tools, and warm."""
    for dialect, engine in ENGINE_OF.items():
        cold, known = (
            {count: _grammar_alone(template, count, engine, max(3, runs // 3), schemas=new) for count in COUNTS}
            for new in (True, False)
        )
        same = template.prepare(HELLO, tools=tools(50))
        yield Written(dialect=dialect, cold=cold, known=known, warm=median(partial(same.constraint, engine), runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Measurements of a dialect, in milliseconds."""

    dialect: str
    cold: dict[int, float]
    known: dict[int, float]
    """The same with schemas that other tools have already used."""
    warm: float

    def lines(self) -> Iterator[str]:
        """Yield the table's rows: the cost per tool, its growth, and the targets."""
        for name, spent, bar in (("cold", self.cold, COLD_BAR), ("known schemas", self.known, KNOWN_BAR)):
            each = spent[NEVER_SEEN] / NEVER_SEEN
            growth = spent[COUNTS[-1]] / spent[COUNTS[1]] / (COUNTS[-1] / COUNTS[1])
            cells = "".join(f"{one:9.2f}" for one in spent.values())
            bars = f"one tool: {against(spent[1], 5)}, a tool: {against(each, bar)}"
            yield f"{self.dialect + ', ' + name:30}{cells}{each:9.2f}{growth:9.2f}   {bars}"
        yield f"{self.dialect + ', warm':30}{'':27}{self.warm:9.4f}{'':27}   {against(self.warm, 0.1)}"


def _grammar_alone(template: ChatTemplate, count: int, engine: Engine, runs: int, *, schemas: bool) -> float:
    """Return the median processor time of a grammar for new tools, without the time of the prompt."""
    spent = []
    for _ in range(runs):
        turn = template.prepare(HELLO, tools=tools(count, new=True, schemas=schemas))
        spent.append(median(partial(turn.constraint, engine), 1))
    return statistics.median(spent)


def _written(template: ChatTemplate, count: int, engine: Engine) -> str:
    return template.prepare(HELLO, tools=tools(count, new=True)).constraint(engine).grammar


def answers(turn: Turn, runs: int) -> dict[str, float]:
    """Return the µs for parsing an answer, and for creating a parser."""
    parser = turn.parser()
    works: dict[str, Callable[[], object]] = {
        "turn.parse, 500 characters": lambda: turn.parse(PROSE),
        "turn.parser()": turn.parser,
        "parser.copy()": parser.copy,
    }
    return {name: median(work, runs * 5) * 1e3 for name, work in works.items()}


def starts(source: str) -> Iterator[str]:
    """Yield the time to a first template and a first turn in new processes, minus Python's own start-up."""
    first = f"from unrender import ChatTemplate\nt = ChatTemplate.from_string({source!r}, cache=False)"
    turn = f"{first}\nt.prepare({HELLO!r})"
    empty = min(_started("pass") for _ in range(5))
    spent = min(_started(first) for _ in range(5)) - empty
    yield f"{'to the first ChatTemplate':38}{spent:6.0f} ms   {against(spent, 120)}   (Python alone {empty:.0f} ms)"
    yield f"{'to the first Turn, analysis included':38}{min(_started(turn) for _ in range(5)) - empty:6.0f} ms"


def _started(code: str) -> float:
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime) * 1e3


def others(template: ChatTemplate, runs: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the milliseconds of engines and libraries for one tool and for fifty."""
    for name, make in OTHERS.items():
        try:
            work = make(template)
            spent = [median(partial(work, count), max(3, runs // 3)) for count in (1, 50)]
        except ImportError as error:
            print(f"{name:52} NOT MEASURED: {error}")
        else:
            print(f"{name:52}{spent[0]:9.2f} ms{spent[1]:9.2f} ms", flush=True)
            yield name, spent


def _schema(count: int) -> dict[str, Any]:
    return {"anyOf": [tool["function"]["parameters"] for tool in tools(count, new=True)]}


def _llama_cpp_python(_: ChatTemplate) -> Callable[[int], object]:
    convert = importlib.import_module("llama_cpp.llama_grammar").json_schema_to_gbnf
    return lambda count: convert(json.dumps(_schema(count)))


def _xllamacpp(_: ChatTemplate) -> Callable[[int], object]:
    convert = importlib.import_module("xllamacpp").json_schema_to_grammar
    return lambda count: convert(json.dumps(_schema(count)))


def _xgrammar(template: ChatTemplate) -> Callable[[int], object]:
    xgrammar = importlib.import_module("xgrammar")
    vocabulary = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)], stop_token_ids=[0])

    def work(count: int) -> object:
        tag = _written(template, count, "xgrammar")
        return xgrammar.GrammarCompiler(vocabulary, cache_enabled=False).compile_grammar(
            xgrammar.Grammar.from_structural_tag(tag)
        )

    return work


def _llguidance(template: ChatTemplate) -> Callable[[int], object]:
    matcher = importlib.import_module("llguidance").LLMatcher
    tokenizer = importlib.import_module("unrender.verify.grammars")._tokenizer()
    return lambda count: matcher(tokenizer, _written(template, count, "llguidance"))


def _transformers(template: ChatTemplate) -> Callable[[int], object]:
    render = importlib.import_module("transformers.utils.chat_template_utils").render_jinja_template
    source = template._with_tools.source
    return lambda count: render([HELLO], tools=tools(count), chat_template=source, add_generation_prompt=True)


OTHERS: dict[str, Callable[[ChatTemplate], Callable[[int], object]]] = {
    "llama-cpp-python: json_schema_to_gbnf": _llama_cpp_python,
    "xllamacpp: json_schema_to_grammar (llama.cpp's own)": _xllamacpp,
    "xgrammar: our structural tag, written and compiled": _xgrammar,
    "llguidance: our Lark, written and compiled": _llguidance,
    "transformers: render_jinja_template": _transformers,
}


def analyses(templates: Sequence[ChatTemplate], runs: int) -> list[float]:
    """Return the milliseconds of each template's analysis."""
    return [median(partial(analyze, each._with_tools), max(2, runs // 10)) for each in templates]


def analysed(spent: Sequence[float]) -> str:
    """Return the line about the analyses."""
    middle, slow = statistics.median(spent), sum(each > ANALYSIS_BAR for each in spent)
    rest = f"the slowest {max(spent):.0f} ms, {slow} of {len(spent)} over the bar"
    return f"analysis, cold, median          {middle:8.1f} ms   {against(middle, ANALYSIS_BAR)}   ({rest})"


def main() -> None:
    """Print all results."""
    asked = arguments(__doc__, "templates", "--quick", "--json")
    runs = 5 if asked.quick else 50
    paths = asked.templates or TEMPLATES[:: 8 if asked.quick else 3]
    print(f"{'prepare, tools known':28}{'':10} {'prepare':>11}{'Jinja':>13}{'ratio':>9}{'bar':>13}")
    loaded = [(path, ChatTemplate.from_file(path, cache=False)) for path in paths]
    for path, template in loaded:
        try:
            print(*prepares(path.stem, template, runs), sep="\n", flush=True)
        except TemplateError as error:
            print(f"{path.stem[:28]:28} NOT MEASURED: {error}")
    path, template = next(item for item in loaded if item[1].capabilities.supports_tool_calls)
    print(
        f"\n{path.stem}\n{'ms, by tools':30}"
        + "".join(f"{count:9}" for count in COUNTS)
        + f"{'a tool':>9}{'growth':>9}"
    )
    rows = []
    for row in grammars(template, runs):
        rows.append(row)
        print(*row.lines(), sep="\n", flush=True)
    print(f"\n{'beside it':52}{'one tool':>12}{'fifty':>12}")
    beside = dict(others(template, runs))
    print()
    read = answers(template.prepare(HELLO, tools=tools(10)), runs)
    for name, spent in read.items():
        print(f"{name:32}{spent:8.1f} µs   {against(spent, ANSWER_BARS[name])}", flush=True)
    analysis = analyses([each for _, each in loaded], runs)
    print(analysed(analysis))
    if asked.json:
        found = {
            "command": "python benchmarks/request.py",
            "template": path.stem,
            "dialects": [asdict(row) for row in rows],
            "others": beside,
            "answers": read,
            "analyses": analysis,
        }
        save(asked.json, found)
    print(*starts(template._with_tools.source), sep="\n")


if __name__ == "__main__":
    main()
