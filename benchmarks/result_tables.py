"""Tables of results in Markdown, for the pages and for the terminal."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

from reporting import save, table

QUIET = 0.1
"""Maximum processor share of other programs when a step starts."""
SUITE_RESULTS: Mapping[str, str] = {
    "Ollama": "224 of 261",
    "llama.cpp": "278 of 438",
    "vLLM": "268 of 469",
    "SGLang": "189 of 448",
    "transformers": "33 of 48",
}
"""CanIToolCall 0.1.1's published results of other systems: passed outputs and supported outputs."""

Found = Mapping[str, Any]
Lines = Iterator[str]


def finish(given: Namespace, name: str, found: Found, *shown: str) -> None:
    """Print the tables of a benchmark's results, and save the results if `--json` names a file."""
    as_read = {name: json.loads(json.dumps(found))}
    for title in shown:
        print(*TABLES[title](as_read), "", sep="\n")
    save(given.json, found)


def _run(found: Found) -> Lines:
    """Yield the date, the machine, the versions and the load."""
    kept = found["run"]
    yield f"Measured on {' and '.join(sorted(set(kept['dates'].values())))} on {kept['machine']}."
    yield f"Versions: {', '.join(f'{name} {number}' for name, number in sorted(kept['versions'].items()))}."
    busy = ", ".join(f"{name} ({share:.0%})" for name, share in kept["busy"].items() if share > QUIET)
    rest = f", except before these steps: {busy}." if busy else "."
    yield f"When a step began, other processes used at most {QUIET:.0%} of the processors{rest}"


def _chunk(found: Found) -> Lines:
    cases = found["streaming"]["cases"]
    growth = [f"{case['costs']['256000'] / case['costs']['16000']:.1f}" for case in cases]
    rows = [
        (case["title"][4:], times, f"{case['ratio']:.1f}", f"{case['bar']:g}")
        for case, times in zip(cases, growth, strict=True)
    ]
    yield from table(("Case", "growth, 16k to 256k", "× a parser that does nothing, at 256k", "limit"), rows)
    nothing = median(case["nothing"]["256000"] for case in cases)
    yield ""
    yield f"The parser that does nothing takes {nothing:.2f} µs for a chunk, or 0.27 µs on the machine where the limits in milliseconds below were set."


def _read(found: Found) -> Lines:
    """Yield the counts of parsed templates, and of the cache for the next prompt."""
    suite, ids, drift = found["suite"]["total"], found["suite_ids"]["total"], found["drift"]["readers"]
    ours, offered = (counts for name, counts in drift.items() if name.startswith("unrender"))
    peers = {name: counts for name, counts in drift.items() if not name.startswith("unrender")}
    best = max(peers, key=lambda name: peers[name]["given"])
    kept = [row for row in found["next_turn"]["kept"] if row["case"] == "with deviations, not sent back"]
    before, after = ({row["way"]: row["all"] for row in kept}[way] for way in ("before", "after"))
    templates, read = found["coverage"]["templates"], found["coverage"]["read"]
    agents = sum(kept[0][part] for part in ("all", "some", "none"))
    systems = "; ".join(f"{name} {passed}" for name, passed in SUITE_RESULTS.items())
    invented = ", ".join(f"{counts.get('wrong', 0)} ({name})" for name, counts in peers.items())
    others = ", ".join(f"{count} ({name})" for name, count in read.items() if name != "unrender")
    rows = (
        (
            f"outputs of CanIToolCall that pass, of {sum(suite.values())}",
            f"{suite['pass']} (with token ids {ids['pass']})",
            systems,
        ),
        (
            f"calls found in answers with mistakes, of {ours['given'] + ours['no call']}",
            f"{ours['given']} (repair by the offered tools: {offered['given']})",
            f"{peers[best]['given']} ({best})",
        ),
        ("wrong or invented calls in these answers", ours.get("wrong", 0), invented),
        (f"templates whose answers are read, of {templates}", read["unrender"], others),
        (f"templates that keep all prompts of an agent, of {agents}", after, f"{before} (rendered anew)"),
    )
    yield from table(("", "unrender", "others"), rows)


def _suite(found: Found) -> Lines:
    counts = {**found["suite"]["families"], "all": found["suite"]["total"]}
    words = ("pass", "soft_pass", "fail", "error", "unsupported")
    yield from table(("family", *words), ((name, *(of.get(word, 0) for word in words)) for name, of in counts.items()))


def _drift(found: Found) -> Lines:
    order = ("given", "no call", "rightly none", "wrong", "no parser")
    heads = ("parser", "calls given", "no call", "rightly no call", "wrong or invented", "no parser")
    readers = found["drift"]["readers"].items()
    yield from table(heads, ((name, *(counts.get(word, 0) for word in order)) for name, counts in readers))
    if "run" in found:
        yield ""
        yield f"Measured on {found['run']['dates']['drift']}."


