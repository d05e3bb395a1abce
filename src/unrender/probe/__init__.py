"""Probes a running engine: what its server does to prompts and answers, and how its model writes calls.

`tasks` are small requests with known answers. `evidence` sends them, together with a few questions about the server. `answers` classifies
each answer, and `causes` and `server_causes` explain the trouble. A `ProbeReport` describes all of it, and adds the call syntaxes that the
model was observed to use to its template's format. The syntax that parses most of the remaining answers completely is added first, until no
syntax parses two more. Observed syntaxes are tolerated, never generated, and their calls count only if an offered tool's schema admits the
arguments.

Rules: a cause has evidence, and a healthy server has no causes. The tasks are no benchmark's.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from typing import Any

from unrender import ChatTemplate, TemplateError
from unrender.errors import FormatError
from unrender.explain.nearest import best_syntaxes
from unrender.format import CallSyntax, Format
from unrender.gateway.backends import Backend, EngineError
from unrender.gateway.backends.connection import Connection
from unrender.gateway.backends.llama_server import LlamaServer
from unrender.gateway.config import ENGINES
from unrender.probe.answers import Answer, read
from unrender.probe.causes import Cause, find_causes, parts, rate_of
from unrender.probe.evidence import Evidence, Told, format_rank, gather

__all__ = ["Cause", "ProbeReport", "connected", "page", "probe", "probe_engine"]


SECONDS = 170.0
"""Default time limit."""


def probe(
    engine: str | Backend,
    template: ChatTemplate | None = None,
    *,
    seconds: float = SECONDS,
    told: Told | None = None,
    kind: str | None = None,
    model: str = "",
    key: str = "",
) -> ProbeReport:
    """Probe a running engine, and return a report.

    `engine` is the engine's address or one of the gateway's backends. `template` is the model's chat template; llama-server reports its own.
    `seconds` is the approximate time limit, and `told` is a function for progress: it gets the numbers of finished and of all tasks. `kind`,
    `model` and `key` are the kind of engine, the model's name on it, and its API key; they matter only for an address. By default, the kind
    is found out.

    Raises `EngineError` if the engine can't be reached, and `TemplateError` if there is no template. Can't be used in a running event loop;
    use `probe_engine` there.
    """

    async def run() -> ProbeReport:
        found = await connected(engine, kind=kind, model=model, key=key) if isinstance(engine, str) else engine
        return await probe_engine(found, template, name=str(engine), seconds=seconds, told=told)

    return asyncio.run(run())


async def probe_engine(
    engine: Backend,
    template: ChatTemplate | None = None,
    *,
    name: str = "",
    seconds: float = SECONDS,
    told: Told | None = None,
) -> ProbeReport:
    """Probe an engine of the gateway, like `probe`, and close its connections. `name` is the engine's name in the report."""
    try:
        if template is None:
            if not isinstance(engine, LlamaServer):
                raise TemplateError("expected the model's chat template, since this engine doesn't report its own")
            template = ChatTemplate(await engine.templates())
        found = await gather(engine, template, seconds=seconds, told=told or (lambda _done, _all: None))
        return ProbeReport(engine=name or type(engine).__name__, found=found)
    finally:
        await engine.close()


async def connected(url: str, *, kind: str | None = None, model: str = "", key: str = "") -> Backend:
    """Return the client for an engine at an address. Raises `EngineError` if the engine can't be reached, or has no known path."""
    connection = Connection(url.rstrip("/").removesuffix("/v1"), key=key)
    problems = []
    for name, engine in ENGINES.items():
        if not kind or kind == name:
            problem = None if kind else await connection.problem(engine.sign)
            if problem is None:
                return engine(connection, model=model)
            problems.append(problem)
    await connection.close()
    # A path that another kind of engine has is missing, so the other problems say more.
    said = [problem for problem in problems if not problem.startswith("404")]
    paths = [engine.sign for engine in ENGINES.values()]
    raise EngineError(said[0] if said else f"expected one of the paths {paths}, found none", where=url)


