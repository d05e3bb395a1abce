"""Write two pages about response templates: results for known chat templates, and a comparison with TRL's.

python scripts/exports.py                needs transformers and TRL: `python3 scripts/run.py exports` sets them up

Rules: transformers' own parser reads the answers, and the rendered message is the expected result. A message may
differ if the template writes both versions alike. An answer counts once for each prompt that it can follow.
It doesn't count if the template writes the same text with content and reasoning exchanged. The pages contain only names
and figures from TRL.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import fetch
from environment import ROOT, between, table

from unrender import ChatTemplate
from unrender.analysis.ask import Prober
from unrender.conversation.messages import Said
from unrender.errors import ExportError
from unrender.export import read_response_template
from unrender.format import Format, Slot
from unrender.proof import CutOut, as_message
from unrender.verify import Verdict
from unrender.verify import response_templates as export
from unrender.verify.renditions import AXES, TOOL_NAMES, Candidate, proof_answer, show_after_prompt
from unrender.verify.response_templates import verify_export

PAGE = ROOT / "docs" / "howto" / "transformers.md"
TRL_PAGE = ROOT / "docs" / "howto" / "training-masks.md"
PACKAGE = "trl"

_TRL = """TRL {version} ships {templates} handwritten response templates for {chats} chat templates. [Ours](transformers.md#export-a-response-template)
are derived. We ran transformers' own parser with both, on answers that the chat templates write. It parsed {ours} of {answers} correctly with
ours, and {theirs} with TRL's. In chunks of three characters, as a server streams them, it parsed {ours_torn} with ours and {theirs_torn} with
TRL's. TRL's drop some calls on purpose, and change whitespace at the ends of texts. Answers that work only with TRL's: {lost}."""
_SAMPLES = 2
"""Random answers for each axis of `verify`."""
_CHUNK = 3
"""Number of characters, fewer than in any marker."""
_LEAST_MARKER = 3
"""Minimum characters of a marker. Shorter text is punctuation."""

_AWKWARD = (
    "", " ", "\n", " a", "a ", "\na", "a\n", "  a  ", "\ta\t", "\n\n a \n\n", "a\nb", "a\n\nb", "a\r\nb", "a\n  b", "{\n}",
    '"', "'", "\\", 'say "no"', "it's", '\\"', '"""', "'quoted'", '"quoted"', "f(x=1, y='2')", "[1, 2)", "a,b=c", "}{", "][",
    "12", "007", "1e3", "true", "null", "None", "[1]", '{"a": 1}', "-0", "a < b > c", "<b>bold</b>", "</", "<!-- -->", "&lt;",
)  # fmt: skip
"""Texts that are hard to read back: whitespace at the ends, quotes, brackets, tags, and texts that look like other types."""
_NESTED: tuple[Any, ...] = ({"b": [1, {"c": "d"}]}, {}, [], True, 1.5, None, *_AWKWARD)
_LISTS: tuple[list[Any], ...] = ([], [[]], [1, 2], ["a", "b"], [{"a": 1}], ["it's"], [None])
_VALUES: tuple[Mapping[str, Any], ...] = (
    *({"settings": {"a": it}} for it in _NESTED),
    *({"items": it} for it in _LISTS),
    *({"settings": {key: 1}} for key in ("a b", "a-b", '"', "7", "ü", "a.b")),
)


def main() -> None:
    """Write the tables and figures of both pages."""
    comparisons = [compare(pair) for pair in pairs()]
    paths = sorted(fetch.available_templates().glob("*.jinja"), key=lambda path: path.stem.lower())
    PAGE.write_text(text(PAGE.read_text(encoding="utf-8"), paths), encoding="utf-8")
    TRL_PAGE.write_text(trl_text(TRL_PAGE.read_text(encoding="utf-8"), comparisons), encoding="utf-8")


def text(page: str, paths: Iterable[Path]) -> str:
    """Return the page with the table of known chat templates."""
    heads = ("template", "read alike", "omissions, or the reason for refusal")
    return between(page, "exports", table(heads, ((path.stem, *_row(path)) for path in paths), "lrl"))


def _row(path: Path) -> Iterator[str]:
    """Yield the share of equal results, and the omissions."""
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
    """A chat template of TRL with its response template."""

    path: Path
    """The chat template."""
    name: str
    """The response template's name in TRL's source."""
    response_template: dict[str, Any]


def installed() -> str:
    """Return the installed version of TRL, or ""."""
    return version(PACKAGE) if importlib.util.find_spec(PACKAGE) else ""


def pairs() -> Iterator[Pair]:
    """Yield the pairs in order of file names. Exits with an error message without TRL."""
    folder = _folder()
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
    # Finding a package doesn't import it.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        sys.exit("exports: TRL's files are not installed: use `python3 scripts/run.py exports`")
    return Path(found.origin).parent


def _run(path: Path) -> dict[str, Any]:
    """Run a module of TRL without its relative imports, and return its names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.level)]
    names: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
    exec(compile(tree, path, "exec"), names)  # noqa: S102 - a pinned package, whose own word on its pairs is asked for
    return names


# Answers, parsed with both templates.


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A result of transformers as normalized JSON, or its error as a JSON string."""

    whole: str
    chunks: str
    """The result of feeding a few characters at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer, the expected message, and the result of each response template."""

    text: str
    meant: str
    ours: Found | None
    """None if our export is refused."""
    theirs: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All results of a pair."""

    pair: Pair
    refusal: str = ""
    """The reason why unrender exports no response template."""
    readings: tuple[Reading, ...]


def compare(pair: Pair) -> Comparison:
    """Parse the rendered answers of a pair with both response templates."""
    template = ChatTemplate.from_file(pair.path)
    format_ = template.format._ended_by(template._with_tools.eos_token)
    prober = Prober(template=template._with_tools, capabilities=template.capabilities, tokens={"eos_token": ""})
    modes = _modes(Candidate(prober=prober, format=format_))
    theirs = export.response_reader(read_response_template(pair.response_template))
    ours, refusal = _ours(template)
    readings = tuple(_readings(modes, ours, theirs))
    return Comparison(pair=pair, refusal=refusal, readings=readings)


def _ours(template: ChatTemplate) -> tuple[export.ExportReader | None, str]:
    try:
        return export.response_reader(template.response_template()), ""
    except ExportError as error:
        return None, str(error)


def _modes(candidate: Candidate) -> Sequence[Candidate]:
    """Return the candidate with thinking on, off, and by default, if the prompts differ."""
    asked = [replace(candidate, thinking=thinking) for thinking in (None, True, False)]
    return list({it.prompt: it for it in asked}.values())


def _readings(
    modes: Sequence[Candidate], ours: export.ExportReader | None, theirs: export.ExportReader
) -> Iterator[Reading]:
    for answer in answers(modes[0].format):
        for asked, shown in _shown(modes, answer):
            meant = replace(shown.said, content=answer.content, reasoning=answer.reasoning)
            by_us = _found(ours, asked, shown, meant) if ours else None
            by_them = _found(theirs, asked, shown, meant)
            yield Reading(text=shown.answer, meant=_plain(meant), ours=by_us, theirs=by_them)


def answers(format_: Format) -> Iterator[Said]:
    """Yield answers of many kinds, the same each time. Some contain the format's markers."""
    for kind, axis in AXES.items():
        random = Random(kind)  # noqa: S311 - reproducible, not secret
        yield from (axis(random) for _ in range(_SAMPLES))
    yield from map(_call, _VALUES)
    marked = [f"a {part} b" for marker in markers(format_) for part in (marker, marker[: len(marker) // 2])]
    yield from (_call({"text": text}) for text in (*_AWKWARD, *marked))
    yield from (proof_answer(content=text) for text in (*_AWKWARD, *marked))
    yield from (proof_answer(content="It rains.", reasoning=text) for text in _AWKWARD)


def markers(format_: Format) -> Sequence[str]:
    """Return the markers around calls, arguments and reasoning, but no ends of turn, where generation stops."""
    tools, reasoning = format_.tools, format_.reasoning
    skeletons = [part for part in (*tools.function, *tools.arguments.entry) if not isinstance(part, Slot)]
    around = (tools.section_start, tools.section_end, tools.call_start, tools.call_end)
    skeletons.append(tools.arguments.codec.string_close)
    every = (*around, *skeletons, reasoning.start, reasoning.end)
    return list(dict.fromkeys(it.strip() for it in every if len(it.strip()) >= _LEAST_MARKER))


def _call(arguments: Mapping[str, Any]) -> Said:
    return proof_answer(calls=((TOOL_NAMES[0], arguments),))


def _shown(modes: Sequence[Candidate], answer: Said) -> Iterator[tuple[Candidate, CutOut]]:
    """Yield the template's text after each prompt that the answer continues, otherwise after closed reasoning."""
    if not _tells_apart(modes[0], answer):
        return
    found = [(asked, shown) for asked in modes if (shown := show_after_prompt(asked, answer))]
    closed = None if found else export.show_closing(modes[0], answer)
    yield from found or ([(modes[0], closed)] if closed else [])


def _tells_apart(candidate: Candidate, answer: Said) -> bool:
    """Return whether the template distinguishes the answer's content from its reasoning."""
    exchanged = replace(answer, content=answer.reasoning, reasoning=answer.content)
    return exchanged == answer or candidate.render(exchanged) != candidate.render(answer)


def _found(read: export.ExportReader, candidate: Candidate, shown: CutOut, meant: Said) -> Found:
    pieces = [shown.answer[i : i + _CHUNK] for i in range(0, len(shown.answer), _CHUNK)]
    whole, chunks = (_read(read, it, candidate, shown, meant) for it in ([shown.answer], pieces))
    return Found(whole=whole, chunks=chunks)


def _read(read: export.ExportReader, chunks: list[str], candidate: Candidate, shown: CutOut, meant: Said) -> str:
    """Return the parsed message, or `meant` if the template writes both alike."""
    try:
        found = export.comparable(read(chunks, shown.read_after(candidate.format)))
    except (ValueError, KeyError) as error:
        # TRL's parser raises if it can't read a region, and the whole message is lost.
        return json.dumps(f"{type(error).__name__}: {error}".splitlines()[0])
    said = json.loads(found)
    calls = tuple((call["name"], call["arguments"]) for call in said["tool_calls"])
    again = proof_answer(content=said["content"], reasoning=said["reasoning"], calls=calls)
    return _plain(meant) if candidate.render(again) == candidate.render(meant) else found


def _plain(answer: Said) -> str:
    return export.comparable(as_message(answer).to_openai())


# The page about TRL.


Side = Callable[[Reading], Found | None]


def trl_text(page: str, comparisons: Sequence[Comparison]) -> str:
    """Return the page with the figures of both sides, and the cases in which TRL's are better."""
    return between(page, "trl", "\n".join([_summary(comparisons), *_refused(comparisons)]))


def right(readings: Iterable[Reading], side: Side) -> tuple[int, int]:
    """Return the number of correctly parsed answers, complete and in chunks."""
    pairs = [(found.whole == it.meant, found.chunks == it.meant) for it in readings if (found := side(it))]
    return sum(whole for whole, _ in pairs), sum(chunks for _, chunks in pairs)


ours: Side = attrgetter("ours")
theirs: Side = attrgetter("theirs")


def _summary(comparisons: Sequence[Comparison]) -> str:
    readings = [it for one in comparisons if not one.refusal for it in one.readings]
    (by_us, by_us_torn), (by_them, by_them_torn) = right(readings, ours), right(readings, theirs)
    counts = {
        "templates": len({it.pair.name for it in comparisons}),
        "chats": len(comparisons),
        "answers": len(readings),
        "ours": by_us,
        "ours_torn": by_us_torn,
        "theirs": by_them,
        "theirs_torn": by_them_torn,
        "lost": sum(it.ours is not None and it.ours.whole != it.meant == it.theirs.whole for it in readings),
    }
    return _TRL.format(version=installed(), **{name: f"{count:,}" for name, count in counts.items()})


def _refused(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield the reasons why ours are missing, and the number of answers that TRL's parse there."""
    for reason in dict.fromkeys(it.refusal for it in comparisons if it.refusal):
        several = [it for it in comparisons if it.refusal == reason]
        readings = [it for one in several for it in one.readings]
        names = ", ".join(one.pair.path.stem for one in several)
        read = f"There, TRL's parse {right(readings, theirs)[0]} of {len(readings)} answers"
        yield f"We have none for {names} ({reason}). {read}."


if __name__ == "__main__":
    main()