def _coverage(found: Found) -> Lines:
    heads = ("system", f"templates whose answers are read, of {found['coverage']['templates']}")
    yield from table(heads, found["coverage"]["read"].items())


def _peers(found: Found) -> Lines:
    """Yield each parser's cost relative to ours at 16k and at 64k."""
    cases = found["peers"]["cases"]
    names = [name for name in cases[0]["costs"] if name != "unrender"]
    yield from table(("Case", *names), ((case["title"][4:], *(_times(case, name) for name in names)) for case in cases))


def _times(case: Found, name: str) -> str:
    ours, costs, arrival = case["costs"]["unrender"], case["costs"][name], case["arrival"][name]
    ratios = [costs[size] / ours[size] if size in costs else 0 for size in ("16000", "64000")]
    cells = (f"{it:.1f}" if it < 10 else f"{it:.2g}" if it < 100 else f"{it:.0f}" for it in ratios if it)
    known: str = ", ".join([*cells, *["–"] * ratios.count(0)])
    whole: str = " (whole)" if arrival == "whole" else ""
    return (known if costs else "wrong") + whole


def _request(found: Found) -> Lines:
    rows = {row["dialect"]: row for row in found["request"]["dialects"]}
    each = (
        ("one tool, schema never seen", "cold", 1, 5),
        ("each of 20 tools, schemas never seen", "cold", 20, 0.5),
        ("one tool, schema known", "known", 1, 5),
        ("each of 20 tools, schemas known", "known", 20, 0.4),
    )
    cells = [
        (title, *(f"{row[key][str(count)] / count:.2g}" for row in rows.values()), bar)
        for title, key, count, bar in each
    ]
    together = ("fifty known tools together", *(f"{row['warm']:.2g}" for row in rows.values()), 0.1)
    yield from table(("milliseconds", *(name.replace("_", " ") for name in rows), "limit"), [*cells, together])


def _beside(found: Found) -> Lines:
    others = found["request"]["others"].items()
    yield from table(
        ("milliseconds", "one tool", "fifty tools"), ((name, *map("{:.2g}".format, of)) for name, of in others)
    )
    texts = ", ".join(f"`{name}` {micro:.0f} µs" for name, micro in found["request"]["answers"].items())
    yield ""
    yield f"{texts}. The analysis of the template took {median(found['request']['analyses']):.0f} ms."


def _columns(of: str, part: str, columns: Mapping[str, str], left: int = 1) -> Callable[[Found], Lines]:
    """Return a table with a row for each result in a list. `columns` are the headings, and formats of a row's fields."""

    def lines(found: Found) -> Lines:
        rows = found[of][part]
        yield from table(tuple(columns), ([form.format(**row) for form in columns.values()] for row in rows), left)

    return lines


_PREPARE = {
    "template": "{template}",
    "tools": "{tools}",
    "`prepare`, ms": "{ours:.3f}",
    "rendering alone, ms": "{rendering:.3f}",
}
_KEPT = {
    "answers": "{case}",
    "": "{way}",
    "all 19 turns keep": "{all}",
    "some do": "{some}",
    "none does": "{none}",
    "already processed, of each prompt": "{share:.0%}",
}
_SHARES = {"valid": "{valid} %", "right function": "{function} %", "right arguments": "{arguments} %"}
_WORTH = {"category": "{category}", "": "{mode}", **_SHARES, "tokens": "{tokens}"}
_ENDED = {"cut off at 120 tokens": "{cut} %", "valid, of those not cut off": "{ended} %"}
_HEALING = {"calls": "{mode}", "valid": "{valid} %", **_ENDED, "right arguments": "{arguments} %", "tokens": "{tokens}"}


def _cost(found: Found) -> Lines:
    costs = found["next_turn"]["cost"]
    base = costs["Turn.next"]["2"]
    heads = (f"relative to turn 2 of `Turn.next` ({base:.2f} ms)", *(f"turn {turn}" for turn in costs["prepare"]))
    rows = ((f"`{way}`", *(f"{spent / base:.1f}" for spent in times.values())) for way, times in costs.items())
    yield from table(heads, rows)


_SHOWN = {"relay": "a byte relay", "unrender": "unrender", "litellm": "LiteLLM's proxy"}
_GATEWAY = (
    ("CPU for a chunk", "of_relay", "{:.1f}"),
    ("CPU for a request", "ms_per_request", "{:.1f} ms"),
    ("memory for a stream", "kb_per_stream", "{:.0f} kB"),
    ("lateness, p99", "late_ms_p99", "{:.0f} ms"),
    ("delay of the first byte, median", "first_byte_ms_p50", "{:.1f} ms"),
)


