"""Response templates → two pages: of known chat templates, and beside those that TRL's authors wrote by hand.

python scripts/exports.py                needs transformers and TRL's files: `python3 scripts/run.py exports` sets them up

Rules: transformers' own parser reads; what is right is the message that was rendered, whoever reads it. White space at the ends of
texts may differ where the template writes both alike. An answer counts once after each prompt that it follows from, and not at all
where the template writes the same when content and reasoning are exchanged. Nothing of TRL's is on its page but names and figures.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from random import Random
from types import MappingProxyType, SimpleNamespace
from typing import Any

import fetch
from environment import ROOT

from unrender import ChatTemplate
from unrender.conversation.messages import Said
from unrender.errors import ExportError
from unrender.export import read_response_template
from unrender.format import Format, Slot
from unrender.proof.cut import CutOut
from unrender.proof.said import as_message
from unrender.verify import Verdict
from unrender.verify import response_templates as export
from unrender.verify.axes import AXES, TOOL_NAMES, proof_answer
from unrender.verify.renditions import Candidate, show_after_prompt
from unrender.verify.response_templates import verify_export

PAGE = ROOT / "docs" / "reference" / "response-template.md"
TRL_PAGE = ROOT / "docs" / "reference" / "trl.md"
PACKAGE = "trl"

OPENING = """# Response templates of known chat templates

Written by `scripts/exports.py`; do not edit.

For each chat template: of how many capabilities transformers' own parser reads every rendering as unrender does, and what
the response template leaves out, or why there is none.
Call syntaxes that are only tolerated are left out everywhere.
Reasoning is read where an answer begins, or a message inside of one: what looks like it further on is content.
What no response template can say is told in [the how-to](../howto/transformers.md#export-a-response-template).
Beside [those that TRL brings](trl.md), ours are compared answer by answer.

| template | read alike | left out, or why refused |
|---|--:|---|"""
TRL_OPENING = """# Response templates beside those of TRL

Written by `scripts/exports.py`; do not edit.

[TRL](https://pypi.org/project/trl/) {version} brings {templates} response templates, written by hand, for {chats} chat templates.
Here transformers' own parser reads the same answers by [ours](../howto/transformers.md#export-a-response-template), which are derived, and by TRL's.

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
_SAMPLES = 2
"""Random answers for each axis of `verify`."""
_CHUNK = 3
"""Characters: shorter than every marker."""
_LEAST_MARKER = 3
"""Characters: what is shorter is not a marker but punctuation."""

_SAID, _THOUGHT = "It rains.", "Let me look."
_STRINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "quotes in arguments": ('"', "'", "\\", 'say "no"', "it's", '\\"', '"""', "'quoted'", '"quoted"'),
        "line breaks in arguments": ("a\nb", "a\n\nb", "a\r\nb", "a\n  b", "{\n}"),
        "white space around arguments": (" a", "a ", "\na", "a\n", "  a  ", "\ta\t", " ", "\n", "\n\n a \n\n"),
        "empty strings": ("",),
        "strings that look like other types": ("12", "007", "1e3", "true", "null", "None", "[1]", '{"a": 1}', "-0"),
        "tags in arguments": ("a < b > c", "<b>bold</b>", "</", "<!-- -->", "&lt;", "<a", "a>"),
        "brackets in arguments": ("f(x=1, y='2')", "[1, 2)", "a,b=c", "}{", "][", ")", "}", "]"),
    }
)
_NESTED: tuple[Any, ...] = ({"b": [1, {"c": "d"}]}, {}, [], True, 1.5, "it's", '"', " x ", "{b}")
_LISTS: tuple[list[Any], ...] = ([], [[]], [1, 2], ["a", "b"], [{"a": 1}], ["it's"])
_VALUES: Mapping[str, tuple[dict[str, Any], ...]] = MappingProxyType(
    {
        "nested arguments": (*({"settings": {"a": it}} for it in _NESTED), *({"items": it} for it in _LISTS)),
        "nulls in nested arguments": ({"settings": {"a": None}}, {"items": [None]}),
        "keys that are not words": tuple({"settings": {key: 1}} for key in ("a b", "a-b", '"', "7", "ü", "a.b")),
    }
)
_TEXTS: Mapping[str, tuple[Said, ...]] = MappingProxyType(
    {
        "white space around content": tuple(
            proof_answer(content=a + _SAID + b)
            for a, b in ((" ", ""), ("", " "), ("\n", ""), ("", "\n"), ("  ", "\n\n"))
        ),
        "white space around reasoning": tuple(
            proof_answer(content=_SAID, reasoning=a + _THOUGHT + b)
            for a, b in ((" ", ""), ("", " "), ("\n", ""), ("", "\n"), ("  ", "\n\n"))
        ),
        "lines of content": tuple(proof_answer(content=it) for it in ("a\nb", "a\n\nb\n\n- c\n- d", "```\nx\n```")),
        "JSON as content": tuple(
            proof_answer(content=it) for it in ('{"a": 1}', '[{"a": 1}]', '{"name": "x"}', '```json\n{"a": 1}\n```')
        ),
        "text and two calls": (
            proof_answer(content=_SAID, calls=((TOOL_NAMES[0], {"text": "x"}), (TOOL_NAMES[1], {"count": 1}))),
            proof_answer(
                content=_SAID, reasoning=_THOUGHT, calls=((TOOL_NAMES[0], {"text": "x"}), (TOOL_NAMES[1], {}))
            ),
        ),
    }
)


