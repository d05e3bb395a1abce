"""Measure the figures in the docs in one run, and write the tables and plots of "Benchmarks".

python3 scripts/run.py figures                 measures everything (90 minutes, 5 GB), then writes tables and plots
python3 scripts/run.py figures streaming peers measures these only
python3 scripts/run.py figures --tables        measures nothing, and writes tables and plots from `benchmarks/results`

Strategy: each step is a benchmark in an environment of `scripts/tasks.toml`, and writes one file to
`benchmarks/results`. A table on a page is computed from these files and is between `<!-- figures:NAME -->` and `<!--
figures:end -->`. A test compares the pages with it. Before each step, the share of the processors that other processes
use is measured and reported on the page.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from reporting import line

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import run as tasks  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PAGES = tuple(ROOT / "docs" / "explanation" / name for name in ("performance.md", "why.md"))
_QUIET, _PATIENCE = 0.1, 60
"""Maximum processor share of other programs when a step starts, and the seconds to wait for it."""
_BLOCK = re.compile(r"(<!-- figures:(\w+) -->\n).*?(<!-- figures:end -->)", re.DOTALL)

Found = Mapping[str, Any]
Tables = Callable[[Mapping[str, Found]], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Step:
    """A benchmark, and the task whose environment it needs."""

    task: str
    script: str
    arguments: Sequence[str] = ()
    packages: Sequence[str] = ()
    """Other packages whose versions are reported."""


STEPS: Mapping[str, Step] = {
    "streaming": Step("figures", "streaming.py"),
    "request": Step(
        "engines", "request.py", (str(ROOT / "tests/templates/call-ends-turn.jinja"),), ("llguidance", "xgrammar")
    ),
    "suite": Step("canitoolcall", "tool_call_suite.py", (), ("canitoolcall",)),
    "suite_ids": Step("canitoolcall", "tool_call_suite.py", ("--special",)),
    "drift": Step("drift", "drift.py", (), ("vllm", "sglang")),
    "coverage": Step("peers", "parser_coverage.py"),
    "peers": Step("peers", "peers.py", (), ("transformers",)),
    "next_turn": Step("figures", "next_turn.py"),
    "gateway": Step("figures", "gateway.py"),
    "real": Step("figures", "real.py", ("--rounds", "5"), ("xllamacpp",)),
    "healing": Step("figures", "healing.py", ("--tasks", "98")),
    "grammar_worth": Step("figures", "grammar_worth.py", ("--tasks", "84")),
}
_SERVERS = {"--litellm": ("clients-more", "litellm"), "--vllm": ("real-servers", "python")}
"""Options of `gateway.py`, each with a task and a program in its environment."""


def main() -> None:
    """Measure the named steps, by default all, and write the pages."""
    names = sys.argv[1:]
    if unknown := set(names) - {*STEPS, "--tables"}:
        sys.exit(f"{', '.join(sorted(unknown))}: unknown; expected --tables or some of {', '.join(STEPS)}")
    for name in [] if "--tables" in names else names or STEPS:
        measure(name)
    found = results()
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "drawings.py")], check=True)


def measure(name: str) -> None:
    """Run a step, and store its versions and the load before it in `run.json`."""
    step = STEPS[name]
    environment = tasks.task_named(step.task).set_up()
    assert environment is not None
    python = str(environment.program("python"))
    arguments = [*step.arguments, *(_servers() if name == "gateway" else ())]
    busy = others()
    print(f"== {name} (others use {busy:.0%} of the processors)", flush=True)
    output = ["--json", str(RESULTS / f"{name}.json")]
    subprocess.run([python, str(ROOT / "benchmarks" / step.script), *arguments, *output], cwd=ROOT, check=True)
    path = RESULTS / "run.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"busy": {}, "dates": {}, "versions": {}}
    kept["machine"] = f"{os.cpu_count()} cores of {_processor()}, CPython {platform.python_version()}"
    kept["busy"][name] = round(busy, 3)
    kept["dates"][name] = datetime.now(UTC).date().isoformat()
    kept["versions"] |= {package: _version(python, package) for package in step.packages}
    if name == "gateway":
        kept["versions"]["litellm"] = _version(str(Path(arguments[1]).with_name("python")), "litellm")
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def others() -> float:
    """Return the share of the processors in use, after waiting until it's low."""
    until = time.monotonic() + _PATIENCE
    while (share := _in_use()) > _QUIET and time.monotonic() < until:
        pass
    return share