def _gateway(found: Found) -> Lines:
    rows = {(row["server"], row.get("streams")): row for row in found["gateway"]["rows"]}
    names = [name for name in _SHOWN if (name, None) in rows]
    counts = sorted({streams for _, streams in rows if streams})
    middle, most = counts[-2:] if len(counts) > 1 else counts * 2
    of = {"of_relay": counts, "late_ms_p99": [middle, most], "first_byte_ms_p50": [None]}
    cells = []
    for title, key, form in _GATEWAY:
        for streams in of.get(key, [middle]):
            many = f", {streams:,} stream{'s' * (streams > 1)}" if streams else ""
            shown = (form.format(rows[name, streams][key]) if (name, streams) in rows else "–" for name in names)
            cells.append((title + many, *shown))
    yield from table(("", *(_SHOWN[name] for name in names)), cells)
    wrong = sum(row.get("wrong", 0) for row in rows.values())
    yield ""
    yield f"The byte relay takes {rows['relay', most]['us_per_chunk']:.0f} µs for a chunk at {most:,} streams. Streams with a lost or swapped character: {wrong}."


def _real(found: Found) -> Lines:
    heads = ("tools", "", "decoding takes", "first token takes", f"answers with a call, of {found['real']['rounds']}")
    rows = (row for row in found["real"]["rows"] if row["server"] == "unrender")
    yield from table(
        heads,
        ((row["tools"], row["state"], f"{row['slower']:.2f} ×", f"{row['later']:.1f} ×", row["calls"]) for row in rows),
        left=2,
    )


def _bfcl(found: Found) -> Lines:
    """Yield the correct answers by way and category, with confidence intervals."""
    rows = {(row["way"], row["category"]): row for row in found["bfcl"]["rows"]}
    asked = {category: row["asked"] for (_, category), row in rows.items()}
    form = "{right} ({interval[0]:.0%} to {interval[1]:.0%})".format
    cells = ((way, *(form(**rows[way, name]) for name in asked)) for way in dict.fromkeys(way for way, _ in rows))
    heads = (f"right, {found['bfcl']['model']}", *(f"{name}, of {count}" for name, count in asked.items()))
    yield from table(heads, cells)
    yield ""
    shown = ", ".join(f"{right} ({way})" for way, right in _both(found, "right").items())
    yield f"Right in *simple* and *multiple* together: {shown}. Measured on {found['bfcl']['date']}."


def _both(found: Found, key: str) -> Counter[str]:
    """Return the sum of a count in the two categories that need one call, by way."""
    counts = Counter[str]()
    for row in found["bfcl"]["rows"]:
        counts[row["way"]] += row[key] * (row["category"] in ("simple", "multiple"))
    return counts


def _bfcl_line(found: Found) -> Lines:
    name, right = found["bfcl"]["model"].partition("-Instruct")[0], _both(found, "right")
    yield (
        f"**Reads what models really write.** {name} calls tools in another syntax than its template's: of "
        f"{_both(found, 'asked')['gateway']} tasks of BFCL, the gateway gets {right['gateway']} right, and llama.cpp's own "
        f"endpoint {right['llama.cpp']} ([how we measured](docs/explanation/why.md#calls-of-real-models))."
    )


def _bfcl_lost(found: Found) -> Lines:
    lost = found["bfcl"]["lost"]
    cells = ((reason, *(len(tasks[reason]) for tasks in lost.values())) for reason in next(iter(lost.values()), ()))
    yield from table(("lost by default settings", *lost), cells)


_TURNS = {"": "{way}", "conversations": "{asked}", "right": "{right}", "requests": "{requests}", "calls": "{made}"}
_TURNS |= {"ran without an error": "{ran}", "known tokens": "{known}", "processed again": "{again}"}

TABLES: Mapping[str, Callable[[Found], Lines]] = {
    "run": _run,
    "chunk": _chunk,
    "read": _read,
    "suite": _suite,
    "drift": _drift,
    "coverage": _coverage,
    "peers": _peers,
    "request": _request,
    "beside": _beside,
    "prepare": _columns("request", "prepare", _PREPARE),
    "kept": _columns("next_turn", "kept", _KEPT, left=2),
    "cost": _cost,
    "gateway": _gateway,
    "real": _real,
    "worth": _columns("grammar_worth", "rows", _WORTH, left=2),
    "healing": _columns("healing", "rows", _HEALING),
    "bfcl": _bfcl,
    "bfcl_line": _bfcl_line,
    "bfcl_lost": _bfcl_lost,
    "bfcl_turns": _columns("bfcl", "turns", _TURNS),
}
"""Functions that return the lines of each table."""