def main() -> None:
    """Write both pages."""
    if not installed():
        sys.exit("exports: TRL's files are not installed: use `python3 scripts/run.py exports`")
    paths = sorted(fetch.available_templates().glob("*.jinja"), key=lambda path: path.stem.lower())
    PAGE.write_text(text(paths), encoding="utf-8")
    TRL_PAGE.write_text(trl_text([compare(pair) for pair in pairs()]), encoding="utf-8")


def text(paths: list[Path]) -> str:
    """Return the page as it is published."""
    return "\n".join([OPENING, *(f"| {path.stem} | {' | '.join(_row(path))} |" for path in paths), ""])


def _row(path: Path) -> Iterator[str]:
    """Yield how much is read alike, and what is left out."""
    template = ChatTemplate.from_file(path)
    try:
        exported = template.response_template()
    except ExportError as error:
        yield from ("refused", str(error))
        return
    findings = verify_export(template, exported, samples=2).findings
    observed = [finding for finding in findings if finding.total or "not exported" in finding.reason]
    yield f"{sum(finding.verdict is Verdict.PASSED for finding in observed)} of {len(observed)}"
    yield "; ".join(omission.what for omission in exported.omissions if "tolerated" not in omission.what)


# TRL's files.


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A chat template of TRL's and what its answers are read by."""

    path: Path
    """The chat template."""
    name: str
    """The response template's name in TRL's source."""
    response_template: dict[str, Any]


def installed() -> str:
    """Return the version of the TRL whose files are installed, or "" when there are none."""
    return version(PACKAGE) if importlib.util.find_spec(PACKAGE) else ""


def pairs() -> tuple[Pair, ...]:
    """Return the pairs in the order of the files' names; raises `ModuleNotFoundError` without TRL or transformers."""
    return tuple(_pairs(_folder()))


def _pairs(folder: Path) -> Iterator[Pair]:
    names = _run(folder / "chat_template_utils.py")
    called = {id(value): name for name, value in names.items() if name.endswith("_template")}
    for path in sorted((folder / "chat_templates").glob("*.jinja")):
        tokenizer = SimpleNamespace(chat_template=path.read_text(encoding="utf-8"))
        try:
            names["add_response_schema"](tokenizer)
        except ValueError:
            continue
        given = tokenizer.response_template
        yield Pair(path=path, name=called[id(given)], response_template=given)


def _folder() -> Path:
    # Finding a package does not import it.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModuleNotFoundError("TRL's files are not installed: use `python3 scripts/run.py exports`", name=PACKAGE)
    return Path(found.origin).parent


