"""A probe's report: the observed format, the best tool format, the page, the command, and limits of probing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import command_line
import pytest
from letters import WEATHER
from probe_templates import fenced, probed, rewritten, tags
from probed_server import Server, running
from serving import TEMPLATES

from unrender import ChatTemplate
from unrender.format import Format
from unrender.gateway.backends import EngineError, Sampler
from unrender.probe import ProbeReport, connected, page, probe, probe_engine


def in_fences(text: str, *_: Any) -> str:
    """Write calls in fences after a sentence."""
    return rewritten(lambda calls: f"I call it.\n{fenced(calls)}")(text)


@pytest.fixture(scope="module")
def report() -> ProbeReport:
    """Return the report on a model that writes its calls in fences after a sentence."""
    return probed(writes=in_fences)


@contextmanager
def address(server: Server) -> Iterator[str]:
    """Run a server in its own thread and yield its address."""
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stopped = asyncio.Event()
        async with running(server) as url:
            started.set_result((url, asyncio.get_running_loop(), stopped))
            await stopped.wait()

    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(asyncio.run, serve())
        wait([started, served], return_when="FIRST_COMPLETED")
        if served.done():
            served.result()
        url, loop, stopped = started.result()
        try:
            yield url
        finally:
            loop.call_soon_threadsafe(stopped.set)
            served.result()


def test_observed_syntaxes_are_in_the_format(report: ProbeReport) -> None:
    """The format has the observed syntax with its evidence, and no other additions to the template's own format."""
    *known, observed = report.format.tolerated

    assert tuple(known) == tags().format.tolerated
    assert observed.why.startswith("observed in 40 of 40 answers of http://127.0.0.1:")
    assert observed.checked
    assert Format.from_json(report.format.to_json()) == report.format


def test_observed_syntaxes_are_read(report: ProbeReport, tmp_path: Path) -> None:
    """With this format, calls within text are parsed if their arguments match the schema, and quoted ones aren't."""
    path = tmp_path / "format.json"
    path.write_text(report.format.to_json(), encoding="utf-8")
    template = ChatTemplate(tags()._loaded, format=Format.from_file(path))
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=[WEATHER])
    call = '```json\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n```'

    read = turn.parse(f"I look.\n{call}\nSoon I know.")
    unfit = turn.parse(f"I look.\n{call.replace('city', 'town')}\nSoon I know.")
    quoted = turn.parse(f"Write {call} to call it.")

    assert [call.arguments for call in read.tool_calls] == [{"city": "Paris"}]
    assert read.content == "I look.\n\nSoon I know."
    assert [unfit.tool_calls, quoted.tool_calls] == [(), ()]


def test_best_tool_format_is_found() -> None:
    """If the template has no tools, each declared format is tried, and the one that the model follows is the best."""
    template = ChatTemplate.from_file(TEMPLATES / "plain.jinja")
    report = probed(template)

    assert report.tool_format == "tool-call-json"
    assert {"tool-call-json", "qwen3", "python-call-list"} <= report.found.formats.keys()
    assert "other-template" not in {cause.name for cause in report.causes}


def test_requests_with_equal_tools_follow_one_another(report: ProbeReport) -> None:
    """An engine with one cached prompt processes the most tools once, since all other prompts are in between."""
    counts = [answer.task.count for answer in report.found.answers]

    assert [count for count, _ in groupby(counts)] == [1, 5, 20, 60, 20, 5, 1]


def test_page_is_one_file_that_loads_nothing(report: ProbeReport) -> None:
    """The page contains the data as JSON, whose text can't end the script, and needs no other file."""
    shown = page(report, report)
    data = re.search(r'<script type="application/json" id="reports">(.*?)</script>', shown, re.DOTALL)

    assert data is not None
    assert json.loads(data[1]) == [report.to_dict()] * 2
    assert "<" not in data[1]
    assert not re.search(r"""(src|href)=|url\(|@import""", shown)


def test_command_reports_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints causes, writes the format and the page, and exits with 1 if there are causes."""
    monkeypatch.chdir(tmp_path)
    with address(Server(template=tags(), writes=in_fences)) as url:
        told = command_line.run("probe", url, "-o", "format.json", "--page", "page.html")
        data = command_line.run("probe", url, "--json", "--compare", url)

    assert told.exit_code == data.exit_code == 1
    assert "error: other-syntax: " in told.stdout
    assert Format.from_file("format.json").tolerated[-1].checked
    assert "other-syntax" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert [found["right"] for found in json.loads(data.stdout)] == [55, 55]


def test_healthy_engine_exits_with_0() -> None:
    """Without causes, the exit code is 0."""
    with address(Server(template=tags())) as url:
        told = command_line.run("probe", url)

    assert told.exit_code == 0
    assert "no causes of trouble found" in told.stdout


def test_what_cannot_be_probed_is_said() -> None:
    """A wrong address, a silent one, and an engine without a template each get one line."""
    wrong, silent = (command_line.run("probe", url) for url in ("localhost:1", "http://127.0.0.1:1"))
    with address(Server(template=tags(), kind="openai")) as url:
        bare = command_line.run("probe", url, "--engine-model", "m")

    assert [it.exit_code for it in (wrong, silent, bare)] == [2, 2, 2]
    assert "expected the engine's address, e.g. http://127.0.0.1:8080" in wrong.stderr
    assert "the engine cannot be reached" in silent.stderr
    assert "expected the model's chat template" in bare.stderr


def test_time_is_limited() -> None:
    """Tasks are skipped and counted if there is no time left."""

    async def run() -> ProbeReport:
        async with running(Server(template=tags())) as url:
            return await probe_engine(await connected(url), tags(), seconds=0.01)

    report = asyncio.run(run())

    assert report.found.skipped == 55
    assert report.to_dict()["skipped"] == 55


def test_engine_without_a_server_can_be_probed() -> None:
    """Any backend of the gateway can be probed, without the checks for servers. An unknown kind is an error."""
    report = probe(Sampler(), tags(), seconds=20)

    assert report.found.renderings == []
    assert not any(answer.kind in ("broken", "error") for answer in report.found.answers)
    with pytest.raises(EngineError):
        probe("http://127.0.0.1:1", tags())
