"""Measure two costs for each template: the analysis, and a second `prepare` relative to a rendering.

python benchmarks/prepare.py [DIRECTORY]      (default: ../shared/templates, or $UNRENDER_TEMPLATES)

Targets: analysis takes tens of milliseconds, and a second `prepare` on the same template little more than one
rendering.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unrender import ChatTemplate, TemplateError
from unrender.analysis import analyze, shape_context, shape_messages
from unrender.rendering.template import Template

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 30
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather in Rome? " * 20},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call00001", "content": "sunny, 27 degrees"},
]


def main() -> None:
    """Print a line for each template, and the medians."""
    default = os.environ.get("UNRENDER_TEMPLATES", ROOT.parent / "shared" / "templates")
    paths = sorted(Path(sys.argv[1] if len(sys.argv) > 1 else default).glob("*.jinja"))
    if not paths:
        sys.exit("no *.jinja files found; give a directory")
    print(f"{'template':50} {'compile':>9} {'analysis':>9} {'render':>9} {'prepare':>9} {'ratio':>6}")
    rows = [row for row in map(_measure, paths) if row]
    for name, values in rows:
        print(f"{name[:50]:50} {_columns(values)}")
    print(
        f"{'median':50} {_columns([statistics.median(column) for column in zip(*[row[1] for row in rows], strict=True)])}"
    )


def _measure(path: Path) -> tuple[str, list[float]] | None:
    """Return seconds for compiling, analysing, rendering and preparing."""
    source = path.read_text(encoding="utf-8")
    start = time.perf_counter()
    template = Template(source, bos_token="<s>", eos_token="</s>")
    compiled = time.perf_counter()
    capabilities = analyze(template).capabilities
    analysed = time.perf_counter()
    chat = ChatTemplate.from_string(source, bos_token="<s>", eos_token="</s>")
    messages = shape_messages(MESSAGES, capabilities)
    context: dict[str, Any] = shape_context([TOOL], capabilities)
    try:
        chat.prepare(MESSAGES, tools=[TOOL])
    except TemplateError as error:
        print(f"{path.stem}: not measured: {error}", file=sys.stderr)
        return None
    rendering = _median(lambda: template.render(messages, add_generation_prompt=True, **context))
    preparing = _median(lambda: chat.prepare(MESSAGES, tools=[TOOL]))
    return path.stem, [compiled - start, analysed - compiled, rendering, preparing]


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _columns(values: list[float]) -> str:
    compiling, analysis, rendering, preparing = (value * 1e3 for value in values)
    return f"{compiling:7.1f}ms {analysis:7.1f}ms {rendering:7.3f}ms {preparing:7.3f}ms {preparing / rendering:6.2f}"


if __name__ == "__main__":
    main()
