"""TRL's pairs into a page: how many answers transformers read right by our response templates, and how many by TRL's.

Needs transformers and TRL's files: run it with the Python of `.venv-exports`, which `scripts/exports.sh` sets up. Nothing of
TRL's is on the page but names and figures; what is quoted are answers that we rendered, and what was found in them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import environment
import trl_pairs
from trl_readings import Comparison, Found, Reading, compare, is_trimmed

PAGE = environment.ROOT / "docs" / "reference" / "trl.md"

OPENING = """# Response templates beside those of TRL

Written by `scripts/trl_table.py`; do not edit.

[TRL](https://pypi.org/project/trl/) {version} brings {templates} response templates, written by hand, for {chats} chat templates.
Here transformers' own parser reads the same answers by [ours](../howto/export.md), which are derived, and by TRL's.

The answers are written by the chat template: text, reasoning, calls, and arguments that are awkward, such as quotes, white
space at the ends, words that look like numbers, and the format's own markers.
Right is what finds the message that was rendered; white space may differ where the template itself writes both alike.
An answer counts once after each prompt that it follows from.
TRL itself reads answers whole; *in chunks* means three characters at a time, as a server streams them, where a pattern that
can match at the end of what has come so far is taken too early.
Calls are left out of one of TRL's on purpose, since TRL finds that chat template unfit for them.

{summary}

| chat template | TRL's response template | answers | ours | TRL's | ours in chunks | TRL's in chunks |
|---|---|--:|--:|--:|--:|--:|"""

Side = Callable[[Reading], Found | None]


def main() -> None:
    """Write the page to where it is published."""
    if not trl_pairs.installed():
        sys.exit("trl_table: TRL's files are not installed: run `scripts/exports.sh`")
    PAGE.write_text(text([compare(pair) for pair in trl_pairs.pairs()]), encoding="utf-8")


def text(comparisons: Sequence[Comparison]) -> str:
    """Return the page as it is published."""
    groups = _grouped(comparisons)
    counts = {"version": trl_pairs.installed(), "templates": len(groups), "chats": len(comparisons)}
    lines = [
        OPENING.format(**counts, summary=_summary(comparisons)),
        *map(_row, comparisons),
        "",
        *_better(comparisons),
    ]
    for name, group in groups:
        lines += ["", f"## {name}", "", *_section(group)]
    return "\n".join([*lines, ""])


def figures(page: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Yield from a page, per chat template that is exported, how many answers ours and TRL's read, whole and in chunks."""
    for line in page.splitlines():
        name, *cells = line.strip("| ").split(" | ")
        if len(cells) == 6 and all(cell.isdigit() for cell in cells[1:]):
            by_us, by_them, by_us_torn, by_them_torn = map(int, cells[2:])
            yield name, (by_us, by_us_torn), (by_them, by_them_torn)


def right(readings: Iterable[Reading], side: Side) -> tuple[int, int]:
    """Return how many answers were read right, whole and in chunks."""
    pairs = [(found.whole == it.meant, found.chunks == it.meant) for it in readings if (found := side(it))]
    return sum(whole for whole, _ in pairs), sum(chunks for _, chunks in pairs)


def ours(reading: Reading) -> Found | None:
    """Return what was found by our response template."""
    return reading.ours


def theirs(reading: Reading) -> Found | None:
    """Return what was found by TRL's."""
    return reading.theirs


def _grouped(comparisons: Sequence[Comparison]) -> list[tuple[str, list[Comparison]]]:
    by_name = sorted(comparisons, key=lambda it: it.pair.name)
    return [(name, list(group)) for name, group in groupby(by_name, key=lambda it: it.pair.name)]


def _summary(comparisons: Sequence[Comparison]) -> str:
    readings = [it for one in comparisons if not one.refusal for it in one.readings]
    alone = [it for it in readings if _only(ours, it)]
    bare = sum(is_trimmed(it.theirs.whole, it.meant) for it in alone)
    calls = sum(_has_calls(it) for one in comparisons if _lacks_calls(one) for it in one.readings if _only(ours, it))
    return (
        f"Where there is one of ours, it reads {right(readings, ours)[0]} of {len(readings)} answers, TRL's "
        f"{right(readings, theirs)[0]}.\n"
        f"Of the {len(alone)} that ours alone reads, {bare} are a matter of white space at the ends of texts, {calls} have the "
        f"calls left out, {len(alone) - bare - calls} are others.\n"
        f"TRL's alone reads {sum(_only(theirs, it) for it in readings)}."
    )


def _row(it: Comparison) -> str:
    by_us, by_them = right(it.readings, ours), right(it.readings, theirs)
    whole, chunks = ("refused", "") if it.refusal else map(str, by_us)
    cells = (it.pair.path.stem, it.pair.name, len(it.readings), whole, by_them[0], chunks, by_them[1])
    return f"| {' | '.join(map(str, cells))} |"


def _better(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield where TRL's are better: what ours refuse, and what only TRL's read."""
    yield from ("## Where TRL's are better", "")
    for reason in dict.fromkeys(it.refusal for it in comparisons if it.refusal):
        several = [it for it in comparisons if it.refusal == reason]
        readings = [it for one in several for it in one.readings]
        count = f"{right(readings, theirs)[0]} of {len(readings)} answers are read by TRL's"
        yield f"- {_names(several)}: none of ours ({reason}); {count}."
    lost = [(one, it.kind) for one in comparisons for it in one.readings if _only(theirs, it)]
    for name, kind in dict.fromkeys((one.pair.name, kind) for one, kind in lost):
        those = [one for one, of in lost if (one.pair.name, of) == (name, kind)]
        yield f"- {name}: {kind}, {len(those)} ({', '.join(dict.fromkeys(map(_name, those)))})."


def _section(group: Sequence[Comparison]) -> Iterator[str]:
    """Yield what is known of a response template: which kinds of answers are not all read, and the smallest that differ."""
    readings = [it for one in group for it in one.readings]
    yield f"Given to {_names(group)}."
    yield from (f"Refused by ours: {reason}." for reason in dict.fromkeys(it.refusal for it in group) if reason)
    left_out = [it for one in group if _lacks_calls(one) for it in one.readings if _has_calls(it)]
    if left_out:
        by_us = right(left_out, ours)[0]
        yield f"TRL's leaves out calls, so that they are not listed; ours reads {by_us} of {len(left_out)} answers with calls."
    listed = [it for it in readings if it not in left_out]
    rows = list(_kinds(listed))
    header = ("| answers | there are | ours | TRL's |", "|---|--:|--:|--:|")
    yield from ("", *header, *rows) if rows else ("", "All answers are read by both.")
    yield from _example("Read by ours only", [it for it in listed if _only(ours, it)], _whole)
    yield from _example("Read by TRL's only", [it for it in listed if _only(theirs, it)], _whole)
    torn = [it for it in listed if it.theirs.whole == it.meant != it.theirs.chunks]
    yield from _example("Read by TRL's when whole, but not in chunks", torn, _chunks)


def _lacks_calls(one: Comparison) -> bool:
    return "tool_calls" not in one.pair.response_template["fields"]


def _has_calls(it: Reading) -> bool:
    return bool(json.loads(it.meant)["tool_calls"])


def _kinds(readings: Sequence[Reading]) -> Iterator[str]:
    """Yield the rows of a table of the kinds of answers that are not all read by both."""
    for kind in dict.fromkeys(it.kind for it in readings):
        those = [it for it in readings if it.kind == kind]
        there = [side for side in (ours, theirs) if any(map(side, those))]
        counts = {side: right(those, side)[0] for side in there}
        if min(counts.values()) < len(those):
            yield f"| {kind} | {len(those)} | {counts.get(ours, '')} | {counts[theirs]} |"


def _only(side: Side, it: Reading) -> bool:
    """Return whether an answer is read right, whole, by one side and wrong by the other."""
    mine, other = (it.ours, it.theirs) if side is ours else (it.theirs, it.ours)
    return mine is not None and other is not None and mine.whole == it.meant != other.whole


def _whole(found: Found) -> str:
    return found.whole


def _chunks(found: Found) -> str:
    return found.chunks


def _example(title: str, readings: Sequence[Reading], fed: Callable[[Found], str]) -> Iterator[str]:
    """Yield the smallest answer that tells most, and what is wrong in what was found, meant after `-`, found after `+`."""
    wrong = [(it, fed(found)) for it in readings for found in (it.theirs, it.ours) if found and fed(found) != it.meant]
    if not wrong:
        return
    it, found = min(wrong, key=lambda pair: (is_trimmed(pair[1], pair[0].meant), len(pair[0].text), pair[0].text))
    yield from ("", f"{title}, for example ({it.kind}):", "", *_fenced("text", repr(it.text)))
    yield from ("", *_fenced("diff", "\n".join(_diff(it.meant, found))))


def _diff(meant: str, found: str) -> Iterator[str]:
    wanted, got = json.loads(meant), json.loads(found)
    if isinstance(got, str):
        yield f"+ {got}"
        return
    for part, value in wanted.items():
        if got[part] != value:
            yield f"- {part}: {json.dumps(value, ensure_ascii=False)}"
            yield f"+ {part}: {json.dumps(got[part], ensure_ascii=False)}"


def _fenced(language: str, code: str) -> Iterator[str]:
    """Fence a text with more backticks than it holds."""
    fence = "```"
    while fence in code:
        fence += "`"
    yield from (fence + language, code, fence)


def _names(group: Iterable[Comparison]) -> str:
    return ", ".join(map(_name, group))


def _name(one: Comparison) -> str:
    return one.pair.path.stem


if __name__ == "__main__":
    main()
