"""Measure requests with many tools on a real engine: the gateway and llama.cpp's own chat endpoint, in one run.

python benchmarks/real.py [FILE.gguf] [--quick] [--rounds 5] [--counts 1 50 263] [--json FILE]

Strategy: two processes with the same model, by default the example model, get the same requests alternately. For each
number of tools, a cold request has new tools, and a warm one repeats them. `tool_choice` is required, so a grammar
constrains each token. To measure the grammar without the prompt, each request has a twin without tools. Its prompt has
the same length and the same words, apart from a number in the names. The ratios are relative to the twin.

A limit of this benchmark: the schemas of 263 tools are some 30,000 tokens, and the example model has a context of 8192
for all concurrent answers. So its template writes only the tools' names, about 4 tokens each, and the schemas are only
in the grammar. The tools are drawn from a table of nine realistic ones, each with its own name and arguments. An engine
would also have to read the schemas, which costs both sides the same and isn't in these figures.

On a shared machine, only the ratios are meaningful. The last column counts the answers that started a call. If a server writes no required call, no grammar
has constrained its tokens.
"""

from __future__ import annotations

import itertools
import math
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from grammar_worth import TEXT, WHOLE, tool
from reporting import arguments, progress
from result_tables import finish
from served import Said, Server, ask, gateway, llama_cpp

from unrender.gateway.config import example_model

TEMPLATE = """\
{%- if tools %}{{ '<|im_start|>system\\nTools:' }}{% for tool in tools %}{{ ' ' ~ tool.function.name }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- for message in messages %}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' ~ (call.function.arguments | tojson) ~ '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""A template that lists only the names of tools, so that any number of tools fits."""
VERBS = ("get", "list", "find", "make", "send", "move", "drop", "open", "read")
SCHEMAS: tuple[Mapping[str, Any], ...] = (
    {"city": TEXT, "unit": {"enum": ["celsius", "fahrenheit"]}},
    {"query": TEXT, "limit": {"type": "integer", "minimum": 1, "maximum": 100}, "cursor": TEXT},
    {"owner": TEXT, "repo": TEXT, "state": {"enum": ["open", "closed", "all"]}, "labels": {"type": "array", "items": TEXT}},
    {"path": TEXT, "recursive": {"type": "boolean"}},
    {"to": {"type": "array", "items": TEXT, "minItems": 1}, "subject": TEXT, "body": TEXT},
    {"title": TEXT, "when": {"type": "object", "properties": {"start": TEXT, "minutes": WHOLE}, "required": ["start"]}},
    {"amount": {"type": "number"}, "currency": {"enum": ["EUR", "USD", "JPY", "GBP"]}, "note": {"type": ["string", "null"]}},
    {"id": {"type": "string", "pattern": "^[a-z]{2}-[0-9]{1,6}$"}, "fields": {"type": "object"}},
    {"x": {"type": "number"}, "y": {"type": "number"}, "zoom": {"type": "integer", "minimum": 0, "maximum": 20}},
)  # fmt: skip
QUESTION = {"role": "user", "content": "Tell a long story of a dog, in a call."}
_serial = itertools.count(1000)


def tools(count: int) -> list[dict[str, Any]]:
    """Return new tools with new arguments."""
    serial = next(_serial)
    # A new first word invalidates the prompt cache, and new arguments invalidate cached schemas.
    names = [f"{VERBS[i % len(VERBS)]}{i or serial}" for i in range(count)]
    own = [{f"{key}_{serial}": value for key, value in schema.items()} for schema in SCHEMAS]
    return [tool(name, "", it, optional=[*it][1:]) for name, it in zip(names, itertools.cycle(own), strict=False)]


def pairs(count: int, tokens: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a request with `count` new tools, and the same prompt without tools."""
    offered = tools(count)
    common = {"temperature": 0, "seed": 1, "max_tokens": tokens}
    said = "Tools:" + "".join(f" {tool['function']['name']}" for tool in tools(count))
    bound = {**common, "messages": [QUESTION], "tools": offered, "tool_choice": "required"}
    return bound, {**common, "messages": [{"role": "system", "content": said}, QUESTION]}


def main() -> None:
    """Print a row for each count and state."""
    counts = {"type": int, "nargs": "+", "default": [1, 50, 263]}
    given = arguments(__doc__, "file", "--quick", "--json", rounds=5, tokens=60, counts=counts)
    rounds, tokens = (1, 24) if given.quick else (given.rounds, given.tokens)
    path = given.file or example_model()
    with ExitStack() as stack:
        template = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "names.jinja"
        template.write_text(TEMPLATE, encoding="utf-8")
        servers = {
            "unrender": gateway(stack, path, "--model", str(template)),
            "llama.cpp": llama_cpp(stack, path, TEMPLATE),
        }
        for server in servers.values():
            ask(server, pairs(1, 5)[1])
        rows = [row for count in given.counts for row in _rows(servers, count, tokens, rounds)]
    finish(given, "real", {"rounds": rounds, "rows": rows}, "real")


def _rows(servers: Mapping[str, Server], count: int, tokens: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the costs of a number of tools, with a row for each server and temperature."""
    found: dict[tuple[str, str], list[tuple[Said, Said]]] = {}
    for _ in range(rounds):
        bound, plain = pairs(count, tokens)
        for name, server in servers.items():
            for state in ("cold", "warm"):
                found.setdefault((name, state), []).append((ask(server, bound), ask(server, plain)))
    for (name, state), pair in found.items():
        row = {"tools": count, "server": name, "state": state, **_figures(pair)}
        progress(" ".join(f"{key} {value}" for key, value in row.items()))
        yield row


def _figures(said: list[tuple[Said, Said]]) -> dict[str, float]:
    """Return medians over the rounds. Ratios are computed in each round, since other load affects both requests."""

    def middle(of: Callable[[Said, Said], float]) -> float:
        return round(statistics.median(of(*pair) for pair in said), 3)

    return {
        "later": middle(lambda bound, plain: bound.first / plain.first),
        "slower": middle(lambda bound, plain: plain.rate / bound.rate if bound.rate else math.inf),
        "calls": sum(bool(bound.message["tool_calls"]) for bound, _ in said),
    }


if __name__ == "__main__":
    main()