def _run(path: Path) -> dict[str, Any]:
    """Run a module of TRL's without its relative imports, and return its names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.level)]
    names: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
    exec(compile(tree, path, "exec"), names)  # noqa: S102 - a pinned package, whose own word on its pairs is asked for
    return names


# Answers, read in both ways.


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Findings of transformers, as JSON without what may differ, or a JSON string with the error that they raised."""

    whole: str
    chunks: str
    """Fed with a few characters at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer after a prompt, what it means, and what was found by either response template."""

    kind: str
    text: str
    meant: str
    ours: Found | None
    """None where ours is refused."""
    theirs: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All readings of a pair."""

    pair: Pair
    refusal: str = ""
    """Why there is no response template of ours."""
    readings: tuple[Reading, ...]


def compare(pair: Pair) -> Comparison:
    """Read what the pair's chat template writes in both ways."""
    template = ChatTemplate.from_file(pair.path)
    format_ = template.format._ended_by(template._with_tools.eos_token)
    modes = _modes(Candidate(template=template._with_tools, format=format_, capabilities=template.capabilities))
    theirs = export.response_reader(read_response_template(pair.response_template))
    ours, refusal = _ours(template)
    readings = tuple(_readings(modes, ours, theirs))
    return Comparison(pair=pair, refusal=refusal, readings=readings)


def _ours(template: ChatTemplate) -> tuple[export.Reader | None, str]:
    try:
        return export.response_reader(template.response_template()), ""
    except ExportError as error:
        return None, str(error)


def _modes(candidate: Candidate) -> Sequence[Candidate]:
    """Return the candidate with thinking on, off, and as the template has it, as far as that makes other prompts."""
    asked = [replace(candidate, thinking=thinking) for thinking in (None, True, False)]
    return list({it.prompt: it for it in asked}.values())


def _readings(modes: Sequence[Candidate], ours: export.Reader | None, theirs: export.Reader) -> Iterator[Reading]:
    for kind, answer in answers(modes[0].format):
        for asked, shown in _shown(modes, answer):
            meant = replace(shown.said, content=answer.content, reasoning=answer.reasoning)
            by_us = _found(ours, asked, shown, meant) if ours else None
            by_them = _found(theirs, asked, shown, meant)
            yield Reading(kind=kind, text=shown.answer, meant=_plain(meant), ours=by_us, theirs=by_them)