def _in_use() -> float:
    """Return the share of two seconds in which the processors weren't idle (`/proc/stat`, Linux)."""
    before = _ticks()
    time.sleep(2)
    spent = [late - early for early, late in zip(before, _ticks(), strict=True)]
    return 1 - (spent[3] + spent[4]) / sum(spent)


def _ticks() -> list[int]:
    return [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]]


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return found[1] if (found := re.search(r"model name\s*: (.*)", text)) else platform.machine()


def _version(python: str, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _servers() -> Iterator[str]:
    for option, (task, program) in _SERVERS.items():
        environment = tasks.task_named(task).set_up()
        assert environment is not None
        yield from (option, str(environment.program(program)))


def results() -> dict[str, Found]:
    """Return the contents of `benchmarks/results`, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))}


def written(text: str, found: Mapping[str, Found]) -> str:
    """Return a page with its tables written from results."""

    def block(match: re.Match[str]) -> str:
        return match[1] + "\n".join(TABLES[match[2]](found)) + "\n" + match[3]

    return _BLOCK.sub(block, text)


def _run(found: Mapping[str, Found]) -> Iterator[str]:
    """Yield the date, the machine, the versions and the load."""
    kept = found["run"]
    dates = sorted(set(kept["dates"].values()))
    versions = ", ".join(f"{name} {number}" for name, number in sorted(kept["versions"].items()))
    yield f"Measured on {' and '.join(dates)} on {kept['machine']}."
    yield f"Versions: {versions}."
    busy = ", ".join(f"{name} ({share:.0%})" for name, share in kept["busy"].items() if share > _QUIET)
    yield f"When a step began, other processes used at most {_QUIET:.0%} of the processors" + (
        f", except before these steps: {busy}." if busy else "."
    )


def _chunk(found: Mapping[str, Found]) -> Iterator[str]:
    yield "| Case | growth, 16k to 256k | × a parser that does nothing, at 256k | limit |"
    yield "|---|--:|--:|--:|"
    nothing = median(case["nothing"]["256000"] for case in found["streaming"]["cases"])
    for case in found["streaming"]["cases"]:
        growth = case["costs"]["256000"] / case["costs"]["16000"]
        yield f"| {case['title'][4:]} | {growth:.1f} | {case['ratio']:.1f} | {case['bar']:g} |"
    yield ""
    yield f"The parser that does nothing takes {nothing:.2f} µs for a chunk, or 0.27 µs on the machine where the limits in milliseconds below were set."


def _read(found: Mapping[str, Found]) -> Iterator[str]:
    """Yield the rows of parsed templates, and of the cache for the next prompt."""
    suite, ids, drift = found["suite"]["total"], found["suite_ids"]["total"], found["drift"]["readers"]
    peers = {name: counts for name, counts in drift.items() if not name.startswith("unrender")}
    best = max(peers, key=lambda name: peers[name]["given"])
    calls = drift["unrender"]["given"] + drift["unrender"]["no call"]
    kept = [row for row in found["next_turn"]["kept"] if row["case"] == "with deviations, not sent back"]
    before, after = ({row["way"]: row["all"] for row in kept}[way] for way in ("before", "after"))
    templates, read = found["coverage"]["templates"], found["coverage"]["read"]
    yield "| | unrender | others |"
    yield "|---|--:|--:|"
    number = sum(suite.values())
    yield f"| outputs of CanIToolCall that pass, of {number} | {suite['pass']} (with token ids {ids['pass']}) | {'; '.join(f'{name} {passed}' for name, passed in SUITE_RESULTS.items())} |"
    given = f"{drift['unrender']['given']} (repair by the offered tools: {_offered(drift)['given']})"
    yield f"| calls found in answers with mistakes, of {calls} | {given} | {peers[best]['given']} ({best}) |"
    invented = ", ".join(f"{counts.get('wrong', 0)} ({name})" for name, counts in peers.items())
    yield f"| wrong or invented calls in these answers | {drift['unrender'].get('wrong', 0)} | {invented} |"
    systems = ", ".join(f"{count} ({name})" for name, count in read.items() if name != "unrender")
    yield f"| templates whose answers are read, of {templates} | {read['unrender']} | {systems} |"
    yield f"| templates that keep all prompts of an agent, of {sum(kept[0][it] for it in ('all', 'some', 'none'))} | {after} | {before} (rendered anew) |"


SUITE_RESULTS: Mapping[str, str] = {
    "Ollama": "224 of 261",
    "llama.cpp": "278 of 438",
    "vLLM": "268 of 469",
    "SGLang": "189 of 448",
    "transformers": "33 of 48",
}
"""CanIToolCall 0.1.1's published results of other systems: passed outputs and supported outputs."""


def _offered(drift: Mapping[str, Found]) -> Found:
    return next(counts for name, counts in drift.items() if "offered" in name)


def _drift(found: Mapping[str, Found]) -> Iterator[str]:
    order = ("given", "no call", "rightly none", "wrong", "no parser")
    yield "| parser | calls given | no call | rightly no call | wrong or invented | no parser |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, counts in found["drift"]["readers"].items():
        yield line([name, *(counts.get(word, 0) for word in order)])
    yield ""
    yield f"Measured on {found['run']['dates']['drift']}."


def _peers(found: Mapping[str, Found]) -> Iterator[str]:
    """Yield each parser's cost relative to ours at 16k and at 64k."""
    names = [name for name in found["peers"]["cases"][0]["costs"] if name != "unrender"]
    yield line(["Case", *names])
    yield "|---|" + "---|" * len(names)
    for case in found["peers"]["cases"]:
        ours, cells = case["costs"]["unrender"], []
        for name in names:
            costs = case["costs"][name]
            ratios = ", ".join(
                _times(costs[size] / ours[size]) if size in costs else "–" for size in ("16000", "64000")
            )
            cells.append((ratios if costs else "wrong") + " (whole)" * (case["arrival"][name] == "whole"))
        yield line([case["title"][4:], *cells])


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"


def _request(found: Mapping[str, Found]) -> Iterator[str]:
    request = found["request"]
    rows = {row["dialect"]: row for row in request["dialects"]}
    yield line(["milliseconds", *(name.replace("_", " ") for name in rows), "limit"])
    yield "|---|" + "--:|" * (len(rows) + 1)
    for title, key, count, bar in (
        ("one tool, schema never seen", "cold", 1, "5"),
        ("each of 20 tools, schemas never seen", "cold", 20, "0.5"),
        ("one tool, schema known", "known", 1, "5"),
        ("each of 20 tools, schemas known", "known", 20, "0.4"),
    ):
        cells = " | ".join(f"{row[key][str(count)] / count:.2g}" for row in rows.values())
        yield f"| {title} | {cells} | {bar} |"
    yield line(["fifty known tools together", *(f"{row['warm']:.2g}" for row in rows.values()), 0.1])


def _beside(found: Mapping[str, Found]) -> Iterator[str]:
    yield "| milliseconds | one tool | fifty tools |"
    yield "|---|--:|--:|"
    for name, (one, fifty) in found["request"]["others"].items():
        yield f"| {name} | {one:.2g} | {fifty:.2g} |"
    yield ""
    texts = ", ".join(f"`{name}` {micro:.0f} µs" for name, micro in found["request"]["answers"].items())
    yield f"{texts}. The analysis of the template took {median(found['request']['analyses']):.0f} ms."


def _kept(found: Mapping[str, Found]) -> Iterator[str]:
    yield "| answers | | all 19 turns keep | some do | none does | already processed, of each prompt |"
    yield "|---|---|--:|--:|--:|--:|"
    for row in found["next_turn"]["kept"]:
        yield f"| {row['case']} | {row['way']} | {row['all']} | {row['some']} | {row['none']} | {row['share']:.0%} |"


def _cost(found: Mapping[str, Found]) -> Iterator[str]:
    costs = found["next_turn"]["cost"]
    base = costs["Turn.next"]["2"]
    yield (
        f"| relative to turn 2 of `Turn.next` ({base:.2f} ms) | "
        + " | ".join(f"turn {turn}" for turn in costs["prepare"])
        + " |"
    )
    yield "|---|" + "--:|" * len(costs["prepare"])
    for way, times in costs.items():
        yield line([f"`{way}`", *(f"{spent / base:.1f}" for spent in times.values())])


def _first(found: Mapping[str, Found]) -> Iterator[str]:
    times = found["next_turn"]["first"]
    last = str(max(map(int, next(iter(times.values())))))
    yield f"| first token | turn 2 | turn {last} | tokens read at turn {last} |"
    yield "|---|--:|--:|--:|"
    for name, by in times.items():
        yield f"| {name} | {by['2']['seconds']:.2f} s | {by[last]['seconds']:.2f} s | {by[last]['read']} |"


_SHOWN = {
    "relay": "a byte relay",
    "libraries": "the libraries",
    "unrender": "unrender",
    "litellm": "LiteLLM's proxy",
    "vllm": "vLLM's front end",
}
_GATEWAY = (
    ("CPU for a chunk, 1 stream", 1, "of_relay", "{:.1f}"),
    ("CPU for a chunk, 100 streams", 100, "of_relay", "{:.1f}"),
    ("CPU for a chunk, 1,000 streams", 1000, "of_relay", "{:.1f}"),
    ("CPU for a request, 100 streams", 100, "ms_per_request", "{:.1f} ms"),
    ("memory for a stream, 100 streams", 100, "kb_per_stream", "{:.0f} kB"),
    ("lateness, 100 streams, p99", 100, "late_ms_p99", "{:.0f} ms"),
    ("lateness, 1,000 streams, p99", 1000, "late_ms_p99", "{:.0f} ms"),
    ("delay of the first byte, median", None, "first_byte_ms_p50", "{:.1f} ms"),
)


def _gateway(found: Mapping[str, Found]) -> Iterator[str]:
    rows = {(row["server"], row.get("streams")): row for row in found["gateway"]["rows"]}
    names = [name for name in _SHOWN if (name, 1) in rows]
    yield "| | " + " | ".join(_SHOWN[name] for name in names) + " |"
    yield "|---|" + "--:|" * len(names)
    for title, streams, key, form in _GATEWAY:
        cells = [form.format(rows[name, streams][key]) if (name, streams) in rows else "–" for name in names]
        yield line([title, *cells])
    yield ""
    chunk = rows["relay", 1000]["us_per_chunk"]
    wrong = sum(row.get("wrong", 0) for row in found["gateway"]["rows"])
    yield f"The byte relay takes {chunk:.0f} µs for a chunk at 1,000 streams. Streams with a lost or swapped character: {wrong}."


def _real(found: Mapping[str, Found]) -> Iterator[str]:
    yield "| tools | | decoding takes | first token takes | answers with a call, of " + f"{found['real']['rounds']} |"
    yield "|--:|---|--:|--:|--:|"
    for row in found["real"]["rows"]:
        if row["server"] == "unrender":
            yield f"| {row['tools']} | {row['state']} | {row['slower']:.2f} × | {row['later']:.1f} × | {row['calls']} |"


def _worth(found: Mapping[str, Found]) -> Iterator[str]:
    yield "| category | | valid | right function | right arguments | tokens |"
    yield "|---|---|--:|--:|--:|--:|"
    for row in found["grammar_worth"]["rows"]:
        yield (
            f"| {row['category']} | {row['mode']} | {row['valid']} % | {row['function']} % | {row['arguments']} % | {row['tokens']} |"
        )


def _healing(found: Mapping[str, Found]) -> Iterator[str]:
    healing = found["healing"]
    yield f"| {healing['calls']} calls | valid | cut off at 120 tokens | valid, of those not cut off | right arguments | tokens |"
    yield "|---|--:|--:|--:|--:|--:|"
    for row in healing["rows"]:
        shares = " | ".join(f"{row[name]} %" for name in ("valid", "cut", "ended", "arguments"))
        yield f"| {row['mode']} | {shares} | {row['tokens']} |"


TABLES: Mapping[str, Tables] = {
    "run": _run,
    "chunk": _chunk,
    "read": _read,
    "drift": _drift,
    "peers": _peers,
    "request": _request,
    "beside": _beside,
    "kept": _kept,
    "cost": _cost,
    "first": _first,
    "gateway": _gateway,
    "real": _real,
    "worth": _worth,
    "healing": _healing,
}


if __name__ == "__main__":
    main()