# The report.


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """The result of probing one engine."""

    engine: str
    """The engine's address, or its kind."""
    found: Evidence

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The causes of trouble, worst first."""
        return find_causes(self.found)

    @cached_property
    def format(self) -> Format:
        """The template's format, with the call syntaxes in which the model was observed to write calls."""
        return with_observed(self.found, self.engine)

    @cached_property
    def parts(self) -> tuple[tuple[str, int, dict[str, int]], ...]:
        """Numbers of answers by part of the tasks: a name, all answers, and the answers by kind and "right"."""
        return tuple(parts(self.found))

    @property
    def right(self) -> int:
        """Number of answers with the wanted calls, and without others."""
        return sum(answer.right for answer in self.found.answers)

    @property
    def tool_format(self) -> str:
        """The best value of `tool_format` for this model: "auto", unless the template has no tools."""
        return self.found.tool_format

    @property
    def ok(self) -> bool:
        """True if no causes were found."""
        return not self.causes

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        found = self.found
        return {
            "engine": self.engine,
            "ok": self.ok,
            "causes": list(map(asdict, self.causes)),
            "right": self.right,
            "asked": len(found.answers),
            "skipped": found.skipped,
            "seconds": round(found.seconds, 1),
            "tokens_per_second": round(rate_of(found.answers), 1),
            "context": found.context,
            "grammar": found.grammar,
            "tool_format": found.tool_format,
            "tool_formats": {name: format_rank(answers) for name, answers in found.formats.items()},
            "syntaxes": dict(Counter(it.detail for it in found.answers if it.kind == "other")),
            "under_grammar": {"asked": len(found.bound), "right": sum(answer.right for answer in found.bound)},
            "parts": {name: {"asked": asked, **kinds} for name, asked, kinds in self.parts},
            "answers": [answer.to_dict() for answer in found.answers],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text, without the single answers."""
        found = self.found
        skipped = f", {found.skipped} skipped for lack of time" if found.skipped else ""
        yield f"{self.engine}: {self.right} of {len(found.answers)} answers right, in {found.seconds:.0f} s{skipped}"
        for cause in self.causes:
            yield f"{cause.level}: {cause.name}: {cause.what}"
            yield f"  Seen: {cause.evidence}"
            yield f"  Fix:  {cause.fix}"
        if self.ok:
            yield "no causes of trouble found"
        if found.formats:
            none = f", no calls in any of {len(found.formats)} syntaxes" if found.tool_format == "auto" else ""
            yield f"best tool_format: {found.tool_format}{none}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def page(*reports: ProbeReport) -> str:
    """Return a page that shows one report, or compares several. The page is a single file that loads nothing."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps([report.to_dict() for report in reports], ensure_ascii=False).replace("<", "\\u003c")
    return text.replace("[/*REPORTS*/]", data)


_FEW = 2
"""Minimum number of answers that show a syntax."""


def with_observed(found: Evidence, engine: str) -> Format:
    """Return the template's format with the observed syntaxes, in the order of their evidence."""
    format = found.answers[0].turn.format if found.tool_format != "auto" and found.answers else found.template.format
    calling, day = found.calling, datetime.now(UTC).date()
    left = [answer for answer in calling if answer.kind == "other"]
    read_by: dict[CallSyntax, list[Answer]] = {}
    for answer in left:
        for syntax in best_syntaxes(read(answer, repair="none", tolerated=False)):
            read_by.setdefault(syntax, []).append(answer)
    added: list[CallSyntax] = []
    while read_by:
        syntax = max(read_by, key=lambda syntax: sum(answer in left for answer in read_by[syntax]))
        those = [answer for answer in read_by.pop(syntax) if answer in left]
        if len(those) < _FEW:
            break
        why = f"observed in {len(those)} of {len(calling)} answers of {engine}, on {day}"
        added.append(replace(syntax, checked=True, why=why))
        left = [answer for answer in left if answer not in those]
    # A longer start marker is tried first: after the one of a single call, the other calls of a list would remain as text.
    added.sort(key=lambda it: len("".join(it.openers)), reverse=True)
    for syntax in added:
        with suppress(FormatError):  # a syntax may conflict with the format's own
            format = replace(format, tolerated=(*format.tolerated, syntax))
    return format