def answers(format_: Format) -> Iterator[tuple[str, Said]]:
    """Yield answers of many kinds, the same each time; those with markers in them have the format's."""
    for kind, axis in AXES.items():
        random = Random(kind)  # noqa: S311 - reproducible, not secret
        yield from ((kind, axis(random)) for _ in range(_SAMPLES))
    for kind, texts in _STRINGS.items():
        yield from ((kind, _call({"text": it})) for it in texts)
    for kind, values in _VALUES.items():
        yield from ((kind, _call(it)) for it in values)
    for kind, several in _TEXTS.items():
        yield from ((kind, it) for it in several)
    for marker in markers(format_):
        half = marker[: len(marker) // 2]
        yield from (("markers in arguments", _call({"text": f"a {it} b"})) for it in (marker, half))
        yield from (("markers in content", proof_answer(content=f"a {it} b")) for it in (marker, half))


def markers(format_: Format) -> Sequence[str]:
    """Return the markers around calls, arguments and reasoning; no end of turn, since generation stops there."""
    tools, reasoning = format_.tools, format_.reasoning
    skeletons = [part for part in (*tools.function, *tools.arguments.entry) if not isinstance(part, Slot)]
    around = (
        tools.section_start,
        tools.section_end,
        tools.call_start,
        tools.call_end,
        tools.arguments.codec.string_close,
    )
    every = (*around, *skeletons, reasoning.start, reasoning.end)
    return list(dict.fromkeys(it.strip() for it in every if len(it.strip()) >= _LEAST_MARKER))


def _call(arguments: Mapping[str, Any]) -> Said:
    return proof_answer(calls=((TOOL_NAMES[0], arguments),))


def _shown(modes: Sequence[Candidate], answer: Said) -> Iterator[tuple[Candidate, CutOut]]:
    """Yield what the template writes after each prompt that the answer follows from, or else after closed reasoning."""
    if not _tells_apart(modes[0], answer):
        return
    found = [(asked, shown) for asked in modes if (shown := show_after_prompt(asked, answer))]
    closed = None if found else export.show_closing(modes[0], answer)
    yield from found or ([(modes[0], closed)] if closed else [])


def _tells_apart(candidate: Candidate, answer: Said) -> bool:
    """Return whether the template writes the answer's content otherwise than its reasoning."""
    exchanged = replace(answer, content=answer.reasoning, reasoning=answer.content)
    return exchanged == answer or candidate.render(exchanged) != candidate.render(answer)


def _found(read: export.Reader, candidate: Candidate, shown: CutOut, meant: Said) -> Found:
    pieces = [shown.answer[i : i + _CHUNK] for i in range(0, len(shown.answer), _CHUNK)]
    whole, chunks = (_read(read, it, candidate, shown, meant) for it in ([shown.answer], pieces))
    return Found(whole=whole, chunks=chunks)


def _read(read: export.Reader, chunks: list[str], candidate: Candidate, shown: CutOut, meant: Said) -> str:
    """Return what was found; what is right but for white space that the template does not write, as it was meant."""
    try:
        found = export.comparable(read(chunks, shown.read_after(candidate.format)))
    except (ValueError, KeyError) as error:
        # Their parser raises where a region cannot be read, and the whole message is lost.
        return json.dumps(f"{type(error).__name__}: {error}".splitlines()[0])
    return _plain(meant) if is_trimmed(found, _plain(meant)) and _is_written_alike(candidate, found, meant) else found


def is_trimmed(found: str, meant: str) -> bool:
    """Return whether what was found is what was meant but for white space at the ends of texts."""
    return found != meant and _trimmed(json.loads(found)) == _trimmed(json.loads(meant))


def _is_written_alike(candidate: Candidate, found: str, meant: Said) -> bool:
    said = json.loads(found)
    calls = tuple((call["name"], call["arguments"]) for call in said["tool_calls"])
    again = proof_answer(content=said["content"], reasoning=said["reasoning"], calls=calls)
    return candidate.render(again) == candidate.render(meant)


def _trimmed(value: Any) -> str:
    """Return a value as JSON, all texts in it without white space at their ends."""
    match value:
        case str():
            return json.dumps(value.strip())
        case list():
            return f"[{', '.join(map(_trimmed, value))}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(key)}: {_trimmed(it)}' for key, it in sorted(value.items()))}}}"
        case _:
            return json.dumps(value)


def _plain(answer: Said) -> str:
    return export.comparable(as_message(answer).to_openai())


# The page on TRL.


Side = Callable[[Reading], Found | None]


def trl_text(comparisons: Sequence[Comparison]) -> str:
    """Return the page beside TRL's as it is published."""
    counts = {
        "version": installed(),
        "templates": len({it.pair.name for it in comparisons}),
        "chats": len(comparisons),
    }
    opening = TRL_OPENING.format(**counts, summary=_summary(comparisons))
    return "\n".join([opening, *map(_trl_row, comparisons), "", *_better(comparisons), ""])


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


def _trl_row(it: Comparison) -> str:
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


def _lacks_calls(one: Comparison) -> bool:
    return "tool_calls" not in one.pair.response_template["fields"]


def _has_calls(it: Reading) -> bool:
    return bool(json.loads(it.meant)["tool_calls"])


def _only(side: Side, it: Reading) -> bool:
    """Return whether an answer is read right, whole, by one side and wrong by the other."""
    mine, other = (it.ours, it.theirs) if side is ours else (it.theirs, it.ours)
    return mine is not None and other is not None and mine.whole == it.meant != other.whole


def _names(group: Iterable[Comparison]) -> str:
    return ", ".join(map(_name, group))


def _name(one: Comparison) -> str:
    return one.pair.path.stem


if __name__ == "__main__":
    main()
